/** A queue that leaves the registry is let go by every daemon, and is led again once somebody declares it anew. */
import { expect, it } from 'vitest';
import { declareQueue, undeclareQueue } from '../../../src/redis/scripts/queues.ts';
import { daemonOn } from '../../support/mover-line.ts';
import { eventually, NAMESPACE, useLine } from '../../support/worker-line.ts';

const line = useLine({ movers: false, check: false });

const declare = (queue: string) => declareQueue(line.redis, { namespace: NAMESPACE, queue, partitions: 1 });
const channels = async () =>
  (await line.redis.call('PUBSUB', 'SHARDCHANNELS', `${NAMESPACE}:v1:{${line.queue}*`)) as readonly string[];

it('a queue that is removed is led no more, and the others go on', async () => {
  await declare(line.queue);
  await declare('other');
  const daemon = await daemonOn(line, 'd1');
  await daemon.start();
  await eventually(() => daemon.leads() && daemon.leads('other')).toBe(true);
  await undeclareQueue(line.redis, NAMESPACE, line.queue);
  await eventually(() => daemon.partitions().map(({ ref }) => ref.queue)).toEqual(['other']);
  await eventually(() => line.redis.exists(line.ref.keys.leader)).toBe(0);
  expect(daemon.heard.of('leader.lost')).toMatchObject([{ queue: line.queue, why: 'stopped' }]);
  await eventually(channels).toEqual([]);
  expect(daemon.leads('other')).toBe(true);
});

it('a queue that is declared again is led again', async () => {
  await declare(line.queue);
  const daemon = await daemonOn(line, 'd1');
  await daemon.start();
  await eventually(() => daemon.leads()).toBe(true);
  await undeclareQueue(line.redis, NAMESPACE, line.queue);
  await eventually(() => daemon.leads()).toBe(false);
  await declare(line.queue);
  await eventually(() => daemon.leads()).toBe(true);
  await line.plan({ id: 'a' });
  await eventually(async () => (await line.picture()).ready).toEqual(['j:a']);
});
