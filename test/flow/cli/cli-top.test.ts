/** `top`: one frame into a pipe, frames over each other at a terminal, and what a person wants to know first. */
import { Readable } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCli } from '../../../src/cli/cli.ts';
import { frameOf } from '../../../src/cli/commands/top.ts';
import { paintFor } from '../../../src/cli/terminal/output.ts';
import { createClient } from '../../../src/client/client.ts';
import { createDaemon, type Daemon } from '../../../src/daemon/daemon.ts';
import type { LiveQueue, Look } from '../../../src/inspect/look.ts';
import { useCli } from '../../support/cli.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const cli = useCli();
const paint = paintFor({ write: () => undefined }, {});

describe('a frame', () => {
  const quiet: LiveQueue = {
    queue: 'emails',
    partitions: 1,
    scheduled: 10,
    waiting: 0,
    waitMs: 0,
    ready: 0,
    running: 1,
    dead: 0,
    paused: false,
    oldestDueAgeMs: 0,
    oldestInLine: false,
    workers: 1,
    leaders: ['mill:7'],
    perSecond: { scheduled: 1.5, promoted: 2, started: 2, ended: 2 },
  };
  const look: Look = {
    nowMs: Date.UTC(2026, 2, 1, 10),
    queues: [quiet],
    unread: [],
    processes: { daemons: 1, workers: 1, versions: [] },
    redis: { usedBytes: 3 * 2 ** 20, maxBytes: 12 * 2 ** 20, policy: 'noeviction', durability: 'everysec' },
    forecast: {
      atMs: 0,
      nextHour: 12,
      scheduled: 10,
      coming: 2,
      busiest: { fromMs: Date.UTC(2026, 2, 1, 10, 30), jobs: 8, scheduled: 8, coming: 0 },
      buckets: [0, 4, 8].map((jobs, at) => ({ fromMs: at * 60_000, jobs, scheduled: jobs, coming: 0 })),
      backlogs: [],
      perQueue: [],
    },
    doctor: { atMs: 0, ok: true, findings: [] },
  };
  const frame = (change: Partial<Look> = {}, rows = 24) =>
    frameOf({ ...look, ...change }, { namespace: 'n', paint, rows });

  test('says that nothing is late, what happens, what comes, and what Redis is like', () => {
    expect(frame()).toEqual([
      'namespace n  2026-03-01 10:00:00 UTC',
      '',
      'late       nothing',
      'per second 1.5 scheduled   2 promoted   2 started   2 ended',
      'processes  1 daemon, 1 worker; 1 of 1 partition led',
      'Redis      3 MiB of 12 MiB (25 %); AOF, fsync every second',
      'next hour  12 jobs: 10 wait now, 2 from schedules; most at 10:30: 8',
      '            ▄█',
      'doctor     all is well',
      '',
      'queue   scheduled  ready  running  dead  waits  starts/s  workers',
      'emails         10      0        1     0  -             2        1',
    ]);
  });

  test('names what is late, the worst first, and what doctor found', () => {
    const late = (queue: string, oldestDueAgeMs: number) => ({ ...quiet, queue, oldestDueAgeMs, leaders: [undefined] });
    const findings = [{ check: 'persistence', status: 'warn' as const, saw: 'snapshots only', advice: '-' }];
    const lines = frame({
      queues: [quiet, late('sms', 5000), { ...late('push', 65_000), oldestInLine: true }],
      doctor: { atMs: 0, ok: true, findings },
    });
    expect(lines).toContain('late       push 65 s in line, sms 5 s');
    expect(lines).toContain('processes  1 daemon, 1 worker; 1 of 3 partitions led');
    expect(lines).toContain('doctor     warn persistence: snapshots only');
    expect(lines.slice(-3).map((text) => text.split(' ')[0])).toEqual(['push', 'sms', 'emails']);
  });

  test('fits its terminal: queues that do not are counted', () => {
    const queues = Array.from({ length: 50 }, (_, at) => ({ ...quiet, queue: `a-queue-with-a-long-name-${at}` }));
    const lines = frame({ queues }, 24);
    expect(lines.length).toBeLessThanOrEqual(24);
    expect(lines.at(-1)).toMatch(/^and \d+ queues more: duestream queues ls$/);
    expect(lines.filter((text) => text.length > 80)).toEqual([]);
  });

  test('shows what waits in line, and for which limits', () => {
    const limits = { text: '10/s · 5 at once', concurrency: 5 };
    const lines = frame({ queues: [quiet, { ...quiet, queue: 'imports', waiting: 1200, waitMs: 90_000, limits }] });
    expect(lines).toContain('in line    imports: 1200 for 2 min (10/s · 5 at once)');
    expect(lines.slice(-3)).toEqual([
      'queue    in line  scheduled  ready  running  dead  waits  starts/s  workers',
      'emails         -         10      0  1           0  -             2        1',
      'imports     1200         10      0  1/5         0  -             2        1',
    ]);
  });

  test('an escape in the name of a queue or in a finding reaches no terminal', () => {
    const findings = [{ check: 'x', status: 'fail' as const, saw: '\u001b[2Jgone', advice: '-' }];
    const text = frame({ queues: [{ ...quiet, queue: '\u001b[31m' }], doctor: { atMs: 0, ok: false, findings } }).join(
      '',
    );
    expect(text).not.toContain('\u001b');
  });
});

describe('on a live Redis', () => {
  let server: TestRedis;
  let daemon: Daemon;

  beforeAll(async () => {
    server = await startRedis({ port: true });
    daemon = createDaemon({ redis: { url: server.url }, roles: ['mover'] });
    await daemon.start();
    await using producer = createClient({ redis: server.url });
    await producer.schedule('mail', {}, { delay: '10m' });
    await producer.schedule('mail', {});
  });
  afterAll(async () => {
    await daemon.stop();
    await server.stop();
  });

  test('one frame into a pipe, and one answer as JSON', async () => {
    const { code, out } = await cli.run(['top', '--redis', server.url]);
    expect(code).toBe(0);
    expect(out).toMatch(/^namespace duestream {2}20.* UTC\n\nlate/);
    expect(out).toMatch(/^processes {2}1 daemon, 0 workers; 1 of 1 partition led$/m);
    expect(out).toMatch(/^mail +1 +1 +0 +0 /m);
    const seen = JSON.parse((await cli.run(['top', '--json', '--redis', server.url])).out);
    expect(seen).toMatchObject({ queues: [{ queue: 'mail', scheduled: 1, ready: 1 }], processes: { daemons: 1 } });
  });

  test('at a terminal each frame is written over the one before', async () => {
    let text = '';
    const stdout = { isTTY: true, rows: 24, write: (part: string) => (text += part) };
    const args = ['top', '--frames', '2', '--every', '200ms', '--redis', server.url];
    const stdin = Readable.from([]);
    const code = await runCli({ args, env: {}, cwd: cli.folder, stdin, stdout, stderr: stdout });
    expect(code).toBe(0);
    const frames = text.split('\u001b[H').slice(1);
    expect(frames).toHaveLength(2);
    for (const frame of frames) {
      expect(frame.endsWith('\u001b[J')).toBe(true);
      expect(stripVTControlCharacters(frame)).toContain('mail');
    }
  });

  test('refuses to look all the time', async () => {
    const { code, err } = await cli.run(['top', '--every', '10ms', '--redis', server.url]);
    expect({ code, err }).toEqual({ code: 64, err: expect.stringContaining('at least 200ms') });
  });
});
