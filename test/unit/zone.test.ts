/** Time zones: stretches of one offset, what a wall-clock time means, and what is refused. */
import { describe, expect, test } from 'vitest';
import { DEFAULT_DST, type DstPolicy, instantsOf, parseZone } from '../../src/time/zone.ts';

const utc = (atMs: number) => new Date(atMs).toISOString().slice(0, 16);

describe('a stretch of one offset', () => {
  test.each([
    ['Europe/Berlin', '2026-07-01', '2026-03-29T01:00', '2026-10-25T01:00', 120, 60, 60],
    ['America/New_York', '2026-07-01', '2026-03-08T07:00', '2026-11-01T06:00', -240, -300, -300],
    ['Australia/Lord_Howe', '2026-07-01', '2026-04-04T15:00', '2026-10-03T15:30', 630, 660, 660],
    ['Antarctica/Troll', '2026-07-01', '2026-03-29T01:00', '2026-10-25T01:00', 120, 0, 0],
    ['Pacific/Apia', '2011-12-01', '2011-09-24T14:00', '2011-12-30T10:00', -600, -660, 840],
    ['Asia/Kathmandu', '2026-07-01', '2025-01-01T00:00', '2028-01-01T00:00', 345, 345, 345],
  ])('of %s on %s', (name, on, from, to, minutes, before, after) => {
    const zone = parseZone(name);
    // A zone remembers its last stretch, perhaps from another test.
    zone.stretchAt(0);
    const { fromMs, toMs, offsetMs, beforeMs, afterMs } = zone.stretchAt(Date.parse(`${on}T00:00Z`));
    expect([utc(fromMs), utc(toMs)]).toEqual([from, to]);
    expect([offsetMs, beforeMs, afterMs]).toEqual([minutes, before, after].map((some) => some * 60_000));
  });

  test('meets the next one', () => {
    const zone = parseZone('Africa/Casablanca');
    for (let atMs = Date.UTC(2020, 0); atMs < Date.UTC(2030, 0); ) {
      const { toMs, afterMs } = zone.stretchAt(atMs);
      expect(zone.stretchAt(toMs)).toMatchObject({ fromMs: toMs, offsetMs: afterMs });
      atMs = toMs;
    }
  });
});

describe('a wall-clock time', () => {
  const both: DstPolicy = { gap: 'skip', overlap: 'both' };
  test.each<[string, string, DstPolicy, readonly string[]]>([
    ['UTC', '2026-03-08T02:30', DEFAULT_DST, ['2026-03-08T02:30']],
    ['America/New_York', '2026-03-08T02:30', DEFAULT_DST, ['2026-03-08T07:30']],
    ['America/New_York', '2026-03-08T02:30', both, []],
    ['America/New_York', '2026-03-08T03:00', both, ['2026-03-08T07:00']],
    ['America/New_York', '2026-11-01T01:30', DEFAULT_DST, ['2026-11-01T05:30']],
    ['America/New_York', '2026-11-01T01:30', { gap: 'shift', overlap: 'second' }, ['2026-11-01T06:30']],
    ['America/New_York', '2026-11-01T01:30', both, ['2026-11-01T05:30', '2026-11-01T06:30']],
    ['Australia/Lord_Howe', '2026-10-04T02:10', DEFAULT_DST, ['2026-10-03T15:40']],
    ['Antarctica/Troll', '2026-03-29T01:30', DEFAULT_DST, ['2026-03-29T01:30']],
    ['Pacific/Apia', '2011-12-30T12:00', DEFAULT_DST, ['2011-12-30T22:00']],
    ['Pacific/Apia', '2011-12-30T12:00', both, []],
    ['Pacific/Kiritimati', '2026-01-01T00:00', DEFAULT_DST, ['2025-12-31T10:00']],
  ])('in %s of %s under %o', (zone, at, dst, instants) => {
    expect(instantsOf(parseZone(zone), Date.parse(`${at}Z`), dst).map(utc)).toEqual(instants);
  });
});

test('a zone is read once', () => {
  expect(parseZone('Europe/Paris')).toBe(parseZone('Europe/Paris'));
});

test.each([
  [undefined, 'undefined'],
  [2, '2'],
  ['', '""'],
  ['Mars/Base', '"Mars/Base"'],
  ['UTC+2', '"UTC+2"'],
  ['local', '"local"'],
  ['x'.repeat(65), `"${'x'.repeat(65)}"`],
])('%j is refused', (input, given) => {
  expect(() => parseZone(input)).toThrow(
    expect.objectContaining({
      code: 'bad-input',
      message: `zone is ${given}; allowed: UTC or an IANA name with a slash such as Europe/Berlin (a fixed offset is Etc/GMT-2 for +02:00)`,
    }),
  );
});
