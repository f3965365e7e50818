/** Schedules from the shell, looked ahead and run out of turn: preview, trigger and backfill. */
import { describe, expect, test } from 'vitest';
import { runHere } from '../../support/console.ts';
import { usePartition } from '../../support/partition.ts';

const the = usePartition();
const say = (args: readonly string[]) => runHere(['schedules', ...args, '--redis', the.server.url, '--namespace', 't']);
const answer = async (args: readonly string[]) => JSON.parse((await say([...args, '--json'])).out);
const daily = (zone: string) => say(['put', 'nightly', '--queue', 'q', '--cron', '30 2 * * *', '--zone', zone]);

describe('schedules preview', () => {
  test('of a rule in flags needs no Redis and tells what a clock change does', async () => {
    const rule = ['--cron', '30 2 * * *', '--zone', 'America/New_York', '--from', '2026-03-07', '--next', '3'];
    const { code, out } = await runHere(['schedules', 'preview', ...rule, '--redis', 'unix:///nowhere.sock']);
    expect(code).toBe(0);
    expect(out.split('\n')).toEqual([
      expect.stringMatching(/^local time +UTC +offset +clock change +note$/),
      expect.stringMatching(/^2026-03-07 02:30:00 +2026-03-07T07:30:00Z +-05:00 +- +-$/),
      expect.stringMatching(/^2026-03-08 03:30:00 +2026-03-08T07:30:00Z +-04:00 +shifted, from 02:30:00 +-$/),
      expect.stringMatching(/^2026-03-09 02:30:00 +2026-03-09T06:30:00Z +-04:00 +- +-$/),
      'the first job will be {schedule:preview}2026-03-07T07:30:00Z',
      'ids, H and jitter follow from the name; this preview uses the name preview',
      '',
    ]);
    const unnamed = JSON.parse((await runHere(['schedules', 'preview', ...rule, '--json'])).out);
    expect(unnamed.assumedName).toBe('preview');
    expect(unnamed.rows).toHaveLength(3);
    const named = await runHere(['schedules', 'preview', 'nightly', ...rule, '--json']);
    expect(JSON.parse(named.out)).not.toHaveProperty('assumedName');
  });

  test('tells what the calendar does, and why there is no job', async () => {
    const rule = ['--cron', '0 9 * * *', '--from', '2026-03-06', '--until', '2026-03-08T12:00'];
    const hours = ['--calendar', '{"hours":{"mon-fri":"09:00-17:00"}}'];
    const { out } = await say(['preview', ...rule, ...hours]);
    expect(out).toMatch(/^2026-03-06 09:00:00 .* - +-$/m);
    expect(out).toMatch(/^2026-03-07 09:00:00 .* - +no job: outside-hours$/m);
  });

  test('says what it leaves out', async () => {
    const hours = ['--calendar', '{"hours":{"mon":"00:00-00:01"}}'];
    const rule = ['--cron', '* * * * * *', '--from', '2026-03-06', '--next', '1', ...hours];
    const { out } = await say(['preview', ...rule]);
    expect(out).toMatch(/ no job: outside-hours, and 259190 more$/m);
    expect(out).toMatch(/^259190 instants without a job are left out$/m);
    expect((await answer(['preview', ...rule])).leftOut).toMatchObject({ dropped: 259_190, later: 0 });
    const all = await say(['preview', '--every', '1s', '--from', '2026-03-06', '--until', '2026-03-06']);
    expect(all.out).toMatch(/^\d+ later jobs left out; --from 2026-03-06T\S+ goes on there$/m);
  });

  test('of a stored schedule reaches to a relative instant', async () => {
    await daily('UTC');
    const { rows } = await answer(['preview', 'nightly', '--until', '+3d']);
    expect(rows).toHaveLength(3);
    expect(rows[0].id).toMatch(/^\{schedule:nightly\}20/);
    expect((await answer(['preview', 'nightly', '--next', '20'])).rows).toHaveLength(20);
  });

  test('shows the runs that a schedule has left, and that one which is paused makes no job', async () => {
    await say(['put', 'twice', '--queue', 'reports', '--cron', '30 2 * * *', '--max-runs', '2']);
    expect((await answer(['preview', 'twice'])).rows).toHaveLength(2);
    await say(['pause', 'twice']);
    expect((await say(['preview', 'twice'])).out).toMatch(/^20.* no job: paused\n20.* no job: paused\n$/m);
  });

  test('with a name gives H the number of that name', async () => {
    const minute = async (name: string) =>
      (await answer(['preview', name, '--cron', 'H 2 * * *', '--next', '1'])).rows[0].local.slice(14, 16);
    expect(await minute('nightly')).toBe(await minute('nightly'));
    const all = await Promise.all(['a', 'b', 'c', 'd'].map(minute));
    expect(new Set(all).size).toBeGreaterThan(1);
  });

  test('refuses nothing at all, and a sign without a duration', async () => {
    expect(await say(['preview'])).toMatchObject({ code: 64, err: expect.stringContaining('or a rule') });
    const { code, err } = await say(['preview', '--every', '1h', '--until', '+soon']);
    expect({ code, err }).toEqual({ code: 64, err: expect.stringContaining('--until is "+soon"') });
  });
});

describe('schedules trigger', () => {
  test('makes one job now, and the same id no second one', async () => {
    await daily('UTC');
    expect((await say(['trigger', 'nightly', '--id', 'x'])).out).toBe('{schedule:nightly}now:x  scheduled  due now\n');
    expect((await say(['trigger', 'nightly', '--id', 'x'])).out).toContain('exists  a job of this id is live');
    expect(await answer(['trigger', 'nightly'])).toMatchObject({ status: 'scheduled' });
    expect(await the.redis.zcard(the.keys.scheduled)).toBe(2);
  });
});

describe('schedules backfill', () => {
  test('shows in a dry run what it would do, then does it, and runs nothing again', async () => {
    await daily('America/New_York');
    const range = ['backfill', 'nightly', '--from', '2026-03-01', '--to', '2026-03-02'];
    const dry = await say([...range, '--dry-run']);
    expect(dry.out).toMatch(/^2026-03-01T07:30:00\.000Z +would +\{schedule:nightly\}2026-03-01T07:30:00Z$/m);
    expect(dry.out).toMatch(/\n2 jobs would be scheduled; nothing was done\n$/);
    expect(await the.redis.zcard(the.keys.scheduled)).toBe(0);
    expect((await say(range)).out).toMatch(/\n2 jobs scheduled\n$/);
    expect((await say(range)).out).toMatch(/\n0 jobs scheduled; 2 were not run again\n$/);
    expect((await answer(range)).jobs[0]).toEqual({
      id: '{schedule:nightly}2026-03-01T07:30:00Z',
      status: 'exists',
      at: '2026-03-01T07:30:00.000Z',
    });
  });

  test('takes relative instants, and refuses more than the limit', async () => {
    await daily('UTC');
    expect((await answer(['backfill', 'nightly', '--from', '-5d', '--to', 'now', '--dry-run'])).jobs).toHaveLength(5);
    const { code, err } = await say(['backfill', 'nightly', '--from', '-5d', '--to', 'now', '--limit', '4']);
    expect({ code, err }).toEqual({ code: 64, err: expect.stringContaining('more than 4 instants') });
    expect((await say(['backfill', 'nightly', '--from', '-5d'])).code).toBe(64);
  });
});
