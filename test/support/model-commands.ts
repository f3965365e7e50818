/**
 * The commands of the model test as plain data: a word and three small numbers that pick a job, a consumer, a claim or
 * a variant among what there is at that moment. Any list of them can be run, so any list can be shrunk and kept.
 */
import fc from 'fast-check';
import { producing } from './model-calls.ts';
import { editing } from './model-edit-calls.ts';
import { disturbing } from './model-faults.ts';
import { limiting } from './model-quota-calls.ts';
import { relay } from './model-relay.ts';
import { working } from './model-worker-calls.ts';
import type { Call, World } from './model-world.ts';

export type Command = readonly [word: string, a: number, b: number, c: number];
export type List = readonly Command[];
export type Numbers = readonly [a: number, b: number, c: number];
/** Undefined when there is nothing the command could speak of. */
export type Resolve = (world: World, numbers: Numbers) => Call | undefined;

export const words: Readonly<Record<string, Resolve>> = {
  ...producing,
  ...editing,
  ...working,
  relay,
  ...disturbing,
  ...limiting,
};

/** Words that are not the names of the scripts that they call. */
const OTHER_NAMES: Readonly<Record<string, string>> = { again: 'schedule', adopt: 'start', closeTags: 'close-tags' };
/** The script that a command calls, if any has its name. */
export const verbOf = ([word]: Command): string => OTHER_NAMES[word] ?? word;

/** How often a word comes up; 1 unless named. What is costly comes up in scenes only. */
const WEIGHTS: Readonly<Record<string, number>> = {
  schedule: 8,
  promote: 9,
  read: 8,
  start: 10,
  complete: 5,
  serve: 10,
  relay: 8,
  retry: 4,
  put: 5,
  cancel: 4,
  reclaim: 4,
  putHuge: 0,
  // Limits and closed tags would refuse what the others need, late calls are refused, and debounced jobs keep them out; they have lists of their own.
  closeTags: 0,
  late: 0,
  debounced: 0,
  allot: 0,
  weigh: 0,
  // Who waits changes nothing for anybody else: scenes have each end of a job that is waited for.
  await: 0,
  bury: 4,
  reschedule: 3,
  edit: 3,
  replay: 3,
  advance: 4,
  expire: 3,
  release: 3,
  defer: 2,
  commit: 2,
  extend: 2,
  repeat: 3,
  elect: 2,
};

const number = fc.nat(23);
const one = (...known: readonly string[]) => fc.tuple(fc.constantFrom(...known), number, number, number);
export const randomWords = Object.keys(words).filter((word) => WEIGHTS[word] !== 0);
const anything = fc.oneof(...randomWords.map((word) => ({ weight: WEIGHTS[word] ?? 1, arbitrary: one(word) })));

/** The way of a job, with something in between: chance alone seldom gets that far. */
const flow = fc
  .record({
    born: one('schedule', 'schedule', 'put'),
    who: number,
    between: one(
      'cancel',
      'reschedule',
      'edit',
      'put',
      'advance',
      'pause',
      'reclaim',
      'schedule',
      'retry',
      'destroyGroup',
      'lose',
    ),
    where: fc.nat(8),
    end: one('complete', 'serve', 'commit', 'retry', 'defer', 'bury', 'bury', 'release', 'expire', 'reclaim', 'start'),
    after: one('replay', 'cancel', 'reschedule', 'schedule', 'sweep', 'repeat', 'repeat', 'again', 'promote'),
  })
  .map(({ born, who, between, where, end, after }): List => {
    const [word, a, b, c] = end;
    const aimed: Command = ['release', 'expire', 'reclaim', 'start'].includes(word)
      ? [word, who, b % 18, c]
      : [word, a % 3, b, c];
    const way: List = [born, ['promote', 0, 0, 0], ['read', who, 2, 0], ['start', who, 0, 0], aimed, after];
    return [...way.slice(0, where), between, ...way.slice(where)];
  });

/** A job that has two entries in ready: what puts a live id again, an end without a done window or a sweep, and the rest. */
const twice = fc
  .record({
    born: fc.constantFrom<Command>(['schedule', 0, 0, 0], ['put', 0, 0, 0]),
    again: fc.array(one('schedule', 'put', 'cancel'), { minLength: 1, maxLength: 2 }),
    end: one('complete', 'serve', 'commit', 'bury', 'retry', 'defer', 'release', 'expire', 'reclaim'),
    after: one('sweep', 'sweep', 'advance', 'schedule', 'cancel', 'adopt', 'reclaim'),
  })
  .map(({ born, again, end: [word, , b, c], after }): List => {
    const sameId = again.map(([verb, , due, mode]): Command => {
      if (verb === 'schedule') return [verb, 21, due % 3, mode % 2 === 0 ? 2 : 0];
      return verb === 'cancel' ? [verb, born[0] === 'put' ? 3 : 0, due, 0] : [verb, 0, due % 6, 0];
    });
    const promote: Command = ['promote', 0, 0, 0];
    const first: List = [['read', 0, 2, 0], ['start', 0, 2, c], [word, 0, b, c], after];
    return [born, promote, ...sameId, promote, ...first, ['start', 0, 0, c], ['read', 0, 2, 0], ['start', 0, 0, b]];
  });

/** Lists of a seed. Every list begins with a leader, because nothing moves without one. */
export function lists({ seed, runs, length }: { seed: number; runs: number; length: number }): readonly List[] {
  const part: fc.Arbitrary<List> = fc.oneof(
    { weight: 6, arbitrary: anything.map((command) => [command]) },
    { weight: 1, arbitrary: flow },
    { weight: 1, arbitrary: twice },
  );
  const list = fc.array(part, { minLength: length, maxLength: length, size: 'max' });
  return fc
    .sample(list, { seed, numRuns: runs })
    .map((parts) => [['elect', 0, 0, 0], ...parts.flat().slice(0, length)]);
}

type Fails = (list: List) => Promise<boolean>;

/** The shortest list that still fails: whole stretches are left out first, then single commands, then numbers. */
export async function shorten(list: List, fails: Fails): Promise<List> {
  let best = list;
  for (let size = Math.ceil(list.length / 2); size > 1; size = Math.ceil(size / 2))
    best = await without(best, { size, fails });
  best = await without(best, { size: 1, fails });
  for (const at of best.keys()) {
    for (const place of [1, 2, 3]) {
      const simpler = best.with(at, withZero(best[at] ?? ['', 0, 0, 0], place));
      if (best[at]?.[place] !== 0 && (await fails(simpler))) best = simpler;
    }
  }
  return best;
}

async function without(list: List, { size, fails }: { size: number; fails: Fails }): Promise<List> {
  let best = list;
  for (let at = 0; at < best.length; ) {
    const shorter = best.toSpliced(at, size);
    const stillFails = await fails(shorter);
    best = stillFails ? shorter : best;
    at += stillFails ? 0 : size;
  }
  return best;
}

function withZero([word, a, b, c]: Command, place: number): Command {
  return [word, place === 1 ? 0 : a, place === 2 ? 0 : b, place === 3 ? 0 : c];
}

export function resolve(world: World, [word, a, b, c]: Command): Call | undefined {
  const known = words[word];
  if (!known) throw new Error(`no command is called ${word}`);
  return known(world, [a, b, c]);
}

export const show = (list: List): string => list.map(([word, ...numbers]) => `${word} ${numbers.join(' ')}`).join(', ');
