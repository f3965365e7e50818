/** Calls of workers, on Redis and on the model: see `model-commands.ts`. */
import { encodeAttempted, encodeBody, encodeDeferral, encodeProgress, encodeRecord } from '../../src/job/codec.ts';
import type { EntryId } from '../../src/job/job.ts';
import { endMark, markOf } from '../../src/job/record-header.ts';
import * as ready from '../../src/redis/scripts/ready.ts';
import type { Claim, Delivery, StartReply, Taken } from '../../src/redis/scripts/replies.ts';
import { compareIds } from './invariants.ts';
import { pick, roomFor } from './model-calls.ts';
import type { Resolve } from './model-commands.ts';
import * as settles from './model-settles.ts';
import * as worker from './model-worker.ts';
import { type Call, type Claimed, effectKey, type World } from './model-world.ts';

const CONSUMERS = ['w1', 'w2'] as const;
export const consumerOf = (number: number): string => CONSUMERS[number % 2] ?? 'w1';
export const windowOf = (number: number): number => (number % 5 === 4 ? 0 : 600_000);

const read: Resolve = (world, [a, b]) => {
  const { redis, ref, model } = world;
  const [consumer, limit] = [consumerOf(a), 1 + (b % 3)];
  return {
    verb: 'read',
    real: async () => {
      const got = await ready.readNew(redis, [ref], { consumer, count: limit, blockMs: 0 });
      return got.flatMap(({ deliveries }) => deliveries);
    },
    model: () => worker.read(model, { consumer, limit }),
    learn: (reply) => received(world, { consumer, reply }),
  };
};

/** What a consumer holds as far as it knows, or one delivery of anybody, long gone perhaps. */
function chosen(world: World, { consumer, which }: { consumer: string; which: number }): readonly Delivery[] {
  const one = pick(world.deliveries, which)?.delivery;
  if (which > 17) return one ? [one] : [];
  const held = world.model.entries.filter((entry) => entry.holder === consumer).map(({ id }) => id);
  const mine = world.deliveries.filter((known) => known.consumer === consumer && held.includes(known.delivery.entry));
  const own = mine
    .map(({ delivery }) => delivery)
    .filter(({ entry }, at, all) => all.findIndex((e) => e.entry === entry) === at);
  const sorted = own.sort((x, y) => held.indexOf(x.entry) - held.indexOf(y.entry));
  return which % 3 === 2 ? sorted.slice(0, 1) : sorted;
}

const start: Resolve = (world, [a, b, c]) => {
  const consumer = consumerOf(a);
  const deliveries = chosen(world, { consumer, which: b });
  const members = deliveries.map(({ member }) => member);
  const bytesMax = roomFor(world, members, c);
  const suspects = c % 6 < 3 ? c % 6 : 0;
  return startCall(world, { deliveries, consumer, bytesMax, windowMs: windowOf(c), suspects });
};

interface StartedBy {
  readonly deliveries: readonly Delivery[];
  readonly consumer: string;
  readonly bytesMax: number;
  readonly windowMs: number;
  readonly suspects?: number;
}

export function startCall(world: World, { deliveries, ...call }: StartedBy): Call | undefined {
  const { jobs, ref, model } = world;
  if (deliveries.length === 0) return undefined;
  return {
    verb: 'start',
    real: () => jobs.start(ref, deliveries, { ...call, nowMs: model.nowMs }),
    model: (reply) => {
      const given = startsOf(reply).flatMap((one) => (one.kind === 'run' ? [one.token] : []));
      return worker.start(model, deliveries, { suspects: 0, ...call, mint: () => given.shift() ?? 'none given' });
    },
    learn: (reply) => {
      const starts = startsOf(reply);
      const taken = deliveries.flatMap((delivery, at) => (starts[at] ? [{ ...delivery, ...starts[at] }] : []));
      learnClaims(world, { consumer: call.consumer, taken });
    },
  };
}

function learnClaims(world: World, { consumer, taken }: { consumer: string; taken: readonly Taken[] }): void {
  const claims = taken.flatMap((one): Claimed[] => {
    if (!('record' in one)) return [];
    const { entry, member, token, record } = one;
    return [{ consumer, claim: { entry, member, token }, record }];
  });
  world.claims = [...claims, ...world.claims];
}

function startsOf(reply: unknown): readonly StartReply[] {
  return Array.isArray(reply) ? reply : [];
}

const expire: Resolve = (world, [a, b, c]) => {
  const { jobs, ref, model } = world;
  const consumer = consumerOf(a);
  const held = chosen(world, { consumer, which: b });
  const members = held.map(({ member }) => member);
  const call = { consumer, windowMs: windowOf(c), bytesMax: roomFor(world, members, c) };
  const compensation = c % 4 === 1 ? compensationOf(model.nowMs) : undefined;
  const deliveries = held.map((delivery) => ({ ...delivery, compensation }));
  if (deliveries.length === 0) return undefined;
  return {
    verb: 'expire',
    real: () => jobs.expire(ref, deliveries, { ...call, nowMs: model.nowMs }),
    model: () => worker.expire(model, deliveries, call),
  };
};

const compensationOf = (nowMs: number) => ({
  member: 'j:compensation',
  record: encodeRecord(nowMs, encodeBody({ name: 'compensation', data: 'of a job' })),
});

const release: Resolve = (world, [a, b]) => {
  const { jobs, ref, model } = world;
  const consumer = consumerOf(a);
  const deliveries = chosen(world, { consumer, which: b });
  if (deliveries.length === 0) return undefined;
  return {
    verb: 'release',
    real: () => jobs.release(ref, deliveries, { consumer, nowMs: model.nowMs }),
    model: () => worker.release(model, deliveries, consumer),
  };
};

/** The newest claims come first, so that a small number speaks of what runs now. */
function claimOf(world: World, which: number): Claim | undefined {
  return world.claims[Math.floor((which % 12) / 3)]?.claim;
}

/** Every fourth handler has said how far it is. */
const extend: Resolve = (world, [a, b, c]) => {
  const { jobs, ref, model } = world;
  const said = { fraction: b / 24, text: 'so far', atMs: model.nowMs };
  const progress = c % 4 === 3 ? encodeProgress(said, a) : undefined;
  const known = world.claims[Math.floor((a % 12) / 3)];
  if (!known) return undefined;
  const consumer = b > 17 ? consumerOf(b) : known.consumer;
  const claimed = [known.claim, ...(c > 17 ? world.claims.slice(0, 1).map(({ claim }) => claim) : [])];
  const claims = claimed.map((claim) => ({ ...claim, progress }));
  return {
    verb: 'extend',
    real: () => jobs.extend(ref, claims, consumer),
    model: () => worker.extend(model, claims, consumer),
    touched: (reply) =>
      claims
        .filter((_, at) => Array.isArray(reply) && ['ok', 'cancel'].includes(reply[at]))
        .map(({ member }) => member),
  };
};

const complete: Resolve = (world, [a, b, c]) => {
  const { jobs, ref, model } = world;
  const claims = endedOf(world, [a, b, c]);
  if (claims.length === 0) return undefined;
  const call = { windowMs: windowOf(c), hold: b % 4 === 3 };
  const consumer = pick(world.claims, Math.floor((a % 12) / 3))?.consumer ?? '';
  return {
    verb: 'complete',
    real: () => jobs.complete(ref, claims, { ...call, consumer, nowMs: model.nowMs }),
    model: () => settles.complete(model, claims, call),
  };
};

/** One start or several at once, the same one twice, or with the entry of another; every second time without a mark. */
export function endedOf(world: World, [a, b, c]: readonly [number, number, number]) {
  const one = world.claims[Math.floor((a % 12) / 3)];
  if (!one) return [];
  const all = b > 20 ? [one, one] : b > 12 ? world.claims.slice(0, 3) : [one];
  return all.map(({ claim, record }) => ({
    ...claim,
    ...(c === 23 ? { entry: '1-1' as EntryId } : {}),
    mark: pick([endMark(record, 1), '', endMark(record, windowOf(c)), markOf(record) && endMark(record, 0)], c) ?? '',
  }));
}

/** A turn of a worker: what is over, what it was given, and a few more; each of them may be left out. */
const serve: Resolve = (world, [a, b, c]) => {
  const { jobs, ref, model } = world;
  const consumer = consumerOf(a);
  const ended = a < 6 ? [] : endedOf(world, [a, b, c]);
  const given = b % 4 === 3 ? chosen(world, { consumer, which: c }) : [];
  const take = pick([2, 1, 0, 3], b + c) ?? 0;
  const bytesMax = roomFor(
    world,
    [...given, ...model.entries].map(({ member }) => member),
    c,
  );
  const call = { consumer, bytesMax, windowMs: windowOf(c), suspects: c % 6 < 3 ? c % 6 : 0 };
  return {
    verb: 'serve',
    real: async () => {
      const served = await jobs.serve(ref, { ended, given, take }, { ...call, nowMs: model.nowMs });
      const refusal = served.refusal?.startsWith(worker.NO_GROUP) ? worker.NO_GROUP : served.refusal;
      return { ...served, refusal, taken: inOrder(served.taken) };
    },
    model: (reply) => {
      const served = worker.serve(model, { ended, given, take }, { ...call, mint: mintOf(reply) });
      return typeof served === 'string' ? served : { ...served, taken: inOrder(served.taken) };
    },
    windowMs: call.windowMs,
    otherwise: async () => {
      if (ended.length > 0) await jobs.complete(ref, ended, { ...call, nowMs: model.nowMs });
      if (given.length > 0) await jobs.start(ref, given, { ...call, nowMs: model.nowMs });
    },
    learn: (reply) => learnTaken(world, { consumer, taken: takenIn(reply) }),
  };
};

/** What was delivered and started in one call. */
export function learnTaken(world: World, { consumer, taken }: { consumer: string; taken: readonly Taken[] }): void {
  received(world, { consumer, reply: taken.map(({ entry, member, dueMs }) => ({ entry, member, dueMs })) });
  learnClaims(world, { consumer, taken });
}

/** Gives the tokens that Redis gave. */
export function mintOf(reply: unknown): () => string {
  const minted = takenIn(reply).flatMap((one) => (one.kind === 'run' ? [one.token] : []));
  return () => minted.shift() ?? 'none given';
}

/** What started for the first time comes first in a reply; here, each in the place of its entry. */
export const inOrder = (taken: readonly Taken[]) =>
  taken.toSorted((one, other) => compareIds(one.entry, other.entry) || (one.kind < other.kind ? -1 : 1));

export const takenIn = (reply: unknown): readonly Taken[] =>
  typeof reply === 'object' && reply !== null && 'taken' in reply && Array.isArray(reply.taken) ? reply.taken : [];

const commit: Resolve = (world, [a, b, c]) => {
  const { jobs, ref, model } = world;
  const claim = claimOf(world, a);
  const windowMs = windowOf(c);
  const [accepted, refused] = pick(
    [
      [0, false],
      [1, false],
      [2, false],
      [1, true],
      [2, true],
      [0, true],
    ] as const,
    b,
  ) ?? [0, false];
  const effects = Array.from({ length: accepted }, () => ({ command: 'INCRBY', key: effectKey(ref), args: [1] }));
  const wrong = refused ? [{ command: 'INCRBY', key: effectKey(ref), args: ['a word'] }] : [];
  if (!claim) return undefined;
  return {
    verb: 'commit',
    real: () => jobs.commit(ref, claim, { windowMs, effects: [...effects, ...wrong], nowMs: model.nowMs }),
    model: () => settles.commit(model, claim, { windowMs, effects: accepted, refused }),
  };
};

const retry: Resolve = (world, [a, b, c]) => {
  const { jobs, ref, model } = world;
  const claim = claimOf(world, a);
  const attempted = { atMs: model.nowMs, attempt: a, kind: 'failure' as const, message: `boom ${b}` };
  const call = { windowMs: windowOf(c), delayMs: b % 2 === 0 ? 0 : 100, error: encodeAttempted(attempted) };
  if (!claim) return undefined;
  return {
    verb: 'retry',
    real: () => jobs.retry(ref, claim, { ...call, nowMs: model.nowMs }),
    model: () => settles.again(model, claim, call),
  };
};

const defer: Resolve = (world, [a, b, c]) => {
  const { jobs, ref, model } = world;
  const claim = claimOf(world, a);
  const why = b % 3 === 0 ? '' : encodeDeferral({ atMs: model.nowMs, reason: `locked ${b}` });
  const call = { windowMs: windowOf(c), delayMs: b % 2 === 0 ? 0 : 100, why };
  if (!claim) return undefined;
  return {
    verb: 'defer',
    real: () => jobs.defer(ref, claim, { ...call, nowMs: model.nowMs }),
    model: () => settles.again(model, claim, call),
  };
};

const bury: Resolve = (world, [a, b, c]) => {
  const { jobs, ref, model } = world;
  const claim = claimOf(world, a);
  const compensation = b % 3 === 2 ? compensationOf(model.nowMs) : undefined;
  const kind = b % 5 === 4 ? ('refused' as const) : ('failure' as const);
  const attempted = { atMs: model.nowMs, attempt: a, kind, message: 'the last' };
  const error = b % 2 === 0 ? encodeAttempted(attempted) : '';
  const call = { windowMs: windowOf(c), reason: 'attempts', error, compensation };
  if (!claim) return undefined;
  return {
    verb: 'bury',
    real: () => jobs.bury(ref, claim, { ...call, nowMs: model.nowMs }),
    model: () => settles.bury(model, claim, call),
  };
};

const reclaim: Resolve = (world, [a, b, c]) => {
  const owner = consumerOf(a);
  const held = world.model.entries.filter(({ holder }) => holder === owner).map(({ id = '' }) => id);
  const one = pick(world.model.entries, c)?.id;
  // Entries of its own, or one that may be somebody else's.
  const entries = b > 19 && one !== undefined ? [one] : held;
  return reclaimCall(world, { owner, consumer: consumerOf(a + 1), entries, onlyIdle: b % 5 === 4 });
};

export function reclaimCall(
  world: World,
  call: { owner: string; consumer: string; entries: readonly string[]; onlyIdle: boolean },
): Call {
  const { redis, ref, model } = world;
  const entries = call.entries as readonly EntryId[];
  const take = {
    owner: call.owner,
    consumer: call.consumer,
    entries,
    idleMs: call.onlyIdle ? 3_600_000 : 0,
    limit: 100,
  };
  return {
    verb: 'reclaim',
    real: async () => (await ready.reclaim(redis, ref, { ...take, nowMs: model.nowMs })).deliveries,
    model: () => worker.reclaim(model, call),
    learn: (reply) => received(world, { consumer: call.consumer, reply }),
  };
}

/** What a consumer holds and does not know of is started by it. */
const adopt: Resolve = (world, [a]) => {
  const consumer = consumerOf(a);
  const held = world.model.entries.filter(({ holder }) => holder === consumer);
  const deliveries = held.map(({ id, member, due }) => ({ entry: id as EntryId, member, dueMs: due }));
  return startCall(world, { deliveries, consumer, bytesMax: 1_000_000, windowMs: 600_000 });
};

const retire: Resolve = ({ redis, ref, model }, [a]) => ({
  verb: 'retire',
  real: async () => {
    const listed = async () => {
      const found = await ready.consumers(redis, ref.keys).catch(() => []);
      return found.some(({ name }) => name === consumerOf(a));
    };
    const before = await listed();
    const reply = await ready.retire(redis, ref, consumerOf(a));
    if (reply === 'busy' || (reply === 'gone' && !model.stream)) return reply;
    if (await listed()) return 'still there';
    // The model does not know which consumers were shown to the group and hold nothing.
    return reply === (before ? 'ok' : 'gone') ? 'ok' : `${reply} ${before}`;
  },
  model: () => {
    if (!model.stream) return 'gone';
    if (!model.group) return worker.NO_GROUP;
    return model.entries.some(({ holder }) => holder === consumerOf(a)) ? 'busy' : 'ok';
  },
});

/** The process of a consumer ends, and with it all it knew. */
const crash: Resolve = (world, [a]) => {
  world.deliveries = world.deliveries.filter(({ consumer }) => consumer !== consumerOf(a));
  world.claims = world.claims.filter(({ consumer }) => consumer !== consumerOf(a));
  return undefined;
};

function received(world: World, { consumer, reply }: { consumer: string; reply: unknown }): void {
  if (!Array.isArray(reply)) return;
  const deliveries: readonly Delivery[] = reply;
  world.deliveries = [...world.deliveries, ...deliveries.map((delivery) => ({ consumer, delivery }))].slice(-24);
}

export const working = {
  read,
  start,
  expire,
  release,
  extend,
  complete,
  serve,
  commit,
  retry,
  defer,
  bury,
  reclaim,
  adopt,
  retire,
  crash,
};
