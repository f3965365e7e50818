/** Definitions are read once and kept, as far as their size allows. */
import { expect, test } from 'vitest';
import { createEmitter } from '../../src/job/events.ts';
import { ScheduleCache } from '../../src/mover/schedules/fire-plan.ts';
import { partitionRef } from '../../src/redis/keys.ts';
import type { ScheduleInput } from '../../src/schedule/input.ts';
import { defineSchedule, encodeDefinition } from '../../src/schedule/text.ts';

const ref = partitionRef('t', { queue: 'q', partition: 0, layoutGeneration: 0 });
const text = (name: string, bytes = 0) =>
  encodeDefinition(
    defineSchedule(name, { queue: 'q', every: '1h', data: 'x'.repeat(bytes) }, { sinceMs: 0, source: 'call' }),
  );
const LARGE = 262_000;

const cacheOf = () => new ScheduleCache({ ref, events: createEmitter() });

test('thousands of small definitions are kept', () => {
  const cache = cacheOf();
  const names = Array.from({ length: 3000 }, (_, at) => `s${at}`);
  const read = names.map((name) => cache.read(name, text(name)));
  expect(names.filter((name, at) => cache.read(name, text(name)) !== read[at])).toEqual([]);
});

test('of large ones the last are kept that fit into 8 MiB; what was used lately stays', () => {
  const cache = cacheOf();
  const names = Array.from({ length: 40 }, (_, at) => `s${at}`);
  const used = cache.read('used', text('used'));
  const read = names.map((name) => {
    cache.read('used', text('used'));
    return cache.read(name, text(name, LARGE));
  });
  expect(cache.read('used', text('used'))).toBe(used);
  expect(cache.read('s39', text('s39', LARGE))).toBe(read[39]);
  expect(cache.read('s0', text('s0', LARGE))).not.toBe(read[0]);
});

test('schedules with the same rule share a recurrence; those with H, another zone or other bounds do not', () => {
  const cache = cacheOf();
  const read = (name: string, input: Partial<ScheduleInput>) => {
    const definition = defineSchedule(name, { queue: 'q', ...input }, { sinceMs: 0, source: 'call' });
    return cache.read(name, encodeDefinition(definition))?.recurrence;
  };
  const daily = read('a', { cron: '0 9 * * *', zone: 'Europe/Berlin' });
  expect(daily).toBeDefined();
  expect(read('b', { cron: '0 9 * * *', zone: 'Europe/Berlin', data: 1 })).toBe(daily);
  expect(read('c', { cron: '0 9 * * *', zone: 'Europe/Paris' })).not.toBe(daily);
  expect(read('d', { cron: '0 9 * * *', zone: 'Europe/Berlin', end: '2030-01-01' })).not.toBe(daily);
  expect(read('e', { cron: 'H 9 * * *' })).not.toBe(read('f', { cron: 'H 9 * * *' }));
});
