/** What the API shows of a queue that redacts fields, and how a person is erased over it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { declareQueue } from '../../../src/redis/scripts/queues.ts';
import { type ServedApi, serveApi } from '../../support/api.ts';
import { buryJobs } from '../../support/buried.ts';

let api: ServedApi;
const SECRET = 'ann@example.org';
const data = { email: SECRET, n: 7 };

beforeAll(async () => {
  api = await serveApi({ roles: ['http', 'mover'] });
  await declareQueue(api.place.redis, { namespace: 'duestream', queue: 'mail', partitions: 1, redact: ['email'] });
});
afterAll(() => api.stop());

describe('fields that a queue redacts', () => {
  test('are shown to no token, and neither is what tells a guess from a miss', async () => {
    await api.ask('POST /v1/queues/mail/jobs', { body: { id: 'a', data, delay: '1h' } });
    const seen = await api.ask('GET /v1/queues/mail/jobs/a');
    expect(seen.body).toMatchObject({ data: { email: '[redacted]', n: 7 }, hidden: false });
    expect(seen.text).not.toContain(SECRET);
    const reader = await api.tokenOf({ scopes: ['read', 'data'] });
    const read = await api.ask('GET /v1/queues/mail/jobs/a', { token: reader });
    expect(read.body).toMatchObject({ data: { email: '[redacted]' } });
    expect(read.body.digest).toBeUndefined();
    expect(read.headers.get('etag')).toBeNull();
    const writer = await api.tokenOf({ scopes: ['read', 'data', 'write'] });
    expect((await api.ask('GET /v1/queues/mail/jobs/a', { token: writer })).body.digest).toMatch(/^[0-9a-f]{16}$/);
  });

  test('are not written back by an edit of what was shown', async () => {
    const { body } = await api.ask('GET /v1/queues/mail/jobs/a');
    const edited = await api.ask('PATCH /v1/queues/mail/jobs/a', { body: { data: body.data } });
    expect(edited).toMatchObject({ status: 400, body: { code: 'bad-input' } });
    expect(edited.text).toContain('stands in views for a value that its queue hides');
    expect((await api.ask('PATCH /v1/queues/mail/jobs/a', { body: { data: { ...data, n: 8 } } })).status).toBe(200);
  });

  test('are not shown of dead letters and of schedules', async () => {
    await buryJobs(api.redis.url, [{ queue: 'mail', id: 'd', data, reason: `no mail to ${SECRET}` }]);
    const { body, text } = await api.ask('GET /v1/queues/mail/dead');
    expect(body.deadLetters).toMatchObject([{ id: 'd', reason: 'no mail to [redacted]' }]);
    expect(text).not.toContain(SECRET);
    for (const { deadLetter } of body.deadLetters) {
      const seen = await api.ask(`GET /v1/queues/mail/dead/${deadLetter}`);
      expect(seen.body.data).toEqual({ email: '[redacted]', n: 7 });
    }
    await api.ask('PUT /v1/schedules/nightly', { body: { queue: 'mail', every: '1h', data } });
    for (const path of ['/v1/schedules', '/v1/schedules/nightly']) {
      const seen = await api.ask(`GET ${path}`);
      expect(seen.text).toContain('[redacted]');
      expect(seen.text).not.toContain(SECRET);
    }
  });
});

describe('what was shown is not written back', () => {
  test('of a schedule: neither where its queue hides a value, nor in another queue, nor what a token did not see', async () => {
    await api.ask('PUT /v1/schedules/weekly', { body: { queue: 'mail', every: '7d', data } });
    const { input } = (await api.ask('GET /v1/schedules/weekly')).body;
    expect(input.data).toEqual({ email: '[redacted]', n: 7 });
    for (const body of [
      { ...input, every: '1d' },
      { ...input, queue: 'mail-2' },
    ]) {
      const put = await api.ask('PUT /v1/schedules/weekly', { body });
      expect(put).toMatchObject({ status: 400, body: { code: 'bad-input', errors: [{ field: 'data.email' }] } });
    }
    const writer = await api.tokenOf({ scopes: ['read', 'write'] });
    const { body: seen } = await api.ask('GET /v1/schedules/weekly', { token: writer });
    expect(seen).toMatchObject({ hidden: true, input: { every: '7d' } });
    const put = await api.ask('PUT /v1/schedules/weekly', { body: { ...seen.input, every: '1d' }, token: writer });
    expect(put).toMatchObject({ status: 400, body: { code: 'bad-input' } });
    expect(put.body.detail).toContain('has data that this token may not see');
    const whole = { ...input, every: '1d', data: { ...data, email: 'bob@example.org' } };
    expect((await api.ask('PUT /v1/schedules/weekly', { body: whole })).body.status).toBe('changed');
    for (const verb of ['pause', 'resume']) {
      expect((await api.ask(`POST /v1/schedules/weekly/${verb}`, { body: {} })).status).toBe(200);
    }
  });

  test('of a job, whose copy would be a new job', async () => {
    await api.ask('POST /v1/queues/mail/jobs', { body: { id: 'copied', data, delay: '1h' } });
    const { body } = await api.ask('GET /v1/queues/mail/jobs/copied');
    for (const [what, sent] of [
      ['POST /v1/queues/mail/jobs', { id: 'copy', data: body.data }],
      ['POST /v1/queues/mail/batch/schedule', { jobs: [{ data: body.data }] }],
      ['POST /v1/queues/mail/batch/edit', { jobs: [{ id: 'copied', data: body.data }] }],
    ] as const) {
      expect(await api.ask(what, { body: sent })).toMatchObject({ status: 400, body: { code: 'bad-input' } });
    }
  });

  test.each([
    ['with data', { data: { n: 1 } }],
    ['without data', {}],
  ])('headers of a schedule %s stay where a token did not see them', async (_how, own) => {
    const at = '/v1/schedules/traced';
    const headers = { traceparent: 'secret-1' };
    const stored = async () => (await api.ask(`GET ${at}`)).body.input.headers;
    await api.ask(`PUT ${at}`, { body: { queue: 'plain', every: '7d', headers, ...own } });
    const token = await api.tokenOf({ scopes: ['read', 'write'] });
    const { input } = (await api.ask(`GET ${at}`, { token })).body;
    expect(input.headers).toBeUndefined();
    expect((await api.ask(`PUT ${at}`, { body: { ...input, every: '1d', ...own }, token })).body.status).toBe(
      'changed',
    );
    expect(await stored()).toEqual(headers);
    await api.ask(`PUT ${at}`, { body: { ...input, every: '1d', headers: {}, ...own }, token });
    expect((await stored()) ?? {}).toEqual({});
    await api.ask(`PUT ${at}`, { body: { queue: 'plain', every: '1d', headers, ...own } });
    await api.ask(`PUT ${at}`, { body: { queue: 'plain', every: '1d', ...own } });
    expect(await stored()).toBeUndefined();
  });

  test('of what a codec has encoded: by an edit, a replacement, and a schedule without its codec', async () => {
    const secret = defineQueue('secret', {
      codec: {
        name: 'hex',
        encode: (text) => Buffer.from(text).toString('hex'),
        decode: (text) => Buffer.from(text, 'hex').toString(),
      },
    });
    const producer = createClient({ redis: api.redis.url });
    const client = createClient({ redis: api.redis.url });
    const schedules = client.schedules;
    await producer.schedule(secret, { iban: 'X' }, { id: 'a', delay: '1h', tags: ['t'] });
    await schedules.put('pay', { queue: secret, every: '1h', data: { iban: 'X' } });
    const job = (await api.ask('GET /v1/queues/secret/jobs/a')).body;
    expect(job).toMatchObject({ data: Buffer.from('{"iban":"X"}').toString('hex'), codec: 'hex' });
    const { input } = (await api.ask('GET /v1/schedules/pay')).body;
    const { codec: _, ...plain } = input;
    const said = expect.stringContaining('is the text that the codec hex has made of the data');
    for (const [what, body] of [
      ['PATCH /v1/queues/secret/jobs/a', { data: job.data }],
      ['POST /v1/queues/secret/jobs', { id: 'a', ifExists: 'replace', data: job.data, delay: '2h' }],
      ['PUT /v1/schedules/pay', { ...plain, every: '2h' }],
    ] as const) {
      expect(await api.ask(what, { body })).toMatchObject({ status: 400, body: { code: 'bad-input', detail: said } });
    }
    await expect(producer.edit(secret, 'a', { data: job.data })).rejects.toMatchObject({ message: said });
    expect(await producer.edit(secret, { tag: 't' }, { data: job.data })).toMatchObject({ changed: 0 });
    // Data and the name of its codec belong together: they are put back as they were.
    expect((await api.ask('PUT /v1/schedules/pay', { body: { ...input, every: '2h' } })).body.status).toBe('changed');
    const view = await schedules.get('pay');
    expect(view?.input).toMatchObject({ data: input.data, codec: 'hex', every: '2h' });
    await schedules.put('pay', { ...view?.input, every: '3h', queue: secret });
    expect((await schedules.get('pay'))?.input).toMatchObject({ data: input.data, codec: 'hex', every: '3h' });
    await producer.close();
    await client.close();
  });
});

describe('POST /v1/erase', () => {
  const put = (queue: string, id: string, tags: readonly string[]) =>
    api.ask(`POST /v1/queues/${queue}/jobs`, { body: { id, delay: '1h', tags } });
  const erase = (body: object, token?: string) => api.ask('POST /v1/erase', { body, token });

  test('counts, removes from every queue, and leaves the tag out of the audit', async () => {
    await put('one', 'a', ['user:42']);
    await put('one', 'b', ['other']);
    await put('two', 'c', ['user:42', 'vip']);
    const dry = await erase({ tag: 'user:42', dryRun: true });
    expect(dry).toMatchObject({ status: 200, body: { dryRun: true, left: 0 } });
    const jobsOf = (body: typeof dry.body) =>
      body.queues.filter(({ jobs }: { jobs: number }) => jobs > 0).map(({ queue }: { queue: string }) => queue);
    expect(jobsOf(dry.body)).toEqual(['one', 'two']);
    const done = await erase({ tag: 'user:42' });
    expect(jobsOf(done.body)).toEqual(['one', 'two']);
    expect(done.body.cursor).toBeUndefined();
    expect((await api.ask('GET /v1/queues/one/jobs/a')).body.state).toBe('cancelled');
    expect((await api.ask('GET /v1/queues/one/jobs/b')).body.state).toBe('scheduled');
    const audit = await api.ask('GET /v1/audit');
    expect(audit.body.entries.slice(0, 2)).toMatchObject([
      { verb: 'erase', queue: 'two', count: 1, way: 'api' },
      { verb: 'erase', queue: 'one', count: 1, way: 'api' },
    ]);
    expect(audit.text).not.toContain('user:42');
  });

  test('is for admins; a token of some queues names one of them', async () => {
    const writer = await api.tokenOf({ scopes: ['write', 'data'] });
    expect((await erase({ tag: 'user:42' }, writer)).status).toBe(403);
    const admin = await api.tokenOf({ scopes: ['admin'], queues: ['one'] });
    expect((await erase({ tag: 'user:42' }, admin)).status).toBe(403);
    expect((await erase({ tag: 'user:42', queue: 'two' }, admin)).status).toBe(403);
    expect((await erase({ tag: 'user:42', queue: 'one' }, admin)).status).toBe(200);
  });

  test('refuses what is given wrongly', async () => {
    for (const body of [{}, { tag: 'a b' }, { tag: 'x', cursor: 'x' }, { tag: 'x', dryrun: true }, { tag: '=x' }]) {
      expect(await erase(body), JSON.stringify(body)).toMatchObject({ status: 400, body: { code: 'bad-input' } });
    }
    expect((await erase({ tag: 'x', queue: 'nobody' })).status).toBe(404);
  });
});
