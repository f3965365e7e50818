/** What people write of a schedule: defaults, limits, and how each refusal is told. */
import { describe, expect, test } from 'vitest';
import { parseSchedule, type ScheduleInput } from '../../src/schedule/input.ts';
import { decodeDefinition, defineSchedule } from '../../src/schedule/text.ts';

const SINCE = Date.UTC(2026, 0);
const nightly = { queue: 'q', cron: '0 0 * * *' };
/** As people without types write it. */
const parse = (more: unknown, base: object = nightly, name = 'n') =>
  parseSchedule(
    name,
    (typeof more === 'object' && more && !Array.isArray(more) ? { ...base, ...more } : more) as ScheduleInput,
    { sinceMs: SINCE },
  );

const noInstant = (from: string) =>
  `cron and calendar leave no instant at all in the 30 years after ${from}T00:00:00.000Z; allowed: at least one`;

test('a fifth Monday in February is a rule, though its first instant is many years away', () => {
  expect(parse({ cron: '0 0 * 2 MON#5' }).rule).toEqual({ cron: '0 0 * 2 MON#5' });
});

test('the defaults are UTC, shift and first, one missed run, and no limits', () => {
  expect(parse({})).toEqual({
    name: 'n',
    queue: 'q',
    body: '{}',
    header: {},
    rule: { cron: '0 0 * * *' },
    zone: 'UTC',
    dst: { gap: 'shift', overlap: 'first' },
    jitterMs: 0,
    overlap: 'allow',
    tags: [],
    sinceMs: SINCE,
    catchUp: { policy: 'once', windowMs: 86_400_000, limit: 100 },
    calendar: undefined,
    startMs: undefined,
    endMs: undefined,
    maxRuns: undefined,
    paused: undefined,
  });
});

describe('a definition', () => {
  test('keeps all that is given', () => {
    const calendar = { hours: { 'mon-fri': '08:00-18:00' } };
    const given = {
      job: 'report',
      data: { a: 1 },
      zone: 'Europe/Berlin',
      dst: { gap: 'skip' },
      calendar,
      maxRuns: 7,
      jitter: '30s',
      start: '2026-03-01T09:00',
      end: '2026-12-31',
      overlap: 'queue',
      catchUp: { policy: 'all', limit: 5 },
      tags: ['a', 'b', 'a'],
      paused: 'for the holidays',
      attempts: 3,
      maxLateness: '1h',
      onLate: 'dead',
    };
    expect(parse(given, { queue: 'q', cron: '0 12 * * *' })).toMatchObject({
      dst: { gap: 'skip', overlap: 'first' },
      calendar,
      maxRuns: 7,
      jitterMs: 30_000,
      overlap: 'queue',
      startMs: Date.parse('2026-03-01T08:00Z'),
      endMs: Date.parse('2026-12-31T23:00Z'),
      tags: ['a', 'b'],
      catchUp: { policy: 'all', windowMs: 86_400_000, limit: 5 },
      paused: 'for the holidays',
      header: { maxLatenessMs: 3_600_000, onLate: 'dead' },
    });
  });

  test('counts an interval from the epoch, from its start, or from when it was put', () => {
    const every = (more: object) => parse(more, { queue: 'q', every: '90m' }).rule;
    const start = '2026-03-01T00:10:00Z';
    expect(every({ start })).toEqual({ everyMs: 5_400_000, anchorMs: 0 });
    expect(every({ start, align: 'start' })).toEqual({ everyMs: 5_400_000, anchorMs: Date.parse(start) });
    expect(every({ align: 'start' })).toEqual({ everyMs: 5_400_000, anchorMs: SINCE });
  });

  test('may be paused with a reason, without, or not', () => {
    expect([true, false, undefined, 'why'].map((paused) => parse({ paused }).paused)).toEqual([
      '',
      undefined,
      undefined,
      'why',
    ]);
  });

  test('at its limits is taken', () => {
    for (const every of ['1s', '3650d']) expect(parse({}, { queue: 'q', every }).rule).toBeDefined();
    for (const limit of [1, 1000]) expect(parse({ catchUp: { limit } }).catchUp.limit).toBe(limit);
    for (const maxRuns of [1, 1_000_000_000]) expect(parse({ maxRuns }).maxRuns).toBe(maxRuns);
    const tags = Array.from({ length: 16 }, (_, at) => String(at).repeat(32));
    const most = parse({ jitter: '1d', catchUp: { window: '366d' }, tags, paused: 'x'.repeat(200) });
    expect(most).toMatchObject({ jitterMs: 86_400_000, tags });
  });
});

const TAGS = 'at most 16 texts of 1 to 64 printable ASCII characters without space';
const RUNS = 'a whole number from 1 to 1000000000';

const REFUSED: readonly (readonly [given: unknown, told: string])[] = [
  [null, 'a schedule is null; allowed: an object'],
  [[], 'a schedule is an array; allowed: an object'],
  ['x', 'a schedule is "x"; allowed: an object'],
  [{ crom: '* * * * *' }, 'crom is not an option of a schedule; did you mean cron?'],
  [{ queue: 'Q!' }, 'queue name is "Q!"; allowed: 1 to 64 of a-z 0-9 . _ - beginning with a letter or digit'],
  [
    { data: 'x'.repeat(262_144) },
    'data is 262152 bytes of JSON; allowed: 262144 bytes; store it elsewhere and name it in the data',
  ],
  [{ cron: undefined }, 'neither cron nor every is given; allowed: one of them'],
  [{ every: '1m' }, 'both cron and every are given; allowed: one of them'],
  [{ cron: undefined, every: '999ms' }, 'every is "999ms"; allowed: 1000 ms to 3650 d'],
  [{ cron: undefined, every: '3651d' }, 'every is "3651d"; allowed: 1000 ms to 3650 d'],
  [{ cron: undefined, every: '1m', align: 'hour' }, 'align is "hour"; allowed: epoch, start'],
  [{ dst: 'skip' }, 'dst is "skip"; allowed: an object'],
  [{ dst: { gap: 'drop' } }, 'dst.gap is "drop"; allowed: shift, skip'],
  [{ dst: { overlap: 'last' } }, 'dst.overlap is "last"; allowed: first, second, both'],
  [{ dst: { forward: 'skip' } }, 'forward is not an option of dst; allowed: gap, overlap'],
  [{ start: '2026-02-30' }, 'start is "2026-02-30"; allowed: a local time that exists in UTC'],
  [
    { start: '2026-03-01T09:00Z', end: '2026-03-01T09:00Z' },
    'end is "2026-03-01T09:00Z"; allowed: an instant after the start',
  ],
  [{ maxRuns: 0 }, `maxRuns is 0; allowed: ${RUNS}`],
  [{ maxRuns: 1.5 }, `maxRuns is 1.5; allowed: ${RUNS}`],
  [{ jitter: '25h' }, 'jitter is "25h"; allowed: 0 ms to 1 d'],
  [{ overlap: 'wait' }, 'overlap is "wait"; allowed: allow, skip, queue, replace'],
  [{ catchUp: 'each' }, 'catchUp is "each"; allowed: skip, once, all'],
  [{ catchUp: { policy: 'each' } }, 'catchUp is "each"; allowed: skip, once, all'],
  [{ catchUp: { window: '367d' } }, 'catchUp.window is "367d"; allowed: 0 ms to 366 d'],
  [{ catchUp: { limit: 1001 } }, 'catchUp.limit is 1001; allowed: a whole number from 1 to 1000'],
  [{ catchUp: { most: 5 } }, 'most is not an option of catchUp; allowed: policy, window, limit'],
  [{ tags: 'a' }, `tags is "a"; allowed: ${TAGS}`],
  [{ tags: ['a b'] }, `a tag is "a b"; allowed: ${TAGS}`],
  [{ tags: Array.from({ length: 17 }, String) }, `tags is an array; allowed: ${TAGS}`],
  [
    { tags: [42] },
    'a tag is 42; allowed: at most 16 texts of 1 to 64 printable ASCII characters without space; in quotes it is a text: "42"',
  ],
  [
    { jobTags: [42] },
    'tags: one is 42; allowed: 1 to 64 printable ASCII characters without space, comma, semicolon and bar, not beginning with =; in quotes it is a text: "42"',
  ],
  [{ paused: 5 }, 'paused is 5; allowed: true, false, or a reason of at most 200 characters'],
  [{ calendar: null }, 'calendar is null; allowed: an object'],
  [{ calendar: { days: [] } }, 'days is not an option of calendar; allowed: skip, hours, outside'],
  [{ calendar: { hours: { mon: '09:00-10:00' } } }, noInstant('2026-01-01')],
  [{ cron: '0 0 * 2 MON#5', start: '2073-01-01' }, noInstant('2073-01-01')],
  [{ onLate: 'drop' }, 'onLate is "drop" without expiresAt or maxLateness; allowed: together with one of them'],
  [{ attempts: 0 }, 'attempts is 0; allowed: a whole number from 1 to 1000'],
];

test.each(REFUSED)('%j is refused with the name of the schedule', (given, told) => {
  expect(() => parse(given)).toThrow(expect.objectContaining({ code: 'bad-input', message: `schedule n: ${told}` }));
});

/** Words that YAML, forms and people take for something else. */
const WORDS: readonly (readonly [object, string])[] = [
  ...['no', 'off', 'n', 'false', 'False', 'yes', 'on', 'null', '~', '0', '', ' '].map(
    (paused) => [{ paused }, `paused is ${JSON.stringify(paused)}; allowed: true, false, or a reason`] as const,
  ),
  [{ paused: null }, 'paused is null; allowed: true, false, or a reason'],
  [{ tags: [2026, 'reports'] }, 'a tag is 2026; allowed: at most 16 texts'],
  [{ tags: [true] }, 'a tag is a value of type boolean; allowed: at most 16 texts'],
  [{ tags: [null] }, 'a tag is null; allowed: at most 16 texts'],
  [{ zone: 'BST' }, 'zone is "BST"; it names no single place; did you mean Europe/London?'],
  [{ zone: 'EST' }, 'did you mean America/New_York?'],
  [{ zone: 'GMT' }, 'did you mean UTC?'],
  [{ zone: 'Japan' }, 'allowed: UTC or an IANA name with a slash'],
  [
    { calendar: { hours: { 'mon-fri': ['09:00-12:00', '11:30-17:00'] } } },
    'hours is "mon 09:00-12:00 and 11:30-17:00"; allowed: hours of a day that do not overlap',
  ],
];

test.each(WORDS)('%j is refused, and the refusal says what was given and what is near', (given, told) => {
  expect(() => parse(given as never)).toThrow(expect.objectContaining({ code: 'bad-input' }));
  expect(() => parse(given as never)).toThrow(told);
});

test('what was accepted before is read as it was then', () => {
  const stored = { since: 0, source: 'call', schedule: { ...nightly, zone: 'BST', tags: [2026], paused: 'no' } };
  expect(decodeDefinition('n', JSON.stringify(stored)).schedule).toMatchObject({
    zone: 'BST',
    tags: ['2026'],
    paused: 'no',
  });
});

test.each(['', '{x}', 'a b', '-a', 'a'.repeat(65)])('the name %j is refused', (name) => {
  expect(() => parse({}, nightly, name)).toThrow(
    `schedule name is ${JSON.stringify(name)}; allowed: 1 to 64 of A-Z a-z 0-9 . _ : - beginning with a letter or digit`,
  );
});

test('a reason of a pause is one line without control characters, also one that was stored with them', () => {
  expect(parse({ paused: 'first\r\nsecond\u001b[2Jthird' }).paused).toBe('first second [2Jthird');
  const define = { sinceMs: SINCE, source: 'call' } as const;
  expect(defineSchedule('n', { ...nightly, paused: 'a\u0000b' }, define).input.paused).toBe('a b');
});
