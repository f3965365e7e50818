/** The quarantine: a job under which a worker died starts when nothing young runs, and nothing starts beside it. */
import { expect, it } from 'vitest';
import { memberOf } from '../../src/job/codec.ts';
import type { EntryId, Token } from '../../src/job/job.ts';
import type { Clock } from '../../src/kernel/clock.ts';
import { partitionRef } from '../../src/redis/keys.ts';
import { InFlight, type InFlightEntry } from '../../src/worker/run/in-flight.ts';
import { ALONE_MS, createQuarantine } from '../../src/worker/run/quarantine.ts';
import { begin, end } from '../support/running.ts';

const ref = partitionRef('t', { queue: 'q', partition: 0, layoutGeneration: 0 });
const SLOTS = 4;

/** Lets every microtask that waits have its turn. */
const breathe = () => new Promise((resolve) => setImmediate(resolve));

/** A clock that stands still until it is moved on. */
function handClock() {
  let nowMs = 0;
  let timers: { readonly atMs: number; readonly ring: () => void }[] = [];
  const timer = (ms: number, ring: () => void) => {
    const one = { atMs: nowMs + ms, ring };
    timers.push(one);
    return () => {
      timers = timers.filter((other) => other !== one);
    };
  };
  const sleep = (ms: number, signal?: AbortSignal) =>
    new Promise<boolean>((resolve) => {
      const disarm = timer(ms, () => resolve(true));
      signal?.addEventListener('abort', () => {
        disarm();
        resolve(false);
      });
    });
  const clock: Clock = { wallMs: () => nowMs, monotonicMs: () => nowMs, sleep, timer };
  return {
    clock,
    waiting: () => timers.length,
    async advance(ms: number) {
      nowMs += ms;
      const due = timers.filter(({ atMs }) => atMs <= nowMs);
      timers = timers.filter((one) => !due.includes(one));
      for (const { ring } of due) ring();
      await breathe();
    },
  };
}

function setUp() {
  const quarantine = createQuarantine();
  const { clock, advance, waiting } = handClock();
  let nth = 0;
  let giveUp: () => void = () => undefined;
  /** Redis does not answer until the start is given up. */
  const silence = (then: () => void) =>
    new Promise<void>((resolve) => {
      giveUp = () => {
        then();
        resolve();
      };
    });
  /** A worker of this process. */
  const worker = () => {
    const inFlight = new InFlight(4);
    const started: string[] = [];
    const start = async (held: InFlightEntry) => {
      if (held.delivery.member === 'j:broken') throw new Error('no start');
      if (held.delivery.member === 'j:silent') return silence(() => inFlight.forgotten(held));
      begin(inFlight, held, { leasedMs: clock.monotonicMs() });
      started.push(held.delivery.member);
    };
    const membership = quarantine.join({ inFlight, clock, start });
    const add = (id: string) => {
      nth += 1;
      return inFlight.add(ref, { entry: `${nth}-0` as EntryId, member: memberOf(id), dueMs: 1 });
    };
    return {
      inFlight,
      started,
      membership,
      runs(id: string, acknowledged = false): InFlightEntry {
        const held = add(id);
        begin(inFlight, held, { leasedMs: clock.monotonicMs(), acknowledged });
        return held;
      },
      suspect(id: string, token = '1'): InFlightEntry {
        const held = add(id);
        membership.admit(held, token as Token);
        return held;
      },
      ends: async (held: InFlightEntry) => {
        end(inFlight, held);
        await breathe();
      },
    };
  };
  return {
    advance,
    clock,
    waiting,
    worker,
    givesUp: async () => {
      giveUp();
      await breathe();
    },
  };
}

it('a suspect waits for what runs, and nothing new starts meanwhile or beside it', async () => {
  const { worker } = setUp();
  const { inFlight, started, runs, suspect, ends } = worker();
  const [one, two] = [runs('a'), runs('b')];
  const held = suspect('s');
  await breathe();
  expect([inFlight.isOpen(), started]).toEqual([false, []]);
  await ends(one);
  expect(started).toEqual([]);
  await ends(two);
  expect([inFlight.isOpen(), started]).toEqual([false, ['j:s']]);
  await ends(held);
  expect(inFlight.isOpen()).toBe(true);
});

it('a job that is being settled counts as running: its worker may die before Redis has heard of its end', async () => {
  const { worker } = setUp();
  const { inFlight, started, runs, suspect } = worker();
  const held = runs('a');
  inFlight.handlerEnded(held);
  suspect('s');
  await breathe();
  expect(started).toEqual([]);
  inFlight.answered(held);
  await breathe();
  expect(started).toEqual(['j:s']);
});

it('a job that is over in Redis before its handler ends is not waited for', async () => {
  const { worker } = setUp();
  const { started, runs, suspect } = worker();
  runs('a', true);
  suspect('s');
  await breathe();
  expect(started).toEqual(['j:s']);
});

it('a long job holds up a suspect for two seconds at most, and a long suspect the others', async () => {
  const { worker, advance } = setUp();
  const { inFlight, started, runs, suspect } = worker();
  runs('long');
  suspect('s');
  await advance(ALONE_MS - 1);
  expect(started).toEqual([]);
  await advance(1);
  expect([started, inFlight.isOpen()]).toEqual([['j:s'], false]);
  await advance(ALONE_MS);
  expect([inFlight.isOpen(), inFlight.free()]).toEqual([true, SLOTS - 2]);
});

it('short suspects follow each other at once, the one that was started last before the crash first', async () => {
  const { worker } = setUp();
  const { inFlight, started, runs, suspect, ends } = worker();
  const held = runs('a');
  const [old, young, middle] = [suspect('old', '99'), suspect('young', '120'), suspect('middle', '110')];
  await ends(held);
  expect(started).toEqual(['j:young']);
  await ends(young);
  await ends(middle);
  expect(started).toEqual(['j:young', 'j:middle', 'j:old']);
  expect(inFlight.isOpen()).toBe(false);
  await ends(old);
  expect(inFlight.isOpen()).toBe(true);
});

it('between long suspects the others have as long as they waited', async () => {
  const { worker, advance } = setUp();
  const { inFlight, started, suspect } = worker();
  suspect('s', '2');
  suspect('t', '1');
  await breathe();
  await advance(ALONE_MS);
  expect([started, inFlight.isOpen()]).toEqual([['j:s'], true]);
  await advance(ALONE_MS - 1);
  expect([started, inFlight.isOpen()]).toEqual([['j:s'], true]);
  await advance(1);
  expect([started, inFlight.isOpen()]).toEqual([['j:s', 'j:t'], false]);
});

it('workers of one process wait for each other, because they die together', async () => {
  const { worker } = setUp();
  const [one, other] = [worker(), worker()];
  const running = other.runs('a');
  const held = one.suspect('s');
  await breathe();
  expect([one.started, other.inFlight.isOpen()]).toEqual([[], false]);
  await other.ends(running);
  expect(one.started).toEqual(['j:s']);
  await one.ends(held);
  expect(other.inFlight.isOpen()).toBe(true);
});

it('each suspect that waits keeps a slot, so that no more handlers run at once than there are slots', async () => {
  const { worker, advance } = setUp();
  const { inFlight, started, runs, suspect } = worker();
  for (const id of ['s', 't', 'u']) suspect(id);
  await breathe();
  await advance(ALONE_MS);
  expect([started.length, inFlight.isOpen(), inFlight.free()]).toEqual([1, true, 1]);
  runs('fresh');
  expect(inFlight.free()).toBe(0);
  for (let turn = 0; turn < 4; turn += 1) await advance(ALONE_MS);
  expect([started.length, inFlight.busy()]).toEqual([3, SLOTS]);
});

it('of many suspects that run for long, one starts every four seconds', async () => {
  const { worker, advance } = setUp();
  const { started, suspect } = worker();
  for (let nth = 0; nth < 50; nth += 1) suspect(`s${nth}`);
  await breathe();
  for (let turn = 0; turn < 49; turn += 1) {
    expect(started.length).toBe(turn + 1);
    await advance(ALONE_MS);
    await advance(ALONE_MS);
  }
  expect(started.length).toBe(50);
});

it('a worker that leaves takes its suspects along, and no timer stays', async () => {
  const { worker, advance, waiting } = setUp();
  const one = worker();
  const long = one.suspect('s', '2');
  const left = one.suspect('t', '1');
  await breathe();
  await advance(ALONE_MS);
  expect(one.membership.leave()).toEqual([left]);
  await one.ends(long);
  expect([one.inFlight.size(), waiting()]).toEqual([0, 0]);
});

it('while Redis does not answer the start of a suspect nothing else starts, and all goes on once it is given up', async () => {
  const { worker, advance, givesUp, waiting } = setUp();
  const { inFlight, started, suspect, ends } = worker();
  suspect('silent', '2');
  const held = suspect('s', '1');
  await advance(5 * ALONE_MS);
  expect([inFlight.isOpen(), started]).toEqual([false, []]);
  await givesUp();
  expect([inFlight.isOpen(), inFlight.free()]).toEqual([true, SLOTS - 1]);
  await advance(5 * ALONE_MS);
  expect(started).toEqual(['j:s']);
  await ends(held);
  expect([inFlight.isOpen(), waiting()]).toEqual([true, 0]);
});

it('of a worker that left nothing is started, also not when the turn of its suspect had begun', async () => {
  const { worker } = setUp();
  const [one, other] = [worker(), worker()];
  const running = other.runs('a');
  const held = one.suspect('s');
  await breathe();
  expect(one.membership.leave()).toEqual([held]);
  await other.ends(running);
  expect([one.started, other.inFlight.isOpen()]).toEqual([[], true]);
});
