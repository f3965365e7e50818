/** A trace goes on where a call goes through a database, through HTTP, and to a worker and a subscriber over a real Redis. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type Client,
  createClient,
  createSubscriber,
  createWorker,
  defineQueue,
  type Log,
} from '../../../src/index.ts';
import { type ServedApi, serveApi } from '../../support/api.ts';
import { databases } from '../../support/databases.ts';
import { useOutbox } from '../../support/outbox.ts';
import { linksOf, spanOf, traceOf, useTracing } from '../../support/tracing.ts';

const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

describe.each(databases)('an outbox in $name', (database) => {
  const { spans, within } = useTracing();
  const { outbox, db, client, relay } = useOutbox(database);

  test('writes the trace of the transaction into the row, and the relay gives it to the job', async () => {
    const carrier = relay();
    await within('POST /orders', () =>
      db().transaction(async (run) => {
        await outbox.schedule(run, 'mail', { step: 1 }, { id: 'a', delay: '1h' });
        await outbox.scheduleMany(run, 'mail', [{ data: { step: 2 }, id: 'b', delay: '1h' }]);
      }),
    );
    await carrier.pass();
    const [one, many, request] = spans();
    expect([one, many].map((span) => span?.parentSpanContext?.spanId)).toEqual([spanOf(request), spanOf(request)]);
    expect(one?.attributes).toMatchObject({ 'messaging.message.id': 'a' });
    for (const [id, span] of [['a', one] as const, ['b', many] as const]) {
      const headers = (await client().get('mail', id))?.headers;
      expect(headers?.traceparent).toBe(`00-${traceOf(span)}-${spanOf(span)}-01`);
    }
  });

  test('that refuses a call ends its span as an error', async () => {
    const call = async () => outbox.schedule(db().run, 'mail', 1, { delay: 'soon' as never });
    await expect(call()).rejects.toMatchObject({ code: 'bad-input' });
    expect(spans()).toMatchObject([{ attributes: { 'error.type': 'bad-input' } }]);
  });
});

describe('HTTP', () => {
  let api: ServedApi;
  beforeAll(async () => {
    api = await serveApi();
  });
  afterAll(() => api.stop());

  const headersOf = async (id: string) => (await api.ask(`GET /v1/queues/mail/jobs/${id}`)).body.headers;
  const headers = { traceparent: TRACEPARENT, tracestate: 'a=1' };

  test('gives the trace of a request to its jobs, though nothing is traced here', async () => {
    await api.ask('POST /v1/queues/mail/jobs', { body: { id: 'one', delay: '1h', headers: { tenant: '7' } }, headers });
    const jobs = [
      { id: 'two', delay: '1h' },
      { id: 'three', delay: '1h' },
    ];
    await api.ask('POST /v1/queues/mail/batch/schedule', { body: { jobs }, headers });
    expect(await headersOf('one')).toEqual({ tenant: '7', traceparent: TRACEPARENT, tracestate: 'a=1' });
    expect([await headersOf('two'), await headersOf('three')]).toEqual([headers, headers]);
  });

  test('leaves a job its own trace, and passes over what is no traceparent', async () => {
    const own = { traceparent: TRACEPARENT.replace('b7', 'c8') };
    await api.ask('POST /v1/queues/mail/jobs', { body: { id: 'own', delay: '1h', headers: own }, headers });
    const wrong = { traceparent: 'none' };
    await api.ask('POST /v1/queues/mail/jobs', { body: { id: 'wrong', delay: '1h' }, headers: wrong });
    expect([await headersOf('own'), await headersOf('wrong')]).toEqual([own, undefined]);
  });

  test('answers a request that comes again with its key in another trace as the first one', async () => {
    const ask = (traceparent: string) =>
      api.ask('POST /v1/queues/mail/jobs', {
        body: { delay: '1h' },
        headers: { traceparent, 'Idempotency-Key': 'order-7' },
      });
    const first = await ask(TRACEPARENT);
    const second = await ask(TRACEPARENT.replace('b7', 'c8'));
    expect([first.status, second.status]).toEqual([201, 200]);
    expect(await headersOf('order-7')).toEqual({ traceparent: TRACEPARENT });
  });

  describe('where calls are traced', () => {
    const { spans } = useTracing();

    test('the call of the daemon links to the request', async () => {
      await api.ask('POST /v1/queues/mail/jobs', { body: { id: 'linked', delay: '1h' }, headers });
      expect(spans('send mail').map(linksOf)).toEqual([['b7ad6b7169203331']]);
      expect(await headersOf('linked')).toEqual(headers);
    });
  });
});

describe('over a Redis', () => {
  const { spans, within } = useTracing();
  let api: ServedApi;
  let client: Client;
  beforeAll(async () => {
    api = await serveApi();
    client = createClient({ redis: api.redis.url });
  });
  afterAll(async () => {
    await client.close();
    await api.stop();
  });

  test('a worker links to the call, and its lines of the start have the ids of its span', async () => {
    const lines: [message: string, fields: Readonly<Record<string, unknown>>][] = [];
    const write: Log['info'] = (fields, message) => void lines.push([message, fields]);
    const log: Log = { debug: write, info: write, warn: write, error: write, child: () => log };
    const queue = defineQueue('doomed', { attempts: 1 });
    const fail = (_: unknown, context: { readonly log: Log }) => {
      context.log.info({}, 'the handler');
      throw new Error('no');
    };
    const worker = createWorker(queue, fail, { redis: api.redis.url, log });
    await worker.start();
    await within('request', () => client.schedule(queue, 1, { id: 'a' }));
    await expect.poll(() => spans('process doomed')).toHaveLength(1);
    await worker.stop();
    const [start] = spans('process doomed');
    expect(linksOf(start)).toEqual([spanOf(spans('send doomed')[0])]);
    const ids = { trace_id: traceOf(start), span_id: spanOf(start) };
    const told = new Map(lines);
    for (const message of ['job started', 'the handler', 'job is dead']) expect(told.get(message)).toMatchObject(ids);
  });

  test('a handler that runs out of time ends its span as an error, with its line of the log', async () => {
    const lines: [message: string, fields: Readonly<Record<string, unknown>>][] = [];
    const write: Log['info'] = (fields, message) => void lines.push([message, fields]);
    const log: Log = { debug: write, info: write, warn: write, error: write, child: () => log };
    const slow = defineQueue('slow', { attempts: 1, timeout: 20 });
    const untilTold = (_: unknown, { signal }: { readonly signal: AbortSignal }) =>
      new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    const worker = createWorker(slow, untilTold, { redis: api.redis.url, log });
    await worker.start();
    await client.schedule(slow, 1);
    await expect.poll(() => spans('process slow')).toHaveLength(1);
    await worker.stop();
    const [start] = spans('process slow');
    expect(start?.attributes).toMatchObject({ 'error.type': 'timeout', 'duestream.job.outcome': 'dead' });
    const [fields] = lines.flatMap(([message, of]) => (message.startsWith('job timed out') ? [of] : []));
    expect(fields).toMatchObject({ trace_id: traceOf(start), span_id: spanOf(start) });
  });

  test('a job that is cancelled while it runs ends its span as cancelled, and as no error', async () => {
    const queue = defineQueue('stopped');
    const stopped = (_: unknown, { signal }: { readonly signal: AbortSignal }) =>
      new Promise<void>((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      });
    const worker = createWorker(queue, stopped, { redis: api.redis.url });
    await worker.start();
    await client.schedule(queue, 1, { id: 'a' });
    await expect.poll(async () => (await client.get(queue, 'a'))?.state).toBe('running');
    await client.cancel(queue, 'a');
    await expect.poll(() => spans('process stopped')).toHaveLength(1);
    await worker.stop();
    const [start] = spans('process stopped');
    expect(start?.attributes).toMatchObject({ 'duestream.job.outcome': 'cancelled' });
    expect(start?.attributes).not.toHaveProperty('error.type');
  });

  test('a job that is delivered at most once has one span, which ends with its handler', async () => {
    const once = defineQueue('once', { delivery: 'at-most-once' });
    const handler = ({ id }: { readonly id: string }) => {
      if (id === 'b') throw new Error('no');
    };
    const worker = createWorker(once, handler, { redis: api.redis.url });
    await worker.start();
    for (const id of ['a', 'b']) await client.schedule(once, 1, { id });
    await expect.poll(() => spans('process once')).toHaveLength(2);
    await worker.stop();
    const outcomes = spans('process once').map(({ attributes }) => attributes['duestream.job.outcome']);
    expect(outcomes.toSorted()).toEqual(['completed', 'failed']);
  });

  test('each subscriber of a broadcast queue has a span of its own', async () => {
    const prices = defineQueue('prices', { broadcast: true });
    const handlerOf = (nth: number) => () => {
      if (nth === 1) throw new Error('no');
    };
    const redis = api.redis.url;
    const subscribers = [0, 1].map((nth) => createSubscriber(prices, handlerOf(nth), { redis }));
    await Promise.all(subscribers.map((one) => one.start()));
    await client.schedule(prices, 1);
    await expect.poll(() => spans('process prices')).toHaveLength(2);
    await Promise.all(subscribers.map((one) => one.stop()));
    const [send] = spans('send prices');
    expect(spans('process prices').map(linksOf)).toEqual([[spanOf(send)], [spanOf(send)]]);
    const outcomes = spans('process prices').map(({ attributes }) => attributes['duestream.job.outcome']);
    expect(outcomes.toSorted()).toEqual(['completed', 'failed']);
  });
});
