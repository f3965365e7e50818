/** What workers call, on the model: see `model.ts`. Each returns the reply it expects. */
import { decodeHistory } from '../../src/job/codec.ts';
import type {
  Claim,
  Ended as Claimed,
  Compensation,
  Delivery,
  ExpireReply,
  ExtendReply,
  ReleaseReply,
  Served,
  StartReply,
  Taken,
} from '../../src/redis/scripts/replies.ts';
import {
  count,
  dropNote,
  type Entry,
  isLate,
  type Job,
  jobOf,
  type Model,
  nudge,
  type Run,
  tellEnd,
  tombstoneOf,
} from './model.ts';
import { roomOf, type Steps, stepsOf } from './model-bytes.ts';
import { closedBy } from './model-closing.ts';
import { complete, deadLetterOf, drop, end, fail, inherit } from './model-settles.ts';
import { freshRun } from './model-verbs.ts';

/** What a Redis without the group answers to whoever asks it for pending entries. */
export const NO_GROUP = 'NOGROUP';

export function read(model: Model, { consumer, limit }: { consumer: string; limit: number }) {
  if (!model.group) return NO_GROUP;
  return deliver(model, { consumer, limit });
}

function deliver(model: Model, { consumer, limit }: { consumer: string; limit: number }): Delivery[] {
  const fresh = model.entries.filter(({ delivered }) => !delivered).slice(0, limit);
  for (const entry of fresh) Object.assign(entry, { delivered: true, holder: consumer, idle: false });
  return fresh.map(({ id, member, due }) => ({ entry: id as Delivery['entry'], member, dueMs: due }));
}

export interface Start {
  readonly consumer: string;
  readonly bytesMax: number;
  readonly windowMs: number;
  readonly suspects: number;
  /** Gives the tokens that Redis gave, in their order. */
  readonly mint: () => string;
}

export function start(
  model: Model,
  deliveries: readonly Delivery[],
  call: Start,
): readonly StartReply[] | typeof NO_GROUP {
  if (!model.group) return NO_GROUP;
  return startAll(model, deliveries, { call, steps: stepsOf(model, call.bytesMax) });
}

function startAll(
  model: Model,
  deliveries: readonly Delivery[],
  { call, steps }: { call: Start; steps: Steps },
): readonly StartReply[] {
  const gone: Entry[] = [];
  const replies: StartReply[] = [];
  for (let size = steps.next(deliveries.length); size > 0; size = steps.next(deliveries.length - replies.length)) {
    const some = deliveries.slice(replies.length, replies.length + size);
    steps.saw(some.map(({ member }) => member));
    for (const delivery of some) {
      const entry = heldBy(model, delivery.entry, call.consumer);
      const kind = entry ? leaving(model, { entry, delivery, call }) : 'lost';
      if (entry && kind) gone.push(entry);
      replies.push(entry && !kind ? startOne(model, { entry, delivery, call }) : { kind: kind ?? 'lost' });
    }
  }
  drop(model, gone);
  return deliveries.map((_, at): StartReply => replies[at] ?? { kind: 'later' });
}

export interface Serving {
  readonly ended: readonly Claimed[];
  readonly given: readonly Delivery[];
  readonly take: number;
}

/** What it completed stays so when the rest is refused. */
export function serve(
  model: Model,
  { ended, given, take }: Serving,
  call: Start,
): (Omit<Served, 'taken'> & { taken: readonly Taken[] }) | typeof NO_GROUP {
  const replies = complete(model, ended, { windowMs: call.windowMs, hold: false });
  const completed = replies.every((reply) => reply === 'ok') ? undefined : replies;
  if (given.length > 0 && !model.group) return NO_GROUP;
  const steps = stepsOf(model, call.bytesMax);
  const takenOf = (deliveries: readonly Delivery[]) => {
    const starts = startAll(model, deliveries, { call, steps });
    return deliveries.map((delivery, at): Taken => ({ ...delivery, ...(starts[at] ?? { kind: 'later' }) }));
  };
  const old = takenOf(given);
  const isAsked = take > 0 && model.paused === undefined;
  const fresh = isAsked && model.group ? deliver(model, { consumer: call.consumer, limit: take }) : [];
  const refusal = isAsked && !model.group ? NO_GROUP : undefined;
  const taken = [...old, ...takenOf(fresh)];
  return { completed, taken, delivered: fresh.length, refusal };
}

/** How long a record of a later version waits for a worker that can read it. */
const PARK_MS = 4000;

type Ended = 'deadLetter' | 'dropped' | 'cancelled' | 'released' | 'parked';

/** An entry that is dropped stood for no job: its note goes with it. */
function leaving(model: Model, of: { entry: Entry; delivery: Delivery; call: Start }): Ended | undefined {
  const kind = ending(model, of);
  if (kind === 'dropped') dropNote(model, of.delivery.member);
  return kind;
}

/** Why an entry ends at its start, if it does. */
function ending(
  model: Model,
  { entry, delivery, call }: { entry: Entry; delivery: Delivery; call: Start },
): Ended | undefined {
  const job = jobOf(model, delivery.member);
  const { run } = job;
  if (job.tombstone) {
    job.run = undefined;
    forgetOver(model, job, call.windowMs);
    return 'dropped';
  }
  if (job.record === undefined) return missing(model, entry);
  if (job.due !== undefined) {
    if (run?.entry === entry)
      Object.assign(run, { entry: undefined, owner: undefined, next: undefined, cancel: false, again: false });
    return 'dropped';
  }
  if (run?.entry && run.entry !== entry && run.entry.holder !== undefined) return 'dropped';
  if (isMine(run, entry, call.consumer)) return undefined;
  if (isCancelled(run) || closedBy(model, job.record)) {
    job.tombstone = tombstoneOf(job, 'c');
    tellEnd(model, job, job.tombstone);
    job.record = job.run = undefined;
    count(model, 'cancelled');
    forgetOver(model, job, call.windowMs);
    return 'cancelled';
  }
  const later = /^[2-9][0-9A-Za-z]+[;|]/.test(job.record);
  if (model.paused === undefined && !later) return undefined;
  job.due = model.paused === undefined ? model.nowMs + PARK_MS : delivery.dueMs;
  if (run) Object.assign(run, { entry: undefined, owner: undefined, next: job.due });
  return model.paused === undefined ? 'parked' : 'released';
}

/** An entry without a record: left behind by an earlier life of its member, or a dead letter. */
function missing(model: Model, { member }: Entry): 'dropped' | 'deadLetter' {
  if (model.stale.has(member)) return 'dropped';
  jobOf(model, member).run = undefined;
  // Nobody deletes a record here, so only a member that somebody put without one may be missed.
  if (member !== 'j:ghost') throw new Error(`a false dead letter about ${member}`);
  const nothing = { record: '', history: [], token: '0', attempts: 0, generation: 0, failures: 0, crashes: 0 };
  model.deadLetters.push({ member, reason: 'record-missing', ...nothing });
  count(model, 'refused');
  return 'deadLetter';
}

/** A cancel that came before newer data is not of them. */
const isCancelled = (run: Run | undefined): boolean => run?.cancel === true && !run.again;

const isRunIn = (run: Run | undefined, entry: Entry, consumer: string) =>
  run?.entry === entry && run.owner === consumer;
/** Its start, whose reply may have been lost; after newer data another one is begun. */
const isMine = (run: Run | undefined, entry: Entry, consumer: string) => isRunIn(run, entry, consumer) && !run?.again;

function startOne(
  model: Model,
  { entry, delivery, call }: { entry: Entry; delivery: Delivery; call: Start },
): StartReply {
  const job = jobOf(model, delivery.member);
  const { record = '' } = job;
  const mine = isMine(job.run, entry, call.consumer);
  if (!mine && isLate(job, { due: delivery.dueMs, nowMs: model.nowMs })) return { kind: 'late' };
  if (!mine && call.suspects > 0 && job.run && job.run.crashes >= call.suspects) {
    return { kind: 'suspect', token: job.run.token as Claim['token'] };
  }
  entry.idle = false;
  const run: Run = job.run ?? freshRun({ generation: 0 });
  if (!mine) {
    const token = call.mint();
    if (!(Number(token) > model.lastToken)) throw new Error(`token ${token} does not grow beyond ${model.lastToken}`);
    model.lastToken = Number(token);
    Object.assign(run, { token, attempts: run.attempts + 1, entry, owner: call.consumer });
    Object.assign(run, { next: undefined, cancel: false, again: false });
    job.run = run;
  }
  const { token, attempts, failures, crashes, generation } = run;
  const seen = { token: token as Claim['token'], attempts, failures, crashes, generation };
  return { kind: mine ? 'again' : 'run', ...seen, history: decodeHistory(run.history), record };
}

type Expiring = Delivery & { readonly compensation?: Compensation | undefined };

export function expire(
  model: Model,
  deliveries: readonly Expiring[],
  call: { consumer: string; windowMs: number; bytesMax: number },
) {
  if (!model.group) return NO_GROUP;
  const room = roomOf(model, call.bytesMax);
  const gone: Entry[] = [];
  const replies = deliveries.map((delivery): ExpireReply => {
    if (room.isFull()) return 'later';
    const entry = heldBy(model, delivery.entry, call.consumer);
    if (!entry) return expiredBefore(model, delivery.member);
    if (!room.takes(delivery.member)) return 'later';
    const kind = expireOne(model, delivery, call.windowMs);
    if (kind !== 'kept') gone.push(entry);
    return kind;
  });
  drop(model, gone);
  return replies;
}

function expiredBefore(model: Model, member: string): ExpireReply {
  const { outcome, deadLetter } = jobOf(model, member).tombstone ?? {};
  if (outcome === 'e') return 'over expired';
  const found = outcome === 'x' && model.deadLetters.find((one) => one === deadLetter);
  return found && found.reason === 'expired' ? 'over dead' : 'lost';
}

function expireOne(model: Model, { member, dueMs, compensation }: Expiring, windowMs: number): ExpireReply {
  const job = jobOf(model, member);
  const { record = '', run } = job;
  if (job.record === undefined || run?.owner !== undefined || job.due !== undefined) return 'kept';
  if (!isLate(job, { due: dueMs, nowMs: model.nowMs })) return 'kept';
  if (compensation) inherit(model, compensation);
  const isDead = /^[^|]*;p=x/.test(record);
  const deadLetter = isDead ? deadLetterOf(member, job, { reason: 'expired', history: run?.history ?? [] }) : undefined;
  if (deadLetter) model.deadLetters.push(deadLetter);
  end(model, job, { tombstone: tombstoneOf(job, isDead ? 'x' : 'e', deadLetter), windowMs });
  count(model, isDead ? 'dead' : 'expired');
  return isDead ? 'dead' : 'expired';
}

export function release(model: Model, deliveries: readonly Delivery[], consumer: string) {
  if (!model.group) return NO_GROUP;
  const gone: Entry[] = [];
  let soonest = Number.POSITIVE_INFINITY;
  const replies = deliveries.map(({ entry: id, member, dueMs }): ReleaseReply => {
    const entry = heldBy(model, id, consumer);
    const job = jobOf(model, member);
    const { run } = job;
    if (!entry) return 'lost';
    if (isRunIn(run, entry, consumer)) return 'started';
    if (job.record === undefined && !job.tombstone) return 'lost';
    gone.push(entry);
    const elsewhere = run?.entry !== undefined && run.entry !== entry && run.entry.holder !== undefined;
    const back = job.record !== undefined && !elsewhere && job.due === undefined;
    if (run?.entry === entry) Object.assign(run, { entry: undefined, owner: undefined, next: dueMs });
    if (job.tombstone) job.overMs ??= model.nowMs;
    if (!back) {
      dropNote(model, member);
      return 'dropped';
    }
    job.due = dueMs;
    soonest = Math.min(soonest, dueMs);
    return 'ok';
  });
  drop(model, gone);
  nudge(model, soonest);
  return replies;
}

export function extend(
  model: Model,
  claims: readonly (Claim & { readonly progress?: string | undefined })[],
  consumer: string,
): readonly ExtendReply[] | typeof NO_GROUP {
  let failed = false;
  const replies = claims.map(({ entry, member, token, progress }): ExtendReply => {
    const { run } = jobOf(model, member);
    if (!run) return 'gone';
    if (run.token !== token || run.entry?.id !== entry || run.owner !== consumer) return 'fenced';
    if (!model.group) failed = true;
    if (run.entry.holder === undefined) return 'gone';
    // A group that was made again may have given the entry to another, who has not started it yet.
    Object.assign(run.entry, { holder: consumer, idle: false });
    if (model.group) run.progress = progress ?? run.progress;
    return run.cancel ? 'cancel' : 'ok';
  });
  return failed ? NO_GROUP : replies;
}

export function reclaim(
  model: Model,
  call: { owner: string; consumer: string; entries: readonly string[]; onlyIdle: boolean },
) {
  if (!model.group) return call.entries.length === 0 ? [] : NO_GROUP;
  const taken = call.entries.flatMap((id) => {
    const entry = heldBy(model, id, call.owner);
    return entry && (entry.idle || !call.onlyIdle) ? [entry] : [];
  });
  for (const entry of taken) {
    const { run } = jobOf(model, entry.member);
    Object.assign(entry, { holder: call.consumer, idle: false });
    if (run?.entry !== entry || run.owner !== call.owner) continue;
    const b = Math.floor(Number(run.token) / 1000);
    const line = { t: model.nowMs, a: run.attempts, k: 'crash', m: `worker ${call.owner} was lost`, b, i: 0 };
    fail(run, JSON.stringify(line));
    run.crashes += 1;
    run.owner = undefined;
    count(model, 'crashed');
  }
  count(model, 'reclaimed', taken.length);
  return taken.map(({ id, member, due }) => ({ entry: id, member, dueMs: due }));
}

/** A tombstone whose entry has come: it is swept like any other from now on. */
function forgetOver(model: Model, job: Job, windowMs: number): void {
  if (windowMs > 0) job.overMs ??= model.nowMs;
  else job.tombstone = job.overMs = undefined;
}

function heldBy(model: Model, id: string, consumer: string): Entry | undefined {
  return model.entries.find((entry) => entry.id === id && entry.holder === consumer);
}
