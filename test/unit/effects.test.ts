/** The judge of the kill tests sees what it is there to see. */
import { describe, expect, test } from 'vitest';
import { duplicatesIn, type Effect, judge, type Story } from '../support/effects.ts';

const DUE = 1_763_719_000_000;

const effect = (what: Effect['what'], id: string, part: Partial<Effect> = {}): Effect => ({
  ...{ what, id, attempt: 1, crashes: 0, token: '100', pid: 1, ms: DUE, due: DUE },
  ...part,
});
const left: Story['left'] = {
  over: new Map([
    ['a', 'done'],
    ['b', 'done'],
  ]),
  ...{ scheduled: 0, entries: 0, pending: 0, runs: 0, letters: 0, crashed: 0, reclaimed: 0 },
};
const good: Story = {
  planned: new Map([
    ['a', DUE],
    ['b', DUE],
  ]),
  effects: [effect('start', 'a'), effect('end', 'a'), effect('start', 'b'), effect('end', 'b')],
  kills: [],
  left,
};
/** Job b was running on a worker that was killed, and ran again. */
const survived: Story = {
  ...good,
  effects: [...good.effects.slice(0, 3), effect('start', 'b', { token: '101', crashes: 1 }), effect('end', 'b')],
  kills: [{ running: 1, left: { entries: 2, started: 1 } }],
  left: { ...left, crashed: 1, reclaimed: 2 },
};

describe('a story is good when', () => {
  test('every job ran once, and nothing is left', () => {
    expect(judge(good)).toEqual([]);
  });

  test('what was running on a killed worker ran again', () => {
    expect(judge(survived)).toEqual([]);
    expect(duplicatesIn(survived.effects)).toBe(1);
  });
});

describe('a story is bad when', () => {
  const bad: readonly (readonly [string, Story, readonly string[]])[] = [
    ['an end is missing', { ...good, effects: good.effects.slice(0, 3) }, ['lost: b never ended']],
    [
      'a job is dead',
      { ...good, left: { ...left, letters: 1, over: new Map([...left.over, ['b', 'dead']]) } },
      ['lost: b is dead instead of done', 'stuck: 1 in letters'],
    ],
    [
      'Redis does not know that a job is over',
      { ...good, left: { ...left, over: new Map([['a', 'done']]) } },
      ['lost: b is not over instead of done'],
    ],
    [
      'something ran that nobody scheduled',
      { ...good, effects: [...good.effects, effect('start', 'c'), effect('end', 'c')] },
      ['strange: c ran and was never scheduled'],
    ],
    [
      'a start predates its due by a millisecond',
      { ...good, effects: good.effects.map((one) => (one.id === 'a' ? { ...one, ms: DUE - 1 } : one)) },
      ['early: a started 1 ms before its due'],
    ],
    [
      'a start predates the due that was asked for',
      { ...good, planned: new Map([...good.planned, ['a', DUE + 5]]) },
      ['early: a started 5 ms before its due'],
    ],
    [
      'a token came back',
      {
        ...survived,
        effects: survived.effects.map((one) => ({ ...one, token: '100' })),
      },
      ['token: b started with 100 after 100'],
    ],
    [
      'more ran twice than was running at the kills',
      { ...survived, kills: [{ running: 0, left: { entries: 2, started: 1 } }] },
      ['duplicates: 1 starts too many, and 0 jobs ran when something was killed'],
    ],
    [
      'anything is left anywhere',
      { ...good, left: { ...left, scheduled: 1, entries: 3, pending: 2, runs: 2 } },
      ['stuck: 1 in scheduled', 'stuck: 3 in entries', 'stuck: 2 in pending', 'stuck: 2 in runs'],
    ],
    [
      'a crash was not counted',
      { ...survived, left: { ...survived.left, crashed: 0 } },
      [
        'crashes: 1 jobs were running on what was killed, and 0 crashes were counted',
        'crashes: 1 crashes were told to handlers, and 0 crashes were counted',
      ],
    ],
    [
      'more was taken over than the dead had held',
      { ...survived, left: { ...survived.left, reclaimed: 3 } },
      ['crashes: 2 entries lost their consumer, and 3 reclaims were counted'],
    ],
  ];
  test.each(bad)('%s', (_, story, verdict) => {
    expect(judge(story)).toEqual(verdict);
  });

  test('but takeovers are not counted where Redis itself was killed', () => {
    const story = { ...good, kills: [{ running: 5, left: undefined }], left: { ...left, reclaimed: 1 } };
    expect(judge(story)).toEqual([]);
  });
});
