/**
 * Thousands of jobs fall due while something is killed, three times, at moments that a seed decides. Two daemons and
 * three workers run as real processes on a Redis with an append-only file; times are shortened by configuration. The
 * seed is printed; SEED=… in the environment runs the same moments again.
 */
import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished } from 'vitest';
import { createProducer } from '../../src/client/producer.ts';
import { decodeRun, decodeStub, memberOf } from '../../src/core/codec.ts';
import type { Redis } from '../../src/redis/connect.ts';
import { type PartitionKeys, partitionKeys } from '../../src/redis/keys.ts';
import { presence } from '../../src/redis/presence.ts';
import { consumers } from '../../src/redis/ready.ts';
import { duplicatesIn, type Kill, readEffects, type Story } from './effects.ts';
import type { Processes, Running } from './processes.ts';
import { startRedis, type TestRedis } from './redis.ts';

export const HANDLERS = fileURLToPath(new URL('./effects-handlers.mjs', import.meta.url));

/** A dead leader is replaced, and a dead worker's jobs are taken over, within seconds. */
export const SHORT_LEASES = {
  DUESTREAM_MOVER__LEASE_MS: '1500',
  DUESTREAM_WORKER__CONCURRENCY: '8',
  DUESTREAM_WORKER__JOB_LEASE_MS: '3000',
  DUESTREAM_WORKER__EXTEND_EVERY_MS: '1000',
  DUESTREAM_WORKER__BEAT_TTL_MS: '1500',
  DUESTREAM_WORKER__GRACE_MS: '500',
};

const QUEUE = 'effects';
const JOBS = 5000;
const FIRST_DUE_MS = 1000;
const SPREAD_MS = 12_000;
/** Milliseconds after the first due between which each kill falls. */
const WINDOWS = [
  [1500, 3500],
  [5000, 7000],
  [8500, 10_500],
] as const;
/** A reply that got lost with Redis is found by the worker's periodic look, up to 17 s later. */
const DRAIN_TIMEOUT_MS = 25_000;

export type Siege = Awaited<ReturnType<typeof openSiege>>;

/** Starts everything; it all ends with the test. */
export async function openSiege(processes: Processes) {
  const seed = Number(process.env.SEED ?? randomInt(2 ** 31));
  const random = seeded(seed);
  console.info(`siege: SEED=${seed}`);
  const server = await startRedis({ appendonly: true });
  onTestFinished(() => server.stop());
  const redis = await server.client();
  const keys = partitionKeys({ namespace: 'duestream', queue: QUEUE, partition: 0 });
  const file = join(processes.folder, `effects-${seed}.jsonl`);
  const env = { ...SHORT_LEASES, DUESTREAM_REDIS_URL: server.url, EFFECTS_FILE: file };
  let born = 0;
  const start = (role: string, args: readonly string[]) => {
    born += 1;
    return processes.started({ name: `${role} ${born}`, args, env });
  };
  const daemon = () => start('daemon', ['start', '--roles', 'mover']);
  const worker = () => start('worker', ['worker', HANDLERS, '--queue', QUEUE]);
  const [daemons, workers] = await Promise.all([
    Promise.all([daemon(), daemon()]),
    Promise.all([worker(), worker(), worker()]),
  ]);
  const kills: Kill[] = [];
  const planned = new Map<string, number>();
  const seen = { server, redis, keys, daemons, workers, random };

  return {
    ...seen,
    daemon,
    worker,
    /** Schedules the jobs; then, at each moment, waits until something runs where `strike` will kill, and strikes. */
    async run({ aim, strike }: Plan): Promise<void> {
      await plan(server, planned, random);
      const firstMs = Math.min(...planned.values());
      for (const [from, to] of WINDOWS) {
        await sleep(Math.max(0, firstMs + from + random() * (to - from) - Date.now()));
        const target = await aim();
        // Two, because a handler may end between this look and the kill.
        await expect.poll(() => running(seen, target), { timeout: 5000, interval: 2 }).toBeGreaterThan(1);
        kills.push(await strike(target));
      }
      await expect.poll(() => unfinished(redis, keys), { timeout: DRAIN_TIMEOUT_MS, interval: 100 }).toBe(0);
    },
    async story(): Promise<Story> {
      const story = { planned, effects: readEffects(file), kills, left: await leftovers(redis, keys, planned) };
      console.info(`siege: kills ${JSON.stringify(kills)}, ${duplicatesIn(story.effects)} duplicates`);
      return story;
    },
  };
}

export interface Plan {
  /** The consumer that must be running something before the kill; undefined = any. */
  readonly aim: () => Promise<string | undefined>;
  /** Kills, looks what ran, replaces what was killed. */
  readonly strike: (target: string | undefined) => Promise<Kill>;
}

type Seen = Pick<Siege, 'redis' | 'keys'>;

/** How many started jobs have not settled: of one consumer, or of all. */
export async function running({ redis, keys }: Seen, consumer?: string): Promise<number> {
  const runs = Object.values(await redis.hgetall(keys.runs)).map(decodeRun);
  return runs.filter((run) => run?.owner !== undefined && (consumer === undefined || run.owner === consumer)).length;
}

/** Entries that were delivered to one consumer. */
export async function held({ redis, keys }: Seen, consumer: string): Promise<number> {
  return (await consumers(redis, keys)).find(({ name }) => name === consumer)?.pending ?? 0;
}

/** Process → the id it goes by in Redis. */
export async function idOf(redis: Redis, { pid, name }: Running): Promise<string> {
  const found = (await presence(redis, 'duestream')).find(({ identity }) => identity?.pid === pid);
  if (found === undefined) throw new Error(`${name} (pid ${pid}) has no heartbeat`);
  return found.id;
}

/** The daemon that leads the partition, once there is one. */
export async function leaderAmong({ redis, keys }: Seen, daemons: readonly Running[]): Promise<Running> {
  let leader: Running | undefined;
  await expect
    .poll(
      async () => {
        const term = await redis.get(keys.leader);
        const beats = await presence(redis, 'duestream');
        const pid = beats.find(({ id }) => id === term?.split(':')[0])?.identity?.pid;
        leader = daemons.find((daemon) => daemon.pid === pid);
        return leader !== undefined;
      },
      { timeout: 5000 },
    )
    .toBe(true);
  if (leader === undefined) throw new Error('nobody leads');
  return leader;
}

/** The sockets that workers hold. When those of a dead one are gone, Redis has carried out all it had sent. */
export async function workerSockets(redis: Redis): Promise<number> {
  const clients = String(await redis.call('CLIENT', 'LIST'));
  return clients.match(/ name=duestream:(worker|reader):/g)?.length ?? 0;
}

/** Small, fast, good enough: mulberry32. Numbers from 0 up to 1. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

async function plan(server: TestRedis, planned: Map<string, number>, random: () => number): Promise<void> {
  const producer = await createProducer({ redis: server.url });
  const baseMs = Date.now() + FIRST_DUE_MS;
  const jobs = Array.from({ length: JOBS }, (_, index) => ({
    ...{ id: `job-${index}`, data: undefined },
    at: new Date(Math.floor(baseMs + random() * SPREAD_MS)),
  }));
  const scheduled = await producer.scheduleMany(QUEUE, jobs);
  await producer.stop();
  for (const { id, dueMs } of scheduled) planned.set(id, dueMs);
}

async function unfinished(redis: Redis, keys: PartitionKeys): Promise<number> {
  const counts = await Promise.all([redis.zcard(keys.scheduled), redis.xlen(keys.ready), redis.hlen(keys.runs)]);
  return counts.reduce((total, count) => total + count, 0);
}

async function leftovers(redis: Redis, keys: PartitionKeys, planned: ReadonlyMap<string, number>) {
  const ids = [...planned.keys()];
  const values = await redis.hmget(keys.jobs, ...ids.map((id) => memberOf(id)));
  const over = ids.flatMap((id, index): [string, string][] => {
    const stub = decodeStub(values[index] ?? '');
    return stub ? [[id, stub.outcome]] : [];
  });
  const meta = await redis.hgetall(keys.meta);
  return {
    over: new Map(over),
    scheduled: await redis.zcard(keys.scheduled),
    entries: await redis.xlen(keys.ready),
    pending: (await consumers(redis, keys)).reduce((total, { pending }) => total + pending, 0),
    runs: await redis.hlen(keys.runs),
    letters: await redis.xlen(keys.dead),
    crashed: Number(meta['n.crashed'] ?? 0),
    reclaimed: Number(meta['n.reclaimed'] ?? 0),
  };
}
