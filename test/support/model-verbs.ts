/** What producers, leaders and people call, on the model: see `model.ts`. Each returns the reply it expects. */

import { withLaterMark } from '../../src/job/debounce.ts';
import type { Token } from '../../src/job/job.ts';
import { outcomeLetters } from '../../src/job/state.ts';
import type { SweepLimits, Swept } from '../../src/redis/scripts/lease.ts';
import type { PromoteReply } from '../../src/redis/scripts/passes.ts';
import type {
  AwaitReply,
  CancelReply,
  ReplayReply,
  ScheduleItem,
  ScheduleReply,
} from '../../src/redis/scripts/replies.ts';
import {
  askedOf,
  count,
  createModel,
  type Job,
  jobOf,
  MAX_MS,
  type Model,
  markOf,
  noteStale,
  nudge,
  seenOf,
  tellEnd,
  tombstoneOf,
} from './model.ts';
import { closedBy, sweepTags } from './model-closing.ts';
import { noteRoom, roomFor, roomOf } from './model-quota.ts';

export const LIMITS = { horizonMs: 100_000, bytesMax: 200, leaseMs: 600_000 };

/** Those of calls without an order; `model-debounce.ts` has the others. */
export type Mode = 'keep' | 'replace' | 'update';

export function schedule(model: Model, items: readonly ScheduleItem[], mode: Mode): ScheduleReply[] {
  let soonest = Number.POSITIVE_INFINITY;
  const room = roomOf(model);
  const replies = items.map((item): ScheduleReply => {
    const known = judged(model, item, mode);
    const isMade = known.kind === 'ok' || known.kind === 'replaced';
    const closed = isMade ? closedBy(model, item.record) : undefined;
    const reply = closed ?? roomFor(model, item, known, room);
    if (reply.kind !== 'ok' && reply.kind !== 'replaced') return reply;
    const job = jobOf(model, item.member);
    // It was in ready, where its entry stays.
    if (reply.kind === 'replaced' && job.due === undefined) noteStale(model, item.member);
    // The dead letters of a run's old life are refused as fenced: the run of a new generation has no token.
    if (reply.kind === 'replaced' && job.run) job.run = freshRun({ generation: job.run.generation + 1 });
    Object.assign(job, { record: item.record, due: item.dueMs, tombstone: undefined, overMs: undefined });
    if (reply.kind === 'ok') count(model, 'scheduled');
    soonest = Math.min(soonest, item.dueMs);
    return reply;
  });
  noteRoom(model, room);
  nudge(model, soonest);
  return replies;
}

function judged(model: Model, item: ScheduleItem, mode: Mode): ScheduleReply {
  const refusal = refusalOf(model, item);
  if (refusal) return refusal;
  const { record: live, tombstone, run, due } = jobOf(model, item.member);
  const isUpdate = mode === 'update';
  if (tombstone && (isUpdate || isOf(item.record, tombstone))) {
    return { kind: 'already', over: outcomeLetters[tombstone.outcome] };
  }
  if (live === undefined) return { kind: 'ok' };
  const isSame = live === item.record || isOf(item.record, markOf(live));
  if (isSame && !isUpdate) return { kind: 'already', over: undefined };
  if (mode === 'replace') return { kind: run?.owner === undefined ? 'replaced' : 'running' };
  return { kind: 'exists', dueMs: due ?? Number.parseInt(askedOf(live), 36) };
}

/** What is wrong with a job, whatever is known of it. */
export function refusalOf({ nowMs }: Model, { member, record, dueMs }: ScheduleItem): ScheduleReply | undefined {
  if (dueMs !== 0 && !(dueMs >= 1e11 && dueMs <= nowMs + LIMITS.horizonMs)) return { kind: 'bad-due', nowMs };
  if (!/^j:[!-~]+$/.test(member) || member.length > 200) return { kind: 'bad-member' };
  if (!/^1[0-9a-z]+[;|]/.test(record)) return { kind: 'bad-record' };
  return record.length > LIMITS.bytesMax ? { kind: 'too-large' } : undefined;
}

/** Whether this is the record with which a job was made. */
const isOf = (record: string, { asked, digest }: { readonly asked: string; readonly digest: string }): boolean =>
  asked === markOf(record).asked && digest === markOf(record).digest;

export function freshRun(of: { generation: number; token?: string; attempts?: number; next?: number }) {
  const counts = { attempts: 0, failures: 0, crashes: 0 };
  return { token: '0', ...counts, cancel: false, history: [], ...of };
}

export function promote(
  model: Model,
  call: { term: string; limit: number; cap: number; prolongs: boolean },
): PromoteReply {
  if (model.leader?.term !== call.term) return { kind: 'fenced' };
  if (call.prolongs) model.leader.sane = true;
  if (!model.stream) model.stream = model.group = true;
  const length = model.entries.length;
  const waiting = model.entries.filter(({ holder }) => holder === undefined).length;
  const backlog = length >= call.cap ? waiting : length;
  const room = model.paused === undefined ? Math.min(call.limit, call.cap - backlog) : 0;
  const due = inOrder(model, (job) => job.due).filter(([, , at]) => at <= model.nowMs);
  const pass = withinBytes(due.slice(0, Math.max(0, room)));
  const fates = pass.map(([member, job, at]) => promoteOne(model, { member, job, at }));
  const late = fates.filter((fate) => typeof fate === 'number');
  const lateness = new Map(late.map((ms) => [ms, late.filter((other) => other === ms).length]));
  count(model, 'promoted', late.length);
  const head = inOrder(model, (job) => job.due)[0]?.[2];
  const next = head === undefined ? undefined : Math.ceil(Math.max(0, Math.min(head, MAX_MS)));
  model.wake = room <= 0 ? 0 : (next ?? MAX_MS);
  return {
    kind: room > 0 ? 'promoted' : model.paused === undefined ? 'capped' : 'paused',
    nowMs: model.nowMs,
    nextMs: next,
    backlog: backlog + late.length,
    count: late.length,
    deadLetters: fates.filter((fate) => fate === 'deadLetter').length,
    lateness: [...lateness].sort(([one], [other]) => one - other),
  };
}

/** A pass ends before the member that may be too large, to judge by the largest so far; the first one always goes. */
function withinBytes<T extends readonly [string, ...unknown[]]>(due: readonly T[]): readonly T[] {
  let bytes = 0;
  let largest = 0;
  const end = due.findIndex(([member], at) => {
    largest = Math.max(largest, member.length);
    if (at > 0 && bytes + largest > 1_048_576) return true;
    bytes += member.length;
    return false;
  });
  return end === -1 ? due : due.slice(0, end);
}

interface Due {
  readonly member: string;
  readonly job: Job;
  readonly at: number;
}

function promoteOne(model: Model, { member, job, at }: Due): number | 'deadLetter' | 'waits' {
  const managed = member.startsWith('j:');
  const readable = /^[!-~]+$/.test(member) && member.length <= (managed ? 200 : 130);
  if (at !== 0 && at < 1e11) return refuse(model, { member, job, reason: 'bad-due' });
  if (!readable) return refuse(model, { member, job, reason: 'bad-member' });
  if (!managed && job.run?.entry !== undefined) {
    job.due = model.nowMs + 1000;
    return 'waits';
  }
  const due = at === 0 ? model.nowMs : Math.floor(at);
  if (!managed) adopt(model, { member, job, due });
  job.due = undefined;
  model.entries.push({ member, due, delivered: false });
  return model.nowMs - due;
}

function adopt(model: Model, { member, job, due }: { member: string; job: Job; due: number }): void {
  const isPutAgain = job.record !== undefined && job.run?.next !== due;
  // The due time of its retry is forgotten: whoever puts it at that very moment puts it again.
  if (job.record !== undefined && !isPutAgain && job.run) job.run.next = undefined;
  if (isPutAgain) noteStale(model, member);
  if (job.record !== undefined) return;
  Object.assign(job, { record: `1${due.toString(36)};b=1|{}`, tombstone: undefined, overMs: undefined });
  count(model, 'adopted');
}

/** Nonsense becomes a dead letter, with the job if there is one that does not run. */
function refuse(model: Model, { member, job, reason }: { member: string; job: Job; reason: string }): 'deadLetter' {
  const record = job.run?.entry === undefined ? job.record : undefined;
  const deadLetter = {
    member,
    record: record ?? '',
    reason,
    history: [],
    token: '0',
    attempts: 0,
    generation: 0,
    failures: 0,
    crashes: 0,
  };
  model.deadLetters.push(deadLetter);
  count(model, record === undefined ? 'refused' : 'dead');
  job.due = undefined;
  if (record === undefined) return 'deadLetter';
  noteStale(model, member);
  tellEnd(model, job, { outcome: 'x', token: '0' });
  Object.assign(job, {
    record: undefined,
    run: undefined,
    overMs: model.nowMs,
    tombstone: tombstoneOf({ record }, 'x', deadLetter),
  });
  return 'deadLetter';
}

/** Records of the model are small: nothing is ever `later`. */
export function cancel(model: Model, words: readonly string[], windowMs: number): CancelReply[] {
  return words.map((word) => cancelOne(model, word, windowMs));
}

/** What waits there, or a bare member that waits again. */
const isInReady = (member: string, { run }: Job, due: number | undefined): boolean =>
  due === undefined || (!member.startsWith('j:') && run?.next !== due);

function cancelOne(model: Model, word: string, windowMs: number): CancelReply {
  const [member = '', seen] = word.split('\0');
  const job = jobOf(model, member);
  const { record, due } = job;
  const isThere = record !== undefined || due !== undefined;
  if (isThere && seen !== undefined && seen !== seenOf(model, member, 'nothing')) return { kind: 'changed' };
  const waited = due !== undefined;
  job.due = undefined;
  if (record === undefined) {
    // A bare member that was not adopted yet: it was never counted, and what is known of an earlier life stays.
    if (waited) return { kind: 'cancelled' };
    return job.tombstone ? { kind: 'over', over: outcomeLetters[job.tombstone.outcome] } : { kind: 'unknown' };
  }
  if (job.run?.owner !== undefined) {
    Object.assign(job.run, { cancel: true, again: false });
    return { kind: 'requested' };
  }
  // It was ready, or is a bare member that was put again while it was.
  if (isInReady(member, job, due)) noteStale(model, member);
  tellEnd(model, job, tombstoneOf(job, 'c'));
  // The tombstone of a ready job waits for its entry, which start drops.
  if (windowMs > 0 || !waited) job.tombstone = tombstoneOf(job, 'c');
  if (windowMs > 0 && waited) job.overMs = model.nowMs;
  job.record = job.run = undefined;
  count(model, 'cancelled');
  return { kind: 'cancelled' };
}

/** Whoever ends one of these jobs tells it; a job without a run gets one. */
export function awaitEnds(model: Model, members: readonly string[]): AwaitReply[] {
  return members.map((member) => {
    const job = jobOf(model, member);
    const { record, tombstone } = job;
    const isPut = !member.startsWith('j:') && job.due !== undefined;
    if (isPut && record === undefined) return { kind: 'waits' };
    if (tombstone) {
      const over = outcomeLetters[tombstone.outcome] ?? 'done';
      return { kind: 'over', over, token: tombstone.token as Token };
    }
    if (record === undefined) return { kind: 'unknown' };
    job.run ??= freshRun({ generation: 0 });
    job.run.waited = true;
    return { kind: 'waits' };
  });
}

export function replay(model: Model, id: string, dueMs = model.nowMs): ReplayReply {
  const deadLetter = model.deadLetters.find((candidate) => candidate.id === id);
  if (!deadLetter) return { kind: 'gone' };
  const { member, token, attempts } = deadLetter;
  if (deadLetter.record === '') return { kind: 'empty', member };
  const job = jobOf(model, member);
  if (job.record !== undefined) return { kind: 'live', member };
  const kept = deadLetter.record.replace(
    /^(1\w+)(;[^|]*)/,
    (_, asked, rest) => asked + rest.replace(/;[elp]=\w+/g, ''),
  );
  // What a call of after its death has said is known.
  const record = job.tombstone ? withLaterMark(kept, `${job.tombstone.asked} ${job.tombstone.digest}`) : kept;
  const closed = closedBy(model, record);
  if (closed) return closed;
  const run = freshRun({ generation: deadLetter.generation + 1, token, attempts, next: dueMs });
  Object.assign(job, { record, due: dueMs, tombstone: undefined, overMs: undefined, run });
  model.deadLetters = model.deadLetters.filter((other) => other !== deadLetter);
  count(model, 'replayed');
  nudge(model, dueMs);
  return { kind: 'ok', dueMs, member };
}

export function sweep(model: Model, term: string, limits: SweepLimits): 'fenced' | Swept {
  if (model.leader?.term !== term) return 'fenced';
  const done = inOrder(model, (job) => job.overMs);
  const isAged = (at: number) => at < model.nowMs - limits.windowMs;
  const mayGo = (at: number) => isAged(at) || at < model.nowMs - limits.floorMs;
  const free = done.filter(
    ([, , at], place) => isAged(at) || (place < done.length - limits.tombstonesMax && mayGo(at)),
  );
  const old = free.slice(0, limits.batch);
  tellEvicted(model, { ages: old.filter(([, , at]) => !isAged(at)).map(([, , at]) => model.nowMs - at), limits });
  for (const [, job] of old) job.overMs = job.tombstone = undefined;
  const surplus = model.stale.size - model.entries.length;
  const notes = [...model.stale].sort(([a, one], [b, other]) => one - other || (a < b ? -1 : 1));
  for (const [name] of notes.slice(0, Math.max(0, Math.min(surplus, limits.batch)))) model.stale.delete(name);
  const excess = model.deadLetters.length - limits.deadLettersMax;
  const looked = model.deadLetters.slice(0, Math.min(limits.batch, 100));
  const young = looked.findIndex(
    ({ id }, at) => at + 1 > excess && deadLetterMs(id) >= model.nowMs - limits.retentionMs,
  );
  const isMoreClosed = sweepTags(model, Math.min(limits.batch, 200));
  const more =
    isMoreClosed ||
    free.length > limits.batch ||
    surplus > limits.batch ||
    (young === -1 && looked.length === Math.min(limits.batch, 100));
  return {
    tombstones: old.length,
    deadLetters: forget(model, young === -1 ? looked : looked.slice(0, young)),
    more,
    past: 0,
  };
}

/** The youngest age within a window is kept, and forgotten after it. */
function tellEvicted(model: Model, { ages, limits }: { ages: readonly number[]; limits: SweepLimits }): void {
  const known = model.evicted && model.evicted.atMs >= model.nowMs - limits.windowMs ? model.evicted : undefined;
  const ageMs = Math.min(...ages);
  const isNews = limits.tombstonesMax > 0 && ages.length > 0 && ageMs < (known?.ageMs ?? Number.POSITIVE_INFINITY);
  model.evicted = isNews ? { ageMs, atMs: model.nowMs } : known;
}

export function purge(
  model: Model,
  call: { mode: 'count' | 'remove'; ageMs: number; limit: number; reason: string; after: string | undefined },
) {
  const from = model.deadLetters.findIndex(({ id }) => id === call.after) + 1;
  const batch = model.deadLetters.slice(from, from + call.limit);
  const young = batch.findIndex(({ id }) => deadLetterMs(id) > model.nowMs - call.ageMs);
  const looked = young === -1 ? batch : batch.slice(0, young);
  const found = looked.filter(({ reason }) => call.reason === '' || reason === call.reason);
  const next = young === -1 && looked.length === call.limit ? looked.at(-1)?.id : undefined;
  if (call.mode === 'remove') forget(model, found);
  return { matched: found.length, looked: looked.length, next };
}

export const deadLetterMs = (id = ''): number => Number(id.split('-')[0]);

function forget(model: Model, deadLetters: readonly { id?: string }[]): number {
  const gone = new Set(deadLetters.map(({ id }) => id));
  model.deadLetters = model.deadLetters.filter(({ id }) => !gone.has(id));
  count(model, 'forgotten', gone.size);
  return gone.size;
}

export function elect(model: Model, processId: string): object {
  const { leader } = model;
  const epochOf = (term: string) => Number(term.split(':')[1]);
  if (leader?.sane) {
    const { term } = leader;
    return term.startsWith(`${processId}:`) ? { kind: 'elected', term, epoch: epochOf(term) } : { kind: 'held', term };
  }
  model.epoch = Math.max((model.epoch ?? 0) + 1, model.nowMs);
  model.leader = { term: `${processId}:${model.epoch}:${LIMITS.leaseMs}`, sane: true };
  model.wake = undefined;
  return { kind: 'elected', term: model.leader.term, epoch: model.epoch };
}

/** Whoever renews prolongs what stands there. */
export function renew(model: Model, term: string): 'ok' | 'lost' {
  if (model.leader) model.leader.sane = true;
  return model.leader?.term === term ? 'ok' : 'lost';
}

export function resign(model: Model, term: string): 'ok' | 'lost' {
  if (model.leader?.term !== term) return 'lost';
  model.leader = undefined;
  model.nudges.push('resigned');
  return 'ok';
}

/** Everything is gone, except what others remember. */
export function remove(model: Model, force: boolean): { kind: 'ok' | 'holds'; holds: object } {
  const scheduled = inOrder(model, (job) => job.due).length;
  const holds = { scheduled, entries: model.entries.length, dead: model.deadLetters.length };
  if (!force && scheduled + holds.entries + holds.dead > 0) return { kind: 'holds', holds };
  const { nowMs, nudges, told, effects } = model;
  model.counters.clear();
  model.jobs.clear();
  model.stale.clear();
  const { jobs, counters, stale, ...empty } = createModel(nowMs);
  const unset = {
    leader: undefined,
    epoch: undefined,
    wake: undefined,
    paused: undefined,
    evicted: undefined,
    quota: undefined,
    held: undefined,
  };
  model.declared = false;
  Object.assign(model, { ...empty, ...unset, nudges, told, effects });
  return { kind: 'ok', holds };
}

/** Members that have a number, by it and then by their bytes, as a sorted set has them. */
function inOrder(model: Model, pick: (job: Job) => number | undefined): (readonly [string, Job, number])[] {
  return [...model.jobs]
    .flatMap(([member, job]) => {
      const at = pick(job);
      return at === undefined ? [] : [[member, job, at] as const];
    })
    .sort(([a, , one], [b, , other]) => one - other || (a < b ? -1 : 1));
}
