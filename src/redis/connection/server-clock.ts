/**
 * What time it is at Redis, for everybody who wants to know: the primary's clock as an offset to this process's monotonic
 * clock, so that nobody asks each time. Every answer that carries the server's time is a sample:
 *
 *        sent ──────────▶ server reads S ──────────▶ received
 *        S − sent is the largest offset possible (the way there took no time), S − received the smallest.
 *
 * Samples that agree narrow the range together, so its middle is wrong by at most half of the shortest round trip. One
 * that contradicts them has seen a clock that was set, or another server: then it alone counts. So it does when the
 * others are old, because clocks drift.
 *
 * Whom it would hurt to be early reads an edge of the range: a due time counted from a clock that is behind would be
 * early, and early is a broken promise; one counted from a clock ahead is late by at most the way there, usually well below
 * a millisecond.
 *
 * A call never waits for a sample, except for the first, after a long pause, or in doubt.
 */
import { type Clock, systemClock } from '../../kernel/clock.ts';
import type { PartitionRef } from '../keys.ts';
import { askAll, isCluster, memberOf, membersOf } from './cluster/members.ts';

export interface ServerClock {
  /** Epoch ms of the server, by now or at a monotonic moment; of this machine until the first sample. */
  readonly nowMs: (monotonicMs?: number) => number;
  /** The same, and never behind the server. */
  readonly latestMs: (monotonicMs?: number) => number;
  /** The same, and never ahead of the server. */
  readonly earliestMs: (monotonicMs?: number) => number;
  /** Takes one sample. @throws whatever TIME failed with */
  readonly sample: () => Promise<void>;
  /** Takes a sample unless any answer has told the time within so many ms. @throws whatever TIME failed with */
  readonly freshen: (ageMs: number) => Promise<void>;
  /** The answer to something else had the server's time in it, in whole ms. */
  readonly saw: (answer: Answer) => void;
  /** Begins anew with a few samples. @throws whatever TIME failed with */
  readonly measure: () => Promise<void>;
  /**
   * Undefined when the clock may be read at once, which is nearly always; a measurement that is merely due runs beside.
   * After a long pause, a jump of this machine's clock (suspended, stepped) or a doubt it is a promise to wait for; it
   * resolves even if Redis does not answer, because the old offset is then the best there is.
   */
  readonly settle: () => Promise<void> | undefined;
  /** Another primary may answer now: measures again. */
  readonly doubt: () => void;
}

/** Of one server. */
export interface MemberClock extends ServerClock {
  /**
   * Never ahead of the server, whatever its clock and ours did since they were compared; undefined before the first sample.
   * After a minute without a sample one is taken beside.
   */
  readonly knownMs: () => number | undefined;
}

interface Answer {
  readonly sentMs: number;
  readonly receivedMs: number;
  readonly serverMs: number;
}

/** The clock of the server that holds a partition; without one, of the server that holds the namespace's own keys. */
export type ServerOf = (ref?: PartitionRef) => ServerClock;

/** The largest and the smallest offset that it can be. */
interface Range {
  readonly lowMs: number;
  readonly highMs: number;
  readonly atMs: number;
}

interface Timed {
  readonly time: () => Promise<readonly (number | string)[]>;
}

/** Trips per measurement: the first one after an idle time is slower than the rest. */
const TRIPS = 3;
/** Two good clocks part by about 1 ms in this time. */
const FRESH_MS = 30_000;
const STALE_MS = 120_000;
/** For calls that need no more than an edge. */
const KNOWN_MS = 60_000;
/** Wall and monotonic clock disagreeing by this much about how long ago a measurement was. */
const JUMP_MS = 100;
/** At most one try per second while Redis is away. */
const TRY_MS = 1000;

/** Of this time good clocks part by less, even one that is slewed: 500 ppm. */
const DRIFT = 1 / 2000;

/** Epoch ms by the server's own word, with fractions: one round trip. @throws whatever TIME failed with */
export async function timeAt(redis: Timed): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1000 + Number(micros) / 1000;
}

/** From so many ms on two clocks are told to differ. */
export const OFFSET_MAX_MS = 500;

/** How far a server is ahead of this machine, and by how much that may be wrong: the line may be slow. */
export function offsetOf(
  server: Pick<ServerClock, 'nowMs' | 'latestMs' | 'earliestMs'>,
  clock: Pick<Clock, 'monotonicMs' | 'wallMs'>,
): { readonly offsetMs: number; readonly errorMs: number } {
  const [atMs, hereMs] = [clock.monotonicMs(), clock.wallMs()];
  return {
    offsetMs: server.nowMs(atMs) - hereMs,
    errorMs: (server.latestMs(atMs) - server.earliestMs(atMs)) / 2,
  };
}

/** One primary holds all partitions, so all of them have one clock. In a cluster each master has its own. */
export function createServers(redis: Timed, clock: Clock): ServerOf {
  if (isCluster(redis)) return createClusterClocks(redis, clock);
  const primary = createServerClock(redis, clock);
  return () => primary;
}

/**
 * The clocks of the masters. That of a partition follows its slot: after a failover it is another master's, which is
 * unknown until its first sample. Without a partition it is all of them: its edges are safe wherever a job goes, and a
 * sample is one of each.
 */
function createClusterClocks(redis: Timed, clock: Clock): ServerOf {
  const clocks = new WeakMap<Timed, ServerClock>();
  const at = (node: Timed): ServerClock => {
    const known = clocks.get(node) ?? createServerClock(node, clock);
    clocks.set(node, known);
    return known;
  };
  const every = () => membersOf(redis).map(at);
  const edge = (all: readonly number[], of: (...all: number[]) => number) =>
    all.length > 0 ? of(...all) : clock.wallMs();
  const whole: ServerClock = {
    nowMs: (ms) =>
      edge(
        every().map((one) => one.nowMs(ms)),
        Math.max,
      ),
    latestMs: (ms) =>
      edge(
        every().map((one) => one.latestMs(ms)),
        Math.max,
      ),
    earliestMs: (ms) =>
      edge(
        every().map((one) => one.earliestMs(ms)),
        Math.min,
      ),
    sample: async () => void (await askAll(redis, (node) => at(node).sample())),
    freshen: async (ageMs) => void (await askAll(redis, (node) => at(node).freshen(ageMs))),
    saw: () => undefined,
    measure: async () => void (await askAll(redis, (node) => at(node).measure())),
    settle() {
      const unsettled = every().flatMap((one) => one.settle() ?? []);
      return unsettled.length > 0 ? Promise.all(unsettled).then(() => undefined) : undefined;
    },
    doubt() {
      for (const one of every()) one.doubt();
    },
  };
  return (ref) => (ref === undefined ? whole : following(() => at(memberOf(redis, ref.keys.meta))));
}

function following(now: () => ServerClock): ServerClock {
  return {
    nowMs: (ms) => now().nowMs(ms),
    latestMs: (ms) => now().latestMs(ms),
    earliestMs: (ms) => now().earliestMs(ms),
    sample: () => now().sample(),
    freshen: (ageMs) => now().freshen(ageMs),
    saw: (answer) => now().saw(answer),
    measure: () => now().measure(),
    settle: () => now().settle(),
    doubt: () => now().doubt(),
  };
}

/** What is known of the clock behind a connection to one server, by whoever keeps it; else it is known from now on. */
export function clockBehind(redis: Timed): MemberClock {
  return behind.get(redis) ?? createServerClock(redis, systemClock);
}

const behind = new WeakMap<Timed, MemberClock>();

/** A connection whose calls and whose server live in another time than that of this machine. */
export const keepTime = (redis: Timed, clock: Clock): void => void behind.set(redis, createServerClock(redis, clock));

export function createServerClock(redis: Timed, clock: Clock): MemberClock {
  let range: Range | undefined;
  let measured = { monotonicMs: Number.NEGATIVE_INFINITY, wallMs: 0 };
  let triedMs = Number.NEGATIVE_INFINITY;
  /** When somebody asked last, or was told. */
  let heardMs = Number.NEGATIVE_INFINITY;
  let doubted = false;

  const read = (edge: (range: Range) => number) => (monotonicMs?: number) =>
    readAt(clock, range && edge(range), monotonicMs);

  async function sample(): Promise<void> {
    heardMs = clock.monotonicMs();
    range = narrowed(range, rangeOf(await askAt(redis, clock)));
  }

  async function measure(): Promise<void> {
    let anew: Range | undefined;
    heardMs = clock.monotonicMs();
    for (let trip = 0; trip < TRIPS; trip += 1) anew = narrowed(anew, rangeOf(await askAt(redis, clock)));
    range = anew;
    doubted = false;
    measured = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
  }

  /** It fails in silence: outage is told by the calls themselves. */
  const beside = oneAtATime(() => {
    triedMs = clock.monotonicMs();
    return measure().catch(() => undefined);
  });

  const made: MemberClock = {
    knownMs() {
      if (range === undefined) return undefined;
      const nowMs = clock.monotonicMs();
      if (nowMs - heardMs > KNOWN_MS) void sample().catch(() => undefined);
      return lowestAt(range, nowMs);
    },
    nowMs: read(({ lowMs, highMs }) => (lowMs + highMs) / 2),
    latestMs: read(({ highMs }) => highMs),
    earliestMs: read(({ lowMs }) => lowMs),
    sample,
    async freshen(ageMs) {
      if (clock.monotonicMs() - heardMs >= ageMs) await sample();
    },
    saw(answer) {
      heardMs = Math.max(heardMs, answer.receivedMs);
      // Its fraction was cut off.
      range = narrowed(range, rangeOf(answer, 1));
    },
    measure,
    doubt() {
      doubted = true;
      void beside();
    },
    settle() {
      const nowMs = clock.monotonicMs();
      const ageMs = nowMs - measured.monotonicMs;
      const jumped = Math.abs(clock.wallMs() - measured.wallMs - ageMs) > JUMP_MS;
      if (ageMs < FRESH_MS && !jumped && !doubted) return undefined;
      if (!beside.isUnderWay() && nowMs - triedMs < TRY_MS) return undefined;
      const measurement = beside();
      return jumped || doubted || ageMs > STALE_MS ? measurement : undefined;
    },
  };
  // Who waits for calls uses this clock of the process, whatever time others live in.
  if (clock === systemClock && !behind.has(redis)) behind.set(redis, made);
  return made;
}

/** However many wait for it, the work is done once at a time. */
function oneAtATime(work: () => Promise<void>) {
  let underWay: Promise<void> | undefined;
  const join = (): Promise<void> => {
    underWay ??= work().finally(() => {
      underWay = undefined;
    });
    return underWay;
  };
  return Object.assign(join, { isUnderWay: () => underWay !== undefined });
}

/** The lower edge, by what good clocks may have parted since the measurement. */
const lowestAt = ({ lowMs, atMs }: Range, nowMs: number): number => nowMs + lowMs - (nowMs - atMs) * DRIFT;

/** @param offsetMs of the server; undefined while nothing is known of it, so that the clock of this host counts */
function readAt(clock: Clock, offsetMs: number | undefined, monotonicMs: number | undefined): number {
  if (offsetMs !== undefined) return (monotonicMs ?? clock.monotonicMs()) + offsetMs;
  return clock.wallMs() + (monotonicMs === undefined ? 0 : monotonicMs - clock.monotonicMs());
}

async function askAt(redis: Timed, clock: Clock): Promise<Answer> {
  const sentMs = clock.monotonicMs();
  const serverMs = await timeAt(redis);
  return { sentMs, receivedMs: clock.monotonicMs(), serverMs };
}

function rangeOf({ sentMs, receivedMs, serverMs }: Answer, cutMs = 0): Range {
  return { lowMs: serverMs - receivedMs, highMs: serverMs + cutMs - sentMs, atMs: receivedMs };
}

/** What both allow, as old as the older; the new one alone if they contradict each other or the old one is too old. */
function narrowed(old: Range | undefined, sample: Range): Range {
  if (old === undefined || sample.atMs - old.atMs > FRESH_MS) return sample;
  const lowMs = Math.max(old.lowMs, sample.lowMs);
  const highMs = Math.min(old.highMs, sample.highMs);
  return lowMs > highMs ? sample : { lowMs, highMs, atMs: old.atMs };
}
