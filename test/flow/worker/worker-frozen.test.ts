/** Redis stands still: it keeps every connection and answers nothing. */
import { spawnSync } from 'node:child_process';
import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { createEmitter } from '../../../src/job/events.ts';
import type { EntryId } from '../../../src/job/job.ts';
import type { AbortReason } from '../../../src/job/outcome.ts';
import { createJobs } from '../../../src/redis/scripts/jobs.ts';
import { createExtender } from '../../../src/worker/run/extender.ts';
import { InFlight } from '../../../src/worker/run/in-flight.ts';
import { handClock, slowed } from '../../support/mover-line.ts';
import { running } from '../../support/running.ts';
import { eventually, gate, useLine } from '../../support/worker-line.ts';

const line = useLine();

/** Asks the server at a path once, on a connection of its own. */
const ASK_LATER = `const socket = require('node:net').connect(process.argv[1], () => socket.write('PING\\r\\n'));
socket.once('data', (answer) => { process.stdout.write(String(answer).trim()); socket.end(); });`;

afterEach(() => line.server.kill('SIGCONT'));

it('after a standstill longer than every time-out all jobs are done, and none was started three times', async () => {
  const runs = new Map<string, number>();
  const worker = await line.worker(
    async (job) => {
      runs.set(job.id, (runs.get(job.id) ?? 0) + 1);
      await sleep(5);
    },
    { concurrency: 4 },
  );
  await line.plan(...line.many(400));
  await eventually(() => runs.size).toBeGreaterThan(20);
  await line.server.kill('SIGSTOP');
  await sleep(6000);
  await line.server.kill('SIGCONT');
  const done = async () =>
    (await line.redis.hvals(line.ref.keys.jobs).catch(() => [])).filter((value) => value.startsWith('.d')).length;
  await eventually(done).toBe(400);
  expect(Math.max(...runs.values())).toBeLessThanOrEqual(2);
  expect(worker.isLive()).toBe(true);
  await eventually(() => worker.isReady()).toBe(true);
});

it('a worker that cannot extend tells its handlers before anybody else may start their jobs', async () => {
  const redis = slowed(line.redis, 'extend', () => Promise.reject(new Error('Command timed out')));
  const clock = handClock();
  const inFlight = new InFlight(4);
  const told: AbortReason[] = [];
  const delivery = { entry: '1-0' as EntryId, member: 'j:a', dueMs: 0 };
  const held = running(inFlight, { ref: line.ref, delivery, abort: (why) => void told.push(why) });
  inFlight.extended(held, clock.monotonicMs());
  const extender = createExtender({
    jobs: createJobs(redis),
    inFlights: [inFlight],
    consumer: 'w',
    queue: line.queue,
    clock,
    events: createEmitter(),
    extendEveryMs: 500,
    jobLeaseMs: 1500,
    probe: () => line.redis.ping(),
  });
  await expect(extender.pass()).rejects.toThrow('timed out');
  extender.start();
  clock.advance(1300);
  await sleep(120);
  expect(told).toEqual([]);
  clock.advance(60);
  await eventually(() => told).toContain('lease lost');
  await extender.stop();
});

it('a worker whose extension hangs on a silent line tells its handlers without waiting for the time-out', async () => {
  const redis = slowed(line.redis, 'extend', () => new Promise(() => undefined));
  const clock = handClock();
  const inFlight = new InFlight(4);
  const told: AbortReason[] = [];
  const delivery = { entry: '1-0' as EntryId, member: 'j:a', dueMs: 0 };
  const held = running(inFlight, { ref: line.ref, delivery, abort: (why) => void told.push(why) });
  inFlight.extended(held, clock.monotonicMs());
  const { pass } = createExtender({
    jobs: createJobs(redis),
    inFlights: [inFlight],
    consumer: 'w',
    queue: line.queue,
    clock,
    events: createEmitter(),
    extendEveryMs: 500,
    jobLeaseMs: 1500,
    probe: () => line.redis.ping(),
  });
  void pass();
  clock.advance(1300);
  expect(told).toEqual([]);
  clock.advance(60);
  await eventually(() => told).toEqual(['lease lost']);
});

it('after the event loop stood still, the reply that lies in the socket is read before handlers are told', async () => {
  const clock = handClock();
  const inFlight = new InFlight(4);
  const told: AbortReason[] = [];
  const delivery = { entry: '1-0' as EntryId, member: 'j:a', dueMs: 0 };
  const held = running(inFlight, { ref: line.ref, delivery, abort: (why) => void told.push(why) });
  inFlight.extended(held, clock.monotonicMs());
  clock.advance(2600);
  const extend = () => line.redis.ping().then(() => ['ok' as const]);
  const extender = createExtender({
    jobs: { ...createJobs(line.redis), extend },
    inFlights: [inFlight],
    consumer: 'w',
    queue: line.queue,
    clock,
    events: createEmitter(),
    extendEveryMs: 1000,
    jobLeaseMs: 3000,
    probe: () => line.redis.ping(),
  });
  // After an immediate timers ring before anything is read.
  await immediate();
  const passed = extender.pass();
  // What a turn sends goes out with its ticks.
  await new Promise(process.nextTick);
  // A handler that blocks until the timer of the extender (100 ms) is due and Redis has answered: whoever asks later is answered later.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
  expect(spawnSync(process.execPath, ['-e', ASK_LATER, line.server.socketPath], { encoding: 'utf8' }).stdout).toBe(
    '+PONG',
  );
  // 2700 ms after the last extension are over meanwhile.
  clock.advance(200);
  await passed;
  await extender.stop();
  expect(told).toEqual([]);
});

it('after an outage only handlers that were running are told, not those that were started since', async () => {
  const redis = slowed(line.redis, 'extend', () => new Promise(() => undefined));
  const clock = handClock();
  const inFlight = new InFlight(4);
  const told: string[] = [];
  const runs = (id: string, own: { readonly leasedMs?: number; readonly acknowledged?: boolean }) => {
    const delivery = { entry: `${id.length}-0` as EntryId, member: `j:${id}`, dueMs: 0 };
    running(inFlight, { ref: line.ref, delivery, abort: (why) => void told.push(`${id} ${why}`), ...own });
  };
  const extender = createExtender({
    jobs: createJobs(redis),
    inFlights: [inFlight],
    consumer: 'w',
    queue: line.queue,
    clock,
    events: createEmitter(),
    extendEveryMs: 500,
    jobLeaseMs: 3000,
    probe: () => line.redis.ping(),
  });
  runs('old', { leasedMs: clock.monotonicMs() });
  runs('over', { leasedMs: clock.monotonicMs(), acknowledged: true });
  clock.advance(5000);
  runs('fresh', { leasedMs: clock.monotonicMs() });
  void extender.pass();
  await eventually(() => told).toEqual(['old lease lost']);
  clock.advance(1900);
  await sleep(50);
  expect(told).not.toContain('fresh lease lost');
  clock.advance(200);
  await eventually(() => told).toContain('fresh lease lost');
  expect(told.join()).not.toContain('over');
  await extender.stop();
});

it('a stop while Redis stands still ends, and the job that was running is recovered from Redis', async () => {
  const door = gate();
  const worker = await line.worker(() => door.opened, { concurrency: 1 });
  await line.plan({});
  await eventually(() => worker.heard.of('job.started').length).toBe(1);
  await line.server.kill('SIGSTOP');
  door.open();
  // It ends although Redis goes on standing still.
  await worker.stop({ shutdown: 200 });
  await line.server.kill('SIGCONT');
  await eventually(async () => line.redis.ping().catch(() => 'away')).toBe('PONG');
  const { jobs } = await line.picture();
  expect(['record', 'tombstone done']).toContain(jobs?.['j:a']);
});
