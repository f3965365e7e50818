/**
 * This build drains a dump of every frozen version: each job ends as the manifest beside the dump says. The processes of that
 * version wrote both. So does this build with a dump that it makes itself, as `npm run fixture` will for the next release.
 */
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Manifest } from '../../../scripts/fixture/fill.mjs';
import { queuesOf } from '../../../scripts/fixture/queues.mjs';
import { makeDump } from '../../../scripts/fixture.mjs';
import { build } from '../../../scripts/steps.mjs';
import { type Client, createClient } from '../../../src/client/client.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import * as product from '../../../src/index.ts';
import type { Redis } from '../../../src/redis/connection/connect.ts';
import { close, openCommands, whenReady } from '../../../src/redis/connection/connect.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { startServer } from '../../chaos/stage/server.mjs';
import { runHere } from '../../support/console.ts';
import { testBinary } from '../../support/redis-binary.ts';
import { root } from '../../support/repository.ts';

/** Versions whose fixtures are in the repository: `npm run fixture` makes those of the one that is frozen. */
const FROZEN: readonly string[] = ['0.2.0'];
const FIXTURES = join(root, 'test/fixtures');
const MADE_HERE = 'this build';
/** Dead workers are found within seconds. */
const SHORT = { jobLease: '3s', beatTtl: '1500ms', grace: '500ms' } as const;

const found = readdirSync(FIXTURES).filter((name) => existsSync(join(FIXTURES, name, 'manifest.json')));

test('every dump that is there is of a version that this test names, and the other way round', () => {
  expect(found.toSorted()).toEqual(FROZEN.toSorted());
});

describe.each([...FROZEN, MADE_HERE])('the dump of %s', (version) => {
  let place = '';
  let server: Awaited<ReturnType<typeof startServer>>;
  let redis: Redis;
  let producer: Client;
  let manifest: Manifest;

  beforeAll(async () => {
    place = mkdtempSync(join(tmpdir(), 'due-dump-'));
    const binary = await testBinary();
    const folder = version === MADE_HERE ? join(place, 'made') : join(FIXTURES, version);
    if (version === MADE_HERE) {
      await build();
      await makeDump({ binary, folder, version });
    }
    manifest = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'));
    mkdirSync(join(place, 'redis'));
    copyFileSync(join(folder, 'dump.rdb'), join(place, 'redis', 'dump.rdb'));
    server = await startServer({ binary, folder: place, mode: 'none' });
    redis = openCommands({ redis: server.url, name: 'test' });
    await whenReady(redis);
    producer = createClient({ redis: server.url });
  });
  afterAll(async () => {
    await producer.close();
    close(redis);
    await server.stop();
    rmSync(place, { recursive: true, force: true });
  });

  const look = ({ queue, id, bare = false }: Manifest['jobs'][number]) => producer.get(queue, id, { bare });
  const states = (field: 'before' | 'after') => manifest.jobs.map((job) => `${job.queue} ${job.id}: ${job[field]}`);
  const now = async () =>
    Promise.all(manifest.jobs.map(async (job) => `${job.queue} ${job.id}: ${(await look(job))?.state ?? 'unknown'}`));

  /** A job that was over in the dump may have lost its tombstone since. */
  const OVER: ReadonlySet<string> = new Set(['done', 'dead', 'cancelled', 'expired']);
  const ended = async () =>
    (await now()).map((line, at) => {
      const { before = '', after = '' } = manifest.jobs[at] ?? {};
      return OVER.has(before) ? line.replace(/unknown$/, after) : line;
    });

  test('has a job in every state, and is read as it was written', async () => {
    expect(new Set(manifest.jobs.map(({ before }) => before))).toEqual(
      new Set(['scheduled', 'ready', 'running', 'done', 'dead', 'cancelled', 'expired']),
    );
    expect(await now()).toEqual(states('before'));
    const client = createClient({ redis: server.url });
    const schedules = client.schedules;
    expect((await schedules.list()).schedules.map(({ name }) => name)).toEqual(manifest.schedules);
    await client.close();
    expect((await runHere(['doctor', '--keys', '--redis', server.url])).code).toBe(0);
  });

  test('is drained: every job ends as the manifest says, and no handler runs twice', { timeout: 180_000 }, async () => {
    const runs = new Map<string, { times: number; data: unknown }>();
    const handler = (
      { id, data }: { readonly id: string; readonly data: unknown },
      { queue }: { readonly queue: string },
    ) => {
      const key = `${queue} ${id}`;
      runs.set(key, { times: (runs.get(key)?.times ?? 0) + 1, data });
    };
    const works = Object.values(queuesOf(product)).map((queue) => ({
      queue,
      handler: (job: { readonly id: string; readonly data: unknown }) => handler(job, { queue: queue.name }),
    }));
    const daemon = createDaemon({
      redis: { url: server.url },
      roles: ['mover'],
      log: { level: 'fatal' },
      mover: { lease: '1500ms' },
      // A dump may be years old. Its tombstones are swept then, its dead letters must stay.
      done: { window: '30d', max: 1_000_000 },
      dead: { retention: '3650d' },
    });
    const worker = createWorker({ redis: server.url, queues: works, ...SHORT });
    await daemon.start();
    await worker.start();
    expect((await runHere(['queues', 'resume', manifest.paused, '--redis', server.url])).code).toBe(0);
    await expect.poll(ended, { timeout: 120_000 }).toEqual(states('after'));
    await expect
      .poll(
        () =>
          [...runs.values()].filter(({ data }) => (data as { by?: string } | undefined)?.by === manifest.ticking)
            .length,
      )
      .toBeGreaterThan(0);
    await worker.stop();
    await daemon.stop();
    for (const job of manifest.jobs) {
      const ran = runs.get(`${job.queue} ${job.id}`);
      const label = `${job.queue} ${job.id}`;
      if (job.runs !== undefined) expect(ran?.times ?? 0, label).toBe(job.runs);
      if (job.data !== undefined && ran) expect(ran.data, label).toEqual(job.data);
      if (job.attempts !== undefined && !OVER.has(job.before))
        expect((await look(job))?.attempts, label).toBe(job.attempts);
    }
    expect((await runHere(['doctor', '--keys', '--redis', server.url])).code).toBe(0);
  });

  test('gives its dead letters back when they are replayed', async () => {
    const dead = manifest.jobs.find(({ before, runs }) => before === 'dead' && runs === 0);
    if (!dead) throw new Error('the dump has no dead letter');
    expect(await producer.deadLetters.replay(dead.queue, { job: dead.id }, { delay: '1h' })).toMatchObject({
      status: 'scheduled',
    });
    expect((await look(dead))?.state).toBe('scheduled');
  });
});
