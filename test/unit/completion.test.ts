/** What a shell is told may stand where the cursor is. */
import { describe, expect, test } from 'vitest';
import { createProgram } from '../../src/cli/cli.ts';
import { candidatesOf } from '../../src/cli/completion.ts';

const program = createProgram({ run: async () => undefined });
const queues = ['emails', 'invoices'];
let asked = 0;

/** The words of a line behind `duestream`; the last one is being written. */
async function at(line: string): Promise<readonly string[] | 'files'> {
  asked = 0;
  const found = await candidatesOf(program, line.split(' '), async () => {
    asked += 1;
    return queues;
  });
  return found === 'files' ? found : found.map(({ word }) => word);
}

describe('a verb', () => {
  test.each([
    ['rem', []],
    ['resch', ['reschedule']],
    ['queues p', ['pause']],
    ['queues re', ['resume']],
    ['dead re', ['replay']],
    ['--json queues p', ['pause']],
    ['--redis queues wor', ['worker', 'workers']],
  ])('%s', async (line, words) => {
    expect(await at(line)).toEqual(words);
    expect(asked).toBe(0);
  });

  test('all of them, with what they do', async () => {
    const found = await candidatesOf(program, [''], async () => queues);
    const names = program.commands.map((command) => command.name());
    expect(names.length).toBeGreaterThan(15);
    expect(found).toEqual([
      ...program.commands.map((command) => ({ word: command.name(), about: command.description() })),
      { word: 'help', about: 'show help' },
    ]);
  });
});

test('a queue is asked for where one is meant, and only there', async () => {
  expect(await at('ls ')).toEqual(queues);
  expect(await at('show inv')).toEqual(['invoices']);
  expect(asked).toBe(1);
  expect(await at('schedules forecast --queue e')).toEqual(['emails']);
  expect(await at('show invoices inv')).toEqual([]);
  expect(asked).toBe(0);
});

test('a flag: those of the verb and of all verbs, but none that stands there already', async () => {
  expect(await at('schedules forecast --')).toEqual(
    expect.arrayContaining(['--until', '--by', '--json', '--redis', '--help']),
  );
  expect(await at('schedules forecast --json --js')).toEqual([]);
  expect(await at('schedules forecast --limit-that-is-not-there --unt')).toEqual(['--until']);
});

test('the value of a flag: its choices, a file, or nothing that we know', async () => {
  expect(await at('schedules forecast --by ')).toEqual(['minute', 'hour', 'auto']);
  expect(await at('schedules forecast --by=hour --unt')).toEqual(['--until']);
  expect(await at('--config ')).toBe('files');
  expect(await at('schedule q --bulk ')).toBe('files');
  expect(await at('schedules forecast --until ')).toEqual([]);
});

test('an argument that is a file or has choices', async () => {
  expect(await at('worker ')).toBe('files');
  expect(await at('admin completion ')).toEqual(['bash', 'zsh', 'fish']);
});
