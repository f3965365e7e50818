/** The table of transitions, the scripts and the reference say the same. */
import { expect, test } from 'vitest';
import { outcomeLetters } from '../../src/job/state.ts';
import { scriptsByVerb } from '../../src/redis/scripts/script-table.ts';
import { read } from '../support/repository.ts';
import { type Transition, transitions } from '../support/transitions.ts';

const verbs = transitions.map(({ verb }) => verb);

test('every transition is one script', () => {
  expect(verbs.filter((verb) => !scriptsByVerb.has(verb))).toEqual([]);
  expect(new Set(verbs).size).toBe(verbs.length);
});

test('the reference says for each what a second identical call replies', () => {
  const reference = read('docs/reference/transitions.md');
  expect(verbs.filter((verb) => !new RegExp(`^\\| \`${verb}\` \\|`, 'm').test(reference))).toEqual([]);
});

/** `running → done, cancelled; ready → done`, and one arrow for states that lead to the same. */
function arrowsOf({ moves }: Transition): string {
  const fromOf = new Map<string, string[]>();
  for (const [from, states] of Object.entries(moves)) {
    const to = states.join(', ');
    fromOf.set(to, [...(fromOf.get(to) ?? []), from]);
  }
  return [...fromOf].map(([to, from]) => `${from.join(', ')} → ${to}`).join('; ');
}

test('the reference shows every row of the table', () => {
  const shown = read('docs/reference/transitions.md').split('\n');
  const wanted = transitions.map((transition) => `| \`${transition.verb}\` | ${arrowsOf(transition)} |`);
  expect(shown.filter((line) => / → /.test(line) && /^\| `[\w-]+` \| [^|]* \|$/.test(line))).toEqual(wanted);
});

test('no state is a dead end: what is over can be scheduled again', () => {
  const left = new Set(transitions.flatMap(({ moves }) => Object.keys(moves)));
  const reached = new Set(transitions.flatMap(({ moves }) => Object.values(moves).flat()));
  expect([...reached].filter((state) => !left.has(state))).toEqual([]);
});

test('every way to be over has a letter of its own', () => {
  expect(Object.values(outcomeLetters).toSorted()).toEqual(['cancelled', 'dead', 'done', 'expired']);
});
