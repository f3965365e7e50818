/** Every verb of the API once as it should be, and once as it should not. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import packageJson from '../../../package.json' with { type: 'json' };
import { operations } from '../../../src/client/operations.ts';
import { verbs } from '../../../src/http/api/api.ts';
import { escapedPart, writePart } from '../../../src/kernel/path-part.ts';
import { beat, leave } from '../../../src/redis/scripts/presence.ts';
import { type Answered, type AskOptions, type ServedApi, serveApi } from '../../support/api.ts';
import { buryJobs } from '../../support/buried.ts';

let api: ServedApi;
/** `POST /queues/{queue}/jobs` of the verbs that were asked, well and wrongly. */
const asked = { well: new Set<string>(), wrongly: new Set<string>() };

beforeAll(async () => {
  api = await serveApi({ roles: ['http', 'mover', 'dispatcher'], http: { work: 'on' } });
  await api.ask('POST /v1/queues/emails/batch/schedule', {
    body: { jobs: ['a', 'b', 'c', 'd', 'e/f'].map((id) => ({ id, data: { to: id }, delay: '1h' })) },
  });
});
afterAll(() => api.stop());

/** Asks, and counts for the verb that answers. */
async function ask(what: string, options: AskOptions = {}): Promise<Answered> {
  const answered = await api.ask(what, options);
  const name = verbOf(what);
  (answered.status < 400 ? asked.well : asked.wrongly).add(name);
  return answered;
}

function verbOf(what: string): string {
  const [method = '', path = ''] = what.split(' ');
  const bare = path.replace(/^\/v1|\?.*$/g, '').replace(/\?.*$/, '');
  const found = verbs
    .filter(
      ({ at, method: of }) =>
        of.toUpperCase() === method && new RegExp(`^${at.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(bare),
    )
    .toSorted((a, b) => a.at.split('{').length - b.at.split('{').length);
  return found[0]?.name ?? `none: ${what}`;
}

const problem = (status: number, code: string) => ({ status, body: expect.objectContaining({ status, code }) });

describe('jobs', () => {
  test('are scheduled, and looked at where Location says', async () => {
    const made = await ask('POST /v1/queues/emails/jobs', {
      body: { id: 'x/1', data: { to: 'ada' }, delay: '1h', attempts: 3 },
    });
    expect(made).toMatchObject({ status: 201, body: { id: 'x/1', queue: 'emails', status: 'scheduled' } });
    expect(made.headers.get('location')).toBe(`/v1/queues/emails/jobs/~${Buffer.from('x/1').toString('base64url')}`);
    const seen = await ask(`GET ${made.headers.get('location')}`);
    expect(seen).toMatchObject({
      status: 200,
      body: {
        id: 'x/1',
        state: 'scheduled',
        data: { to: 'ada' },
        hidden: false,
        options: { attempts: 3 },
        dueMs: made.body.dueMs,
      },
    });
    expect(seen.headers.get('etag')).toBe(`"${seen.body.etag}"`);
  });

  test('are seen before they are there', async () => {
    const at = '2035-03-01T09:00:00Z';
    const preview = await ask('POST /v1/queues/emails/preview', { body: { id: 'not-yet', at, attempts: 2 } });
    expect(preview).toMatchObject({
      status: 200,
      body: {
        queue: 'emails',
        name: 'default',
        dueMs: Date.parse(at),
        retries: [{ attempt: 2 }],
        beside: { stepMs: 60_000 },
      },
    });
    expect((await ask('GET /v1/queues/emails/jobs/not-yet')).status).toBe(404);
    expect((await ask('POST /v1/queues/emails/preview', { body: { delay: '-1h' } })).status).toBe(400);
  });

  test('of an id that waits are updated by what they name, in a batch too, and made anew no more when it is over', async () => {
    const at = 'POST /v1/queues/emails/jobs';
    const update = { id: 'moved', ifExists: 'update' };
    await ask(at, { body: { id: 'moved', delay: '1h', data: { to: 'old' }, tags: ['invoice:7'] } });
    const due = '2035-03-01T09:00:00Z';
    const updated = { id: 'moved', queue: 'emails', status: 'updated', dueMs: Date.parse(due) };
    expect(await ask(at, { body: { ...update, data: { to: 'new' }, at: due } })).toMatchObject({
      status: 200,
      body: updated,
    });
    const many = await ask('POST /v1/queues/emails/batch/schedule', {
      body: { jobs: [{ ...update, attempts: 2 }, update] },
    });
    expect(many.body).toMatchObject({ jobs: [updated, { ...updated, status: 'already' }] });
    const job = { data: { to: 'new' }, tags: ['invoice:7'], dueMs: Date.parse(due), options: { attempts: 2 } };
    expect((await ask('GET /v1/queues/emails/jobs/moved')).body).toMatchObject(job);
    await ask('DELETE /v1/queues/emails/jobs/moved');
    const over = { status: 'already', over: 'cancelled' };
    expect(await ask(at, { body: { ...update, data: {}, at: due } })).toMatchObject({ status: 200, body: over });
    const keyed = await ask(at, { body: { ifExists: 'update' }, headers: { 'Idempotency-Key': 'k' } });
    expect(keyed).toMatchObject(problem(400, 'bad-input'));
  });

  test('of an id that lives are kept, replaced or refused', async () => {
    const body = { id: 'twice', delay: '1h' };
    await ask('POST /v1/queues/emails/jobs', { body });
    expect(await ask('POST /v1/queues/emails/jobs', { body: { ...body, delay: '2h' } })).toMatchObject({
      status: 200,
      body: { status: 'exists' },
    });
    const replaced = await ask('POST /v1/queues/emails/jobs', { body: { ...body, delay: '3h', ifExists: 'replace' } });
    expect(replaced).toMatchObject({ status: 201, body: { status: 'replaced' } });
    expect(
      await ask('POST /v1/queues/emails/jobs', { body: { ...body, delay: '4h', ifExists: 'error' } }),
    ).toMatchObject(problem(409, 'exists'));
  });

  test('with a number that would lose digits are refused by its place, in every body', async () => {
    const big = { toJSON: () => 'BIG' };
    const exact = (body: object) => ({ body: JSON.stringify(body).replaceAll('"BIG"', '1234567824702058497') });
    const given = 'which would be read as 1234567824702058500; allowed: a number that keeps its digits';
    for (const [what, body, field] of [
      ['POST /v1/queues/emails/jobs', { data: { user: big } }, 'body.data.user'],
      ['POST /v1/queues/emails/batch/schedule', { jobs: [{ data: [1, big] }] }, 'body.jobs.0.data.1'],
      ['PATCH /v1/queues/emails/jobs/a', { data: { a: { b: big } } }, 'body.data.a.b'],
      ['PUT /v1/schedules/big', { queue: 'emails', every: '1h', data: big }, 'body.data'],
    ] as const) {
      const refused = await ask(what, exact(body));
      expect(refused).toMatchObject({ ...problem(400, 'bad-input'), body: { errors: [{ field }] } });
      expect(refused.body.detail).toContain(given);
    }
    const fine = '{"id":"fine","delay":"1h","data":[1.0,1e3,1.10,"1234567824702058497",9007199254740992]}';
    expect(await ask('POST /v1/queues/emails/jobs', { body: fine })).toMatchObject({ status: 201 });
  });

  test('with a wrong field are refused by its name, with what was given and what is allowed', async () => {
    const wrong = await ask('POST /v1/queues/emails/jobs', { body: { delay: '2 fortnights' } });
    expect(wrong).toMatchObject(problem(400, 'bad-input'));
    expect(wrong.headers.get('content-type')).toBe('application/problem+json');
    expect(wrong.body.errors).toEqual([
      { field: 'body.delay', given: '"2 fortnights"', allowed: expect.stringContaining('"5m"') },
    ]);
    const misspelt = await ask('POST /v1/queues/emails/jobs', { body: { dely: '1h' } });
    expect(misspelt.body.detail).toMatch(/allowed: data, .*; did you mean delay\?$/);
    const both = await ask('POST /v1/queues/emails/jobs', { body: { delay: '1h', at: '2030-01-01T00:00:00Z' } });
    expect(both).toMatchObject(problem(400, 'bad-input'));
    expect(both.body.detail).toContain('delay');
  });

  test.each([
    ['half of an object', '{"a', 'bad-input', 400],
    ['a list', '[]', 'bad-input', 400],
    ['a text as something else', 'x', 'not-json', 415],
    ['a depth that nobody means', `{"data":${'['.repeat(50_000)}${']'.repeat(50_000)}}`, 'bad-input', 400],
  ])('%s is no job', async (_, body, code, status) => {
    const headers = code === 'not-json' ? { 'Content-Type': 'text/plain' } : {};
    expect(await ask('POST /v1/queues/emails/jobs', { body, headers })).toMatchObject(problem(status, code));
  });

  test('are listed page by page', async () => {
    const ids: string[] = [];
    for (let cursor = ''; ; ) {
      const page = await ask(`GET /v1/queues/emails/jobs?limit=2${cursor}`);
      expect(page.status).toBe(200);
      ids.push(...page.body.jobs.map(({ id }: { id: string }) => id));
      if (page.body.cursor === undefined) break;
      cursor = `&cursor=${page.body.cursor}`;
    }
    expect(ids).toEqual([...new Set(ids)]);
    expect(ids).toEqual(expect.arrayContaining(['a', 'b', 'c', 'd', 'e/f']));
    expect(await ask('GET /v1/queues/emails/jobs?state=late')).toMatchObject(problem(400, 'bad-input'));
    expect(await ask('GET /v1/queues/emails/jobs?cursor=nonsense')).toMatchObject(problem(400, 'bad-input'));
    expect(await ask('GET /v1/queues/emails/count')).toMatchObject({ status: 200, body: { count: ids.length } });
    expect(await ask('GET /v1/queues/emails/count?state=done')).toMatchObject(problem(400, 'bad-input'));
    const misspelt = await ask('GET /v1/queues/emails/jobs?limt=5');
    expect(misspelt).toMatchObject({
      ...problem(400, 'bad-input'),
      body: { errors: [{ field: 'query.limt', given: 'unknown' }] },
    });
    expect(await ask('GET /v1/queues/emials/jobs')).toMatchObject(problem(404, 'not-found'));
  });

  test('are edited if they are what was seen', async () => {
    const seen = await ask('GET /v1/queues/emails/jobs/a');
    const etag = seen.headers.get('etag') ?? '';
    const edited = await ask('PATCH /v1/queues/emails/jobs/a', {
      body: { data: { to: 'new' } },
      headers: { 'If-Match': etag },
    });
    expect(edited).toMatchObject({ status: 200, body: { id: 'a', status: 'edited' } });
    expect(edited.headers.get('etag')).toBe(`"${edited.body.etag}"`);
    const stale = await ask('PATCH /v1/queues/emails/jobs/a', { body: { data: 2 }, headers: { 'If-Match': etag } });
    expect(stale).toMatchObject(problem(412, 'changed'));
    const nonsense = await ask('PATCH /v1/queues/emails/jobs/a', { body: { data: 2 }, headers: { 'If-Match': 'x' } });
    expect(nonsense).toMatchObject(problem(400, 'bad-input'));
    expect(await ask('PATCH /v1/queues/emails/jobs/nobody', { body: { data: 2 } })).toMatchObject(
      problem(404, 'not-found'),
    );
    expect((await ask('GET /v1/queues/emails/jobs/a')).body.data).toEqual({ to: 'new' });
  });

  test('are rescheduled, run now and cancelled', async () => {
    const moved = await ask('POST /v1/queues/emails/jobs/b/reschedule', { body: { delay: '2h', only: 'later' } });
    expect(moved).toMatchObject({ status: 200, body: { id: 'b', status: 'rescheduled' } });
    const { etag } = (await ask('GET /v1/queues/emails/jobs/b')).body;
    expect(moved).toMatchObject({ body: { etag } });
    expect(moved.headers.get('etag')).toBe(`"${etag}"`);
    const later = await ask('POST /v1/queues/emails/jobs/b/reschedule', { body: { shift: '1h' } });
    expect(later.body.dueMs).toBe(moved.body.dueMs + 3_600_000);
    const both = { ids: ['b', 'nobody'], due: { shift: -3_600_000 } };
    const earlier = await ask('POST /v1/queues/emails/batch/reschedule', { body: both });
    expect(earlier.body.jobs).toMatchObject([{ id: 'b', dueMs: moved.body.dueMs }, { status: 'unknown' }]);
    expect(await ask('POST /v1/queues/emails/jobs/b/reschedule', { body: {} })).toMatchObject(
      problem(400, 'bad-input'),
    );
    expect(await ask('POST /v1/queues/emails/jobs/b/run')).toMatchObject({
      status: 200,
      body: { id: 'b', status: 'due' },
    });
    expect(await ask('POST /v1/queues/emails/jobs/nobody/run')).toMatchObject(problem(404, 'not-found'));
    expect(await ask('DELETE /v1/queues/emails/jobs/e%2Ff')).toMatchObject({
      status: 200,
      body: { id: 'e/f', status: 'cancelled' },
    });
    expect(await ask('DELETE /v1/queues/emails/jobs/e%2Ff')).toMatchObject({
      status: 200,
      body: { over: 'cancelled' },
    });
    expect(await ask('DELETE /v1/queues/emails/jobs/nobody')).toMatchObject(problem(404, 'not-found'));
    expect(await ask('POST /v1/queues/emails/jobs/e%2Ff/run')).toMatchObject(problem(409, 'over'));
    expect(await ask('GET /v1/queues/emails/jobs/nobody')).toMatchObject(problem(404, 'not-found'));
  });

  test('in a batch have a status each', async () => {
    const ids = ['c', 'nobody'];
    const jobs = ids.map((id) => ({ id }));
    const statuses = ({ body }: Answered) => body.jobs.map(({ status }: { status: string }) => status);
    const edited = await ask('POST /v1/queues/emails/batch/edit', {
      body: { jobs: jobs.map((job) => ({ ...job, attempts: 2 })) },
    });
    expect(statuses(edited)).toEqual(['edited', 'unknown']);
    const moved = await ask('POST /v1/queues/emails/batch/reschedule', {
      body: { jobs: jobs.map((job) => ({ ...job, delay: '5h' })) },
    });
    expect(statuses(moved)).toEqual(['rescheduled', 'unknown']);
    expect(statuses(await ask('POST /v1/queues/emails/batch/run', { body: { ids: ['d', 'nobody'] } }))).toEqual([
      'due',
      'unknown',
    ]);
    expect(statuses(await ask('POST /v1/queues/emails/batch/cancel', { body: { ids } }))).toEqual([
      'cancelled',
      'unknown',
    ]);
    const made = await ask('POST /v1/queues/emails/batch/schedule', {
      body: {
        jobs: [
          { id: 'n1', delay: '1h' },
          { id: 'n2', delay: '1h' },
        ],
      },
    });
    expect(statuses(made)).toEqual(['scheduled', 'scheduled']);
  });

  test('in a batch with one that is wrong are none', async () => {
    const wrong = await ask('POST /v1/queues/emails/batch/schedule', { body: { jobs: [{ id: 'w1' }, { id: 'w 2' }] } });
    expect(wrong).toMatchObject(problem(400, 'bad-input'));
    expect((await ask('GET /v1/queues/emails/jobs/w1')).status).toBe(404);
    for (const verb of ['cancel', 'run']) {
      expect(await ask(`POST /v1/queues/emails/batch/${verb}`, { body: { ids: [] } })).toMatchObject(
        problem(400, 'bad-input'),
      );
    }
    for (const verb of ['edit', 'reschedule']) {
      expect(await ask(`POST /v1/queues/emails/batch/${verb}`, { body: { jobs: [{}] } })).toMatchObject(
        problem(400, 'bad-input'),
      );
    }
  });
});

describe('jobs that a filter means', () => {
  test('are counted by a dry run, and changed', async () => {
    const jobs = ['1', '2', '3'].map((id) => ({ id, delay: '1h', tags: ['all'] }));
    await ask('POST /v1/queues/many/batch/schedule', { body: { jobs } });
    const given = { dryRun: false, filter: { tag: 'all' } };
    const [due, change] = [{ delay: '2h' }, { attempts: 7 }];
    for (const [verb, body] of [
      ['reschedule', { ...given, due }],
      ['edit', { ...given, change }],
      ['run', { ...given, limit: 1 }],
      ['cancel', given],
    ] as const) {
      const at = `POST /v1/queues/many/batch/${verb}`;
      const dry = await ask(at, { body: { ...body, dryRun: true } });
      expect(dry, verb).toMatchObject({ status: 200, body: { changed: 0, dryRun: true } });
      expect(dry.body.matched, verb).toBe(verb === 'run' ? 1 : 3);
      const { body: done } = await ask(at, { body });
      expect(done.changed, verb).toBe(verb === 'run' ? 1 : 3);
      for (const wrong of [
        { ...body, filter: {} },
        { ...body, dryRun: undefined },
      ]) {
        expect(await ask(at, { body: wrong }), verb).toMatchObject(problem(400, 'bad-input'));
      }
    }
    expect((await ask('GET /v1/queues/many/count')).body.count).toBe(0);
  });
});

describe('an Idempotency-Key', () => {
  const headers = { 'Idempotency-Key': 'order-1042' };

  test('is the id, and the same request again is the same call', async () => {
    const first = await ask('POST /v1/queues/orders/jobs', { body: { data: 1, delay: '1h' }, headers });
    expect(first).toMatchObject({ status: 201, body: { id: 'order-1042', status: 'scheduled' } });
    const again = await ask('POST /v1/queues/orders/jobs', { body: { data: 1, delay: '1h' }, headers });
    expect(again).toMatchObject({
      status: 200,
      body: { id: 'order-1042', status: 'already', dueMs: first.body.dueMs },
    });
  });

  test('makes no second job when the first is over', async () => {
    await ask('DELETE /v1/queues/orders/jobs/order-1042');
    const again = await ask('POST /v1/queues/orders/jobs', { body: { data: 1, delay: '1h' }, headers });
    expect(again).toMatchObject({ status: 200, body: { status: 'already', over: 'cancelled' } });
  });

  test('is of the same request in whatever order its fields stand, on every level', async () => {
    const same = { 'Idempotency-Key': 'sorted' };
    const body = { data: { a: 1, b: [{ c: 2, d: 3 }] }, delay: '1h', tags: ['x', 'y'] };
    const other = { tags: ['x', 'y'], delay: '1h', data: { b: [{ d: 3, c: 2 }], a: 1 } };
    expect(await ask('POST /v1/queues/orders/jobs', { body, headers: same })).toMatchObject({ status: 201 });
    expect(await ask('POST /v1/queues/orders/jobs', { body: other, headers: same })).toMatchObject({
      status: 200,
      body: { status: 'already' },
    });
    const swapped = { ...body, data: { a: 1, b: [{ c: 3, d: 2 }] } };
    expect(await ask('POST /v1/queues/orders/jobs', { body: swapped, headers: same })).toMatchObject(
      problem(422, 'reused'),
    );
    await ask('DELETE /v1/queues/orders/jobs/sorted');
  });

  test.each(['.', '..'])('no job can have the id %s, which no URL leads to', async (id) => {
    expect(await ask('POST /v1/queues/orders/jobs', { body: { id, delay: '1h' } })).toMatchObject(
      problem(400, 'bad-input'),
    );
    expect(
      await ask('POST /v1/queues/orders/jobs', { body: { delay: '1h' }, headers: { 'Idempotency-Key': id } }),
    ).toMatchObject(problem(400, 'bad-input'));
  });

  test('of another request is refused', async () => {
    expect(await ask('POST /v1/queues/orders/jobs', { body: { data: 2, delay: '1h' }, headers })).toMatchObject(
      problem(422, 'reused'),
    );
    expect(await ask('POST /v1/queues/orders/jobs', { body: { id: 'other' }, headers })).toMatchObject(
      problem(400, 'bad-input'),
    );
  });

  test('comes twice at one moment, and there is one job', async () => {
    const twice = { body: { delay: '1h' }, headers: { 'Idempotency-Key': 'race' } };
    const all = await Promise.all(Array.from({ length: 8 }, () => ask('POST /v1/queues/orders/jobs', twice)));
    expect(all.map(({ status }) => status).toSorted()).toEqual([200, 200, 200, 200, 200, 200, 200, 201]);
    expect(new Set(all.map(({ body }) => body.dueMs)).size).toBe(1);
  });
});

describe('queues', () => {
  test('are listed and shown with their counts', async () => {
    const all = await ask('GET /v1/queues');
    expect(all.body.queues.map(({ queue }: { queue: string }) => queue)).toEqual(['emails', 'many', 'orders']);
    const one = await ask('GET /v1/queues/emails');
    expect(one).toMatchObject({
      status: 200,
      body: { queue: 'emails', paused: false, partitions: [{ partition: 0 }] },
    });
    expect(await ask('GET /v1/queues/emials')).toMatchObject(problem(404, 'not-found'));
    expect(await ask('GET /v1/queues/UPPER')).toMatchObject(problem(400, 'bad-input'));
  });

  test('say what happened by the minute, why nothing moves, and what is true now', async () => {
    const minutes = await ask('GET /v1/queues/emails/minutes?hours=24');
    expect(minutes).toMatchObject({ status: 200, body: { queue: 'emails', stepMs: 600_000 } });
    expect(minutes.body.known).toHaveLength(144);
    expect(await ask('GET /v1/queues/emails/minutes?hours=2')).toMatchObject(problem(400, 'bad-input'));
    const days = await ask('GET /v1/queues/emails/minutes?days=2');
    expect([days.body.stepMs, days.body.known.length]).toEqual([3_600_000, 48]);
    expect(await ask('GET /v1/queues/emails/minutes?days=91&by=hour')).toMatchObject(problem(400, 'bad-input'));
    const late = await ask('GET /v1/queues/emails/late');
    expect(late).toMatchObject({ status: 200, body: { queue: 'emails', starts: 0, causes: [] } });
    expect(await ask('GET /v1/queues/emails/late?from=never')).toMatchObject(problem(400, 'bad-input'));
    expect(await ask('GET /v1/queues/emails/slo')).toMatchObject(problem(404, 'not-found'));
    expect(await ask('GET /v1/slo?month=2026-13')).toMatchObject(problem(400, 'bad-input'));
    const set = { lateness: { within: '1s', of: 0.99, over: '30d' } };
    await api.ask('PATCH /v1/queues/emails/settings', { body: set });
    const slo = await ask('GET /v1/queues/emails/slo');
    expect(slo).toMatchObject({ status: 200, body: { queue: 'emails', withinMs: 1000, of: 0.99, budget: 10 } });
    // Nothing was counted under this promise: only what is due and has not started spends of it.
    const { standing, sinceMs, fromMs, toMs } = slo.body;
    const spentBy = (jobs: number) => ({
      jobs,
      share: jobs === 0 ? null : 0,
      late: 0,
      expired: 0,
      left: 10 - jobs,
      worst: [],
    });
    expect(slo.body).toMatchObject({
      ...spentBy(standing),
      kept: standing <= 10,
      burn: expect.any(Number),
      overMs: 30 * 86_400_000,
    });
    expect([fromMs === sinceMs, sinceMs <= toMs]).toEqual([true, true]);
    // One more may have become late since.
    const all = await ask('GET /v1/slo');
    const row = { queue: 'emails', ...spentBy(all.body.queues[0]?.standing) };
    expect(all).toMatchObject({ status: 200, body: { queues: [row] } });
    await api.ask('PATCH /v1/queues/emails/settings', { body: { unset: ['lateness'] } });
    const day = await ask('GET /v1/day');
    const own = day.body.queues.find(({ queue }: { queue: string }) => queue === 'emails');
    expect([own.starts.length, own.p99Ms.length, own.maxMs.length, own.dead.length, own.inTime]).toEqual([
      24, 24, 24, 24, 0,
    ]);
    const changed = { queue: 'emails', what: 'set', after: { lateness: { within: '1s', of: 0.99, over: '30d' } } };
    expect(day.body.events).toContainEqual(expect.objectContaining(changed));
    expect(await ask('GET /v1/day', { token: 'nobody' })).toMatchObject(problem(401, 'unauthorized'));
    const lateness = await ask('GET /v1/lateness');
    expect(lateness).toMatchObject({ status: 200, body: { start: { count: 0, p50Ms: null } } });
    expect(lateness.body.queues.map(({ queue }: { queue: string }) => queue)).toContain('emails');
    expect(await ask('GET /v1/lateness', { token: 'nobody' })).toMatchObject(problem(401, 'unauthorized'));
    expect(await ask('GET /v1/queues/emails/why')).toMatchObject({ status: 200, body: { moves: false } });
    expect(await ask('GET /v1/queues/emials/why')).toMatchObject(problem(404, 'not-found'));
    const played = { limits: { rate: '5/s' }, runTime: '200ms' };
    expect(await ask('POST /v1/queues/emails/simulate', { body: played })).toMatchObject({
      status: 200,
      body: { asAsked: { limits: '5/s', left: 0 } },
    });
    expect(await ask('POST /v1/queues/emails/simulate', { body: { limits: { maxPending: 1 } } })).toMatchObject(
      problem(400, 'bad-input'),
    );
    await ask('POST /v1/queues/hooks/jobs', { body: { id: 'later', delay: '1h' } });
    // The guard refuses it, so nothing is sent.
    await ask('PATCH /v1/queues/hooks/settings', { body: { target: 'https://10.0.0.1/due' } });
    expect(await ask('POST /v1/queues/hooks/target/try', { body: { data: { order: 42 } } })).toMatchObject({
      status: 200,
      body: { url: 'https://10.0.0.1/due', means: 'dead', steps: [{ step: 'names' }, { step: 'host', isWell: false }] },
    });
    expect(await ask('POST /v1/queues/emails/target/try')).toMatchObject(problem(400, 'bad-input'));
    await ask('DELETE /v1/queues/hooks/settings/target');
    const ends = await ask('GET /v1/queues/emails/ends?idPrefix=a&wait=20ms');
    expect(ends).toMatchObject({
      status: 200,
      text: expect.stringMatching(/event: bye\ndata: \{"code":"(all|timeout)"\}\n/),
    });
    expect(await ask('GET /v1/queues/emails/ends?wait=6m')).toMatchObject(problem(400, 'bad-input'));
    const live = await ask('GET /v1/live?events=1');
    expect(live).toMatchObject({ status: 200, text: expect.stringContaining('event: now') });
    expect(await ask('GET /v1/live?events=0')).toMatchObject(problem(400, 'bad-input'));
  });

  test('are paused with a reason, and resumed', async () => {
    const paused = await ask('POST /v1/queues/emails/pause', { body: { reason: 'the mail server moves' } });
    expect(paused).toMatchObject({
      status: 200,
      body: { changed: true, paused: true, pause: { reason: 'the mail server moves' } },
    });
    expect(await ask('POST /v1/queues/emails/pause')).toMatchObject({ status: 200, body: { changed: false } });
    expect(await ask('POST /v1/queues/emails/pause', { body: { reason: 'x'.repeat(201) } })).toMatchObject(
      problem(400, 'bad-input'),
    );
    expect(await ask('POST /v1/queues/emails/resume')).toMatchObject({ status: 200, body: { changed: true } });
    expect(await ask('POST /v1/queues/emials/resume')).toMatchObject(problem(404, 'not-found'));
  });
});

describe('settings of a queue', () => {
  const at = '/v1/queues/orders/settings';
  const set = (body: object) => ask(`PATCH ${at}`, { body });

  test('are changed, in the words in which they are shown, and what is left out stays', async () => {
    expect(await ask(`GET ${at}`)).toMatchObject({ status: 200, body: { queue: 'orders', settings: {} } });
    const rate = { limit: 7, per: '90s', burst: 3 };
    expect(await set({ rate: '10/s', concurrency: 5, maxPending: 1000, reason: 'the shop has a sale' })).toMatchObject({
      status: 200,
      body: {
        changed: ['maxPending', 'rate', 'concurrency'],
        settings: { rate: '10/s', concurrency: 5, maxPending: 1000 },
      },
    });
    expect((await set({ rate })).body.settings).toEqual({ rate, concurrency: 5, maxPending: 1000 });
    const { overrides } = (await ask(`GET ${at}`)).body;
    expect(overrides).toContainEqual({
      setting: 'rate',
      value: rate,
      by: expect.any(String),
      reason: '',
      atMs: expect.any(Number),
    });
    expect(await ask(`DELETE ${at}/maxPending`)).toMatchObject({
      status: 200,
      body: { changed: ['maxPending'], settings: { maxPending: false } },
    });
    expect(await ask(`DELETE ${at}/nothing`)).toMatchObject({ status: 400 });
    await set({ history: { keep: '7d', max: 10 }, redact: ['email'], perGroup: 1, fair: true });
    const { settings } = (await ask(`GET ${at}`)).body;
    expect(settings).toMatchObject({ history: { keep: '7d', max: 10, result: false }, redact: ['email'], perGroup: 1 });
    expect(await set(settings)).toMatchObject({ status: 200, body: { changed: [], settings } });
    expect((await ask('GET /v1/queues/orders')).body.limits).toMatchObject({
      text: '7 per 90s, burst 3 · 5 at once · 1 per group · fair',
      concurrency: 5,
    });
    const back = { rate: false, concurrency: false, perGroup: false, maxPending: false, history: false, redact: [] };
    expect((await set(back)).body.settings).toEqual({ ...back, fair: true });
  });

  test('say how long due jobs linger, and 0 is said as well', async () => {
    const lingers = async (linger: unknown) => (await set({ linger })).body;
    expect(await lingers('20ms')).toMatchObject({ changed: ['linger'], settings: { linger: '20ms' } });
    expect(await lingers(20)).toMatchObject({ changed: [], settings: { linger: '20ms' } });
    expect(await lingers(0)).toMatchObject({ changed: ['linger'], settings: { linger: 0 } });
    expect(await set((await ask(`GET ${at}`)).body.settings)).toMatchObject({ status: 200, body: { changed: [] } });
    const refused = await set({ linger: '2s' });
    expect(refused).toMatchObject(problem(400, 'bad-input'));
    expect(refused.body.detail).toContain('linger is "2s"; allowed: 0 to 1000 ms');
  });

  test('that cannot be are refused, each by its name', async () => {
    expect(await set({})).toMatchObject(problem(400, 'bad-input'));
    expect((await set({ rate: '10/y' })).body.errors).toMatchObject([
      { field: 'body.rate', given: '"10/y"', allowed: expect.stringContaining('600/m') },
    ]);
    expect((await set({ concurency: 5 })).body.detail).toContain('did you mean concurrency?');
    expect((await set({ perGroup: 0 })).body.errors).toMatchObject([{ field: 'body.perGroup', given: '0' }]);
    expect((await set({ rate: '0/s' })).body.detail).toContain('rate is "0/s"');
    expect((await set({ fair: false })).body.errors).toMatchObject([{ field: 'body.fair', allowed: 'true' }]);
    expect(await set({ broadcast: true })).toMatchObject(problem(400, 'bad-input'));
    expect(await ask('PATCH /v1/queues/emials/settings', { body: { concurrency: 1 } })).toMatchObject(
      problem(404, 'not-found'),
    );
    expect(await ask('GET /v1/queues/emials/settings')).toMatchObject(problem(404, 'not-found'));
  });

  test('are in the audit with who changed how many, and why', async () => {
    await set({ concurrency: 9, reason: 'the shop has a sale' });
    const { body } = await ask('GET /v1/audit?limit=1');
    expect(body.entries).toMatchObject([
      { verb: 'queues.set', queue: 'orders', target: 'orders', count: 1, reason: 'the shop has a sale' },
    ]);
    await set({ concurrency: 9, reason: 'again' });
    expect((await ask('GET /v1/audit?limit=1')).body).toEqual(body);
  });
});

describe('groups of a queue', () => {
  const at = '/v1/queues/orders/groups';
  const changed = (is: boolean) => ({ status: 200, body: { queue: 'orders', group: 'acme', changed: is } });

  test('have limits of their own, and none again', async () => {
    const limits = { concurrency: 10, rate: '20/s', weight: 3 };
    expect(await ask(`PUT ${at}/acme/limits`, { body: limits })).toMatchObject(changed(true));
    expect(await ask(`PUT ${at}/acme/limits`, { body: limits })).toMatchObject(changed(false));
    expect((await ask(`GET ${at}/acme`)).body).toMatchObject({ perGroup: 10, intervalMs: 50, weight: 3 });
    const { groups } = (await ask('GET /v1/queues/orders/settings')).body.settings;
    expect(groups).toEqual({ acme: limits });
    expect(await ask(`DELETE ${at}/acme/limits`)).toMatchObject(changed(true));
    expect(await ask(`DELETE ${at}/acme/limits`)).toMatchObject(changed(false));
    expect((await ask(`GET ${at}`)).body).toMatchObject({ groups: [], ungrouped: 0 });
  });

  test('are closed for some time, and so is the queue', async () => {
    const closing = { for: '10m', reason: 'their API says 429' };
    expect(await ask(`POST ${at}/acme/close`, { body: closing })).toMatchObject(changed(true));
    expect(await ask(`POST ${at}/acme/close`, { body: { for: '1s' } })).toMatchObject(changed(false));
    expect((await ask(`GET ${at}/acme`)).body.closed).toMatchObject({ reason: closing.reason });
    expect(await ask(`POST ${at}/acme/open`)).toMatchObject(changed(true));
    expect((await ask(`GET ${at}/acme`)).body.closed).toBeUndefined();
    const queue = (closed: boolean) => ({ status: 200, body: { queue: 'orders', closed, changed: true } });
    expect(await ask('POST /v1/queues/orders/close', { body: closing })).toMatchObject(queue(true));
    expect(await ask('POST /v1/queues/orders/open')).toMatchObject(queue(false));
  });

  test('that cannot be are refused, and so are those of a queue that is not gated', async () => {
    const wrong = [
      ask(`PUT ${at}/acme/limits`, { body: { weight: 101 } }),
      ask(`DELETE ${at}/a%20b/limits`),
      ask(`POST ${at}/acme/close`, { body: { for: 'soon' } }),
      ask('POST /v1/queues/emails/groups/acme/open'),
      ask('GET /v1/queues/emails/groups'),
      ask('GET /v1/queues/emails/groups/acme'),
      ask('POST /v1/queues/emails/close', { body: { for: '1m' } }),
      ask('POST /v1/queues/emails/open'),
    ];
    for (const answered of await Promise.all(wrong)) expect(answered.status).toBe(400);
  });
});

describe('limits that queues share', () => {
  const changed = (is: boolean) => ({ status: 200, body: { limit: 'provider', changed: is } });
  const one = async (name: string) =>
    (await ask('GET /v1/limits')).body.limits.find((limit: { readonly name: string }) => limit.name === name);

  test('are defined, changed, named by a queue, and taken away', async () => {
    expect(await ask('PUT /v1/limits/provider', { body: { rate: '10/s', reason: 'their terms' } })).toMatchObject(
      changed(true),
    );
    expect(await ask('PUT /v1/limits/provider', { body: { rate: '10/s' } })).toMatchObject(changed(false));
    expect(await one('provider')).toMatchObject({
      ...{ text: '10/s', rate: '10/s', perSecond: 10, queues: [], lent: 0, partitions: [] },
      by: 'anonymous',
    });
    const named = await ask('PATCH /v1/queues/orders/settings', { body: { limits: ['provider'] } });
    expect(named).toMatchObject({ status: 200, body: { settings: { limits: ['provider'] } } });
    expect((await one('provider')).queues).toEqual(['orders']);
    const { entries } = (await ask('GET /v1/audit?limit=50')).body;
    const told = entries.find(({ verb }: { readonly verb: string }) => verb === 'limits.set');
    expect(told).toMatchObject({ target: 'provider', reason: 'their terms', after: { rate: '10/s' } });
    expect(await ask('DELETE /v1/limits/provider')).toMatchObject({
      status: 400,
      body: { code: 'bad-input', detail: expect.stringContaining('limit provider is named by orders') },
    });
    await ask('PATCH /v1/queues/orders/settings', { body: { limits: [] } });
    expect(await ask('DELETE /v1/limits/provider')).toMatchObject(changed(true));
    expect(await ask('DELETE /v1/limits/provider')).toMatchObject(changed(false));
    expect(await one('provider')).toBeUndefined();
  });

  test('that cannot be are refused, and so is a queue that names one which is not defined', async () => {
    const wrong = [
      ask('PUT /v1/limits/provider', { body: {} }),
      ask('PUT /v1/limits/provider', { body: { rate: '10/s', concurrency: 3 } }),
      ask('PUT /v1/limits/Provider', { body: { rate: '10/s' } }),
      ask('PUT /v1/limits/provider', { body: { concurrency: 0 } }),
      ask('DELETE /v1/limits/Provider'),
      ask('PATCH /v1/queues/orders/settings', { body: { limits: ['nobody'] } }),
    ];
    for (const answered of await Promise.all(wrong)) expect(answered.status).toBe(400);
    expect(await ask('GET /v1/limits', { token: 'nobody' })).toMatchObject(problem(401, 'unauthorized'));
    expect((await ask('GET /v1/limits')).body).toEqual({ limits: [] });
  });
});

describe('debounced jobs', () => {
  const at = 'POST /v1/queues/index/jobs';
  const debounce = { wait: '1m', max: '5m' };

  test('are one job for many requests, which say what became of them', async () => {
    const first = await ask(at, { body: { id: 'd', data: 1, debounce } });
    expect(first).toMatchObject({ status: 201, body: { id: 'd', status: 'scheduled' } });
    const second = await ask(at, { body: { id: 'd', data: 2, debounce } });
    expect(second).toMatchObject({ status: 200, body: { status: 'merged' } });
    expect(second.body.dueMs).toBeGreaterThanOrEqual(first.body.dueMs);
    expect(await ask(at, { body: { id: 't', debounce: { wait: '1m', max: '1m' } } })).toMatchObject({ status: 201 });
    expect((await ask('GET /v1/queues/index/jobs/d')).body).toMatchObject({ data: 2, options: {} });
  });

  test('are refused without an id, with a delay and with a key of their own', async () => {
    const problems = [
      [{ data: 1, debounce }, {}, /debounce is given without id/],
      [{ id: 'd', debounce, delay: '1m' }, {}, /together with delay/],
      [{ id: 'd', debounce: { wait: '5m', max: '1m' } }, {}, /max of debounce is "1m"/],
      [{ debounce }, { 'Idempotency-Key': 'k' }, /Idempotency-Key is given with debounce/],
    ] as const;
    for (const [body, headers, detail] of problems) {
      const refused = await ask(at, { body, headers });
      expect(refused).toMatchObject(problem(400, 'bad-input'));
      expect(refused.body.detail).toMatch(detail);
    }
  });
});

describe('a part of a path that begins with ~', () => {
  const IDS = ['/x', 'x/', 'a/../b', './b', 'order//8', '%2F', 'a\\b', '~Yg'];
  const VICTIMS = ['x', 'b', 'order/8'];
  const at = (id: string, rest = '') => `/v1/queues/paths/jobs/${escapedPart(id)}${rest}`;

  test('is any id, and no request about one job acts on another', async () => {
    const jobs = [...IDS, ...VICTIMS].map((id) => ({ id, delay: '1h' }));
    expect((await ask('POST /v1/queues/paths/batch/schedule', { body: { jobs } })).status).toBe(200);
    for (const { id } of jobs) {
      expect(await ask(`GET ${at(id)}`)).toMatchObject({ status: 200, body: { id } });
      expect(await ask(`POST ${at(id, '/reschedule')}`, { body: { delay: '2h' } })).toMatchObject({ body: { id } });
    }
    for (const { id } of jobs.slice(0, -VICTIMS.length)) {
      expect(await ask(`DELETE ${at(id)}`)).toMatchObject({ status: 200, body: { id, status: 'cancelled' } });
    }
    for (const id of VICTIMS) expect(await ask(`GET ${at(id)}`)).toMatchObject({ body: { id, state: 'scheduled' } });
    expect(await ask('GET /v1/queues/paths/jobs/order%2F8')).toMatchObject({ status: 200, body: { id: 'order/8' } });
  });

  test('says something, and a plain part that a proxy would make another path of is refused with what says it', async () => {
    for (const part of ['~', '~!', '~foo', '~Yg=', '%7Efoo']) {
      expect(await ask(`GET /v1/queues/paths/jobs/${part}`), part).toMatchObject(problem(400, 'bad-input'));
    }
    for (const id of ['/x', 'x/', 'a/../b', './b', 'order//8', 'a\\..\\b']) {
      for (const what of [
        `DELETE /v1/queues/paths/jobs/`,
        'GET /v1/queues/paths/jobs/',
        'GET /v1/queues/paths/groups/',
      ]) {
        const refused = await ask(`${what}${encodeURIComponent(id)}`);
        expect(refused, what + id).toMatchObject(problem(400, 'bad-input'));
        expect(refused.body.detail).toContain(`allowed: ${escapedPart(id)}`);
      }
    }
    expect(await ask(`GET ${at('b')}`)).toMatchObject({ body: { state: 'scheduled' } });
  });

  test('is a queue, a tag, a set, a schedule and a dead letter as well', async () => {
    const queue = `/v1/queues/${escapedPart('paths')}`;
    expect(await ask(`GET ${queue}`)).toMatchObject({ status: 200, body: { queue: 'paths' } });
    for (const tag of ['..', '/', 'a/../b', '%2e']) {
      const part = writePart(tag);
      expect(await ask(`POST ${queue}/tags/${part}/close`, { body: { for: '1h' } })).toMatchObject({ body: { tag } });
      expect(await ask(`POST ${queue}/tags/${part}/open`)).toMatchObject({ body: { tag, changed: true } });
    }
    for (const path of [`${queue}/sets/${escapedPart('nobody')}`, `${queue}/dead/${escapedPart('0/1-0')}`]) {
      expect(await ask(`GET ${path}`)).toMatchObject(problem(404, 'not-found'));
    }
    await ask('PUT /v1/schedules/nightly:x', { body: { queue: 'paths', every: '1h' } });
    expect(await ask(`GET /v1/schedules/${escapedPart('nightly:x')}`)).toMatchObject({ body: { name: 'nightly:x' } });
    expect((await ask('DELETE /v1/schedules/nightly:x')).status).toBeLessThan(300);
  });
});

describe('closed tags of a queue', () => {
  const at = '/v1/queues/ladders';

  test('are closed, listed, searched and opened', async () => {
    await ask(`POST ${at}/jobs`, { body: { id: 's1', tags: ['invoice:7'], delay: '1h' } });
    const closed = await ask(`POST ${at}/tags/invoice:7/close`, { body: { for: '90d', reason: 'paid' } });
    expect(closed).toMatchObject({
      status: 200,
      body: { queue: 'ladders', tag: 'invoice:7', cancelled: 1, running: [] },
    });
    const late = await ask(`POST ${at}/jobs`, { body: { id: 's2', tags: ['invoice:7'], delay: '1h' } });
    const { untilMs } = closed.body;
    expect(late).toMatchObject({ status: 200, body: { status: 'closed', closed: { tag: 'invoice:7', untilMs } } });
    await ask(`POST ${at}/tags/a%2Fb/close`, { body: { for: '1h' } });
    const tags = [{ tag: 'a/b' }, { tag: 'invoice:7', untilMs, reason: 'paid' }];
    expect((await ask(`GET ${at}/closed`)).body).toMatchObject({ tags, count: 2 });
    expect((await ask(`GET ${at}/closed?search=voice`)).body.tags).toHaveLength(1);
    const first = (await ask(`GET ${at}/closed?limit=1`)).body;
    expect((await ask(`GET ${at}/closed?limit=1&cursor=${first.cursor}`)).body.tags).toMatchObject([
      { tag: 'invoice:7' },
    ]);
    const { entries } = (await ask('GET /v1/audit?limit=2')).body;
    expect(entries[1]).toMatchObject({ verb: 'tags.close', queue: 'ladders', target: 'invoice:7', reason: 'paid' });
    expect((await ask(`POST ${at}/tags/invoice:7/open`)).body).toMatchObject({ changed: true });
    expect((await ask(`POST ${at}/tags/invoice:7/open`)).body).toMatchObject({ changed: false });
  });

  test('that cannot be are refused, and so are those of a queue that there is not', async () => {
    expect(await ask(`POST ${at}/tags/a%20b/close`, { body: { for: '1h' } })).toMatchObject(problem(400, 'bad-input'));
    expect(await ask(`POST ${at}/tags/x/close`, { body: {} })).toMatchObject(problem(400, 'bad-input'));
    expect(await ask(`POST ${at}/tags/=high/open`)).toMatchObject(problem(400, 'bad-input'));
    expect(await ask(`GET ${at}/closed?limit=0`)).toMatchObject(problem(400, 'bad-input'));
    expect(await ask('GET /v1/queues/nowhere/closed')).toMatchObject(problem(404, 'not-found'));
  });
});

describe('sets of a queue', () => {
  const at = '/v1/queues/imports/sets';
  const then = { name: 'imported', data: { file: 7 } };

  test('begin, are looked at, sealed and removed', async () => {
    const made = { queue: 'imports', set: 'import-7', callback: '{set:import-7}{then}' };
    const begin = () => ask(`PUT ${at}/import-7`, { body: { then } });
    expect(await begin()).toMatchObject({ status: 200, body: { ...made, status: 'made' } });
    expect((await begin()).body).toMatchObject({ status: 'already' });
    const row = { id: 'row-1', set: 'import-7', delay: '1h' };
    expect((await ask('POST /v1/queues/imports/jobs', { body: row })).body.id).toBe('{set:import-7}row-1');
    const shown = { name: 'import-7', sealed: false, open: 1, callback: { id: made.callback, name: 'imported' } };
    expect((await ask(`GET ${at}/import-7`)).body).toMatchObject(shown);
    expect((await ask(`GET ${at}?limit=1`)).body.sets).toMatchObject([shown]);
    const ids = async (query: string) => {
      const { jobs } = (await ask(`GET /v1/queues/imports/jobs?${query}`)).body;
      return jobs.map(({ id }: { id: string }) => id);
    };
    expect([await ids('set=import-7'), await ids('set=other')]).toEqual([['{set:import-7}row-1'], []]);
    expect((await ask('GET /v1/queues/imports/count?set=import-7')).body).toMatchObject({ count: 1 });
    expect(await ask('GET /v1/queues/imports/dead?set=import-7')).toMatchObject({
      status: 200,
      body: { deadLetters: [] },
    });
    expect((await ask(`POST ${at}/import-7/seal`)).body).toMatchObject({ ...made, status: 'sealed' });
    await ask('DELETE /v1/queues/imports/jobs/%7Bset:import-7%7Drow-1');
    expect((await ask(`POST ${at}/import-7/seal`)).body).toMatchObject({ status: 'over' });
    await ask(`PUT ${at}/import-8`, { body: { then } });
    await ask('POST /v1/queues/imports/jobs', { body: { ...row, set: 'import-8' } });
    expect((await ask(`DELETE ${at}/import-8`)).body).toMatchObject({ set: 'import-8', cancelled: 1, running: [] });
    const { entries } = (await ask('GET /v1/audit?limit=1')).body;
    expect(entries).toMatchObject([{ verb: 'sets.remove', queue: 'imports', target: 'import-8' }]);
  });

  test('that cannot be are refused', async () => {
    await ask(`PUT ${at}/other`, { body: { then } });
    expect(await ask(`PUT ${at}/other`, { body: { then: {} } })).toMatchObject(problem(409, 'exists'));
    expect(await ask(`PUT ${at}/a%20b`, { body: { then } })).toMatchObject(problem(400, 'bad-input'));
    expect(await ask(`PUT ${at}/new`, { body: { then: { id: 'x' } } })).toMatchObject(problem(400, 'bad-input'));
    expect(await ask(`PUT ${at}/new`, { body: { then, group: 'a' } })).toMatchObject(problem(400, 'bad-input'));
    expect(await ask(`GET ${at}?limit=0`)).toMatchObject(problem(400, 'bad-input'));
    expect(await ask(`GET ${at}/a%20b`)).toMatchObject(problem(400, 'bad-input'));
    expect(await ask(`POST ${at}/a%20b/seal`)).toMatchObject(problem(400, 'bad-input'));
    expect(await ask(`DELETE ${at}/a%20b`)).toMatchObject(problem(400, 'bad-input'));
    const late = await ask('POST /v1/queues/imports/jobs', { body: { set: 'nowhere' } });
    expect(late).toMatchObject(problem(409, 'no-set'));
    const missing = [`GET ${at}/nowhere`, `POST ${at}/nowhere/seal`, `DELETE ${at}/nowhere`];
    for (const one of missing) expect(await ask(one)).toMatchObject(problem(404, 'not-found'));
    await ask(`DELETE ${at}/other`);
  });
});

describe('jobs of all queues', () => {
  test('are found, and what they died of', async () => {
    expect((await ask('GET /v1/jobs?limit=2')).body.jobs).toHaveLength(2);
    expect(await ask('GET /v1/jobs?sort=id')).toMatchObject(problem(400, 'bad-input'));
    expect((await ask('GET /v1/dead')).body).toMatchObject({ kinds: expect.any(Array), unread: [] });
    expect(await ask('GET /v1/dead?queue=no!')).toMatchObject(problem(400, 'bad-input'));
  });
});

describe('dead letters', () => {
  test('are listed page by page, shown, replayed and purged', async () => {
    const dying = ['d1', 'd2', 'd3', 'd4'].map((id) => ({ queue: 'dying', id, reason: 'customer is gone' }));
    await buryJobs(api.redis.url, dying);
    const first = await ask('GET /v1/queues/dying/dead?limit=3');
    expect(first.body.deadLetters).toHaveLength(3);
    const rest = await ask(`GET /v1/queues/dying/dead?limit=3&cursor=${first.body.cursor}`);
    const others = [
      `?id=d1&cursor=${first.body.cursor}`,
      `?group=error&cursor=${first.body.cursor}`,
      '?cursor=nonsense',
    ];
    for (const other of others) {
      expect(await ask(`GET /v1/queues/dying/dead${other}`)).toMatchObject(problem(400, 'bad-input'));
    }
    const all = [...first.body.deadLetters, ...rest.body.deadLetters];
    expect(all.map(({ id }) => id)).toEqual(['d4', 'd3', 'd2', 'd1']);
    expect(rest.body.cursor).toBeUndefined();
    expect(await ask('GET /v1/queues/dying/dead?limit=0')).toMatchObject(problem(400, 'bad-input'));

    const [newest] = all;
    const shown = await ask(`GET /v1/queues/dying/dead/${newest.deadLetter}`);
    expect(shown).toMatchObject({ status: 200, body: { id: 'd4', reason: 'customer is gone', hidden: false } });
    expect(await ask('GET /v1/queues/dying/dead/1-1')).toMatchObject(problem(404, 'not-found'));
    expect((await ask('GET /v1/queues/dying/jobs/d4')).body).toMatchObject({
      state: 'dead',
      reason: 'customer is gone',
      deadLetter: newest.deadLetter,
    });

    const replayed = await ask(`POST /v1/queues/dying/dead/${newest.deadLetter}/replay`, { body: { delay: '1h' } });
    expect(replayed).toMatchObject({ status: 200, body: { id: 'd4', status: 'scheduled' } });
    expect(await ask(`POST /v1/queues/dying/dead/${newest.deadLetter}/replay`)).toMatchObject(
      problem(404, 'not-found'),
    );
    const many = await ask('POST /v1/queues/dying/dead/replay', { body: { id: 'd3', delay: '1h' } });
    expect(many).toMatchObject({
      status: 200,
      body: { matched: 1, replayed: 1, deadLetters: [] },
    });
    expect(await ask('POST /v1/queues/dying/dead/replay', { body: {} })).toMatchObject(problem(400, 'bad-input'));

    expect(await ask('POST /v1/queues/dying/dead/purge', { body: { dryRun: true, all: true } })).toMatchObject({
      status: 200,
      body: { matched: 2, removed: 0 },
    });
    for (const body of [{}, { dryRun: true }]) {
      expect(await ask('POST /v1/queues/dying/dead/purge', { body })).toMatchObject(problem(400, 'bad-input'));
    }
    const body = { dryRun: false, all: true, limit: 1 };
    expect(await ask('POST /v1/queues/dying/dead/purge', { body })).toMatchObject({
      status: 200,
      body: { matched: 1, removed: 1, cursor: expect.any(String) },
    });
    expect((await ask('GET /v1/queues/dying/dead')).body.deadLetters).toHaveLength(1);
  });

  test('are replayed request by request, with the due time of the first, and by the same request alone', async () => {
    await buryJobs(
      api.redis.url,
      ['s1', 's2', 's3'].map((id) => ({ queue: 'spread', id, reason: 'no' })),
    );
    const body = { all: true, limit: 1, delay: '1h' };
    const dues = [];
    let next: string | undefined;
    for (const id of ['s3', 's2', 's1']) {
      next = (await ask('POST /v1/queues/spread/dead/replay', { body: { ...body, cursor: next } })).body.cursor;
      dues.push((await ask(`GET /v1/queues/spread/jobs/${id}`)).body.dueMs);
    }
    expect(new Set(dues)).toEqual(new Set([expect.any(Number)]));
    for (const other of [{ delay: '2h' }, { spread: '1h' }, { name: 'x' }]) {
      const given = { ...body, cursor: next, all: 'name' in other ? undefined : true, ...other };
      expect(await ask('POST /v1/queues/spread/dead/replay', { body: given })).toMatchObject(problem(400, 'bad-input'));
    }
  });
});

describe('schedules', () => {
  const definition = { queue: 'reports', cron: '30 2 * * *', zone: 'Europe/Berlin', data: { kind: 'sales' } };

  test('are put, looked at, paused, resumed and removed', async () => {
    expect(await ask('PUT /v1/schedules/nightly', { body: definition })).toMatchObject({
      status: 201,
      body: { status: 'created' },
    });
    expect(await ask('PUT /v1/schedules/nightly', { body: definition })).toMatchObject({
      status: 200,
      body: { status: 'unchanged' },
    });
    expect(await ask('PUT /v1/schedules/nightly', { body: { ...definition, cron: '99 * * * *' } })).toMatchObject(
      problem(400, 'bad-input'),
    );
    expect(await ask('GET /v1/schedules')).toMatchObject({
      status: 200,
      body: { schedules: [{ name: 'nightly' }], more: 0 },
    });
    expect(await ask('GET /v1/schedules?limit=0')).toMatchObject(problem(400, 'bad-input'));
    const shown = await ask('GET /v1/schedules/nightly');
    expect(shown).toMatchObject({
      status: 200,
      body: { name: 'nightly', queue: 'reports', input: definition, runs: 0 },
    });
    const paused = await ask('POST /v1/schedules/nightly/pause', { body: { reason: 'holidays' } });
    expect(paused).toMatchObject({ status: 200, body: { paused: 'holidays' } });
    expect((await ask('POST /v1/schedules/nightly/resume')).body.paused).toBeUndefined();
    for (const verb of ['pause', 'resume', 'trigger']) {
      expect(await ask(`POST /v1/schedules/nobody/${verb}`)).toMatchObject(problem(404, 'not-found'));
    }
  });

  test('are previewed, triggered and backfilled', async () => {
    const preview = await ask('GET /v1/schedules/nightly/preview?next=3&from=2030-03-01');
    expect(preview.body.rows.map(({ local }: { local: string }) => local)).toEqual([
      ...['2030-03-01T02:30:00', '2030-03-02T02:30:00', '2030-03-03T02:30:00'],
    ]);
    expect(await ask('GET /v1/schedules/nightly/preview?next=0')).toMatchObject(problem(400, 'bad-input'));
    expect(await ask('GET /v1/schedules/nightly/runs')).toMatchObject({ status: 200, body: { runs: [] } });
    expect(await ask('GET /v1/schedules/nightly/runs?limit=101')).toMatchObject(problem(400, 'bad-input'));
    const seldom = { queue: 'q', cron: '* * * * * *', calendar: { hours: { mon: '00:00-00:01' } } };
    const weekly = await ask('POST /v1/schedules/preview', { body: { schedule: seldom, next: 3, from: '2030-03-01' } });
    expect(weekly.body.rows.filter(({ dropped }: { dropped?: string }) => !dropped)).toHaveLength(3);
    expect(weekly.body).toMatchObject({ rows: { length: 13 }, leftOut: { dropped: 3 * 86_400 - 10, later: 0 } });
    const long = { name: 'n'.repeat(64), schedule: { queue: 'q', every: '1s' }, next: 10_000 };
    const { body: full } = await ask('POST /v1/schedules/preview', { body: long });
    expect(JSON.stringify(full).length).toBeLessThan(1_000_000);
    expect(full.leftOut.later).toBe(10_000 - full.rows.length);
    const unstored = await ask('POST /v1/schedules/preview', {
      body: { schedule: { queue: 'q', every: '1h' }, next: 2 },
    });
    expect(unstored.body.rows).toHaveLength(2);
    expect(await ask('POST /v1/schedules/preview', { body: { schedule: { queue: 'q' } } })).toMatchObject(
      problem(400, 'bad-input'),
    );
    const triggered = await ask('POST /v1/schedules/nightly/trigger', { body: { id: 'ticket' } });
    expect(triggered).toMatchObject({ status: 200, body: { status: 'scheduled' } });
    expect((await ask('POST /v1/schedules/nightly/trigger', { body: { id: 'ticket' } })).body.status).toBe('exists');
    const range = { from: '2026-03-01', to: '2026-03-02' };
    const dry = await ask('POST /v1/schedules/nightly/backfill', { body: { ...range, dryRun: true } });
    expect(dry.body.jobs.map(({ status }: { status: string }) => status)).toEqual(['would', 'would']);
    const wet = await ask('POST /v1/schedules/nightly/backfill', { body: range });
    expect(wet.body.jobs.map(({ status }: { status: string }) => status)).toEqual(['scheduled', 'scheduled']);
    expect(await ask('POST /v1/schedules/nightly/backfill', { body: { from: '2026-03-01' } })).toMatchObject(
      problem(400, 'bad-input'),
    );
    expect((await ask('DELETE /v1/schedules/nightly')).status).toBe(204);
    expect(await ask('DELETE /v1/schedules/nightly')).toMatchObject(problem(404, 'not-found'));
    expect(await ask('GET /v1/schedules/nightly')).toMatchObject(problem(404, 'not-found'));
  });
});

describe('an erase', () => {
  test('removes what has the tag, from every queue', async () => {
    await ask('POST /v1/queues/letters/jobs', { body: { id: 'a', delay: '1h', tags: ['user:42'] } });
    const { status, body } = await ask('POST /v1/erase', { body: { tag: 'user:42' } });
    expect([status, body.left, body.cursor]).toEqual([200, 0, undefined]);
    expect(body.queues).toContainEqual(expect.objectContaining({ queue: 'letters', jobs: 1 }));
    expect(await ask('POST /v1/erase', { body: { tag: 'a b' } })).toMatchObject(problem(400, 'bad-input'));
  });
});

describe('what people look at', () => {
  test('is what comes due, who leads, who works and what doctor finds', async () => {
    const forecast = await ask('GET /v1/forecast?queue=emails');
    expect(forecast).toMatchObject({ status: 200, body: { by: 'hour', queue: 'emails' } });
    expect(await ask('GET /v1/forecast?by=year')).toMatchObject(problem(400, 'bad-input'));
    expect(await ask('GET /v1/leaders?queue=emails')).toMatchObject({
      status: 200,
      body: {
        partitions: [
          {
            ...{ queue: 'emails', partition: 0, lagMs: 0, backlog: 2 },
            leader: {
              version: packageJson.version,
              ...{ epoch: expect.any(Number), sinceMs: expect.any(Number), leaseLeftMs: expect.any(Number) },
              lastPassAgoMs: expect.any(Number),
            },
          },
        ],
      },
    });
    expect(await ask('GET /v1/leaders?queue=emials')).toMatchObject(problem(404, 'not-found'));
    const versions = [{ version: packageJson.version, processes: 1 }];
    expect(await ask('GET /v1/workers')).toMatchObject({ status: 200, body: { workers: [], versions } });
    expect(await ask('GET /v1/workers?queue=emials')).toMatchObject(problem(404, 'not-found'));
    const identity = { id: 'w-1', role: 'worker' as const, host: 'mill', pid: 7, startedMs: 1, queues: ['emails'] };
    await beat(api.place.redis, { namespace: 'duestream', identity: { ...identity, pauses: true }, ttlMs: 60_000 });
    expect(await ask('GET /v1/workers?worker=w-1')).toMatchObject({ status: 200, body: { workers: [{ id: 'w-1' }] } });
    expect(await ask('GET /v1/workers?worker=w-2')).toMatchObject({ status: 200, body: { workers: [] } });
    const paused = await ask('POST /v1/workers/w-1/pause', { body: { reason: 'a dump' } });
    const pause = { sinceMs: expect.any(Number), by: 'anonymous', reason: 'a dump' };
    expect(paused).toMatchObject({ status: 200, body: { worker: 'w-1', paused: true, changed: true, pause } });
    expect((await ask('GET /v1/workers')).body.workers).toMatchObject([
      {
        id: 'w-1',
        state: 'alive',
        pauses: true,
        pause,
        beatAgoMs: expect.any(Number),
        pending: 0,
        jobs: [],
        queues: ['emails'],
      },
    ]);
    expect(await ask('POST /v1/workers/w-1/resume')).toMatchObject({ status: 200, body: { paused: false, pause } });
    for (const verb of ['pause', 'resume']) {
      expect(await ask(`POST /v1/workers/w-2/${verb}`)).toMatchObject(problem(404, 'not-found'));
    }
    await leave(api.place.redis, 'duestream', 'w-1');
    const doctor = await ask('GET /v1/doctor');
    expect(doctor.body.checks.map(({ check }: { check: string }) => check)).toContain('eviction');
    expect(await ask('GET /v1/doctor', { token: 'nobody' })).toMatchObject(problem(401, 'unauthorized'));
  });

  test('is which installation answers, and what the caller may do', async () => {
    const { status, body } = await ask('GET /v1/about');
    expect(status).toBe(200);
    expect(body).toEqual({
      title: '',
      color: 'none',
      redis: expect.stringMatching(/^(redis|unix):\/\//),
      namespace: 'duestream',
      name: 'anonymous',
      scopes: ['read', 'data', 'write', 'admin', 'work'],
    });
    expect(await ask('GET /v1/about', { token: 'nobody' })).toMatchObject(problem(401, 'unauthorized'));
  });

  test('is who changed what, newest first', async () => {
    const all = await ask('GET /v1/audit?limit=1000');
    const told = all.body.entries.map(({ who, way, verb }: Record<string, string>) => `${who} ${way} ${verb}`);
    const named = (rows: object): readonly string[] =>
      Object.values(rows).flatMap((row) => ('name' in row ? [row.name] : named(row)));
    const names = new Set(named(operations));
    const changes = verbs.map(({ name }) => name.replace(/Many$/, '')).filter((name) => names.has(name));
    expect(new Set(told)).toEqual(new Set(changes.map((name) => `anonymous api ${name}`)));
    const page = await ask('GET /v1/audit?limit=2');
    const next = await ask(`GET /v1/audit?limit=2&cursor=${page.body.cursor}`);
    expect([...page.body.entries, ...next.body.entries]).toEqual(all.body.entries.slice(0, 4));
    expect(await ask('GET /v1/audit?limit=9999')).toMatchObject(problem(400, 'bad-input'));
  });
});

describe('workers over HTTP', () => {
  const worker = 'h-test-0f3c9a5be2d1476f8a90b1c2d3e4f506';
  const of = (verb: string, body: object) => ask(`POST /v1/queues/worked/${verb}`, { body: { worker, ...body } });

  test('claim jobs, say how they end, beat, and leave', async () => {
    const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
    await ask('POST /v1/queues/worked/batch/schedule', { body: { jobs: ids.map((id) => ({ id, delay: 0 })) } });
    const runs: string[] = [];
    for (let seq = 1; runs.length < ids.length; seq += 1) {
      const { status, body } = await of('claim', { seq, max: 10, wait: '5s' });
      expect(status).toBe(200);
      runs.push(...body.jobs.map(({ run }: { run: string }) => run));
    }
    const [run = ''] = runs;
    expect(await of('beat', { runs: [{ run, progress: 0.5 }] })).toMatchObject({ body: { results: ['ok'] } });
    expect(await of('extend', { run })).toMatchObject({ body: { result: 'ok' } });
    expect(await of('progress', { run, progress: 0.9, text: 'nearly' })).toMatchObject({ body: { result: 'ok' } });
    expect(await of('settle', { runs: [{ run, end: 'complete' }] })).toMatchObject({ body: { results: ['ok'] } });
    expect(await of('complete', { run: runs[1] })).toMatchObject({ body: { result: 'ok' } });
    expect(await of('fail', { run: runs[2], error: 'no' })).toMatchObject({ body: { result: 'ok' } });
    expect(await of('defer', { run: runs[3], delay: '1h' })).toMatchObject({ body: { result: 'ok' } });
    expect(await of('begin', { run: runs[4] })).toMatchObject({ body: { result: 'ok' } });
    expect(await of('leave', {})).toMatchObject({ status: 200, body: { given: 1 } });
  });

  test.each(['claim', 'settle', 'beat', 'leave', 'complete', 'fail', 'defer', 'begin', 'extend', 'progress'])(
    '%s of a worker without a name is refused',
    async (verb) => {
      expect(await of(verb, { worker: 'me' })).toMatchObject(problem(400, 'bad-input'));
    },
  );
});

describe('sessions', () => {
  test('are opened with a token, looked at and ended', async () => {
    const token = await api.tokenOf({ scopes: ['read'] });
    const opened = await ask('POST /v1/session', { body: { token } });
    expect(opened).toMatchObject({ status: 201, body: { scopes: ['read'], csrf: expect.any(String) } });
    const Cookie = opened.headers.get('set-cookie')?.split(';')[0] ?? '';
    expect(await ask('GET /v1/session', { headers: { Cookie } })).toMatchObject({ status: 200, body: opened.body });
    expect((await ask('DELETE /v1/session', { headers: { Cookie } })).status).toBe(204);
    expect(await ask('GET /v1/session', { headers: { Cookie } })).toMatchObject(problem(401, 'unauthorized'));
    // A page that asks whether anybody is logged in finds no error in the console of its browser.
    expect(await ask('GET /v1/session?optional=true', { headers: { Cookie } })).toMatchObject({ status: 204 });
    expect(await ask('POST /v1/session', { body: { token: 'nobody' } })).toMatchObject(problem(401, 'unauthorized'));
    expect(await ask('DELETE /v1/session', { headers: { Origin: 'https://evil.example' } })).toMatchObject(
      problem(403, 'forbidden'),
    );
  });
});

describe('paths', () => {
  test('that are none, and methods that they have not', async () => {
    expect(await api.ask('GET /v1/nothing')).toMatchObject(problem(404, 'not-found'));
    expect(await api.ask('GET /v1')).toMatchObject(problem(404, 'not-found'));
    const wrong = await api.ask('PUT /v1/queues/emails/jobs');
    expect(wrong).toMatchObject(problem(405, 'method-not-allowed'));
    expect(wrong.headers.get('allow')).toBe('GET, HEAD, POST');
    expect(await api.ask('HEAD /v1/queues')).toMatchObject({ status: 200, text: '' });
  });

  test('of the older window stay what they were', async () => {
    expect((await api.ask('GET /livez')).text).toBe('ok\n');
    expect((await api.ask('GET /v2')).body).toEqual({
      error: 'not-found',
      message:
        'allowed: /livez, /readyz, /metrics, and with http.api also / and /v1/; a proxy that serves them below a path takes that path away',
    });
  });
});

test('every verb was asked, well and wrongly', () => {
  const names = verbs.map(({ name }) => name).toSorted();
  // Nothing that somebody says makes the list of queues wrong.
  const never = ['queues.list'];
  expect(names.filter((name) => !asked.well.has(name))).toEqual([]);
  expect(names.filter((name) => !asked.wrongly.has(name) && !never.includes(name))).toEqual([]);
});
