/**
 * The transitions that a producer may ask to be durable, each on the connection to the node of its partition: on a cluster
 * WAIT counts the writes of a connection to one node.
 */
import { DuestreamError, messageOf } from '../../kernel/errors.ts';
import { isCluster, memberOf, membersOf } from '../connection/cluster/members.ts';
import { describe, type Redis } from '../connection/connect.ts';
import type { PartitionRef } from '../keys.ts';
import { createJobs, type Jobs } from '../scripts/jobs.ts';
import type { Moved, ReplayReply } from '../scripts/replies.ts';
import { type Level, lackOf } from './level.ts';
import { createLine, type Effect, type Line } from './line.ts';

export type DurableJobs = Pick<Jobs, 'schedule' | 'cancel' | 'replay' | 'reschedule' | 'edit'>;

interface Node {
  readonly line: Line;
  readonly jobs: Jobs;
}

export function createDurableJobs(redis: Redis, level: Level): DurableJobs {
  const nodes = new WeakMap<Redis, Node>();

  function nodeOf(ref: PartitionRef): Node {
    const member = memberOf(redis, ref.keys.meta);
    if (isCluster(member)) throw new Error(`not connected to Redis at ${describe(redis)} (no node has this slot)`);
    const known = nodes.get(member);
    if (known) return known;
    const made = { line: createLine(member, level), jobs: createJobs(member) };
    nodes.set(member, made);
    return made;
  }

  async function carry<T>(ref: PartitionRef, send: (jobs: Jobs) => Promise<T>, effectOf: (reply: T) => Effect) {
    try {
      const { line, jobs } = nodeOf(ref);
      return await line.carry({ send: () => send(jobs), effectOf, meta: ref.keys.meta });
    } catch (error) {
      if (isCluster(redis)) await followMoved(redis, ref, error);
      throw error;
    }
  }

  return {
    schedule: (ref, ...call) => carry(ref, (jobs) => jobs.schedule(ref, ...call), listEffect),
    cancel: (ref, ...call) => carry(ref, (jobs) => jobs.cancel(ref, ...call), listEffect),
    reschedule: (ref, ...call) => carry(ref, (jobs) => jobs.reschedule(ref, ...call), listEffect),
    edit: (ref, ...call) => carry(ref, (jobs) => jobs.edit(ref, ...call), listEffect),
    replay: (ref, ...call) => carry(ref, (jobs) => jobs.replay(ref, ...call), replayEffect),
  };
}

/**
 * A slot that is elsewhere by now: a read that goes after it has the map drawn anew, and the call is repeated like any
 * other in an outage.
 */
async function followMoved(redis: Redis, { keys }: PartitionRef, error: unknown): Promise<void> {
  const said = messageOf(error);
  if (!/\b(MOVED|ASK|TRYAGAIN|CLUSTERDOWN|READONLY|UNBLOCKED)\b/.test(said)) return;
  await redis.hget(keys.meta, 'generation').catch(() => undefined);
  if (/^(MOVED|ASK)\b/.test(said)) throw new Error(`TRYAGAIN the slot has moved: ${said}`, { cause: error });
}

const WRITTEN: ReadonlySet<string> = new Set(['ok', 'replaced', 'cancelled', 'requested']);

function listEffect(reply: readonly { readonly kind: string }[] | Moved): Effect {
  if ('kind' in reply) return 'elsewhere';
  return reply.some(({ kind }) => WRITTEN.has(kind)) ? 'written' : 'met';
}

function replayEffect({ kind }: ReplayReply): Effect {
  if (kind === 'moved') return 'elsewhere';
  return WRITTEN.has(kind) ? 'written' : 'met';
}

/** @throws DuestreamError `refused` where a server cannot promise this, with what it lacks; or an outage */
export async function checkLevel(redis: Redis, level: Level): Promise<void> {
  for (const member of membersOf(redis)) {
    const lack = await lackOf(member, level);
    if (lack === undefined) continue;
    throw new DuestreamError(
      'refused',
      `Redis at ${describe(member)} cannot give the durability that is asked for: ${lack}`,
    );
  }
}
