/** Instants and durations on the command line: what a date means, zones, and the hint for what is neither. */
import { beforeEach, describe, expect, test } from 'vitest';
import { runHere } from '../../support/console.ts';
import { usePartition } from '../../support/partition.ts';

const the = usePartition();
const say = (args: readonly string[], input?: string) =>
  runHere([...args, '--redis', the.server.url, '--namespace', 't'], input === undefined ? {} : { input });
const answer = async (args: readonly string[]) => {
  const { out, err } = await say([...args, '--json']);
  return JSON.parse(out || err);
};
const refusal = async (args: readonly string[]) => {
  const { code, out, err } = await say(args);
  expect({ code, out }).toEqual({ code: 64, out: '' });
  return err.split('\n')[0] ?? '';
};
const put = (rule: readonly string[]) => say(['schedules', 'put', 'daily', '--queue', 'q', ...rule]);
const BERLIN = ['--cron', '30 23 * * *', '--zone', 'Europe/Berlin'];

describe('a date without a time', () => {
  test('as --to of a backfill includes its whole day in the zone of the schedule, as --from it begins there', async () => {
    await put(BERLIN);
    const days = async (from: string, to: string) => {
      const { jobs } = await answer(['schedules', 'backfill', 'daily', '--from', from, '--to', to, '--dry-run']);
      return jobs.map(({ at }: { at: string }) => at);
    };
    expect(await days('2026-11-18', '2026-11-18')).toEqual(['2026-11-18T22:30:00.000Z']);
    expect(await days('2026-11-17', '2026-11-18')).toEqual(['2026-11-17T22:30:00.000Z', '2026-11-18T22:30:00.000Z']);
    await put(['--cron', '0 0 * * *', '--zone', 'Europe/Berlin']);
    // Midnight belongs to the day that begins with it.
    expect(await days('2026-11-18', '2026-11-18')).toEqual(['2026-11-17T23:00:00.000Z']);
    expect(await days('2026-10-25', '2026-10-25')).toEqual(['2026-10-24T22:00:00.000Z']);
    expect(await days('2026-11-18T00:00', '2026-11-18T00:00')).toEqual(['2026-11-17T23:00:00.000Z']);
  });

  test('as --until of a preview includes its day, of a stored schedule and of a rule', async () => {
    const range = ['--from', '2090-11-17', '--until', '2090-11-18'];
    const ids = async (what: readonly string[]) => (await answer(['schedules', 'preview', ...what, ...range])).rows;
    await put(BERLIN);
    expect(await ids(['daily'])).toHaveLength(2);
    expect(await ids(BERLIN)).toHaveLength(2);
    expect(await ids(['--cron', '0 0 * * *', '--zone', 'Europe/Berlin'])).toHaveLength(2);
  });

  test('as --end of a schedule lets it fire on that day for the last time, as --start on it for the first', async () => {
    const bounds = ['--start', '2090-11-17', '--end', '2090-11-18'];
    expect((await put([...BERLIN, ...bounds])).code).toBe(0);
    const { rows } = await answer(['schedules', 'preview', 'daily', '--from', '2090-01-01', '--next', '9']);
    expect(rows.map(({ local }: { local: string }) => local.slice(0, 10))).toEqual(['2090-11-17', '2090-11-18']);
    expect((await answer(['schedules', 'show', 'daily'])).input.end).toBe('2090-11-18T23:00:00.000Z');
  });

  test('as --until of a forecast is a whole day of UTC', async () => {
    const day = new Date(Date.now() + 2 * 86_400_000).toISOString().slice(0, 10);
    const { untilMs } = await answer(['schedules', 'forecast', '--until', day]);
    expect(untilMs).toBe(Date.parse(`${day}T00:00Z`) + 86_400_000);
  });

  test.each([
    [['schedules', 'backfill', '--help'], '--to'],
    [['schedules', 'preview', '--help'], '--until'],
    [['schedules', 'put', '--help'], '--end'],
    [['schedules', 'forecast', '--help'], '--until'],
  ])('is explained in "%s"', async (args, flag) => {
    const { out } = await runHere(args);
    const text = out.replace(/\s+/g, ' ');
    expect(text.slice(text.indexOf(flag))).toMatch(/a date means the end of that day/);
  });
});

describe('schedule --at', () => {
  test('takes a local time or a date with --zone, as the library does', async () => {
    const due = async (args: readonly string[]) =>
      new Date((await answer(['schedule', 'q', ...args])).dueMs).toISOString();
    const zone = ['--zone', 'America/New_York'];
    expect(await due(['--at', '2030-07-01T09:00', ...zone])).toBe('2030-07-01T13:00:00.000Z');
    expect(await due(['--at', '2030-07-01', ...zone])).toBe('2030-07-01T04:00:00.000Z');
    expect(await due(['--at', '2030-07-01T09:00+02:00', ...zone])).toBe('2030-07-01T07:00:00.000Z');
  });

  test('takes a zone in lines of --bulk', async () => {
    const lines = [
      { id: 'a', at: '2030-07-01T09:00', zone: 'America/New_York' },
      { id: 'b', at: '2030-07-01T09:00', zone: 'America/NewYork' },
      { id: 'c', at: '2030-07-01T09:00Z', zon: 'UTC' },
    ];
    const { code, out, err } = await say(
      ['schedule', 'q', '--bulk', '-'],
      lines.map((job) => JSON.stringify(job)).join('\n'),
    );
    expect({ code, out }).toEqual({ code: 1, out: '3 lines, 1 scheduled, 2 refused\n' });
    expect(err).toContain('line 2: zone is "America/NewYork"; did you mean America/New_York? allowed: UTC or an IANA');
    expect(err).toContain('line 3: "zon" is no option; did you mean zone? allowed: data, delay, at, zone, within, id');
    const { job } = await answer(['show', 'q', 'a']).then((value) => ({ job: value }));
    expect(JSON.stringify(job)).toContain(String(Date.parse('2030-07-01T13:00Z')));
  });

  test('refuses a zone that is misspelt, and one without --at', async () => {
    expect(await refusal(['schedule', 'q', '--at', '2030-07-01T09:00', '--zone', 'Berlin'])).toBe(
      'duestream: zone is "Berlin"; did you mean Europe/Berlin? allowed: UTC or an IANA name with a slash such as Europe/Berlin (a fixed offset is Etc/GMT-2 for +02:00)',
    );
    expect(await refusal(['schedule', 'q', '--zone', 'UTC'])).toContain(
      'zone is "UTC" without at; allowed: a zone together with a local time in at',
    );
  });
});

describe('the hint', () => {
  beforeEach(() => put(BERLIN));

  test.each([
    [
      ['schedules', 'forecast', '--until', '3d'],
      '--until is "3d"; did you mean +3d (from now) or -3d (ago)? allowed: now, +3d, -2h,',
    ],
    [['schedules', 'preview', 'daily', '--until', '3d'], '--until is "3d"; did you mean +3d (from now) or -3d (ago)?'],
    [['schedules', 'backfill', 'daily', '--from', '3d', '--to', 'now'], '--from is "3d"; did you mean +3d'],
    [['schedules', 'backfill', 'daily', '--from', '-2d', '--to', 'today'], '--to is "today"; allowed: now, +3d, -2h,'],
    [['schedules', 'forecast', '--until', '+3x'], '--until is "+3x"; allowed: now, +3d, -2h,'],
    [
      ['schedules', 'forecast', '--until', '2026-02-30'],
      'until is "2026-02-30"; allowed: a local time that exists in UTC',
    ],
    [['schedule', 'q', '--at', '3d'], '--at is "3d"; did you mean --delay 3d? allowed: ISO 8601'],
    [['schedule', 'q', '--at', '+3d'], '--at is "+3d"; did you mean --delay 3d? allowed: ISO 8601'],
    [
      ['schedule', 'q', '--at', '2030-07-01T09:00'],
      '--at is "2030-07-01T09:00", a local time; name its --zone, or add Z',
    ],
    [['schedule', 'q', '--at', 'soon'], '--at is "soon"; allowed: ISO 8601'],
    [['schedule', 'q', '--expires-at', '3d'], '--expires-at is "3d"; did you mean --max-lateness 3d? allowed: ISO'],
    [['schedule', 'q', '--expires-at', '2030-07-01'], '--expires-at is "2030-07-01", a local time; add Z or an offset'],
    [['schedule', 'q', '--delay', '3'], 'delay is "3", without a unit; did you mean 3s? allowed:'],
    [['schedule', 'q', '--timeout', '90'], 'timeout is "90", without a unit; did you mean 90s? allowed:'],
    [['schedules', 'put', 'x', '--queue', 'q', '--every', '5'], 'every is "5", without a unit; did you mean 5s?'],
    [['schedules', 'put', 'x', '--queue', 'q', '--every', '1h', '--end', '3d'], '--end is "3d"; allowed: ISO 8601'],
  ])('of "%s"', async (args, message) => {
    expect(await refusal(args)).toContain(`duestream: ${message}`.replace('duestream: every', 'every'));
  });

  test.each([
    ['schedule', 'q', '--at'],
    ['schedule', 'q', '--expires-at'],
    ['ls', 'q', '--due-from'],
    ['schedules', 'put', 'x', '--queue', 'q', '--every', '1h', '--start'],
    ['schedules', 'put', 'x', '--queue', 'q', '--every', '1h', '--end'],
    ['schedules', 'preview', 'daily', '--from'],
    ['schedules', 'preview', 'daily', '--until'],
    ['schedules', 'backfill', 'daily', '--to', 'now', '--from'],
    ['schedules', 'forecast', '--until'],
  ])('of an offset that no clock has: "%s %s %s …"', async (...args) => {
    expect(await refusal([...args, '2030-07-01T09:00:00-13:75'])).toContain('; no clock has the offset -13:75,');
  });
});
