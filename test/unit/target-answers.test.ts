import { describe, expect, test } from 'vitest';
import { type AnswerRules, retryAfterMs, settle } from '../../src/dispatch/answers.ts';
import type { CallEnd } from '../../src/dispatch/send/sender.ts';

const NOW = Date.UTC(2026, 10, 29, 12);
const RULES: AnswerRules = { retryOn: [], deadOn: [], maxAgeMs: 86_400_000, keepAnswer: true };

interface Given {
  readonly status: number;
  readonly after?: string;
  readonly body?: string;
  readonly isAllowed?: boolean;
  readonly rules?: Partial<AnswerRules>;
  /** How long after its due time. */
  readonly ageMs?: number;
  readonly random?: number;
}

function outcomeOf({ status, after, body = '', isAllowed = false, rules = {}, ageMs = 0, random = 0 }: Given): unknown {
  const headers = after === undefined ? {} : { 'retry-after': after };
  const end: CallEnd = {
    kind: 'answered',
    status,
    headers,
    body: Buffer.from(body),
    address: '1.1.1.1',
    isAllowed,
    tookMs: 7,
  };
  return thrownBy(end, { ...RULES, ...rules }, { askedDueMs: NOW - ageMs, random });
}

function thrownBy(end: CallEnd, rules = RULES, { askedDueMs = NOW, random = 0 } = {}): unknown {
  try {
    return settle(end, rules, { nowMs: NOW, askedDueMs, random });
  } catch (error) {
    return error;
  }
}

const retry = (afterMs: number, message: string) => ({ name: 'Retry', afterMs, message });
const dead = (message: string) => ({ name: 'Unrecoverable', message });
const defer = (delayMs: number, message: string) => ({ name: 'Defer', delayMs, message, close: 'group' });

describe('an answer', () => {
  test.each<readonly [Given, object]>([
    [
      { status: 200, body: 'ok' },
      { status: 200, tookMs: 7, answer: 'ok' },
    ],
    [{ status: 204 }, { status: 204, tookMs: 7 }],
    [
      { status: 299, body: 'x'.repeat(5000) },
      { status: 299, answer: 'x'.repeat(2048) },
    ],
    [{ status: 101 }, dead('answer 101')],
    [{ status: 301, after: '5' }, dead('answer 301')],
    [{ status: 400, body: 'no\n\tfield' }, dead('answer 400: no field')],
    [{ status: 404 }, dead('answer 404')],
    [{ status: 404, body: 'x'.repeat(5000) }, dead(`answer 404: ${'x'.repeat(187)}…`)],
    [{ status: 410 }, dead('answer 410')],
    [{ status: 408 }, retry(0, 'answer 408')],
    [{ status: 425, after: '3' }, retry(3000, 'answer 425')],
    [{ status: 500, body: 'oops' }, retry(0, 'answer 500: oops')],
    [{ status: 502, after: '60' }, retry(60_000, 'answer 502')],
    [{ status: 503 }, retry(0, 'answer 503')],
    [{ status: 503, after: '0' }, retry(0, 'answer 503')],
    [{ status: 503, after: '7' }, defer(7000, 'answer 503')],
    [{ status: 503, after: 'soon' }, retry(0, 'answer 503')],
    [{ status: 429 }, defer(10_000, 'answer 429')],
    [{ status: 429, after: '0' }, defer(10_000, 'answer 429')],
    [{ status: 429, after: '30', body: 'slow down' }, defer(30_000, 'answer 429: slow down')],
    [{ status: 429, after: '999999999' }, defer(3_600_000, 'answer 429')],
    [{ status: 429, after: '100', random: 0.5 }, defer(105_000, 'answer 429')],
    [{ status: 429, after: '30', ageMs: 86_400_001 }, dead('expired: answer 429')],
    [{ status: 429, after: '30', ageMs: 86_400_000 }, defer(30_000, 'answer 429')],
    [{ status: 404, rules: { retryOn: [404] } }, retry(0, 'answer 404')],
    [{ status: 200, rules: { retryOn: [200] } }, retry(0, 'answer 200')],
    [{ status: 500, rules: { deadOn: [500] } }, dead('answer 500')],
    [
      { status: 200, body: 'secret', isAllowed: true },
      { status: 200, tookMs: 7 },
    ],
    [{ status: 404, body: 'secret', isAllowed: true }, dead('answer 404')],
    [{ status: 404, body: 'secret', rules: { keepAnswer: false } }, dead('answer 404')],
  ])('%j', (given, outcome) => {
    expect(outcomeOf(given)).toMatchObject(outcome);
    expect(JSON.stringify(outcomeOf(given))).not.toContain('secret');
  });

  test('that never came is a failure, and what the guard refused is dead at once', () => {
    const none: CallEnd = {
      kind: 'no-answer',
      why: 'not-connected',
      detail: 'connect ECONNREFUSED 10.0.0.1:81',
      tookMs: 1,
    };
    expect(thrownBy(none)).toMatchObject({ name: 'Error', message: 'no answer: not-connected' });
    expect(thrownBy({ kind: 'refused', why: 'it is not public', tookMs: 1 })).toMatchObject(
      dead('target-refused: it is not public'),
    );
  });
});

test.each([
  [undefined, 0],
  ['', 0],
  ['5', 5000],
  [' 5 ', 5000],
  ['-5', 0],
  ['1.5', 0],
  ['1e3', 0],
  ['99999999999', 0],
  ['Sun, 29 Nov 2026 12:00:30 GMT', 30_000],
  ['Sun, 29 Nov 2026 11:59:30 GMT', 0],
  ['Wed, 21 Oct 2015 07:28:00 GMT', 0],
  ['Fri, 01 Jan 2038 00:00:00 GMT', 3_600_000],
  ['2026-11-29T12:00:30Z', 0],
  ['tomorrow', 0],
])('Retry-After %j is %d ms', (value, ms) => {
  expect(retryAfterMs(value, { nowMs: NOW, random: 0 })).toBe(ms);
});

test('what a target sends back of a secret is in no result and no reason, also where the text is cut', () => {
  const hides = ['Bearer s3cret-value'];
  const body = `${'x'.repeat(2040)}Bearer s3cret-value`;
  expect(outcomeOf({ status: 200, body, rules: { hides } })).toMatchObject({ answer: `${'x'.repeat(2040)}***` });
  expect(outcomeOf({ status: 404, body: 'you sent Bearer s3cret-value', rules: { hides } })).toMatchObject({
    message: 'answer 404: you sent ***',
  });
});
