/** Ids of jobs: new ones, those that follow from other ids, and the partition that follows from an id. */

import { createHash } from 'node:crypto';
import { type Clock, systemClock } from '../kernel/clock.ts';
import { ID_BYTES_MAX, type JobId } from './job.ts';

// The ids that duestream makes: 22 characters that sort as text in the order in which they were reserved.
//
//   0V3B3BNA      00a         k3JpQ0xYb2Z
//   milliseconds  a sequence  random: no other process makes the same id
//
// Redis keeps jobs of one due time in the order of their ids, byte by byte, and promotes them in it. So what must
// always hold is that a later call has a greater id: also within a millisecond, and also when the clock steps back.
// Then the milliseconds stay where they were until the clock has come after them, and only the sequence rises. Where it
// is at its end it takes the next millisecond before the clock does. The digits are those of base 62 in the order of
// ASCII; eight of them hold milliseconds until the year 8888.

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const TIME_CHARS = 8;
const SEQUENCE_CHARS = 3;
const SEQUENCE_END = 62 ** SEQUENCE_CHARS;
/** 65 bits. */
const RANDOM_CHARS = 11;

/** Fills the bytes with random ones. */
type Random = (bytes: Uint8Array<ArrayBuffer>) => void;

interface IdParts {
  readonly clock: Pick<Clock, 'wallMs'>;
  readonly random: Random;
}

/**
 * Reserves the ids of one call, which may have many jobs: they are greater than all that were reserved before, and each
 * is made when it is asked for.
 */
type ReserveJobIds = (count: number) => () => JobId;

export function createJobIds({ clock, random }: IdParts): ReserveJobIds {
  const randomDigit = randomDigits(random);
  let next = { ms: 0, nth: 0 };

  const reserve: ReserveJobIds = (count) => {
    const nowMs = clock.wallMs();
    const from = nowMs > next.ms ? { ms: nowMs, nth: 0 } : next;
    next = after(from, count);
    let made = 0;
    return () => {
      // A middleware has added jobs to the call.
      if (made === count) return reserve(1)();
      const { ms, nth } = after(from, made);
      made += 1;
      let id = digits(ms, TIME_CHARS) + digits(nth, SEQUENCE_CHARS);
      for (let left = RANDOM_CHARS; left > 0; left -= 1) id += randomDigit();
      return id as JobId;
    };
  };
  return reserve;
}

/** Of this process: in one order for all its producers. */
export const reserveJobIds: ReserveJobIds = createJobIds({
  clock: systemClock,
  random: (bytes) => crypto.getRandomValues(bytes),
});

/** A new id, greater than all that this process has made or reserved. */
export const newJobId = (): JobId => reserveJobIds(1)();

function after({ ms, nth }: { readonly ms: number; readonly nth: number }, count: number) {
  const sum = nth + count;
  return { ms: ms + Math.floor(sum / SEQUENCE_END), nth: sum % SEQUENCE_END };
}

function digits(number: number, width: number): string {
  let text = '';
  for (let left = number; text.length < width; left = Math.floor(left / 62)) text = DIGITS.charAt(left % 62) + text;
  return text;
}

/** Bytes are fetched many at a time; of their 64 values by six bits two are passed over, so that no digit comes more often. */
function randomDigits(random: Random): () => string {
  const pool = new Uint8Array(1024);
  let at = pool.length;
  return () => {
    for (;;) {
      if (at === pool.length) {
        random(pool);
        at = 0;
      }
      const digit = DIGITS.charAt((pool[at] ?? 0) & 63);
      at += 1;
      if (digit !== '') return digit;
    }
  };
}

// The ids of jobs that another job leads to: the next step of `commitJob`, a compensation job.
//
//   order-7                   ─▶ {order-7}then:<token>.00 ─▶ {order-7}then:<token>.00 ─▶ {order-7}abandoned:<token>
//   {schedule:nightly}<time>  ─▶ {schedule:nightly}<time>!then:<token>.00
//
// What must always hold: the new job lives in the partition of the old one, since one script makes it; the id never
// grows, however long a chain is; it has at most 128 bytes. It begins with the id of the first job, its *root*, so that
// it is found by this prefix. The token is the number of one start in a partition, so no other job has this id. A root
// that is too long is cut, and a digest of it takes the place of the rest.

/** What the id says the job is for: the next step, or the job that takes half-done work back. */
type Purpose = `then:${string}.${string}` | `abandoned:${string}`;

const MADE = /!?(?:then:\d+\.\d+|abandoned:\d+)$/;
/** `!abandoned:` and a token. */
const SUFFIX_BYTES_MAX = 27;
const ROOT_BYTES_MAX = ID_BYTES_MAX - SUFFIX_BYTES_MAX;
const DIGEST_CHARS = 16;
/** What is kept of an id that is too long for its own braces. */
const KEPT_CHARS = 64;
/** Two characters of base 36. Of two pairs together, 25 have each checksum of 16 bits. */
const PAIRS = Array.from({ length: 36 ** 2 }, (_, nth) => nth.toString(36).padStart(2, '0'));

/**
 * The id of a job that the job of this id leads to.
 *
 * @example derivedId('order-7', 'then:1763719000000000.00') // '{order-7}then:1763719000000000.00'
 */
export function derivedId(id: string, purpose: Purpose): JobId {
  const root = rootOf(id);
  return `${root}${root.endsWith('}') ? '' : '!'}${purpose}` as JobId;
}

/** Begins with the hash tag that leads to the partition of the id, and is its own root. */
function rootOf(id: string): string {
  const routing = routingText(id);
  if (routing === id) return /[{}]/.test(id) || id.length + 2 > ROOT_BYTES_MAX ? shortTag(id) : `{${id}}`;
  const root = id.replace(MADE, '');
  if (root.length <= ROOT_BYTES_MAX) return root;
  const tagEnd = id.indexOf('}', id.indexOf('{')) + 1;
  if (tagEnd + 1 + DIGEST_CHARS > ROOT_BYTES_MAX) return shortTag(routing);
  return `${root.slice(0, ROOT_BYTES_MAX - 1 - DIGEST_CHARS)}~${digestOf(root)}`;
}

/** A hash tag of fewer bytes that leads where the text leads, however many partitions there are. */
function shortTag(text: string): string {
  const short = `${text.replace(/[{}]/g, '.').slice(0, KEPT_CHARS)}~${digestOf(text)}`;
  const [wanted, before] = [crc16(Buffer.from(text)), crc16(Buffer.from(short))];
  // The sum of two parts is that of the first with zeros behind it, and that of the second from zero: both are looked
  // up.
  const seconds = new Map(PAIRS.map((pair) => [crc16(Buffer.from(pair)), pair]));
  for (const first of PAIRS) {
    const second = seconds.get(crc16(Buffer.from(`${first}\0\0`), before) ^ wanted);
    if (second !== undefined) return `{${short}${first}${second}}`;
  }
  throw new Error(`no end of ${short} has the checksum ${wanted}`);
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('base64url').slice(0, DIGEST_CHARS);

// Which partition a job lives in. Part of the wire format: every producer in every language must come to the same
// number, so this is CRC16-XMODEM (the checksum of Redis Cluster) of the routing text, modulo the partitions.

/** What decides the partition: the text between the first `{` and the next `}` if both are there, else the whole id. */
export function routingText(id: string): string {
  const open = id.indexOf('{');
  const close = open < 0 ? -1 : id.indexOf('}', open + 1);
  return close > open + 1 ? id.slice(open + 1, close) : id;
}

/** The partition of an id among `partitions`. @example partitionOf('order-1042', 8) */
export function partitionOf(id: string, partitions: number): number {
  return partitions === 1 ? 0 : crc16(Buffer.from(routingText(id), 'utf8')) % partitions;
}

/**
 * CRC16-XMODEM: polynomial 0x1021, start 0, no reflection. crc16("123456789") is 0x31c3.
 *
 * @param before the sum of the bytes in front of these
 */
export function crc16(bytes: Uint8Array, before = 0): number {
  let crc = before;
  for (const byte of bytes) crc = ((crc << 8) ^ (TABLE[((crc >> 8) ^ byte) & 0xff] ?? 0)) & 0xffff;
  return crc;
}

const TABLE: readonly number[] = Array.from({ length: 256 }, (_, index) => {
  let crc = index << 8;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff;
  return crc;
});
