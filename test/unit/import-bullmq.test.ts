/** What BullMQ says of a job and of a scheduler, and what is said of it here. */
import { describe, expect, test } from 'vitest';
import { bullOptions, toldOf } from '../../src/import/bullmq/counterparts.ts';
import { dueOfScore, type Options, readJob, readScheduler, waitingSince } from '../../src/import/bullmq/layout.ts';
import { planSchedule } from '../../src/import/bullmq/schedules.ts';
import { isFlaw } from '../../src/import/flaw.ts';
import { NO_MAP } from '../../src/import/names.ts';
import { backoffMs, storable } from '../../src/job/backoff.ts';
import { read } from '../support/repository.ts';

const NOW_MS = Date.UTC(2026, 2, 2, 12);
const HOUR_MS = 3_600_000;

const told = (options: Options, attemptsMade = 0, isGated = false) =>
  toldOf({ name: 'welcome', options, attemptsMade }, { names: NO_MAP, isGated });
const kindsOf = (options: Options, attemptsMade = 0) => told(options, attemptsMade).notes.map(({ kind }) => kind);

describe('attempts', () => {
  test('are those that are left, and at least one', () => {
    expect(told({ attempts: 5 }).value.attempts).toBe(5);
    expect(told({ attempts: 5 }, 2).value.attempts).toBe(3);
    expect(told({ attempts: 5 }, 9).value.attempts).toBe(1);
    expect(told({}).value.attempts).toBe(1);
    expect(told({ attempts: 5000 }).value.attempts).toBe(1000);
  });

  test('that were made are told, because a handler counts from 1', () => {
    expect(kindsOf({ attempts: 5 }, 2)).toEqual(['made']);
    expect(kindsOf({ attempts: 5 })).toEqual([]);
  });
});

describe('a backoff', () => {
  /** How long the job waits after each failure that another attempt follows. */
  function waits(options: Options, made = 0, random = 0): readonly number[] {
    const { backoff, attempts = 1 } = told(options, made).value;
    if (backoff === undefined) throw new Error('the job has none of its own');
    return Array.from({ length: attempts - 1 }, (_, nth) => backoffMs(storable(backoff), nth + 1, random));
  }
  /** The same as BullMQ counts: delay × 2^(n − 1) after failure n of the job's life. */
  const bullWaits = (delay: number, attempts: number, made = 0) =>
    Array.from({ length: attempts - made - 1 }, (_, nth) => delay * 2 ** (made + nth));

  test('that is exponential waits as long as in BullMQ, beyond an hour too', () => {
    expect(waits({ attempts: 16, backoff: { type: 'exponential', delay: 1000 } })).toEqual(bullWaits(1000, 16));
  });

  test('goes on where the job was', () => {
    expect(waits({ attempts: 6, backoff: { type: 'exponential', delay: 1000 } }, 3)).toEqual([8000, 16_000]);
    expect(waits({ attempts: 6, backoff: { type: 'exponential', delay: 1000 } }, 3)).toEqual(bullWaits(1000, 6, 3));
  });

  test('that is fixed, or a number, stays', () => {
    expect(waits({ attempts: 3, backoff: { type: 'fixed', delay: 700 } })).toEqual([700, 700]);
    expect(waits({ attempts: 3, backoff: 700 })).toEqual([700, 700]);
  });

  test('that nobody has said is none: BullMQ tries again at once', () => {
    expect(waits({ attempts: 3 })).toEqual([0, 0]);
  });

  test('spreads over the same part of the wait, or the nearest one, which is told', () => {
    const spread = (jitter: number) => ({ attempts: 2, backoff: { type: 'fixed', delay: 1000, jitter } });
    expect([waits(spread(1)), waits(spread(1), 0, 0.999)]).toEqual([[0], [999]]);
    expect([waits(spread(0.5)), waits(spread(0.5), 0, 0.999)]).toEqual([[500], [1000]]);
    expect(kindsOf(spread(0.5))).toEqual([]);
    expect(kindsOf(spread(0.3))).toEqual(['jitter']);
  });

  test('of a strategy of the user is that of the queue, which is told', () => {
    expect(told({ attempts: 3, backoff: { type: 'mine' } }).value.backoff).toBeUndefined();
    expect(told({ attempts: 3, backoff: { type: 'mine' } }).notes[0]?.text).toContain('(mine)');
  });

  test('of a job with one attempt means nothing', () => {
    expect(told({ attempts: 1, backoff: { type: 'mine' } })).toMatchObject({ value: { attempts: 1 }, notes: [] });
  });
});

describe('other options', () => {
  test('a priority counts where the queue has limits, and is told elsewhere', () => {
    expect(told({ priority: 3 }, 0, true).value.priority).toBe('low');
    expect(told({ priority: 3 }).value.priority).toBeUndefined();
    expect(kindsOf({ priority: 3 })).toEqual(['priority']);
    expect(kindsOf({ priority: 0 })).toEqual([]);
  });

  test('the context of a trace goes along', () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    expect(told({ tm: JSON.stringify({ traceparent, baggage: 'a=b' }) }).value.headers).toEqual({ traceparent });
    expect(told({ tm: 'no JSON' }).value.headers).toBeUndefined();
  });

  test('what has no counterpart is told by its name, and what nobody knows too', () => {
    expect(kindsOf({ lifo: true, removeOnComplete: { age: 60 }, kl: 5, made: 'up' })).toEqual([
      'option lifo',
      'option removeOnComplete',
      'option kl',
      'option made',
    ]);
    expect(told({ kl: 5 }).notes[0]?.text).toContain('keepLogs has no counterpart');
    expect(kindsOf({ lifo: false, delay: 0, timestamp: 1, repeatJobKey: 'nightly' })).toEqual([]);
  });

  test('the page for people names every option', () => {
    const page = read('docs/how-to/come-from-bullmq.md');
    expect(
      Object.values(bullOptions).filter(({ name, fate }) => fate !== 'own' && !page.includes(`\`${name}\``)),
    ).toEqual([]);
  });
});

describe('a job in Redis', () => {
  const fields = (...given: readonly (string | null)[]) => readJob('7', given);

  test('is read from its hash, of newer and older versions', () => {
    const job = fields('welcome', '{"to":"a"}', '{"attempts":3}', '1000', '500', '2', null, null, 'invoice-7');
    expect(job).toEqual({
      id: '7',
      name: 'welcome',
      data: { to: 'a' },
      options: { attempts: 3 },
      madeMs: 1000,
      delayMs: 500,
      attemptsMade: 2,
      isChild: false,
      deduplication: 'invoice-7',
    });
    expect(!isFlaw(job) && waitingSince(job)).toBe(1500);
    expect(fields('w', '1', '{}', '1', '0', null, '4', 'bull:parents:1', null)).toMatchObject({
      attemptsMade: 4,
      isChild: true,
    });
  });

  test('that is not there, or is no JSON, says so', () => {
    expect(fields(null, null, null, null, null, null, null, null, null)).toEqual({
      flaw: 'the place names the job, and its data is not there',
    });
    expect(fields('w', '{', '{}', '1', '0', null, null, null, null)).toEqual({
      flaw: 'its data or its options are no JSON',
    });
  });

  test('is due at the millisecond that its score says', () => {
    expect(dueOfScore(String(1_763_719_000_123 * 4096))).toBe(1_763_719_000_123);
    expect(dueOfScore(String(1_763_719_000_123 * 4096 + 4095))).toBe(1_763_719_000_123);
  });
});

describe('a scheduler', () => {
  const target = { names: NO_MAP, isGated: false, queue: 'reports', zone: 'UTC', nowMs: NOW_MS };
  const missing = { flaw: 'the place names the job, and its data is not there' };

  function planned(fields: Readonly<Record<string, string>>, nextMs: number) {
    const names = ['name', 'pattern', 'every', 'tz', 'startDate', 'endDate', 'limit', 'ic', 'data', 'opts'];
    const hash = names.map((name) => fields[name] ?? null);
    return planSchedule('nightly', readScheduler({ id: 'nightly', nextMs }, hash, missing), target);
  }

  test('with a pattern has the same next instant, in its zone', () => {
    const nextMs = Date.UTC(2026, 2, 3, 1, 30);
    const plan = planned(
      { name: 'report', pattern: '30 2 * * *', tz: 'Europe/Berlin', data: '{"a":1}', opts: '{"attempts":2}' },
      nextMs,
    );
    expect(plan).toMatchObject({
      name: 'reports:nightly',
      nextMs,
      input: {
        queue: 'reports',
        job: 'report',
        data: { a: 1 },
        cron: '30 2 * * *',
        zone: 'Europe/Berlin',
        attempts: 2,
      },
      notes: [],
    });
  });

  test('without a zone follows the one that is said, and tells where that is another instant', () => {
    const plan = planned({ name: 'report', pattern: '30 2 * * *' }, Date.UTC(2026, 2, 3, 1, 30));
    expect('notes' in plan && plan.notes.map(({ kind }) => kind)).toEqual(['zone', 'next']);
  });

  test('of an interval goes on in its own rhythm', () => {
    expect(planned({ name: 'sync', every: String(HOUR_MS) }, NOW_MS + HOUR_MS)).toMatchObject({
      input: { every: HOUR_MS },
    });
    const odd = NOW_MS + 61_000;
    expect(planned({ name: 'sync', every: String(HOUR_MS) }, odd)).toMatchObject({
      input: { every: HOUR_MS, align: 'start', start: new Date(odd) },
    });
  });

  test('that ends after some jobs has those that are left, with the one that is due later', () => {
    const fields = { name: 'sync', every: String(HOUR_MS), limit: '5', ic: '2' };
    expect(planned(fields, NOW_MS + HOUR_MS)).toMatchObject({ input: { maxRuns: 4 } });
    expect(planned(fields, NOW_MS)).toMatchObject({ input: { maxRuns: 3 } });
    const over = { id: 'nightly', why: 'it has made all of its jobs', isOver: true };
    expect(planned({ ...fields, ic: '6' }, NOW_MS + HOUR_MS)).toEqual(over);
    expect(planned({ ...fields, ic: '5' }, NOW_MS - HOUR_MS)).toEqual(over);
  });

  test('with a rule that nobody takes here stays, and says why', () => {
    expect(planned({ name: 'sync', every: '500' }, NOW_MS)).toMatchObject({
      why: expect.stringContaining('every is 500'),
    });
    expect(planned({ name: 'old' }, NOW_MS)).toMatchObject({ why: expect.stringContaining('no rule of its own') });
  });

  test('of a version that keeps no data has that of its next job', () => {
    const job = readJob('repeat:nightly:1', [
      'report',
      '{"a":1}',
      '{"attempts":2,"delay":5}',
      '1',
      '0',
      null,
      null,
      null,
      null,
    ]);
    const hash = ['report', '30 2 * * *', null, null, null, null, null, null, null, null];
    expect(readScheduler({ id: 'nightly', nextMs: 1 }, hash, job)).toMatchObject({
      data: { a: 1 },
      options: { attempts: 2 },
    });
  });
});
