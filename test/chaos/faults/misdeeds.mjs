/** What handlers do that they should not, before they do their work. */
import { setTimeout as sleep } from 'node:timers/promises';
import { DEAF_MS } from '../stage/workload.mjs';

/** @typedef {'block' | 'deaf' | 'stubborn' | 'float' | 'fail' | 'hold'} Misdeed */

/** Handlers of a fleet that is going to vanish never come to their end. */
const HOLD_MS = process.env.CHAOS_FLEET ? 600_000 : 0;

/**
 * @param {string} kind
 * @param {{ attempt: number, blockMs: number, note: (ev: string, more?: object) => void }} start
 * @returns {Promise<number>} how much longer than planned its work takes
 */
export async function misbehave(kind, { attempt, blockMs, note }) {
  if (kind === 'block' && attempt === 1) {
    note('block.begin');
    const untilMs = performance.now() + blockMs;
    while (performance.now() < untilMs);
    note('block.end');
  }
  if (kind === 'deaf' && attempt === 1) {
    await sleep(DEAF_MS);
    note('finish', { how: 'error' });
    throw new Error('it went on after its time-out');
  }
  if (kind === 'float') void Promise.reject(new Error('a promise that its handler forgot'));
  if (kind === 'stubborn') await new Promise(() => {});
  return kind === 'hold' ? HOLD_MS : 0;
}
