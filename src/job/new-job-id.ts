/**
 * The ids that duestream makes: 22 characters that sort as text in the order in which they were reserved.
 *
 *   0V3B3BNA      00a         k3JpQ0xYb2Z
 *   milliseconds  a sequence  random: no other process makes the same id
 *
 * Redis keeps jobs of one due time in the order of their ids, byte by byte, and promotes them in it. So what must always
 * hold is that a later call has a greater id: also within a millisecond, and also when the clock steps back. Then the
 * milliseconds stay where they were until the clock has come after them, and only the sequence rises. Where it is at its
 * end it takes the next millisecond before the clock does. The digits are those of base 62 in the order of ASCII; eight
 * of them hold milliseconds until the year 8888.
 */
import { type Clock, systemClock } from '../kernel/clock.ts';
import type { JobId } from './job.ts';

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
export type ReserveJobIds = (count: number) => () => JobId;

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
