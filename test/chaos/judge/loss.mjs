/** What was told to Redis while a loss was declared: which jobs may be gone, and what became of them. */
import { isExplained, isForgotten, isWithin } from './starts.mjs';

/** @typedef {import('./checker.mjs').Seen} Seen */

/**
 * Ids that Redis took at a moment at which nothing may get lost: it was somewhere between the call and its reply.
 *
 * @param {import('./checker.mjs').Story} story
 */
export function takenOutside({ calls, loss }) {
  /** @type {Map<string, number>} */
  const called = new Map();
  /** @type {Set<string>} */
  const outside = new Set();
  for (const { ev, id = '', us } of calls) {
    if (ev === 'enq.call') called.set(id, us);
    const overlaps = !loss?.keepsJobs && (isWithin(loss, us) || isWithin(loss, called.get(id) ?? us));
    if (ev === 'enq.ok' && !overlaps) outside.add(id);
  }
  return outside;
}

/** @param {Seen['starts']} starts @param {string} id */
export function hasEnded(starts, id) {
  return starts.get(id)?.some(({ finish }) => finish?.how === 'ok') ?? false;
}

/** Jobs that are gone, and a declared loss covers them. @param {Seen} seen */
export function excusedIn({ story, starts, members }) {
  const outside = takenOutside(story);
  const all = new Set(story.calls.filter(({ ev }) => ev === 'enq.ok').map(({ id = '' }) => id));
  return [...all].filter((id) => !outside.has(id) && !members.has(id) && !hasEnded(starts, id));
}

/** Starts that only a declared loss explains: Redis forgot how they had ended. @param {Seen} seen */
export function forgottenIn({ story, starts }) {
  const without = { ...story, loss: undefined };
  return [...starts.values()].flat().filter((start) => isForgotten(start, story) && !isExplained(start, without))
    .length;
}
