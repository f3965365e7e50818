/** The one map of what a worker holds. */
import { expect, it } from 'vitest';
import { memberOf } from '../../src/core/codec.ts';
import type { EntryId, Token } from '../../src/core/job.ts';
import { partitionRef } from '../../src/redis/keys.ts';
import { claimOf, createInflight } from '../../src/worker/inflight.ts';

const ref = (partition: number) => partitionRef('t', { queue: 'q', partition, generation: 0 });
const delivery = (entry: string) => ({ entry: entry as EntryId, member: memberOf('a'), dueMs: 1 });
const never = new AbortController().signal;

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
  inflight.remove(held);
  expect([inflight.has(ref(0), '1-0'), inflight.has(ref(1), '1-0'), inflight.size()]).toEqual([false, true, 1]);
});

it('what starts and what runs uses a slot, what is being settled none', () => {
  const inflight = createInflight();
  const held = inflight.add(ref(0), delivery('1-0'));
  expect(inflight.busy()).toBe(1);
  inflight.setPhase(held, 'running');
  expect(inflight.busy()).toBe(1);
  inflight.setPhase(held, 'settling');
  inflight.setPhase(held, 'settling');
  expect([inflight.busy(), inflight.size()]).toEqual([0, 1]);
  inflight.remove(held);
  inflight.remove(held);
  expect([inflight.busy(), inflight.size()]).toEqual([0, 0]);
});

it('a reader waits for a slot, and goes on when one is free', async () => {
  const inflight = createInflight();
  const [first] = [inflight.add(ref(0), delivery('1-0')), inflight.add(ref(0), delivery('2-0'))];
  const free = inflight.whenFree(2, never);
  expect(await settled(free)).toBe(false);
  inflight.setPhase(first, 'settling');
  expect(await settled(free)).toBe(true);
});

it('a reader also waits when twice its slots are being settled: Redis is behind', async () => {
  const inflight = createInflight();
  const held = [1, 2, 3, 4].map((nth) => inflight.add(ref(0), delivery(`${nth}-0`)));
  for (const one of held) inflight.setPhase(one, 'settling');
  const free = inflight.whenFree(2, never);
  expect(await settled(free)).toBe(false);
  if (held[0]) inflight.remove(held[0]);
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
  const held = inflight.add(ref(0), delivery('1-0'));
  inflight.setPhase(held, 'settling');
  const empty = inflight.whenEmpty(never);
  expect(await settled(empty)).toBe(false);
  inflight.remove(held);
  await empty;
});

it('nothing is settled before it has a token', () => {
  const held = createInflight().add(ref(0), delivery('1-0'));
  expect(() => claimOf(held)).toThrow('before it was started');
  held.token = '7' as Token;
  expect(claimOf(held)).toEqual({ entry: '1-0', member: 'j:a', token: '7' });
});
