/**
 * The life of jobs where Redis is more than one server: behind sentinels, and in a cluster with a queue over all its
 * masters. The same promises hold as with one primary, also while a replica takes over.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import type { EventSource } from '../../../src/job/events.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { useCli } from '../../support/cli.ts';
import {
  type ClusterOfTests,
  failOver,
  replicated,
  type SentinelOfTests,
  startCluster,
  startSentinel,
  until,
} from '../../support/topology-lite.ts';

interface Place {
  readonly url: string;
  /** A replica takes over. */
  readonly failover: () => Promise<void>;
}

const PARTITIONS = 6;
const cli = useCli();
let cluster: ClusterOfTests;
let sentinel: SentinelOfTests;
const ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  [cluster, sentinel] = await Promise.all([startCluster(), startSentinel({ sentinels: 3 })]);
});
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});
afterAll(() => Promise.all([cluster?.stop(), sentinel?.stop()]));

const places: Readonly<Record<string, () => Place>> = {
  Sentinel: () => sentinel,
  Cluster: () => ({
    url: cluster.url,
    async failover() {
      const takers = [...cluster.masters, ...cluster.replicas];
      const roles = await Promise.all(
        takers.map(async ({ client }) => String(await client.call('ROLE')).split(',')[0]),
      );
      const taker = takers[roles.indexOf('slave')];
      if (!taker) throw new Error('the cluster has no replica');
      await failOver(taker);
    },
  }),
};

describe.each(Object.keys(places))('%s', (name) => {
  const place = () => places[name]?.() ?? Promise.reject(new Error(name));

  test('jobs are scheduled, run, cancelled, and fired by schedules', async () => {
    const { url } = await place();
    const queue = defineQueue('flow', { partitions: PARTITIONS });
    const ran = new Set<string>();
    const daemon = createDaemon({ redis: url, roles: ['mover'] });
    const worker = createWorker(queue, (job) => void ran.add(job.id), { redis: url, concurrency: 12 });
    const producer = createClient({ redis: url });
    const { schedules } = producer;
    ends.push(producer.close, worker.stop, daemon.stop);
    await daemon.start();
    await worker.start();
    expect(daemon.redisLabel).toBe(url);
    await producer.schedule(queue, {}, { id: 'never', delay: '1h' });
    expect((await producer.cancel(queue, 'never')).status).toBe('cancelled');
    const ids = Array.from({ length: 60 }, (_, at) => `job-${at}`);
    await Promise.all(ids.map((id) => producer.schedule(queue, { id }, { id, delay: 50 })));
    await until(() => ids.every((id) => ran.has(id)));
    await schedules.put('often', { queue: 'flow', every: '1s' });
    await until(() => [...ran].some((id) => id.startsWith('{schedule:often}')));
    await schedules.remove('often');
    expect(ran.has('never')).toBe(false);
  });

  test('every verb of the command line that looks around works', async () => {
    const { url } = await place();
    const redis = ['--redis', url, '--json'];
    const said = async (...words: string[]) => {
      const { code, out, err } = await cli.run([...words, ...redis]);
      expect({ words, code, err }).toMatchObject({ code: 0, err: '' });
      return JSON.parse(out);
    };
    const producer = createClient({ redis: url });
    ends.push(producer.close);
    const queue = defineQueue('cli', { partitions: PARTITIONS });
    const ids = Array.from({ length: 12 }, (_, at) => `cli-${at}`);
    await Promise.all(ids.map((id) => producer.schedule(queue, {}, { id, delay: '1h' })));
    expect(JSON.stringify(await said('queues', 'ls'))).toContain('"cli"');
    expect((await said('queues', 'show', 'cli')).queues?.[0] ?? (await said('queues', 'show', 'cli'))).toBeDefined();
    expect(JSON.stringify(await said('ls', 'cli'))).toContain('cli-11');
    expect(JSON.stringify(await said('show', 'cli', 'cli-3'))).toContain('cli-3');
    await said('schedule', 'cli', '--id', 'one-more', '--delay', '1h');
    await said('cancel', 'cli', 'cli-3');
    await said('queues', 'pause', 'cli');
    await said('queues', 'resume', 'cli');
    await said('schedules', 'put', 'hourly', '--queue', 'cli', '--every', '1h');
    expect(JSON.stringify(await said('schedules', 'ls'))).toContain('hourly');
    await said('schedules', 'show', 'hourly');
    await said('schedules', 'rm', 'hourly');
    await said('dead', 'ls', 'cli');
    await said('queues', 'workers');
    await said('queues', 'leaders');
    await said('schedules', 'forecast');
    expect(await said('doctor', '--keys')).toMatchObject({ ok: true });
    // These servers keep nothing on disk, and `doctor` says so.
    const { code, out } = await cli.run(['doctor', ...redis]);
    const checks: { check: string; status: string; saw: string }[] = JSON.parse(out).checks;
    expect({ code, bad: checks.filter(({ status }) => status === 'fail').map(({ check }) => check) }).toEqual({
      code: 1,
      bad: ['persistence'],
    });
    expect(checks[0]?.saw).toContain(url);
  });

  test('a worker with fewer slots than partitions runs every job once, and stops with nothing in its hands', async () => {
    const { url } = await place();
    const queue = defineQueue('narrow', { partitions: PARTITIONS });
    const ran: string[] = [];
    const daemon = createDaemon({ redis: url, roles: ['mover'] });
    const worker = createWorker(queue, (job) => void ran.push(job.id), { redis: url, concurrency: 2 });
    const producer = createClient({ redis: url });
    ends.push(producer.close, worker.stop, daemon.stop);
    await daemon.start();
    await worker.start();
    const ids = Array.from({ length: 60 }, (_, at) => `n-${at}`);
    await Promise.all(ids.map((id) => producer.schedule(queue, {}, { id })));
    await until(() => ids.every((id) => ran.includes(id)));
    await worker.stop();
    expect(ran.toSorted()).toEqual(ids.toSorted());
    const { out } = await cli.run(['doctor', 'narrow', '--redis', url, '--json']);
    expect(JSON.parse(out)).toMatchObject({ ok: true });
  });

  test('a failover while jobs flow loses none, and nobody is told an error', async () => {
    const { url, failover } = await place();
    const queue = defineQueue('failing-over', { partitions: PARTITIONS });
    const ran = new Map<string, number>();
    const wrong: unknown[] = [];
    const daemon = createDaemon({ redis: url, roles: ['mover'] });
    const worker = createWorker(queue, (job) => void ran.set(job.id, (ran.get(job.id) ?? 0) + 1), { redis: url });
    const producer = createClient({ redis: url });
    ends.push(producer.close, worker.stop, daemon.stop);
    const failures: EventSource = worker.events;
    failures.on('job.failed', (failed) => wrong.push(failed));
    await daemon.start();
    await worker.start();
    const ids: string[] = [];
    const put = async (some: readonly string[]) => {
      await Promise.all(some.map((id) => producer.schedule(queue, {}, { id })));
      ids.push(...some);
    };
    let flows = true;
    const flow = (async () => {
      for (let round = 0; flows || round < 30; round += 1) {
        await put(Array.from({ length: 10 }, (_, at) => `f-${round * 10 + at}`));
      }
    })();
    await until(() => ran.size > 50);
    await failover();
    const seen = ran.size;
    await until(() => ran.size > seen + 50);
    flows = false;
    await flow;
    // What a primary behind sentinels acknowledged and had not copied is lost with it: the same calls are made again.
    const scheduled = [...ids];
    if (name === 'Sentinel') for (const id of scheduled) await producer.schedule(queue, {}, { id });
    await until(() => ids.every((id) => ran.has(id)));
    expect(wrong).toEqual([]);
  });
});

test('nothing of all this crossed slots in the cluster, or touched a key that it had not named', async () => {
  for (const { client } of [...cluster.masters, ...cluster.replicas]) {
    const refused = await client.info('errorstats');
    expect(refused).not.toMatch(/errorstat_(CROSSSLOT|WRONGTYPE|NOPERM)/);
    expect(await client.info('stats')).toMatch(/unexpected_error_replies:0/);
  }
});

test('a master that is killed takes no job along that its replica has, and the others go on meanwhile', async () => {
  const { url } = cluster;
  const queue = defineQueue('killed', { partitions: PARTITIONS });
  const ran = new Set<string>();
  const producer = createClient({ redis: url });
  const daemon = createDaemon({ redis: url, roles: ['mover'] });
  const worker = createWorker(queue, (job) => void ran.add(job.id), { redis: url });
  ends.push(worker.stop, daemon.stop, producer.close);
  const ids = Array.from({ length: 60 }, (_, at) => `k-${at}`);
  await Promise.all(ids.map((id) => producer.schedule(queue, {}, { id })));
  const roles = await Promise.all(
    [...cluster.masters, ...cluster.replicas].map(async (one) => ({
      one,
      role: String(await one.client.call('ROLE')),
    })),
  );
  const masters = roles.flatMap(({ one, role }) => (role.startsWith('master') ? [one] : []));
  await Promise.all(masters.map(replicated));
  const [victim] = masters;
  await daemon.start();
  await worker.start();
  await victim?.kill('SIGKILL');
  await until(() => ids.every((id) => ran.has(id)));
  await producer.schedule(queue, {}, { id: 'afterwards' });
  await until(() => ran.has('afterwards'));
});
