/**
 * `live` is what a supervisor restarts a process by. It turns false when a loop no longer turns, and stays true as long
 * as all loops do, whatever Redis says: a restart does not bring Redis back. A loop is frozen here by a command that
 * never settles; hours pass on a clock that is moved by hand.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createDaemon, type Daemon } from '../../../src/daemon/daemon.ts';
import { systemClock } from '../../../src/kernel/clock.ts';
import { handClock } from '../../support/mover-line.ts';
import { eventually, gate, useLine } from '../../support/worker-line.ts';

const line = useLine({ check: false });
/** Names of commands that never settle from now on. */
const frozen = new Set<string>();
const thaw: (() => void)[] = [];

beforeEach(() => {
  const send = Redis.prototype.sendCommand;
  vi.spyOn(Redis.prototype, 'sendCommand').mockImplementation(function (this: Redis, command, stream) {
    const name = command.name === 'evalsha' ? String(command.args[0]) : command.name;
    if (!frozen.has(name)) return send.call(this, command, stream);
    return new Promise((_, reject) => thaw.push(() => reject(new Error('Command timed out'))));
  });
});
afterEach(() => {
  frozen.clear();
  for (const settle of thaw.splice(0)) settle();
  vi.restoreAllMocks();
});

/** Long enough for a heartbeat that does not hang: just after a jump of the clock nothing is live. */
const pastBeats = () => new Promise((resolve) => setTimeout(resolve, 300));

test('a worker whose reader hangs is not live after 20 s', async () => {
  const clock = handClock();
  const worker = await line.worker(() => undefined, { clock, beatTtl: 300 });
  await line.plan({ id: 'a' });
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  frozen.add('xreadgroup');
  // The read that is under way ends, the next one hangs.
  await line.plan({ id: 'b' });
  await eventually(() => worker.heard.of('job.completed').length).toBe(2);
  clock.advance(19_000);
  expect(worker.isLive()).toBe(true);
  clock.advance(1500);
  await pastBeats();
  expect(worker.isLive()).toBe(false);
});

test('a worker whose heartbeat hangs is not live after 20 s, also when all its slots are taken', async () => {
  const clock = handClock();
  const door = gate();
  const worker = await line.worker(() => door.opened, { clock, beatTtl: 300, concurrency: 1 });
  await line.plan({ id: 'a' });
  await eventually(() => worker.running()).toBe(1);
  clock.advance(21_500);
  await eventually(() => worker.isLive()).toBe(true);
  frozen.add('getex');
  await pastBeats();
  clock.advance(21_500);
  await pastBeats();
  expect(worker.isLive()).toBe(false);
  door.open();
});

test('a worker stays live while Redis is away, and is not ready', async () => {
  const clock = handClock();
  const worker = await line.worker(() => undefined, { clock, beatTtl: 300 });
  await line.server.kill('SIGKILL');
  for (let round = 0; round < 3; round += 1) {
    clock.advance(21_500);
    await eventually(() => worker.isLive()).toBe(true);
    expect(worker.isReady()).toBe(false);
  }
  await line.server.restart();
  await eventually(() => worker.isReady()).toBe(true);
});

/** A daemon that leads this test's queue; stopped after the test. Its clock can be moved. */
async function leading(): Promise<{ readonly daemon: Daemon; readonly advance: (ms: number) => void }> {
  await line.stopMovers();
  let aheadMs = 0;
  const { monotonicMs } = systemClock;
  vi.spyOn(systemClock, 'monotonicMs').mockImplementation(() => monotonicMs() + aheadMs);
  const url = `unix://${line.server.socketPath}`;
  const mover = { lease: 1000 };
  const config = { redis: { url }, roles: ['mover' as const], namespace: 'live', queues: { [line.queue]: {} }, mover };
  const daemon = createDaemon(config);
  line.onEnd(() => daemon.stop());
  // While no job is due, the next pass comes a quarter of a minute after the first.
  const passed = new Promise((resolve) => daemon.events.on('mover.passed', resolve));
  await daemon.start();
  await passed;
  return {
    daemon,
    advance: (ms) => {
      aheadMs += ms;
    },
  };
}

test('a daemon whose mover hangs is not live after 30 s', async () => {
  const { daemon, advance } = await leading();
  await eventually(() => daemon.isReady()).toBe(true);
  frozen.add('getex');
  for (const script of ['promote', 'elect']) frozen.add(await shaOf(script));
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(daemon.isLive()).toBe(true);
  advance(30_500);
  await eventually(() => daemon.isLive()).toBe(false);
});

test('a daemon stays live while Redis is away, and is not ready', async () => {
  const { daemon, advance } = await leading();
  await line.server.kill('SIGKILL');
  for (let round = 0; round < 3; round += 1) {
    advance(30_500);
    await eventually(() => daemon.isLive()).toBe(true);
    expect(await daemon.isReady()).toBe(false);
  }
  await line.server.restart();
  await eventually(() => daemon.isReady()).toBe(true);
});

/** The name by which ioredis calls a script. */
async function shaOf(verb: string): Promise<string> {
  const lua = await readFile(new URL(`../../../lua/${verb}.lua`, import.meta.url));
  return createHash('sha1').update(lua).digest('hex');
}
