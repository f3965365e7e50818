/** A start or an end that `judge.ts` throws at has an outcome all the same. */
import { expect, test } from 'vitest';
import { endVerdict, type Life, type Rules, startVerdict } from '../../src/job/judge.ts';
import { Defer, Retry, Unrecoverable } from '../../src/job/outcome.ts';
import { defineQueue } from '../../src/job/queue.ts';
import { DuestreamError, Indeterminate } from '../../src/kernel/errors.ts';

const life: Life = {
  member: 'j:a',
  started: { token: '1', attempts: 1, failures: 0, crashes: 0, history: [], record: '1a|{"d":1}' },
};
const rules: Rules<() => void> = {
  queue: defineQueue('q', { attempts: 2 }),
  handlerOf: () => () => undefined,
  compensations: true,
};
const record = { name: 'default', data: 1, askedDueMs: 0, bare: false };
const fault = (): never => {
  throw new Error('fault');
};

test('a start that cannot be judged is a dead letter of its own', () => {
  const verdict = startVerdict(life, { ...rules, handlerOf: fault }, 5);
  const error = { atMs: 5, attempt: 1, kind: 'refused', message: 'duestream cannot judge this start: fault' };
  expect(verdict).toEqual({ kind: 'refused', name: 'default', outcome: { kind: 'dead', reason: 'unjudged', error } });
});

test('an end that cannot be judged is a failure, and the last one a dead letter', () => {
  const ending = { kind: 'threw', thrown: new Error('x'), aborted: undefined } as const;
  const parts = { life, record, rules, nowMs: 5, random: fault };
  expect(endVerdict(ending, parts)).toMatchObject({ kind: 'settled', outcome: { kind: 'retry', delayMs: 10_000 } });
  const last = { ...life, started: { ...life.started, failures: 1 } };
  const broken = {
    ...rules,
    redact: ['a'],
    get compensations(): boolean {
      return false;
    },
  };
  expect(endVerdict(ending, { ...parts, life: last, rules: broken })).toMatchObject({
    outcome: { kind: 'dead', reason: 'attempts-exhausted' },
  });
});

test.each([fault, () => Symbol('x'), () => 10n, () => Number.NaN, () => -1])(
  'a Defer whose delay is %s waits all the same',
  (get) => {
    const thrown = Object.defineProperty(new Defer(5), 'delayMs', { get });
    const parts = { life, record, rules, nowMs: 5, random: () => 0 };
    expect(endVerdict({ kind: 'threw', thrown, aborted: undefined }, parts)).toEqual({
      kind: 'settled',
      outcome: { kind: 'defer', delayMs: 10_000, deferral: { atMs: 5, reason: 'deferred' } },
    });
  },
);

test.each([fault, () => Symbol('x'), () => 'everything'])(
  'a Defer whose field close is %s closes nothing, and waits',
  (get) => {
    const thrown = Object.defineProperty(new Defer(5), 'close', { get });
    const parts = { life, record, rules, nowMs: 5, random: () => 0 };
    expect(endVerdict({ kind: 'threw', thrown, aborted: undefined }, parts)).toEqual({
      kind: 'settled',
      outcome: { kind: 'defer', delayMs: 5, deferral: { atMs: 5, reason: 'deferred' } },
    });
  },
);

test('what another copy of the package made is known by its mark, and nothing else is', () => {
  const marked = (name: string) =>
    Object.defineProperty(new Error('x'), Symbol.for(`duestream.${name}`), { value: true });
  expect(marked('Unrecoverable') instanceof Unrecoverable).toBe(true);
  expect(marked('Defer') instanceof Defer).toBe(true);
  expect(marked('Retry') instanceof Retry).toBe(true);
  expect(marked('DuestreamError') instanceof DuestreamError).toBe(true);
  expect(marked('DuestreamError') instanceof Indeterminate).toBe(false);
  expect(new Indeterminate('x') instanceof DuestreamError).toBe(true);
  class Gone extends Unrecoverable {}
  expect([new Gone('x') instanceof Unrecoverable, new Unrecoverable('x') instanceof Gone]).toEqual([true, false]);
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  expect(proxy instanceof Defer).toBe(false);
});
