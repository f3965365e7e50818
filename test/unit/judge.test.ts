/** What a job gets when it is started, and for what its handler did. */
import { describe, expect, it, test } from 'vitest';
import { type Backoff, type BackoffPolicy, fixed, ladder } from '../../src/job/backoff.ts';
import { encodeBody, encodeRecord } from '../../src/job/codec.ts';
import type { JobOverrides } from '../../src/job/fields.ts';
import { judgeEnd, judgeStart, judgeThrown, type Life, type Rules, timedOut } from '../../src/job/judge.ts';
import { type AbortReason, type Attempted, Defer, Retry, Unrecoverable } from '../../src/job/outcome.ts';
import { defineQueue, type QueueOptions } from '../../src/job/queue.ts';

const handler = () => undefined;
/** A stack that leads to this file. */
const HERE = expect.stringMatching(/^Error: x\n +at .*judge\.test\.ts:/);

interface Story {
  readonly aborted?: AbortReason;
  readonly failures?: number;
  readonly crashes?: number;
  readonly history?: readonly Attempted[];
  readonly random?: number;
  readonly record?: string;
  readonly compensations?: boolean;
  readonly name?: string;
  /** Of the job; its queue has 3 attempts and a second between them. */
  readonly own?: JobOverrides;
  readonly queue?: QueueOptions;
}

function partsOf(story: Story) {
  const {
    failures = 0,
    crashes = 0,
    history = [],
    own = {},
    random = 0.5,
    compensations = false,
    name = 'default',
  } = story;
  const record = story.record ?? encodeRecord(5, encodeBody({ name, data: 1 }, own));
  const started = { token: '9', attempts: failures + 1, failures, crashes, history, record };
  const queue = defineQueue('q', { attempts: 3, backoff: fixed(1000), ...story.queue });
  const rules: Rules<typeof handler> = {
    queue,
    handlerOf: (one) => (one === 'default' ? handler : undefined),
    compensations,
  };
  const life: Life = { member: 'j:a', started };
  return {
    life,
    rules,
    record: { askedDueMs: 5, bare: false, name, data: 1, ...own },
    nowMs: 77,
    random: () => random,
  };
}

const start = (story: Story = {}) => {
  const { life, rules } = partsOf(story);
  return judgeStart(life, rules, 77);
};

const judge = (
  thrown: unknown,
  { attempts = 3, backoff = fixed(1000), ...story }: Story & { attempts?: number; backoff?: BackoffPolicy } = {},
) => judgeThrown({ thrown, aborted: story.aborted }, partsOf({ ...story, queue: { attempts, backoff } }));

describe('a start', () => {
  it('is run with the handler, the time-out and the way of delivery of its queue', () => {
    const record = { askedDueMs: 5, bare: false, name: 'default', data: 1 };
    expect(start()).toEqual({ kind: 'run', record, handler, timeoutMs: 900_000, completesFirst: false });
    expect(start({ queue: { timeout: '2s', delivery: 'effectively-once' } })).toMatchObject({
      timeoutMs: 2000,
      completesFirst: false,
    });
    expect(start({ queue: { delivery: 'at-most-once' } })).toMatchObject({ completesFirst: true });
  });

  it('takes the time-out and the attempts of the job before those of its queue', () => {
    expect(start({ own: { timeoutMs: 50 } })).toMatchObject({ timeoutMs: 50 });
    expect(start({ failures: 3 })).toMatchObject({ kind: 'refused', outcome: { reason: 'attempts-exhausted' } });
    expect(start({ failures: 3, own: { attempts: 4 } })).toMatchObject({ kind: 'run' });
    expect(start({ failures: 1, own: { attempts: 1 } })).toMatchObject({
      kind: 'refused',
      outcome: { kind: 'dead', reason: 'attempts-exhausted', error: { message: 'failed once' } },
    });
  });

  it('is refused for its crashes before its record is read, then for its record, then for its name', () => {
    expect(start({ crashes: 3, record: 'nonsense' })).toEqual({
      kind: 'refused',
      name: 'default',
      outcome: {
        kind: 'dead',
        reason: 'crashes-exhausted',
        error: { atMs: 77, attempt: 1, kind: 'refused', message: 'the worker died 3 times under this job' },
      },
    });
    expect(start({ record: '15|{' })).toMatchObject({ kind: 'refused', outcome: { reason: 'unreadable-record' } });
    expect(start({ name: 'other', failures: 3 })).toMatchObject({ outcome: { reason: 'attempts-exhausted' } });
    expect(start({ name: 'other' })).toMatchObject({
      kind: 'refused',
      name: 'other',
      outcome: { reason: 'no-handler', error: { message: 'no handler for jobs named other' } },
    });
  });

  it('that is refused leaves a compensation job where half of the work may be outside, and none for what cannot be read', () => {
    const compensations = true;
    expect(start({ crashes: 3, compensations })).toMatchObject({
      outcome: { compensation: { member: 'j:{a}abandoned:9' } },
    });
    expect(start({ crashes: 3 })).not.toHaveProperty('outcome.compensation');
    expect(start({ crashes: 1, record: '15|{', compensations })).not.toHaveProperty('outcome.compensation');
  });
});

describe('an end', () => {
  it('is done when the handler returned', () => {
    expect(judgeEnd({ kind: 'returned' }, partsOf({}))).toEqual({ kind: 'settled', outcome: { kind: 'done' } });
  });

  it('of a job that was delivered at most once is told, and nothing follows', () => {
    const queue = { delivery: 'at-most-once' } as const;
    const end = (thrown: unknown, aborted?: AbortReason) =>
      judgeEnd({ kind: 'threw', thrown, aborted }, partsOf({ queue, compensations: true }));
    expect(judgeEnd({ kind: 'returned' }, partsOf({ queue }))).toEqual({ kind: 'told', error: undefined });
    expect(end(new Error('x'))).toEqual({
      kind: 'told',
      error: { atMs: 77, attempt: 1, kind: 'failure', message: 'x', stack: HERE },
    });
    expect(end(new Defer('5s'))).toMatchObject({ kind: 'told', error: { message: 'deferred' } });
    expect(end(timedOut(50), 'timeout')).toMatchObject({
      kind: 'told',
      error: { kind: 'timeout', message: 'timeout: timed out after 50 ms' },
    });
  });

  it('takes attempts and backoff of the job before those of its queue', () => {
    const backoff: Backoff = fixed(7);
    const end = (failures: number) =>
      judgeThrown({ thrown: 'x' }, partsOf({ failures, own: { attempts: 9, backoff } }));
    expect(end(7)).toMatchObject({ kind: 'retry', delayMs: 7 });
    expect(end(8)).toMatchObject({ kind: 'dead' });
  });

  test.each([
    ['timed out now', 'timeout', []],
    ['timed out before', undefined, [{ atMs: 1, attempt: 1, kind: 'timeout', message: 'x' }]],
  ] as const)('that is a death leaves a compensation job when the job %s', (_, aborted, history) => {
    const parts = (compensations: boolean) => partsOf({ failures: 2, history, compensations });
    expect(judgeThrown({ thrown: 'x', aborted }, parts(true))).toMatchObject({
      compensation: { member: 'j:{a}abandoned:9' },
    });
    expect(judgeThrown({ thrown: 'x', aborted }, parts(false))).not.toHaveProperty('compensation');
    expect(judgeThrown({ thrown: 'x' }, partsOf({ failures: 2, compensations: true }))).not.toHaveProperty(
      'compensation',
    );
  });
});

describe('a failure', () => {
  it('is tried again after the backoff while there are attempts', () => {
    expect(judge(new Error('x'))).toEqual({
      kind: 'retry',
      delayMs: 1000,
      error: { atMs: 77, attempt: 1, kind: 'failure', message: 'x', stack: HERE },
    });
    expect(judge('x')).toMatchObject({ error: { message: 'x' } });
    expect(judge('x')).not.toHaveProperty('error.stack');
  });

  it('is dead with the last attempt', () => {
    expect(judge(new Error('x'), { failures: 1 }).kind).toBe('retry');
    expect(judge(new Error('x'), { failures: 2 })).toMatchObject({ kind: 'dead', reason: 'attempts-exhausted' });
  });

  it('climbs the ladder by failures, not by attempts', () => {
    const backoff = ladder([10, 20, 30]);
    const delays = [0, 1, 2, 3].map((failures) => judge('x', { failures, attempts: 99, backoff }));
    expect(delays).toMatchObject([{ delayMs: 10 }, { delayMs: 20 }, { delayMs: 30 }, { delayMs: 30 }]);
  });

  it('of time says so', () => {
    expect(judge(new Error('x'), { aborted: 'timeout' })).toMatchObject({ error: { kind: 'timeout' } });
  });

  it('after a cancel is an ordinary one: the script knows of the request', () => {
    expect(judge(new Error('x'), { aborted: 'cancelled' }).kind).toBe('retry');
  });
});

describe('a job that was taken from its handler', () => {
  it.each(['shutdown', 'lease lost'] as const)('by %s goes back at once, whatever was thrown', (aborted) => {
    for (const thrown of [new Error('x'), new Unrecoverable('y'), new Retry('1h'), new Defer('1h'), undefined]) {
      expect(judge(thrown, { aborted, failures: 2 })).toEqual({ kind: 'defer', delayMs: 0 });
    }
  });
});

describe('a wish of the handler', () => {
  it('to be put aside is carried out to the millisecond, unless it asks for jitter', () => {
    for (const random of [0, 0.5, 0.999]) {
      expect(judge(new Defer('1h', 'night'), { random })).toEqual({
        kind: 'defer',
        delayMs: 3_600_000,
        deferral: { atMs: 77, reason: 'night' },
      });
    }
    expect(judge(new Defer(0))).toMatchObject({ delayMs: 0, deferral: { reason: 'deferred' } });
    expect(judge(new Defer(1000, { jitter: 'equal' }), { random: 0.5 })).toMatchObject({ delayMs: 750 });
    expect(judge(new Defer(1000, { jitter: 'full' }), { random: 0.25 })).toMatchObject({ delayMs: 250 });
  });

  it('to be put aside is kept with its causes, within the bound of errors', () => {
    const cause = new Error('x'.repeat(2000), { cause: 'ann holds it' });
    const outcome = judge(new Defer(1, { reason: 'locked', cause }));
    expect(outcome).toMatchObject({
      deferral: { reason: expect.stringMatching(/^locked; cause: x+…; cause: ann holds it$/) },
    });
    expect(outcome.kind === 'defer' && outcome.deferral?.reason.length).toBe(800);
  });

  it('to be put aside costs nothing even with the last attempt', () => {
    expect(judge(new Defer('5s'), { failures: 2 }).kind).toBe('defer');
  });

  it('to be tried again later is a failure that waits so long, or for the backoff where that is longer', () => {
    const error = { atMs: 77, attempt: 1, kind: 'failure', message: '503', stack: expect.any(String) };
    expect(judge(new Retry('30s', '503'))).toEqual({ kind: 'retry', delayMs: 30_000, error });
    expect(judge(new Retry('30s', '503'), { backoff: fixed('1m') })).toEqual({ kind: 'retry', delayMs: 60_000, error });
    expect(judge(new Retry(0, { reason: '503' }))).toEqual({ kind: 'retry', delayMs: 1000, error });
    expect(judge(new Retry('30s', { reason: '503', cause: 'mended' }))).toMatchObject({
      error: { message: '503; cause: mended' },
    });
  });

  it('to be tried again later uses an attempt, and makes a dead letter of the last one', () => {
    expect(judge(new Retry('30s', '503'), { failures: 1 })).toMatchObject({ kind: 'retry', delayMs: 30_000 });
    expect(judge(new Retry('30s', '503'), { failures: 2 })).toMatchObject({
      kind: 'dead',
      reason: 'attempts-exhausted',
      error: { message: '503' },
    });
  });

  it.each([
    ['throws', { get: () => Number(JSON.parse('{')) }],
    ['is no number', { value: Number.NaN }],
    ['is negative', { value: -5 }],
  ])('to be tried again after a time that %s waits for the backoff', (_how, field) => {
    expect(judge(Object.defineProperty(new Retry(5, 'x'), 'afterMs', field))).toMatchObject({
      kind: 'retry',
      delayMs: 1000,
    });
  });

  it('to be tried again in a thousand years waits for ten', () => {
    const afterMs = { value: Number.POSITIVE_INFINITY };
    expect(judge(Object.defineProperty(new Retry(5, 'x'), 'afterMs', afterMs))).toMatchObject({
      delayMs: 10 * 365 * 86_400_000,
    });
  });

  it('to end for good is its reason, on one line', () => {
    expect(judge(new Unrecoverable('a\n\tb'))).toMatchObject({
      kind: 'dead',
      reason: 'a b',
      error: { message: 'a b' },
    });
    expect(judge(new Unrecoverable(''))).toMatchObject({ kind: 'dead', reason: 'Unrecoverable' });
  });

  it('is understood from a subclass too', () => {
    class Gone extends Unrecoverable {}
    expect(judge(new Gone('left'))).toMatchObject({ kind: 'dead', reason: 'left' });
  });
});

describe('a backoff function', () => {
  it('is asked with the number of failures', () => {
    expect(judge('x', { failures: 1, backoff: (failures) => failures * 7 })).toMatchObject({ delayMs: 14 });
  });

  it.each([
    ['throws', () => Number(JSON.parse('{'))],
    ['returns NaN', () => Number.NaN],
    ['returns a negative number', () => -5],
    ['returns a text that is no duration', () => 'soon'],
  ])('that %s costs ten seconds', (_how, backoff) => {
    expect(judge('x', { backoff })).toMatchObject({ kind: 'retry', delayMs: 10_000 });
  });
});

test('a worker elsewhere gets the data as they are stored, although nobody here knows their codec', () => {
  const { life, rules } = partsOf({ record: '1k|{"d":"6869","c":"hex"}' });
  expect(judgeStart(life, rules, 77)).toMatchObject({ kind: 'refused', outcome: { reason: 'bad-data' } });
  expect(judgeStart(life, { ...rules, areSealed: true }, 77)).toMatchObject({
    kind: 'run',
    record: { data: '6869', codec: 'hex' },
  });
});
