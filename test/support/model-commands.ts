/**
 * The commands of the model test as plain data: a word and three small numbers that pick a job, a consumer, a claim or
 * a variant among what there is at that moment. Any list of them can be run, so any list can be shrunk and kept.
 */
import fc from 'fast-check';
import { producing } from './model-calls.ts';
import { disturbing } from './model-faults.ts';
import { working } from './model-worker-calls.ts';
import type { Call, World } from './model-world.ts';

export type Command = readonly [word: string, a: number, b: number, c: number];
export type List = readonly Command[];
export type Numbers = readonly [a: number, b: number, c: number];
/** Undefined when there is nothing the command could speak of. */
export type Resolve = (world: World, numbers: Numbers) => Call | undefined;

export const words: Readonly<Record<string, Resolve>> = { ...producing, ...working, ...disturbing };

/** How often a word comes up; 1 unless named. */
const WEIGHTS: Readonly<Record<string, number>> = {
  ...{ schedule: 8, promote: 9, read: 8, start: 10, complete: 5, retry: 4, put: 5, cancel: 4, reclaim: 4 },
  ...{ bury: 4, replay: 3, advance: 4, expire: 3, release: 3, defer: 2, commit: 2, extend: 2, repeat: 3, elect: 2 },
};

const oneOf = Object.keys(words).map((word) => ({
  weight: WEIGHTS[word] ?? 1,
  arbitrary: fc.tuple(fc.constant(word), fc.nat(23), fc.nat(23), fc.nat(23)),
}));

/** Lists of a seed. Every list begins with a leader, because nothing moves without one. */
export function lists({ seed, runs, length }: { seed: number; runs: number; length: number }): readonly List[] {
  const list = fc.array(fc.oneof(...oneOf), { minLength: length, maxLength: length, size: 'max' });
  return fc.sample(list, { seed, numRuns: runs }).map((rest) => [['elect', 0, 0, 0], ...rest]);
}

/** The shortest list that still fails: whole stretches are left out first, then single commands, then numbers. */
export async function shorten(list: List, fails: (list: List) => Promise<boolean>): Promise<List> {
  let best = list;
  for (let size = Math.ceil(best.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < best.length; ) {
      const shorter = [...best.slice(0, at), ...best.slice(at + size)];
      if (await fails(shorter)) best = shorter;
      else at += size;
    }
  }
  for (const at of best.keys()) {
    for (const place of [1, 2, 3]) {
      const simpler = best.map((command, index): Command => {
        const [word, ...numbers] = command;
        const [a = 0, b = 0, c = 0] = numbers.map((n, i) => (index === at && i + 1 === place ? 0 : n));
        return [word, a, b, c];
      });
      if (best[at]?.[place] !== 0 && (await fails(simpler))) best = simpler;
    }
  }
  return best;
}

export function resolve(world: World, [word, a, b, c]: Command): Call | undefined {
  const known = words[word];
  if (!known) throw new Error(`no command is called ${word}`);
  return known(world, [a, b, c]);
}

export const show = (list: List): string => list.map(([word, ...numbers]) => `${word} ${numbers.join(' ')}`).join(', ');
