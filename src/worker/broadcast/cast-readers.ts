/** The readers of all partitions of a broadcast queue. They follow its layout as workers do. */

import type { Emitter } from '../../job/events.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { isBroadcast } from '../../redis/keys.ts';
import { declareQueue, partitionsOf } from '../../redis/scripts/queues.ts';
import type { WakeChannel } from '../fetch/wake-channel.ts';
import { type CastReader, createCastReader } from './cast-reader.ts';
import type { CastRunner } from './cast-run.ts';
import type { SubscriberSettings } from './options.ts';

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
    const { name, partitions, history, broadcast, maxPending, maxBytes } = queue;
    const settings = { history, broadcast, maxPending, maxBytes, isRepeated: readers.length > 0 };
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
