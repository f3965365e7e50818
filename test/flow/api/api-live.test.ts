/** The live view over a real connection: what it says, who may watch, and how it ends. */
import { createConnection } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { revokeToken } from '../../../src/access/tokens.ts';
import { partitionKeys } from '../../../src/redis/keys.ts';
import { type ServedApi, serveApi } from '../../support/api.ts';

const served: ServedApi[] = [];
afterEach(async () => {
  await Promise.all(served.splice(0).map((api) => api.stop()));
});

async function serve(given: Parameters<typeof serveApi>[0] = {}): Promise<ServedApi> {
  const api = await serveApi({ roles: ['http', 'mover'], ...given });
  served.push(api);
  return api;
}

interface Event {
  readonly event: string;
  readonly id: string | undefined;
  readonly data: ReturnType<typeof JSON.parse>;
}

/** Events as they come, until the stream ends. */
async function* eventsOf(api: ServedApi, token?: string): AsyncGenerator<Event, void> {
  const headers: Record<string, string> = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  const response = await fetch(`${api.url}/v1/live`, { headers });
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  // A proxy must neither collect it nor compress it.
  expect(response.headers.get('cache-control')).toBe('no-store, no-transform');
  expect(response.headers.get('x-accel-buffering')).toBe('no');
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString();
    const blocks = text.split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1];
      const event = field('event');
      if (event !== undefined) yield { event, id: field('id'), data: JSON.parse(field('data') ?? 'null') };
    }
  }
}

/** The first event that is as wanted. */
async function until(events: AsyncGenerator<Event, void>, isIt: (event: Event) => boolean): Promise<Event> {
  for (;;) {
    const { done, value } = await events.next();
    if (done === true || value === undefined) throw new Error('the stream ended before');
    if (isIt(value)) return value;
  }
}

test('a queue in trouble says why, without a call for each', async () => {
  const api = await serve();
  await api.ask('POST /v1/queues/held/jobs', { body: { id: 'a' } });
  await api.ask('POST /v1/queues/calm/jobs', { body: { id: 'a', delay: '30m' } });
  await api.ask('POST /v1/queues/held/pause', { body: { reason: 'the gateway moves' } });
  const obstacleOf = (event: Event, queue: string): string | undefined =>
    event.data.queues.find((one: { readonly queue: string }) => one.queue === queue)?.obstacle;
  const isTold = (event: Event) => event.event === 'now' && obstacleOf(event, 'held') !== undefined;
  const told = await until(eventsOf(api), isTold);
  expect(obstacleOf(told, 'held')).toMatch(/^it has been paused for .*: the gateway moves$/);
  expect(obstacleOf(told, 'calm')).toMatch(/^no worker that lives serves it$/);
});

test('a queue whose keys are damaged hides no other: not in the list, not in the live view, not from a scraper', async () => {
  const api = await serve();
  for (const queue of ['bad', 'good']) {
    await api.ask(`POST /v1/queues/${queue}/jobs`, { body: { id: 'a', delay: '30m' } });
  }
  const metrics = async () => (await fetch(`${api.url}/metrics`)).text();
  const led = /duestream_mover_leader\{queue="bad",partition="0"\} 1\n/;
  await expect.poll(metrics).toMatch(led);
  const { redis, namespace } = api.place;
  const { scheduled } = partitionKeys({ namespace, queue: 'bad', partition: 0 });
  await redis.set(scheduled, 'a person did this');
  const unread = [{ queue: 'bad', why: expect.stringContaining('WRONGTYPE') }];
  const listed = await api.ask('GET /v1/queues');
  expect(listed).toMatchObject({ status: 200, body: { queues: [{ queue: 'good', scheduled: 1 }], unread } });
  const seen = await until(eventsOf(api), ({ data }) => data.unread?.length > 0);
  expect(seen.data).toMatchObject({ queues: [{ queue: 'good', scheduled: 1 }], unread, total: { scheduled: 1 } });
  const text = await metrics();
  expect(text).toMatch(/duestream_scheduled_jobs\{queue="good"\} 1\n/);
  expect(text).not.toMatch(/duestream_scheduled_jobs\{queue="bad"\}/);
  expect(text).toMatch(led);
  expect(text).toContain('duestream_redis_up 0\n');
});

test('it tells counts as the lists do, with ids that grow by one, and with Redis, forecast and doctor soon', async () => {
  const api = await serve();
  const jobs = ['a', 'b', 'c'].map((id) => ({ id, delay: '30m' }));
  await api.ask('POST /v1/queues/emails/batch/schedule', { body: { jobs } });
  const events = eventsOf(api);
  const first = await until(events, () => true);
  expect(first).toMatchObject({
    event: 'now',
    data: { queues: [{ queue: 'emails', scheduled: 3, leaders: [expect.any(String)] }], total: { scheduled: 3 } },
  });
  const second = await until(events, () => true);
  // The name of the daemon's run may hold a dash itself.
  const [, name, number] = /^(.+)-(\d+)$/.exec(first.id ?? '') ?? [];
  expect(second.id).toBe(`${name}-${Number(number) + 1}`);
  await api.ask('POST /v1/queues/emails/jobs', { body: { id: 'd', delay: '30m' } });
  await until(events, ({ data }) => data.total.scheduled === 4);
  const whole = await until(events, ({ data }) => data.redis && data.forecast && data.doctor);
  expect(whole.data).toMatchObject({
    redis: { usedBytes: expect.any(Number), policy: 'noeviction' },
    forecast: { nextHour: expect.any(Number) },
    processes: { daemons: 1, workers: 0, partitions: 1, led: 1 },
  });
  expect(whole.data.forecast.nextHour).toBeGreaterThanOrEqual(3);
  await events.return();
});

test('a token of some queues sees those, and one that is revoked is sent away', async () => {
  const api = await serve({ http: { tokens: 'always' } });
  const admin = await api.tokenOf({ scopes: ['admin'] });
  const mine = await api.tokenOf({ name: 'mine', scopes: ['read'], queues: ['sms'] });
  for (const queue of ['emails', 'sms']) {
    await api.ask(`POST /v1/queues/${queue}/jobs`, { token: admin, body: { delay: '1h' } });
  }
  expect((await api.ask('GET /v1/live')).status).toBe(401);
  const events = eventsOf(api, mine);
  const { data } = await until(events, () => true);
  expect(data.queues.map(({ queue }: { queue: string }) => queue)).toEqual(['sms']);
  expect(JSON.stringify(data)).not.toContain('emails');
  await revokeToken(api.place, 'mine');
  expect((await until(events, ({ event }) => event === 'bye')).data).toEqual({ code: 'revoked' });
  expect((await events.next()).done).toBe(true);
});

test('a stop of the daemon says so and does not wait for those who watch', async () => {
  const api = await serve();
  const events = eventsOf(api);
  await until(events, () => true);
  const stopped = api.daemon.stop();
  expect((await until(events, ({ event }) => event === 'bye')).data).toEqual({ code: 'stopping' });
  await stopped;
});

test('a viewer that went away, and one that asks for the head alone, leave nothing behind', async () => {
  const api = await serve();
  await api.ask('POST /v1/queues/emails/jobs', { body: { delay: '1h' } });
  expect((await api.ask('HEAD /v1/live')).status).toBe(200);
  const { hostname, port } = new URL(api.url);
  const socket = createConnection({ host: hostname, port: Number(port) });
  socket.write('GET /v1/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
  await new Promise<void>((resolve) => {
    socket.on('data', (chunk) => {
      if (chunk.toString().includes('event: now')) resolve();
    });
  });
  socket.destroy();
  const looks = async () =>
    Number(/cmdstat_evalsha:calls=(\d+)/.exec(await api.place.redis.info('commandstats'))?.[1] ?? 0);
  // The leader looks too; those who watched have looked twice a second, for the oldest job and the counts.
  let before = Number.NEGATIVE_INFINITY;
  await expect
    .poll(
      async () => {
        const now = await looks();
        const grown = now - before;
        before = now;
        return grown;
      },
      { timeout: 60_000, interval: 3000 },
    )
    .toBeLessThan(4);
});
