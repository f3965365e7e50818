/**
 * `cast` as the other scripts are proven: random states, in which every call must do what a model of it says; cut off
 * before each of its writes and called again; and broken on purpose, which the two must notice.
 *
 *     PROOF_SEED=123 PROOF_RUNS=500 npx vitest run test/proof/cast.test.ts
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { HeaderOptions } from '../../src/job/fields.ts';
import { type BroadcastOptions, parseSettings } from '../../src/job/queue-settings.ts';
import { close, openCommands, openSubscriber, type Redis, whenReady } from '../../src/redis/connection/connect.ts';
import { partitionRef } from '../../src/redis/keys.ts';
import { createJobs } from '../../src/redis/scripts/jobs.ts';
import { elect } from '../../src/redis/scripts/lease.ts';
import { readNew } from '../../src/redis/scripts/ready.ts';
import { scriptOptions } from '../../src/redis/scripts/scripts.ts';
import { takeSnapshot } from '../support/invariants.ts';
import { castOf, type Held, heldIn } from '../support/model-cast.ts';
import { cutOff, luaOf } from '../support/model-cut.ts';
import { movesOf, rows } from '../support/model-moves.ts';
import { EQUIVALENT_OF_CAST, mutantsOfCast } from '../support/mutants.ts';
import { item, T0 } from '../support/partition.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { isSlice } from '../tiers.mjs';

const RUNS = Number(process.env.PROOF_RUNS ?? (isSlice ? 10 : 60));
const SEED = Number(process.env.PROOF_SEED ?? 1);
const LENGTH = 30;
const LEASE_MS = 1_000_000;
/** So far ahead that every entry is old. */
const AGES_MS = 9.5e12;

type Op = readonly [verb: string, a: number, b: number];
type List = readonly Op[];

let server: TestRedis;
let redis: Redis;
let subscriber: Redis;
const heard: string[] = [];
let arrived: (() => void) | undefined;

beforeAll(async () => {
  server = await startRedis();
  redis = openCommands({ redis: { path: server.socketPath }, name: 'proof' });
  subscriber = openSubscriber({ redis: { path: server.socketPath }, name: 'proof-nudges' });
  await Promise.all([whenReady(redis), whenReady(subscriber)]);
  subscriber.on('smessage', (_: string, message: string) => {
    if (message === 'end') arrived?.();
    else heard.push(message);
  });
  await subscriber.ssubscribe(refOf(false).keys.work);
});
afterAll(async () => {
  close(redis);
  close(subscriber);
  await server.stop();
});

const HISTORY = parseSettings({ history: true }).history;
const refOf = (keeps: boolean) =>
  partitionRef('t', { queue: 'q', partition: 0, layoutGeneration: 0, ...(keeps && HISTORY && { history: HISTORY }) });

function pick<T>(list: readonly [T, ...T[]], at: number): T {
  return list[at % list.length] ?? list[0];
}
/** The same numbers for the same seed. */
function* numbers(seed: number): Generator<number, never> {
  let state = seed * 2654435761 + 1;
  for (;;) {
    state = (Math.imul(state ^ (state >>> 15), 2246822519) + 0x9e3779b9) >>> 0;
    yield (state ^ (state >>> 13)) >>> 0;
  }
}
const WORDS = ['schedule', 'schedule', 'schedule', 'replace', 'cancel', 'put', 'promote', 'read', 'cast'] as const;
const MORE = ['cast', 'pause', 'resume', 'advance', 'later', 'forget', 'again', 'restart', 'read', 'cast'] as const;

function* listsOf(seed: number, runs: number): Generator<List> {
  const random = numbers(seed);
  const next = () => random.next().value;
  for (let run = 0; run < runs; run += 1) {
    yield Array.from(
      { length: LENGTH },
      (): Op => [pick([...WORDS, ...MORE] as never, next() >>> 3), next() % 97, next() % 89],
    );
  }
}

const LATE: readonly [HeaderOptions, ...HeaderOptions[]] = [
  {},
  {},
  { tags: ['x', 'y'] },
  { expiresAtMs: T0 + 30 },
  { expiresAtMs: T0 + 30, onLate: 'dead' },
  { maxLatenessMs: 20, tags: ['x'] },
  { maxLatenessMs: 20, onLate: 'run' },
];
const MEMBERS = ['j:a', 'j:b', 'j:c', 'bare', 'other', 'j:ghost'] as const;

interface World {
  readonly jobs: ReturnType<typeof createJobs>;
  readonly ref: ReturnType<typeof refOf>;
  term: string;
  nowMs: number;
}

async function fresh(keeps: boolean): Promise<World> {
  await redis.flushall();
  const ref = refOf(keeps);
  const { term } = await elect(redis, ref, { processId: 'm1', leaseMs: LEASE_MS, nowMs: T0 });
  return { jobs: createJobs(redis), ref, term, nowMs: T0 };
}

function passOf(world: World, a: number, b: number) {
  const bounds = pick<BroadcastOptions>([{}, {}, { max: 2 }, { max: 1 }, { bytes: 1024 }, { max: 3 }], a);
  const broadcast = parseSettings({ broadcast: { age: '7d', ...bounds } }).broadcast;
  if (!broadcast) throw new Error('no broadcast');
  return {
    term: b % 13 === 12 ? 'm0:1:1000' : world.term,
    leaseMs: b % 3 === 0 ? undefined : LEASE_MS,
    limit: pick([500, 500, 1, 2, 500, 0], b),
    windowMs: a % 4 === 3 ? 0 : 600_000,
    // Less than the smallest bound that may be asked for: records of the model are small.
    broadcast: broadcast.bytes === 1024 ? { ...broadcast, bytes: b % 2 === 0 ? 90 : 20 } : broadcast,
    nowMs: a % 17 === 16 ? world.nowMs + AGES_MS : world.nowMs,
  };
}

async function scheduled({ jobs, ref, nowMs }: World, mode: 'keep' | 'replace', [, a, b]: Op): Promise<void> {
  const dueMs = dueOf(nowMs, b);
  const one = item(pick(['a', 'b', 'c'], a), { dueMs, data: 'x'.repeat(a % 5), late: pick(LATE, b) });
  await jobs.schedule(ref, [one], { mode, horizonMs: 1e13, bytesMax: 100_000, nowMs });
}
const dueOf = (nowMs: number, b: number) => nowMs + pick([0, 0, -10, 40, 0], b);

/** The job that a worker gets from an older leader runs on, or is put aside. */
async function read({ jobs, ref, nowMs }: World, b: number): Promise<void> {
  const found = await readNew(redis, [ref], { consumer: 'w1', count: 1, blockMs: 0 }).catch(() => []);
  const given = found.flatMap(({ deliveries }) => deliveries);
  const start = { consumer: 'w1', bytesMax: 100_000, windowMs: 600_000, nowMs };
  const [one] = given;
  if (one === undefined || b % 3 === 0) return;
  const [started] = await jobs.start(ref, given, start);
  if (b % 3 === 1 || started === undefined || !('token' in started)) return;
  const claim = { entry: one.entry, member: one.member, token: started.token };
  await jobs.defer(ref, claim, { windowMs: 600_000, delayMs: 0, nowMs });
}

/** What runs is put once more by a foreign producer, and so is what is over. */
async function again({ ref: { keys }, nowMs }: World, b: number): Promise<void> {
  for (const member of Object.keys(await redis.hgetall(keys.runs))) {
    if (!member.startsWith('j:')) await redis.zadd(keys.scheduled, nowMs, member);
  }
  for (const [member, value] of Object.entries(await redis.hgetall(keys.jobs))) {
    if (!value.startsWith('.')) continue;
    if (b % 2 === 0) await redis.zrem(keys.done, member);
    await redis.zadd(keys.scheduled, nowMs, member);
  }
}

async function makeLater({ ref: { keys } }: World, member: string): Promise<void> {
  const record = (await redis.hget(keys.jobs, member)) ?? '';
  if (member.startsWith('j:') && record.startsWith('1')) await redis.hset(keys.jobs, member, `2${record.slice(1)}`);
}

const VERBS: Readonly<Record<string, (world: World, op: Op) => Promise<unknown>>> = {
  schedule: (world, op) => scheduled(world, 'keep', op),
  replace: (world, op) => scheduled(world, 'replace', op),
  cancel: ({ jobs, ref, nowMs }, [, a]) => jobs.cancel(ref, [pick(MEMBERS, a)], { windowMs: 600_000, nowMs }),
  put({ ref, nowMs }, [, a, b]) {
    const score = pick([dueOf(nowMs, b), dueOf(nowMs, b), 0, 1_763_719_000], b);
    return redis.zadd(ref.keys.scheduled, score, pick(MEMBERS, a));
  },
  promote: ({ jobs, ref, term, nowMs }) => jobs.promote(ref, { term, leaseMs: undefined, limit: 500, cap: 100, nowMs }),
  read: (world, [, , b]) => read(world, b),
  pause: ({ ref }) => redis.hset(ref.keys.meta, 'paused', '1 proof'),
  resume: ({ ref }) => redis.hdel(ref.keys.meta, 'paused'),
  async advance(world, [, , b]) {
    world.nowMs += pick([10, 40, 1000], b);
  },
  later: (world, [, a]) => makeLater(world, pick(MEMBERS, a)),
  forget: ({ ref, nowMs }) => redis.zadd(ref.keys.stale, nowMs, 'j:ghost'),
  again: (world, [, , b]) => again(world, b),
  restart: ({ ref }, [, , b]) => (b % 3 === 0 ? redis.hdel(ref.keys.meta, 'cast') : Promise.resolve()),
};
const play = (world: World, op: Op) => VERBS[op[0]]?.(world, op);

const NEVER_SAME = /^(\.x\S+ \S+ \d+ \d+) \S+$/;
const told = (held: Held) => ({
  ...held,
  jobs: Object.fromEntries(
    Object.entries(held.jobs).map(([one, text]) => [one, text.replace(NEVER_SAME, '$1 letter')]),
  ),
  past: Object.fromEntries(Object.entries(held.past).filter(([id]) => !id.includes('\0'))),
  // Notes of entries of earlier lives; and what counts for nothing here.
  stale: [],
});

/** An entry of a job that is over, as a worker of before may have left it; those of other ends are seen. */
const BY_WORKERS = ['expired cast none', 'dead cast none', 'cancelled cast none', 'done cast none'];

/** What was seen to become of jobs, while that is watched. */
const moves = new Set<string>();
let watches = false;

/** A call on Redis and on the model of it. */
async function castBoth(world: World, a: number, b: number): Promise<void> {
  const pass = passOf(world, a, b);
  const { keys } = world.ref;
  const before = await heldIn(redis, keys);
  const snapshot = watches ? await takeSnapshot(redis, keys) : undefined;
  const model = castOf(before, { ...pass, keeps: world.ref.history !== undefined });
  await redis.pexpire(keys.leader, LEASE_MS / 2);
  await silence();
  expect(await world.jobs.cast(world.ref, pass)).toEqual(model);
  const nudges = await silence();
  expect({ ...told(await heldIn(redis, keys)), nudges }).toEqual(told(before));
  if (snapshot)
    for (const move of movesOf('cast', { before: snapshot, after: await takeSnapshot(redis, keys) })) moves.add(move);
  const prolonged = (await redis.pttl(keys.leader)) > LEASE_MS / 2;
  expect(prolonged).toBe(model.kind !== 'fenced' && pass.leaseMs !== undefined);
}

/** How many jobs were told of since the last time. Messages of a channel arrive in order. */
async function silence(): Promise<number> {
  const end = new Promise<void>((done) => {
    arrived = done;
  });
  await redis.spublish(refOf(false).keys.work, 'end');
  await end;
  const said = heard.splice(0);
  if (said.length > 1) throw new Error(`told ${said.length} times`);
  return said.length === 0 ? 0 : Number(said[0]) || Number.NaN;
}

async function runList(list: List, keeps: boolean): Promise<World> {
  const world = await fresh(keeps);
  for (const op of list) {
    if (op[0] === 'cast') await castBoth(world, op[1], op[2]);
    else await play(world, op);
  }
  return world;
}

/** What random lists seldom meet. */
const KEPT: readonly List[] = [
  // A job that is ready gets a later due time: its entry does not bring it forward.
  [
    ['schedule', 0, 0],
    ['promote', 0, 0],
    ['replace', 0, 3],
    ['cast', 0, 0],
  ],
  // A job whose entry nobody has read is put off and cancelled: it has been over since then.
  [
    ['schedule', 0, 0],
    ['promote', 0, 0],
    ['replace', 0, 3],
    ['cancel', 0, 0],
    ['advance', 0, 0],
    ['cast', 0, 0],
  ],
  // What an older leader made ready is too late by now.
  [
    ['schedule', 0, 10],
    ['schedule', 1, 4],
    ['promote', 0, 0],
    ['advance', 0, 1],
    ['cast', 0, 0],
  ],
];
/** Planted bugs are looked for with all of them. */
const lists = [...KEPT, ...listsOf(SEED, Math.max(RUNS, 60))];
const keepsIn = (at: number) => at % 3 === 0;

test(`every call in ${RUNS} lists does what the model of it says (seed ${SEED})`, { timeout: 600_000 }, async () => {
  watches = true;
  for (const [at, list] of lists.slice(0, KEPT.length + RUNS).entries()) {
    await runList(list, keepsIn(at)).catch((error: unknown) => {
      throw new Error(`list ${at} of PROOF_SEED=${SEED}: ${JSON.stringify(list)}`, { cause: error });
    });
  }
  watches = false;
  // The table of transitions says no less, and no more.
  const ofCast = [...rows].filter((row) => row.includes(' cast '));
  expect([...moves].filter((move) => !ofCast.includes(move))).toEqual([]);
  if (RUNS >= 60) expect(ofCast.filter((row) => !moves.has(row) && !BY_WORKERS.includes(row))).toEqual([]);
});

/**
 * What is left in the end: how each job ended, what waits, and the letters of each once. The index of tags may keep an entry
 * too many.
 */
async function endOf(world: World): Promise<unknown> {
  const { keys } = world.ref;
  for (const nth of [0, 1, 2]) await world.jobs.cast(world.ref, { ...passOf(world, 0, 0), nowMs: world.nowMs + nth });
  const held = await heldIn(redis, keys);
  const counts = held.cast.map(({ count }) => count);
  if (counts.some((count, at) => at > 0 && count <= (counts[at - 1] ?? 0))) throw new Error(`counts ${counts}`);
  const ends = Object.entries(held.jobs).map(([member, text]) => `${member} ${text.slice(0, 2)}`);
  const past = Object.entries(held.past).map(([id, text]) => `${id} ended ${text.slice(0, 1)}`);
  const unkept = Object.keys(held.jobs).filter((one) => held.jobs[one]?.startsWith('.') && !(one in held.done));
  return {
    ends: ends.sort(),
    scheduled: held.scheduled,
    ready: held.ready,
    given: held.given,
    done: Object.keys(held.done).sort(),
    dead: [...new Set(held.dead)].sort(),
    runs: held.runs,
    unkept,
    past: past.filter((one) => !one.includes('\0')).sort(),
    cast: [...new Set(held.cast.map(({ member }) => member))].sort(),
  };
}

/** One state, in which the last call is cut off before each of its writes and made again. */
async function cutEverywhere(list: List, keeps: boolean, lua: string): Promise<readonly string[]> {
  const states = async () => {
    const world = await fresh(keeps);
    for (const op of list) {
      if (op[0] === 'cast') await world.jobs.cast(world.ref, passOf(world, 0, 0));
      else await play(world, op);
    }
    await redis.hdel(world.ref.keys.meta, 'paused');
    return world;
  };
  const whole = await endOf(await states());
  const wrong: string[] = [];
  for (let allowed = 0; allowed < 60; allowed += 1) {
    const world = await states();
    const call = () => world.jobs.cast(world.ref, passOf(world, 0, 0));
    const site = await cutOff(redis, { verb: 'cast', lua, allowed, call });
    if (site === undefined) return wrong;
    seen.add(site);
    const ended = await endOf(world);
    if (JSON.stringify(ended) !== JSON.stringify(whole)) {
      wrong.push(`${site}: ${JSON.stringify(ended)} instead of ${JSON.stringify(whole)} after ${JSON.stringify(list)}`);
    }
  }
  return wrong;
}
const seen = new Set<string>();
const cuts = [...listsOf(SEED + 100, 25)].map((list) =>
  // Numbers that begin anew are not those of a cut.
  list.filter(([verb]) => verb !== 'restart').slice(0, 12),
);

test('cut off before any of its writes and called again, it brings every job to its end', {
  timeout: 600_000,
}, async () => {
  const wrong: string[] = [];
  for (const [at, list] of cuts.slice(0, isSlice ? 4 : 25).entries())
    wrong.push(...(await cutEverywhere(list, keepsIn(at), luaOf('cast'))));
  expect(wrong).toEqual([]);
  expect(seen.size).toBeGreaterThan(isSlice ? 5 : 12);
});

const planted = mutantsOfCast();

test(`each of ${planted.length} planted bugs is noticed`, { timeout: 1_800_000 }, async () => {
  const { numberOfKeys } = scriptOptions().duestream_cast ?? {};
  const define = (lua: string) =>
    redis.defineCommand('duestream_cast', numberOfKeys === undefined ? { lua } : { lua, numberOfKeys });
  const survivors: string[] = [];
  for (const mutant of planted) {
    if (EQUIVALENT_OF_CAST.has(mutant.name)) continue;
    define(mutant.scripts.get('cast') ?? '');
    if (!(await isNoticed(mutant.scripts.get('cast') ?? ''))) survivors.push(mutant.name);
    define(luaOf('cast'));
  }
  expect(survivors).toEqual([]);
  const names = new Set(planted.map(({ name }) => name));
  expect([...EQUIVALENT_OF_CAST.keys()].filter((name) => !names.has(name))).toEqual([]);
});

/** The list that noticed the last one comes first. */
let first = 0;
async function isNoticed(lua: string): Promise<boolean> {
  for (let nth = 0; nth < lists.length; nth += 1) {
    const at = nth === 0 ? first : nth - 1;
    const fails = await runList(lists[at] ?? [], keepsIn(at)).then(
      () => false,
      () => true,
    );
    if (!fails) continue;
    first = at;
    return true;
  }
  for (const [at, list] of cuts.entries()) if ((await cutEverywhere(list, keepsIn(at), lua)).length > 0) return true;
  return false;
}
