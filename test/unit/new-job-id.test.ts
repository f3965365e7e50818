/** The ids that duestream makes: they sort as text in the order in which they were reserved. */
import { expect, test } from 'vitest';
import { parseJobId } from '../../src/job/job.ts';
import { createJobIds, newJobId, reserveJobIds } from '../../src/job/job-id.ts';

const NOW = Date.UTC(2026, 2, 1);
/** As Redis compares members. */
const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));
const taken = (count: number, make: () => string) => Array.from({ length: count }, make);
const inOrder = (ids: readonly string[]) => {
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.toSorted(byBytes)).toEqual(ids);
};

/** Ids by a clock that a test sets, with random digits that fall: they must not matter. */
function steered() {
  const time = { ms: NOW };
  let byte = 61;
  const reserve = createJobIds({
    clock: { wallMs: () => time.ms },
    random(bytes) {
      bytes.fill(byte);
      byte = (byte + 61) % 62;
    },
  });
  return { time, reserve, one: () => reserve(1)() };
}

test('have 22 letters and digits, are never the same, and rise', () => {
  const ids = taken(5000, newJobId);
  for (const id of ids) expect(parseJobId(id)).toMatch(/^[0-9A-Za-z]{22}$/);
  inOrder(ids);
});

test('begin with the milliseconds and a sequence, in base 62', () => {
  const { time, one } = steered();
  time.ms = 62 ** 8 - 1;
  expect(one()).toBe('zzzzzzzz000zzzzzzzzzzz');
  const early = steered();
  early.time.ms = 62 + 10;
  expect(taken(3, early.one).map((id) => id.slice(0, 11))).toEqual(['0000001A000', '0000001A001', '0000001A002']);
});

test('rise while the clock stands, steps back, and comes after them', () => {
  const { time, one } = steered();
  const ids = taken(100, one);
  time.ms -= 3_600_000;
  ids.push(...taken(100, one));
  time.ms = NOW;
  ids.push(...taken(100, one));
  time.ms = NOW + 1;
  ids.push(...taken(100, one));
  inOrder(ids);
});

test('go into the next millisecond where more of them are asked for than one has', () => {
  const { time, reserve, one } = steered();
  const first = one();
  const many = reserve(62 ** 3 + 5);
  const ids = [first, many(), one()];
  time.ms += 1;
  ids.push(one());
  inOrder(ids);
});

test('that were reserved by an earlier call are smaller, whenever they are made', () => {
  const { time, reserve, one } = steered();
  const [early, late] = [reserve(3), reserve(2)];
  time.ms += 5;
  const [later, others, earlier] = [one(), taken(2, late), taken(3, early)];
  inOrder([...earlier, ...others, later]);
});

test('of two processes in the same millisecond are different: 65 bits of them are random', () => {
  const [a, b] = [0, 1].map(() =>
    createJobIds({ clock: { wallMs: () => NOW }, random: (bytes) => crypto.getRandomValues(bytes) }),
  );
  const ids = [...taken(1000, () => a?.(1)() ?? ''), ...taken(1000, () => b?.(1)() ?? '')];
  expect(new Set(ids).size).toBe(2000);
  expect(new Set(ids.map((id) => id.slice(0, 11))).size).toBe(1000);
  const digits = new Set(ids.flatMap((id) => [...id.slice(11)]));
  expect(digits.size).toBe(62);
});

test('more than were reserved are made anew', () => {
  const few = reserveJobIds(1);
  inOrder(taken(3, few));
});
