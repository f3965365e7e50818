/** Waiting times spread, so that jobs that failed together, or are due together, do not all come at once. */
import { show } from './duration.ts';
import { DuestreamError } from './errors.ts';

/**
 * From 0 to `mostMs`, evenly over many texts; the same text has the same place.
 *
 * @example spreadMs('welcome:42', 600_000) // 0 to 600,000, whenever it is asked
 */
export function spreadMs(text: string, mostMs: number): number {
  // FNV-1a, 32 bits.
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash % (mostMs + 1);
}

// How waiting times are spread, so that jobs that failed together do not all come back together.

/** `full` spreads over 0…delay, `equal` over half…delay, `none` not at all. */
export type Jitter = (typeof JITTERS)[number];

export const JITTERS = ['none', 'full', 'equal'] as const;

export const isJitter = (value: unknown): value is Jitter => JITTERS.some((known) => known === value);

/** @throws DuestreamError `bad-input` */
export function jitterOf(jitter: unknown, otherwise: Jitter): Jitter {
  if (jitter === undefined) return otherwise;
  if (isJitter(jitter)) return jitter;
  throw new DuestreamError('bad-input', `jitter is ${show(jitter)}; allowed: none, full, equal`);
}

/** @param random in [0, 1) */
export function jitteredMs(delayMs: number, jitter: Jitter, random: number): number {
  if (jitter === 'full') return Math.round(delayMs * random);
  if (jitter === 'equal') return Math.round(delayMs / 2 + (delayMs / 2) * random);
  return Math.round(delayMs);
}
