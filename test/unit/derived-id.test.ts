/** The ids of jobs that another job leads to: in its partition, of one length, found by the id of the first job. */
import { describe, expect, test } from 'vitest';
import { ID_BYTES_MAX } from '../../src/job/job.ts';
import { crc16, derivedId, routingText } from '../../src/job/job-id.ts';

const TOKEN = 1_763_719_000_000_000;
const then = (id: string, step = 0) => derivedId(id, `then:${TOKEN + step}.99`);
const abandoned = (id: string, step = 0) => derivedId(id, `abandoned:${TOKEN + step}`);
const sumOf = (id: string) => crc16(Buffer.from(routingText(id)));

const IDS = [
  'a',
  'invoice:7',
  'x'.repeat(99),
  'x'.repeat(100),
  'x'.repeat(128),
  `${'~'.repeat(64)}!then:5.0${'|'.repeat(56)}`,
  'b'.repeat(130),
  '{acme}order-7',
  `{acme}${'o'.repeat(122)}`,
  `{${'g'.repeat(64)}}${'o'.repeat(62)}`,
  `{${'g'.repeat(110)}}tail`,
  `{${'g'.repeat(190)}}`,
  '{schedule:nightly}2026-03-08T01:30:00Z',
  `{schedule:${'s'.repeat(64)}}2026-03-08T01:30:00.125Z`,
  `{schedule:${'s'.repeat(64)}}now:${'n'.repeat(49)}`,
  ...['{}x', 'a{b', 'a}b{c', '}{', 'a{{b}c}', 'in{the}middle', '{', '{}'],
];

describe.each(IDS)('what comes of %s', (id) => {
  test('lives in its partition, whatever their number', () => {
    for (const made of [then(id), abandoned(id), then(then(id)), abandoned(then(id)), then(abandoned(id))]) {
      expect(sumOf(made)).toBe(sumOf(id));
    }
  });

  test('has at most 128 bytes, and never grows in a chain of 1,000', () => {
    let last: string = then(id);
    const lengths = new Set<number>();
    for (let step = 1; step < 1000; step += 1) {
      lengths.add(last.length);
      last = then(last, step);
    }
    expect([lengths.size, last.length <= ID_BYTES_MAX, abandoned(last).length <= ID_BYTES_MAX]).toEqual([
      1,
      true,
      true,
    ]);
    expect(last).toMatch(/^[!-~]+$/);
  });

  test('is the same when it is made again, and another for each start', () => {
    expect([then(id), abandoned(id)]).toEqual([then(id), abandoned(id)]);
    expect(new Set([then(id), then(id, 1), then(then(id), 2), abandoned(id), abandoned(then(id), 3)]).size).toBe(5);
  });
});

test.each([
  ['invoice:7', `{invoice:7}then:${TOKEN}.99`],
  ['{acme}order-7', `{acme}order-7!then:${TOKEN}.99`],
  ['{schedule:nightly}2026-03-08T01:30:00Z', `{schedule:nightly}2026-03-08T01:30:00Z!then:${TOKEN}.99`],
])('a step of %s is %s, and so are the steps after it but for their tokens', (id, first) => {
  expect(then(id)).toBe(first);
  expect(then(then(abandoned(then(id, 1), 2), 3))).toBe(first);
});

test('ids that are cut keep their beginning, their group, and differ', () => {
  const long = (end: string) => `${'tenant-4711:'.repeat(10)}${end}`;
  expect(then(long('a'))).toMatch(/^\{tenant-4711:tenant-4711:tenant-4711:tenant-4711:tenant-4711:tena~/);
  expect(then(long('a'))).not.toBe(then(long('b')));
  const grouped = (end: string) => `{acme}${'o'.repeat(110)}${end}`;
  expect(then(grouped('a'))).toMatch(/^\{acme\}o{60,}~[\w-]{16}!then:/);
  expect(then(grouped('a'))).not.toBe(then(grouped('b')));
});
