/** What the page of a past time says of the counts that are kept, and of those that nobody has. */
import { describe, expect, test } from 'vitest';
import type { Schemas } from '../../src/dashboard/api-types.ts';
import { lanesIn, sentenceOf } from '../../src/dashboard/pages/jobs/lanes.ts';

const MINUTE = 60_000;
const FROM = 100 * MINUTE;

/** Four minutes from two before the time on. */
function minutesOf(queue: string, given: Partial<Record<'starts' | 'dead', readonly number[]>>, isKnown = true) {
  const { starts = [0, 0, 0, 0], dead = [0, 0, 0, 0] } = given;
  const none = { count: starts, p50Ms: [], p99Ms: [], maxMs: [] };
  const total = { boundsMs: [], counts: [], count: 0, p50Ms: null, p99Ms: null, maxMs: null };
  const zeros = [0, 0, 0, 0];
  const answer: Schemas['QueueMinutes'] = {
    ...{ queue, on: true, nowMs: FROM, startMs: FROM - 2 * MINUTE, stepMs: MINUTE },
    known: zeros.map(() => isKnown),
    counts: {
      ...{ scheduled: zeros, done: zeros, cancelled: zeros, expired: zeros, deferred: zeros },
      ...{ promoted: zeros, retried: zeros, dead },
    },
    ...{ promotion: none, start: none, run: none },
    total: { promotion: total, start: total, run: total },
  };
  return answer;
}

const saidOf = (asked: readonly Schemas['QueueMinutes'][], all: number) =>
  sentenceOf(lanesIn(asked, { fromMs: FROM - MINUTE, toMs: FROM + 2 * MINUTE }, all), '02:30');

describe('the sentence over a past time', () => {
  test('says that nothing ran, or that no job died, where all queues have counts', () => {
    expect(saidOf([minutesOf('q', {})], 1)).toBe('Around 02:30 nothing ran.');
    expect(saidOf([minutesOf('q', { starts: [0, 0, 3, 1] })], 1)).toBe('Around 02:30 no job died.');
  });

  test('claims nothing of queues that were not asked, or have no counts of the time', () => {
    const asked = [minutesOf('q', { starts: [0, 0, 3, 1] }), minutesOf('new', {}, false)];
    expect(saidOf(asked, 40)).toBe('Around 02:30 no job died in the 1 of 40 queues that have counts here.');
    expect(saidOf([minutesOf('q', {})], 40)).toContain('nothing ran in the 1 of 40 queues');
  });

  test('is that no counts are kept where no step of the time is known', () => {
    expect(saidOf([minutesOf('q', {}, false)], 1)).toBe('No counts of the time around 02:30 are kept.');
    expect(saidOf([], 0)).toBe('No counts of the time around 02:30 are kept.');
  });

  test('names the queues in which jobs died, those with most of them first', () => {
    const asked = [
      minutesOf('a', { dead: [0, 0, 1, 0] }),
      minutesOf('b', { starts: [0, 0, 9, 0], dead: [0, 0, 4, 0] }),
    ];
    expect(saidOf(asked, 2)).toBe('Around 02:30 5 jobs died in b, a.');
  });
});
