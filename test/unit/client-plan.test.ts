import { DateTime } from 'luxon';
import { describe, expect, test } from 'vitest';
import { dueOf, planJob } from '../../src/client/calls/plan.ts';
import { exponential, ladder } from '../../src/job/backoff.ts';
import { decodeRecord } from '../../src/job/codec.ts';
import type { ScheduleOptions } from '../../src/job/options.ts';

const DAY = 86_400_000;
const nowMs = Date.UTC(2026, 2, 1);
const limits = { horizonMs: 3650 * DAY, dataBytesMax: 1000, nowMs };

const refusal = (options: object, data: unknown = {}) =>
  expect(() => planJob(data, options as ScheduleOptions, limits));
const badInput = (message: RegExp) =>
  expect.objectContaining({ code: 'bad-input', message: expect.stringMatching(message) });

describe('when a job is due', () => {
  test.each<[string, ScheduleOptions, number]>([
    ['a number of milliseconds', { delay: 1500 }, nowMs + 1500],
    ['a short text', { delay: '5m' }, nowMs + 300_000],
    ['an ISO 8601 duration', { delay: 'PT1H30M' }, nowMs + 5_400_000],
    ['a Date', { at: new Date(nowMs + 7) }, nowMs + 7],
    ['a text with an offset', { at: '2026-03-01T10:00:00+01:00' }, nowMs + 9 * 3_600_000],
    ['a luxon DateTime', { at: DateTime.fromMillis(nowMs + 8) }, nowMs + 8],
    ['a luxon DateTime with part of a millisecond', { at: DateTime.fromMillis(nowMs + 8.2) }, nowMs + 9],
    ['a text with microseconds', { at: '2026-03-01T09:00:00.0080001Z' }, nowMs + 9 * 3_600_000 + 9],
    ['seconds with decimals', { at: DateTime.fromSeconds((nowMs + 1) / 1000) }, nowMs + 1],
    ['a local time of a zone', { at: '2026-03-08T01:30', zone: 'America/New_York' }, Date.parse('2026-03-08T06:30Z')],
    ['one with microseconds', { at: '2026-03-08T01:30:00.0001', zone: 'UTC' }, Date.parse('2026-03-08T01:30Z') + 1],
    ['one that the clock skips', { at: '2026-03-08T02:30', zone: 'America/New_York' }, Date.parse('2026-03-08T07:30Z')],
    ['one that comes twice', { at: '2026-11-01T01:30', zone: 'America/New_York' }, Date.parse('2026-11-01T05:30Z')],
    ['an instant that is past', { at: new Date(nowMs - DAY) }, nowMs - DAY],
    ['nothing', {}, nowMs],
    ['the horizon itself', { delay: '3650d' }, nowMs + 3650 * DAY],
  ])('%s is understood', (_, options, dueMs) => {
    expect(planJob({}, options, limits).dueMs).toBe(dueMs);
  });

  test('a part of a millisecond is never rounded towards early', () => {
    expect(dueOf({ delay: 10 }, { ...limits, nowMs: nowMs + 0.001 })).toBe(nowMs + 11);
  });

  test('a luxon DateTime plus a third of an hour makes a record that can be read', () => {
    const at = DateTime.fromMillis(nowMs).plus({ hours: 1 / 3, milliseconds: 0.5 });
    const plan = planJob({}, { at, expiresAt: at }, limits);
    expect(plan.dueMs).toBe(nowMs + 1_200_001);
    expect(decodeRecord(plan.record)).toMatchObject({ askedDueMs: plan.dueMs });
  });

  test('a delay of nothing is due now and not a millisecond from now', () => {
    expect(dueOf({ delay: 0 }, { ...limits, nowMs: nowMs + 0.9 })).toBe(nowMs);
  });
});

describe('a job is refused with what was given and what is allowed', () => {
  const missing = new Date(Number.NaN);
  test.each<[string, object, RegExp]>([
    ['a delay that is no number', { delay: Number.NaN }, /delay is NaN; allowed: a number of milliseconds/],
    ['an infinite delay', { delay: Number.POSITIVE_INFINITY }, /delay is Infinity; allowed/],
    ['a negative delay', { delay: -1 }, /delay is -1; allowed: a number of milliseconds >= 0/],
    ['a delay of another type', { delay: {} }, /delay is a value of type object; allowed/],
    ['a delay in calendar units', { delay: 'P1M' }, /delay is "P1M"; allowed.*without years and months/],
    ['a delay past the horizon', { delay: '3651d' }, /delay is "3651d"; allowed: 0 to 315360000000 ms .*3650 days/],
    ['an unknown zone', { at: '2026-03-08T01:30', zone: 'Mars/Base' }, /zone is "Mars\/Base"; allowed: UTC or an IANA/],
    ['a zone without a time', { zone: 'UTC' }, /zone is "UTC" without at/],
    ['an invalid Date', { at: missing }, /at is an invalid Date; allowed/],
    ['an instant without a zone', { at: '2026-03-01T10:00' }, /at is "2026-03-01T10:00"; allowed.*offset/],
    [
      'an instant as a number',
      { at: 1_763_719_000_000 },
      /at is 1763719000000; did you mean new Date\(1763719000000\)\? allowed/,
    ],
    ['seconds as a number', { at: 1_763_719_000 }, /did you mean new Date\(1763719000 \* 1000\)\?/],
    [
      'a backoff as BullMQ has it',
      { backoff: { type: 'exponential', delay: 1000 } },
      /backoff is { type: 'exponential', delay: 1000 }; did you mean exponential\(1000\)\?/,
    ],
    ['an instant past the horizon', { at: new Date(nowMs + 3651 * DAY) }, /at is 2036-.*; allowed: .* to 2036-/],
    ['seconds for milliseconds', { at: new Date(1_763_719_000) }, /at is 1970-01-21.*; allowed: 1973-03-03/],
    ['both delay and at', { delay: 1, at: new Date(nowMs) }, /delay is 1 and at is 2026-.*; allowed: one of them/],
    ['an empty id', { id: '' }, /job id is ""; allowed: 1 to 128/],
    ['an id with a space', { id: 'a b' }, /job id is "a b"; allowed/],
    ['an id with a brace', { id: 'a{b}' }, /job id is "a\{b\}"; allowed/],
    ['an id that is too long', { id: 'x'.repeat(129) }, /job id is "x+…"; allowed: 1 to 128/],
    ['an id of another type', { id: 7 }, /job id is 7; allowed/],
    ['a name outside the grammar', { name: 'two words' }, /job name is "two words"; allowed: 1 to 64/],
    [
      'an unknown way with conflicts',
      { ifExists: 'maybe' },
      /ifExists is "maybe"; allowed: keep, update, replace, error/,
    ],
    ['no attempts', { attempts: 0 }, /attempts is 0; allowed: a whole number from 1 to 1000/],
    ['a time-out of another type', { timeout: 'soon' }, /timeout is "soon"; allowed/],
    [
      'a backoff that is a function',
      { backoff: () => 1 },
      /backoff is a value of type function; allowed: fixed\(…\).*; a function only for a queue/,
    ],
    ['a backoff of no known kind', { backoff: { kind: 'magic' } }, /backoff is a value of type object; allowed/],
    ['a backoff with a wrong number', { backoff: { kind: 'fixed', delayMs: -5 } }, /fixed delay is -5; allowed/],
    ['a misspelt option', { dealy: '5m' }, /^dealy is not an option of schedule; did you mean delay\?$/],
  ])('%s', (_, options, message) => {
    refusal(options).toThrow(badInput(message));
  });

  test.each([null, [], '5m', 5])('options that are %j', (options) => {
    expect(() => planJob({}, options as ScheduleOptions, limits)).toThrow(badInput(/allowed: an object/));
  });

  const circular: Record<string, unknown> = {};
  circular.self = circular;
  test.each<[string, unknown, RegExp]>([
    ['a cycle', circular, /data\.self\.self.* \(a circular reference\) cannot be carried/],
    ['a bigint', { n: 1n }, /data\.n \(a bigint\) cannot be carried by JSON/],
    ['NaN inside', { deep: [1, Number.NaN] }, /data\.deep\.1 \(NaN\) cannot be carried by JSON; allowed: objects/],
    ['a function', () => 1, /data \(a function\) cannot be carried/],
    ['a Map', { map: new Map() }, /data\.map \(a Map\) cannot be carried/],
    ['a Buffer', new Uint8Array(2), /data \(a Uint8Array\) cannot be carried/],
  ])('data that is %s', (_, data, message) => {
    refusal({}, data).toThrow(badInput(message));
  });

  test('data over the limit, in bytes', () => {
    refusal({}, 'ä'.repeat(500)).toThrow(badInput(/data is 1002 bytes of JSON; allowed: 1000 bytes/));
    refusal({ name: 'welcome' }, 'x'.repeat(999)).toThrow(badInput(/data is 1001 bytes of JSON/));
  });

  test('data of exactly the limit is taken, whatever else the record carries', () => {
    const options = { name: 'welcome', attempts: 3, backoff: ladder(['1m', '10m']) };
    expect(planJob('x'.repeat(998), options, limits).bytes).toBeGreaterThan(1000);
  });
});

describe('a plan', () => {
  test('carries what differs from the queue, and nothing else', () => {
    const options: ScheduleOptions = { id: 'a', name: 'n', attempts: 2, timeout: '1s', backoff: exponential('1s') };
    expect(decodeRecord(planJob({ a: 1 }, options, limits).record)).toEqual({
      askedDueMs: nowMs,
      bare: false,
      name: 'n',
      data: { a: 1 },
      attempts: 2,
      timeoutMs: 1000,
      backoff: exponential('1s'),
    });
    expect(planJob(undefined, {}, limits).record).toBe(`1${nowMs.toString(36)}|{}`);
  });

  test('has the size that Redis will see', () => {
    const { record, member, bytes } = planJob({ text: 'ä€' }, { id: 'a' }, limits);
    expect(bytes).toBe(Buffer.byteLength(record) + Buffer.byteLength(member));
  });

  test('is given an id of 22 characters when it has none, another each time', () => {
    const ids = [planJob({}, {}, limits).id, planJob({}, {}, limits).id];
    expect(ids[0]).toMatch(/^[\w-]{22}$/);
    expect(ids[0]).not.toBe(ids[1]);
  });
});

describe('a herd that is spread', () => {
  const at = new Date(Date.UTC(2026, 3, 1));
  const limits = { horizonMs: 3650 * 86_400_000, dataBytesMax: 1000, nowMs: Date.UTC(2026, 2, 1) };
  const dueOf = (id: string, within: string) => planJob({}, { id, at, within }, limits).dueMs - at.getTime();

  test('is due within that time, evenly, and the same id always at the same moment', () => {
    const dues = Array.from({ length: 2000 }, (_, nth) => dueOf(`user:${nth}`, '10m'));
    expect(Math.min(...dues)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...dues)).toBeLessThanOrEqual(600_000);
    for (let minute = 0; minute < 10; minute += 1) {
      const inMinute = dues.filter((due) => Math.floor(due / 60_000) === minute);
      expect(inMinute.length).toBeGreaterThan(100);
    }
    expect(dueOf('user:7', '10m')).toBe(dues[7]);
  });

  test('does not go beyond the horizon', () => {
    const last = new Date(limits.nowMs + limits.horizonMs);
    expect(() => planJob({}, { id: 'a', at: last, within: '30d' }, limits)).toThrow(/within is "30d", and the job/);
  });
});
