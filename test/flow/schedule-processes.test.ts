/**
 * Thirty hand-overs of leadership with real daemons, while schedules fire every second or two: the leader is killed, or
 * stopped until another leads and then let go on with what it believed. Every instant runs once, none is missed.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { createSchedules } from '../../src/client/schedules.ts';
import { defineQueue } from '../../src/core/queue.ts';
import { fires } from '../../src/core/recurrence.ts';
import { firedBy, recurrenceOf } from '../../src/core/schedule.ts';
import { decodeDefinition } from '../../src/core/schedule-text.ts';
import { controlKeys, partitionKeys } from '../../src/redis/keys.ts';
import { createWorker } from '../../src/worker/worker.ts';
import { type Running, useProcesses } from '../support/processes.ts';
import { startRedis } from '../support/redis.ts';
import { leaderAmong, seeded } from '../support/siege.ts';

const processes = useProcesses();
const QUEUE = 'ticks';
const HANDOVERS = 30;
/** Of those, so many are kills; the others stop the leader and let it go on. */
const KILLS = 10;
const LEASE_MS = 500;
const SCHEDULES = {
  secondly: { queue: QUEUE, every: '1s', catchUp: 'all' },
  jittered: { queue: QUEUE, every: '2s', jitter: '700ms', catchUp: 'all' },
  cron: { queue: QUEUE, cron: '*/2 * * * * *', zone: 'America/New_York', catchUp: 'all' },
} as const;

test(`${HANDOVERS} hand-overs by kill and by pause: one run per instant`, { timeout: 180_000 }, async () => {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const redis = await server.client();
  const keys = partitionKeys({ namespace: 'duestream', queue: QUEUE, partition: 0 });
  const random = seeded(11);
  const runs: { readonly schedule: string; readonly atMs: number }[] = [];
  const worker = createWorker(
    defineQueue(QUEUE),
    async ({ id }) => {
      const fired = firedBy(id);
      if (fired) runs.push(fired);
    },
    { redis: server.url },
  );
  await worker.start();
  onTestFinished(() => worker.stop());

  const runsOf = (name: string, endMs: number) => {
    const of = runs.filter(({ schedule, atMs }) => schedule === name && atMs <= endMs);
    return of.map(({ atMs }) => atMs).sort((a, b) => a - b);
  };

  let born = 0;
  const daemon = () => {
    born += 1;
    const env = { DUESTREAM_REDIS_URL: server.url, DUESTREAM_MOVER__LEASE_MS: String(LEASE_MS) };
    return processes.launch({ name: `daemon ${born}`, args: ['start', '--roles', 'mover'], env });
  };
  const daemons = [daemon(), daemon(), daemon()];
  await Promise.all(daemons.map((one) => one.logged('started')));
  const schedules = await createSchedules({ redis: server.url });
  for (const [name, input] of Object.entries(SCHEDULES)) await schedules.put(name, input);
  await schedules.stop();

  for (let handover = 0; handover < HANDOVERS; handover += 1) {
    const leader = await leaderAmong({ redis, keys }, daemons);
    await sleep(random() * 500);
    const term = await redis.get(keys.leader);
    if (handover % (HANDOVERS / KILLS) === 0) {
      daemons[daemons.indexOf(leader)] = daemon();
      await leader.end('SIGKILL');
      await anotherLeads(term);
    } else await paused(leader, () => anotherLeads(term));
  }

  const untilMs = Math.floor(Date.now() / 1000) * 1000;
  for (const name of Object.keys(SCHEDULES)) {
    const expected = await instantsOf(name, untilMs);
    expect(expected.length).toBeGreaterThan(10);
    await expect.poll(() => runsOf(name, untilMs), { timeout: 15_000, interval: 50 }).toEqual(expected);
  }
  // Nothing came twice a little later.
  await sleep(500);
  for (const name of Object.keys(SCHEDULES)) expect(runsOf(name, untilMs)).toEqual(await instantsOf(name, untilMs));
  console.info(`${HANDOVERS} hand-overs (${KILLS} kills), ${runs.length} runs, none twice, none missed`);

  async function anotherLeads(term: string | null): Promise<void> {
    const other = async () => {
      const now = await redis.get(keys.leader);
      return now !== null && now !== term;
    };
    await expect.poll(other, { timeout: 15_000, interval: 20 }).toBe(true);
  }

  /** By the definition that is stored, from the moment since which it holds. */
  async function instantsOf(name: string, endMs: number): Promise<readonly number[]> {
    const stored = await redis.hget(controlKeys('duestream').schedules, name);
    const { schedule } = decodeDefinition(name, stored ?? '');
    const instants: number[] = [];
    for (const atMs of fires(recurrenceOf(schedule), schedule.sinceMs)) {
      if (atMs > endMs) return instants;
      instants.push(atMs);
    }
    return instants;
  }
});

async function paused(process: Running, meanwhile: () => Promise<void>): Promise<void> {
  process.signal('SIGSTOP');
  try {
    await meanwhile();
  } finally {
    process.signal('SIGCONT');
  }
}
