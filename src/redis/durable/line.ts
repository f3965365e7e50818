/**
 * Writes to one server that count only when others have them too. Redis serves nothing else on a connection that waits,
 * so calls go in groups, each in one write:
 *
 *   calls of a moment ──▶ script · script · … · WAIT ──▶ each caller its own reply, once enough servers have it
 *   calls that come meanwhile ──▶ the next group
 *
 * WAIT speaks of the last write of its own connection and of all before it, whoever made them. So it says nothing of a
 * call that wrote nothing, because the same call had been carried out before on another connection or by a reply that
 * was lost. Then a write that changes nothing is made, and waited for. WAIT is never sent without a write before it.
 */
import { Indeterminate } from '../../kernel/errors.ts';
import { reasonOf } from '../../kernel/reason.ts';
import type { Redis } from '../connection/connect.ts';
import { together } from '../connection/together.ts';
import { type Confirmed, confirm, type Level, neededOf, replicasOf } from './level.ts';

/** `written`: it changed something · `met`: it found all as it should be · `elsewhere`: nothing of it is here. */
export type Effect = 'written' | 'met' | 'elsewhere';

export interface DurableCall<T> {
  /** Sends its script, and nothing else, before it returns. */
  readonly send: () => Promise<T>;
  readonly effectOf: (reply: T) => Effect;
  /** The hash of the partition that every call of it may write to. */
  readonly meta: string;
}

export interface Line {
  /** @throws what the script was answered, `Indeterminate` when too few have it in time, or an outage */
  readonly carry: <T>(call: DurableCall<T>) => Promise<T>;
}

interface Waiting {
  readonly meta: string;
  readonly send: () => Promise<Effect>;
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
  const expected = await expectedOf(state);
  state.scripts = 0;
  const { replies, confirming } = together(state.redis, () => ({
    replies: calls.map(({ send }) => send()),
    confirming: confirm(state.redis, state.level, expected),
  }));
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
  const sent = together(redis, () => ({
    stamped: redis.hincrby(meta, 'n.scheduled', 0),
    confirming: confirm(redis, level, expected),
  }));
  const [confirmed] = await Promise.all([sent.confirming, sent.stamped]);
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
