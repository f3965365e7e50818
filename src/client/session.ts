/**
 * The calls of a client, between its first use and its stop. The session counts each call, so that a stop waits for it, and each
 * call finds the connection or makes it. A call with a durability level has a connection of its own, because WAIT holds up every
 * call behind it.
 */
import { createAbort } from '../kernel/abort.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { openCommands, type Redis } from '../redis/connection/connect.ts';
import { createOpening, type Opening } from '../redis/connection/opening.ts';
import { checkLevel, createDurableJobs } from '../redis/durable/durable-jobs.ts';
import type { Level } from '../redis/durable/level.ts';
import type { Calls } from './calls/calls.ts';
import { withReadRetry } from './calls/retry.ts';
import type { ClientSettings } from './calls/settings.ts';
import { type Turn, Turns } from './calls/turns.ts';
import { type ConnectedParts, furnish } from './parts.ts';

/** @param connection one that is there already; by default the first call makes it */
export function createCalls(settings: ClientSettings, connection?: Redis): Calls<ConnectedParts> {
  const stopAsked = createAbort();
  /** Ends what goes on beside the calls, once they have settled. */
  const ending = createAbort();
  const underWay = new Set<Promise<unknown>>();
  const track = trackingIn(underWay);
  const turns = new Turns(settings);
  let stopping: Promise<void> | undefined;
  const memory = createOpening({
    waitMs: settings.waitMs,
    open: () => [connection ?? openCommands(settings)] as const,
    furnish: ([redis]) => furnish(settings, redis, { stopping: stopAsked.signal, ended: ending.signal, turns }),
  });
  const durable = new Map<string, Opening<ConnectedParts>>();

  const openingOf = (level: Level | undefined) => (level ? durableOpening(durable, settings, level, memory) : memory);

  function check(): void {
    if (stopping) throw stopped();
  }

  function run<T>(work: (parts: ConnectedParts) => Promise<T>, level?: Level, turn?: Turn): Promise<T> {
    // A call that has a turn was made before the stop.
    if (stopping && !turn) return Promise.reject(stopped());
    const opening = openingOf(level);
    const go = () => {
      const parts = opening.opened();
      return parts ? work(parts) : opening.use().then(work);
    };
    return track(turn ? turns.run(turn, go) : go());
  }

  async function end(): Promise<void> {
    stopAsked.abort(stopped());
    await Promise.allSettled(underWay);
    await closeAll([...durable.values(), memory], () => ending.abort(stopped()));
  }

  return {
    check,
    run,
    turns,
    track,
    opened: (level) => openingOf(level).opened(),
    async connected(level) {
      check();
      await memory.connected(stopAsked.signal);
      return openingOf(level).connected(stopAsked.signal);
    },
    runChecked(read, work, levelOf, claimsOf) {
      try {
        const level = levelOf?.();
        const input = read();
        check();
        const turn = claimsOf && turns.take(claimsOf(input));
        return run((parts) => work(parts, input, turn), level, turn);
      } catch (error) {
        return Promise.reject(error);
      }
    },
    stop: () => (stopping ??= end()),
  };
}

/** Remembers a call until it has settled. */
const trackingIn =
  (underWay: Set<Promise<unknown>>) =>
  <T>(call: Promise<T>): Promise<T> => {
    underWay.add(call);
    const done = () => underWay.delete(call);
    call.then(done, done);
    return call;
  };

/** Closes the connections when no batch waits any more, behind what goes on beside the calls. */
async function closeAll(all: readonly Opening<ConnectedParts>[], endOthers: () => void): Promise<void> {
  await Promise.all(all.map(async (opening) => opening.opened()?.batch.quiet()));
  endOthers();
  for (const opening of all) opening.close();
}

/** The connections of a level of durability, opened once. */
function durableOpening(
  known: Map<string, Opening<ConnectedParts>>,
  settings: ClientSettings,
  level: Level,
  memory: Opening<ConnectedParts>,
): Opening<ConnectedParts> {
  const name = `${level.replicas} ${level.fsynced}`;
  const opening = known.get(name) ?? openDurable(settings, level, memory);
  known.set(name, opening);
  return opening;
}

/**
 * The calls of handlers, on the connection of their worker, which outlives them. It has one for each: what would wait in
 * Redis for replicas would hold up all else of the worker.
 */
export function createCallsOn(redis: Redis, settings: ClientSettings, signal: AbortSignal): Calls<ConnectedParts> {
  const turns = new Turns(settings);
  let parts: ConnectedParts | undefined;
  let furnishing: Promise<ConnectedParts> | undefined;

  async function use(): Promise<ConnectedParts> {
    furnishing ??= furnish(settings, redis, { stopping: signal, ended: signal, turns }).finally(() => {
      furnishing = undefined;
    });
    parts ??= await furnishing;
    return parts;
  }

  async function run<T>(work: (parts: ConnectedParts) => Promise<T>, level?: Level, turn?: Turn): Promise<T> {
    if (level) throw noLevel();
    const go = async () => work(parts ?? (await use()));
    return turn ? turns.run(turn, go) : go();
  }

  return {
    run,
    turns,
    track: (call) => call,
    check: () => undefined,
    opened: (level) => (level ? undefined : parts),
    connected: use,
    async runChecked(read, work, levelOf, claimsOf) {
      const level = levelOf?.();
      const input = read();
      const turn = claimsOf && turns.take(claimsOf(input));
      return run((made) => work(made, input, turn), level, turn);
    },
    stop: async () => undefined,
  };
}

const noLevel = () =>
  new DuestreamError(
    'bad-input',
    'durability is more than memory in the call of a handler; allowed: a client of your own, which has a connection for it',
  );

/** A connection of its own for what waits in Redis; all else of its parts is that of the other calls. */
function openDurable(settings: ClientSettings, level: Level, memory: Opening<ConnectedParts>): Opening<ConnectedParts> {
  const { name, waitMs, clock, budgetMs } = settings;
  return createOpening({
    waitMs,
    open: () => [openCommands({ ...settings, name: `${name}:durable`, waitsMs: level.timeoutMs })] as const,
    async furnish([redis]) {
      const check = () => withReadRetry('check the durability', () => checkLevel(redis, level), { clock, budgetMs });
      await check();
      const shared = await memory.use();
      const fit = async () => {
        await shared.fit();
        await check();
      };
      return { ...shared, ...shared.durably(createDurableJobs(redis, level)), fit };
    },
  });
}

export const stopped = () => new DuestreamError('stopped', 'the client was closed; nothing was sent');
