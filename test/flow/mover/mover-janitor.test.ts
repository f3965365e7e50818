/** What the janitor of a led partition removes, and what it never touches. */
import { expect, it } from 'vitest';
import { createEmitter } from '../../../src/job/events.ts';
import { systemClock } from '../../../src/kernel/clock.ts';
import { idle } from '../../../src/kernel/loop.ts';
import { createJanitor } from '../../../src/mover/chores/janitor.ts';
import { elect, type SweepLimits } from '../../../src/redis/scripts/lease.ts';
import { handClock, moverOn } from '../../support/mover-line.ts';
import { eventually, useLine } from '../../support/worker-line.ts';

const line = useLine({ movers: false });

const LIMITS: SweepLimits = {
  batch: 10,
  windowMs: 600_000,
  tombstonesMax: 1000,
  floorMs: 0,
  retentionMs: 600_000,
  deadLettersMax: 1000,
};

function janitorOn(
  term: string | undefined,
  limits: Partial<SweepLimits> = {},
  clock = systemClock,
  promoted = () => 0,
) {
  return createJanitor({
    redis: line.redis,
    ref: line.ref,
    clock,
    events: createEmitter(),
    promoted,
    limits: { ...LIMITS, ...limits },
    leading: () => (term === undefined ? undefined : { term, epoch: 1 }),
  });
}

/** So many tombstones and dead letters of jobs that ran to their end. */
async function ended(count: number) {
  const mover = moverOn(line, { processId: 'm', safetyTickMs: 20 });
  mover.start();
  const worker = await line.worker(
    (job) => {
      if (job.id.startsWith('bad')) throw new Error('no');
    },
    { attempts: 1 },
  );
  await line.plan(...line.many(count, 'good'), ...line.many(count, 'bad'));
  const over = () => worker.heard.of('job.completed').length + worker.heard.of('job.dead').length;
  await eventually(over).toBe(2 * count);
  await worker.stop();
  const reply = await elect(line.redis, line.ref, { processId: 'm', leaseMs: 60_000 });
  return reply.term;
}

it('tombstones past the done window and dead letters past their retention go, a batch at a time', async () => {
  const term = await ended(25);
  await new Promise((resolve) => setTimeout(resolve, 5));
  const janitor = janitorOn(term, { windowMs: 0, retentionMs: 0 });
  expect(await janitor.pass()).toBe(5);
  expect(await line.redis.zcard(line.ref.keys.done)).toBe(40);
  janitor.start();
  await eventually(async () => Object.keys(await line.picture())).toEqual([]);
  await janitor.stop();
});

it('above their number the oldest tombstones and dead letters go, although they are young', async () => {
  const term = await ended(12);
  const janitor = janitorOn(term, { tombstonesMax: 20, deadLettersMax: 10 });
  await janitor.pass();
  expect(await line.redis.zcard(line.ref.keys.done)).toBe(20);
  expect(await line.redis.xlen(line.ref.keys.dead)).toBe(10);
  expect(await janitor.pass()).toBe(5000);
});

it('nothing that is young, scheduled or ready is touched', async () => {
  const term = await ended(3);
  await line.plan({ id: 'later', dueMs: Date.now() + 100_000 });
  const before = await line.picture();
  expect(await janitorOn(term).pass()).toBe(5000);
  expect(await line.picture()).toEqual(before);
});

it('who does not lead, or leads no more, removes nothing', async () => {
  await ended(3);
  const before = await line.picture();
  expect(await janitorOn(undefined, { windowMs: 0 }).pass()).toEqual(idle(5000));
  expect(await janitorOn('m:1:60000', { windowMs: 0 }).pass()).toBe(5000);
  expect(await line.picture()).toEqual(before);
});

it('while nothing is promoted and nothing was old it sweeps once a minute, and at once again when something is', async () => {
  const { term } = await elect(line.redis, line.ref, { processId: 'm', leaseMs: 60_000 });
  const clock = handClock();
  const moved = { count: 0 };
  const janitor = janitorOn(term, {}, clock, () => moved.count);
  expect(await janitor.pass()).toBe(5000);
  clock.advance(59_999);
  expect(await janitor.pass()).toEqual(idle(5000));
  moved.count = 1;
  expect(await janitor.pass()).toBe(5000);
  clock.advance(60_000);
  expect(await janitor.pass()).toBe(5000);
  expect(await janitor.pass()).toEqual(idle(5000));
});
