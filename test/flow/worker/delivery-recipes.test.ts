/** The recipes for effects that happen once, as their readers run them: with killed, stale and repeated starts. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { readNew, reclaim } from '../../../src/redis/scripts/ready.ts';
import { cutCommands } from '../../support/lossy-line.ts';
import { useProcesses } from '../../support/processes.ts';
import { startRedis } from '../../support/redis.ts';
import { read, root } from '../../support/repository.ts';
import { eventually, gate, QUICK, useLine } from '../../support/worker-line.ts';

const FOLDER = 'examples/effectively-once';
const LINES_MAX = 80;
const processes = useProcesses();

test(`each recipe is no more than ${LINES_MAX} lines, and the README says how to run it`, () => {
  const files = readdirSync(join(root, FOLDER)).filter((name) => name.endsWith('.mjs'));
  expect(files).toHaveLength(2);
  const readme = read(`${FOLDER}/README.md`);
  for (const file of files) {
    expect(read(`${FOLDER}/${file}`).split('\n').length).toBeLessThanOrEqual(LINES_MAX);
    expect(readme).toContain(`npx duestream worker ${FOLDER}/${file}`);
  }
});

describe('the SQL recipe', () => {
  const line = useLine();
  let recipe: typeof import('../../../examples/effectively-once/sql-charges.mjs');
  const ONCE = { delivery: 'effectively-once' } as const;
  const charge = (id: string, cents = 500) => ({ id, data: { account: 'ada', cents } });

  beforeAll(async () => {
    recipe = await import('../../../examples/effectively-once/sql-charges.mjs');
  });

  it('refuses a stale worker that wakes up after another one has done its job', async () => {
    const store = await recipe.openStore();
    const door = gate();
    const slow = { jobLease: 86_400_000, beatTtl: 3_600_000, concurrency: 1 };
    const refusals: unknown[] = [];
    const stale = recipe.chargeWith(store, () => door.opened);
    const stuck = await line.worker(
      async (job, context) => {
        try {
          await stale(job as Parameters<typeof stale>[0], context);
        } catch (error) {
          refusals.push(error);
          throw error;
        }
      },
      { ...ONCE, ...slow },
    );
    await line.plan(charge('charge:1'));
    await eventually(() => stuck.heard.of('job.started').length).toBe(1);
    await line.redis.del(`t:v1:{control}:beat:${stuck.consumer}`);
    const other = await line.worker(recipe.chargeWith(store, async () => undefined) as never, {
      ...ONCE,
      ...QUICK,
      jobLease: 300,
      grace: 100,
    });
    await eventually(() => other.heard.of('job.completed').length).toBe(1);
    expect([store.rows(), store.balance('ada')]).toEqual([1, 500]);
    door.open();
    await eventually(() => stuck.heard.of('job.fenced')).toMatchObject([{ id: 'charge:1' }]);
    expect(refusals).toMatchObject([{ message: expect.stringMatching(/^a newer start of this job has charged/) }]);
    expect([store.rows(), store.balance('ada')]).toEqual([1, 500]);
  });

  it('has one row for a job whose worker died after it had written and before it could say so', async () => {
    const store = await recipe.openStore();
    await line.plan(charge('charge:1'));
    await eventually(async () => (await line.picture()).ready?.length).toBe(1);
    const [batch] = await readNew(line.redis, [line.ref], { consumer: 'ghost', count: 1, blockMs: 0 });
    const settings = { consumer: 'ghost', bytesMax: 1000, windowMs: 60_000 };
    const [started] = await line.jobs.start(line.ref, batch?.deliveries ?? [], settings);
    if (started?.kind !== 'run') throw new Error(`the ghost was answered ${started?.kind}`);
    expect(store.write('charge:1', started.token, { account: 'ada', cents: 500 })).toBe(true);
    await reclaim(line.redis, line.ref, { owner: 'ghost', consumer: 'next', idleMs: 0, limit: 1 });
    const worker = await line.worker(recipe.chargeWith(store, async () => undefined) as never, { ...ONCE, ...QUICK });
    await eventually(() => worker.heard.of('job.completed').length).toBe(1);
    expect(worker.heard.of('job.started')).toMatchObject([{ attempt: 2 }]);
    expect([store.rows(), store.balance('ada')]).toEqual([1, 500]);
    expect(store.write('charge:1', started.token, { account: 'ada', cents: 999 })).toBe(false);
    expect(store.balance('ada')).toBe(500);
  });

  it('has one row per job while connections are killed again and again', async () => {
    const store = await recipe.openStore();
    await line.worker(recipe.chargeWith(store, () => sleep(3)) as never, { ...ONCE, concurrency: 3 });
    await line.plan(...Array.from({ length: 300 }, (_, nth) => charge(`charge:${nth}`, nth)));
    for (let cut = 0; cut < 10; cut += 1) {
      await sleep(100);
      await cutCommands(line.redis);
    }
    await eventually(() => line.count('done')).toBe(300);
    expect([store.rows(), store.balance('ada')]).toEqual([300, 44_850]);
  });
});

describe('as worker processes', () => {
  const env = (url: string, more: Readonly<Record<string, string>> = {}) => ({
    DUESTREAM_REDIS_URL: url,
    DUESTREAM_MOVER__LEASE: '1000',
    DUESTREAM_WORKER__JOB_LEASE: '1000',
    DUESTREAM_WORKER__BEAT_TTL: '1000',
    DUESTREAM_WORKER__GRACE: '300',
    ...more,
  });

  it('the Redis recipe credits every account exactly, although workers are killed at their work', async () => {
    const server = await startRedis({ port: true });
    const producer = createClient({ redis: server.url });
    const redis = await server.client();
    try {
      const recipe = (name: string, workMs: number) => {
        const args = ['worker', join(root, FOLDER, 'redis-balances.mjs'), '--log-level', 'debug'];
        return processes.started({
          name,
          args,
          env: env(server.url, { WORK_MS: String(workMs), DUESTREAM_WORKER__CONCURRENCY: '4' }),
        });
      };
      await processes.started({ name: 'daemon', args: ['start', '--roles', 'mover'], env: env(server.url) });
      const ids = Array.from({ length: 40 }, (_, nth) => `credit:${nth}`);
      await producer.scheduleMany(
        'credits',
        ids.map((id, nth) => ({ id, data: { account: `account-${nth % 3}`, cents: nth } })),
      );
      // One dies somewhere between its ends and its next starts, the other in the middle of its work.
      const busy = await recipe('worker 1', 150);
      await busy.logged('job completed');
      await busy.end('SIGKILL');
      const endless = await recipe('worker 2', 600_000);
      await endless.logged('job started');
      await endless.end('SIGKILL');
      await recipe('worker 3', 150);
      const done = async () => Number(await redis.hget('duestream:v1:{credits:0}:meta', 'n.done'));
      await expect.poll(done).toBe(40);
      expect(await redis.hgetall('{credits:0}:balances')).toEqual({
        'account-0': '273',
        'account-1': '247',
        'account-2': '260',
      });
      const statements = await Promise.all(
        [0, 1, 2].map((nth) => redis.lrange(`{credits:0}:statement:account-${nth}`, 0, -1)),
      );
      expect(statements.flat().toSorted()).toEqual(ids.map((id, nth) => `${id} ${nth}`).toSorted());
      expect(Number(await redis.hget('duestream:v1:{credits:0}:meta', 'n.crashed'))).toBeGreaterThan(0);
    } finally {
      await producer.close();
      await server.stop();
    }
  });

  it('the SQL recipe charges', async () => {
    const server = await startRedis({ port: true });
    const producer = createClient({ redis: server.url });
    try {
      await processes.started({ name: 'daemon', args: ['start', '--roles', 'mover'], env: env(server.url) });
      const args = ['worker', join(root, FOLDER, 'sql-charges.mjs')];
      const worker = await processes.started({ name: 'worker', args, env: env(server.url) });
      await producer.schedule('charges', { account: 'ada', cents: 500 }, { id: 'charge:1' });
      expect(await worker.logged('charged')).toMatchObject({ job: 'charge:1', account: 'ada', cents: 500 });
    } finally {
      await producer.close();
      await server.stop();
    }
  });
});
