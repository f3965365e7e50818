/** The order of the daemons is computed when it changes, and never on the way. */
import { expect, it } from 'vitest';
import { rendezvous } from '../../src/kernel/shares.ts';
import { LeaderOrder } from '../../src/mover/election/election.ts';
import type { Redis } from '../../src/redis/connection/connect.ts';
import type { Identity } from '../../src/redis/scripts/presence.ts';
import { handClock } from '../support/mover-line.ts';

const daemon = (id: string): Identity => ({
  id,
  role: 'daemon',
  host: 'h',
  pid: 1,
  startedMs: 0,
  queues: [],
  beatTtlMs: 15_000,
});
const ids = ['d1', 'd2', 'd3', 'd4', 'd5'];

function setUp({ processId = 'd3', ttls = {} }: { processId?: string; ttls?: Record<string, number> } = {}) {
  const clock = handClock();
  const redis = { pttl: async (key: string) => ttls[key.split(':').at(-1) ?? ''] ?? -2 } as unknown as Redis;
  return { clock, order: new LeaderOrder({ redis, namespace: 't', processId, clock }) };
}

it('before anybody was seen, this process is the first', () => {
  expect(setUp().order.betterFor('key')).toEqual([]);
});

it('those before this process in the order of the key are better', () => {
  for (const processId of ids) {
    const { order } = setUp({ processId });
    order.see(ids.map(daemon), ['key']);
    const best = rendezvous('key', ids);
    expect(order.betterFor('key')).toEqual(best.slice(0, best.indexOf(processId)));
  }
});

it('the order is computed once until the membership changes', () => {
  const { order } = setUp();
  order.see(ids.map(daemon), ['key']);
  const first = order.betterFor('key');
  order.see(ids.toReversed().map(daemon), ['key']);
  expect(order.betterFor('key')).toBe(first);
  order.see(ids.slice(1).map(daemon), ['key']);
  expect(order.betterFor('key')).not.toBe(first);
});

it('a heartbeat counts that was surely sent after the moment in question', async () => {
  const better = rendezvous('key', ids)[0] ?? '';
  const processId = rendezvous('key', ids)[1] ?? '';
  const ttls: Record<string, number> = {};
  const { order, clock } = setUp({ processId, ttls });
  order.see(ids.map(daemon), ['key']);
  const sinceMs = clock.monotonicMs();
  const isThere = () => order.betterBeatSince('key', sinceMs);
  clock.advance(10_000);
  ttls[better] = 5000;
  expect(await isThere()).toBe(false);
  ttls[better] = 5001;
  expect(await isThere()).toBe(true);
  // Longer than it was sent for: the clock of Redis went back, and nobody knows when that was.
  ttls[better] = 15_001;
  expect(await isThere()).toBe(false);
  delete ttls[better];
  expect(await isThere()).toBe(false);
});

it('partitions are led evenly, and all daemons agree by whom', () => {
  const keys = Array.from({ length: 64 }, (_, at) => `{q:${at}}:leader`);
  const four = ids.slice(1);
  const ledBy = four.map((processId) => {
    const { order } = setUp({ processId });
    order.see(four.map(daemon), keys);
    return keys.filter((key) => order.betterFor(key).length === 0);
  });
  expect(ledBy.flat().toSorted()).toEqual(keys.toSorted());
  expect(Math.max(...ledBy.map((led) => led.length)) / 16).toBeLessThanOrEqual(1.5);
});

it('a partition that is new is ranked at once', () => {
  const { order } = setUp();
  order.see(ids.map(daemon), ['key']);
  const others = ids.map((processId) => {
    const other = setUp({ processId }).order;
    other.see(ids.map(daemon), ['key']);
    return other.betterFor('new').length;
  });
  expect(others.toSorted()).toEqual([0, 1, 2, 3, 4]);
  expect(order.betterFor('new').length).toBe(others[2]);
});
