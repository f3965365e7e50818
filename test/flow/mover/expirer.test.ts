/** The expirer of a led partition: jobs past their expiry that nobody can start end, and give their places back. */
import { expect, test } from 'vitest';
import { createEmitter } from '../../../src/job/events.ts';
import { systemClock } from '../../../src/kernel/clock.ts';
import { idle } from '../../../src/kernel/loop.ts';
import { RHYTHMS } from '../../../src/kernel/rhythm.ts';
import { createExpirer } from '../../../src/mover/chores/expirer.ts';
import { item, T0, usePartition, WINDOW_MS } from '../../support/partition.ts';

const p = usePartition();
const REST = RHYTHMS.default.firesMs;
const drop = { maxLatenessMs: 1000, onLate: 'drop' } as const;
const dead = { maxLatenessMs: 1000, onLate: 'dead' } as const;

async function expirerOn({ isLeader = true, broadcast = false } = {}) {
  const term = await p.lead();
  const events = createEmitter();
  const told: string[] = [];
  events.on('job.expired', ({ id, dead: isDead }) => told.push(`${id} ${isDead ? 'dead' : 'dropped'}`));
  const expirer = createExpirer({
    redis: p.redis,
    ref: p.ref,
    clock: systemClock,
    events,
    namespace: 'test',
    windowMs: WINDOW_MS,
    current: () => ({
      ...p.ref,
      ...(broadcast && { broadcast: { isOn: true, max: 1000, bytes: 1_000_000, ageMs: 1000 } }),
    }),
    leading: () => (isLeader ? { term, epoch: 1 } : undefined),
  });
  return { ...expirer, told };
}

test('a paused queue, and one without a worker, gives the places of late jobs back, and tells it', async () => {
  await p.schedule('ready', { late: dead });
  await p.promote();
  await p.redis.hset(p.keys.meta, 'paused', `${T0} the other side is down`);
  await p.schedule('scheduled', { late: drop });
  await p.schedule('kept');
  const expirer = await expirerOn();
  expect([await expirer.pass(), await expirer.pass()]).toEqual([50, REST]);
  expect(expirer.told).toEqual(['scheduled dropped', 'ready dead']);
  expect([await p.count('expired'), await p.count('dead')]).toEqual([1, 1]);
  expect(await p.picture()).toMatchObject({ scheduled: { 'j:kept': T0 }, dead: ['j:ready: expired'] });
  expect([await expirer.pass(), await expirer.pass(), expirer.told.length]).toEqual([50, REST, 2]);
});

test('many are looked at slice by slice, and more than one call ends them', async () => {
  const items = Array.from({ length: 450 }, (_, nth) => item(`${nth}`, { late: nth % 3 === 0 ? drop : {} }));
  await p.scheduleAll(items.slice(0, 250));
  await p.scheduleAll(items.slice(250));
  const expirer = await expirerOn();
  const rests: unknown[] = [];
  while (rests.at(-1) !== REST && rests.length < 9) rests.push(await expirer.pass());
  expect(rests).toEqual([50, 50, 50, REST]);
  expect([expirer.told.length, await p.redis.zcard(p.keys.scheduled)]).toEqual([150, 300]);
});

test('whoever does not lead, and a broadcast queue, ends none', async () => {
  await p.schedule('a', { late: drop });
  for (const how of [{ isLeader: false }, { broadcast: true }]) {
    const expirer = await expirerOn(how);
    expect([await expirer.pass(), expirer.told]).toEqual([idle(5000), []]);
  }
});
