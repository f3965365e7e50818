/** Due jobs that wait for company: how far apart passes are, and who follows the setting. */
import { expect, it } from 'vitest';
import { RHYTHMS } from '../../../src/kernel/rhythm.ts';
import { createServers } from '../../../src/redis/connection/server-clock.ts';
import { controlKeys } from '../../../src/redis/keys.ts';
import { claimNamespace, declareQueue, setQueue } from '../../../src/redis/scripts/queues.ts';
import { daemonOn, handClock, moverOn, restOf } from '../../support/mover-line.ts';
import { HOUR_MS, NAMESPACE, useLine } from '../../support/worker-line.ts';

const line = useLine({ movers: false });

const declare = (queue = line.queue, said = {}) =>
  declareQueue(line.redis, { namespace: NAMESPACE, queue, partitions: 1, ...said });
const readyCount = async () => (await line.picture()).ready?.length ?? 0;

/** A leader that has just promoted the job `a`. */
async function passed(lingerMs: number, own: { readonly batchMax?: number } = {}) {
  const clock = handClock();
  const mover = moverOn(line, { clock, lingerMs, safetyTickMs: HOUR_MS, ...own });
  await mover.pass();
  await line.plan({ id: 'a', dueMs: Date.now() - 5 });
  mover.nudge(String(Date.now() - 5));
  await mover.pass();
  expect(await readyCount()).toBe(1);
  return { mover, clock };
}

it('a job that becomes due after a pass waits until the queue has lingered, counted from that pass', async () => {
  const { mover, clock } = await passed(800);
  await line.plan({ id: 'b', dueMs: Date.now() - 5 });
  mover.nudge(String(Date.now() - 5));
  expect(restOf(await mover.pass())).toBeGreaterThan(600);
  clock.advance(500);
  await mover.pass();
  expect(await readyCount()).toBe(1);
  clock.advance(400);
  await mover.pass();
  expect(await readyCount()).toBe(2);
});

it('a lone job is on time: the queue has lingered long ago', async () => {
  const { mover, clock } = await passed(800);
  clock.advance(5000);
  await line.plan({ id: 'b', dueMs: Date.now() - 5 });
  mover.nudge(String(Date.now() - 5));
  await mover.pass();
  expect(await readyCount()).toBe(2);
});

it('once the clock of Redis was set back, no queue lingers until the time that was', async () => {
  const clock = handClock();
  const server = createServers(line.redis, clock)();
  let backMs = 0;
  const at = () => Date.now() - backMs;
  const serverOf = () => ({ ...server, nowMs: at, latestMs: at, earliestMs: at });
  const mover = moverOn(line, { clock, lingerMs: 800, safetyTickMs: 1000, leaseMs: HOUR_MS, serverOf });
  await mover.pass();
  await mover.pass();
  backMs = HOUR_MS;
  await line.plan({ id: 'a', dueMs: at() - 800 });
  clock.advance(5000);
  await mover.pass();
  expect(await readyCount()).toBe(0);
  await line.plan({ id: 'b', dueMs: at() - 5 });
  backMs -= 900;
  clock.advance(5000);
  await mover.pass();
  expect(await readyCount()).toBe(2);
});

it('a pass that moved as many as it may is followed at once', async () => {
  const { mover, clock } = await passed(800, { batchMax: 10 });
  await line.plan(...line.many(25));
  clock.advance(1000);
  mover.nudge('0');
  expect(restOf(await mover.pass())).toBe(0);
  expect(restOf(await mover.pass())).toBe(0);
  await mover.pass();
  expect(await readyCount()).toBe(26);
});

it('what daemons say holds for queues that say nothing, and what a queue says is followed without a restart', async () => {
  const { queues } = controlKeys(NAMESPACE);
  await declare();
  await claimNamespace(line.redis, NAMESPACE, 20);
  await declare('own', { lingerMs: 0 });
  const daemon = await daemonOn(line, 'd1');
  await daemon.pass();
  const seen = () => Object.fromEntries(daemon.partitions().map(({ ref }) => [ref.queue, ref.lingerMs]));
  expect(seen()).toEqual({ [line.ref.queue]: 20, own: undefined });
  await setQueue(line.redis, { namespace: NAMESPACE, queue: line.ref.queue, lingerMs: 5 });
  for (let beat = 0; beat < RHYTHMS.default.registryBeats; beat += 1) await daemon.pass();
  expect(seen()).toEqual({ [line.ref.queue]: 5, own: undefined });
  expect(await line.redis.hmget(queues, ':lingerMs', 'own:lingerMs')).toEqual(['20', '0']);
});

it('a daemon says it again where the registry was lost, and does not overrule one that said something else', async () => {
  const { queues } = controlKeys(NAMESPACE);
  await line.redis.del(queues);
  await declare();
  const daemon = await daemonOn(line, 'd1', { lingerMs: 20 });
  await daemon.pass();
  expect(await line.redis.hget(queues, ':lingerMs')).toBe('20');
  await claimNamespace(line.redis, NAMESPACE, 0);
  await daemon.pass();
  expect(await line.redis.hget(queues, ':lingerMs')).toBe('0');
});

it('a value that nobody could set says nothing', async () => {
  const { queues } = controlKeys(NAMESPACE);
  await declare();
  await line.redis.hset(queues, `${line.ref.queue}:lingerMs`, '1001', ':lingerMs', 'soon');
  const daemon = await daemonOn(line, 'd1');
  await daemon.pass();
  expect(daemon.partitions().find(({ ref }) => ref.queue === line.queue)?.ref.lingerMs).toBeUndefined();
});
