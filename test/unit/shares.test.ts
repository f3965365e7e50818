import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EntryId } from '../../src/core/job.ts';
import { sharesOf } from '../../src/worker/shares.ts';

const entriesOf = (count: number) => Array.from({ length: count }, (_, index) => `1795264257${index}-0` as EntryId);
const names = (count: number) => Array.from({ length: count }, (_, index) => `w-${index}`);

/** Plays the rounds: every survivor wishes by its own view, the script gives an entry to the first that asks. */
function play(entries: readonly EntryId[], views: ReadonlyMap<string, readonly string[]>) {
  const owner = new Map<EntryId, string>();
  const rounds = new Map<EntryId, number>();
  for (let round = 0; round <= 3; round += 1) {
    for (const [consumer, living] of views) {
      const left = entries.filter((entry) => !owner.has(entry));
      for (const entry of sharesOf(left, { consumer, living, round })) {
        if (owner.has(entry)) throw new Error('claimed twice');
        owner.set(entry, consumer);
        rounds.set(entry, round);
      }
    }
  }
  return { owner, rounds };
}

describe('the entries of a dead worker', () => {
  test.each([2, 3, 5, 10, 20])('spread over %i survivors: the busiest gets at most 1.6 times the mean', (count) => {
    const living = names(count);
    const { owner } = play(entriesOf(100 * count), new Map(living.map((name) => [name, living])));
    const shares = living.map((name) => [...owner.values()].filter((other) => other === name).length);
    expect(Math.max(...shares) / 100).toBeLessThanOrEqual(1.6);
  });

  test('are all taken in the first round when everybody sees the same survivors', () => {
    const living = names(4);
    const { rounds } = play(entriesOf(200), new Map(living.map((name) => [name, living])));
    expect([...rounds.values()].every((round) => round === 0)).toBe(true);
    expect(rounds.size).toBe(200);
  });

  test('are all taken within three rounds, each once, when the views differ', () => {
    const view = fc.subarray(names(8), { minLength: 0 });
    fc.assert(
      fc.property(fc.array(view, { minLength: 1, maxLength: 8 }), (seen) => {
        const views = new Map(seen.map((living, index) => [`w-${index}`, [`w-${index}`, ...living]]));
        const entries = entriesOf(50);
        expect(play(entries, views).owner.size).toBe(entries.length);
      }),
    );
  });
});
