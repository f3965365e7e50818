/**
 * A reply is lost during a call on schedules, whichever it is: the call answers as if nothing had been lost. Its steps are
 * repeated one by one, so that no step meets the work of an earlier try and denies it.
 */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import type { Schedules } from '../../../src/client/schedules/schedules.ts';
import { DuestreamError } from '../../../src/kernel/errors.ts';
import { openLossyLine } from '../../support/lossy-line.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const NIGHTLY = { queue: 'reports', cron: '30 2 * * *', zone: 'UTC' };
const EARLIER = { ...NIGHTLY, cron: '0 1 * * *' };
const DAYS = { from: '2026-01-01T00:00:00Z', to: '2026-01-04T00:00:00Z' };

let server: TestRedis;
let namespaces = 0;

beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

interface Called {
  readonly name: string;
  /** What is there before. */
  readonly before?: (schedules: Schedules) => Promise<unknown>;
  readonly call: (schedules: Schedules) => Promise<unknown>;
  readonly answer: unknown;
}

const put = (schedules: Schedules) => schedules.put('nightly', NIGHTLY);
const days = [1, 2, 3].map((day) => ({ status: 'scheduled', atMs: Date.UTC(2026, 0, day, 2, 30) }));
const CALLS: readonly Called[] = [
  { name: 'put of a new schedule', call: put, answer: { name: 'nightly', status: 'created' } },
  {
    name: 'put of a change',
    before: put,
    answer: { name: 'nightly', status: 'changed' },
    call: (schedules) => schedules.put('nightly', EARLIER),
  },
  {
    name: 'put into another queue',
    before: put,
    answer: { name: 'nightly', status: 'changed' },
    call: (schedules) => schedules.put('nightly', { ...NIGHTLY, queue: 'others' }),
  },
  { name: 'put of what is there', before: put, call: put, answer: { name: 'nightly', status: 'unchanged' } },
  { name: 'remove', before: put, call: (schedules) => schedules.remove('nightly'), answer: true },
  { name: 'remove of nothing', call: (schedules) => schedules.remove('nightly'), answer: false },
  {
    name: 'pause',
    before: put,
    answer: { name: 'nightly', status: 'changed' },
    call: (schedules) => schedules.pause('nightly', 'because'),
  },
  {
    name: 'resume',
    answer: { name: 'nightly', status: 'changed' },
    before: (schedules) => schedules.put('nightly', { ...NIGHTLY, paused: 'because' }),
    call: (schedules) => schedules.resume('nightly'),
  },
  {
    name: 'trigger',
    before: put,
    answer: { id: expect.stringMatching(/now:mine$/), status: 'scheduled' },
    call: (schedules) => schedules.trigger('nightly', { id: 'mine' }),
  },
  {
    name: 'backfill',
    before: put,
    answer: days,
    call: (schedules) => schedules.backfill('nightly', DAYS),
  },
  { name: 'get', before: put, call: (schedules) => schedules.get('nightly'), answer: { name: 'nightly' } },
  { name: 'list', before: put, call: (schedules) => schedules.list(), answer: { schedules: [{ name: 'nightly' }] } },
  {
    name: 'preview',
    before: put,
    answer: [{}, {}],
    call: (schedules) => schedules.preview('nightly', { next: 2 }),
  },
  {
    name: 'the refusal of a schedule that is not there',
    answer: { code: 'not-found' },
    call: (schedules) => schedules.pause('nightli').catch((error: unknown) => error),
  },
];

/** Calls on a namespace of their own, over a line that has carried a call before. */
async function open({ before }: Pick<Called, 'before'>, retryBudget = '5s') {
  namespaces += 1;
  const namespace = `n${namespaces}`;
  const client = createClient({ redis: server.url, namespace });
  const direct = client.schedules;
  await before?.(direct);
  await client.close();
  const line = await openLossyLine(server);
  const schedulesClient = createClient({ redis: line.url, namespace, retryBudget });
  const schedules = schedulesClient.schedules;
  await schedulesClient.ready();
  const close = async () => {
    await schedulesClient.close();
    await line.close();
  };
  return { schedules, line, close };
}

test.concurrent.each(CALLS)('$name answers the same, whichever reply is lost', async (called) => {
  let at = 0;
  for (let isLost = true; isLost; at += 1) {
    const { schedules, line, close } = await open(called);
    line.lose({ after: at });
    const answer = await called.call(schedules);
    isLost = line.hasLost();
    await close();
    const place = `reply ${at + 1}`;
    const expected = Array.isArray(called.answer) || Object(called.answer) === called.answer;
    if (expected) expect({ place, answer }).toMatchObject({ place, answer: called.answer });
    else expect({ place, answer }).toEqual({ place, answer: called.answer });
  }
  expect(at).toBeGreaterThan(1);
});

describe('where Redis stays away after a lost reply', () => {
  const codeOf = async (call: Promise<unknown>): Promise<string> => {
    const thrown: unknown = await call.then(
      () => undefined,
      (error: unknown) => error,
    );
    return thrown instanceof DuestreamError ? thrown.code : String(thrown);
  };
  const reads = ['get', 'list', 'preview'];

  test.concurrent.each(CALLS.filter(({ name }) => reads.includes(name)))('$name is unavailable', async (called) => {
    const { schedules, line, close } = await open(called, '200ms');
    line.lose({ refusals: Number.POSITIVE_INFINITY });
    expect(await codeOf(called.call(schedules))).toBe('unavailable');
    await close();
  });

  test.concurrent.each(['put of a new schedule', 'put of a change', 'remove', 'trigger', 'backfill'])(
    '%s is unavailable before its first write and indeterminate from then on',
    async (name) => {
      const called = CALLS.find((one) => one.name === name);
      const codes: string[] = [];
      for (let at = 0; called && codes.at(-1) !== 'undefined'; at += 1) {
        const { schedules, line, close } = await open(called, '200ms');
        line.lose({ after: at, refusals: Number.POSITIVE_INFINITY });
        codes.push(await codeOf(called.call(schedules)));
        await close();
      }
      expect(codes.join(' ')).toMatch(/^(unavailable )+(indeterminate )+undefined$/);
    },
  );
});
