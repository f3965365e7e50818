/** Elements of a delayed queue of Redisson, byte by byte. */
import { describe, expect, test } from 'vitest';
import { dataOf, delayedKeys, nameIn, readElement } from '../../src/import/redisson/layout.ts';

/** As Lua's `struct` packs it: lengths begin with their lowest byte. */
function length(bytes: Uint8Array): Buffer {
  const packed = Buffer.alloc(8);
  packed.writeBigUInt64LE(BigInt(bytes.length));
  return packed;
}
const NUMBER = Buffer.from('0102030405060708', 'hex');
const newer = (value: Buffer) => Buffer.concat([Buffer.of(8), NUMBER, length(value), value]);
const older = (value: Buffer) => Buffer.concat([NUMBER, length(value), value]);

describe('an element', () => {
  test.each([
    ['newer', newer],
    ['older', older],
  ])('of a %s version has its number and its value', (_, pack) => {
    const value = Buffer.from('{"id":7}');
    expect(readElement(pack(value))).toEqual({ number: '0102030405060708', value: expect.any(Uint8Array) });
    const read = readElement(pack(value));
    expect('value' in read && Buffer.from(read.value).toString()).toBe('{"id":7}');
  });

  test('as a server has packed it is read', () => {
    // From a trace of Redisson: .\xb9\x90\xcb\xa7\x1c\xd2C, then 14 as eight bytes, then "helloworld00" in quotes.
    const bytes = Buffer.from('2eb990cba71cd2430e000000000000002268656c6c6f776f726c64303022', 'hex');
    const read = readElement(bytes);
    expect('value' in read && dataOf(read.value, false)).toEqual({ data: 'helloworld00' });
  });

  test('of another form is a flaw', () => {
    for (const bytes of [
      Buffer.alloc(0),
      Buffer.from('hello'),
      newer(Buffer.from('a')).subarray(0, -1),
      Buffer.alloc(40, 9),
    ])
      expect(readElement(bytes)).toEqual({ flaw: 'it is packed in a form that nobody knows here' });
  });
});

describe('a value', () => {
  test('of a JSON codec is what the JSON says', () => {
    const text = '{"@class":"com.acme.Order","id":["java.lang.Long",7]}';
    expect(dataOf(Buffer.from(text), false)).toEqual({ data: JSON.parse(text) });
  });

  test('of a text codec is the text', () => {
    expect(dataOf(Buffer.from('order 7, größer'), false)).toEqual({ data: 'order 7, größer' });
  });

  test('that only Java reads stays, or comes as base64', () => {
    for (const bytes of [Buffer.of(3, 1, 130), Buffer.of(0xff, 0xfe), Buffer.of(0xac, 0xed, 0, 5)]) {
      expect(dataOf(bytes, false)).toEqual({ flaw: expect.stringContaining('--base64') });
      expect(dataOf(bytes, true)).toEqual({ data: { base64: bytes.toString('base64') } });
    }
  });
});

test('keys have the name in braces, unless it has some', () => {
  expect(delayedKeys('orders').timeouts).toBe('redisson_delay_queue_timeout:{orders}');
  expect(delayedKeys('app:{acme}:orders').timeouts).toBe('redisson_delay_queue_timeout:app:{acme}:orders');
  for (const name of ['orders', 'app:{acme}:orders', 'a:b']) expect(nameIn(delayedKeys(name).timeouts)).toBe(name);
});
