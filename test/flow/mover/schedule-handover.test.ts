/**
 * Leaders change around the instants of schedules, a thousand times (200 in `npm test`), in virtual time on a real Redis: the old one dies
 * before it fires, is cut off while it fires, fires and never learns it, goes on as if it still led, or fires in time.
 * Every instant becomes exactly one job, whatever happens.
 */
import { expect, test } from 'vitest';
import { idOf } from '../../../src/job/codec.ts';
import { createEmitter } from '../../../src/job/events.ts';
import { systemClock } from '../../../src/kernel/clock.ts';
import { Enqueuer } from '../../../src/mover/schedules/enqueuer.ts';
import { controlKeys } from '../../../src/redis/keys.ts';
import { elect } from '../../../src/redis/scripts/lease.ts';
import { arm } from '../../../src/redis/scripts/schedules.ts';
import type { ScheduleInput } from '../../../src/schedule/input.ts';
import { firedBy, recurrenceOf } from '../../../src/schedule/schedule.ts';
import { defineSchedule, encodeDefinition } from '../../../src/schedule/text.ts';
import { seeded } from '../../chaos/stage/workload.mjs';
import { fires } from '../../support/instants.ts';
import { cutOff, luaOf } from '../../support/model-cut.ts';
import { T0, usePartition } from '../../support/partition.ts';
import { isSlice } from '../../tiers.mjs';

const p = usePartition();
const HANDOVERS = isSlice ? 200 : 1000;
const LEASE_MS = 5000;
/** A Sunday with a clock change in New York lies within the time that is played. */
const FROM_MS = Date.parse('2026-03-07T22:00:00Z');

const SCHEDULES: Readonly<Record<string, ScheduleInput>> = {
  minutely: { queue: 'q', every: '1m', catchUp: 'all' },
  hourly: { queue: 'q', cron: '7 * * * *', zone: 'America/New_York', catchUp: 'all' },
  nightly: { queue: 'q', cron: '30 2 * * *', zone: 'America/New_York', catchUp: 'all' },
  jittered: { queue: 'q', cron: '*/10 * * * *', jitter: '30s', catchUp: 'all' },
};

let nowMs = FROM_MS;

/** A daemon that believes in its term until it is told otherwise; the returned call fires all that is due. */
async function lead(processId: string): Promise<() => Promise<void>> {
  await p.redis.del(p.keys.leader);
  const reply = await elect(p.redis, p.ref, { processId, leaseMs: LEASE_MS, nowMs });
  if (reply.kind !== 'elected') throw new Error('the lease was not free');
  const { term, epoch } = reply;
  const enqueuer = new Enqueuer({
    redis: p.redis,
    ref: p.ref,
    namespace: 't',
    clock: systemClock,
    events: createEmitter(),
    leading: () => ({ term, epoch }),
    nowMs: () => nowMs,
  });
  return async () => {
    while ((await enqueuer.pass()) === 0);
  };
}

async function put(schedules: Readonly<Record<string, ScheduleInput>>, sinceMs: number): Promise<void> {
  for (const [name, input] of Object.entries(schedules)) {
    const definition = defineSchedule(name, input, { sinceMs, source: 'call' });
    await p.redis.hset(controlKeys('t').schedules, name, encodeDefinition(definition));
    await arm(p.redis, p.ref, name);
  }
}

/** The instants whose jobs are there. */
async function madeBy(name: string): Promise<readonly number[]> {
  const jobs = await p.redis.hkeys(p.keys.jobs);
  const of = jobs.map((member) => firedBy(idOf(member).id)).filter((fired) => fired?.schedule === name);
  return of.map((fired) => fired?.atMs ?? 0).sort((a, b) => a - b);
}

function instantsOf(name: string, untilMs: number): readonly number[] {
  const { schedule } = defineSchedule(name, SCHEDULES[name] ?? { queue: '' }, { sinceMs: FROM_MS, source: 'call' });
  const instants: number[] = [];
  for (const atMs of fires(recurrenceOf(schedule), FROM_MS)) {
    if (atMs > untilMs) break;
    instants.push(atMs);
  }
  return instants;
}

test(`${HANDOVERS} hand-overs around instants: one job per instant, none missed`, async () => {
  const random = seeded(7);
  const seen = { cutOff: 0, atOnce: 0 };
  await put(SCHEDULES, FROM_MS);
  for (let handover = 0; handover < HANDOVERS; handover += 1) {
    const first = await lead(`a${handover}`);
    // Somewhere around the next full minute.
    nowMs = Math.ceil((nowMs + 1) / 60_000) * 60_000 + Math.round((random() - 0.5) * 100);
    const what = random();
    if (what < 0.25) {
      const cut = { verb: 'fire', lua: luaOf('fire'), allowed: Math.floor(random() * 6), call: first };
      if ((await cutOff(p.redis, cut)) !== undefined) seen.cutOff += 1;
    } else if (what < 0.5) await first();
    // Else it died before it did anything.
    const second = await lead(`b${handover}`);
    const isAtOnce = random() < 0.3;
    if (isAtOnce) seen.atOnce += 1;
    await Promise.all(isAtOnce ? [second(), first()] : [second()]);
  }
  nowMs += 120_000;
  await (await lead('last'))();

  expect(seen.cutOff).toBeGreaterThan(HANDOVERS / 20);
  expect(seen.atOnce).toBeGreaterThan(HANDOVERS / 5);
  for (const name of Object.keys(SCHEDULES)) expect(await madeBy(name)).toEqual(instantsOf(name, nowMs));
  const jobs = await p.redis.hlen(p.keys.jobs);
  expect(await p.redis.zcard(p.keys.scheduled)).toBe(jobs);
  // A script that was cut off has not counted what it made.
  await p.redis.hset(p.keys.meta, 'n.scheduled', jobs);
});

test('a daemon whose clock is wrong by an hour fires nothing early and misses nothing', async () => {
  await put({ hourly: { queue: 'q', cron: '0 * * * *' } }, T0);
  const term = await p.lead();
  for (const skewMs of [3_600_000, -3_600_000]) {
    const clock = { ...systemClock, wallMs: () => systemClock.wallMs() + skewMs };
    const enqueuer = new Enqueuer({
      redis: p.redis,
      ref: p.ref,
      namespace: 't',
      clock,
      events: createEmitter(),
      leading: () => ({ term, epoch: 1 }),
    });
    while ((await enqueuer.pass()) === 0);
    const [seconds] = await p.redis.time();
    const hourMs = Math.floor(Number(seconds) / 3600) * 3_600_000;
    const made = await madeBy('hourly');
    expect(made.length).toBe(1);
    expect(hourMs - (made[0] ?? 0)).toBeLessThanOrEqual(3_600_000);
    expect(made[0]).toBeLessThanOrEqual(hourMs);
  }
});
