/** A file of schedules is judged as a whole: what is wrong is named with file, schedule and field. */
import { describe, expect, test } from 'vitest';
import { definitionIn, loadScheduleFile, schedulesIn } from '../../src/config/file.ts';
import { DuestreamError } from '../../src/kernel/errors.ts';

const nowMs = Date.UTC(2026, 2, 1);
const read = (text: string) => schedulesIn(text, { file: 's.yaml', nowMs });

function refused(act: () => unknown): { readonly code: string; readonly message: string } {
  try {
    act();
  } catch (error) {
    if (error instanceof DuestreamError) return { code: error.code, message: error.message };
    throw error;
  }
  throw new Error('it was not refused');
}

describe('a file of schedules', () => {
  test('gives every schedule by its name, dates and times of day as they were written', () => {
    const found = read(`
schedules:
  nightly:
    queue: reports
    cron: 30 2 * * *
    start: 2026-03-01T09:00
    calendar: { outside: next, skip: [12-25, 2026-12-24], hours: { mon-fri: [09:00-12:00, 13:00-17:00] } }
  poll: { queue: feeds, every: 5m }
`);
    expect([...found.keys()]).toEqual(['nightly', 'poll']);
    expect(found.get('nightly')).toMatchObject({
      start: '2026-03-01T09:00',
      calendar: { skip: ['12-25', '2026-12-24'] },
    });
  });

  test('may have none below its heading', () => {
    expect(read('schedules:\n').size).toBe(0);
  });

  test.each([
    [
      'a field outside its values',
      'schedules: { a: { queue: q, every: 1h, overlap: some } }',
      'schedule a: overlap is "some"',
    ],
    [
      'an unknown field',
      'schedules: { a: { queue: q, every: 1h, zonee: UTC } }',
      'schedule a: zonee is not an option of a schedule; did you mean zone?',
    ],
    ['a rule without an instant', 'schedules: { a: { queue: q, cron: 0 0 30 2 * } }', 'schedule a: cron is'],
    ['a name outside the grammar', 'schedules: { "a b": { queue: q, every: 1h } }', 'schedule name is "a b"'],
    ['a schedule without fields', 'schedules: { a: 7 }', 'schedule a is 7'],
    ['a list', 'schedules: [a]', 'schedules in s.yaml is an array'],
    [
      'two of one name',
      'schedules:\n  a: { queue: q, every: 1h }\n  a: { queue: q, every: 2h }',
      'Map keys must be unique',
    ],
    ['another heading', 'jobs: {}', 's.yaml holds "jobs"'],
    ['nothing at all', '', 's.yaml holds null'],
    ['no YAML', 'schedules: [', 's.yaml is not valid YAML'],
  ])('with %s is refused', (_, text, message) => {
    expect(refused(() => read(text))).toEqual({ code: 'bad-config', message: expect.stringContaining(message) });
  });

  test('says how much more is wrong', () => {
    const text = 'schedules: { a: { queue: q }, b: { queue: q, every: 1h }, c: {} }';
    expect(refused(() => read(text)).message).toMatch(/^s\.yaml: schedule a: .*; and 1 more that cannot be read$/);
  });

  test('that is not there is named with the option', () => {
    const { code, message } = refused(() => loadScheduleFile('none.yaml', { cwd: '/nowhere', nowMs }));
    expect({ code, message }).toEqual({
      code: 'bad-config',
      message: expect.stringMatching(/^schedules\.file names ".*none\.yaml"/),
    });
  });
});

test('one definition is the whole file, or what the file has under its name', () => {
  const one = (text: string) => definitionIn(text, { name: 'a', file: '-' });
  expect(one('{"queue":"q","every":"1h"}')).toEqual({ queue: 'q', every: '1h' });
  expect(one('schedules: { a: { queue: q, every: 2h } }')).toEqual({ queue: 'q', every: '2h' });
  expect(refused(() => one('schedules: { b: {} }')).message).toContain('has no schedule "a"');
  expect(refused(() => one('[1]'))).toEqual({ code: 'bad-input', message: expect.stringContaining('an array') });
});
