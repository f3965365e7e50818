/**
 * When to dial again. The first try comes after 100 ms at least (a strategy of 10 ms made commands hang), later ones
 * after longer times with full jitter, so that many processes do not come back at one moment. A connection that did
 * not live for a while counts as one more failure: a server that accepts and refuses in turn is not dialled faster and
 * faster. And all connections of a process together dial only so often.
 */
import type { Redis } from 'ioredis';
import { type Clock, systemClock } from '../../kernel/clock.ts';

interface Dialing {
  /** The connection came up. */
  readonly up: () => void;
  /** The connection is gone, or did not come up. Returns milliseconds until the next try. */
  readonly down: () => number;
}

const FIRST_MS = 100;
const STEP_MS = 200;
/** With the time a connection takes, work resumes within 5 s after Redis is back. */
const MOST_MS = 2500;
/** A connection that was up for this long makes a fresh start. */
const CALM_MS = 5000;
/** 50 connects per second and process. */
export const CONNECT_GAP_MS = 20;

/** Gives each try of a process a moment of its own: the first free one from the time it asks for. */
export function createTurns(): { readonly take: (atMs: number, nowMs: number) => number } {
  const taken = new Set<number>();
  return {
    take(atMs, nowMs) {
      for (const turn of taken) if (turn * CONNECT_GAP_MS < nowMs) taken.delete(turn);
      let turn = Math.ceil(atMs / CONNECT_GAP_MS);
      while (taken.has(turn)) turn += 1;
      taken.add(turn);
      return turn * CONNECT_GAP_MS;
    },
  };
}

// One per process is the point: it is the process that must not storm.
const turnsOfProcess = createTurns();

/** The dialling of one connection. */
export function createDialing({
  clock = systemClock,
  random = Math.random,
  turns = turnsOfProcess,
}: {
  readonly clock?: Pick<Clock, 'monotonicMs'>;
  readonly random?: () => number;
  readonly turns?: ReturnType<typeof createTurns>;
} = {}): Dialing {
  let upMs: number | undefined;
  let failures = 0;
  return {
    up() {
      upMs = clock.monotonicMs();
    },
    down() {
      const nowMs = clock.monotonicMs();
      if (upMs !== undefined && nowMs - upMs >= CALM_MS) failures = 0;
      upMs = undefined;
      failures += 1;
      const ceilingMs = Math.min(MOST_MS, FIRST_MS + STEP_MS * 2 ** Math.min(failures - 1, 6));
      const waitMs = FIRST_MS + random() * (ceilingMs - FIRST_MS);
      return Math.ceil(turns.take(nowMs + waitMs, nowMs) - nowMs);
    },
  };
}

/**
 * Drops the socket and dials again: for whoever sees no progress, or replies that cannot be. It takes its turn as
 * after any other loss. A dropped socket lingers for a moment, in which many commands may run out of time or be answered
 * wrongly; dropping it for each would pile up listeners on it.
 */
export function redial(redis: Redis): void {
  if (dropping.has(redis)) return;
  dropping.add(redis);
  redis.once('close', () => dropping.delete(redis));
  redis.disconnect(true);
}

const dropping = new WeakSet<Redis>();

// The end of a connection.

const closed = new WeakSet<Redis>();
const farewells = new WeakMap<Redis, (() => void)[]>();

/**
 * Drops the socket and stops reconnecting. Commands in flight are rejected. What has ended already is left alone: a
 * second drop would hold the process for two more seconds.
 */
export function close(redis: Redis): void {
  closed.add(redis);
  for (const farewell of farewells.get(redis) ?? []) farewell();
  farewells.delete(redis);
  if (redis.status !== 'end') redis.disconnect(false);
}

/** It was ended here, and is not to be dialled again. */
export const isClosed = (redis: Redis): boolean => closed.has(redis);

/** Calls back when it is closed: the library tells nothing of the end of a connection that was about to dial again. */
export function onClosed(redis: Redis, farewell: () => void): void {
  farewells.set(redis, [...(farewells.get(redis) ?? []), farewell]);
}
