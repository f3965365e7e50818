/**
 * The relay: it carries rows of an outbox into Redis, each as one call of a client.
 *
 *   claim (one statement, committed) ──▶ Redis ──▶ delete what this relay has still claimed
 *
 * Each queue has a lane of its own for that (`lanes.ts`): one that is down holds up no other.
 * It may be killed between any two of these steps, and any reply may be lost: the claim runs out after 30 s by the clock of the
 * database, and another relay makes the same call again, which Redis recognises by the mark of the job for as long as it
 * remembers its end. Any number of relays may run beside each other.
 */

import { type ClientOptions, type ClientSettings, settingsOf } from '../client/calls/settings.ts';
import { onIds } from '../client/jobs/act.ts';
import { cancelling, toCancel } from '../client/jobs/cancel.ts';
import { tagsOver } from '../client/jobs/tags.ts';
import { createCalls } from '../client/session.ts';
import { newJobId } from '../job/job-id.ts';
import { type Queue, queueOf } from '../job/queue.ts';
import { workerOption } from '../job/worker-options.ts';
import { createAbort } from '../kernel/abort.ts';
import { checkFunction, checkNames, durationIn, wholeNumber } from '../kernel/checks.ts';
import type { Clock } from '../kernel/clock.ts';
import type { DurationInput } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { type Log, parseLog } from '../kernel/log.ts';
import { createLoop, type LoopEvents } from '../kernel/loop.ts';
import type { RelayCalls } from './carrying.ts';
import { createClaims, type OutboxState, stateOf } from './claims.ts';
import { type Dialect, parseDialect, type Run } from './database.ts';
import { createLanes, type Look, type Relayed, type StalledQueue, type Turn } from './lanes.ts';
import { parseQueues } from './outbox-database.ts';

/** What `createRelay` takes: where the rows are, and the options of a client for where they go. */
export interface RelayOptions
  extends Pick<
    ClientOptions,
    | 'redis'
    | 'namespace'
    | 'horizon'
    | 'dataBytesMax'
    | 'doneWindow'
    | 'closedMax'
    | 'durability'
    | 'durabilityTimeout'
    | 'clock'
  > {
  /** The database: `postgres` or `sqlite`. */
  readonly dialect: Dialect;
  /** Carries out one statement and commits it: of a pool, or of a connection that nobody else has a transaction on. */
  readonly run: Run;
  /** Definitions of the queues that jobs go to. A queue that is new and not among them has the defaults. */
  readonly queues?: readonly Queue[] | undefined;
  /** How long the relay waits when it found no row: 10 ms to `1m`. Default `1s`. `wake` ends the wait. */
  readonly every?: DurationInput | undefined;
  /** Rows of one claim: 1 to 1000. Default 100. */
  readonly batch?: number | undefined;
  /** A logger of pino, or one with its methods. Default: none. */
  readonly log?: Log | undefined;
}

/** Carries rows of an outbox into Redis. */
export interface Relay {
  /** Begins. It goes on through outages of the database and of Redis. */
  start(): void;
  /** Ends the wait between two passes. Call it after a COMMIT in the same process, and a row is carried out at once. */
  wake(): void;
  /**
   * One pass over all queues: claims rows, makes their calls, deletes them. For tests, and for who has a timer of their own. A queue
   * whose last turn got nothing through is passed over while its pause lasts.
   *
   * @throws whatever `run` throws; DuestreamError `unavailable` and the like when Redis took nothing of any queue
   */
  pass(): Promise<Relayed>;
  /** How many rows there are, and how far the relay is behind. @example const { lagMs } = await relay.state(); */
  state(): Promise<OutboxState>;
  /** What has become of rows since this relay was made. */
  counts(): Omit<Relayed, 'claimed'>;
  /** Queues whose calls cannot be made now, and why. @example for (const { queue, why } of relay.stalled()) console.warn(queue, why); */
  stalled(): readonly StalledQueue[];
  /**
   * Ends after the calls under way, and closes its connection to Redis. It resolves within 10 s, also where `run` never answers: what
   * was claimed is free for another relay when 30 s have passed since. You may call it twice.
   */
  stop(): Promise<void>;
  /** `stop`, for `await using relay = createRelay(…)`. */
  [Symbol.asyncDispose](): Promise<void>;
}

const RELAY_OPTIONS: readonly string[] = Object.keys({
  dialect: 0,
  run: 0,
  queues: 0,
  every: 0,
  batch: 0,
  log: 0,
  redis: 0,
  namespace: 0,
  horizon: 0,
  dataBytesMax: 0,
  doneWindow: 0,
  closedMax: 0,
  durability: 0,
  durabilityTimeout: 0,
  clock: 0,
} satisfies Record<keyof RelayOptions, number>);

/** A claim must not run out while Redis is asked again and again. */
const BUDGET_MS = 5000;
/** A stop waits for calls that are repeated, and not for a database that does not answer. */
const STOP_MS = 2 * BUDGET_MS;
/** Between two looks at a database that does not answer. */
const PAUSE_MIN_MS = 250;
const PAUSE_MAX_MS = 15_000;

/**
 * A relay. It does nothing before `start`, and has a connection to Redis of its own.
 *
 * @throws DuestreamError `bad-config`, `bad-input`
 * @example
 * const relay = createRelay({ dialect: 'postgres', run, redis: 'redis://127.0.0.1:6379', queues: [reminders] });
 * relay.start();
 */
export function createRelay(options: RelayOptions): Relay {
  checkNames(options, RELAY_OPTIONS, 'createRelay');
  const { dialect, run, queues = [], every = '1s', batch = 100, log, ...client } = options;
  checkFunction(run, 'run');
  const known = parseQueues(queues);
  const settings = settingsOf({ ...client, name: 'relay', retryBudget: budgetOf(client) });
  const { calls, stop } = relayCalls(settings, new Map(known.map((queue) => [queue.name, queue])));
  return relayOver({
    place: { run, dialect: parseDialect(dialect) },
    calls,
    stop,
    clock: settings.clock,
    everyMs: durationIn(every, 'every', { min: 10, max: 60_000 }),
    batch: wholeNumber(batch, { what: 'batch', min: 1, max: 1000 }),
    log: parseLog(log),
  });
}

/** A repeated call is recognised within the window only. */
function budgetOf({ doneWindow }: Pick<RelayOptions, 'doneWindow'>): number {
  const windowMs = workerOption('doneWindow', doneWindow);
  return windowMs === 0 ? BUDGET_MS : Math.min(BUDGET_MS, windowMs / 2);
}

function relayCalls(settings: ClientSettings, queues: ReadonlyMap<string, Queue>) {
  const calls = createCalls(settings);
  const { close } = tagsOver(settings, calls);
  const named = (queue: string) => queues.get(queue) ?? queueOf(queue);
  const made: RelayCalls = {
    schedule: (queue, plans) => calls.run(({ batch }) => batch.addMany(named(queue), plans), settings.level),
    // Rows of an id are made in their order, so no row from before this one comes again; one behind it may be of the same call.
    cancel: (queue, ids) =>
      calls.run(
        ({ finding }) =>
          onIds(finding, { queue: named(queue), items: ids.map((id) => toCancel(id)) }, cancelling(finding, true)),
        settings.level,
      ),
    close(queue, { tags, untilMs, reason, by }) {
      // An end that has passed meanwhile still cancels what is there.
      const forMs = Math.max(CLOSE_MIN_MS, untilMs - Math.round(settings.clock.wallMs()));
      return close(named(queue), tags, { for: forMs, reason, by });
    },
  };
  return { calls: made, stop: calls.stop };
}

const CLOSE_MIN_MS = 1000;

export interface RelayParts {
  readonly place: { readonly run: Run; readonly dialect: Dialect };
  readonly calls: RelayCalls;
  readonly stop: () => Promise<void>;
  readonly clock: Clock;
  readonly everyMs: number;
  readonly batch: number;
  readonly log: Log;
}

/** The same over whatever makes the calls. */
export function relayOver(parts: RelayParts): Relay {
  const { place, calls, clock, batch, everyMs, log } = parts;
  const claims = createClaims(place, `relay-${newJobId()}`);
  const lanes = createLanes({ claims, calls, clock, batch, log });
  const counts = { done: 0, putOff: 0, refused: 0 };
  let stopping: Promise<void> | undefined;

  /** @returns turns that count themselves, and call `ended` when they are over */
  async function look(ended: (turn: Turn) => void = () => undefined) {
    const { turns, ...rest } = await lanes.look();
    const counted = turns.map(async (turning) => {
      const turn = await turning;
      for (const kind of ['done', 'putOff', 'refused'] as const) counts[kind] += turn[kind];
      ended(turn);
      return turn;
    });
    return { turns: counted, ...rest };
  }

  const loop = createLoop({
    who: 'relay',
    clock,
    events: eventsOf(log),
    pauseAfter: (_error, failures, random) =>
      Math.min(PAUSE_MAX_MS, PAUSE_MIN_MS * 2 ** Math.min(failures, 10)) * (0.5 + random / 2),
    // It waits for no turn: whoever waits for Redis holds up nobody.
    async pass() {
      const { turns, isShort, nextMs } = await look(({ hasMore }) => {
        if (hasMore || isShort) loop.wake();
      });
      // Its lane has told that the database did not answer, and the next look meets it as well.
      for (const turn of turns) turn.catch(() => undefined);
      return nextMs(everyMs);
    },
  });
  const end = () => {
    stopping ??= shutDown([loop.stop, lanes.stop], parts);
    return stopping;
  };
  return {
    start() {
      if (stopping) throw new DuestreamError('stopped', 'this relay was stopped; create another one');
      loop.start();
    },
    wake: loop.wake,
    pass: () => onePass(look),
    state: () => stateOf(place.run, place.dialect),
    counts: () => ({ ...counts }),
    stalled: lanes.stalled,
    stop: end,
    [Symbol.asyncDispose]: end,
  };
}

/** Until each queue had its turn. */
async function onePass(look: () => Promise<Pick<Look, 'turns' | 'isShort'>>): Promise<Relayed> {
  const turns: Turn[] = [];
  for (let isShort = true; isShort; ) {
    const looked = await look();
    turns.push(...(await Promise.all(looked.turns)));
    isShort = looked.isShort && looked.turns.length > 0;
  }
  const sum = (of: (turn: Turn) => number) => turns.reduce((before, turn) => before + of(turn), 0);
  const relayed = {
    claimed: sum(({ claimed }) => claimed),
    done: sum(({ done }) => done),
    putOff: sum(({ putOff }) => putOff),
    refused: sum(({ refused }) => refused),
  };
  const stalled = turns.find((turn) => turn.stalled)?.stalled;
  if (stalled && relayed.done + relayed.refused === 0) throw stalled.why;
  return relayed;
}

/** What does not end by itself, such as a statement on a connection that is half open, is left behind. */
async function shutDown(ends: readonly (() => Promise<void>)[], { stop, clock, log }: RelayParts): Promise<void> {
  const over = createAbort();
  const ended = Promise.all(ends.map((end) => end())).then(stop);
  const isOver = Promise.race([ended.then(() => true), clock.sleep(STOP_MS, over.signal).then(() => false)]);
  const isClean = await isOver.finally(() => over.abort());
  if (isClean) return;
  log.warn({ afterMs: STOP_MS }, 'the relay stopped without an answer of the database or of Redis');
  stop().catch(() => undefined);
}

const eventsOf = (log: Log): LoopEvents => ({
  emit(name: string, payload: { readonly why?: string; readonly awayMs?: number }) {
    if (name === 'redis.back') log.info({ awayMs: payload.awayMs }, 'rows of the outbox are carried out again');
    else log.warn({ why: payload.why }, 'rows of the outbox cannot be carried out; the relay goes on trying');
  },
});
