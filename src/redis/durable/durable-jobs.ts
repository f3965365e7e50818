/**
 * The transitions that a client may ask to be durable: a call counts only when other servers have its writes too. Each call
 * goes over the connection to the node of its partition, because WAIT counts the writes of one connection to one node.
 * Redis serves nothing else on a connection that waits, so calls go in groups, each group in one write:
 *
 *   calls of a moment ──▶ script · script · … · WAIT ──▶ each caller its own reply, once enough servers have it
 *   calls that come meanwhile ──▶ the next group
 *
 * WAIT speaks of the last write of its own connection and of all writes before it, whoever made them. So WAIT says nothing
 * of a call that wrote nothing, because the same call was carried out before on another connection, or its reply was lost.
 * For such a call the group makes a write that changes nothing, and waits for that. WAIT is never sent without a write
 * before it.
 */
import { setImmediate } from '../../kernel/clock.ts';
import { DuestreamError, Indeterminate, messageOf } from '../../kernel/errors.ts';
import { reasonOf } from '../../kernel/reason.ts';
import { endsAt } from '../connection/call-end.ts';
import { isCluster, memberOf, membersOf } from '../connection/cluster/members.ts';
import { describe, type Redis } from '../connection/connect.ts';
import type { PartitionRef } from '../keys.ts';
import { createJobs, type Jobs } from '../scripts/jobs.ts';
import type { Moved, ReplayReply } from '../scripts/replies.ts';
import type { SetReply } from '../scripts/sets.ts';
import { type Confirmed, confirm, type Level, lackOf, neededOf, replicasOf } from './level.ts';

export type DurableJobs = Pick<
  Jobs,
  'schedule' | 'cancel' | 'replay' | 'reschedule' | 'edit' | 'closeTags' | 'changeSet'
>;

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

  async function carry<T>(ref: PartitionRef, send: (jobs: Jobs) => Promise<T>, effectOf: (reply: T) => WriteOutcome) {
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
    closeTags: (ref, ...call) => carry(ref, (jobs) => jobs.closeTags(ref, ...call), listEffect),
    changeSet: (ref, ...call) => carry(ref, (jobs) => jobs.changeSet(ref, ...call), replayEffect),
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

const WRITTEN: ReadonlySet<string> = new Set([
  'ok',
  'replaced',
  'merged',
  'kept',
  'behind',
  'cancelled',
  'requested',
  'closed',
  'longer',
  'opened',
]);

function listEffect(reply: readonly { readonly kind: string }[] | Moved): WriteOutcome {
  if ('kind' in reply) return 'elsewhere';
  return reply.some(({ kind }) => WRITTEN.has(kind)) ? 'written' : 'met';
}

function replayEffect({ kind }: ReplayReply | SetReply | Moved): WriteOutcome {
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

/** `written`: it changed something · `met`: it found all as it should be · `elsewhere`: nothing of it is here. */
export type WriteOutcome = 'written' | 'met' | 'elsewhere';

export interface DurableCall<T> {
  /** Sends its script, and nothing else, before it returns. */
  readonly send: () => Promise<T>;
  readonly effectOf: (reply: T) => WriteOutcome;
  /** The hash of the partition that every call of it may write to. */
  readonly meta: string;
}

export interface Line {
  /** @throws what the script was answered, `Indeterminate` when too few have it in time, or an outage */
  readonly carry: <T>(call: DurableCall<T>) => Promise<T>;
}

interface Waiting {
  readonly meta: string;
  readonly send: () => Promise<WriteOutcome>;
  /** The script was answered before. */
  readonly done: () => void;
  readonly fail: (error: unknown) => void;
}

interface State {
  readonly redis: Redis;
  readonly level: Level;
  readonly waiting: Waiting[];
  /** As the last group found it; undefined after a connection came up, since another server may be there. */
  connected: number | undefined;
  isBusy: boolean;
  /** Scripts that went out. The client library sends one again, behind its WAIT, that the server does not know. */
  scripts: number;
}

export function createLine(redis: Redis, level: Level): Line {
  const state: State = { redis, level, waiting: [], connected: undefined, isBusy: false, scripts: 0 };
  redis.on('ready', () => {
    state.connected = undefined;
  });
  const send = redis.sendCommand.bind(redis);
  redis.sendCommand = (command, stream) => {
    if (/^eval/.test(command.name)) state.scripts += 1;
    return send(command, stream);
  };
  return {
    carry: <T>({ send: sendScript, effectOf, meta }: DurableCall<T>) =>
      new Promise<T>((resolve, reject) => {
        let reply: T;
        const noted = async () => {
          reply = await sendScript();
          return effectOf(reply);
        };
        state.waiting.push({ meta, send: noted, done: () => resolve(reply), fail: reject });
        next(state);
      }),
  };
}

/** At the end of this turn, with all that came in it. */
function next(state: State): void {
  if (state.isBusy || state.waiting.length === 0) return;
  state.isBusy = true;
  setImmediate(() => {
    const calls = state.waiting.splice(0);
    carryAll(state, calls)
      .catch((error: unknown) => {
        for (const { fail } of calls) fail(error);
      })
      .finally(() => {
        state.isBusy = false;
        next(state);
      });
  });
}

/** @throws what goes for all of them, before anything was sent */
async function carryAll(state: State, calls: readonly Waiting[]): Promise<void> {
  // Their ends must be known now: a script that waits for its own would go out behind the WAIT.
  await endsAt(state.redis)?.known();
  const expected = await expectedOf(state);
  state.scripts = 0;
  const replies = calls.map(({ send }) => send());
  const confirming = confirm(state.redis, state.level, expected);
  confirming.catch(() => undefined);
  const settled = await Promise.allSettled(replies);
  const made = calls.flatMap((call, at) => {
    const reply = settled[at];
    if (reply?.status === 'fulfilled') return [{ call, effect: reply.value }];
    call.fail(reply?.reason);
    return [];
  });
  const here = made.filter(({ effect }) => effect !== 'elsewhere');
  for (const { call } of made.filter(({ effect }) => effect === 'elsewhere')) call.done();
  const last = here.at(-1);
  if (!last) return;
  try {
    const isCovered = last.effect === 'written' && state.scripts === calls.length;
    await acknowledged(state, { confirming, isCovered, expected, meta: last.call.meta });
    for (const { call } of here) call.done();
  } catch (error) {
    for (const { call } of here) call.fail(error);
  }
}

/** How many replicas to wait for. It is looked up only where too few are known. */
async function expectedOf(state: State): Promise<number> {
  const { redis, level } = state;
  if (level.replicas === 0) return 0;
  const isKnown = state.connected !== undefined && state.connected >= neededOf(level, state.connected);
  const connected = isKnown ? (state.connected ?? 0) : await replicasOf(redis);
  state.connected = connected;
  const needed = neededOf(level, connected);
  // As Redis itself says it with min-replicas-to-write: nothing was sent, and it may pass.
  if (connected < needed) throw new Error(`NOREPLICAS ${connected} of ${needed} replicas are connected`);
  return needed;
}

/** Resolves when enough servers have all that was written until now. @throws `Indeterminate`, or an outage */
async function acknowledged(
  state: State,
  asked: {
    readonly confirming: Promise<Confirmed>;
    readonly isCovered: boolean;
    readonly expected: number;
    readonly meta: string;
  },
): Promise<void> {
  const { level } = state;
  let confirmed = await told(state, asked.confirming);
  const isMore = neededOf(level, confirmed.connected ?? 0) > asked.expected;
  if (!asked.isCovered || (isMore && !confirmed.isEnough)) {
    const expected = neededOf(level, confirmed.connected ?? 0);
    confirmed = await told(state, stamp(state, asked.meta, expected));
  }
  if (confirmed.isEnough) return;
  throw new Indeterminate(
    `the primary has carried it out, but within ${level.timeoutMs} ms only ${confirmed.said}, so a failover may lose it: repeat the same call`,
  );
}

/** Adds nothing to a counter: a write that changes nothing, and goes to every replica and file like any other. */
async function stamp({ redis, level }: State, meta: string, expected: number): Promise<Confirmed> {
  const stamped = redis.hincrby(meta, 'n.scheduled', 0);
  const [confirmed] = await Promise.all([confirm(redis, level, expected), stamped]);
  return confirmed;
}

/** The scripts were answered: whatever befalls their WAIT, the outcome is unknown, and the whole call is to be repeated. */
async function told(state: State, confirming: Promise<Confirmed>): Promise<Confirmed> {
  try {
    const confirmed = await confirming;
    state.connected = confirmed.connected;
    return confirmed;
  } catch (error) {
    throw new Error(`no reply from Redis about who has it (${reasonOf(error)})`, { cause: error });
  }
}
