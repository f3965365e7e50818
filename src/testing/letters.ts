/** The dead letters of the kit: found, replayed and removed by the rules of the scripts. */
import { compareEntries, type LetterStore } from '../client/dead/walk.ts';
import { withLaterMark } from '../job/debounce.ts';
import { markOf } from '../job/record-header.ts';
import type { PartitionRef } from '../redis/keys.ts';
import type { JobBook } from './jobs.ts';
import { endsOf, freshJob, type Kept, type KeptLetter } from './kept.ts';

export function lettersIn(book: JobBook, peek: LetterStore['peek']): LetterStore {
  /** The oldest first. */
  const inPartition = ({ queue, partition }: PartitionRef) =>
    book.deadLetters.filter((one) => !one.isGone && one.queue.name === queue && one.partition === partition);
  const find = (ref: PartitionRef, entry: string) => inPartition(ref).find((one) => one.entry === entry);
  return {
    peek,
    async newest(ref, { limit, before }) {
      const isMeant = ({ entry }: KeptLetter) => before === undefined || compareEntries(entry, before) < 0;
      return inPartition(ref).filter(isMeant).reverse().slice(0, limit);
    },
    oldest: async (ref, ask) => between(inPartition(ref), ask).slice(0, ask.limit),
    find: async (ref, entry) => find(ref, entry),
    async forget(ref, entries) {
      const found = inPartition(ref).filter(({ entry }) => entries.includes(entry));
      for (const one of found) one.isGone = true;
      return found.length;
    },
    /** The rules of `purge.lua`. */
    async purge(ref, { mode, nowMs = book.nowMs(), ageMs, reason, limit, after, last }) {
      const some = between(inPartition(ref), { after, last }).slice(0, limit);
      const young = some.findIndex(({ atMs }) => ageMs !== undefined && atMs > nowMs - ageMs);
      const looked = young < 0 ? some : some.slice(0, young);
      const matched = looked.filter((one) => reason === undefined || one.reason === reason);
      if (mode === 'remove') for (const one of matched) one.isGone = true;
      return {
        matched: matched.length,
        looked: looked.length,
        next: looked.length === limit ? looked.at(-1)?.entry : undefined,
      };
    },
    /** The rules of `replay.lua`. */
    async replay(ref, entry, { dueMs = book.nowMs() } = {}) {
      const found = find(ref, entry);
      if (!found) return { kind: 'gone' };
      const { queue, id, member, token, attempts, generation } = found;
      if (book.isLive(queue.name, id)) return { kind: 'live', member };
      const closed = book.closed.by(queue.name, found.record);
      if (closed) return closed;
      found.isGone = true;
      const before = book.find(queue.name, id);
      const past = before ? endsOf(before) : [];
      const dead = withoutLateness(book.sets.rejoin(queue.name, found));
      const record = before ? withLaterMark(dead, markOf(before.record)) : dead;
      const job = { ...freshJob(queue, { id, record, dueMs, past }), token, attempts };
      await book.begin({ ...job, generation: generation + 1, nextDueMs: dueMs });
      return { kind: 'ok', dueMs, member };
    },
  };
}

const between = (
  letters: readonly KeptLetter[],
  { after, last }: { readonly after?: string | undefined; readonly last?: string | undefined },
): readonly KeptLetter[] =>
  letters.filter(
    ({ entry }) =>
      (after === undefined || compareEntries(entry, after) > 0) &&
      (last === undefined || compareEntries(entry, last) <= 0),
  );

/** The dead letter of a dead job, as long as it is there. */
export function letterOf({ deadLetters }: JobBook, job: Kept): KeptLetter | undefined {
  const isIt = ({ queue, id, entry }: KeptLetter) =>
    queue.name === job.queue.name && id === job.id && entry === job.deadLetter;
  return job.state === 'dead' ? deadLetters.find((one) => isIt(one) && !one.isGone) : undefined;
}

/** A replayed dead letter does not expire. */
function withoutLateness(record: string): string {
  const bar = record.indexOf('|');
  return record.slice(0, bar).replace(/;[elp]=\w+/g, '') + record.slice(bar);
}
