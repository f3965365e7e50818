/** What a newcomer types wrongly, verb by verb: each refusal names what was given and the nearest thing that exists. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import packageJson from '../../../package.json' with { type: 'json' };
import { createProgram, everyCommand } from '../../../src/cli/cli.ts';
import { optionNames } from '../../../src/job/fields.ts';
import { runHere } from '../../support/console.ts';
import { usePartition } from '../../support/partition.ts';

const the = usePartition();
const say = (args: readonly string[]) => runHere([...args, '--redis', the.server.url, '--namespace', 't']);
const commands = everyCommand(createProgram({ run: async () => undefined }));
const pathOf = (command: (typeof commands)[number]): readonly string[] =>
  command.parent ? [...pathOf(command.parent), command.name()] : [];
const levels = commands.map((command) => [['duestream', ...pathOf(command)].join(' '), pathOf(command)] as const);

describe('on every level', () => {
  test.each(levels)('%s -h is --help', async (_, path) => {
    const short = await runHere([...path, '-h']);
    expect(short).toEqual({ ...(await runHere([...path, '--help'])), code: 0, err: '' });
    expect(short.out).toContain(`Usage: ${['duestream', ...path].join(' ')}`);
    expect(short.out).toContain('-h, --help');
  });

  test.each(levels)('%s -v, -V and --version print the version', async (_, path) => {
    for (const flag of ['-v', '-V', '--version']) {
      expect(await runHere([...path, flag])).toEqual({ code: 0, out: `${packageJson.version}\n`, err: '' });
    }
  });
});

describe('a queue that is misspelt is told with the nearest one', () => {
  beforeEach(async () => {
    for (const queue of ['emails', 'orders']) expect((await say(['schedule', queue])).code).toBe(0);
  });

  test.each([
    ['ls emial'],
    ['show emial a'],
    ['cancel emial a'],
    ['dead ls emial'],
    ['dead show emial 1-0'],
    ['dead replay emial 1-0'],
    ['dead purge emial --yes'],
    ['queues show emial'],
    ['queues pause emial'],
    ['queues resume emial'],
    ['queues rm emial'],
    ['queues leaders emial'],
    ['queues workers --queue emial'],
    ['doctor emial'],
    ['schedules forecast --queue emial'],
  ])('%s', async (line) => {
    const { code, out, err } = await say(line.split(' '));
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toMatch(/queue "?emial"? was never used.*; did you mean emails\? "duestream queues ls" lists those/);
  });

  test('by schedules ls too, which else only says that there is none', async () => {
    expect((await say(['schedules', 'ls', '--queue', 'emial'])).out).toBe(
      'there is no schedule of queue emial; did you mean emails?\n',
    );
    expect((await say(['schedules', 'ls', '--queue', 'orders', '--tag', 'x'])).out).toBe(
      'there is no schedule of queue orders with tag x\n',
    );
  });

  test('by schedule, which makes it a new queue', async () => {
    const { code, out, err } = await say(['schedule', 'emial', '--id', 'a']);
    expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/^a {2}scheduled/) });
    expect(err).toBe('queue emial is new; did you mean emails?\n');
    expect((await say(['schedule', 'emial', '--id', 'b'])).err).toBe('');
    expect((await say(['schedule', 'payments'])).err).toBe('');
    expect((await say(['schedule', 'ordres', '--json'])).err).toBe('');
  });
});

describe('a schedule that is misspelt is told with the nearest one', () => {
  beforeEach(() => say(['schedules', 'put', 'nightly', '--queue', 'q', '--cron', '30 2 * * *']));

  test.each([
    ['schedules show nightli'],
    ['schedules preview nightli'],
    ['schedules pause nightli'],
    ['schedules resume nightli'],
    ['schedules trigger nightli'],
    ['schedules backfill nightli --from -2d --to now'],
  ])('%s', async (line) => {
    const { code, out, err } = await say(line.split(' '));
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toBe(
      'duestream: there is no schedule "nightli"; did you mean nightly? "duestream schedules ls" lists those that are\n',
    );
  });

  test('schedules rm nightli', async () => {
    const { code, out } = await say(['schedules', 'rm', 'nightli']);
    expect({ code, out }).toEqual({
      code: 1,
      out: expect.stringContaining('there is no schedule "nightli"; did you mean nightly?'),
    });
  });

  test('and one that is like no other without a guess', async () => {
    expect((await say(['schedules', 'show', 'weekly-report'])).err).toBe(
      'duestream: there is no schedule "weekly-report"; "duestream schedules ls" lists those that are\n',
    );
  });
});

describe('a usage error', () => {
  test.each([
    ['a verb', ['schedle', 'emails'], "unknown command 'schedle'; did you mean schedule?", 'duestream --help'],
    ['a verb of a group', ['queues', 'lss'], "unknown command 'lss'; did you mean ls?", 'duestream queues --help'],
    [
      'a verb with --help',
      ['schedle', '--help'],
      "unknown command 'schedle'; did you mean schedule?",
      'duestream --help',
    ],
    [
      'a verb of a group with -h, behind flags',
      ['--redis', 'redis://nowhere', 'queues', 'lss', '-h'],
      "unknown command 'lss'; did you mean ls?",
      'duestream queues --help',
    ],
    ['a topic of help', ['help', 'lss'], "unknown command 'lss'; did you mean ls?", 'duestream --help'],
    [
      'a topic in a group',
      ['dead', 'help', 'sho'],
      "unknown command 'sho'; did you mean show?",
      'duestream dead --help',
    ],
    ['a flag', ['doctor', '--repar'], "unknown option '--repar'; did you mean --repair?", 'duestream doctor --help'],
    [
      'a state',
      ['ls', 'q', '--state', 'redy'],
      "argument 'redy' is invalid; did you mean ready? Allowed choices are scheduled, waiting,",
      'duestream ls --help',
    ],
    [
      'a choice that is like none',
      ['schedules', 'forecast', '--by', 'fortnight'],
      "argument 'fortnight' is invalid. Allowed choices are minute, hour, auto.",
      'duestream schedules forecast --help',
    ],
    [
      'a queue as a flag',
      ['queues', 'leaders', '--queue', 'emails'],
      "unknown option '--queue'; queue is an argument: duestream queues leaders [queue]",
      'duestream queues leaders --help',
    ],
    [
      'a queue as an argument',
      ['queues', 'workers', 'emails'],
      "too many arguments for 'workers'. Expected 0 arguments but got 1; a queue is a flag: --queue <name>",
      'duestream queues workers --help',
    ],
    ['no queue', ['queues', 'show'], "missing required argument 'queue'", 'duestream queues show --help'],
    [
      'a schedule without a queue',
      ['schedules', 'put', 'x', '--cron', '30 2 * * *'],
      '--queue is missing; a schedule needs --queue, and --cron or --every; or --file with all of it',
      'duestream schedules put --help',
    ],
    [
      'a schedule without a rule',
      ['schedules', 'put', 'x', '--queue', 'q'],
      'schedule x: neither cron nor every is given; allowed: one of them',
      'duestream schedules put --help',
    ],
  ])('%s', async (_, args, message, next) => {
    const { code, out, err } = await say(args);
    const [first, second, ...rest] = err.split('\n');
    expect({ code, out, rest, second }).toEqual({ code: 64, out: '', rest: [''], second: `next: ${next}` });
    expect(first).toContain(message);
  });

  test('leaves nothing behind: no queue is declared, no schedule is put', async () => {
    await say(['schedules', 'put', 'x', '--cron', '30 2 * * *']);
    await say(['ls', 'emial']);
    expect(await the.redis.keys('*')).toEqual([]);
  });
});

test('schedule has a flag for every option of the library', () => {
  const schedule = commands.find((command) => command.name() === 'schedule');
  expect(schedule?.options.map((option) => option.attributeName())).toEqual(
    // A flag that may be given several times is named by one of its words.
    expect.arrayContaining([
      'data',
      ...optionNames.map((name) => (name === 'tags' || name === 'headers' ? name.slice(0, -1) : name)),
    ]),
  );
});

test('dev without a Redis anywhere says what was tried, and how to get one', async () => {
  const cwd = mkdtempSync(join(tmpdir(), 'due-dev-'));
  const { code, err } = await runHere(['dev'], { cwd, env: { PATH: '', HOME: cwd } });
  rmSync(cwd, { recursive: true });
  expect(code).toBe(69);
  expect(err).toContain('neither redis-server nor valkey-server is on PATH');
  for (const remedy of ['--redis redis://', 'brew install redis', 'docker run', 'apt-get install'])
    expect(err).toContain(remedy);
  // The usual next step is `duestream dev`, which has just failed.
  expect(err).not.toContain('duestream dev');
});
