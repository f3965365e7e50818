/** The table of transitions, the scripts and the reference say the same. */
import { expect, test } from 'vitest';
import { stubLetters, transitions } from '../../src/core/state.ts';
import { scripts } from '../../src/redis/scripts.ts';
import { read } from '../support/repository.ts';

const verbs = transitions.map(({ verb }) => verb);

test('every transition is one script', () => {
  expect(verbs.filter((verb) => !(verb in scripts))).toEqual([]);
  expect(new Set(verbs).size).toBe(verbs.length);
});

test('the reference says for each what a second identical call replies', () => {
  const reference = read('docs/reference/transitions.md');
  expect(verbs.filter((verb) => !new RegExp(`^\\| \`${verb}\` \\|`, 'm').test(reference))).toEqual([]);
});

test('no state is a dead end: what is over can be scheduled again', () => {
  const left = new Set(transitions.flatMap(({ from }) => from));
  const reached = new Set(transitions.flatMap(({ to }) => to));
  expect([...reached].filter((state) => !left.has(state))).toEqual([]);
});

test('every way to be over has a letter of its own', () => {
  expect(Object.values(stubLetters).toSorted()).toEqual(['cancelled', 'dead', 'done', 'expired']);
});
