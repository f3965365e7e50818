/** What the judge of the bench `kept` makes of what producers were told and handlers did. */
import { expect, test } from 'vitest';
import { figuresOf } from '../../bench/kept/judge.mjs';

type Event = Parameters<typeof figuresOf>[0]['calls'][number];

const DUE = 1_800_000_000_000;

const event = (ev: string, id: string, ms = 0): Event => ({
  ev,
  id,
  us: ms * 1000,
  ms: DUE + ms,
  actor: 'a',
  pid: 1,
  due: DUE,
});

const calls = ['a', 'b', 'c'].flatMap((id) => [event('enq.call', id), event('enq.ok', id)]);
const ran = (id: string, ms: number) => [event('start', id, ms), event('effect', id, ms + 1)];

test('a system that does all once has kept all', () => {
  const effects = ['a', 'b', 'c'].flatMap((id, nth) => ran(id, nth));
  expect(figuresOf({ calls, effects })).toEqual({
    ...{ asked: 3, taken: 3, done: 3, lost: 0, again: 0, twice: 0, early: 0, unasked: 0 },
    lateMaxMs: 2,
  });
});

test('what is lost, comes twice, early or unasked is counted', () => {
  const effects = [...ran('a', -5), ...ran('a', 7), event('start', 'b', 9), ...ran('d', 3)];
  const figures = figuresOf({ calls, effects });
  expect(figures).toMatchObject({ lost: 2, again: 1, twice: 1, early: 1, unasked: 1, lateMaxMs: 9 });
});

test('a call that was never answered took nothing, and its due time is known all the same', () => {
  const open = [event('enq.call', 'a'), { ...event('enq.unknown', 'a'), due: undefined }].map(({ due, ...rest }) =>
    due === undefined ? rest : { ...rest, due },
  );
  expect(figuresOf({ calls: open, effects: [] })).toMatchObject({ asked: 1, taken: 0, lost: 0 });
  expect(figuresOf({ calls: open, effects: ran('a', -1) })).toMatchObject({ early: 1 });
});
