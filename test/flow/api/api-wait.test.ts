/** Waiting over HTTP: in the look at a job, and as a stream of the ends of all that a filter means. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ServedApi, serveApi } from '../../support/api.ts';

let api: ServedApi;
beforeAll(async () => {
  api = await serveApi({ roles: ['http', 'mover'] });
});
afterAll(() => api.stop());

const schedule = (id: string, more: object = {}) =>
  api.ask('POST /v1/queues/mail/jobs', { body: { id, delay: '1h', ...more } });
const cancel = (id: string) => api.ask(`DELETE /v1/queues/mail/jobs/${id}`);
const whenMarked = (id: string) =>
  expect
    .poll(async () => (await api.place.redis.hget('duestream:v1:{mail:0}:runs', `j:${id}`))?.split('\n')[0])
    .toMatch(/ 4$/);
const problem = (status: number, code: string) => ({ status, body: expect.objectContaining({ status, code }) });

test('a look that waits is answered when the job is over', async () => {
  await schedule('a');
  const looking = api.ask('GET /v1/queues/mail/jobs/a?wait=60s');
  await whenMarked('a');
  await cancel('a');
  expect(await looking).toMatchObject({ status: 200, body: { id: 'a', state: 'cancelled' } });
  expect(await api.ask('GET /v1/queues/mail/jobs/a?wait=60s')).toMatchObject({ body: { state: 'cancelled' } });
});

test('or when the time is up, with the job as it is', async () => {
  await schedule('b');
  expect(await api.ask('GET /v1/queues/mail/jobs/b?wait=10ms')).toMatchObject({
    status: 200,
    body: { id: 'b', state: 'scheduled' },
  });
});

test('what is nowhere, or no time, is refused', async () => {
  expect(await api.ask('GET /v1/queues/mail/jobs/never?wait=5s')).toMatchObject(problem(404, 'not-found'));
  expect(await api.ask('GET /v1/queues/none/jobs/never?wait=5s')).toMatchObject(problem(404, 'not-found'));
  for (const wait of ['61s', 'soon', '1h', '2m']) {
    expect(await api.ask(`GET /v1/queues/mail/jobs/b?wait=${wait}`), wait).toMatchObject(problem(400, 'bad-input'));
  }
  expect(await api.ask('GET /v1/queues/mail/jobs/b?wait=5s&bare=true')).toMatchObject(problem(400, 'bad-input'));
  expect(await api.ask('GET /v1/queues/none/ends')).toMatchObject(problem(404, 'not-found'));
  expect(await api.ask('GET /v1/queues/mail/ends?tag=a%20b')).toMatchObject(problem(400, 'bad-input'));
});

test('a stream tells each end that the filter means, and then why it ends', async () => {
  await schedule('c', { tags: ['x'] });
  await schedule('d', { tags: ['x'] });
  const streaming = api.ask('GET /v1/queues/mail/ends?tag=x&wait=60s');
  await whenMarked('c');
  await whenMarked('d');
  await cancel('d');
  await cancel('c');
  const { status, text, headers } = await streaming;
  expect([status, headers.get('content-type')]).toEqual([200, 'text/event-stream']);
  expect(headers.get('cache-control')).toBe('no-store, no-transform');
  expect(headers.get('x-accel-buffering')).toBe('no');
  const events = text
    .trim()
    .split('\n\n')
    .filter((one) => !one.startsWith(':'))
    .map((one) => {
      const [, name, data = ''] = /^event: (\w+)\ndata: (.*)$/.exec(one) ?? [];
      return [name, JSON.parse(data)];
    });
  expect(events).toEqual([
    ['end', { id: 'd', status: 'cancelled', overMs: expect.any(Number) }],
    ['end', { id: 'c', status: 'cancelled', overMs: expect.any(Number) }],
    ['bye', { code: 'all' }],
  ]);
});

test('a stream of which nothing has ended yet begins at once, so that no proxy waits for it', async () => {
  await schedule('g', { tags: ['w'] });
  const { body } = await fetch(`${api.url}/v1/queues/mail/ends?tag=w&wait=60s`);
  const reader = body?.getReader();
  const { value } = (await reader?.read()) ?? {};
  expect(Buffer.from(value ?? []).toString()).toBe(': begun\n\n');
  await reader?.cancel();
});

test('a stream ends when the time is up', async () => {
  await schedule('e', { tags: ['y'] });
  const { text } = await api.ask('GET /v1/queues/mail/ends?tag=y&wait=20ms');
  expect(text).toBe('event: end\ndata: {"id":"e","status":"timeout"}\n\nevent: bye\ndata: {"code":"timeout"}\n\n');
});

test('a hundred streams are open at once, and one that ends makes room', async () => {
  await schedule('f', { tags: ['z'] });
  const leaving = new AbortController();
  const stream = (signal?: AbortSignal) =>
    fetch(`${api.url}/v1/queues/mail/ends?tag=z&wait=60s`, { signal: signal ?? null });
  const all = await Promise.all(
    Array.from({ length: 100 }, (_, nth) => stream(nth === 0 ? leaving.signal : undefined)),
  );
  expect(all.map(({ status }) => status)).toEqual(Array(100).fill(200));
  expect(await api.ask('GET /v1/queues/mail/ends?tag=z')).toMatchObject(problem(429, 'too-many'));
  leaving.abort();
  await expect.poll(async () => (await api.ask('GET /v1/queues/mail/ends?tag=z&wait=1ms')).status).toBe(200);
  await cancel('f');
  const texts = await Promise.all(all.slice(1).map((one) => one.text()));
  expect(texts.filter((text) => !text.includes('"code":"all"'))).toEqual([]);
});

test('a HEAD begins no stream, and takes no place of one', async () => {
  await schedule('g', { tags: ['head'] });
  for (let round = 0; round < 4; round += 1) {
    const heads = Array.from({ length: 30 }, () => api.ask('HEAD /v1/queues/mail/ends?tag=head&wait=5m'));
    expect(new Set((await Promise.all(heads)).map(({ status }) => status))).toEqual(new Set([200]));
  }
  expect((await api.ask('HEAD /v1/live')).headers.get('content-type')).toBe('text/event-stream');
  const listeners = await api.place.redis.pubsub('SHARDNUMSUB', 'duestream:v1:{mail:0}:over');
  expect(listeners).toEqual(['duestream:v1:{mail:0}:over', 0]);
  expect((await api.ask('GET /v1/queues/mail/ends?tag=head&wait=1ms')).status).toBe(200);
  await cancel('g');
});

test('nobody is listened for who has gone, and a daemon that stops sends away who waits', async () => {
  const own = await serveApi({ roles: ['http', 'mover'] });
  await own.ask('POST /v1/queues/mail/jobs', { body: { id: 'a', delay: '1h' } });
  const listeners = async () =>
    Number(((await own.place.redis.pubsub('SHARDNUMSUB', 'duestream:v1:{mail:0}:over')) as unknown[])[1]);
  const leave = new AbortController();
  const gone = fetch(`${own.url}/v1/queues/mail/jobs/a?wait=60s`, { signal: leave.signal }).catch(() => undefined);
  await expect.poll(listeners).toBe(1);
  leave.abort();
  await gone;
  await expect.poll(listeners).toBe(0);
  const looking = own.ask('GET /v1/queues/mail/jobs/a?wait=60s');
  const stream = await fetch(`${own.url}/v1/queues/mail/ends?state=scheduled&wait=60s`);
  const streaming = stream.text();
  await expect.poll(listeners).toBe(1);
  await own.stop();
  expect(await looking).toMatchObject(problem(503, 'stopped'));
  expect(await streaming).toContain('event: bye\ndata: {"code":"stopped"}');
});
