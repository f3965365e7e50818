/** What the history of a queue knows of jobs that are over, as lines. */
import type { KeptResult, PastJob } from '../../../job/past.ts';
import { span } from '../../../kernel/humanize.ts';
import { json, line } from '../../terminal/text.ts';
import { iso } from '../../terminal/when.ts';

/** Its last start, in the order of time with the rest. */
export function startLines(end: PastJob): readonly { readonly atMs: number; readonly text: string }[] {
  const { startedMs, tookMs, attempts, owner } = end;
  if (startedMs === undefined) return [];
  const took = tookMs === undefined ? '' : `, which took ${span(tookMs)}`;
  return [{ atMs: startedMs, text: line`${iso(startedMs)}  attempt ${attempts} started on worker ${owner}${took}` }];
}

/** Earlier lives of the same id, the oldest first. */
export function earlierLines(past: readonly PastJob[]): readonly string[] {
  return past.toReversed().map((end) => {
    const { outcome, attempts, history, overMs } = end;
    const error = history.at(-1)?.message;
    const why = error === undefined ? '' : `: ${error}`;
    return line`${iso(overMs)}  an earlier life of this id ended ${outcome} after attempt ${attempts}${why}`;
  });
}

export function resultText(result: KeptResult): string | undefined {
  switch (result.kind) {
    case 'kept':
      return json(result.value);
    case 'none':
      return undefined;
    case 'too-large':
      return `not kept: ${result.bytes} bytes of JSON`;
    case 'no-json':
      return `not kept: ${result.why}`;
  }
}
