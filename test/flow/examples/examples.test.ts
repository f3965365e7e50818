/**
 * The examples as their readers run them: handlers in worker processes, producers as commands, a Redis of their own.
 * Delays and leases are scaled; what is checked is what came of it, not what the examples say about themselves.
 */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { SMTPServer } from 'smtp-server';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { createDaemon, type Daemon } from '../../../src/daemon/daemon.ts';
import { useProcesses } from '../../support/processes.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { read, root } from '../../support/repository.ts';

const EXAMPLES = ['email-in-n-minutes', 'lock-conflict', 'notification-failover'];
const LINES_MAX = 80;

const run = promisify(execFile);
const processes = useProcesses();
let server: TestRedis;
/** It leads for all of them, as any daemon would; a process of its own for each test would take a second each. */
let daemon: Daemon;

beforeAll(async () => {
  server = await startRedis({ port: true });
  daemon = createDaemon({ redis: { url: server.url }, roles: ['mover'], mover: { lease: 1000 } });
  await daemon.start();
});
afterAll(async () => {
  await daemon.stop();
  await server.stop();
});

const env = (more: Readonly<Record<string, string>> = {}) => ({
  DUESTREAM_REDIS_URL: server.url,
  DUESTREAM_WORKER__JOB_LEASE: '1000',
  DUESTREAM_WORKER__BEAT_TTL: '1000',
  DUESTREAM_WORKER__GRACE: '300',
  ...more,
});

/** Runs a producer of an example as a command and returns what it printed. */
async function command(script: string, args: readonly string[], more?: Readonly<Record<string, string>>) {
  const options = { env: { PATH: process.env.PATH, ...env(more) } };
  const { stdout } = await run(process.execPath, [join(root, 'examples', script), ...args], options);
  return stdout;
}

function worker(
  example: string,
  { name = 'worker', more = {} }: { name?: string; more?: Record<string, string> } = {},
) {
  const args = ['worker', join(root, 'examples', example, 'handlers.mjs'), '--log-level', 'debug'];
  return processes.started({ name, args, env: env(more) });
}

test.each(EXAMPLES)(`%s is no more than ${LINES_MAX} lines of code, and says how to run it`, (example) => {
  const files = readdirSync(join(root, 'examples', example)).filter((name) => name.endsWith('.mjs'));
  const code = files.map((name) => read(join('examples', example, name)).replace(/\/\*\*[\s\S]*?\*\//g, ''));
  const lines = code.flatMap((text) => text.split('\n')).filter((line) => !/^\s*(\/\/.*)?$/.test(line));
  expect(lines.length).toBeLessThanOrEqual(LINES_MAX);
  const readme = read(join('examples', example, 'README.md'));
  expect(readme).toMatch(new RegExp(`npx duestream (dev|worker) examples/${example}/handlers.mjs`));
});

describe('email-in-n-minutes', () => {
  interface Received {
    readonly atMs: number;
    readonly to: string;
    readonly text: string;
  }
  const inbox: Received[] = [];
  const smtp = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData(stream, session, callback) {
      let text = '';
      stream.on('data', (chunk) => {
        text += String(chunk);
      });
      stream.on('end', () => {
        inbox.push({ atMs: Date.now(), to: session.envelope.rcptTo[0]?.address ?? '', text });
        callback();
      });
    },
  });
  let address = '';

  beforeAll(async () => {
    const listening = smtp.listen(0, '127.0.0.1');
    await once(listening, 'listening');
    const at = listening.address();
    address = `smtp://127.0.0.1:${at !== null && typeof at === 'object' ? at.port : 0}`;
  });
  afterAll(() => new Promise<void>((resolve) => smtp.close(() => resolve())));

  const later = (...args: readonly string[]) => command('email-in-n-minutes/send-later.mjs', args);

  test('a mail arrives once, not before it is due, and not at all when it was taken back', async () => {
    const planned = await later('receipt:1', 'ada@example.com', '2s');
    expect(planned).toMatch(/^receipt:1 scheduled, due 20/);
    expect(await later('receipt:1', 'ada@example.com', '1m')).toBe(planned.replace('scheduled', 'exists'));
    await later('receipt:2', 'bob@example.com', '2s');
    expect(await later('--undo', 'receipt:2')).toBe('receipt:2 cancelled\n');
    await later('receipt:3', 'eve@example.com', '2s');

    await worker('email-in-n-minutes', { more: { SMTP_URL: address } });
    await expect.poll(() => inbox.map(({ to }) => to)).toContain('eve@example.com');
    await expect.poll(() => later('--undo', 'receipt:3')).toBe('receipt:3 over\n');
    await expect.poll(() => later('--undo', 'receipt:1')).toBe('receipt:1 over\n');
    // Both were due before their worker was there, and two mails on their way may overtake each other.
    expect(inbox.map(({ to }) => to).sort()).toEqual(['ada@example.com', 'eve@example.com']);
    const mail = inbox.find(({ to }) => to === 'ada@example.com');
    expect(mail?.text).toContain('Subject: Your receipt:1');
    const due = Date.parse(/due (\S+)/.exec(planned)?.[1] ?? '');
    expect(mail?.atMs).toBeGreaterThanOrEqual(due);
  });
});

describe('lock-conflict', () => {
  test('bookings of one account never overlap, all are made, and conflicts use up no attempt', async () => {
    const workers = await Promise.all([
      worker('lock-conflict', { name: 'worker 1' }),
      worker('lock-conflict', { name: 'worker 2' }),
    ]);
    expect(await command('lock-conflict/fill.mjs', ['15'])).toBe('15 bookings for 3 accounts\n');
    const booked = () => workers.flatMap((one) => one.lines().filter(({ msg }) => msg === 'booked'));
    await expect.poll(() => booked().length).toBe(15);

    expect(new Set(booked().map(({ job }) => job)).size).toBe(15);
    for (const account of ['account-0', 'account-1', 'account-2']) {
      const times = booked()
        .filter((line) => line.account === account)
        .map(({ fromMs, toMs }) => ({ from: Number(fromMs), to: Number(toMs) }))
        .sort((a, b) => a.from - b.from);
      expect(times).toHaveLength(5);
      expect(times.filter(({ from }, index) => from < (times[index - 1]?.to ?? 0))).toEqual([]);
    }
    const said = (message: string) => workers.flatMap((one) => one.lines()).filter(({ msg }) => msg === message);
    expect(said('job deferred').length).toBeGreaterThan(5);
    expect(said('job is dead').concat(said('job failed, will retry'))).toEqual([]);
  });
});

describe('notification-failover', () => {
  const scaled = { SECOND_MS: '100' };
  /** Nothing becomes due while a test runs. */
  const slow = { SECOND_MS: '60000' };
  const notify = (...args: readonly string[]) => command('notification-failover/notify.mjs', args, scaled);
  const told = async (note: string) =>
    Object.fromEntries([...(await notify(note)).matchAll(/:(\w+) +(\w.*)/g)].map(([, step, state]) => [step, state]));
  const unplanned = 'never planned';
  let producer: Client;
  const stateOf = async (note: string, step: string) =>
    (await producer.get('notes', `note:${note}:${step}`))?.state ?? unplanned;
  const becomes = async (note: string, expected: Readonly<Record<string, string>>) => {
    for (const [step, state] of Object.entries(expected)) await expect.poll(() => stateOf(note, step)).toBe(state);
    expect(await told(note)).toEqual(expected);
  };

  beforeAll(async () => {
    producer = createClient({ redis: server.url });
  });
  afterAll(() => producer.close());

  test('a note that push delivers ends there: SMS is cancelled, the messenger never planned', async () => {
    const { logged } = await worker('notification-failover', { more: slow });
    await notify('n1', 'push=ok');
    await logged('delivered');
    await becomes('n1', { push: 'done', sms: 'cancelled', messenger: unplanned });
  });

  test('a refusal brings the next step at once, long before its time', async () => {
    const { line } = await worker('notification-failover', { more: slow });
    await notify('n2', 'push=refused');
    await line(({ step }) => step === 'sms');
    await becomes('n2', { push: 'dead', sms: 'done', messenger: 'cancelled' });
  });

  test('silence brings the next step when the time is up, and the last one ends the chain', async () => {
    const { lines } = await worker('notification-failover', { more: scaled });
    await notify('n3', 'push=silent', 'sms=refused');
    await becomes('n3', { push: 'dead', sms: 'dead', messenger: 'done' });
    expect(lines().flatMap(({ msg, step }) => (msg === 'delivered' ? [step] : []))).toEqual(['messenger']);
  });

  test('a note nobody can deliver is a dead letter', async () => {
    await worker('notification-failover', { more: scaled });
    await notify('n4', 'push=refused', 'sms=refused', 'messenger=refused');
    await becomes('n4', { push: 'dead', sms: 'dead', messenger: 'dead' });
  });

  test('a worker killed in the middle of push stops nothing: SMS comes, and push is not sent again', async () => {
    const inTime = { SECOND_MS: '500' };
    const first = await worker('notification-failover', { name: 'worker 1', more: inTime });
    const sms = () => stateOf('n5', 'sms');
    await command('notification-failover/notify.mjs', ['n5', 'push=silent'], inTime);
    await expect.poll(sms).toBe('scheduled');
    await first.end('SIGKILL');
    // Until then nobody could know that push is not to be sent again.
    await expect.poll(sms).toBe('ready');

    const second = await worker('notification-failover', { name: 'worker 2', more: scaled });
    const { job } = await second.logged('delivered');
    expect(job).toBe('note:n5:sms');
    expect(await second.logged('the chain has moved on')).toMatchObject({ job: 'note:n5:push', attempt: 2 });
    await becomes('n5', { push: 'done', sms: 'done', messenger: 'cancelled' });
  });
});
