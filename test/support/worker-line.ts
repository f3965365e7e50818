/**
 * A queue on a private server with a mover that turns every 10 ms, so that a test of the worker tells the story of a
 * job from `schedule` to its end. Each test gets a queue of its own; after it everything is stopped and the invariants
 * of the design are checked on what it left behind.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { encodeBody, encodeRecord, memberOf } from '../../src/job/codec.ts';
import { createEmitter, type EventName, type EventSource, type Events, eventNames } from '../../src/job/events.ts';
import type { JobOverrides } from '../../src/job/fields.ts';
import { defineQueue, type QueueOptions } from '../../src/job/queue.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { Mover } from '../../src/mover/promotion/mover.ts';
import { close, openCommands, type Redis, whenReady } from '../../src/redis/connection/connect.ts';
import { type PartitionRef, partitionRef } from '../../src/redis/keys.ts';
import { createJobs } from '../../src/redis/scripts/jobs.ts';
import type { WorkerOptions } from '../../src/worker/options.ts';
import type { QueueHandlers } from '../../src/worker/run/handlers.ts';
import { createWorker, type WatchedWorker } from '../../src/worker/worker.ts';
import { brokenBalance, brokenInvariants, picture, streamOf } from './keyspace.ts';
import { type StartOptions, startRedis, type TestRedis } from './redis.ts';

export const NAMESPACE = 't';

export interface Planned extends JobOverrides {
  readonly id?: string;
  readonly name?: string;
  readonly data?: unknown;
  /** Epoch ms; default: due since long. */
  readonly dueMs?: number;
}

export type Line = ReturnType<typeof useLine>;

/** Leases and graces so short that a test of recovery takes a second. */
export const QUICK = { jobLease: 800, beatTtl: 300, grace: 150 } as const;

interface LineOptions extends StartOptions {
  readonly partitions?: number;
  /** `false` for files that destroy keys. */
  readonly check?: boolean;
  /** `false`: nothing is promoted unless the test does it. */
  readonly movers?: boolean;
}

/** Registers the hooks of one test file. */
export function useLine(options: LineOptions = {}) {
  let opened: { readonly server: TestRedis; readonly redis: Redis } | undefined;
  let nth = 0;
  let stops: (() => unknown)[] = [];
  let movers: Mover[] = [];
  const the = () => {
    if (opened === undefined) throw new Error('the line is open inside tests only');
    return opened;
  };
  const queueName = () => `q${nth}`;
  const refs = (): readonly PartitionRef[] =>
    Array.from({ length: options.partitions ?? 1 }, (_, partition) =>
      partitionRef(NAMESPACE, { queue: queueName(), partition, layoutGeneration: 0 }),
    );

  beforeAll(async () => {
    const server = await startRedis(options);
    const redis = openCommands({ redis: { path: server.socketPath }, name: 'test' });
    opened = { server, redis };
    await whenReady(redis);
  });
  beforeEach(() => {
    nth += 1;
    movers = (options.movers === false ? [] : refs()).map((ref) => moverOf(the().redis, ref));
    for (const mover of movers) mover.start();
  });
  afterEach(async () => {
    for (const stop of stops.reverse()) await stop();
    stops = [];
    await Promise.all(movers.map((mover) => mover.stop()));
    if (options.check === false) return;
    for (const ref of refs()) {
      expect(await brokenInvariants(the().redis, ref.keys)).toEqual([]);
      expect(await brokenBalance(the().redis, ref.keys)).toEqual([]);
    }
  });
  afterAll(async () => {
    if (opened) close(opened.redis);
    await opened?.server.stop();
  });

  const line = {
    get redis() {
      return the().redis;
    },
    get server() {
      return the().server;
    },
    get jobs() {
      return createJobs(the().redis);
    },
    get queue() {
      return queueName();
    },
    get ref(): PartitionRef {
      return partitionRef(NAMESPACE, { queue: queueName(), partition: 0, layoutGeneration: 0 });
    },
    get refs() {
      return refs();
    },
    /** Ends before the invariants are looked at. */
    onEnd: (stop: () => unknown) => void stops.push(stop),
    /** One more mover of the first partition, not started. */
    mover(): Mover {
      const mover = moverOf(the().redis, line.ref);
      stops.push(() => mover.stop());
      return mover;
    },
    stopMovers: () => Promise.all(movers.map((mover) => mover.stop())),
    picture: () => picture(the().redis, line.ref.keys),
    deadLetters: async () => (await streamOf(the().redis, line.ref.keys.dead)).map(({ fields }) => fields),
    count: async (name: string) => Number((await the().redis.hget(line.ref.keys.meta, `n.${name}`)) ?? 0),
    /** What Redis remembers of a job: its record or tombstone. */
    stored: (id: string) => the().redis.hget(line.ref.keys.jobs, memberOf(id)),
    async plan(...jobs: readonly Planned[]): Promise<void> {
      await line.planIn(line.ref, ...jobs);
    },
    async planIn(ref: PartitionRef, ...jobs: readonly Planned[]): Promise<void> {
      const items = jobs.map(({ id = 'a', name = 'default', data, dueMs = Date.now() - 1000, ...own }) => ({
        member: memberOf(id),
        record: encodeRecord(dueMs, encodeBody({ name, data }, own)),
        dueMs,
      }));
      const settings = { mode: 'keep', horizonMs: 1e12, bytesMax: 1_000_000 } as const;
      const replies = await createJobs(the().redis).schedule(ref, items, settings);
      if ('kind' in replies || replies.some(({ kind }) => kind !== 'ok')) {
        throw new Error(`schedule answered ${JSON.stringify(replies)}`);
      }
    },
    many: (count: number, prefix = 'n'): readonly Planned[] =>
      Array.from({ length: count }, (_, at) => ({ id: `${prefix}${at}` })),
    /** A worker of this test's queue that is stopped after the test; not started. */
    make(
      handlers: QueueHandlers<unknown>,
      settings: QueueOptions & Partial<WorkerOptions> = {},
    ): WatchedWorker & { readonly heard: Heard } {
      const queue = defineQueue(queueName(), { partitions: options.partitions ?? 1, ...queuePart(settings) });
      const { attempts, crashes, backoff, timeout, delivery, partitions, linger, codec, ...own } = settings;
      const redis = { path: the().server.socketPath };
      const worker = createWorker(queue, handlers, { redis, namespace: NAMESPACE, shutdown: 2000, ...own });
      stops.push(() => worker.stop({ shutdown: 500 }));
      return { ...worker, heard: listen(worker.events) };
    },
    async worker(handlers: QueueHandlers<unknown>, settings: QueueOptions & Partial<WorkerOptions> = {}) {
      const worker = line.make(handlers, settings);
      await worker.start();
      return worker;
    },
  };
  return line;
}

function queuePart({ attempts, crashes, backoff, timeout, delivery, linger, codec }: QueueOptions): QueueOptions {
  return {
    ...(attempts === undefined ? {} : { attempts }),
    ...(crashes === undefined ? {} : { crashes }),
    ...(backoff === undefined ? {} : { backoff }),
    ...(timeout === undefined ? {} : { timeout }),
    ...(delivery === undefined ? {} : { delivery }),
    ...(linger === undefined ? {} : { linger }),
    ...(codec === undefined ? {} : { codec }),
  };
}

function moverOf(redis: Redis, ref: PartitionRef): Mover {
  const options = { leaseMs: 60_000, batchMax: 500, readyMax: 10_000, safetyTickMs: 10 };
  return new Mover({
    redis,
    ref,
    current: () => ref,
    processId: 'm',
    options,
    order: { rank: () => 0, betterBeatSince: async () => true, isOlder: () => false },
    loneWorker: { relay: () => undefined, isPolled: () => true, canHold: () => true },
    windowMs: 600_000,
    clock: systemClock,
    events: createEmitter(),
  });
}

/** Everything a service said, in order. */
export interface Heard {
  readonly of: <N extends EventName>(name: N) => readonly Events[N][];
  readonly names: () => readonly EventName[];
}

export function listen(events: EventSource): Heard {
  const said: { readonly name: EventName; readonly payload: unknown }[] = [];
  for (const name of eventNames) events.on(name, (payload) => said.push({ name, payload }));
  return {
    of: <N extends EventName>(name: N) =>
      said.filter((one) => one.name === name).map(({ payload }) => payload as Events[N]),
    names: () => said.map(({ name }) => name),
  };
}

/** Polls until the value is as expected. */
export const eventually = <T>(read: () => T) => expect.poll(read);

/** What must not be waited for takes so long that a test that waits for it fails. */
export const HOUR_MS = 3_600_000;

/** A door that handlers wait at: closed until `open`. */
export function gate() {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** Resolves when the signal aborts, with its reason's message. */
export const aborted = (signal: AbortSignal): Promise<string> =>
  new Promise((resolve) => {
    const tell = () => resolve(signal.reason instanceof Error ? signal.reason.message : 'no reason');
    if (signal.aborted) tell();
    else signal.addEventListener('abort', tell, { once: true });
  });
