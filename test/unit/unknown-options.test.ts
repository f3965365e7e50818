/** A name that nobody knows is refused wherever options are taken, with the name that was most likely meant. */
import { expect, test } from 'vitest';
import { createClient, type ScheduleOptions } from '../../src/client/client.ts';
import { createDaemon } from '../../src/daemon/daemon.ts';
import { createWorker, type WorkerQueuesOptions } from '../../src/daemon/embedded-worker.ts';
import { defineQueue, type Queue } from '../../src/job/queue.ts';
import { createTestKit } from '../../src/testing/index.ts';
import { createSubscriber } from '../../src/worker/broadcast/subscriber.ts';
import { defineHandlers } from '../../src/worker/run/handlers.ts';

/** Nobody listens there: what is refused is refused before anything is sent. */
const redis = 'unix:///nowhere/redis.sock';
const handler = () => undefined;
/** As JavaScript would call it. */
const loose = <T>(options: unknown) => options as T;

test.each([
  ['createClient', 'bad-config', () => createClient(loose({ redis, horizn: '1d' })), 'horizon'],
  ['createDaemon', 'bad-config', () => createDaemon(loose({ redis, role: ['mover'] })), 'roles'],
  ['the parts of createDaemon', 'bad-config', () => createDaemon({ redis }, loose({ handler: {} })), 'handlers'],
  ['createWorker', 'bad-config', () => createWorker('q', handler, loose({ redis, conurrency: 5 })), 'concurrency'],
  [
    'createWorker, a queue',
    'bad-config',
    () => createWorker(loose<WorkerQueuesOptions<[]>>({ redis, queues: [{ queu: 'q', handler }] })),
    'queue',
  ],
  ['defineHandlers', 'bad-config', () => defineHandlers({ q: handler }, loose({ onAbandonned: {} })), 'onAbandoned'],
  [
    'defineHandlers, a queue',
    'bad-config',
    () => defineHandlers({ mail: handler }, { onAbandoned: { mial: handler } }),
    'mail',
  ],
  ['createTestKit', 'bad-config', () => createTestKit(loose({ handlers: { q: handler }, inlin: true })), 'inline'],
])('%s refuses it as %s', (_, code, make, meant) => {
  const message = expect.stringContaining(`did you mean ${meant}?`);
  expect(make).toThrow(expect.objectContaining({ code, message }));
});

test.each([
  ['console', console, /log has no method child; allowed: a logger of pino/],
  ['a text', 'info', /log is "info"; allowed/],
  ['a number', 7, /log is 7; allowed/],
  ['null', null, /log is null; allowed/],
  ['a logger without levels', { child: () => undefined }, /log has no method debug, info, warn, error/],
])('%s is no log, wherever one is taken', (_, log, message) => {
  const refusal = expect.objectContaining({ code: 'bad-config', message: expect.stringMatching(message) });
  expect(() => createWorker('q', handler, loose({ redis, log }))).toThrow(refusal);
  expect(() => createSubscriber('q', handler, loose({ redis, log }))).toThrow(refusal);
  expect(() => createDaemon({ redis }, loose({ log }))).toThrow(refusal);
});

test.each([
  ['a generator', function* () {}, /is a generator, whose body nobody would run; allowed: a function/],
  ['an async generator', async function* () {}, /is a generator/],
  ['a method that is a generator', { *[Symbol.iterator]() {} }[Symbol.iterator], /is a generator/],
  ['a class', class Mailer {}, /is a class, which cannot be called/],
  ['a promise', Promise.resolve(), /is a value of type object|handlers of queue q are/],
])('%s is no handler, wherever one is taken', (_, given, message) => {
  const refusal = expect.objectContaining({ message: expect.stringMatching(message) });
  for (const handlers of [given, { default: given }]) {
    expect(() => createWorker('q', loose<typeof handler>(handlers), { redis })).toThrow(refusal);
    expect(() =>
      createWorker(loose<WorkerQueuesOptions<[]>>({ redis, queues: [{ queue: 'q', handler: handlers }] })),
    ).toThrow(refusal);
    expect(() => createSubscriber('q', loose<typeof handler>(handlers), { redis })).toThrow(refusal);
    expect(() => defineHandlers({ q: loose(handlers) })).toThrow(refusal);
  }
  expect(() => createWorker('q', handler, { redis, onAbandoned: loose(given) })).toThrow(/onAbandoned of queue q is/);
  expect(() => defineHandlers({ q: handler }, { onAbandoned: { q: loose(given) } })).toThrow(
    /onAbandoned of queue q is/,
  );
});

test('an object that defineQueue did not return is refused wherever a queue is taken', async () => {
  const copy = loose<Queue>({ ...defineQueue('q', { broadcast: true }) });
  const refusal = { message: expect.stringContaining('that defineQueue did not return, or a copy of one') };
  for (const make of [
    () => createWorker(copy, handler, { redis }),
    () => createWorker({ redis, queues: [{ queue: copy, handler }] }),
    () => createSubscriber(copy, handler, { redis }),
    () => defineHandlers({ q: handler }, { queues: [copy] }),
    () => createTestKit({ handlers: { q: handler }, queues: [copy] }),
    () => createTestKit({ handlers: { q: handler } }).subscribe(copy, handler),
    () => createTestKit({ handlers: { q: handler }, schedules: { s: { queue: copy as never, every: '1h' } } }),
  ]) {
    expect(make).toThrow(expect.objectContaining(refusal));
  }
  await using producer = createClient({ redis, retryBudget: 0 });
  const kit = createTestKit({ handlers: { q: handler } });
  for (const call of [
    () => producer.schedule(copy, 1),
    () => producer.scheduleMany(copy, []),
    () => producer.cancel(copy, 'a'),
    () => producer.cancel(copy, { tag: 'a' }),
    async () => (await producer.count(copy)).count,
    () => producer.get(copy, 'a'),
    () => producer.schedules.put('s', { queue: copy, every: '1h' }),
    () => producer.deadLetters.list(copy),
    () => producer.erase({ tag: 'a' }, loose({ queues: [copy] })),
    () => kit.schedule(copy, 1),
    () => kit.cancel(copy, 'a'),
    () => kit.client.cancel(copy, 'a'),
    () => kit.client.schedules.put('s', { queue: copy, every: '1h' }),
  ]) {
    await expect(call()).rejects.toMatchObject({ code: 'bad-input', ...refusal });
  }
});

test('an event that there is not, or a listener that nobody could call, is refused with what was meant', () => {
  const { events } = createWorker('q', handler, { redis });
  const on = (name: string, listener: unknown) => () => events.on(loose<'job.dead'>(name), loose<() => void>(listener));
  expect(on('completed', handler)).toThrow(/^there is no event "completed"; allowed: leader\.elected, /);
  expect(on('job.complete', handler)).toThrow(/"job\.complete"; did you mean job\.completed\?/);
  expect(on('__proto__', handler)).toThrow(/there is no event "__proto__"/);
  expect(on('job.dead', 'tell')).toThrow(/^the listener of job\.dead is "tell"; allowed: a function/);
  expect(on('job.dead', function* () {})).toThrow(/^the listener of job\.dead is a generator/);
  expect(on('job.dead', handler)).not.toThrow();
});

test('methods refuse it before anything is sent', async () => {
  await using producer = createClient({ redis, retryBudget: 0 });
  const { schedules } = producer;
  const refusals: readonly (readonly [() => Promise<unknown>, string])[] = [
    [() => producer.schedule('q', 1, loose<ScheduleOptions>({ dealy: '1m' })), 'delay'],
    [() => producer.scheduleMany('q', [], loose({ durabilty: 'memory' })), 'durability'],
    [() => producer.cancel('q', 'a', loose({ bar: true })), 'bare'],
    [() => producer.get('q', 'a', loose({ bar: true })), 'bare'],
    [() => producer.deadLetters.replay('q', '1-1', loose({ dealy: '1m' })), 'delay'],
    [() => producer.reschedule('q', 'a', loose({ dealy: '1m' })), 'delay'],
    [() => producer.edit('q', 'a', loose({ atempts: 1 })), 'attempts'],
    [() => schedules.list(loose({ tags: 'x' })), 'tag'],
    [() => schedules.preview('n', loose({ nxt: 5 })), 'next'],
    [() => schedules.trigger('n', loose({ ids: 'x' })), 'id'],
    [() => schedules.backfill('n', loose({ frm: 'x', to: 'x' })), 'from'],
    [() => schedules.forecast(loose({ untill: 'x' })), 'until'],
  ];
  for (const [call, meant] of refusals) {
    const message = expect.stringContaining(`did you mean ${meant}?`);
    await expect(call()).rejects.toMatchObject({ code: 'bad-input', message });
  }
});

test('an instant that is a number is refused with the date to write', async () => {
  await using producer = createClient({ redis, retryBudget: 0 });
  const hint = (text: string) => ({ code: 'bad-input', message: expect.stringContaining(`did you mean ${text}?`) });
  const atMs = Date.UTC(2026, 0);
  await expect(producer.schedule('q', 1, loose<ScheduleOptions>({ at: atMs }))).rejects.toMatchObject(
    hint(`new Date(${atMs})`),
  );
  const seconds = atMs / 1000;
  const inSeconds = hint(`new Date(${seconds} * 1000)`);
  await expect(producer.schedule('q', 1, loose<ScheduleOptions>({ at: seconds }))).rejects.toMatchObject(inSeconds);
  await expect(producer.schedule('q', 1, loose<ScheduleOptions>({ expiresAt: atMs }))).rejects.toMatchObject(
    hint(`new Date(${atMs})`),
  );
  const kit = createTestKit({ handlers: { q: handler } });
  await expect(kit.client.reschedule('q', 'a', loose({ at: atMs }))).rejects.toMatchObject(hint(`new Date(${atMs})`));
});
