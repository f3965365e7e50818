/** When the group of a host that cannot be reached is closed, and for how long. */
import { expect, test } from 'vitest';
import { createHostWatch } from '../../src/dispatch/host-watch.ts';
import type { CallEnd, NoAnswerWhy } from '../../src/dispatch/send/sender.ts';

const failed = (why: NoAnswerWhy = 'not-connected'): CallEnd => ({ kind: 'no-answer', why, detail: '', tookMs: 1 });
const answered = (status: number): CallEnd => ({
  ...{
    kind: 'answered',
    status,
    headers: {},
    body: Buffer.alloc(0),
    address: '192.0.2.1',
    isAllowed: false,
    tookMs: 1,
  },
});

test('five failures in a row close the group, and each failure after a closing closes it for twice as long, to five minutes', () => {
  const watch = createHostWatch();
  let nowMs = 1000;
  for (let at = 0; at < 4; at += 1) expect(watch.note('a.example.com', failed(), nowMs)).toBeUndefined();
  const closed: (number | undefined)[] = [];
  for (let at = 0; at < 8; at += 1) {
    const forMs = watch.note('a.example.com', failed(), nowMs);
    closed.push(forMs);
    nowMs += forMs ?? 0;
  }
  expect(closed).toEqual([5000, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]);
});

test('requests that were under way when the closing began make it no longer, and close their groups for the rest of it', () => {
  const watch = createHostWatch();
  for (let at = 0; at < 5; at += 1) watch.note('a.example.com', failed(), 1000);
  expect(watch.note('a.example.com', failed(), 3000)).toBe(3000);
  expect(watch.note('a.example.com', failed(), 6000)).toBe(10_000);
});

test('an answer, whichever, ends the row; a refusal and a stop of ours say nothing', () => {
  const watch = createHostWatch();
  for (let at = 0; at < 4; at += 1) watch.note('a.example.com', failed(), 0);
  watch.note('a.example.com', { kind: 'refused', why: 'x', tookMs: 1 }, 0);
  watch.note('a.example.com', failed('stopped'), 0);
  expect(watch.note('a.example.com', answered(503), 0)).toBeUndefined();
  for (let at = 0; at < 4; at += 1) expect(watch.note('a.example.com', failed(), 0)).toBeUndefined();
  expect(watch.note('a.example.com', failed('timeout'), 0)).toBe(5000);
});

test('hosts are counted apart', () => {
  const watch = createHostWatch();
  for (let at = 0; at < 4; at += 1) watch.note('a.example.com', failed(), 0);
  expect(watch.note('b.example.com', failed(), 0)).toBeUndefined();
  expect(watch.note('a.example.com', failed(), 0)).toBe(5000);
});
