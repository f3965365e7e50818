/**
 * What happens when Redis is there and says no, one declared behaviour per condition: what a producer gets, what goes
 * on, what readiness and liveness say, how it ends. And always: no hot loop, no storm of connections, no flood of log
 * lines, and a handler that ended meanwhile is written down once Redis takes it and never run again.
 */
import { mkdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { test as base, type ExpectStatic } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { createDaemon, type Daemon } from '../../../src/daemon/daemon.ts';
import { createLog } from '../../../src/daemon/log.ts';
import { logEvents } from '../../../src/job/event-log.ts';
import { messageOf } from '../../../src/kernel/errors.ts';
import type { Redis } from '../../../src/redis/connection/connect.ts';
import { defineHandlers } from '../../../src/worker/run/handlers.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { gate } from '../../support/worker-line.ts';

const key = (name: string) => `duestream:v1:{mail:0}:${name}`;

/** A Redis with a daemon and a client of one queue. One job runs, and ends when its door opens. */
interface Stage {
  readonly server: TestRedis;
  readonly admin: Redis;
  readonly daemon: Daemon;
  readonly producer: Client;
  /** The log of the daemon. */
  readonly lines: readonly string[];
  /** How often each job was run. */
  readonly runs: ReadonlyMap<string, number>;
  readonly door: ReturnType<typeof gate>;
}

interface Scene extends Stage {
  /** Of this test: tests that run at the same time cannot share one. */
  readonly expect: ExpectStatic;
}

/** Each condition has servers and processes of its own, so that all of them pass at the same time: most of it is waiting. */
const condition = base.extend<{ stage: Stage }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of what a fixture needs
  async stage({}, use) {
    const server = await startRedis({ port: true, args: ['--dbfilename', 'blocked'] });
    const admin = await server.client();
    await admin.call('ACL', 'SETUSER', 'app', 'on', '>p', '~*', '&*', '+@all');
    const lines: string[] = [];
    const runs = new Map<string, number>();
    const door = gate();
    const began = gate();
    const redis = server.url.replace('//', '//app:p@');
    const handlers = defineHandlers({
      mail: async (job) => {
        runs.set(job.id, (runs.get(job.id) ?? 0) + 1);
        if (job.id !== 'long') return;
        began.open();
        await door.opened;
      },
    });
    const mover = { lease: 1000 };
    const daemon = createDaemon({ redis: { url: redis }, roles: ['mover', 'worker'], mover }, { handlers });
    const log = createLog({ level: 'info', role: 'test', to: { write: (line) => lines.push(line) } });
    const unlog = logEvents(daemon.events, log);
    await daemon.start();
    const producer = createClient({ redis, retryBudget: '1s' });
    await producer.schedule('mail', {}, { id: 'long' });
    await began.opened;
    await use({ server, admin, daemon, producer, lines, runs, door });
    await producer.close();
    await daemon.stop();
    unlog();
    await server.stop();
  },
});
const test = condition.concurrent;

const codeOf = (call: Promise<unknown>) =>
  call.then(
    () => 'ok',
    (error: unknown) => (error instanceof Error && 'code' in error ? String(error.code) : messageOf(error)),
  );

async function counted({ admin }: Scene): Promise<{ readonly commands: number; readonly connects: number }> {
  const info = await admin.info('stats');
  const read = (name: string) => Number(new RegExp(`${name}:(\\d+)`).exec(info)?.[1]);
  return { commands: read('total_commands_processed'), connects: read('total_connections_received') };
}

/** What the processes did while Redis said no. */
interface Seen {
  readonly code: string;
  readonly log: readonly string[];
}

/** Brings the condition about, lets 3 s pass in it, ends it, and checks what must hold in every condition. */
async function through(
  scene: Scene,
  {
    begin,
    end,
    holdMs = 3000,
    ready,
  }: {
    readonly begin: () => Promise<unknown>;
    readonly end: () => Promise<unknown>;
    readonly holdMs?: number;
    /** What readiness comes to, and is when the condition ends. */
    readonly ready?: boolean;
  },
): Promise<Seen> {
  const { expect, producer, daemon, lines, door } = scene;
  const before = await counted(scene);
  const beganMs = performance.now();
  const linesBefore = lines.length;
  await begin();
  door.open();
  const [code] = await Promise.all([codeOf(producer.schedule('mail', {}, { id: 'meanwhile' })), sleep(holdMs)]);
  if (ready !== undefined) await expect.poll(() => daemon.isReady()).toBe(ready);
  const live = daemon.isLive();
  const log = lines.slice(linesBefore);
  await end();
  const after = await counted(scene);
  const seconds = (performance.now() - beganMs) / 1000;
  expect(live).toBe(true);
  expect(log.length).toBeLessThanOrEqual(6 + seconds);
  expect((after.connects - before.connects) / seconds).toBeLessThanOrEqual(10);
  expect((after.commands - before.commands) / seconds).toBeLessThanOrEqual(300);
  return { code, log };
}

/** Work goes on within 5 s: a new job runs, and what ended meanwhile is over and was run once. */
async function goesOn({ expect, producer, daemon, admin, runs }: Scene, { kept = true } = {}): Promise<void> {
  const schedule = () => codeOf(producer.schedule('mail', {}, { id: 'after', ifExists: 'keep' }));
  await expect.poll(schedule, { interval: 100 }).toBe('ok');
  await expect.poll(() => runs.get('after')).toBe(1);
  await expect.poll(() => daemon.isReady()).toBe(true);
  if (kept) await expect.poll(() => admin.hget(key('jobs'), 'j:long')).toMatch(/^\.d/);
  expect(runs.get('long')).toBe(1);
}

const told = (log: readonly string[], text: string) => log.filter((line) => line.includes(text));

test('MISCONF, no snapshot can be written: calls are unavailable, nothing moves, and it ends with the next snapshot', async ({
  stage,
  expect,
}) => {
  const scene = { ...stage, expect };
  const { server, admin } = scene;
  const saved = async (status: string) => {
    await admin.bgsave();
    await expect
      .poll(async () => /rdb_last_bgsave_status:(\w+)/.exec(await admin.info('persistence'))?.[1])
      .toBe(status);
  };
  const { code, log } = await through(scene, {
    ready: false,
    async begin() {
      await mkdir(join(server.dir, 'blocked'));
      await admin.config('SET', 'save', '3600 1');
      await saved('err');
    },
    async end() {
      await rmdir(join(server.dir, 'blocked'));
      await saved('ok');
      await admin.config('SET', 'save', '');
    },
  });
  expect(code).toBe('unavailable');
  expect(told(log, 'MISCONF').length).toBe(1);
  await goesOn(scene);
});

test('READONLY, the server became a replica: connections are dialled again with pauses, until it is a primary', async ({
  stage,
  expect,
}) => {
  const scene = { ...stage, expect };
  const { admin } = scene;
  const { code, log } = await through(scene, {
    ready: false,
    begin: () => admin.call('REPLICAOF', '127.0.0.1', '1'),
    end: () => admin.call('REPLICAOF', 'NO', 'ONE'),
  });
  expect(['unavailable', 'indeterminate']).toContain(code);
  expect(log.length).toBeGreaterThan(0);
  await goesOn(scene);
});

test('LOADING, the server reads its data: calls are unavailable, and all goes on when it has', async ({
  stage,
  expect,
}) => {
  const scene = { ...stage, expect };
  const { server, admin } = scene;
  await admin.eval('for i = 1, 3000 do redis.call("SET", "n" .. i, i) end', 0);
  const other = await server.client();
  // A quarter of a minute, cut short when all has been seen.
  await admin.config('SET', 'key-load-delay', '5000');
  await admin.config('SET', 'loading-process-events-interval-bytes', '1024');
  let reloading: Promise<unknown> = Promise.resolve();
  const { code, log } = await through(scene, {
    ready: false,
    async begin() {
      reloading = admin.call('DEBUG', 'RELOAD');
      await expect.poll(() => other.ping().catch(messageOf)).toMatch(/^LOADING/);
    },
    async end() {
      await other.config('SET', 'key-load-delay', '0');
      await reloading;
    },
    holdMs: 1500,
  });
  expect(code).toBe('unavailable');
  expect(told(log, 'LOADING').length).toBe(1);
  await goesOn(scene);
});

test("BUSY, somebody's script does not end: calls are unavailable, and all goes on when it is killed", async ({
  stage,
  expect,
}) => {
  const scene = { ...stage, expect };
  const { server, admin } = scene;
  await admin.config('SET', 'busy-reply-threshold', '10');
  const other = await server.client();
  let endless: Promise<unknown> = Promise.resolve();
  const { code, log } = await through(scene, {
    ready: false,
    async begin() {
      endless = other.eval('while true do end', 0).catch(messageOf);
      await expect.poll(() => admin.get('a').then(() => 'free', messageOf)).toMatch(/^BUSY/);
    },
    async end() {
      await admin.script('KILL');
      await endless;
    },
  });
  expect(code).toBe('unavailable');
  expect(told(log, 'BUSY').length).toBe(1);
  await goesOn(scene);
});

test('OOM, memory is at its limit: new jobs are refused at once, and what is there is worked off', async ({
  stage,
  expect,
}) => {
  const scene = { ...stage, expect };
  const { admin, producer, runs } = scene;
  await producer.schedule('mail', {}, { id: 'there', delay: '1s' });
  const { code } = await through(scene, {
    ready: true,
    begin: () => admin.config('SET', 'maxmemory', '1'),
    end: async () => {
      expect(runs.get('there')).toBe(1);
      expect(await admin.hget(key('jobs'), 'j:there')).toMatch(/^\.d/);
      expect(await admin.hget(key('jobs'), 'j:long')).toMatch(/^\.d/);
      await admin.config('SET', 'maxmemory', '0');
    },
  });
  expect(code).toBe('out-of-memory');
  await goesOn(scene);
});

test('FLUSHALL: what was there is gone, and everybody goes on with what comes', async ({ stage, expect }) => {
  const scene = { ...stage, expect };
  const { admin, runs } = scene;
  const { code } = await through(scene, { begin: () => admin.flushall(), end: () => Promise.resolve(), holdMs: 1500 });
  expect(code).toBe('ok');
  await expect.poll(() => runs.get('meanwhile')).toBe(1);
  await goesOn(scene, { kept: false });
});

test('WRONGTYPE, somebody put another value under a key: calls are refused, and the key is named', async ({
  stage,
  expect,
}) => {
  const scene = { ...stage, expect };
  const { admin } = scene;
  const { code, log } = await through(scene, {
    ready: false,
    begin: () => admin.set(key('scheduled'), 'not ours'),
    end: () => admin.del(key('scheduled')),
  });
  expect(code).toBe('refused');
  // Once by whoever met it, the mover and perhaps the one that looks for damage; never per pass.
  const lines = told(log, `${key('scheduled')}: it is a string and must be a zset`).length;
  expect([1, 2]).toContain(lines);
  await goesOn(scene);
});

test('NOPERM, a right was taken away: calls are refused, and all goes on when it is given back', async ({
  stage,
  expect,
}) => {
  const scene = { ...stage, expect };
  const { admin } = scene;
  const { code, log } = await through(scene, {
    ready: false,
    async begin() {
      await admin.call('ACL', 'SETUSER', 'app', '-evalsha', '-eval', '-zadd');
      // At rest a leader calls a script once a minute.
      await admin.spublish(key('wake'), '0');
    },
    end: () => admin.call('ACL', 'SETUSER', 'app', '+@all'),
  });
  expect(code).toBe('refused');
  expect(told(log, 'NOPERM').length).toBe(1);
  await goesOn(scene);
});
