/**
 * Redis stands still for 30 s, or its sockets open and nobody answers. Every promise that somebody holds settles
 * meanwhile, connections are dialled with pauses, the log stays short, and work resumes within 5 s after the thaw.
 */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import { createLog } from '../../../src/daemon/log.ts';
import { logEvents } from '../../../src/job/event-log.ts';
import { systemClock } from '../../../src/kernel/clock.ts';
import { defineHandlers } from '../../../src/worker/run/handlers.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { useCli } from '../../support/cli.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const FROZEN_MS = 30_000;
/** Retry budget, one command time-out and the second that a busy machine takes. */
const CALL_MS = 16_000;
/** What concerns a whole queue waits for the earlier calls of the client first, and then tries once. */
const BEHIND_MS = CALL_MS + 6000;

const cli = useCli();
let server: TestRedis;
beforeEach(async () => {
  server = await startRedis({ port: true });
});
afterEach(async () => {
  await server.kill('SIGCONT');
  await server.stop();
});

/** How a call ended and after how long. */
async function timed(call: Promise<unknown>): Promise<{ readonly end: string; readonly ms: number }> {
  const sinceMs = systemClock.monotonicMs();
  const end = await call.then(
    () => 'ok',
    (error: unknown) => (error instanceof Error && 'code' in error ? String(error.code) : String(error)),
  );
  return { end, ms: systemClock.monotonicMs() - sinceMs };
}

test('every promise settles within its time, and work resumes within 5 s after the thaw', async () => {
  const redis = server.url;
  const ran: string[] = [];
  const handlers = defineHandlers({ mail: (job) => void ran.push(job.id) });
  const lines: string[] = [];
  const daemon = createDaemon({ redis: { url: redis }, roles: ['mover', 'worker'] }, { handlers });
  const unlog = logEvents(
    daemon.events,
    createLog({ level: 'info', role: 'd', to: { write: (line) => lines.push(line) } }),
  );
  await daemon.start();
  const producer = createClient({ redis });
  const idle = createWorker('other', () => undefined, { redis, shutdown: 1000 });
  await idle.start();
  await producer.schedule('mail', {}, { id: 'before' });
  await expect.poll(() => ran).toEqual(['before']);
  const admin = await server.client();
  const connects = async () => Number(/total_connections_received:(\d+)/.exec(await admin.info('stats'))?.[1]);
  const connectsBefore = await connects();

  const sinceMs = systemClock.monotonicMs();
  await server.kill('SIGSTOP');
  const newcomer = createWorker('mail', () => undefined, { redis });
  const newProducer = createClient({ redis });
  const late = createDaemon({ redis: { url: redis }, roles: ['mover'] });
  const calls = {
    schedule: timed(producer.schedule('mail', {}, { id: 'x', delay: '1h' })),
    scheduleMany: timed(producer.scheduleMany('mail', [{ data: 1 }, { data: 2 }])),
    newQueue: timed(producer.schedule('never-seen', 1)),
    cancel: timed(producer.cancel('mail', 'y')),
    cancelList: timed(producer.cancel('mail', ['v', 'w'])),
    get: timed(producer.get('mail', 'x')),
    replay: timed(producer.deadLetters.replay('mail', '1-0')),
    createClient: timed(newProducer.ready()),
    workerStart: timed(newcomer.start()),
    workerStop: timed(idle.stop()),
    daemonStart: timed(late.start()),
    ready: timed(daemon.isReady()),
  };
  const verbs = [
    'ls mail',
    'show mail x',
    'cancel mail x',
    'queues ls',
    'doctor',
    'schedule mail --delay 1h',
    'dead ls mail',
  ];
  const statuses = Promise.all(verbs.map(async (verb) => (await cli.run([...verb.split(' '), '--redis', redis])).code));
  const ended = Object.fromEntries(
    await Promise.all(Object.entries(calls).map(async ([name, call]) => [name, await call] as const)),
  );
  const mostOf = (name: string) => (name === 'replay' ? BEHIND_MS : CALL_MS);
  expect(Object.entries(ended).filter(([name, { ms }]) => ms > mostOf(name))).toEqual([]);
  const codes = Object.fromEntries(Object.entries(ended).map(([name, { end }]) => [name, end]));
  expect(codes).toMatchObject({
    schedule: 'indeterminate',
    scheduleMany: 'indeterminate',
    cancel: 'indeterminate',
    get: 'unavailable',
    createClient: 'unavailable',
    workerStart: 'unavailable',
    daemonStart: 'unavailable',
    newQueue: 'unavailable',
    cancelList: 'indeterminate',
    replay: 'unavailable',
    workerStop: 'ok',
    ready: 'ok',
  });
  expect(new Set(await statuses)).toEqual(new Set([69]));
  expect(daemon.isLive()).toBe(true);
  await systemClock.sleep(FROZEN_MS - (systemClock.monotonicMs() - sinceMs));
  expect(await daemon.isReady()).toBe(false);
  expect(lines.length).toBeLessThanOrEqual(30);

  await server.kill('SIGCONT');
  const thawedMs = systemClock.monotonicMs();
  await expect
    .poll(() => producer.schedule('mail', {}, { id: 'after' }).then(({ status }) => status, String))
    .toMatch(/scheduled|already|exists/);
  await expect.poll(() => ran).toContain('after');
  expect(systemClock.monotonicMs() - thawedMs).toBeLessThan(5000);
  // 5 processes' worth of connections here; each dials after a silent time-out and a pause.
  expect(((await connects()) - connectsBefore) / (FROZEN_MS / 1000)).toBeLessThan(5);
  await producer.close();
  await daemon.stop();
  unlog();
});
