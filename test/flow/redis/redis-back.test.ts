/** That Redis is back is told by those that it answered, and by nobody else. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createEmitter, type Emitter } from '../../../src/job/events.ts';
import { systemClock } from '../../../src/kernel/clock.ts';
import { createJanitor } from '../../../src/mover/chores/janitor.ts';
import { createRepairer } from '../../../src/mover/chores/repairer.ts';
import type { Leadership } from '../../../src/mover/election/election.ts';
import { Enqueuer } from '../../../src/mover/schedules/enqueuer.ts';
import { close, openCommands, type Redis, whenReady } from '../../../src/redis/connection/connect.ts';
import { partitionRef } from '../../../src/redis/keys.ts';
import { elect } from '../../../src/redis/scripts/lease.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const namespace = 't';
const ref = partitionRef(namespace, { queue: 'q', partition: 0, layoutGeneration: 0 });
let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  server = await startRedis({ appendonly: true });
  redis = openCommands({ redis: { path: server.socketPath }, name: 'test' });
  await whenReady(redis);
});
afterAll(async () => {
  close(redis);
  await server.stop();
});

interface Duty {
  readonly redis: Redis;
  readonly leading: () => Leadership | undefined;
  readonly events: Emitter;
}
const common = { ref, clock: systemClock };
const limits = {
  batch: 10,
  windowMs: 60_000,
  tombstonesMax: 10,
  retentionMs: 60_000,
  deadLettersMax: 10,
  floorMs: 60_000,
};

test.each([
  ['enqueuer', (duty: Duty) => new Enqueuer({ ...common, ...duty, namespace })],
  ['janitor', (duty: Duty) => createJanitor({ ...common, ...duty, limits, promoted: () => 0 })],
  ['repairer', (duty: Duty) => createRepairer({ ...common, ...duty, options: { restMs: 5 } })],
])('a %s that leads no more says nothing of Redis until Redis answers', async (_, create) => {
  const { term, ...elected } = await elect(redis, ref, { processId: 'm', leaseMs: 60_000 });
  let leadership: Leadership | undefined = { term, epoch: 'epoch' in elected ? elected.epoch : 1 };
  let looks = 0;
  const leading = () => {
    looks += 1;
    return leadership;
  };
  const events = createEmitter();
  const said: string[] = [];
  events.on('redis.away', ({ answered }) => said.push(answered ? 'refuses' : 'away'));
  events.on('redis.back', ({ stopped }) => said.push(stopped ? 'stopped' : 'back'));
  const service = create({ redis, leading, events });
  await server.kill('SIGKILL');
  service.start();
  await expect.poll(() => said).toEqual(['away']);
  leadership = undefined;
  const before = looks;
  await expect.poll(() => looks).toBeGreaterThan(before + 2);
  expect(said).toEqual(['away']);
  await server.restart();
  // What a server says that still reads its data may come in between.
  await expect.poll(() => said.at(-1)).toBe('back');
  await service.stop();
  expect(said.filter((one) => one === 'back')).toHaveLength(1);
});
