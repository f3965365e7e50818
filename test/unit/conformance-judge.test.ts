/** The judges of `duestream conformance`, on what happened in words: each notices a client that breaks its rule. */
import { describe, expect, test } from 'vitest';
import { rowOf } from '../../src/conformance/conformance.ts';
import { everyTrial, numberVerdicts, repeatVerdict } from '../../src/conformance/judge.ts';
import { askRow } from '../../src/conformance/producer.ts';
import { type Call, Happenings } from '../../src/conformance/record.ts';

const NAME = `h-test-${'0'.repeat(32)}`;
const claim = (seq: number, more: object = {}) => ({ worker: NAME, seq, max: 5, ...more });

/** Calls in their order: what was said, and whether the answer was read. */
function happened(
  ...calls: readonly {
    body: object;
    verb?: string;
    daemon?: number;
    read?: boolean;
    answer?: object;
    status?: number;
  }[]
) {
  const all = new Happenings();
  for (const { body, verb = 'claim', daemon = 0, read = true, answer = { jobs: [] }, status = 200 } of calls) {
    const call: Call = all.asked({ daemon, verb, body: { ...body } });
    if (read) all.answered(call, { status, body: { ...answer }, retryAfter: 0 });
    else call.isLost = true;
  }
  return all;
}

const statusOf = (rule: string, all: Happenings) => everyTrial(all).find((one) => one.rule === rule)?.status;

describe('the numbers of claims', () => {
  test.each([
    ['1, 2, 3', [{ body: claim(1) }, { body: claim(2) }, { body: claim(3) }], 'held'],
    [
      'a claim that was lost, once more',
      [{ body: claim(1), read: false }, { body: claim(1, { again: true }) }, { body: claim(2) }],
      'held',
    ],
    ['again where it is sent first', [{ body: claim(1, { again: true }) }], 'failed'],
    ['again where the next is sent first', [{ body: claim(1) }, { body: claim(2, { again: true }) }], 'failed'],
    ['the first is 2', [{ body: claim(2) }], 'failed'],
    ['a number is left out', [{ body: claim(1) }, { body: claim(3) }], 'failed'],
    ['raised without an answer', [{ body: claim(1), read: false }, { body: claim(2) }], 'failed'],
    ['raised after a refusal', [{ body: claim(1), status: 503 }, { body: claim(2) }], 'failed'],
    ['once more without again', [{ body: claim(1), read: false }, { body: claim(1) }], 'failed'],
    [
      'once more with another max',
      [{ body: claim(1), read: false }, { body: claim(1, { again: true, max: 4 }) }],
      'failed',
    ],
    [
      'lanes have numbers of their own',
      [{ body: claim(1) }, { body: claim(1, { lane: 1 }) }, { body: claim(2, { lane: 1 }) }],
      'held',
    ],
  ])('%s', (_title, calls, status) => {
    expect(numberVerdicts(happened(...calls))[0]?.status).toBe(status);
  });
});

describe('a call without an answer', () => {
  const lost = { body: claim(1), read: false };
  test('that is not sent again fails', () => {
    expect(repeatVerdict(happened(lost, { body: claim(2) })).status).toBe('failed');
  });

  test('that is sent again at once fails', () => {
    expect(repeatVerdict(happened(lost, { body: claim(1, { again: true }), daemon: 1 })).saw).toMatch(/after \d ms/);
  });

  test('says nothing where none was lost', () => {
    expect(repeatVerdict(happened({ body: claim(1) })).status).toBe('not tried');
  });
});

test('a name that others may have too fails', () => {
  expect(statusOf('name', happened({ body: { worker: 'h-mailer-1', seq: 1 } }))).toBe('failed');
  expect(statusOf('name', happened({ body: claim(1) }))).toBe('held');
});

test('a token that no answer had fails', () => {
  const all = happened({ body: claim(1), answer: { jobs: [{ id: 'a', run: 'r', token: '7' }] } });
  all.printed(0, 'began a 7');
  expect(statusOf('token', all)).toBe('held');
  all.printed(0, 'began a 8');
  expect(statusOf('token', all)).toBe('failed');
});

test('a row fails with the first verdict that does, and says what becomes of jobs', () => {
  const verdicts = [
    { rule: 'beat', status: 'held', saw: 'one' },
    { rule: 'beat', status: 'failed', saw: 'two' },
  ] as const;
  expect(rowOf('beat', verdicts)).toMatchObject({ status: 'failed', saw: 'two', else: expect.any(String) });
  expect(rowOf('beat', verdicts.slice(0, 1))).not.toHaveProperty('else');
  expect(rowOf('fork', verdicts, 'interrupted')).toMatchObject({ status: 'not tried', saw: 'interrupted' });
});

test('an answer of a producer that differs is shown', () => {
  const asks = [{ ask: 'member', given: { id: 'a', bare: false }, wanted: 'j:a' }];
  expect(askRow('member', asks, [{ says: 'j:a' }]).status).toBe('held');
  expect(askRow('member', asks, [{ knows: false }]).status).toBe('not tried');
  expect(askRow('member', asks, [{ says: 'a' }]).saw).toBe(
    'given {"id":"a","bare":false}: got "a", the vectors say "j:a"',
  );
  expect(askRow('member', asks, [{}]).status).toBe('failed');
});
