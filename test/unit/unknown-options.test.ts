/** A name that nobody knows is refused wherever options are taken, with the name that was most likely meant. */
import { expect, test } from 'vitest';
import { createProducer, type ScheduleOptions } from '../../src/client/producer.ts';
import { createSchedules } from '../../src/client/schedules/schedules.ts';
import { createDaemon } from '../../src/daemon/daemon.ts';
import { createWorker, type WorkerQueuesOptions } from '../../src/daemon/embedded-worker.ts';
import { createTestKit } from '../../src/testing/index.ts';
import { defineHandlers } from '../../src/worker/handlers.ts';

/** Nobody listens there: what is refused is refused before anything is sent. */
const redis = 'unix:///nowhere/redis.sock';
const handler = () => undefined;
/** As JavaScript would call it. */
const loose = <T>(options: unknown) => options as T;

test.each([
  ['createProducer', 'bad-config', () => createProducer(loose({ redis, horizn: '1d' })), 'horizon'],
  ['createSchedules', 'bad-config', () => createSchedules(loose({ redis, retryBudgit: 0 })), 'retryBudget'],
  ['createDaemon', 'bad-config', () => createDaemon(loose({ redis, role: ['mover'] })), 'roles'],
  ['the parts of createDaemon', 'bad-config', () => createDaemon({ redis }, loose({ handler: {} })), 'handlers'],
  ['createWorker', 'bad-config', () => createWorker('q', handler, loose({ redis, conurrency: 5 })), 'concurrency'],
  [
    'createWorker, a queue',
    'bad-config',
    () => createWorker(loose<WorkerQueuesOptions<[]>>({ redis, queues: [{ queu: 'q', handler }] })),
    'queue',
  ],
  ['defineHandlers', 'bad-input', () => defineHandlers({ q: handler }, loose({ onAbandonned: {} })), 'onAbandoned'],
  [
    'defineHandlers, a queue',
    'bad-input',
    () => defineHandlers({ mail: handler }, { onAbandoned: { mial: handler } }),
    'mail',
  ],
  ['createTestKit', 'bad-input', () => createTestKit(loose({ handlers: { q: handler }, inlin: true })), 'inline'],
])('%s refuses it as %s', (_, code, make, meant) => {
  const message = expect.stringContaining(`did you mean ${meant}?`);
  expect(make).toThrow(expect.objectContaining({ code, message }));
});

test('methods refuse it before anything is sent', async () => {
  await using producer = createProducer({ redis, retryBudget: 0 });
  await using schedules = createSchedules({ redis, retryBudget: 0 });
  const refusals: readonly (readonly [() => Promise<unknown>, string])[] = [
    [() => producer.schedule('q', 1, loose<ScheduleOptions>({ dealy: '1m' })), 'delay'],
    [() => producer.scheduleMany('q', [], loose({ durabilty: 'memory' })), 'durability'],
    [() => producer.cancel('q', 'a', loose({ bar: true })), 'bare'],
    [() => producer.get('q', 'a', loose({ bar: true })), 'bare'],
    [() => producer.replay('q', '1-1', loose({ dealy: '1m' })), 'delay'],
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
  await using producer = createProducer({ redis, retryBudget: 0 });
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
  await expect(kit.producer.reschedule('q', 'a', loose({ at: atMs }))).rejects.toMatchObject(hint(`new Date(${atMs})`));
});
