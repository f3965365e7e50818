/** The one map of what a worker holds. */
import { expect, it } from 'vitest';
import { memberOf } from '../../src/job/codec.ts';
import type { EntryId } from '../../src/job/job.ts';
import { partitionRef } from '../../src/redis/keys.ts';
import { abort, claimOf, InFlight, type InFlightEntry, isLeased } from '../../src/worker/run/in-flight.ts';
import { begin, end, running, start } from '../support/running.ts';

const ref = (partition: number) => partitionRef('t', { queue: 'q', partition, layoutGeneration: 0 });
const delivery = (entry: string) => ({ entry: entry as EntryId, member: memberOf('a'), dueMs: 1 });
const never = new AbortController().signal;
const runs = (inFlight: InFlight, entry: string) => running(inFlight, { ref: ref(0), delivery: delivery(entry) });

/** Whether a promise is settled after the microtasks that are waiting. */
async function settled(promise: Promise<unknown>): Promise<boolean> {
  let done = false;
  void promise.then(() => {
    done = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  return done;
}

it('the same entry id in two partitions is two entries', () => {
  const inFlight = new InFlight(4);
  const held = inFlight.add(ref(0), delivery('1-0'));
  inFlight.add(ref(1), delivery('1-0'));
  inFlight.forgotten(held);
  expect([inFlight.has(ref(0), '1-0'), inFlight.has(ref(1), '1-0'), inFlight.size()]).toEqual([false, true, 1]);
});

it('what starts and what runs uses a slot, what is being settled none', () => {
  const inFlight = new InFlight(4);
  const held = inFlight.add(ref(0), delivery('1-0'));
  expect(inFlight.busy()).toBe(1);
  start(inFlight, held);
  expect(inFlight.busy()).toBe(1);
  inFlight.handlerBegan(held, { abort: () => undefined });
  expect(inFlight.busy()).toBe(1);
  inFlight.overtaken(held);
  expect([inFlight.busy(), inFlight.overdue()]).toEqual([1, 1]);
  inFlight.handlerEnded(held);
  expect([inFlight.busy(), inFlight.overdue(), inFlight.size()]).toEqual([0, 0, 1]);
  inFlight.answered(held);
  expect([inFlight.busy(), inFlight.size()]).toEqual([0, 0]);
});

it('a suspect that waits uses no slot and keeps one, until its turn comes', () => {
  const inFlight = new InFlight(3);
  const held = inFlight.add(ref(0), delivery('1-0'));
  inFlight.suspected(held);
  expect([inFlight.suspects(), inFlight.busy(), inFlight.free()]).toEqual([1, 0, 2]);
  inFlight.startsAlone(held);
  expect([inFlight.suspects(), inFlight.busy(), inFlight.free()]).toEqual([0, 1, 2]);
});

it('a slot is lost until its handler ends, also when Redis has answered meanwhile', () => {
  const inFlight = new InFlight(4);
  const held = runs(inFlight, '1-0');
  inFlight.overtaken(held);
  inFlight.slotLost(held);
  inFlight.answered(held);
  expect([inFlight.lost(), inFlight.has(ref(0), '1-0')]).toEqual([1, true]);
  inFlight.handlerEnded(held);
  expect([inFlight.lost(), inFlight.has(ref(0), '1-0')]).toEqual([0, false]);
});

it('a reader waits for a slot, and goes on when one is free', async () => {
  const inFlight = new InFlight(2);
  const [first] = [runs(inFlight, '1-0'), runs(inFlight, '2-0')];
  const free = inFlight.whenFree(never);
  expect(await settled(free)).toBe(false);
  inFlight.handlerEnded(first);
  expect(await settled(free)).toBe(true);
});

it('a reader also waits when twice its slots are being settled: Redis is behind', async () => {
  const inFlight = new InFlight(2);
  const held = [1, 2, 3, 4].map((nth) => runs(inFlight, `${nth}-0`));
  for (const one of held) inFlight.handlerEnded(one);
  const free = inFlight.whenFree(never);
  expect(await settled(free)).toBe(false);
  if (held[0]) inFlight.answered(held[0]);
  expect(await settled(free)).toBe(true);
});

it('every wait ends with its signal, and with an aborted signal at once', async () => {
  const inFlight = new InFlight(1);
  inFlight.add(ref(0), delivery('1-0'));
  const stop = new AbortController();
  const waits = Promise.all([inFlight.whenFree(stop.signal), inFlight.whenEmpty(stop.signal)]);
  expect(await settled(waits)).toBe(false);
  stop.abort();
  await waits;
  await Promise.all([inFlight.whenFree(stop.signal), inFlight.whenEmpty(stop.signal)]);
});

it('empty means that nothing is held, not even what is being settled', async () => {
  const inFlight = new InFlight(4);
  await inFlight.whenEmpty(never);
  const held = runs(inFlight, '1-0');
  inFlight.handlerEnded(held);
  const empty = inFlight.whenEmpty(never);
  expect(await settled(empty)).toBe(false);
  inFlight.answered(held);
  await empty;
});

it('nobody waits for a lost slot whose outcome is settled, whichever came first', async () => {
  for (const last of ['slotLost', 'answered'] as const) {
    const inFlight = new InFlight(4);
    const held = runs(inFlight, '1-0');
    inFlight.overtaken(held);
    inFlight[last === 'slotLost' ? 'answered' : 'slotLost'](held);
    const empty = inFlight.whenEmpty(never);
    expect(await settled(empty)).toBe(false);
    inFlight[last](held);
    expect(await settled(empty)).toBe(true);
  }
});

it('nothing is settled before it has a token, or after it has gone', () => {
  const inFlight = new InFlight(4);
  const held = inFlight.add(ref(0), delivery('1-0'));
  expect(() => claimOf(held)).toThrow('starting and has no token');
  begin(inFlight, held, { token: '7' });
  expect(claimOf(held)).toEqual({ entry: '1-0', member: 'j:a', token: '7' });
  end(inFlight, held);
  expect(() => claimOf(held)).toThrow('gone and has no token');
});

it('an extension that is answered late changes nothing, and neither does an order to stop', () => {
  const told: string[] = [];
  const late = (held: InFlightEntry, inFlight: InFlight) => {
    const { state } = held;
    inFlight.extended(held, 5);
    expect(held.state).toBe(state);
    abort(held, 'lease lost');
  };
  const inFlight = new InFlight(4);
  const held = inFlight.add(ref(0), delivery('1-0'));
  late(held, inFlight);
  start(inFlight, held);
  late(held, inFlight);
  inFlight.handlerBegan(held, { abort: (why) => told.push(why) });
  inFlight.extended(held, 4);
  expect([held.state, isLeased(held), told]).toMatchObject([{ phase: 'running', extendedMs: 4 }, true, []]);
  inFlight.handlerEnded(held);
  late(held, inFlight);
  inFlight.answered(held);
  late(held, inFlight);
  expect([told, isLeased(held)]).toEqual([[], false]);
});

it('a handler is told to stop while it runs, also when its time was up', () => {
  const told: string[] = [];
  const inFlight = new InFlight(4);
  const parts = { ref: ref(0), delivery: delivery('1-0'), abort: (why: string) => told.push(why) };
  const held = running(inFlight, parts);
  abort(held, 'cancelled');
  inFlight.overtaken(held);
  abort(held, 'shutdown');
  expect(told).toEqual(['cancelled', 'shutdown']);
});

it('a bug changes nothing: the counts stay, and the entry is held on', () => {
  const inFlight = new InFlight(4);
  const held = runs(inFlight, '1-0');
  expect(() => inFlight.answered(held)).toThrow('"answered" cannot happen');
  expect(() => inFlight.forgotten(held)).toThrow('"forgotten" cannot happen');
  expect([inFlight.busy(), inFlight.has(ref(0), '1-0'), held.state.phase]).toEqual([1, true, 'running']);
});
