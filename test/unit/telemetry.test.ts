/** Spans of calls and of starts, in virtual time: days pass between them, and an SDK of OpenTelemetry keeps them. */
import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { AlwaysOffSampler } from '@opentelemetry/sdk-trace-base';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { Defer, defineQueue, fixed, type Handler, type Log } from '../../src/index.ts';
import { withHeaders } from '../../src/job/labels.ts';
import { parseLog } from '../../src/kernel/log.ts';
import { registered } from '../../src/kernel/telemetry.ts';
import { messaging, wishesIn } from '../../src/telemetry/names.ts';
import { createTestKit } from '../../src/testing/index.ts';
import { linksOf, spanOf, traceOf, useTracing } from '../support/tracing.ts';

const kitOf = (handler: Handler) => createTestKit({ start: '2026-03-02T09:00:00Z', handlers: { mail: handler } });
const idle = () => undefined;
const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

test('without an SDK nothing is there to be asked, and a job has no headers', async () => {
  const kit = kitOf(idle);
  await kit.schedule('mail', 1, { id: 'a', delay: '3d' });
  expect(registered()).toBeUndefined();
  expect((await kit.client.get('mail', 'a'))?.headers).toBeUndefined();
  await kit.advance('3d');
  expect(kit.runs).toHaveLength(1);
});

describe('over three days', () => {
  const { spans, within } = useTracing();

  test('each start has a trace of its own, with a link to the call, which belongs to the request', async () => {
    const kit = kitOf(async ({ attempt }) => {
      await within('smtp.send', async () => undefined);
      if (attempt === 1) throw new Error('SMTP 451');
    });
    const options = { id: 'order-7', name: 'remind', delay: '3d', backoff: fixed('30s') } as const;
    const call = () => kit.client.schedule('mail', { order: 7 }, options);
    expect(await within('POST /orders', call)).toMatchObject({ status: 'scheduled' });
    const [send, request] = spans();
    expect(spans().map(({ name }) => name)).toEqual(['send mail', 'POST /orders']);
    expect(send?.parentSpanContext?.spanId).toBe(spanOf(request));
    await kit.advance('4d');
    const [first, second, ...others] = spans('process mail');
    expect(others).toEqual([]);
    for (const start of [first, second]) {
      expect(start?.parentSpanContext).toBeUndefined();
      expect(linksOf(start)).toEqual([spanOf(send)]);
      expect(start?.links[0]?.context.traceId).toBe(traceOf(request));
    }
    expect(new Set([send, first, second].map(traceOf)).size).toBe(3);
    expect(spans('smtp.send').map(traceOf)).toEqual([traceOf(first), traceOf(second)]);
  });

  test('they say what they are by the names of the conventions, when the job is due, and how it ended', async () => {
    const kit = kitOf(({ attempt }) => {
      if (attempt === 1) throw new Error('SMTP 451');
    });
    await kit.schedule('mail', 1, { id: 'a', name: 'remind', delay: '3d', backoff: fixed('30s') });
    await kit.advance('4d');
    const [send, first, second] = spans();
    const common = {
      'messaging.system': 'duestream',
      'messaging.destination.name': 'mail',
      'messaging.message.id': 'a',
    };
    expect(send).toMatchObject({ name: 'send mail', kind: SpanKind.PRODUCER, status: { code: SpanStatusCode.UNSET } });
    expect(send?.attributes).toEqual({
      ...common,
      'messaging.operation.name': 'send',
      'messaging.operation.type': 'send',
      'duestream.schedule.status': 'scheduled',
      'duestream.job.due': '2026-03-05T09:00:00.000Z',
    });
    expect(first).toMatchObject({
      name: 'process mail',
      kind: SpanKind.CONSUMER,
      status: { code: SpanStatusCode.ERROR, message: 'SMTP 451' },
      attributes: {
        ...common,
        'messaging.operation.name': 'process',
        'messaging.operation.type': 'process',
        'duestream.job.name': 'remind',
        'duestream.job.attempt': 1,
        'duestream.job.due': '2026-03-05T09:00:00.000Z',
        'duestream.job.late_ms': 0,
        'duestream.job.outcome': 'retried',
        'error.type': 'failure',
      },
    });
    expect(first?.events.map(({ name, attributes }) => [name, attributes])).toMatchObject([
      ['exception', { 'exception.message': 'SMTP 451' }],
      ['job.retried', { 'duestream.job.delay_ms': 30_000 }],
    ]);
    expect(second?.status).toEqual({ code: SpanStatusCode.UNSET });
    expect(second?.attributes).toMatchObject({ 'duestream.job.attempt': 2, 'duestream.job.outcome': 'completed' });
  });

  test('a start that was put off, or was the last one, says so', async () => {
    const kit = kitOf((job) => {
      if (job.id === 'later' && job.attempt === 1) throw new Defer('1h', 'closed');
      if (job.id === 'dead') throw new Error('no');
    });
    for (const id of ['later', 'dead']) await kit.schedule('mail', 1, { id, attempts: 1 });
    await kit.advance('2h');
    const told = spans('process mail').map(({ attributes, status, events }) => [
      attributes['messaging.message.id'],
      attributes['duestream.job.outcome'],
      status.code === SpanStatusCode.ERROR,
      events.at(-1)?.attributes?.['duestream.job.reason'],
    ]);
    expect(told.sort()).toEqual([
      ['dead', 'dead', true, 'attempts-exhausted'],
      ['later', 'completed', false, undefined],
      ['later', 'deferred', false, 'closed'],
    ]);
  });

  test('a list is one call, whose span all its jobs link to', async () => {
    const kit = kitOf(idle);
    const jobs = ['a', 'b', 'c'].map((id) => ({ data: 1, id, delay: '3d' as const }));
    await kit.client.scheduleMany('mail', jobs);
    const [send] = spans();
    expect(send?.attributes).toMatchObject({ 'messaging.batch.message_count': 3 });
    expect(send?.attributes).not.toHaveProperty('messaging.message.id');
    await kit.advance('3d');
    expect(spans('process mail').map(linksOf)).toEqual(jobs.map(() => [spanOf(send)]));
  });

  test('what a handler schedules, and what it commits, belongs to its start', async () => {
    const kit = kitOf(async ({ id }, { schedule, commitJob }) => {
      if (id !== 'a') return;
      await schedule('mail', 1, { id: 'b', delay: '1d' });
      await commitJob(1, { delay: '1d' });
    });
    await kit.schedule('mail', 1, { id: 'a', delay: '1d' });
    await kit.advance('3d');
    const [, ofHandler] = spans('send mail');
    const [first, ...next] = spans('process mail');
    expect(traceOf(ofHandler)).toBe(traceOf(first));
    const links = Object.fromEntries(next.map((one) => [one.attributes['messaging.message.id'], linksOf(one)]));
    const { b, ...committed } = links;
    expect(b).toEqual([spanOf(ofHandler)]);
    expect(Object.values(committed)).toEqual([[spanOf(first)]]);
  });

  test('baggage of the request holds in the handler', async () => {
    const seen: unknown[] = [];
    const kit = kitOf(() => void seen.push(propagation.getActiveBaggage()?.getEntry('tenant')?.value));
    const baggage = propagation.createBaggage({ tenant: { value: 'acme' } });
    const inTenant = propagation.setBaggage(context.active(), baggage);
    await context.with(inTenant, () => kit.schedule('mail', 1, { delay: '3d' }));
    await kit.advance('3d');
    expect(seen).toEqual(['acme']);
  });

  test('jobs of a schedule link to the leader that made them', async () => {
    const schedules = { nightly: { queue: 'mail', cron: '0 3 * * *', maxRuns: 2, headers: { tenant: 'acme' } } };
    const seen: unknown[] = [];
    const handlers = { mail: (job: { headers: object }) => void seen.push(Object.keys(job.headers)) };
    const kit = createTestKit({ start: '2026-03-02T09:00:00Z', handlers, schedules });
    await kit.advance('3d');
    expect(spans('process mail').map(linksOf)).toEqual(spans('send mail').map((send) => [spanOf(send)]));
    expect(spans('send mail').map(({ parentSpanContext }) => parentSpanContext)).toEqual([undefined, undefined]);
    expect(seen).toEqual([
      ['tenant', 'traceparent'],
      ['tenant', 'traceparent'],
    ]);
  });

  test('a job that is made out of turn links to whoever asked for it', async () => {
    const kit = kitOf(idle);
    await kit.client.schedules.put('yearly', { queue: 'mail', cron: '0 3 1 7 *' });
    const range = { from: '2025-01-01T00:00:00Z', to: '2025-12-31T00:00:00Z' };
    await within('POST /run', () => kit.client.schedules.trigger('yearly'));
    await within('POST /backfill', () => kit.client.schedules.backfill('yearly', range));
    await kit.advance('1h');
    const asked = [...spans('POST /run'), ...spans('POST /backfill')].map((span) => [spanOf(span)]);
    expect(spans('process mail').map(linksOf)).toEqual(expect.arrayContaining(asked));
    expect(spans('process mail')).toHaveLength(2);
  });

  test('the callback of a set links to the call that began the set, and the same call again is the same', async () => {
    const kit = kitOf(idle);
    const begin = () => kit.client.sets.begin('mail', 'import-7', { then: { data: 7 } });
    const statuses = [(await begin()).status, (await begin()).status];
    await kit.schedule('mail', 1, { id: 'row', set: 'import-7', delay: '3d' });
    await kit.client.sets.seal('mail', 'import-7');
    await kit.advance('4d');
    expect(statuses).toEqual(['made', 'already']);
    expect(linksOf(spans('process mail').at(-1))).toEqual([spanOf(spans('send mail')[0])]);
    const other = { then: { data: 8 } };
    await kit.client.sets.begin('mail', 'import-8', { then: { data: 7 } });
    await expect(kit.client.sets.begin('mail', 'import-8', other)).rejects.toMatchObject({ code: 'exists' });
  });
});

describe('the headers of a job', () => {
  const { spans, within } = useTracing();
  const headersOf = async (kit: ReturnType<typeof kitOf>, id: string) => (await kit.client.get('mail', id))?.headers;

  test('keep a trace that the caller names, and the call links to it', async () => {
    const kit = kitOf(idle);
    await kit.schedule('mail', 1, { id: 'a', headers: { TraceParent: TRACEPARENT }, delay: '1d' });
    expect(await headersOf(kit, 'a')).toEqual({ traceparent: TRACEPARENT });
    expect(linksOf(spans()[0])).toEqual(['b7ad6b7169203331']);
    await kit.advance('1d');
    expect(linksOf(spans('process mail')[0])).toEqual(['b7ad6b7169203331']);
  });

  test('keep those of the caller, and go without a trace where these leave no room', async () => {
    const kit = kitOf(idle);
    const full = { big: 'x'.repeat(4090) };
    await kit.schedule('mail', 1, { id: 'own', headers: { tenant: 'acme' }, delay: '1d' });
    await kit.schedule('mail', 1, { id: 'full', headers: full, delay: '1d' });
    expect(Object.keys((await headersOf(kit, 'own')) ?? {})).toEqual(['tenant', 'traceparent']);
    expect(await headersOf(kit, 'full')).toEqual(full);
    const many = Object.fromEntries(Array.from({ length: 20 }, (_, nth) => [`h${nth}`, '1']));
    expect(withHeaders(many, { traceparent: TRACEPARENT })).toEqual(many);
    expect(withHeaders({}, { 'not a name': '1', x: 'a\nb', ok: '1' })).toEqual({ ok: '1' });
  });

  test('that are wrong are refused as without a trace', async () => {
    const kit = kitOf(idle);
    for (const headers of ['text', null, ['a'], { 'a b': '1' }, { a: 1 }]) {
      const call = kit.client.schedule('mail', 1, { headers: headers as never });
      await expect(call).rejects.toMatchObject({ code: 'bad-input', message: expect.stringContaining('headers') });
    }
    expect(spans().map(({ attributes }) => attributes['error.type'])).toEqual(Array(5).fill('bad-input'));
  });

  test('do not make a call another one: it is the same call in each trace, while the job waits and when it is over', async () => {
    const kit = kitOf(idle);
    const at = new Date(kit.nowMs + 60_000);
    const call = () => within('request', async () => (await kit.client.schedule('mail', {}, { id: 'a', at })).status);
    expect([await call(), await call()]).toEqual(['scheduled', 'already']);
    await kit.advance('2m');
    expect([await call(), kit.runs.length]).toEqual(['already', 1]);
  });

  test('stay as they are when an update names none', async () => {
    const kit = kitOf(idle);
    const update = (data: number) =>
      kit.client.schedule('mail', data, { id: 'a', ifExists: 'update', delay: '1d', headers: undefined });
    await update(1);
    const before = await headersOf(kit, 'a');
    expect((await update(2)).status).toBe('updated');
    expect(before).toHaveProperty('traceparent');
    expect(await headersOf(kit, 'a')).toEqual(before);
  });
});

describe('a call that fails', () => {
  const { spans } = useTracing();

  test('is an error by its code, and its caller sees it as ever', async () => {
    const kit = createTestKit({ handlers: { mail: idle }, queues: [defineQueue('mail', { maxPending: 1 })] });
    await kit.schedule('mail', 1, { delay: '1d' });
    await expect(kit.schedule('mail', 2, { delay: '1d' })).rejects.toMatchObject({ code: 'queue-full' });
    expect(spans().at(-1)).toMatchObject({
      status: { code: SpanStatusCode.ERROR, message: expect.stringContaining('is full') },
      attributes: { 'error.type': 'queue-full' },
    });
  });
});

describe('lines of the log', () => {
  const { spans, within } = useTracing();

  test('have the ids of the span in which they are said, and none when it is over', async () => {
    const lines: unknown[] = [];
    const write: Log['info'] = (fields) => void lines.push(fields);
    const log: Log = { debug: write, info: write, warn: write, error: write, child: () => log };
    const guarded = parseLog(log);
    let later: () => void = idle;
    await within('request', async () => {
      guarded.info({ a: 1 }, 'in it');
      later = context.bind(context.active(), () => guarded.info({ b: 2 }, 'behind it'));
    });
    later();
    const [request] = spans();
    expect(lines).toEqual([{ a: 1, trace_id: traceOf(request), span_id: spanOf(request) }, { b: 2 }]);
  });
});

describe('of a trace that is not sampled', () => {
  const { spans } = useTracing({ sampler: new AlwaysOffSampler() });

  test('nothing is kept, and the job carries the context all the same', async () => {
    const kit = kitOf(idle);
    await kit.schedule('mail', 1, { id: 'a', delay: '1d' });
    expect((await kit.client.get('mail', 'a'))?.headers?.traceparent).toMatch(/-00$/);
    await kit.advance('1d');
    expect([spans(), kit.runs.length]).toEqual([[], 1]);
  });
});

describe('an SDK that throws', () => {
  useTracing();
  afterEach(() => vi.restoreAllMocks());

  test('costs no call and no job: it is told once, as a warning', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(idle);
    vi.spyOn(trace.getTracerProvider(), 'getTracer').mockReturnValue({
      startSpan() {
        throw new Error('broken');
      },
      startActiveSpan: idle as never,
    });
    const kit = kitOf(idle);
    for (const id of ['a', 'b']) await kit.schedule('mail', 1, { id, delay: '1d' });
    await kit.advance('1d');
    expect(kit.runs.map(({ outcome }) => outcome)).toEqual(['done', 'done']);
    expect(warned.mock.calls.map(([text]) => String(text).replace(/failed.*/, 'failed'))).toEqual([
      'OpenTelemetry: the span of a call failed',
      'OpenTelemetry: the span of a start failed',
    ]);
  });
});

describe('the environment', () => {
  useTracing();
  afterEach(() => {
    vi.unstubAllEnvs();
    vi.resetModules();
  });

  test('switches all of it off by the list of instrumentations', async () => {
    expect(wishesIn({}).isOff).toBe(false);
    const isTraced = async () => {
      // It is read once per process.
      vi.resetModules();
      const { beginSend } = await import('../../src/telemetry/spans.ts');
      return beginSend('mail') !== undefined;
    };
    expect(await isTraced()).toBe(true);
    vi.stubEnv('OTEL_NODE_DISABLED_INSTRUMENTATIONS', 'fs, duestream');
    expect(await isTraced()).toBe(false);
  });

  test('asks for the older name of the operation as well', () => {
    const old = (optIn: string, operation: 'send' | 'process') =>
      messaging({ operation, queue: 'mail' }, wishesIn({ OTEL_SEMCONV_STABILITY_OPT_IN: optIn }))[
        'messaging.operation'
      ];
    expect([old('', 'send'), old('messaging', 'send'), old('http,messaging/dup', 'send')]).toEqual([
      undefined,
      undefined,
      'publish',
    ]);
    expect(old('messaging/dup', 'process')).toBe('process');
  });
});
