/**
 * The namespace of one run: its name, who lives in it, and how it goes. A run writes nowhere else. All that it wrote is known
 * by name, so it goes also where SCAN is forbidden; where SCAN is allowed, nothing may be found afterwards.
 */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { systemClock } from '../kernel/clock.ts';
import { messageOf } from '../kernel/errors.ts';
import { membersOf } from '../redis/connection/cluster/members.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { controlKeys, partitionKeys, placeOf, storedKeys } from '../redis/keys.ts';
import { beat } from '../redis/scripts/presence.ts';

/** How the namespace of every run begins. */
export const PREFIX = 'duestream.prove.';
const END_BYTES = 6;

/** Queues of a run. Each has one partition. `doctor` is that of the commands that are tried. */
export const QUEUES = ['doctor', 'lost', 'worker', 'leader'] as const;

/** The process of the run itself. */
const RUN = 'prove';
/** Another run may remove what is there when the one it belongs to has been silent for so long. */
const BEAT_TTL_MS = 15_000;
const BEAT_EVERY_MS = 3000;
const PAGE = 1000;
/** A keyspace that is walked for longer than this is walked no further. */
const WALK_MAX_MS = 10_000;

export const newNamespace = (): string => `${PREFIX}${randomBytes(END_BYTES).toString('hex')}`;

/** Says that the run lives, until the signal. A Redis that refuses it is the matter of other rows. */
export async function keepAlive(redis: Redis, namespace: string, signal: AbortSignal): Promise<void> {
  const startedMs = systemClock.wallMs();
  // No daemon and no worker: nobody must wait for it to lead or to run a job.
  const identity = {
    id: RUN,
    role: 'subscriber',
    host: hostname(),
    pid: process.pid,
    startedMs,
    queues: [],
  } as const;
  do {
    await beat(redis, { namespace, identity, ttlMs: BEAT_TTL_MS }).catch(() => undefined);
  } while (await systemClock.sleep(BEAT_EVERY_MS, signal));
}

/** The name of a run has a random end, and nothing of anybody else has such a name. */
const isOfRun = (key: string, namespace: string): boolean =>
  /^[0-9a-f]+$/.test(namespace.slice(PREFIX.length)) && key.startsWith(placeOf(namespace));

async function isAlive(redis: Redis, namespace: string): Promise<boolean> {
  const control = controlKeys(namespace);
  const ids = await redis.smembers(control.alive);
  const beats = await Promise.all(ids.map((id) => redis.exists(control.beat(id))));
  return beats.some((there) => there === 1);
}

export interface Swept {
  readonly removed: number;
  /** Keys that are there still, as far as they were seen. */
  readonly left: readonly string[];
  /** How it is known: every key of each server was looked at, only some of them, or those alone whose names a run knows. */
  readonly seen: 'all' | 'some' | 'names';
}

/** Removes what has a name that a run knows, but for the sign that the run lives. */
export async function forget(redis: Redis, namespace: string): Promise<void> {
  const control = controlKeys(namespace);
  const signs = [control.alive, control.beat(RUN)];
  await remove(
    redis,
    (await namesOf(redis, namespace)).filter((key) => !signs.includes(key)),
  );
}

/** Removes all of a namespace, and looks whether something is left. */
export async function sweep(redis: Redis, namespace: string): Promise<Swept> {
  const names = await namesOf(redis, namespace);
  let removed = await remove(redis, names);
  const { keys, seen } = await walk(redis, `${placeOf(namespace)}*`);
  removed += await remove(redis, keys);
  const all = [...new Set([...names, ...keys])];
  const there = await Promise.all(all.map((key) => redis.exists(key)));
  return { removed, left: all.filter((_, at) => there[at] === 1), seen };
}

/** Every key that a run may have made. */
async function namesOf(redis: Redis, namespace: string): Promise<readonly string[]> {
  const control = controlKeys(namespace);
  const ids = await redis.smembers(control.alive).catch(() => []);
  const ofQueues = QUEUES.map((queue) => partitionKeys({ namespace, queue, partition: 0 }));
  const stored = [...ofQueues, control].flatMap((keys) => storedKeys(keys).map(({ key }) => key));
  return [...ids.map((id) => control.beat(id)), ...stored];
}

async function remove(redis: Redis, keys: readonly string[]): Promise<number> {
  let removed = 0;
  for (let from = 0; from < keys.length; from += PAGE) {
    const page = keys.slice(from, from + PAGE);
    const gone = await Promise.all(page.map((key) => redis.unlink(key).catch(() => redis.del(key))));
    removed += gone.reduce((sum, count) => sum + count, 0);
  }
  return removed;
}

/** Keys of every server that fit, by SCAN. */
async function walk(
  redis: Redis,
  pattern: string,
): Promise<{ readonly keys: readonly string[]; readonly seen: Swept['seen'] }> {
  const keys: string[] = [];
  const untilMs = systemClock.monotonicMs() + WALK_MAX_MS;
  for (const node of membersOf(redis)) {
    let cursor = '0';
    do {
      try {
        const [next, page] = await node.scan(cursor, 'MATCH', pattern, 'COUNT', PAGE);
        keys.push(...page);
        cursor = next;
      } catch (error) {
        if (/NOPERM|unknown command|not (allowed|supported)/i.test(messageOf(error))) return { keys, seen: 'names' };
        throw error;
      }
      if (cursor !== '0' && systemClock.monotonicMs() > untilMs) return { keys, seen: 'some' };
    } while (cursor !== '0');
  }
  return { keys, seen: 'all' };
}

export interface Cleaned {
  readonly namespace: string;
  readonly removed: number;
  /** Its run lives, or ended less than 15 s ago: nothing was removed. */
  readonly isAlive: boolean;
}

/** Removes what runs that were killed left behind, and nothing else. */
export async function clean(
  redis: Redis,
): Promise<{ readonly runs: readonly Cleaned[]; readonly seen: Swept['seen'] }> {
  const { keys, seen } = await walk(redis, `${PREFIX}*`);
  const found = new Map<string, string[]>();
  for (const key of keys) {
    const namespace = key.slice(0, PREFIX.length + 2 * END_BYTES);
    if (isOfRun(key, namespace)) found.set(namespace, [...(found.get(namespace) ?? []), key]);
  }
  const runs: Cleaned[] = [];
  for (const [namespace, own] of found) {
    const alive = await isAlive(redis, namespace);
    runs.push({ namespace, removed: alive ? 0 : await remove(redis, own), isAlive: alive });
  }
  return { runs, seen };
}
