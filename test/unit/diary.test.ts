/** The times within which something held, as the entries of a diary tell them. */
import { expect, test } from 'vitest';
import { type DiaryEntry, diaryEntry, intervalsOf } from '../../src/job/diary.ts';

/** `12 paused by=ada`: an entry of the second 12; times are in seconds. */
function entryOf(line: string): DiaryEntry {
  const [second = '', what = '', ...said] = line.split(' ');
  const fields = said
    .map((one) => one.split('='))
    .map(([name = '', value = '']): [string, string] => [name, ms(name, value)]);
  const entry = diaryEntry(`${second}000-0`, new Map([['what', what], ...fields]));
  if (!entry) throw new Error(line);
  return entry;
}
const ms = (name: string, value: string) => (['from', 'until'].includes(name) ? `${value}000` : value);

const seconds = (time: number | undefined) => (time === undefined ? '?' : time / 1000);
const told = (...lines: string[]) =>
  intervalsOf(lines.map(entryOf)).map(({ what, group, by, fromMs, toMs }) =>
    [what, group, `${seconds(fromMs)}-${seconds(toMs)}`, by].filter(Boolean).join(' '),
  );

test.each<[string, string[], string[]]>([
  ['a pause lasts until it is resumed', ['1 paused by=ada', '5 resumed by=bob from=1'], ['paused 1-5 ada']],
  ['a pause without an end holds', ['1 paused'], ['paused 1-?']],
  ['a pause that is told twice is one', ['1 paused by=ada', '2 paused by=eve', '5 resumed'], ['paused 1-5 ada']],
  ['an end says since when a pause held that nobody told', ['5 resumed from=2'], ['paused 2-5']],
  ['an end alone tells no beginning', ['5 resumed'], ['paused ?-5']],
  ['a closing ends at its time', ['1 closed until=9'], ['closed 1-9']],
  ['a closing ends when it is opened', ['1 closed until=9', '4 opened'], ['closed 1-4']],
  ['opening what is over changes nothing', ['1 closed until=3', '4 opened'], ['closed 1-3']],
  ['opening what nobody told of tells nothing', ['4 opened'], []],
  ['a closing is prolonged while it holds', ['1 closed until=5 by=ada', '3 closed until=9'], ['closed 1-9 ada']],
  ['a closing after its end is another', ['1 closed until=3', '4 closed until=9'], ['closed 1-3', 'closed 4-9']],
  ['a prolonged closing begins where the first did', ['3 closed until=9 from=1'], ['closed 1-9']],
  [
    'groups close apart from each other and from their queue',
    ['1 closed until=9 group=a', '2 closed until=8', '3 opened group=a'],
    ['closed a 1-3', 'closed 2-8'],
  ],
  ['nobody leads from a resignation to an election', ['1 resigned by=m1', '4 elected by=m2'], ['leaderless 1-4 m1']],
  ['a leader that died is missed since its last sign of life', ['4 elected from=2'], ['leaderless 2-4']],
  ['a first election tells no beginning', ['4 elected'], ['leaderless ?-4']],
  ['a queue is without a worker until one comes', ['3 unserved from=1', '9 served from=1'], ['unserved 1-9']],
  ['a change of settings is no time', ['3 set by=ada after={"rate":"5/s"}'], []],
])('%s', (_, lines, expected) => {
  expect(told(...lines)).toEqual(expected);
});

test('an entry says which settings were others, and one that nobody can read says nothing', () => {
  expect(entryOf('3 set by=ada before={"rate":"9/s"} after={"rate":"5/s"}')).toMatchObject({
    by: 'ada',
    before: { rate: '9/s' },
    after: { rate: '5/s' },
  });
  expect(entryOf('3 set after={')).toMatchObject({ after: undefined });
  expect(diaryEntry('1-0', new Map([['what', 'moved']]))).toBeUndefined();
});
