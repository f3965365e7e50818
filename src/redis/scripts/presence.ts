/**
 * Heartbeats: one key with a TTL and one member of the alive set per process, in the control slot. One command prolongs it,
 * and a script makes it, because a Redis at its memory limit refuses a plain SET: nobody could start to drain it.
 *
 * They only *nominate* the dead. A wall clock that jumps, or Redis away for longer than a TTL, removes every heartbeat
 * in one instant; that is why an observer looks twice, a grace apart, and why XCLAIM's min-idle decides.
 *
 * A worker is paused in its heartbeat: somebody writes there since when, by whom and why, and the worker finds it where it prolongs
 * the key, with one command as before. So everybody who sees the worker sees its pause. The pause ends with the key, and a worker
 * that makes its key anew, because Redis has lost it, writes its pause again.
 */
import type { QueuePolicies } from '../../job/queue-policy.ts';
import { messageOf } from '../../kernel/errors.ts';
import type { Redis } from '../connection/connect.ts';
import { naming } from '../connection/wrong-type.ts';
import { controlKeys } from '../keys.ts';
import { inParts } from './bytes.ts';
import { scripts } from './script-table.ts';
import { run, text } from './scripts.ts';

/** Why a worker starts nothing new. */
export interface WorkerPause {
  /** Since when, epoch ms by the clock of Redis. */
  readonly sinceMs: number;
  readonly by?: string;
  readonly reason?: string;
}

export interface Identity {
  /** Random per process start; for workers it is the consumer's name. */
  readonly id: string;
  readonly role: 'daemon' | 'worker' | 'subscriber';
  readonly host: string;
  readonly pid: number;
  /** Epoch ms by the process's own clock; for people. */
  readonly startedMs: number;
  readonly queues: readonly string[];
  /** Of duestream. Older versions left it out. */
  readonly version?: string;
  /** Of a worker: how many it has to Redis, all nodes together. Older versions left it out. */
  readonly connections?: number;
  /** Of a worker: how many jobs of each queue it runs at a time. Older versions left it out. */
  readonly slots?: Readonly<Record<string, number>>;
  /** Of a worker that waits in no read, where Redis is no cluster: leaders tell it of new jobs. */
  readonly polls?: boolean;
  /** Of a worker that holds jobs until they are due. Older versions do not. */
  readonly holds?: boolean;
  /** It knows strict order, two rates, limits that queues share and costs. Older processes do not, and start nothing in such a queue. */
  readonly keepsOrder?: boolean;
  /** Of a subscriber: how many jobs were sent that it had not begun when it said so, which it does with each beat. */
  readonly lag?: number;
  /** Of a worker that hears of a pause. Older versions do not, and go on. */
  readonly pauses?: boolean;
  /** Of a worker: it starts nothing new. */
  readonly paused?: WorkerPause;
  /** Of a worker of the role dispatcher: it calls the URLs of its queues. */
  readonly dispatches?: boolean;
  /** Of a worker that comes over HTTP: by that way, from this address. */
  readonly via?: 'http';
  readonly address?: string;
  /** Of a daemon with `http.work`: how it judges runs of workers over HTTP. Older versions left it out. */
  readonly policies?: QueuePolicies;
  /** How long each of its beats is valid; what is left of it says when the last one was. Older versions left it out. */
  readonly beatTtlMs?: number;
}

interface Beat {
  readonly namespace: string;
  readonly identity: Identity;
  readonly ttlMs: number;
}

/**
 * Sends one heartbeat. The value is written only when the key is not there; `anew` says so, because then other control
 * keys may have vanished with it.
 */
export async function beat(redis: Redis, one: Beat): Promise<'kept' | 'anew'> {
  const keys = controlKeys(one.namespace);
  if ((await redis.pexpire(keys.beat(one.identity.id), one.ttlMs)) === 1) return 'kept';
  return beatAnew(redis, one);
}

/** The same of a worker, which hears with it whether it is paused: with a key that was made anew it is as before. */
export async function beatAndHear(
  redis: Redis,
  one: Beat,
): Promise<{ readonly isAnew: boolean; readonly paused: WorkerPause | undefined }> {
  const keys = controlKeys(one.namespace);
  const said = await redis.getex(keys.beat(one.identity.id), 'PX', one.ttlMs);
  if (said !== null) return { isAnew: false, paused: said.includes(PAUSED) ? decode(said)?.paused : undefined };
  return { isAnew: (await beatAnew(redis, one)) === 'anew', paused: one.identity.paused };
}

/** Within a text of JSON quotes have a backslash: it stands where the field does, and nowhere else. */
const PAUSED = '"paused":{';

async function beatAnew(redis: Redis, { namespace, identity, ttlMs }: Beat): Promise<'kept' | 'anew'> {
  const keys = controlKeys(namespace);
  const args = { process: identity.id, identity: JSON.stringify({ ...identity, beatTtlMs: ttlMs }), ttl: ttlMs };
  const reply = await run(redis, scripts.beat, { keys: { ...keys, beat: keys.beat(identity.id) }, args });
  if (text(reply) === 'kept') return 'kept';
  // It lives, whether or not others can be taken away.
  await forgetSome(redis, namespace).catch(() => undefined);
  return 'anew';
}

/** Among so few ids the lost ones stay for people to see in `workers`, until a mover has missed them for long. */
export const LISTED_FEW = 100;
/** A process that enters the list takes so many of the lost ones out of it, at most. */
const FORGOTTEN_AT_ONCE = 20;

/** Processes may come and be killed all the time, and none live long enough to miss the others. */
async function forgetSome(redis: Redis, namespace: string): Promise<void> {
  const some = await redis.srandmember(controlKeys(namespace).alive, LISTED_FEW + 1);
  if (some.length <= LISTED_FEW) return;
  const lost = await withoutBeat(redis, namespace, some);
  await forget(redis, namespace, ...lost.slice(0, FORGOTTEN_AT_ONCE));
}

/** What became of a call that pauses a worker or lets it go on. */
export type WorkerTold =
  /** `pause`: the one that holds, or the one that has ended. */
  | { readonly kind: 'ok' | 'same'; readonly pause: WorkerPause | undefined }
  /** It has no heartbeat, or it is no worker. */
  | { readonly kind: 'gone' }
  /** Its version hears of no pause. */
  | { readonly kind: 'deaf'; readonly version: string | undefined };

/** How often somebody else may write into a heartbeat while it is read and replaced. */
const TELL_TRIES = 10;

/** @param pause undefined: the worker goes on */
export async function tellWorker(
  redis: Redis,
  {
    namespace,
    id,
    pause,
  }: { readonly namespace: string; readonly id: string; readonly pause: WorkerPause | undefined },
): Promise<WorkerTold> {
  const keys = controlKeys(namespace);
  const beatKey = keys.beat(id);
  for (let tries = 0; tries < TELL_TRIES; tries += 1) {
    const before = await redis.get(beatKey);
    const identity = decode(before);
    if (before === null || identity?.role !== 'worker' || identity.id !== id) return { kind: 'gone' };
    const { paused, ...rest } = identity;
    if (identity.pauses !== true) return { kind: 'deaf', version: identity.version };
    if ((paused === undefined) === (pause === undefined)) return { kind: 'same', pause: paused };
    const after = JSON.stringify(pause === undefined ? rest : { ...rest, paused: pause });
    const reply = text(
      await run(redis, scripts.tell, { keys: { ...keys, beat: beatKey }, args: { process: id, before, after } }),
    );
    if (reply === 'gone') return { kind: 'gone' };
    if (reply === 'ok') return { kind: 'ok', pause: pause ?? paused };
  }
  throw new Error(`the heartbeat of ${id} was written again and again meanwhile`);
}

/** A subscriber says how far behind it is, beside a heartbeat that is there. */
export async function noteLag(
  redis: Redis,
  {
    namespace,
    identity,
    beatTtlMs,
    lag,
  }: {
    readonly namespace: string;
    readonly identity: Identity;
    readonly beatTtlMs: number;
    readonly lag: number;
  },
): Promise<void> {
  const value = JSON.stringify({ ...identity, beatTtlMs, lag });
  // A full Redis refuses it; the heartbeat stays, with an older number.
  await redis.set(controlKeys(namespace).beat(identity.id), value, 'KEEPTTL', 'XX').catch(() => undefined);
}

/** Leaves in an orderly way: nobody has to wait for a TTL. */
export async function leave(redis: Redis, namespace: string, id: string): Promise<void> {
  const keys = controlKeys(namespace);
  await redis.del(keys.beat(id));
  await redis.srem(keys.alive, id);
  // Some services have no such channels; the others see it at their next look.
  await redis.spublish(keys.wake, `left ${id}`).catch(() => undefined);
}

/** Every member of the alive set with its heartbeat, or without one if it is missing. */
export async function presence(
  redis: Redis,
  namespace: string,
): Promise<readonly { readonly id: string; readonly identity: Identity | undefined }[]> {
  const keys = controlKeys(namespace);
  const ids = await naming(redis, [keys], redis.smembers(keys.alive));
  const values = await inParts(ids, (some) => redis.mget(some.map((id) => keys.beat(id))));
  return ids
    .map((id, index) => ({ id, identity: decode(values[index] ?? null) }))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** How long ago each of these processes sent its last beat; without those that have none, or do not say their TTL. */
export async function beatAges(
  redis: Redis,
  namespace: string,
  identities: readonly Identity[],
): Promise<ReadonlyMap<string, number>> {
  const keys = controlKeys(namespace);
  const ages = new Map<string, number>();
  for (let from = 0; from < identities.length; from += AT_ONCE) {
    const some = identities.slice(from, from + AT_ONCE);
    const ttls = await Promise.all(some.map(({ id }) => redis.pttl(keys.beat(id))));
    for (const [at, ttlMs] of ttls.entries()) {
      const { id = '', beatTtlMs = 0 } = some[at] ?? {};
      if (ttlMs >= 0 && ttlMs <= beatTtlMs) ages.set(id, beatTtlMs - ttlMs);
    }
  }
  return ages;
}

const AT_ONCE = 100;

/** Which of these ids have no heartbeat right now. While all have one, a hundred of them cost one number. */
export async function withoutBeat(redis: Redis, namespace: string, ids: readonly string[]): Promise<readonly string[]> {
  const keys = controlKeys(namespace);
  // @missing-beats
  const missing: string[] = [];
  for (let from = 0; from < ids.length; from += AT_ONCE) {
    const some = ids.slice(from, from + AT_ONCE);
    if ((await redis.exists(some.map((id) => keys.beat(id)))) === some.length) continue;
    const there = await Promise.all(some.map((id) => redis.exists(keys.beat(id))));
    missing.push(...some.filter((_, index) => there[index] === 0));
  }
  return missing;
}

/** Takes ids out of the alive set that have no heartbeat at that moment. */
export async function forget(redis: Redis, namespace: string, ...ids: readonly string[]): Promise<void> {
  const keys = controlKeys(namespace);
  for (let from = 0; from < ids.length; from += AT_ONCE) {
    const some = ids.slice(from, from + AT_ONCE);
    const calls = some.map((id) =>
      run(redis, scripts.forget, { keys: { ...keys, beat: keys.beat(id) }, args: { process: id } }),
    );
    await Promise.all(calls);
  }
}

function decode(value: string | null): Identity | undefined {
  if (value === null) return undefined;
  try {
    return JSON.parse(value) as Identity;
  } catch (error) {
    return { id: messageOf(error), role: 'worker', host: '', pid: 0, startedMs: 0, queues: [] };
  }
}
