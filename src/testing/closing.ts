/** Closed tags in virtual time, by the rules of the scripts. A tag opens at its very end. */
import { tagsOfRecord } from '../job/record-header.ts';
import { type ClosedAsk, type ClosedSlice, saidIn } from '../redis/read/closed.ts';
import type { TagsChange } from '../redis/scripts/jobs.ts';
import type { Closed, CloseTagReply } from '../redis/scripts/replies.ts';

interface Kept {
  readonly untilMs: number;
  readonly text: string;
}

export class ClosedTags {
  readonly #nowMs: () => number;
  readonly #queues = new Map<string, Map<string, Kept>>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** The tag of a record that is closed for the longest. */
  by(queue: string, record: string): Closed | undefined {
    const tags = this.#in(queue);
    const found = tagsOfRecord(record).flatMap((tag): Closed[] => {
      const untilMs = tags.get(tag)?.untilMs;
      return untilMs === undefined ? [] : [{ kind: 'closed', tag, untilMs }];
    });
    return found.sort((one, other) => other.untilMs - one.untilMs)[0];
  }

  /** The rules of `close-tags.lua`. */
  change(queue: string, tags: readonly string[], change: TagsChange): readonly CloseTagReply[] {
    const closed = this.#in(queue);
    if (change.mode === 'open') return tags.map((tag) => ({ kind: closed.delete(tag) ? 'opened' : 'open' }));
    const { untilMs, text, most } = change;
    return tags.map((tag): CloseTagReply => {
      const before = closed.get(tag)?.untilMs;
      if (before === undefined && closed.size >= most) return { kind: 'full' };
      if (before !== undefined && before >= untilMs) return { kind: 'already', untilMs: before };
      closed.set(tag, { untilMs, text });
      return { kind: before === undefined ? 'closed' : 'longer' };
    });
  }

  look(queue: string, ask: ClosedAsk): ClosedSlice {
    const all = [...this.#in(queue)]
      .map(([tag, { untilMs, text }]) => ({ tag, untilMs, ...saidIn(text) }))
      .toSorted((one, other) => one.untilMs - other.untilMs || (one.tag < other.tag ? -1 : 1));
    const tags =
      'named' in ask ? all.filter(({ tag }) => ask.named.includes(tag)) : all.slice(ask.from, ask.from + ask.limit);
    return { tags, count: all.length };
  }

  #in(queue: string): Map<string, Kept> {
    const tags = this.#queues.get(queue) ?? new Map<string, Kept>();
    this.#queues.set(queue, tags);
    for (const [tag, { untilMs }] of tags) if (untilMs <= this.#nowMs()) tags.delete(tag);
    return tags;
  }
}
