/**
 * One partition on a private server, driven verb by verb with the defaults a test does not care about, so that a test
 * of a script reads like the story of a job. Time is always given: nothing here depends on when it runs.
 *
 * After each test the invariants of the design are checked on what it left behind, and the database is emptied.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { encodeAttempted, encodeBody, encodeRecord, memberOf } from '../../src/job/codec.ts';
import type { HeaderOptions } from '../../src/job/fields.ts';
import type { EntryId } from '../../src/job/job.ts';
import type { History } from '../../src/job/queue-settings.ts';
import { editRecord, type RecordChange } from '../../src/job/record-edit.ts';
import { digestOf } from '../../src/job/record-header.ts';
import { close, openCommands, type Redis, whenReady } from '../../src/redis/connection/connect.ts';
import { partitionRef } from '../../src/redis/keys.ts';
import { createJobs, type Jobs, type Sends } from '../../src/redis/scripts/jobs.ts';
import * as lease from '../../src/redis/scripts/lease.ts';
import * as ready from '../../src/redis/scripts/ready.ts';
import type {
  Claim,
  Compensation,
  Delivery,
  Effect,
  ScheduleItem,
  ScheduleReply,
} from '../../src/redis/scripts/replies.ts';
import { takeSnapshot } from './invariants.ts';
import { brokenBalance, brokenInvariants, picture, snapshot } from './keyspace.ts';
import { watched } from './model-moves.ts';
import { type StartOptions, startRedis, type TestRedis } from './redis.ts';

/** The moment at which every story begins. */
export const T0 = 1_763_719_000_000;
export const LEASE_MS = 60_000;
export const WINDOW_MS = 600_000;
const DAY_MS = 86_400_000;

interface When {
  readonly nowMs?: number;
}
interface Settle extends When {
  readonly windowMs?: number;
}
interface Asked {
  readonly dueMs?: number;
  readonly data?: unknown;
  /** How late it may start, and what follows when it is later. */
  readonly late?: HeaderOptions;
}
interface Call extends When {
  readonly mode?: 'keep' | 'replace' | 'update' | 'debounce';
  readonly sends?: Sends;
  readonly horizonMs?: number;
  readonly bytesMax?: number;
}

/** A call that is sent for the first time, and one that was sent before, at a time by the server's clock. */
export const firstSend = (): Sends => ({ isRepeat: false, firstMs: undefined });
export const sentBefore = (firstMs: number): Sends => ({ isRepeat: true, firstMs });

/** A job as `schedule` takes it. */
export function item(id: string, { dueMs = T0, data, late = {} }: Asked = {}): ScheduleItem {
  return { member: memberOf(id), record: encodeRecord(dueMs, encodeBody({ name: 'default', data }), late), dueMs };
}

/** One line of a history. */
export const failure = (message: string, attempt = 1, stack?: string) =>
  encodeAttempted({ atMs: T0, attempt, kind: 'failure', message, stack });

/** The only element of a list. */
export function only<T>(list: readonly T[]): T {
  const [first, ...rest] = list;
  if (first === undefined || rest.length > 0) throw new Error(`expected one element, got ${JSON.stringify(list)}`);
  return first;
}

/** Registers the hooks of one test file and returns its partition. */
export function usePartition({ history, ...options }: StartOptions & { readonly history?: History } = {}) {
  let opened: { readonly server: TestRedis; readonly redis: Redis; readonly jobs: Jobs } | undefined;
  let term = '';
  const ref = partitionRef('t', { queue: 'q', partition: 0, layoutGeneration: 0, ...(history && { history }) });
  const keys = ref.keys;
  const the = () => {
    if (opened === undefined) throw new Error('the partition is open inside tests only');
    return opened;
  };

  beforeAll(async () => {
    const server = await startRedis(options);
    const redis = openCommands({ redis: { path: server.socketPath }, name: 'test' });
    opened = { server, redis, jobs: watched(createJobs(redis), () => takeSnapshot(redis, keys)) };
    await whenReady(redis);
  });
  const reset = async () => {
    await the().redis.flushall();
    term = '';
  };
  beforeEach(reset);
  afterEach(async () => {
    expect(await brokenInvariants(the().redis, keys)).toEqual([]);
    expect(await brokenBalance(the().redis, keys)).toEqual([]);
  });
  afterAll(async () => {
    if (opened) close(opened.redis);
    await opened?.server.stop();
  });

  const verbs = {
    async scheduleAll(items: readonly ScheduleItem[], call: Call = {}): Promise<readonly ScheduleReply[]> {
      const reply = await the().jobs.schedule(ref, items, {
        mode: 'keep',
        horizonMs: 3650 * DAY_MS,
        bytesMax: 1_000_000,
        nowMs: T0,
        ...call,
      });
      if ('kind' in reply) throw new Error(`moved to layout ${reply.layoutGeneration}`);
      return reply;
    },
    async schedule(id: string, { dueMs = T0, data, late = {}, ...call }: Asked & Call = {}): Promise<ScheduleReply> {
      return only(await verbs.scheduleAll([item(id, { dueMs, data, late })], call));
    },
    /** A foreign producer: plain ZADD. */
    async put(member: string | Buffer, score: number | string): Promise<void> {
      await the().redis.zadd(keys.scheduled, score, member);
    },
    /** Becomes the leader, and returns its term. */
    async lead(): Promise<string> {
      if (term === '') term = (await lease.elect(the().redis, ref, { processId: 'm1', leaseMs: LEASE_MS })).term;
      return term;
    },
    async promote({ nowMs = T0, limit = 500, cap = 10_000 }: When & { limit?: number; cap?: number } = {}) {
      return the().jobs.promote(ref, { term: await verbs.lead(), leaseMs: LEASE_MS, limit, cap, nowMs });
    },
    async read(consumer = 'w1', count = 1000): Promise<readonly Delivery[]> {
      const got = await ready.readNew(the().redis, [ref], { consumer, count, blockMs: 0 });
      return got.flatMap(({ deliveries }) => deliveries);
    },
    start(
      deliveries: readonly Delivery[],
      call: Settle & { consumer?: string; bytesMax?: number; suspects?: number } = {},
    ) {
      const defaults = { consumer: 'w1', bytesMax: 1_000_000, windowMs: WINDOW_MS, nowMs: T0 };
      return the().jobs.start(ref, deliveries, { ...defaults, ...call });
    },
    expire(deliveries: readonly Delivery[], call: Settle & { consumer?: string } = {}) {
      return the().jobs.expire(ref, deliveries, { consumer: 'w1', windowMs: WINDOW_MS, nowMs: T0, ...call });
    },
    release(deliveries: readonly Delivery[], { consumer = 'w1' } = {}) {
      return the().jobs.release(ref, deliveries, { consumer, nowMs: T0 });
    },
    extend: (claims: readonly (Claim & { readonly progress?: string })[], consumer = 'w1') =>
      the().jobs.extend(ref, claims, consumer),
    /** Lines that a handler says, numbered up to `last`. */
    log: (claim: Claim, texts: readonly string[], { last = texts.length, tags = '-' } = {}) =>
      the().jobs.log(ref, [{ ...claim, lines: { last, tags, texts } }]),
    complete: (claims: readonly (Claim & { readonly mark?: string })[], call: Settle & { hold?: boolean } = {}) =>
      the().jobs.complete(ref, claims, { windowMs: WINDOW_MS, nowMs: T0, ...call }),
    commit: (claim: Claim, effects: readonly Effect[], call: Settle & { note?: string } = {}) =>
      the().jobs.commit(ref, claim, { windowMs: WINDOW_MS, nowMs: T0, effects, ...call }),
    retry: (claim: Claim, call: Settle & { delayMs?: number; error?: string; note?: string } = {}) =>
      the().jobs.retry(ref, claim, {
        windowMs: WINDOW_MS,
        nowMs: T0,
        delayMs: 1000,
        error: failure('boom'),
        ...call,
      }),
    defer: (claim: Claim, call: Settle & { delayMs?: number; why?: string; note?: string } = {}) =>
      the().jobs.defer(ref, claim, { windowMs: WINDOW_MS, nowMs: T0, delayMs: 1000, why: '', ...call }),
    bury: (
      claim: Claim,
      call: Settle & { reason?: string; error?: string; compensation?: Compensation; note?: string } = {},
    ) =>
      the().jobs.bury(ref, claim, {
        windowMs: WINDOW_MS,
        nowMs: T0,
        reason: 'attempts',
        error: failure('boom'),
        ...call,
      }),
    async cancel(member: string, call: Settle = {}) {
      const reply = await the().jobs.cancel(ref, [member], { windowMs: WINDOW_MS, nowMs: T0, ...call });
      if ('kind' in reply) throw new Error(`moved to layout ${reply.layoutGeneration}`);
      return only(reply);
    },
    async await(...members: readonly string[]) {
      const reply = await the().jobs.await(ref, members);
      if ('kind' in reply) throw new Error(`moved to layout ${reply.layoutGeneration}`);
      return reply;
    },
    async reschedule(
      member: string,
      dueMs: number,
      {
        mode = 'any',
        seen,
        nowMs = T0,
        horizonMs = 3650 * DAY_MS,
      }: When & {
        mode?: 'any' | 'earlier' | 'later';
        seen?: string;
        horizonMs?: number;
      } = {},
    ) {
      const asked = { member, dueMs, mode, ...(seen === undefined ? {} : { seen }) };
      const reply = await the().jobs.reschedule(ref, [asked], { horizonMs, nowMs });
      if ('kind' in reply) throw new Error(`moved to layout ${reply.layoutGeneration}`);
      return only(reply);
    },
    /** Makes the record what `change` makes of it, unless it is another one than `before` by now. */
    async edit(
      member: string,
      change: Partial<RecordChange>,
      { before, due, nowMs = T0 }: { readonly before?: string; readonly due?: number; readonly nowMs?: number } = {},
    ) {
      const record = before ?? (await the().redis.hget(keys.jobs, member)) ?? '';
      const edited = editRecord(record, { hasData: 'data' in change, options: {}, dueMs: T0, ...change }) ?? record;
      const asked = { member, before: digestOf(record), record: edited, dueMs: due };
      const reply = await the().jobs.edit(ref, [asked], { bytesMax: 1_000_000, nowMs });
      if ('kind' in reply) throw new Error(`moved to layout ${reply.layoutGeneration}`);
      return only(reply);
    },
    replay: (deadLetter: string, call: When & { dueMs?: number } = {}) =>
      the().jobs.replay(ref, deadLetter, { nowMs: T0, ...call }),
    /** A consumer takes what another holds. Nothing has to be idle, unless said otherwise. */
    reclaim: (owner: string, take: { consumer?: string; idleMs?: number; limit?: number; entries?: EntryId[] } = {}) =>
      ready.reclaim(the().redis, ref, { owner, consumer: 'w2', idleMs: 0, limit: 100, nowMs: T0, ...take }),
  };

  const stories = {
    /** Promotes what is due and reads it. */
    async deliver({ consumer = 'w1', ...when }: When & { consumer?: string } = {}): Promise<readonly Delivery[]> {
      await verbs.promote(when);
      return verbs.read(consumer);
    },
    /** Promotes, reads and starts what is due; the claims of what runs now. */
    async run({ consumer = 'w1', nowMs = T0 }: When & { consumer?: string } = {}): Promise<readonly Claim[]> {
      return stories.claim(await stories.deliver({ consumer, nowMs }), consumer);
    },
    /** Starts deliveries; the claims of what runs now. */
    async claim(deliveries: readonly Delivery[], consumer = 'w1'): Promise<readonly Claim[]> {
      const replies = deliveries.length === 0 ? [] : await verbs.start(deliveries, { consumer });
      return deliveries.flatMap(({ entry, member }, at) => {
        const reply = replies[at];
        return reply && 'token' in reply ? [{ entry, member, token: reply.token }] : [];
      });
    },
    /** A job of ours that is running now. */
    async running(id: string, call: { consumer?: string; data?: unknown } = {}): Promise<Claim> {
      await verbs.schedule(id, { data: call.data });
      return only(await stories.run(call));
    },
    /** A job of ours that is dead; its dead letter. */
    async dead(id: string): Promise<string> {
      await verbs.bury(await stories.running(id));
      return only(await the().redis.xrevrange(keys.dead, '+', '-', 'COUNT', 1))[0];
    },
  };

  return {
    ref,
    keys,
    ...verbs,
    ...stories,
    get redis() {
      return the().redis;
    },
    get server() {
      return the().server;
    },
    get jobs() {
      return the().jobs;
    },
    /** Empties the database, as before each test. */
    reset,
    picture: () => picture(the().redis, keys),
    snapshot: () => snapshot(the().redis),
    meta: (field: string) => the().redis.hget(keys.meta, field),
    /** A durable counter. */
    count: async (name: string) => Number((await the().redis.hget(keys.meta, `n.${name}`)) ?? 0),
    /** Calls, and fails the test if anything was written. */
    async withoutWrite<T>(call: () => Promise<T>): Promise<T> {
      const before = await snapshot(the().redis);
      const reply = await call();
      expect(await snapshot(the().redis)).toEqual(before);
      return reply;
    },
    /** Calls, and returns what was published on the wake channel, or another, meanwhile, in order. */
    async nudgesOf(call: () => Promise<unknown>, channel = keys.wake): Promise<readonly string[]> {
      const subscriber = await the().server.client();
      const heard: string[] = [];
      subscriber.on('smessage', (_channel: string, message: string) => heard.push(message));
      await subscriber.ssubscribe(channel);
      await call();
      // Messages of a channel arrive in order, so after this one all others are here.
      await the().redis.spublish(channel, 'end');
      await expect.poll(() => heard.at(-1)).toBe('end');
      subscriber.disconnect();
      return heard.slice(0, -1);
    },
  };
}
