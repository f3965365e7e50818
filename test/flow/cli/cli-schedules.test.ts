/** Schedules from the shell: put by flags or from a file, listed, shown, paused, resumed and removed. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { userHere } from '../../../src/redis/audit.ts';
import { controlKeys, partitionKeys } from '../../../src/redis/keys.ts';
import { runHere } from '../../support/console.ts';
import { usePartition } from '../../support/partition.ts';

const the = usePartition();
const namespace = 't';

const say = (args: readonly string[], input?: string) =>
  runHere(['schedules', ...args, '--redis', the.server.url, '--namespace', namespace], input ? { input } : {});
const answer = async (args: readonly string[]) => JSON.parse((await say([...args, '--json'])).out);
const stored = async (name: string) =>
  JSON.parse((await the.redis.hget(controlKeys(namespace).schedules, name)) ?? '{}').schedule;
const daily = (name: string) => say(['put', name, '--queue', 'reports', '--cron', '30 2 * * *']);

describe('schedules put', () => {
  test('creates, says the same again as unchanged, and changes', async () => {
    const { code, out } = await daily('nightly');
    expect(code).toBe(0);
    expect(out).toMatch(/^nightly {2}created {2}next 20..-..-..T02:30:00\.000Z \(in \d+ (h|min)\)\n$/);
    expect((await daily('nightly')).out).toContain('nightly  unchanged');
    const changed = await answer(['put', 'nightly', '--queue', 'reports', '--cron', '31 2 * * *']);
    expect(changed).toMatchObject({ name: 'nightly', status: 'changed', queue: 'reports' });
    expect(new Date(changed.nextMs).toISOString()).toMatch(/T02:31:00\.000Z$/);
  });

  test('has a flag for every field', async () => {
    const { code, err } = await say([
      ...['put', 'all', '--queue', 'q', '--job', 'sum', '--data', '{"a":1}', '--cron', '0 9 * * *'],
      ...['--zone', 'Europe/Berlin', '--dst-gap', 'skip', '--dst-overlap', 'both', '--start', '2026-01-01T09:00'],
      ...['--end', '2090-01-01', '--max-runs', '5', '--jitter', '1m', '--overlap', 'queue', '--catch-up', 'all'],
      ...['--calendar', '{"hours":{"mon-fri":"09:00-17:00"},"outside":"next"}', '--catch-up-window', '2h'],
      ...['--catch-up-limit', '7', '--tag', 'a', '--tag', 'b', '--paused', 'not yet', '--attempts', '3'],
      ...[
        '--timeout',
        '30s',
        '--backoff',
        '{"kind":"fixed","delayMs":5000}',
        '--max-lateness',
        '10m',
        '--on-late',
        'dead',
      ],
    ]);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(await stored('all')).toEqual({
      queue: 'q',
      job: 'sum',
      data: { a: 1 },
      cron: '0 9 * * *',
      zone: 'Europe/Berlin',
      maxRuns: 5,
      dst: { gap: 'skip', overlap: 'both' },
      start: '2026-01-01T08:00:00.000Z',
      end: '2090-01-01T23:00:00.000Z',
      jitter: '1m',
      overlap: 'queue',
      catchUp: { policy: 'all', window: '2h', limit: 7 },
      tags: ['a', 'b'],
      calendar: { hours: { 'mon-fri': '09:00-17:00' }, outside: 'next' },
      paused: 'not yet',
      attempts: 3,
      timeout: '30s',
      maxLateness: '10m',
      onLate: 'dead',
      backoff: expect.objectContaining({ delayMs: 5000 }),
    });
    expect((await say(['put', 'beat', '--queue', 'q', '--every', '1h', '--align', 'start', '--paused'])).out).toBe(
      'beat  created  paused\n',
    );
  });

  test('reads a definition from a file or stdin, alone or below its name', async () => {
    expect((await say(['put', 'one', '--file', '-'], 'queue: q\nevery: 1h\n')).code).toBe(0);
    expect(await stored('one')).toEqual({ queue: 'q', every: '1h' });
    const many = 'schedules:\n  two:\n    queue: q\n    cron: "@daily"\n  three: { queue: q, every: 5m }\n';
    expect((await say(['put', 'three', '--file', '-'], many)).code).toBe(0);
    expect(await stored('three')).toEqual({ queue: 'q', every: '5m' });
    const absent = await say(['put', 'four', '--file', '-'], many);
    expect({ code: absent.code, err: absent.err }).toEqual({
      code: 64,
      err: expect.stringContaining('has no schedule "four"'),
    });
  });

  test('refuses what is wrong with 64, names the field, and changes nothing', async () => {
    const refused = async (args: readonly string[]) => {
      const { code, err } = await say(['put', 'x', ...args]);
      expect(code).toBe(64);
      return err;
    };
    expect(await refused([])).toContain('a schedule needs --queue, and --cron or --every');
    expect(await refused(['--queue', 'q', '--cron', '61 * * * *'])).toContain('schedule x: cron is "61 * * * *"');
    expect(await refused(['--queue', 'q', '--every', '1h', '--zone', 'Mars'])).toContain('zone is "Mars"');
    expect(await refused(['--queue', 'q'])).toContain('neither cron nor every');
    expect(await refused(['--queue', 'q', '--every', '1h', '--calendar', '[]'])).toContain('--calendar is an array');
    expect(await refused(['--file', 'x.yaml', '--queue', 'q'])).toContain('--file and --queue are both given');
    expect(await refused(['--queue', 'q', '--every', '1h'].concat('--overlap', 'some'))).toContain('Allowed choices');
    expect(await the.redis.keys('*')).toEqual([]);
  });

  test('gives a new queue the partitions of the configuration', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'duestream-'));
    const config = join(folder, 'wide.yaml');
    writeFileSync(config, 'queues:\n  wide:\n    partitions: 3\n');
    expect((await say(['put', 'n', '--queue', 'wide', '--every', '1h', '--config', config])).code).toBe(0);
    expect(await the.redis.hget(controlKeys(namespace).queues, 'wide')).toContain('"partitions":3');
    rmSync(folder, { recursive: true });
  });
});

describe('schedules ls', () => {
  test('shows rule, zone, next and last instant, runs and state, and those that nobody can read', async () => {
    await say(['put', 'nightly', '--queue', 'reports', '--cron', '30 2 * * *', '--zone', 'Asia/Tokyo', '--tag', 'x']);
    await say(['put', 'poll', '--queue', 'feeds', '--every', '5m', '--paused', 'too loud']);
    const { fired } = partitionKeys({ namespace, queue: 'reports', partition: 0 });
    await the.redis.hset(fired, 'nightly', '1772325000000 4 1 - j:{schedule:nightly}2026-03-01T17:30:00Z 1');
    await the.redis.hset(controlKeys(namespace).schedules, 'odd', '{"schedule":{"queue":"q","cron":"nonsense"}}');
    const { code, out } = await say(['ls']);
    expect(code).toBe(1);
    expect(out).toMatch(/^name +queue +rule +zone +next +last +runs +skipped +state\n/);
    expect(out).toMatch(
      /^nightly +reports +30 2 \* \* \* +Asia\/Tokyo +20..-..-.. 02:30:00 \(in .*\) +2026-03-02 02:30:00 \(\d+ d ago\) +4 +1 +on$/m,
    );
    expect(out).toMatch(/^poll +feeds +every 5 min +UTC +- +- +0 +0 +paused: too loud$/m);
    expect(out).toMatch(/^odd {2}cannot be read and does not fire: schedule odd: cron is "nonsense"/m);
    const value = await answer(['ls']);
    expect(value).toMatchObject({
      namespace,
      unreadable: [{ name: 'odd', why: expect.stringContaining('nonsense') }],
      schedules: [
        {
          name: 'nightly',
          runs: 4,
          skipped: 1,
          lastMs: Date.parse('2026-03-01T17:30:00.000Z'),
          input: { zone: 'Asia/Tokyo' },
        },
        { name: 'poll', paused: 'too loud' },
      ],
    });
    expect((await answer(['ls', '--queue', 'feeds'])).schedules).toHaveLength(1);
    expect((await answer(['ls', '--tag', 'x'])).schedules).toHaveLength(1);
  });

  test('shows no more than the limit, and how many there are besides', async () => {
    for (const name of ['a', 'b', 'c']) await daily(name);
    const { out } = await say(['ls', '--limit', '1']);
    expect(out).toMatch(/^name .*\na +reports .*\nand 2 more; --limit shows them\n$/);
    expect((await answer(['ls'])).schedules).toHaveLength(3);
    expect((await answer(['ls', '--limit', '2'])).schedules).toHaveLength(2);
    await the.redis.hset(controlKeys(namespace).schedules, 'aa', 'nonsense', 'z', 'nonsense');
    const two = (await say(['ls', '--limit', '2'])).out;
    expect(two).toMatch(/^name .*\na .*\nb .*\nand 2 more; --limit shows them\naa {2}cannot be read .*\n$/);
  });

  test('of none tells how to make one', async () => {
    expect((await say(['ls'])).out).toContain('duestream schedules put --help');
  });
});

describe('schedules show', () => {
  test('tells the definition, who put it and how far it is', async () => {
    await say(['put', 'nightly', '--queue', 'reports', '--cron', '30 2 * * *', '--data', '{"a":1}']);
    const { out } = await say(['show', 'nightly']);
    expect(out).toMatch(/^schedule +nightly\nput by +a call\nqueue +reports\n/);
    expect(out).toMatch(/^data +\{"a":1\}$/m);
    expect(out).toMatch(/^state +on\nnext +20.* 02:30:00 UTC, .*\(in .*\)\nruns +0\nskipped +0\n$/m);
    expect(await answer(['show', 'nightly'])).toMatchObject({ name: 'nightly', source: 'call', runs: 0 });
  });

  test('tells a state that nobody can read, as ls and doctor do, and rm with put repairs it', async () => {
    await daily('nightly');
    const { fired } = partitionKeys({ namespace, queue: 'reports', partition: 0 });
    await the.redis.hset(fired, 'nightly', Buffer.from([0xff, 0x20, 0x31]));
    expect((await say(['ls'])).out).toMatch(/^nightly .* does not fire: its state is /m);
    expect((await say(['show', 'nightly'])).out).toMatch(
      /^state +does not fire: its state is .*\n(.*\n)*advice +remove it/m,
    );
    expect(await answer(['show', 'nightly'])).toMatchObject({ unreadable: expect.stringContaining('its state is') });
    expect(await answer(['put', 'nightly', '--queue', 'reports', '--cron', '30 2 * * *'])).toMatchObject({
      status: 'unchanged',
    });
    expect((await daily('nightly')).out).toContain('nightly  unchanged  does not fire: its state is');
    const doctor = await runHere(['doctor', '--redis', the.server.url, '--namespace', namespace]);
    expect(doctor.out).toContain('1 of 1 has a state that cannot be read, such as "nightly"');
    expect((await say(['rm', 'nightly'])).code).toBe(0);
    await daily('nightly');
    expect((await say(['ls'])).out).toMatch(/^nightly .* on$/m);
  });

  test('of one that is not there ends with 1 and tells where to look', async () => {
    const { code, err } = await say(['show', 'nope']);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('duestream schedules ls') });
    expect((await say(['preview', 'nope'])).code).toBe(1);
    expect((await say(['trigger', 'nope'])).code).toBe(1);
    expect((await say(['pause', 'nope'])).code).toBe(1);
  });
});

describe('schedules pause, resume and rm', () => {
  test('pause and resume say what changed', async () => {
    await daily('nightly');
    expect((await say(['pause', 'nightly', '--reason', 'why'])).out).toBe('nightly is paused: why\n');
    expect((await say(['pause', 'nightly', '--reason', 'why'])).out).toBe('nightly was already paused: why\n');
    expect(await answer(['resume', 'nightly'])).toMatchObject({ name: 'nightly', paused: false, changed: true });
    expect((await say(['resume', 'nightly'])).out).toMatch(/^nightly was already on, next 20/);
  });

  test('a second pause without a reason keeps the first one; one with a reason replaces it', async () => {
    await daily('nightly');
    await say(['pause', 'nightly', '--reason', 'the database moves']);
    expect((await say(['pause', 'nightly'])).out).toBe('nightly was already paused: the database moves\n');
    expect(await answer(['pause', 'nightly'])).toMatchObject({ reason: 'the database moves', changed: false });
    expect((await stored('nightly')).paused).toBe('the database moves');
    expect((await say(['pause', 'nightly', '--reason', 'it moved'])).out).toBe('nightly is paused: it moved\n');
    await say(['put', 'bare', '--queue', 'q', '--every', '1h', '--paused']);
    // Its definition paused it; from now on somebody does, and a definition without a pause does not resume it.
    expect((await say(['pause', 'bare'])).out).toBe('bare is paused\n');
    expect((await say(['pause', 'bare'])).out).toBe('bare was already paused\n');
    await say(['put', 'bare', '--queue', 'q', '--every', '1h']);
    const { out } = await say(['show', 'bare']);
    expect(out).toContain('by hand: this holds until');
    expect(out).toMatch(new RegExp(`^paused by +${userHere()}, `, 'm'));
    expect(await answer(['show', 'bare'])).toMatchObject({ hand: { by: userHere(), atMs: expect.any(Number) } });
    expect((await say(['pause', 'bare', '--reason', 'why'])).out).toBe('bare is paused: why\n');
  });

  test('rm removes several, and ends with 1 when one was not there', async () => {
    await daily('a');
    await daily('b');
    const { code, out } = await say(['rm', 'a', 'nope', 'b']);
    expect(code).toBe(1);
    expect(out).toBe(
      'a is removed\nthere is no schedule "nope"; "duestream schedules ls" lists those that are\nb is removed\n',
    );
    expect(await the.redis.exists(controlKeys(namespace).schedules)).toBe(0);
    expect(await the.redis.exists(partitionKeys({ namespace, queue: 'reports', partition: 0 }).fires)).toBe(0);
  });
});
