/** When a worker gives up what it runs: for each entry before others may take it, and no sooner than it has to. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { idOf, memberOf } from '../../src/job/codec.ts';
import { createEmitter } from '../../src/job/events.ts';
import type { EntryId } from '../../src/job/job.ts';
import type { AbortReason } from '../../src/job/outcome.ts';
import type { Clock } from '../../src/kernel/clock.ts';
import { type PartitionRef, partitionRef } from '../../src/redis/keys.ts';
import type { ExtendReply } from '../../src/redis/scripts/replies.ts';
import { createExtender } from '../../src/worker/run/extender.ts';
import { InFlight, type InFlightEntry } from '../../src/worker/run/in-flight.ts';
import { LogBook } from '../../src/worker/run/log-book.ts';
import { handlerOf, running } from '../support/running.ts';

const LEASE_MS = 15_000;
const MARGIN_MS = LEASE_MS / 10;
/** What an entry that was just started may have waited for that. */
const AGE_MS = 1000;
const one = partitionRef('t', { queue: 'q', partition: 0, layoutGeneration: 0 });
const other = partitionRef('t', { queue: 'q', partition: 1, layoutGeneration: 0 });

/** Lets every microtask that waits have its turn. */
const breathe = () => new Promise((resolve) => setImmediate(resolve));
const never = () => new Promise<never>(() => undefined);
const answered = async () => 'ok' as const;
const extendedMs = ({ state }: InFlightEntry) => (state.phase === 'running' ? state.extendedMs : undefined);

function setUp(reply: (ref: PartitionRef) => Promise<ExtendReply>, jobLeaseMs = LEASE_MS) {
  let nowMs = 0;
  let nth = 0;
  let timers: { readonly atMs: number; readonly ring: () => void }[] = [];
  const timer = (ms: number, ring: () => void) => {
    const armed = { atMs: nowMs + ms, ring };
    timers.push(armed);
    return () => {
      timers = timers.filter((it) => it !== armed);
    };
  };
  const clock: Clock = { wallMs: () => nowMs, monotonicMs: () => nowMs, sleep: async () => true, timer };
  const inFlight = new InFlight(4);
  const told: string[] = [];
  const calls: string[] = [];
  const extender = createExtender({
    inFlights: [inFlight],
    consumer: 'w',
    queue: 'q',
    clock,
    events: createEmitter(),
    jobLeaseMs,
    extendEveryMs: jobLeaseMs / 3,
    probe: async () => 'PONG',
    jobs: {
      async extend(ref, claims) {
        calls.push(
          `${nowMs}: ${claims.map(({ member, progress = '-' }) => `${idOf(member).id} ${progress}`).join(', ')}`,
        );
        return Promise.all(claims.map(() => reply(ref)));
      },
      log(_ref, said) {
        for (const { member, lines } of said) calls.push(`${nowMs}: ${idOf(member).id} said ${lines.texts.join()}`);
        return never();
      },
    },
  });
  return {
    extender,
    inFlight,
    told,
    /** When Redis was asked to extend what, and what it heard of progress. */
    calls,
    armed: () => timers.length,
    /** A job of which the call that started it is sent now. */
    runs(id: string, ref = one, acknowledged = false) {
      nth += 1;
      const delivery = { entry: `${nth}-0` as EntryId, member: memberOf(id), dueMs: 1 };
      const abort = (why: AbortReason) => void told.push(`${id}: ${why}`);
      return running(inFlight, { ref, delivery, token: String(nth), leasedMs: nowMs, acknowledged, abort });
    },
    /** The same, of a handler that has said these lines. */
    talks(id: string, ...texts: readonly string[]) {
      const book = new LogBook('-');
      for (const text of texts) book.add(text);
      nth += 1;
      const delivery = { entry: `${nth}-0` as EntryId, member: memberOf(id), dueMs: 1 };
      return running(inFlight, {
        ref: one,
        delivery,
        token: String(nth),
        leasedMs: nowMs,
        handler: { ...handlerOf(), book },
      });
    },
    /** The same, of a handler that says how far it is. */
    says(id: string) {
      const handler = handlerOf();
      nth += 1;
      const delivery = { entry: `${nth}-0` as EntryId, member: memberOf(id), dueMs: 1 };
      const entry = running(inFlight, { ref: one, delivery, token: String(nth), leasedMs: nowMs, handler });
      const say = (line: string) => {
        handler.unsent = line;
        extender.reported();
      };
      return { entry, handler, say };
    },
    /** The loop of the extender turns as well. */
    async live(ms: number) {
      for (const endMs = nowMs + ms; nowMs < endMs; ) {
        await breathe();
        nowMs += 1;
        await vi.advanceTimersByTimeAsync(1);
      }
    },
    /** The event loop turns at every millisecond. */
    async advance(ms: number) {
      for (const endMs = nowMs + ms; nowMs < endMs; ) {
        nowMs += 1;
        const due = timers.filter(({ atMs }) => atMs <= nowMs);
        timers = timers.filter((it) => !due.includes(it));
        for (const { ring } of due) ring();
        if (due.length > 0) await breathe();
      }
      await breathe();
    },
    /** The event loop stands still: no timer rings. */
    stall(ms: number) {
      nowMs += ms;
    },
    /** Then the timers ring, and only after that is read what has arrived. */
    async wakeUp(read: () => void) {
      const due = timers.filter(({ atMs }) => atMs <= nowMs);
      timers = timers.filter((it) => !due.includes(it));
      for (const { ring } of due) ring();
      read();
      await breathe();
    },
  };
}

it('after a stall that Redis has not noticed yet, everything is extended and nobody is told', async () => {
  const { extender, told, runs, stall, advance } = setUp(() => breathe().then(answered));
  runs('a');
  await extender.pass();
  stall(LEASE_MS - MARGIN_MS - 10);
  const passed = extender.pass();
  await advance(5);
  await passed;
  expect(told).toEqual([]);
  await advance(LEASE_MS - MARGIN_MS - 10);
  expect(told).toEqual([]);
});

it('after a stall the reply that has arrived is read before anybody is told', async () => {
  let line = answered;
  let arrive: () => void = () => undefined;
  const { extender, told, runs, advance, stall, wakeUp } = setUp(() => line());
  runs('a');
  await extender.pass();
  await advance(5000);
  line = () =>
    new Promise((resolve) => {
      arrive = () => resolve('ok');
    });
  const passed = extender.pass();
  stall(LEASE_MS - 5000);
  await wakeUp(() => arrive());
  await passed;
  expect(told).toEqual([]);
  stall(5000 - MARGIN_MS);
  await wakeUp(() => undefined);
  expect(told).toEqual([]);
  stall(1);
  await wakeUp(() => undefined);
  expect(told).toEqual(['a: lease lost']);
});

it('a stop while a timer has rung and the loop reads first tells nobody', async () => {
  const { extender, told, runs, stall, wakeUp } = setUp(answered);
  runs('a');
  await extender.pass();
  stall(LEASE_MS);
  let stopped: Promise<void> | undefined;
  await wakeUp(() => {
    stopped = extender.stop();
  });
  await stopped;
  expect(told).toEqual([]);
});

it('while extending hangs, a handler is told a tenth of a lease before others may take its job', async () => {
  let line: () => Promise<ExtendReply> = answered;
  const { extender, told, runs, advance } = setUp(() => line());
  runs('a');
  await extender.pass();
  line = never;
  void extender.pass();
  await advance(LEASE_MS - MARGIN_MS);
  expect(told).toEqual([]);
  await advance(1);
  expect(told).toEqual(['a: lease lost']);
});

it('after a stall of a whole lease handlers are told before anything else happens', async () => {
  const { extender, told, runs, stall } = setUp(answered);
  runs('a');
  await extender.pass();
  stall(LEASE_MS);
  void extender.pass();
  expect(told).toEqual(['a: lease lost']);
});

it('a partition that hangs costs the handlers of another one nothing', async () => {
  const { extender, told, runs, advance } = setUp((ref) => (ref === other ? never() : answered()));
  const first = runs('a', one);
  runs('b', other);
  await advance(5000);
  void extender.pass();
  await breathe();
  await advance(LEASE_MS - 5000);
  expect([told, extendedMs(first)]).toEqual([['b: lease lost'], 5000]);
  await advance(5000);
  expect(told).toContain('a: lease lost');
});

it('a partition that cannot be extended costs those behind it nothing, and the pass has failed', async () => {
  const refused = new Error('WRONGTYPE Operation against a key holding the wrong kind of value');
  const { extender, told, runs, advance } = setUp((ref) => (ref === one ? Promise.reject(refused) : answered()));
  runs('a', one);
  const behind = runs('b', other);
  await advance(5000);
  await expect(extender.pass()).rejects.toBe(refused);
  expect(extendedMs(behind)).toBe(5000);
  await advance(LEASE_MS - 5000);
  expect(told).toEqual(['a: lease lost']);
});

it('after a failed pass the next one comes no later than after a good one', async () => {
  let calls = 0;
  const { extender, runs } = setUp(() => {
    calls += 1;
    return Promise.reject(new Error('WRONGTYPE Operation against a key holding the wrong kind of value'));
  }, 600);
  runs('a');
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  extender.start();
  await vi.advanceTimersByTimeAsync(500);
  vi.useRealTimers();
  await extender.stop();
  expect(calls).toBeGreaterThan(1);
});

it('a job that was not extended yet has its lease from its start, less what its entry may have waited', async () => {
  const { extender, told, runs, advance } = setUp(never);
  runs('a');
  void extender.pass();
  await advance(LEASE_MS - MARGIN_MS - AGE_MS);
  expect(told).toEqual([]);
  await advance(1);
  expect(told).toEqual(['a: lease lost']);
});

it('also the shortest lease outlasts the time until its first extension', async () => {
  const { extender, told, runs, stall } = setUp(answered, 600);
  runs('a');
  stall(300);
  await extender.pass();
  expect(told).toEqual([]);
});

it('a job that is over in Redis, or whose handler has ended, is not told, and no timer stays after the stop', async () => {
  const { extender, inFlight, told, runs, advance, armed } = setUp(never);
  runs('over', one, true);
  const ended = runs('ended');
  runs('a');
  void extender.pass();
  inFlight.handlerEnded(ended);
  await advance(100);
  expect(armed()).toBe(1);
  await extender.stop();
  expect([told, armed()]).toEqual([[], 0]);
});

describe('what handlers say of their progress', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
  afterEach(() => void vi.useRealTimers());

  it('is sent at once, and what comes after it a second later, the newest alone', async () => {
    const { extender, calls, runs, says, live } = setUp(answered);
    runs('quiet');
    const loud = says('loud');
    const other = says('other');
    extender.start();
    await live(10);
    expect(calls.splice(0)).toEqual(['0: quiet -, loud -, other -']);
    loud.say('1');
    await live(1);
    for (const line of ['2', '3']) loud.say(line);
    await live(500);
    other.say('4');
    await live(600);
    expect(calls.splice(0)).toEqual(['10: loud 1', '1010: loud 3, other 4']);
    await live(5000);
    expect(calls.splice(0)).toEqual(['5000: quiet -, loud -, other -']);
    loud.say('5');
    await live(1);
    expect(calls.splice(0)).toEqual(['6111: loud 5']);
    await extender.stop();
  });

  it('goes with the extension of everything when that is due', async () => {
    const { extender, calls, runs, says, live } = setUp(answered);
    runs('quiet');
    const { say } = says('loud');
    extender.start();
    await live(4500);
    say('1');
    await live(1);
    say('2');
    await live(3000);
    expect(calls).toEqual(['0: quiet -, loud -', '4500: loud 1', '5000: quiet -, loud 2']);
    await extender.stop();
  });

  it('is sent again after a call that failed, and not after one that was refused', async () => {
    let reply: () => Promise<ExtendReply> = answered;
    const { extender, calls, says, live, told } = setUp(() => reply());
    const { say } = says('loud');
    extender.start();
    await live(10);
    calls.splice(0);
    reply = () => Promise.reject(new Error('LOADING Redis is loading the dataset in memory'));
    say('1');
    await live(100);
    reply = async () => 'fenced';
    await live(1500);
    expect(calls.splice(0)).toEqual(['10: loud 1', '1010: loud 1']);
    expect(told).toEqual([]);
    await live(2000);
    expect(calls).toEqual([]);
    await extender.stop();
  });

  it('is not sent when its handler has ended', async () => {
    const { extender, inFlight, calls, says, live } = setUp(answered);
    const { entry, say } = says('loud');
    extender.start();
    await live(10);
    say('1');
    await live(1);
    say('2');
    inFlight.handlerEnded(entry);
    await live(2000);
    expect(calls).toEqual(['0: loud -', '10: loud 1']);
    await extender.stop();
  });
});

it('what handlers said goes out right before the extension of their leases, which waits for no answer to it', async () => {
  const { extender, calls, runs, talks } = setUp(answered);
  runs('quiet');
  const held = talks('talks', 'one', 'two');
  await extender.pass();
  expect(calls).toEqual(['0: talks said one,two', '0: quiet -, talks -']);
  expect(extendedMs(held)).toBe(0);
});
