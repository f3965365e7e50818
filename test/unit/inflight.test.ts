/** The one map of what a worker holds. */
import { expect, it } from 'vitest';
import { memberOf } from '../../src/job/codec.ts';
import type { EntryId } from '../../src/job/job.ts';
import { partitionRef } from '../../src/redis/keys.ts';
import { abort, claimOf, createInflight, type Held, type Inflight, isLeased } from '../../src/worker/run/inflight.ts';
import { begin, end, running, start } from '../support/running.ts';

const ref = (partition: number) => partitionRef('t', { queue: 'q', partition, layoutGeneration: 0 });
const delivery = (entry: string) => ({ entry: entry as EntryId, member: memberOf('a'), dueMs: 1 });
const never = new AbortController().signal;
const runs = (inflight: Inflight, entry: string) => running(inflight, { ref: ref(0), delivery: delivery(entry) });

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
  const inflight = createInflight();
  const held = inflight.add(ref(0), delivery('1-0'));
  inflight.add(ref(1), delivery('1-0'));
  inflight.forgotten(held);
  expect([inflight.has(ref(0), '1-0'), inflight.has(ref(1), '1-0'), inflight.size()]).toEqual([false, true, 1]);
});

it('what starts and what runs uses a slot, what is being settled none', () => {
  const inflight = createInflight();
  const held = inflight.add(ref(0), delivery('1-0'));
  expect(inflight.busy()).toBe(1);
  start(inflight, held);
  expect(inflight.busy()).toBe(1);
  inflight.handlerBegan(held, { abort: () => undefined });
  expect(inflight.busy()).toBe(1);
  inflight.overtaken(held);
  expect([inflight.busy(), inflight.overdue()]).toEqual([1, 1]);
  inflight.handlerEnded(held);
  expect([inflight.busy(), inflight.overdue(), inflight.size()]).toEqual([0, 0, 1]);
  inflight.answered(held);
  expect([inflight.busy(), inflight.size()]).toEqual([0, 0]);
});

it('a suspect that waits uses no slot and keeps one, until its turn comes', () => {
  const inflight = createInflight();
  const held = inflight.add(ref(0), delivery('1-0'));
  inflight.suspected(held);
  expect([inflight.suspects(), inflight.busy(), inflight.free(3)]).toEqual([1, 0, 2]);
  inflight.turnCame(held);
  expect([inflight.suspects(), inflight.busy(), inflight.free(3)]).toEqual([0, 1, 2]);
});

it('a slot is lost until its handler ends, also when Redis has answered meanwhile', () => {
  const inflight = createInflight();
  const held = runs(inflight, '1-0');
  inflight.overtaken(held);
  inflight.slotLost(held);
  inflight.answered(held);
  expect([inflight.lost(), inflight.has(ref(0), '1-0')]).toEqual([1, true]);
  inflight.handlerEnded(held);
  expect([inflight.lost(), inflight.has(ref(0), '1-0')]).toEqual([0, false]);
});

it('a reader waits for a slot, and goes on when one is free', async () => {
  const inflight = createInflight();
  const [first] = [runs(inflight, '1-0'), runs(inflight, '2-0')];
  const free = inflight.whenFree(2, never);
  expect(await settled(free)).toBe(false);
  inflight.handlerEnded(first);
  expect(await settled(free)).toBe(true);
});

it('a reader also waits when twice its slots are being settled: Redis is behind', async () => {
  const inflight = createInflight();
  const held = [1, 2, 3, 4].map((nth) => runs(inflight, `${nth}-0`));
  for (const one of held) inflight.handlerEnded(one);
  const free = inflight.whenFree(2, never);
  expect(await settled(free)).toBe(false);
  if (held[0]) inflight.answered(held[0]);
  expect(await settled(free)).toBe(true);
});

it('every wait ends with its signal, and with an aborted signal at once', async () => {
  const inflight = createInflight();
  inflight.add(ref(0), delivery('1-0'));
  const stop = new AbortController();
  const waits = Promise.all([inflight.whenFree(1, stop.signal), inflight.whenEmpty(stop.signal)]);
  expect(await settled(waits)).toBe(false);
  stop.abort();
  await waits;
  await Promise.all([inflight.whenFree(1, stop.signal), inflight.whenEmpty(stop.signal)]);
});

it('empty means that nothing is held, not even what is being settled', async () => {
  const inflight = createInflight();
  await inflight.whenEmpty(never);
  const held = runs(inflight, '1-0');
  inflight.handlerEnded(held);
  const empty = inflight.whenEmpty(never);
  expect(await settled(empty)).toBe(false);
  inflight.answered(held);
  await empty;
});

it('nobody waits for a lost slot whose outcome is settled, whichever came first', async () => {
  for (const last of ['slotLost', 'answered'] as const) {
    const inflight = createInflight();
    const held = runs(inflight, '1-0');
    inflight.overtaken(held);
    inflight[last === 'slotLost' ? 'answered' : 'slotLost'](held);
    const empty = inflight.whenEmpty(never);
    expect(await settled(empty)).toBe(false);
    inflight[last](held);
    expect(await settled(empty)).toBe(true);
  }
});

it('nothing is settled before it has a token, or after it has gone', () => {
  const inflight = createInflight();
  const held = inflight.add(ref(0), delivery('1-0'));
  expect(() => claimOf(held)).toThrow('starting and has no token');
  begin(inflight, held, { token: '7' });
  expect(claimOf(held)).toEqual({ entry: '1-0', member: 'j:a', token: '7' });
  end(inflight, held);
  expect(() => claimOf(held)).toThrow('gone and has no token');
});

it('an extension that is answered late changes nothing, and neither does an order to stop', () => {
  const told: string[] = [];
  const late = (held: Held, inflight: Inflight) => {
    const { state } = held;
    inflight.extended(held, 5);
    expect(held.state).toBe(state);
    abort(held, 'lease lost');
  };
  const inflight = createInflight();
  const held = inflight.add(ref(0), delivery('1-0'));
  late(held, inflight);
  start(inflight, held);
  late(held, inflight);
  inflight.handlerBegan(held, { abort: (why) => told.push(why) });
  inflight.extended(held, 4);
  expect([held.state, isLeased(held), told]).toMatchObject([{ phase: 'running', extendedMs: 4 }, true, []]);
  inflight.handlerEnded(held);
  late(held, inflight);
  inflight.answered(held);
  late(held, inflight);
  expect([told, isLeased(held)]).toEqual([[], false]);
});

it('a handler is told to stop while it runs, also when its time was up', () => {
  const told: string[] = [];
  const inflight = createInflight();
  const parts = { ref: ref(0), delivery: delivery('1-0'), abort: (why: string) => told.push(why) };
  const held = running(inflight, parts);
  abort(held, 'cancelled');
  inflight.overtaken(held);
  abort(held, 'shutdown');
  expect(told).toEqual(['cancelled', 'shutdown']);
});

it('a bug changes nothing: the counts stay, and the entry is held on', () => {
  const inflight = createInflight();
  const held = runs(inflight, '1-0');
  expect(() => inflight.answered(held)).toThrow('"answered" cannot happen');
  expect(() => inflight.forgotten(held)).toThrow('"forgotten" cannot happen');
  expect([inflight.busy(), inflight.has(ref(0), '1-0'), held.state.phase]).toEqual([1, true, 'running']);
});
