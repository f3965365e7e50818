import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EntryId } from '../../src/job/job.ts';
import { rendezvous } from '../../src/kernel/shares.ts';
import { sharesOf } from '../../src/worker/recover/reclaimer.ts';

const entriesOf = (count: number) => Array.from({ length: count }, (_, index) => `1795264257${index}-0` as EntryId);
const names = (count: number) => Array.from({ length: count }, (_, index) => `w-${index}`);

/** Plays the rounds: every survivor wishes by its own view, the script gives an entry to the first that asks. */
async function play(entries: readonly EntryId[], views: ReadonlyMap<string, readonly string[]>) {
  const owner = new Map<EntryId, string>();
  const rounds = new Map<EntryId, number>();
  for (let round = 0; round <= 3; round += 1) {
    for (const [consumer, living] of views) {
      const left = entries.filter((entry) => !owner.has(entry));
      for (const entry of await sharesOf(left, { consumer, living, round, most: left.length })) {
        if (owner.has(entry)) throw new Error('claimed twice');
        owner.set(entry, consumer);
        rounds.set(entry, round);
      }
    }
  }
  return { owner, rounds };
}

describe('the entries of a dead worker', () => {
  test.each([2, 3, 5, 10, 20])(
    'spread over %i survivors: the busiest gets at most 1.6 times the mean',
    async (count) => {
      const living = names(count);
      const { owner } = await play(entriesOf(100 * count), new Map(living.map((name) => [name, living])));
      const shares = living.map((name) => [...owner.values()].filter((other) => other === name).length);
      expect(Math.max(...shares) / 100).toBeLessThanOrEqual(1.6);
    },
  );

  test('are all taken in the first round when everybody sees the same survivors', async () => {
    const living = names(4);
    const { rounds } = await play(entriesOf(200), new Map(living.map((name) => [name, living])));
    expect([...rounds.values()].every((round) => round === 0)).toBe(true);
    expect(rounds.size).toBe(200);
  });

  test('are all taken within three rounds, each once, when the views differ', async () => {
    const view = fc.subarray(names(8), { minLength: 0 });
    await fc.assert(
      fc.asyncProperty(fc.array(view, { minLength: 1, maxLength: 8 }), async (seen) => {
        const views = new Map(seen.map((living, index) => [`w-${index}`, [`w-${index}`, ...living]]));
        const entries = entriesOf(50);
        expect((await play(entries, views)).owner.size).toBe(entries.length);
      }),
    );
  });

  test('are those that the order of all survivors gives, though it is never computed as a whole', async () => {
    const living = names(20);
    const entries = entriesOf(100);
    for (const consumer of living.slice(0, 5)) {
      for (const [round, near] of [0, 1].map((one) => [one, one === 0 ? 1 : 3] as const)) {
        const wanted = entries.filter((entry) => rendezvous(entry, living).slice(0, near).includes(consumer));
        const view = { consumer, living, round };
        expect(await sharesOf(entries, { ...view, most: 100 })).toEqual(wanted);
        expect(await sharesOf(entries, { ...view, most: 2 })).toEqual(wanted.slice(0, 2));
        expect(await sharesOf(entries, { ...view, most: 0 })).toEqual([]);
      }
    }
    expect(await sharesOf(entries, { consumer: 'w-0', living, round: 3, most: 7 })).toEqual(entries.slice(0, 7));
  });

  test('are computed in turns of the event loop, and from a few hashes each', async () => {
    let turns = 0;
    const turn = async () => {
      turns += 1;
    };
    const view = { consumer: 'w-0', living: names(1000), most: 1000 };
    for (const round of [0, 1]) {
      turns = 0;
      await sharesOf(entriesOf(1000), { ...view, round }, turn);
      // The whole order takes 2,000 turns of 500 hashes. The expectation is 7 hashes per entry, and 21 in the near rounds.
      expect(turns).toBeGreaterThanOrEqual(5);
      expect(turns).toBeLessThanOrEqual(120);
    }
  });
});
