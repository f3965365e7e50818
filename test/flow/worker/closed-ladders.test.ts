/**
 * Ladders of reminders, paid at any moment, with steps that come too late, while workers and the leader are killed: after
 * `close` has resolved no job of its invoice gets a start. What counts is the token of a start, since tokens of a partition
 * only grow and the last one is read when the call has resolved.
 *
 *     LADDERS=100 LADDERS_SEED=7 npx vitest run test/flow/worker/closed-ladders.test.ts
 */
import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { partitionOf } from '../../../src/job/job-id.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { partitionKeys } from '../../../src/redis/keys.ts';
import { numbers, useKilled } from '../../support/killed.ts';
import { isSlice } from '../../tiers.mjs';

const LADDERS = Number(process.env.LADDERS ?? (isSlice ? 100 : 1000));
const SEED = Number(process.env.LADDERS_SEED ?? 1);
const PARTITIONS = 3;
const KILLS = 4;
/** Steps become due, and invoices are paid, within this time. */
const SPAN_MS = 4000;

const reminders = defineQueue<{ invoice: number }>('reminders', { partitions: PARTITIONS });
const { client, redis, lines, kill } = useKilled('ladder-handlers.mjs');

const lastTokens = () =>
  Promise.all(
    Array.from({ length: PARTITIONS }, async (_, partition) => {
      const { meta } = partitionKeys({ namespace: 'duestream', queue: 'reminders', partition });
      return Number((await redis().hget(meta, 'token')) ?? 0);
    }),
  );

const idOf = (invoice: number, step: number) => `invoice:${invoice}:${step}`;
const tagOf = (invoice: number) => `invoice:${invoice}`;
const schedule = (invoice: number, step: number, delayMs: number) =>
  client().schedule(reminders, { invoice }, { id: idOf(invoice, step), tags: [tagOf(invoice)], delay: delayMs });

/** One of two invoices is paid: then its tag is closed, and a step comes too late. */
async function ladder(invoice: number, random: () => number, closed: Map<number, readonly number[]>): Promise<void> {
  const [first, second, third, paidMs] = [random(), random(), random(), random()].map((part) => part * SPAN_MS);
  for (const [step, delayMs] of [first, second, third].entries())
    await schedule(invoice, step, Math.round(delayMs ?? 0));
  if (invoice % 2 === 1) return;
  await pause(paidMs);
  await client().tags.close(reminders, tagOf(invoice), { for: '1h', reason: 'paid' });
  closed.set(invoice, await lastTokens());
  expect(await schedule(invoice, 9, 10)).toMatchObject({ status: 'closed' });
}

test(`of ${LADDERS} ladders no step starts after its invoice is closed (seed ${SEED})`, {
  timeout: 120_000 + 300 * LADDERS,
}, async () => {
  const random = numbers(SEED);
  const closed = new Map<number, readonly number[]>();
  const invoices = Array.from({ length: LADDERS }, (_, invoice) => invoice);
  const kills = {
    everyMs: SPAN_MS / KILLS,
    isOver: (nth: number) => nth === KILLS,
    ofLeader: (nth: number) => nth === 1,
  };
  await Promise.all([kill(kills), ...invoices.map((invoice) => ladder(invoice, random, closed))]);
  const left = async () => Number((await client().count(reminders)).count);
  await expect.poll(left, { timeout: 100_000, interval: 100 }).toBe(0);

  const starts = lines().map((line) => line.split(' '));
  const late = starts.filter(([id = '', token]) => {
    const tokens = closed.get(Number(id.split(':')[1]));
    return tokens !== undefined && Number(token) > (tokens[partitionOf(id, PARTITIONS)] ?? 0);
  });
  expect(late).toEqual([]);
  expect(closed.size).toBe(Math.ceil(LADDERS / 2));
  // Whoever did not pay is reminded.
  const reminded = new Set(starts.map(([id]) => id));
  const unpaid = invoices.filter((invoice) => invoice % 2 === 1);
  const owed = unpaid.flatMap((invoice) => [0, 1, 2].map((step) => idOf(invoice, step)));
  expect(owed.filter((id) => !reminded.has(id))).toEqual([]);
});
