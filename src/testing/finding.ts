/**
 * Finding jobs in virtual time, and changing all that a filter means: the jobs of the kit as `places.ts` and `look.ts`
 * find them in Redis. What walks over them, and counts what became of them, is the product's.
 */

import { movedAway } from '../client/calls/layouts.ts';
import { type CallPartitions, isMoved } from '../client/calls/partition-calls.ts';
import type { ClientSettings } from '../client/calls/settings.ts';
import type { ActParts } from '../client/jobs/act.ts';
import { RECORD_OVERHEAD_BYTES } from '../client/parts.ts';
import { isWithin } from '../client/query/filter.ts';
import { type JobWait, jobWaitIn } from '../client/query/waits.ts';
import type { Reader } from '../client/query/walk.ts';
import { idOf, memberOf } from '../job/codec.ts';
import { gateShare, gateState } from '../job/gate.ts';
import { groupOf, type Priority } from '../job/labels.ts';
import { decodeHeader, entriesOfRecord } from '../job/record-header.ts';
import type { JobState, LiveState } from '../job/state.ts';
import { type PartitionRef, partitionRef } from '../redis/keys.ts';
import type { Member } from '../redis/read/counted.ts';
import { type Ended, type EndIndex, type EndsAsk, isBehind, type JobEnd } from '../redis/read/ends.ts';
import type { GroupsAsk, Holder, SeenGroup, SeenGroups } from '../redis/read/groups.ts';
import type { Found } from '../redis/read/look.ts';
import type { DueRange, Place, Source } from '../redis/read/places.ts';
import { cancel, peekOf, reschedule, rewrite, seenOf } from './changes.ts';
import { type JobBook, pendingIn } from './jobs.ts';
import { endsOf, type Kept, OWNER, overOf, refOf } from './kept.ts';

export function findingIn(book: JobBook, settings: ClientSettings): ActParts {
  const { windowMs, horizonMs, dataBytesMax } = settings;
  return {
    reader: readerIn(book),
    jobs: jobsIn(book),
    callPartitions: callsIn(book, settings),
    windowMs,
    horizonMs,
    recordBytesMax: dataBytesMax + RECORD_OVERHEAD_BYTES,
  };
}

/** A queue of the kit is never resized. It has as many partitions as the definitions say by which its jobs came. */
function callsIn(book: JobBook, { namespace, clock, budgetMs }: ClientSettings): CallPartitions {
  return async (queue, call, _whole, use) => {
    const { name, history, redact, ...declared } = use === 'declares' ? book.use(queue) : book.seen(queue);
    const settings = book.gates.settingsOf(name) ?? {};
    let partitions = Math.max(declared.partitions, queue.partitions);
    for (const job of book.inQueue(name)) partitions = Math.max(partitions, job.queue.partitions);
    const layout = Array.from({ length: partitions }, (_, partition) => {
      const gates = gateShare(settings, { partition, partitions });
      return partitionRef(namespace, { queue: name, partition, layoutGeneration: 0, history, redact, gates });
    });
    const reply = await call(layout, { clock, budgetMs });
    if (isMoved(reply)) throw movedAway(name);
    return reply;
  };
}

/** What the scripts answer. A member that is no id of ours is unknown to the kit. */
function jobsIn(book: JobBook): ActParts['jobs'] {
  return {
    cancel: async ({ queue }, words) =>
      words.map((word) => {
        const [member = '', seen] = word.split('\0');
        const { id, bare } = idOf(member);
        return bare ? { kind: 'unknown' } : cancel(book, queue, { id, seen });
      }),
    async reschedule({ queue }, items) {
      const replies = [];
      for (const item of items) replies.push(await reschedule(book, queue, { ...item, id: idOf(item.member).id }));
      return replies;
    },
    closeTags: async ({ queue, partition }, tags, change) =>
      // A queue of the kit has one list of closed tags, whatever its partitions.
      partition === 0 ? book.closed.change(queue, tags, change) : [],
    changeSet: async ({ queue }, change) => book.sets.change(queue, change),
    async edit({ queue }, items, { bytesMax }) {
      const replies = [];
      for (const { member, ...item } of items) {
        replies.push(await rewrite(book, queue, { ...item, id: idOf(member).id, bytesMax }));
      }
      return replies;
    },
  };
}

function readerIn(book: JobBook): Reader {
  const inPartition = ({ queue, partition }: PartitionRef) =>
    [...book.inQueue(queue)].filter((job) => refOf(job).partition === partition);
  const placesIn = (ref: PartitionRef, source: Source) =>
    inPartition(ref)
      .filter((job) => isIn(source, job))
      .map((job) => placeOf(source, job))
      .toSorted((one, two) => (one.at < two.at ? -1 : 1));
  const membersIn = (ref: PartitionRef, due: DueRange): readonly Member[] =>
    inPartition(ref).flatMap(({ id, state, dueMs }) => {
      const member = memberOf(id);
      return isLive(state) && isWithin(due, dueMs) ? [{ member, at: member, state }] : [];
    });
  return {
    async places(ref, { source, after = '', last, limit }) {
      const places = placesIn(ref, source)
        .filter(({ at }) => at > after && (last === undefined || at <= last))
        .slice(0, limit);
      return { places, next: places.length < limit ? undefined : places.at(-1)?.at };
    },
    async recorded(ref) {
      const members = inPartition(ref).map(({ id }) => memberOf(id));
      return { places: members.map((member) => ({ member, at: member })), next: undefined };
    },
    async extent(ref, source) {
      const places = placesIn(ref, source);
      return { last: places.at(-1)?.at, count: places.length };
    },
    async look(ref, places) {
      const jobs = places.map(({ member }) => foundIn(ref, book.find(ref.queue, idOf(member).id), book.nowMs()));
      return { jobs, sizes: jobs.map((job) => (job ? job.member.length + (job.record?.length ?? 0) : 0)) };
    },
    async countPage(ref, { due }) {
      const all = [...membersIn(ref, due)];
      const of = (state: LiveState) => all.filter((one) => one.state === state).length;
      const counts = {
        scheduled: of('scheduled'),
        waiting: of('waiting'),
        ready: of('ready'),
        running: of('running'),
      };
      return { kind: 'counted', counts, next: undefined, last: '', mark: '' };
    },
    members: async (ref, due) => membersIn(ref, due),
    ends: async (ref, ask) => endsIn(book, ref, ask),
    history: async ({ queue }) => [...book.inQueue(queue)].find((job) => job.queue.history?.isOn)?.queue.history,
    async peek({ queue }, member) {
      const job = book.find(queue, idOf(member).id);
      return job && peekOf(job, book.nowMs());
    },
    lastTokens: async ({ queue }, members) => members.map((member) => book.find(queue, idOf(member).id)?.token ?? '0'),
    closed: async ({ queue }, ask) => book.closed.look(queue, ask),
    sets: async (ref, ask) => book.sets.look(ref, ask),
    groups: async (ref, ask) => groupsIn(book, ref, { ask, jobs: inPartition(ref) }),
    holders: async (ref, of) => holdersIn(inPartition(ref), of),
    isGated: async ({ gates }) => gates !== undefined,
    countScheduled: async (ref, { kind, due }) =>
      inPartition(ref).filter(({ state, dueMs }) => state === kind && isWithin(due, dueMs)).length,
  };
}

function isIn(source: Source, { state, dueMs, record }: Kept): boolean {
  switch (source.kind) {
    case 'scheduled':
    case 'waiting':
      return state === source.kind && isWithin(source.due, dueMs);
    case 'ready':
      // The entry of a job that runs is there until it ends.
      return state === 'ready' || state === 'running';
    case 'running':
      return state === 'running';
    case 'tag':
      return isLive(state) && entriesOfRecord(record).includes(source.tag);
  }
}

/** As wide as the largest of them, so that texts come in the order of the numbers. */
const wide = (count: number): string => String(count).padStart(16, '0');

/** The places of one source are in the order of their `at`. */
function placeOf({ kind }: Source, { id, dueMs, turn }: Kept): Place {
  const member = memberOf(id);
  switch (kind) {
    case 'scheduled':
    case 'waiting':
      return { member, at: `${wide(dueMs)} ${member}`, dueMs };
    case 'ready':
    case 'running':
      return { member, at: wide(turn), dueMs };
    case 'tag':
      return { member, at: member };
  }
}

function foundIn(ref: PartitionRef, job: Kept | undefined, nowMs: number): Found | undefined {
  if (!job || !isLive(job.state)) return undefined;
  const { id, state, dueMs, record } = job;
  const { member, run } = peekOf(job, nowMs);
  return { ref, member, id, bare: false, state, record, run, dueMs, seen: seenOf(job) };
}

function endsIn(book: JobBook, ref: PartitionRef, { index, after, limit }: EndsAsk): readonly JobEnd[] {
  const jobs = [...book.inQueue(ref.queue)].filter((job) => refOf(job).partition === ref.partition);
  const ends = index === 'dead' ? lettersIn(book, ref) : jobs.flatMap((job) => endsOfJob(book, index, job));
  return ends
    .filter((end) => isBehind(end, after))
    .toSorted((one, two) => (isBehind(one, two) ? 1 : -1))
    .slice(0, limit);
}

/** Of earlier lives of its id the history alone has something. */
function endsOfJob(book: JobBook, index: Exclude<EndIndex, 'dead'>, job: Kept): readonly JobEnd[] {
  const { id, overMs = 0 } = job;
  const state = overOf(job.state);
  const kept = (ended: Omit<Ended, 'id' | 'bare'>, field: string): JobEnd => ({
    atMs: ended.overMs,
    field,
    ended: { id, bare: false, ...ended },
    size: 0,
  });
  if (index === 'tombstones') {
    return state ? [kept({ state, overMs, tombstone: peekOf(job, book.nowMs()).tombstone }, memberOf(id))] : [];
  }
  return endsOf(job).flatMap((past, nth) =>
    past
      ? [kept({ state: past.outcome, overMs: past.overMs, past }, memberOf(id) + (nth === 0 ? '' : `\0${nth}`))]
      : [],
  );
}

const lettersIn = ({ deadLetters }: JobBook, { queue, partition }: PartitionRef): readonly JobEnd[] =>
  deadLetters
    .filter((one) => !one.isGone && one.queue.name === queue && one.partition === partition)
    .map((letter) => {
      const { id, bare, entry, atMs } = letter;
      return { atMs, field: entry, ended: { id, bare, state: 'dead', overMs: atMs, letter }, size: 0 };
    });

/** What a job in line waits for. */
export async function waitsFor(book: JobBook, job: Kept): Promise<JobWait | undefined> {
  const { id, state, dueMs, record } = job;
  if (state !== 'waiting') return undefined;
  const { queue, partition } = refOf(job);
  const jobs = [...book.inQueue(queue)].filter((one) => refOf(one).partition === partition);
  const waiter = { member: memberOf(id), priority: decodeHeader(record)?.priority ?? 'normal', dueMs };
  return jobWaitIn(book.gates.waitOf(job), async (of) => holdersIn(jobs, of), { ...waiter, nowMs: book.nowMs() });
}

/** As `lua/verbs/groups.lua` says it. */
function groupsIn(
  book: JobBook,
  { gates, queue, partition }: PartitionRef,
  { ask, jobs }: { readonly ask: GroupsAsk; readonly jobs: readonly Kept[] },
): SeenGroups {
  const inGroup = (name: string | undefined) => jobs.filter(({ id }) => groupOf(id) === name);
  const waitingIn = (some: readonly Kept[]) => some.filter(({ state }) => state === 'waiting');
  const known = [
    ...new Set(jobs.flatMap((job) => (isLetThrough(job) || job.state === 'waiting' ? (groupOf(job.id) ?? []) : []))),
  ];
  const names =
    'named' in ask
      ? ask.named
      : known
          .toSorted()
          .filter((name) => name > ask.after)
          .slice(0, ask.limit);
  const gate = gateState(gates?.share, '', book.nowMs());
  const live = jobs.filter(({ state }) => isLive(state));
  const stateOf = (group: string) => {
    const state = book.gates.groupState(queue, partition, group);
    return state && { ...state, pending: state.maxPending === 0 ? 0 : pendingIn(live, group) };
  };
  const groups = names.map((group): SeenGroup => {
    const waiting = waitingIn(inGroup(group));
    const of = (wanted: Priority) =>
      waiting.filter(({ record }) => (decodeHeader(record)?.priority ?? 'normal') === wanted).length;
    const sinceMs = waiting.length === 0 ? undefined : Math.min(...waiting.map(({ dueMs }) => dueMs));
    const places = { high: of('high'), normal: of('normal'), low: of('low') };
    return { group, running: inGroup(group).filter(isLetThrough).length, places, sinceMs, state: stateOf(group) };
  });
  return {
    nowMs: book.nowMs(),
    gate,
    closing: '',
    ungrouped: waitingIn(inGroup(undefined)).length,
    groups,
  };
}

/** Of a group, or of all. */
const holdersIn = (
  jobs: readonly Kept[],
  { group, limit }: { readonly group?: string | undefined; readonly limit: number },
): readonly Holder[] =>
  jobs
    .filter((job) => (group === undefined || groupOf(job.id) === group) && isLetThrough(job))
    .toSorted((one, other) => one.turn - other.turn)
    .slice(0, limit)
    .map(holderOf);

const isLetThrough = ({ state }: Kept): boolean => state === 'ready' || state === 'running';

function holderOf({ id, state, dueMs, attempts, startedMs }: Kept): Holder {
  const own = state === 'running' ? { owner: OWNER, attempt: attempts, startedMs } : NOT_STARTED;
  return { id, bare: false, sinceMs: startedMs ?? dueMs, ...own };
}

const NOT_STARTED = { owner: undefined, attempt: undefined, startedMs: undefined };

const isLive = (state: JobState): state is LiveState => overOf(state) === undefined;
