/**
 * The fetcher and the round trips of a worker with a Redis whose replies come when the test says so. Handlers run until the
 * test ends them, and timers ring when it says so.
 */
import { encodeBody, encodeRecord, memberOf } from '../../src/job/codec.ts';
import { createEmitter } from '../../src/job/events.ts';
import type { EntryId, Token } from '../../src/job/job.ts';
import { silentLog } from '../../src/kernel/log.ts';
import type { Redis } from '../../src/redis/connection/connect.ts';
import { type PartitionRef, partitionRef } from '../../src/redis/keys.ts';
import type { Jobs } from '../../src/redis/scripts/jobs.ts';
import type { LeadersPass, PromoteReply } from '../../src/redis/scripts/passes.ts';
import type {
  Delivery,
  Ended,
  Served,
  SettleReply,
  Started,
  StartReply,
  Taken,
} from '../../src/redis/scripts/replies.ts';
import { RoundTrips } from '../../src/worker/fetch/round-trips.ts';
import { StreamFetcher } from '../../src/worker/fetch/stream-fetcher.ts';
import { Acknowledger, type NextTrip } from '../../src/worker/run/acknowledgement.ts';
import type { Executor } from '../../src/worker/run/execution.ts';
import { InFlight, type InFlightEntry } from '../../src/worker/run/in-flight.ts';
import { Starter } from '../../src/worker/run/starter.ts';
import { handClock } from './mover-line.ts';
import { handlerOf } from './running.ts';
import { listen } from './worker-line.ts';

export const LEASE_MS = 3000;
/** Nine tenths, less what an entry that was just started may have waited for that. */
export const TRUSTED_MS = 0.9 * LEASE_MS - 750;
export const RECORD = encodeRecord(1, encodeBody({ name: 'default', data: 'x' }));

/** Lets every microtask that waits have its turn, and every immediate. */
export async function breathe(): Promise<void> {
  for (let turn = 0; turn < 4; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** A call that waits for its answer. */
export interface Asked {
  readonly verb: 'serve' | 'relay' | 'start' | 'complete';
  readonly partition: number;
  /** Ids of what is over, with marks, and of entries that were given. */
  readonly over: readonly string[];
  readonly marks: readonly string[];
  readonly given: readonly string[];
  readonly take: number;
  /** What the call gives, once for each kind. */
  readonly answer: (reply?: {
    completed?: readonly SettleReply[];
    taken?: readonly Taken[];
    refusal?: string;
    waiting?: number;
  }) => Promise<void>;
  readonly fail: (message?: string) => Promise<void>;
}

interface Options {
  readonly concurrency?: number;
  readonly partitions?: number;
  readonly windowMs?: number;
  /** Delivered at most once: completed before it runs. */
  readonly once?: boolean;
  readonly lingerMs?: number;
}

const ids = (all: readonly { readonly member: string }[]) => all.map(({ member }) => member.slice(2));

export function fetching({ concurrency = 4, partitions = 1, windowMs = 60_000, once = false, lingerMs }: Options = {}) {
  const refs = Array.from({ length: partitions }, (_, partition) =>
    partitionRef('t', { queue: 'q', partition, layoutGeneration: 0, lingerMs }),
  );
  const [lineRef = partitionRef('t', { queue: 'q', partition: 0, layoutGeneration: 0 })] = refs;
  const timers = new Set<() => void>();
  const timed: number[] = [];
  const hand = handClock();
  const clock = {
    ...hand,
    sleep: (_ms: number, signal?: AbortSignal) => breathe().then(() => signal?.aborted !== true),
    timer: (ms: number, act: () => void) => {
      timers.add(act);
      timed.push(ms);
      return () => void timers.delete(act);
    },
  };
  const inFlight = new InFlight(concurrency);
  const asked: Asked[] = [];
  const unanswered = new Set<() => void>();
  const reads: string[] = [];
  /** How many entries each read asked for. */
  const counts: number[] = [];
  const released: string[] = [];
  const runs = new Map<string, InFlightEntry>();
  const begun: string[] = [];
  let most = 0;
  let arrivals: (readonly [PartitionRef, readonly Delivery[]])[] = [];
  let arrive: (() => void) | undefined;
  let nth = 0;

  function ask<T>(
    of: Omit<Asked, 'answer' | 'fail'>,
    replyOf: (reply: Parameters<Asked['answer']>[0]) => T,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      unanswered.add(() => reject(new Error('Connection is closed.')));
      asked.push({
        ...of,
        answer: (reply) => {
          resolve(replyOf(reply));
          return breathe();
        },
        fail: (message = 'Connection is closed.') => {
          reject(new Error(message));
          return breathe();
        },
      });
    });
  }

  const jobs = {
    serve: (
      { partition }: PartitionRef,
      call: { ended: readonly Ended[]; given: readonly Delivery[]; take: number },
    ) => {
      const { ended, given, take } = call;
      const of = { over: ids(ended), marks: ended.map(({ mark }) => mark), given: ids(given), take };
      return ask({ verb: 'serve', partition, ...of }, (reply): Served => {
        const old = given.map((one): Taken => reply?.taken?.find(({ entry }) => entry === one.entry) ?? runOf(one));
        const fresh = (reply?.taken ?? []).filter(({ entry }) => given.every((one) => one.entry !== entry));
        return {
          completed: reply?.completed,
          taken: [...old, ...fresh],
          delivered: fresh.length,
          refusal: reply?.refusal,
          ...(reply?.waiting !== undefined && { waiting: reply.waiting }),
        };
      });
    },
    relay: ({ partition }: PartitionRef, call: { ended: readonly Ended[]; take: number; pass: LeadersPass }) => {
      const { ended, take, pass } = call;
      const of = { over: ids(ended), marks: ended.map(({ mark }) => mark), given: [], take };
      return ask({ verb: 'relay', partition, ...of }, (reply): Served & { promoted: PromoteReply } => {
        const taken = reply?.taken ?? [];
        const found = { nowMs: 1, nextMs: undefined, backlog: 0, deadLetters: 0, lateness: [] };
        return {
          completed: reply?.completed,
          taken,
          delivered: taken.length,
          refusal: reply?.refusal,
          promoted: pass.term === '' ? { kind: 'fenced' } : { kind: 'promoted', ...found, count: taken.length },
        };
      });
    },
    start: ({ partition }: PartitionRef, given: readonly Delivery[]) =>
      ask({ verb: 'start', partition, over: [], marks: [], given: ids(given), take: 0 }, (reply) =>
        given.map((one): StartReply => reply?.taken?.find(({ entry }) => entry === one.entry) ?? runOf(one)),
      ),
    complete: ({ partition }: PartitionRef, ended: readonly Ended[]) => {
      const of = { over: ids(ended), marks: ended.map(({ mark }) => mark), given: [], take: 0 };
      return ask({ verb: 'complete', partition, ...of }, (reply) => reply?.completed ?? ended.map(() => 'ok'));
    },
    release: async (_ref: PartitionRef, deliveries: readonly Delivery[]) => {
      released.push(...ids(deliveries));
      return deliveries.map(() => 'ok');
    },
  } as unknown as Jobs;

  const blocking = {
    on: () => undefined,
    sendCommand: () => undefined,
    call: async (...words: unknown[]) => {
      reads.push(words.includes('BLOCK') ? 'wait' : 'look');
      counts.push(Number(words[words.indexOf('COUNT') + 1]));
      if (words.includes('BLOCK') && arrivals.length === 0) {
        await new Promise<void>((resolve) => {
          arrive = resolve;
        });
      }
      const found = arrivals.map(([{ keys }, deliveries]) => [
        keys.ready,
        deliveries.map(({ entry, member, dueMs }) => [entry, ['member', member, 'due', String(dueMs)]]),
      ]);
      arrivals = [];
      return found.length > 0 ? found : null;
    },
    client: async () => {
      arrive?.();
      return 1;
    },
  } as unknown as Redis;

  const giveUp = new AbortController();
  const events = createEmitter();
  const heard = listen(events);
  const base = { inFlight, clock, events, signal: giveUp.signal };
  const common = { ...base, jobs, consumer: 'w', concurrency, bytesMax: 1000, windowMs, suspectCrashes: 2 };
  const nextTrip: NextTrip = {
    complete: (completion) => roundTrips.complete(completion),
    start: (ref, entries) => roundTrips.start(ref, entries),
  };
  const acknowledger = new Acknowledger({
    ...common,
    nextTrip,
    log: silentLog,
    isFull: async () => false,
    commands: blocking,
    refs: [],
  });
  const starter = new Starter({
    ...common,
    nextTrip,
    commands: blocking,
    queue: 'q',
    jobLeaseMs: LEASE_MS,
    compensations: false,
    serverOf: () => {
      throw new Error('nothing is late here');
    },
    executor: {
      execute(entry: InFlightEntry, { record }: Started) {
        const run = () => {
          inFlight.handlerBegan(entry, handlerOf());
          runs.set(entry.delivery.member.slice(2), entry);
          begun.push(entry.delivery.member.slice(2));
          most = Math.max(most, runs.size);
        };
        if (!once) {
          run();
          return;
        }
        const attempt = { entry, name: 'default', record, tookMs: 0 };
        acknowledger.completeEarly(attempt, run);
      },
    } as unknown as Executor,
  });
  const roundTrips: RoundTrips = new RoundTrips({
    ...common,
    serverOf: () => {
      throw new Error('nothing is handed out ahead here');
    },
    readerJobs: jobs,
    acknowledger,
    starter,
    isLookDue: () => fetcher.isLookDue(),
    onLost: () => undefined,
  });
  const fetcher = new StreamFetcher({
    ...common,
    roundTrips,
    starter,
    commands: blocking,
    blocking,
    blockMs: 2000,
    refs,
  });

  return {
    acknowledger,
    fetcher,
    starter,
    roundTrips,
    inFlight,
    refs,
    heard,
    reads,
    counts,
    released,
    /** For how long each timer was to wait. */
    timed,
    begun,
    asked,
    advance: hand.advance,
    /** The end of it: Redis is gone, and handlers return. */
    async close(): Promise<void> {
      const stopped = fetcher.stop();
      giveUp.abort();
      for (let rounds = 0; rounds < 5; rounds += 1) {
        await this.end(...runs.keys());
        await this.ring();
        for (const fail of unanswered) fail();
        arrive?.();
        await breathe();
      }
      await stopped;
    },
    /** A pass of the reader, under way. */
    async pass(): Promise<{ readonly isOver: () => boolean }> {
      let isOver = false;
      const over = () => {
        isOver = true;
      };
      void fetcher.pass().then(over, over);
      await breathe();
      return { isOver: () => isOver };
    },
    /** A leader in this process passes; undefined: by itself. */
    relay(limit = 500, term = 'm:1:1000') {
      const passed = roundTrips.relay(lineRef, { term, leaseMs: undefined, limit, cap: 10_000 });
      passed?.catch(() => undefined);
      return passed;
    },
    /** The next call that waits for its answer. */
    next(): Asked {
      const first = asked.shift();
      if (!first) throw new Error('nobody asks for anything');
      return first;
    },
    running: () => [...runs.keys()].sort(),
    most: () => most,
    /** What a read finds. */
    async arrives(partition: number, ...deliveries: readonly Delivery[]): Promise<void> {
      const ref = refs[partition];
      if (ref) arrivals.push([ref, deliveries]);
      arrive?.();
      await breathe();
    },
    /** Handlers return, all in one turn of the event loop. */
    async end(...which: readonly string[]): Promise<void> {
      for (const id of which) {
        const held = runs.get(id);
        if (!held) throw new Error(`${id} does not run`);
        runs.delete(id);
        inFlight.handlerEnded(held);
        if (once) continue;
        acknowledger.complete({ entry: held, name: 'default', record: RECORD, tookMs: 0 });
      }
      await breathe();
    },
    /** Every timer rings. */
    async ring(): Promise<void> {
      for (const act of [...timers]) {
        timers.delete(act);
        act();
      }
      await breathe();
    },
    delivery(id: string): Delivery {
      nth += 1;
      return { entry: `${nth}-0` as EntryId, member: memberOf(id), dueMs: 1 };
    },
  };
}

/** An entry that is started for the first time. */
export function runOf(delivery: Delivery, kind: 'run' | 'again' = 'run'): Taken {
  const token = delivery.entry.replace('-', '') as Token;
  return { ...delivery, kind, token, attempts: 1, failures: 0, crashes: 0, generation: 0, history: [], record: RECORD };
}
