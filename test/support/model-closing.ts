/** Closed tags, on the model: see `model.ts`. */
import { entriesOfRecord } from '../../src/job/record-header.ts';
import type { TagsChange } from '../../src/redis/scripts/jobs.ts';
import type { Closed, CloseTagReply } from '../../src/redis/scripts/replies.ts';
import type { Model } from './model.ts';

/** The tag of a record that is closed for the longest; of two that are closed for as long the first. */
export function closedBy({ closed }: Model, record: string): Closed | undefined {
  const tags = /^1/.test(record) ? entriesOfRecord(record).filter((tag) => !tag.startsWith('=')) : [];
  const found = tags.flatMap((tag): Closed[] => {
    const untilMs = closed.get(tag)?.untilMs;
    return untilMs === undefined ? [] : [{ kind: 'closed', tag, untilMs }];
  });
  return found.sort((one, other) => other.untilMs - one.untilMs)[0];
}

/** Those whose end has come, a step of them; whether more may be left. */
export function sweepTags(model: Model, batch: number): boolean {
  if (!model.isClosing) return false;
  const ended = [...model.closed]
    .filter(([, { untilMs }]) => untilMs <= model.nowMs)
    .sort(([a, one], [b, other]) => one.untilMs - other.untilMs || (a < b ? -1 : 1))
    .slice(0, batch);
  open(
    model,
    ended.map(([tag]) => tag),
  );
  return ended.length === batch;
}

function open(model: Model, tags: readonly string[]): readonly CloseTagReply[] {
  const before = new Set(model.closed.keys());
  for (const tag of tags) model.closed.delete(tag);
  if (model.closed.size === 0) model.isClosing = false;
  return tags.map((tag) => ({ kind: before.has(tag) ? 'opened' : 'open' }));
}

function close(model: Model, tag: string, change: Extract<TagsChange, { mode: 'close' }>): CloseTagReply {
  const { untilMs, text, most } = change;
  const before = model.closed.get(tag)?.untilMs;
  if (before === undefined && model.closed.size >= most) return { kind: 'full' };
  if (before !== undefined && before >= untilMs) return { kind: 'already', untilMs: before };
  model.closed.set(tag, { untilMs, text });
  return { kind: before === undefined ? 'closed' : 'longer' };
}

export function closeTags(model: Model, tags: readonly string[], change: TagsChange): readonly CloseTagReply[] {
  if (change.mode === 'open') return open(model, tags);
  model.isClosing = true;
  return tags.map((tag) => close(model, tag, change));
}
