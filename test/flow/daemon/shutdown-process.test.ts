/** What a signal does to a process: it finishes or hands back what it runs, and leaves with the right status. */
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { decodeRun, memberOf } from '../../../src/job/codec.ts';
import type { Redis } from '../../../src/redis/connection/connect.ts';
import { partitionKeys } from '../../../src/redis/keys.ts';
import { type Effect, HANDLERS, readEffects, SHORT_LEASES } from '../../support/effects.ts';
import { useProcesses } from '../../support/processes.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const GRACE_MS = 1000;
/** No test waits for its end. */
const ENDLESS_MS = 600_000;
const QUEUE = 'effects';

const processes = useProcesses();
const keys = partitionKeys({ namespace: 'duestream', queue: QUEUE, partition: 0 });
let server: TestRedis;
let redis: Redis;
let born = 0;

beforeAll(async () => {
  server = await startRedis();
  redis = await server.client();
});
beforeEach(() => redis.flushall());
afterAll(() => server.stop());

interface Wish {
  /** How long a handler takes, or how long at each attempt. */
  readonly ms: number | readonly number[];
  readonly stubborn?: boolean;
  /** How long the worker may take to stop. */
  readonly graceMs?: number;
}

/** A daemon, a worker, and a job of this kind that runs. */
async function scene({ graceMs = GRACE_MS, ...data }: Wish) {
  born += 1;
  const file = join(processes.folder, `effects-${born}.jsonl`);
  const env = {
    ...SHORT_LEASES,
    DUESTREAM_REDIS_URL: server.url,
    DUESTREAM_WORKER__SHUTDOWN: String(graceMs),
    EFFECTS_FILE: file,
  };
  const startWorker = (name: string) => processes.started({ name, args: ['worker', HANDLERS, '--queue', QUEUE], env });
  const daemon = await processes.started({ name: 'daemon', args: ['start', '--roles', 'mover'], env });
  const worker = await startWorker('worker');
  await withClient((producer) => producer.schedule(QUEUE, data, { id: 'job' }));
  const effects = (what: Effect['what']) => readEffects(file).filter((effect) => effect.what === what);
  await expect.poll(() => effects('start')).toHaveLength(1);
  return { daemon, worker, effects, startWorker };
}

/** The job as a producer sees it. */
const look = () => withClient((producer) => producer.get(QUEUE, 'job'));

async function withClient<T>(act: (producer: Client) => Promise<T>): Promise<T> {
  const producer = createClient({ redis: server.url });
  try {
    return await act(producer);
  } finally {
    await producer.close();
  }
}

describe('SIGTERM of a worker', () => {
  test('lets it finish what runs, and it exits with 0', async () => {
    const { worker, effects } = await scene({ ms: 500, graceMs: ENDLESS_MS });
    expect(await worker.end('SIGTERM')).toMatchObject({ code: 0 });
    expect(effects('end')).toHaveLength(1);
    expect(await look()).toMatchObject({ state: 'done', attempts: 1 });
    expect(worker.lines().map(({ msg }) => msg)).toEqual(expect.arrayContaining(['stopping', 'stopped']));
  });

  test.each([
    ['stops when it is told to', false],
    ['ignores that it is told to', true],
  ])('hands a job that outlasts the grace back when its handler %s', async (_, stubborn) => {
    const { worker, effects, startWorker } = await scene({ ms: ENDLESS_MS, stubborn });
    expect(await worker.end('SIGTERM')).toMatchObject({ code: 0 });
    expect(effects('end')).toHaveLength(0);
    const handedBack = decodeRun((await redis.hget(keys.runs, memberOf('job'))) ?? '');
    expect(handedBack).toMatchObject({ failures: 0, crashes: 0, owner: undefined, history: [] });
    expect(await redis.xlen(keys.dead)).toBe(0);

    // Nobody has to find out that a worker is gone: the next one runs it at once.
    await startWorker('next worker');
    await expect.poll(() => effects('start')).toHaveLength(2);
    expect(await look()).toMatchObject({ state: 'running', failures: 0, crashes: 0 });
  });

  test('a second time makes it exit at once, and the job is taken over as from a dead worker', async () => {
    const { worker, effects, startWorker } = await scene({ ms: [ENDLESS_MS, 1], stubborn: true, graceMs: ENDLESS_MS });
    worker.signal('SIGTERM');
    await worker.logged('stopping');
    expect(await worker.end('SIGTERM')).toMatchObject({ code: 1 });
    expect(effects('end')).toHaveLength(0);
    await startWorker('next worker');
    await expect.poll(() => effects('end')).toHaveLength(1);
    expect(effects('start').at(-1)).toMatchObject({ attempt: 2, crashes: 1 });
  });
});

describe('SIGTERM of a daemon', () => {
  test('makes it give its lease back and exit with 0', async () => {
    const { daemon } = await scene({ ms: 1 });
    expect(await redis.exists(keys.leader)).toBe(1);
    expect(await daemon.end('SIGTERM')).toMatchObject({ code: 0 });
    expect(await redis.exists(keys.leader)).toBe(0);
    expect(daemon.lines().at(-1)).toMatchObject({ msg: 'stopped' });
  });
});
