/** What a job gets for what its handler did. */
import { describe, expect, it } from 'vitest';
import { fixed, ladder } from '../../src/core/backoff.ts';
import { Defer, Unrecoverable } from '../../src/core/outcome.ts';
import type { AbortReason } from '../../src/worker/inflight.ts';
import { verdict } from '../../src/worker/verdict.ts';

const judge = (
  thrown: unknown,
  {
    aborted,
    failures = 0,
    attempts = 3,
    random = 0.5,
    backoff = fixed(1000) as Parameters<typeof verdict>[1]['budget']['backoff'],
  }: {
    aborted?: AbortReason;
    failures?: number;
    attempts?: number;
    random?: number;
    backoff?: Parameters<typeof verdict>[1]['budget']['backoff'];
  } = {},
) =>
  verdict(thrown, {
    aborted,
    budget: { attempts, backoff },
    at: { attempt: failures + 1, failures, nowMs: 77, random },
  });

describe('a failure', () => {
  it('is tried again after the backoff while there are attempts', () => {
    expect(judge(new Error('x'))).toEqual({
      ...{ kind: 'retry', delayMs: 1000 },
      error: { atMs: 77, attempt: 1, kind: 'failure', message: 'x' },
    });
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
    for (const thrown of [new Error('x'), new Unrecoverable('y'), new Defer('1h'), undefined]) {
      expect(judge(thrown, { aborted, failures: 2 })).toEqual({ kind: 'defer', delayMs: 0 });
    }
  });
});

describe('a wish of the handler', () => {
  it('to be put aside is jittered by up to a quarter', () => {
    expect(judge(new Defer(1000), { random: 0 })).toEqual({ kind: 'defer', delayMs: 1000 });
    expect(judge(new Defer(1000), { random: 0.999 })).toEqual({ kind: 'defer', delayMs: 1250 });
    expect(judge(new Defer(0))).toEqual({ kind: 'defer', delayMs: 0 });
  });

  it('to be put aside costs nothing even with the last attempt', () => {
    expect(judge(new Defer('5s'), { failures: 2 }).kind).toBe('defer');
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
