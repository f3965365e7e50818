/**
 * What one partition of a broadcast queue sends, read in order by one process, from a place that it remembers.
 *
 *  K:work ──nudge──▶ read what comes after the place ──▶ each job: missed any? ─▶ handler ─▶ the place moves on
 *  tick ───────────▶       │ nothing
 *                          ▼
 *                    is the place still there? (after every reconnection, and every few seconds)
 *
 * What must always hold: a job is handed to the handler once, in the order in which it was sent, or it is told that it was
 * missed. The place is found once, as the newest entry there is, so that nothing is passed over between two reads. Each
 * entry has a number that grows by one: a jump is what the bounds of the stream took away. A number that was seen before,
 * or a place that is not there any more among older ones, means that a primary took over which lost writes.
 */

import type { Emitter } from '../../job/events.ts';
import type { Clock } from '../../kernel/clock.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { createLoop, type Loop } from '../../kernel/loop.ts';
import { memberOf } from '../../redis/connection/cluster/members.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { pauseAfter } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { isBroadcast } from '../../redis/keys.ts';
import { BEGINNING, type CastEntry, castAfter, castCount, newestCast, wentBack } from '../../redis/read/broadcast.ts';
import { declareQueue, partitionsOf, settingsOf } from '../../redis/scripts/queues.ts';
import type { WakeChannel } from '../fetch/wake-channel.ts';
import type { CastRunner } from './cast-run.ts';
import type { Missed, SubscriberSettings } from './options.ts';

interface CastReaderParts {
  readonly redis: Redis;
  readonly ref: PartitionRef;
  readonly wakeChannel: WakeChannel;
  readonly runner: CastRunner;
  /** Whether what is there already is read too. */
  readonly fromOldest: boolean;
  readonly onMissed: ((missed: Missed) => void) | undefined;
  readonly clock: Clock;
  readonly events: Emitter;
}

interface CastReader {
  readonly ref: PartitionRef;
  /** Finds the place; what is sent from then on is read. May be repeated. */
  readonly begin: () => Promise<void>;
  readonly start: () => void;
  /** Ends after the job whose handler runs. */
  readonly stop: () => Promise<void>;
  /** Connected again: the place is looked at first. */
  readonly doubt: () => void;
  /** How many jobs were sent and not handled yet. */
  readonly behind: () => Promise<number>;
  readonly pass: () => Promise<number>;
  readonly lastProgressMs: () => number;
}

/** How often it looks without a nudge, and the same while nudges may be missed. */
const TICK_MS = 1000;
const DEAF_MS = 100;
/** How often it is looked whether the place is still there, and whether the connection for nudges lives. */
const CHECK_MS = 5000;
/** Jobs per read: their records are held in memory until their turn. */
const PAGE = 20;

interface Reading extends CastReaderParts {
  /** The last entry that was read; undefined until it is known. */
  place: string | undefined;
  /** Its number; undefined when the first entry that comes decides. */
  count: number | undefined;
  stopping: boolean;
  doubtful: boolean;
  checkedMs: number;
}

function createCastReader(parts: CastReaderParts): CastReader {
  const { redis, ref, wakeChannel, clock, events } = parts;
  const reading: Reading = {
    ...parts,
    place: undefined,
    count: undefined,
    stopping: false,
    doubtful: false,
    checkedMs: clock.monotonicMs(),
  };
  const run = () => pass(reading);
  const probe = () => memberOf(redis, ref.keys.meta).ping();
  const who = `subscriber of ${ref.queue}:${ref.partition}`;
  const loop: Loop = createLoop({ who, pass: run, probe, clock, events, pauseAfter });
  let forget: (() => void) | undefined;
  return {
    ref,
    begin: () => begin(reading),
    start() {
      forget = wakeChannel.listen(ref.keys.work, loop.wake);
      loop.start();
    },
    async stop() {
      reading.stopping = true;
      forget?.();
      await loop.stop();
    },
    doubt() {
      reading.doubtful = true;
      loop.wake();
    },
    async behind() {
      if (reading.count === undefined) return 0;
      return Math.max(0, (await castCount(redis, ref)) - reading.count);
    },
    pass: run,
    lastProgressMs: loop.lastProgressMs,
  };
}

/** The number first: what is sent between the two reads is then seen as an entry. */
async function begin(reading: Reading): Promise<void> {
  const { redis, ref, fromOldest } = reading;
  if (reading.place !== undefined) return;
  const sent = await castCount(redis, ref);
  const newest = fromOldest ? undefined : await newestCast(redis, ref);
  reading.count = fromOldest ? undefined : (newest?.count ?? sent);
  reading.place = newest?.entry ?? BEGINNING;
}

async function pass(reading: Reading): Promise<number> {
  const { redis, ref, runner, wakeChannel, clock } = reading;
  await begin(reading);
  const nowMs = clock.monotonicMs();
  if (reading.doubtful || nowMs - reading.checkedMs >= CHECK_MS) await check(reading, nowMs);
  const entries = await castAfter(redis, ref, { after: reading.place ?? BEGINNING, limit: PAGE });
  for (const entry of entries) {
    if (reading.stopping) return 0;
    arrive(reading, entry);
    await runner.run(ref, entry);
  }
  if (entries.length > 0) return 0;
  return wakeChannel.isDeaf() ? DEAF_MS : TICK_MS;
}

/** The place moves on before the handler runs: whatever comes of it, the job is not handed over twice. */
function arrive(reading: Reading, { entry, count }: CastEntry): void {
  const before = reading.count;
  reading.place = entry;
  reading.count = count;
  if (before === undefined || count === before + 1) return;
  tell(reading, count > before ? { reason: 'bounds', count: count - before - 1 } : LOST);
}

const LOST = { reason: 'lost-writes', count: undefined } as const;

/** A place that these data never had: what comes from now on is read, from the newest entry that there is. */
async function check(reading: Reading, nowMs: number): Promise<void> {
  const { redis, ref, place, count, wakeChannel } = reading;
  reading.doubtful = false;
  reading.checkedMs = nowMs;
  wakeChannel.mend();
  if (place === undefined || count === undefined) return;
  try {
    if (!(await wentBack(redis, ref, { after: place, count }))) return;
    const sent = await castCount(redis, ref);
    const newest = await newestCast(redis, ref);
    reading.place = newest?.entry ?? BEGINNING;
    reading.count = newest?.count ?? sent;
    tell(reading, LOST);
  } catch (error) {
    reading.doubtful = true;
    throw error;
  }
}

function tell({ ref, events, onMissed }: Reading, missed: Pick<Missed, 'reason' | 'count'>): void {
  const { queue, partition } = ref;
  const { reason, count } = missed;
  events.emit('jobs.missed', { queue, reason, ...(count === undefined ? {} : { count }) });
  onMissed?.({ queue, partition, ...missed });
}

/** The readers of all partitions of a broadcast queue. They follow its layout as workers do. */
export interface CastReaders {
  /** Declares the queue unless it is declared, and finds the place in each partition. May be repeated. */
  readonly follow: () => Promise<void>;
  readonly start: () => void;
  readonly stop: () => Promise<void>;
  readonly doubt: () => void;
  /** Jobs that were sent and not handled yet. */
  readonly behind: () => Promise<number>;
  readonly isReady: () => boolean;
}

interface ReadersParts extends Omit<SubscriberSettings, 'redis'> {
  readonly redis: Redis;
  readonly wakeChannel: WakeChannel;
  readonly runner: CastRunner;
  readonly events: Emitter;
}

/** A partition that was not read for so long is not ready: a few reads without an answer. */
const STUCK_MS = 10_000;

export function createCastReaders(parts: ReadersParts): CastReaders {
  const { redis, namespace, queue, clock, runner } = parts;
  let readers: readonly CastReader[] = [];
  let isStarted = false;
  let isStopped = false;

  async function follow(): Promise<void> {
    const { name, partitions } = queue;
    const settings = { ...settingsOf(queue), isRepeated: readers.length > 0 };
    const layout = await declareQueue(redis, { namespace, queue: name, partitions, ...settings });
    const refs = partitionsOf(namespace, layout);
    if (readers.length === 0 && !refs.every(isBroadcast)) throw ofWorkers(name);
    const isFirst = readers.length === 0;
    const next = refs.map((ref) => {
      const known = readers.find((one) => one.ref.keys.cast === ref.keys.cast);
      // What a partition has sent that was not there before is new to everybody.
      return known ?? createCastReader({ ...parts, ref, fromOldest: parts.fromOldest || !isFirst });
    });
    await Promise.all(next.map((one) => one.begin()));
    if (isStopped) return;
    const gone = readers.filter((one) => !next.includes(one));
    const come = next.filter((one) => !readers.includes(one));
    readers = next;
    if (isStarted) for (const one of come) one.start();
    await Promise.all(gone.map((one) => one.stop()));
  }

  return {
    follow,
    start() {
      isStarted = true;
      for (const one of readers) one.start();
    },
    async stop() {
      isStopped = true;
      await Promise.all(readers.map((one) => one.stop()));
    },
    doubt() {
      for (const one of readers) one.doubt();
    },
    async behind() {
      const each = await Promise.all(readers.map((one) => one.behind()));
      return each.reduce((sum, one) => sum + one, 0);
    },
    // A handler that runs keeps its partition from being read.
    isReady: () =>
      runner.running() > 0 || readers.every((one) => clock.monotonicMs() - one.lastProgressMs() < STUCK_MS),
  };
}

const ofWorkers = (queue: string): DuestreamError =>
  new DuestreamError(
    'bad-config',
    `queue ${queue} is no broadcast: its jobs go to workers; define it with broadcast: true, or use createWorker`,
  );
