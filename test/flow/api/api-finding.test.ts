/** Jobs by what they are: listed, counted, and changed by a filter, slice after slice. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { auditEntries } from '../../../src/access/audit.ts';
import { createClient } from '../../../src/client/client.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { type Answered, type ServedApi, serveApi } from '../../support/api.ts';

let api: ServedApi;
const day = (nth: number) => `2030-01-0${nth}T00:00:00Z`;

beforeAll(async () => {
  api = await serveApi({ roles: ['http', 'mover'], queues: { kept: { history: true } } });
  const jobs = Array.from({ length: 30 }, (_, nth) => ({
    id: `${nth % 2 === 0 ? 'even' : 'odd'}-${nth}`,
    name: nth % 3 === 0 ? 'third' : 'other',
    at: day(1 + (nth % 5)),
    tags: [`of:${nth % 5}`],
  }));
  await api.ask('POST /v1/queues/emails/batch/schedule', { body: { jobs } });
});
afterAll(() => api.stop());

const idsOf = ({ body }: Answered): readonly string[] => body.jobs.map(({ id }: { id: string }) => id);

/** Of all pages. */
async function allOf(path: string): Promise<readonly string[]> {
  const ids: string[] = [];
  let page = await api.ask(`GET ${path}`);
  for (;;) {
    expect(page.status, page.text).toBe(200);
    ids.push(...idsOf(page));
    if (page.body.cursor === undefined) return ids;
    page = await api.ask(`GET ${path}&cursor=${page.body.cursor}`);
  }
}

describe('jobs that wait', () => {
  test.each([
    ['tag=of:1', 6],
    ['name=third', 10],
    ['idPrefix=odd-', 15],
    [`dueFrom=${day(2)}&dueTo=${day(4)}`, 12],
    [`idPrefix=even-&name=third&dueFrom=${day(1)}`, 5],
    ['state=scheduled,ready,running', 30],
    ['state=running', 0],
    ['failed=true', 0],
    ['failed=false&tag=of:1', 6],
  ])('are found by %s, each on one page', async (filter, wanted) => {
    const ids = await allOf(`/v1/queues/emails/jobs?limit=4&${filter}`);
    expect(ids).toHaveLength(wanted);
    expect(new Set(ids).size).toBe(wanted);
    const counted = await api.ask(`GET /v1/queues/emails/count?${filter}`);
    expect(counted.body).toMatchObject({ queue: 'emails', count: wanted });
    expect(counted.body.cursor).toBeUndefined();
  });

  test('say what is wrong with a filter', async () => {
    const times = `dueFrom=${day(2)}&dueTo=${day(1)}`;
    for (const wrong of ['state=done,over', 'dueFrom=tomorrow', times, 'tag=%20', 'failed=yes']) {
      const answered = await api.ask(`GET /v1/queues/emails/jobs?${wrong}`);
      expect(answered, wrong).toMatchObject({ status: 400, body: { code: 'bad-input' } });
    }
    const ended = await api.ask(`GET /v1/queues/emails/jobs?endedFrom=${day(1)}`);
    expect(ended.body.detail).toContain('due.from and due.to');
  });

  test('have a cursor that goes with their filter alone', async () => {
    const { body } = await api.ask('GET /v1/queues/emails/jobs?limit=4&tag=of:1');
    const other = await api.ask(`GET /v1/queues/emails/jobs?limit=4&tag=of:2&cursor=${body.cursor}`);
    expect(other).toMatchObject({ status: 400, body: { code: 'bad-input' } });
  });
});

describe('jobs of all queues', () => {
  beforeAll(async () => {
    await api.ask('POST /v1/queues/sms/batch/schedule', {
      body: { jobs: [1, 3, 5].map((nth) => ({ id: `s${nth}`, at: day(nth), tags: ['of:1'] })) },
    });
  });

  test('come by due time, each on one page, and are of some queues where these are named', async () => {
    const rows = async (query: string) => {
      const { body } = await api.ask(`GET /v1/jobs?limit=1000&${query}`);
      expect(body.unread).toEqual([]);
      return body.jobs.map(({ queue, id }: { queue: string; id: string }) => `${queue} ${id}`);
    };
    const all = await rows('queue=emails,sms');
    expect(all).toHaveLength(33);
    expect(await allOf('/v1/jobs?limit=4&queue=emails,sms&sort=due')).toEqual(
      all.map((one: string) => one.split(' ')[1]),
    );
    expect(await rows('tag=of:1&dueTo=2030-01-02T00:00:00Z')).toEqual(['sms s1']);
    expect(await rows('id=s3')).toEqual(['sms s3']);
    expect(await rows('state=scheduled&idPrefix=s&queue=sms')).toEqual(['sms s1', 'sms s3', 'sms s5']);
    const sorted = await api.ask('GET /v1/queues/emails/jobs?sort=due&tag=of:1&limit=1000');
    const dues = sorted.body.jobs.map(({ dueMs }: { dueMs: number }) => dueMs);
    expect([dues.length, dues]).toEqual([6, dues.toSorted()]);
  });

  test('are those of the queues that a token may read', async () => {
    const token = await api.tokenOf({ scopes: ['read'], queues: ['sms'] });
    const { body } = await api.ask('GET /v1/jobs', { token });
    expect(idsOf({ body } as Answered)).toEqual(['s1', 's3', 's5']);
    expect((await api.ask('GET /v1/jobs?queue=sms', { token })).status).toBe(200);
    expect((await api.ask('GET /v1/jobs?queue=sms,emails', { token })).status).toBe(403);
    expect((await api.ask('GET /v1/dead?queue=emails', { token })).status).toBe(403);
    expect((await api.ask('GET /v1/dead', { token })).status).toBe(200);
    for (const wrong of ['queue=none', 'queue=sms,none']) {
      expect((await api.ask(`GET /v1/jobs?${wrong}`)).status, wrong).toBe(404);
    }
    for (const wrong of ['queue=A', 'sort=id', 'ranFrom=soon', `ranFrom=${day(2)}&ranTo=${day(1)}`, 'id=a&set=b']) {
      expect((await api.ask(`GET /v1/jobs?${wrong}`)).status, wrong).toBe(400);
    }
  });
});

describe('jobs that are over', () => {
  test('are listed without a history within the done window, by their state alone', async () => {
    await api.ask('POST /v1/queues/short/batch/schedule', { body: { jobs: [{ id: 'a', delay: '1h' }] } });
    await api.ask('DELETE /v1/queues/short/jobs/a');
    const all = await api.ask('GET /v1/queues/short/jobs?state=cancelled');
    expect(all.body).toMatchObject({ states: ['cancelled'], jobs: [{ id: 'a', state: 'cancelled' }] });
    await api.ask('POST /v1/queues/short/batch/schedule', { body: { jobs: [{ id: 'b', delay: '1h' }] } });
    expect(await allOf('/v1/queues/short/jobs?limit=1&state=cancelled,scheduled')).toEqual(['b', 'a']);
    const named = await api.ask('GET /v1/queues/short/jobs?state=cancelled&name=x');
    expect(named).toMatchObject({ status: 400, body: { detail: expect.stringContaining('keeps no history') } });
    const dead = await api.ask('GET /v1/queues/short/jobs?state=dead&tag=x');
    expect(dead.body.detail).toContain('/v1/queues/short/dead');
  });

  test('are found by name, tag, id and end in the history of their queue', async () => {
    const queue = defineQueue('kept', { history: { keep: '1d' } });
    const worker = createWorker(queue, () => undefined, { redis: api.redis.url });
    const producer = createClient({ redis: api.redis.url });
    const ended = new Promise<void>((resolve) => {
      let left = 6;
      worker.events.on('job.completed', () => {
        left -= 1;
        if (left === 0) resolve();
      });
    });
    await worker.start();
    for (let nth = 0; nth < 6; nth += 1) {
      await producer.schedule(queue, null, { id: `k${nth}`, name: nth < 4 ? 'first' : 'last', tags: [`t${nth % 2}`] });
    }
    await ended;
    await worker.stop();
    await producer.close();
    const of = (filter: string) => allOf(`/v1/queues/kept/jobs?state=done&limit=2&${filter}`);
    expect((await of('')).toSorted()).toEqual(['k0', 'k1', 'k2', 'k3', 'k4', 'k5']);
    expect((await of('name=first&tag=t1')).toSorted()).toEqual(['k1', 'k3']);
    expect(await of('idPrefix=k5')).toEqual(['k5']);
    expect([await of('failed=true&name=last'), await of('failed=false&idPrefix=k5')]).toEqual([[], ['k5']]);
    expect(await of(`endedFrom=${day(1)}`)).toEqual([]);
    const one = await api.ask('GET /v1/queues/kept/jobs?state=done&idPrefix=k5');
    expect(one.body.jobs[0]).toMatchObject({ state: 'done', tags: ['t1'], attempts: 1, overMs: expect.any(Number) });
    const due = await api.ask(`GET /v1/queues/kept/jobs?state=done&dueFrom=${day(1)}`);
    expect(due).toMatchObject({ status: 400, body: { detail: expect.stringContaining('ended.from and ended.to') } });
  });
});

describe('a shift', () => {
  test('is seen before it is made, and its moves are made once', async () => {
    await api.ask('POST /v1/queues/ladder/batch/schedule', {
      body: { jobs: [1, 2].map((nth) => ({ id: `l${nth}`, at: day(nth), tags: ['x'] })) },
    });
    const body = { filter: { tag: 'x' }, dryRun: true, due: { shift: '1d' } };
    const dry = await api.ask('POST /v1/queues/ladder/batch/reschedule', { body });
    const [one, two, three] = [1, 2, 3].map((nth) => Date.parse(day(nth)));
    expect(dry.body.moves).toMatchObject([
      { id: 'l1', wasMs: one, dueMs: two },
      { id: 'l2', wasMs: two, dueMs: three },
    ]);
    const jobs = dry.body.moves.map(({ id, dueMs, etag }: { id: string; dueMs: number; etag: string }) => ({
      id,
      at: new Date(dueMs).toISOString(),
      ifMatch: etag,
    }));
    for (const status of ['rescheduled', 'already']) {
      const done = await api.ask('POST /v1/queues/ladder/batch/reschedule', { body: { jobs } });
      expect(done.body.jobs.map((job: { status: string }) => job.status)).toEqual([status, status]);
    }
    const { body: page } = await api.ask('GET /v1/queues/ladder/jobs');
    expect(page.jobs.map(({ dueMs }: { dueMs: number }) => dueMs)).toEqual([two, three]);
  });
});

describe('a change by a filter', () => {
  test('goes on from slice to slice, and the audit says to how many', async () => {
    const filter = { idPrefix: 'odd-', state: ['scheduled'] };
    const dry = await api.ask('POST /v1/queues/emails/batch/cancel', { body: { filter, dryRun: true } });
    expect(dry.body).toMatchObject({ dryRun: true, matched: 15, changed: 0 });
    expect(dry.body.ids).toHaveLength(15);
    const changed: number[] = [];
    let next: string | undefined;
    do {
      const body = { filter, dryRun: false, limit: 6, cursor: next };
      const done = await api.ask('POST /v1/queues/emails/batch/cancel', { body });
      expect(done.status, done.text).toBe(200);
      changed.push(done.body.changed);
      next = done.body.cursor;
    } while (next !== undefined);
    expect(changed.reduce((sum, one) => sum + one, 0)).toBe(15);
    expect(changed[0]).toBe(6);
    expect(await allOf('/v1/queues/emails/jobs?idPrefix=odd-')).toEqual([]);
    const entries = await auditEntries(api.place, { limit: 100 });
    const told = entries.filter(({ verb, target }) => verb === 'jobs.cancel' && target?.includes('state'));
    expect(told.reduce((sum, { count }) => sum + count, 0)).toBe(15);
    expect(told[0]).toMatchObject({ queue: 'emails', target: 'idPrefix odd-, state scheduled' });
    expect(told.flatMap(({ ids = [] }) => ids)).toHaveLength(15);
    const [one] = told[0]?.ids ?? [];
    const asked = await api.ask(
      `GET /v1/audit?verb=jobs&queue=emails&target=${one}&from=${day(1).replace('2030', '2020')}`,
    );
    expect(asked.body.entries.map(({ entry }: { entry: string }) => entry)).toEqual([told[0]?.entry]);
    expect((await api.ask('GET /v1/audit?from=tomorrow')).body.code).toBe('bad-input');
  });

  test('gives all the same due time, whatever time it takes, and ends', async () => {
    const jobs = Array.from({ length: 25 }, (_, nth) => ({ id: `d${nth}`, delay: '10m' }));
    await api.ask('POST /v1/queues/delayed/batch/schedule', { body: { jobs } });
    const filter = { state: 'scheduled' };
    let [next, changed, requests]: [string | undefined, number, number] = [undefined, 0, 0];
    do {
      const body = { filter, due: { delay: '1h' }, dryRun: false, limit: 10, cursor: next };
      const done = await api.ask('POST /v1/queues/delayed/batch/reschedule', { body });
      expect(done.status, done.text).toBe(200);
      [next, changed, requests] = [done.body.cursor, changed + done.body.changed, requests + 1];
      const other = { ...body, due: { delay: '2h' }, cursor: next };
      const refused = next && (await api.ask('POST /v1/queues/delayed/batch/reschedule', { body: other }));
      if (refused) expect(refused.body.detail).toContain('another change');
    } while (next !== undefined && requests < 10);
    expect([next, changed]).toEqual([undefined, 25]);
    const { body } = await api.ask('GET /v1/queues/delayed/jobs?limit=50');
    expect(new Set(body.jobs.map(({ dueMs }: { dueMs: number }) => dueMs)).size).toBe(1);
  });

  test('that says nothing, or is of an unknown queue, is refused', async () => {
    const all = await api.ask('POST /v1/queues/emails/batch/cancel', { body: { filter: {}, dryRun: false } });
    expect(all).toMatchObject({ status: 400, body: { code: 'bad-input' } });
    const body = { filter: { tag: 'x' }, dryRun: false };
    expect((await api.ask('POST /v1/queues/emials/batch/cancel', { body })).status).toBe(404);
    const running = { filter: { state: 'running' }, dryRun: false, due: { delay: '1h' } };
    expect((await api.ask('POST /v1/queues/emails/batch/reschedule', { body: running })).status).toBe(400);
  });
});
