/** Which partition a job lives in: part of the wire format, so these numbers never change. */
import { describe, expect, test } from 'vitest';
import { crc16, partitionOf, routingText } from '../../src/job/job-id.ts';

test.each([
  ['123456789', 0x31c3],
  ['', 0x0000],
  ['a', 0x7c87],
  ['order-1042', 0x9fd8],
])('the checksum of %j never changes', (text, sum) => {
  expect(crc16(Buffer.from(text))).toBe(sum);
});

test('bytes count, not characters', () => {
  expect(crc16(Buffer.from('é'))).toBe(crc16(Uint8Array.from([0xc3, 0xa9])));
});

describe('the routing text', () => {
  test.each([
    ['order-1042', 'order-1042'],
    ['{schedule:daily}1763719000000', 'schedule:daily'],
    ['a{b}c{d}', 'b'],
    ['a{}b', 'a{}b'],
    ['a{b', 'a{b'],
    ['a}b{', 'a}b{'],
  ])('of %j is %j', (id, text) => {
    expect(routingText(id)).toBe(text);
  });
});

describe('a partition', () => {
  test('is 0 when there is one', () => {
    expect(partitionOf('anything', 1)).toBe(0);
  });

  test.each([
    ['123456789', 8, 0x31c3 % 8],
    ['order-1042', 8, 0x9fd8 % 8],
    ['order-1042', 7, 0x9fd8 % 7],
  ])('of %j among %d is %d', (id, partitions, partition) => {
    expect(partitionOf(id, partitions)).toBe(partition);
  });

  test('of all jobs of a schedule is the same', () => {
    const partitions = [1, 2, 3, 4, 5].map((instant) => partitionOf(`{schedule:daily}${instant}`, 64));
    expect(new Set(partitions).size).toBe(1);
  });

  test('of many ids is spread evenly', () => {
    const counts = new Map<number, number>();
    for (let nth = 0; nth < 8000; nth += 1) {
      const partition = partitionOf(`order-${nth}`, 8);
      counts.set(partition, (counts.get(partition) ?? 0) + 1);
    }
    expect(counts.size).toBe(8);
    expect(Math.min(...counts.values())).toBeGreaterThan(800);
  });
});
