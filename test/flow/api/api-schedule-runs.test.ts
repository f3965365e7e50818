/** What became of the past instants of a schedule: no leader fires in the first half, so the test says what there was. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listCursor } from '../../../src/client/query/cursor.ts';
import { refsOfQueue } from '../../../src/client/queues/refs.ts';
import { controlKeys } from '../../../src/redis/keys.ts';
import { fireId, fireMember } from '../../../src/schedule/schedule.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { type ServedApi, serveApi } from '../../support/api.ts';

const HOUR_MS = 3_600_000;
const NAME = 'hourly';
/** The last whole hour; the test asks for what was up to it. */
const lastMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
const hour = (ago: number): number => lastMs - ago * HOUR_MS;

interface Run {
  readonly atMs: number;
  readonly id: string;
  readonly fate: string;
  readonly job?: { readonly state: string; readonly attempts: number };
}

const cursorAt = (before: number): string => listCursor('runs', String(before));

describe('past runs of a schedule', () => {
  let api: ServedApi;
  const ask = (what: string, options = {}) => api.ask(what, options);
  const runs = async (query: string) => (await ask(`GET /v1/schedules/${NAME}/runs?${query}`)).body;

  beforeAll(async () => {
    api = await serveApi({ roles: ['http'] });
    const { redis, namespace } = api.place;
    await ask(`PUT /v1/schedules/${NAME}`, { body: { queue: 'reports', every: '1h', overlap: 'queue' } });
    const { schedules } = controlKeys(namespace);
    const stored = JSON.parse((await redis.hget(schedules, NAME)) ?? '{}');
    await redis.hset(schedules, NAME, JSON.stringify({ ...stored, since: hour(30) - 1 }));

    const job = `/v1/queues/reports/jobs/${encodeURIComponent(fireId(NAME, hour(5)))}`;
    for (const ago of [3, 5]) {
      const at = new Date(hour(ago)).toISOString();
      await ask(`POST /v1/schedules/${NAME}/backfill`, { body: { from: at, to: at } });
    }
    await ask(`DELETE ${job}`);
    const [ref] = await refsOfQueue(api.place, 'reports');
    if (!ref) throw new Error('the queue has no partition');
    // Over soon after its due time, as if a worker had been there.
    await redis.zadd(ref.keys.done, 'XX', hour(5) + 1000, fireMember(NAME, hour(5)));
    const state = `${hour(1)} 3 1 ${fireMember(NAME, hour(2))} ${fireMember(NAME, hour(3))} 0`;
    await redis.hset(ref.keys.fired, NAME, state);
  });
  afterAll(() => api.stop());

  test('say of each instant what became of it, the latest first', async () => {
    const { name, queue, runs: found } = await runs(`limit=8&cursor=${cursorAt(lastMs + 1)}`);
    expect({ name, queue }).toEqual({ name: NAME, queue: 'reports' });
    expect(found.map(({ atMs, fate, job }: Run) => [atMs, fate, job?.state])).toEqual([
      [hour(0), 'due', undefined],
      [hour(1), 'missed', undefined],
      [hour(2), 'waits', undefined],
      [hour(3), 'made', 'scheduled'],
      [hour(4), 'missed', undefined],
      [hour(5), 'made', 'cancelled'],
      // Nothing is remembered of what ended before that.
      [hour(6), 'unknown', undefined],
      [hour(7), 'unknown', undefined],
    ]);
    expect(found[3]).toMatchObject({ id: fireId(NAME, hour(3)), dueMs: hour(3), offset: '+00:00' });
    expect(found[3].job).toEqual({ state: 'scheduled', attempts: 0 });
  });

  test('come in pages without a gap, up to the last change of the rule', async () => {
    const seen: number[] = [];
    let cursor: string | undefined = cursorAt(lastMs + 1);
    let pages = 0;
    while (cursor !== undefined) {
      const page = await runs(`limit=7&cursor=${cursor}`);
      seen.push(...page.runs.map(({ atMs }: Run) => atMs));
      cursor = page.cursor;
      pages += 1;
    }
    expect(seen).toEqual(Array.from({ length: 31 }, (_, ago) => hour(ago)));
    expect(pages).toBe(5);
  });

  test('begin now without a cursor, and of a schedule that is paused only those are told whose job is known', async () => {
    const [first] = (await runs('limit=1')).runs;
    expect(first.atMs).toBeGreaterThanOrEqual(hour(0));
    await ask(`POST /v1/schedules/${NAME}/pause`);
    const paused = await runs('limit=5');
    expect(paused.runs.map(({ atMs, fate }: Run) => [atMs, fate])).toEqual([
      [hour(3), 'made'],
      [hour(5), 'made'],
    ]);
    // Nothing of a hundred instants before them is known.
    const older = await runs(`limit=5&cursor=${paused.cursor}`);
    expect([older.runs, older.cursor]).toEqual([[], undefined]);
    const [newest] = (await runs('limit=1')).runs;
    expect(newest.atMs).toBe(hour(3));
  });

  test('are refused beyond a hundred, for another cursor, another schedule, and a token of another queue', async () => {
    expect((await ask(`GET /v1/schedules/${NAME}/runs?limit=101`)).status).toBe(400);
    expect((await ask(`GET /v1/schedules/${NAME}/runs?cursor=abc`)).status).toBe(400);
    expect((await ask('GET /v1/schedules/nobody/runs')).status).toBe(404);
    const token = await api.tokenOf({ scopes: ['read'], queues: ['emails'] });
    expect((await ask(`GET /v1/schedules/${NAME}/runs`, { token })).status).toBe(404);
    const reader = await api.tokenOf({ scopes: ['read'], queues: ['reports'] });
    expect((await ask(`GET /v1/schedules/${NAME}/runs`, { token: reader })).status).toBe(200);
  });
});

describe('a run that a leader fired and a worker ran', () => {
  test('tells its start, how late it was, and its end', async () => {
    const api = await serveApi({ roles: ['http', 'mover'] });
    const worker = createWorker('ticks', async () => undefined, { redis: api.redis.url });
    await worker.start();
    await api.ask('PUT /v1/schedules/each-second', { body: { queue: 'ticks', every: '1s' } });
    const done = async (): Promise<Run | undefined> => {
      const { body } = await api.ask('GET /v1/schedules/each-second/runs');
      return body.runs.find(({ job }: Run) => job?.state === 'done');
    };
    await expect.poll(done).toBeDefined();
    const run = await done();
    expect(run).toMatchObject({
      fate: 'made',
      job: { attempts: 1, startedMs: expect.any(Number), latenessMs: expect.any(Number), overMs: expect.any(Number) },
    });
    await worker.stop();
    await api.stop();
  });
});
