/**
 * Where Redisson keeps an `RDelayedQueue` in Redis. Pure. `N` is the name of the queue that its elements go to when they are due.
 *
 *  redisson_delay_queue_timeout:{N}  zset  element → due ms
 *  redisson_delay_queue:{N}          list  the same elements, in the order in which they were offered
 *  N                                 list  values that are due and wait for somebody who takes them
 *
 * A name with a brace stands in the keys as it is. An element is packed by the Lua library `struct`, in one of two forms:
 *
 *  newer versions   one byte: the length of the number · the number, random · 8 bytes: the length of the value · the value
 *  older ones       8 bytes: a random number as a double · 8 bytes: the length of the value · the value
 *
 * Lengths begin with their lowest byte. The value is what the codec of the queue wrote.
 *
 * The key `duestream_taken:{N}` is ours, and gone when an import has ended: elements that were taken and are not confirmed.
 */
import type { Flaw } from '../flaw.ts';

const TIMEOUTS = 'redisson_delay_queue_timeout';

export interface DelayedKeys {
  readonly timeouts: string;
  readonly elements: string;
  readonly taken: string;
}

const prefixed = (prefix: string, name: string): string =>
  name.includes('{') ? `${prefix}:${name}` : `${prefix}:{${name}}`;

export const delayedKeys = (name: string): DelayedKeys => ({
  timeouts: prefixed(TIMEOUTS, name),
  elements: prefixed('redisson_delay_queue', name),
  taken: prefixed('duestream_taken', name),
});

/** What SCAN looks for. */
export const TIMEOUTS_PATTERN = `${TIMEOUTS}:*`;

/** The queue that such a key belongs to. @example nameIn('redisson_delay_queue_timeout:{orders}') // 'orders' */
export function nameIn(key: string): string {
  const rest = key.slice(TIMEOUTS.length + 1);
  return /^\{[^{}]*\}$/.test(rest) ? rest.slice(1, -1) : rest;
}

/** An element: the number that makes it one, in hexadecimal, and its value. */
export interface Element {
  readonly number: string;
  readonly value: Uint8Array;
}

const NUMBER_BYTES_OLD = 8;
const LENGTH_BYTES = 8;

export function readElement(bytes: Uint8Array): Element | Flaw {
  const [first = 0] = bytes;
  return (
    unpacked(bytes, { from: 1, bytes: first }) ??
    unpacked(bytes, { from: 0, bytes: NUMBER_BYTES_OLD }) ?? { flaw: 'it is packed in a form that nobody knows here' }
  );
}

/** @param number where it stands; undefined where the length behind it is not that of the rest */
function unpacked(bytes: Uint8Array, number: { readonly from: number; readonly bytes: number }): Element | undefined {
  const end = number.from + number.bytes;
  if (number.bytes === 0 || bytes.length < end + LENGTH_BYTES) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.getBigUint64(end, true) !== BigInt(bytes.length - end - LENGTH_BYTES)) return undefined;
  return {
    number: Buffer.from(bytes.subarray(number.from, end)).toString('hex'),
    value: bytes.subarray(end + LENGTH_BYTES),
  };
}

/**
 * The data of a value: of JsonJacksonCodec what the JSON says, with its names of classes; of StringCodec the text. Other codecs
 * write bytes that only Java reads.
 *
 * @param binary whether such bytes are taken too, as `{ base64 }`
 */
export function dataOf(value: Uint8Array, binary: boolean): { readonly data: unknown } | Flaw {
  const text = textOf(value);
  if (text === undefined) {
    if (binary) return { data: { base64: Buffer.from(value).toString('base64') } };
    return { flaw: 'its codec writes bytes that only Java reads: --base64 takes them as they are' };
  }
  try {
    return { data: JSON.parse(text) };
  } catch {
    return { data: text };
  }
}

/** Characters that no text of a person has stand in what Java serialises. */
const UNTEXT = /(?![\t\n\r])\p{Cc}/u;

function textOf(value: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(value);
    return UNTEXT.test(text) ? undefined : text;
  } catch {
    return undefined;
  }
}
