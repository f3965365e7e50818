/** What the history of a queue knows of jobs that are over, as lines. */
import type { KeptResult, PastJob } from '../../../core/past.ts';
import { span } from '../../../core/plain-words.ts';
import { fields, json, line } from '../../terminal/text.ts';
import { iso } from '../../terminal/when.ts';

/** What a tombstone does not know of its job. */
export function pastFields(end: PastJob | undefined): readonly string[] {
  if (!end) return [];
  return fields([
    ['name', end.name],
    ['tags', end.tags.length === 0 ? undefined : end.tags.join(', ')],
    ['result', resultText(end.result)],
  ]);
}

/** Its last start, in the order of time with the rest; and where its last error came from. */
export function startLines(end: PastJob): readonly { readonly atMs: number; readonly text: string }[] {
  const { startedMs, tookMs, attempts, owner, history } = end;
  const last = history.at(-1);
  const stack = (last?.stack ?? '').split('\n').slice(1, 1 + STACK_LINES);
  const where = stack.map((text) => ({ atMs: last?.atMs ?? 0, text: `    ${line`${text.trim()}`}` }));
  if (startedMs === undefined) return where;
  const took = tookMs === undefined ? '' : `, which took ${span(tookMs)}`;
  return [
    ...where,
    { atMs: startedMs, text: line`${iso(startedMs)}  attempt ${attempts} started on worker ${owner}${took}` },
  ];
}

const STACK_LINES = 5;

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
