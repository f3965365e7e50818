/** The heartbeat of a worker while what follows it in the same pass is refused. */
import { expect, it } from 'vitest';
import { createEmitter } from '../../../src/job/events.ts';
import { type Clock, systemClock } from '../../../src/kernel/clock.ts';
import { createServers } from '../../../src/redis/connection/server-clock.ts';
import { createHeartbeat } from '../../../src/worker/recover/heartbeat.ts';
import { eventually, NAMESPACE, useLine } from '../../support/worker-line.ts';

const line = useLine();

/** Its queue cannot be declared while a key of that kind is of a wrong type. Says how often it tried in vain. */
function heartbeatOf(id: string, beatTtlMs: number, clock: Clock = systemClock) {
  let refused = 0;
  const identity = { id, role: 'worker' as const, host: 'h', pid: 1, startedMs: 0, queues: [line.queue] };
  const heartbeat = createHeartbeat({
    redis: line.redis,
    namespace: NAMESPACE,
    identity,
    beatTtlMs,
    clock,
    server: createServers(line.redis, systemClock)(),
    events: createEmitter(),
    async onBeat() {
      await line.redis.hget('declared', line.queue).catch((error: unknown) => {
        refused += 1;
        throw error;
      });
    },
  });
  line.onEnd(async () => {
    await heartbeat.stop();
    await heartbeat.leave();
  });
  return { ...heartbeat, refused: () => refused };
}

it('beats as often as ever while a refusal that only a person can repair goes on', async () => {
  line.onEnd(() => line.redis.del('declared'));
  const short = heartbeatOf('short', 150);
  const long = heartbeatOf('long', 60_000);
  await short.start();
  await long.start();
  await line.redis.set('declared', 'x');
  long.wake();
  // Compared with one that looks again every 2 to 4 s.
  await eventually(async () => long.refused()).toBe(4);
  expect(short.refused()).toBeGreaterThan(12);
});

it('is steady since the first pass after the last that failed', async () => {
  line.onEnd(() => line.redis.del('declared'));
  const heartbeat = heartbeatOf('it', 60_000);
  expect(heartbeat.steadySinceMs()).toBe(Number.POSITIVE_INFINITY);
  await heartbeat.start();
  const firstMs = heartbeat.steadySinceMs();
  heartbeat.wake();
  await eventually(async () => heartbeat.lastProgressMs()).toBeGreaterThan(firstMs);
  expect(heartbeat.steadySinceMs()).toBe(firstMs);
  await line.redis.set('declared', 'x');
  heartbeat.wake();
  await eventually(async () => heartbeat.steadySinceMs()).toBe(Number.POSITIVE_INFINITY);
  await line.redis.del('declared');
  heartbeat.wake();
  await eventually(async () => heartbeat.steadySinceMs()).toBeLessThan(Number.POSITIVE_INFINITY);
  expect(heartbeat.steadySinceMs()).toBeGreaterThan(firstMs);
});

it('is steady anew after a beat that came late, although it did not fail', async () => {
  let nowMs = 1000;
  const heartbeat = heartbeatOf('late', 300, { ...systemClock, monotonicMs: () => nowMs });
  await heartbeat.pass();
  nowMs = 1200;
  await heartbeat.pass();
  expect(heartbeat.steadySinceMs()).toBe(1000);
  nowMs = 1401;
  await heartbeat.pass();
  expect(heartbeat.steadySinceMs()).toBe(1401);
});
