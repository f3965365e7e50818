/** An answer of the HTTP API has the fields of its type, at every depth, and no other. */
import { expect, test } from 'vitest';
import { answers } from '../../src/http/api/answer.ts';

/** More than the type says: as a view may be that has grown. */
const grown = <Body extends object>(body: Body, more: object): Body => Object.assign(body, more);

test('a field that the type does not list is not sent, wherever it stands', () => {
  const holder = grown(
    { id: 'a', bare: false, sinceMs: 1, owner: undefined, attempt: undefined, startedMs: undefined },
    { secret: 1 },
  );
  const closed = grown({ untilMs: 2, reason: 'quiet' }, { secret: 2 });
  const group = { group: 'acme', running: 1, waiting: 0, priorities: { high: 0, normal: 0, low: 0 }, waitMs: 0 };
  const body = grown(
    { ...group, queue: 'mail', weight: 1, closed, isFull: true, holders: [holder], nowMs: 3 },
    { secret: 3 },
  );
  expect(answers.GroupReport.listed(body)).toEqual({
    ...group,
    queue: 'mail',
    weight: 1,
    closed: { untilMs: 2, reason: 'quiet' },
    isFull: true,
    holders: [{ id: 'a', bare: false, sinceMs: 1 }],
    nowMs: 3,
  });
});

test('data and other records are sent as they are, names of JavaScript too', () => {
  const input = JSON.parse('{"queue":"mail","data":{"deep":[{"a":null}]},"__proto__":{"b":1},"constructor":2}');
  const view = { name: 'nightly', queue: 'mail', source: 'call' as const, hidden: false, runs: 0, skipped: 0 };
  const gone = { paused: undefined, pausedBy: undefined, hand: undefined, nextMs: undefined };
  const more = { reachedMs: undefined, lastMs: undefined, unreadable: undefined, etag: undefined };
  const told = answers.Schedule.listed({ ...view, ...gone, ...more, input });
  expect(JSON.stringify(told)).toContain(`"input":${JSON.stringify(input)}`);
});

test('of an answer that is one of several, the one that its fields say is sent', () => {
  const job = grown({ id: 'a', status: 'cancelled' as const }, { secret: 1 });
  expect(answers.CancelledMany.listed({ queue: 'mail', jobs: [job] })).toEqual({
    queue: 'mail',
    jobs: [{ id: 'a', status: 'cancelled' }],
  });
  const counts = { queue: 'mail', dryRun: false, matched: 2, changed: 1, skipped: { over: 1 }, scanned: 2, ids: ['a'] };
  expect(answers.CancelledMany.listed({ ...counts, cursor: undefined })).toEqual(counts);
});

test('a value that may be off, a text or an object is sent as it is, each time', () => {
  const entry = { partitions: 1, entry: '1-0', atMs: 1, what: 'set' as const };
  const before = { rate: false, lateness: false, perGroup: 3, history: { keep: '7d' } } as const;
  const after = { rate: '2/s', lateness: { within: '5s' }, perGroup: { rate: '1/s' }, history: true } as const;
  const facts = {
    queue: 'mail',
    fromMs: 0,
    toMs: 1,
    verdict: '',
    starts: 0,
    late: 0,
    known: 1,
    causes: [],
    groups: [],
  };
  const none = { p50Ms: null, p99Ms: null, maxMs: null, worst: null };
  const diary = { entries: [{ ...entry, before, after }], intervals: [], partitions: 1 };
  expect(answers.QueueLate.listed({ ...facts, ...none, diary })).toEqual({ ...facts, ...none, diary });
});

test('an object where a text is listed is not sent', () => {
  const told = answers.UnreadQueue.listed(JSON.parse('{"queue":"mail","why":{"secret":1}}'));
  expect(told).toEqual({ queue: 'mail', why: null });
});

test('a body of another type is an error of the compiler', () => {
  // @ts-expect-error a status that no cancel has
  answers.Cancelled.listed({ id: 'a', status: 'edited' });
  // @ts-expect-error the id is missing
  answers.Cancelled.listed({ status: 'cancelled' });
  expect(answers.Cancelled.ref).toEqual({ $ref: '#/components/schemas/Cancelled' });
});
