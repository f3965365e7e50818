/** `plan`: what a person sees, what a program gets, and what is refused. It needs no Redis. */
import { describe, expect, test } from 'vitest';
import { benchFigures } from '../../../src/inspect/bench-figures.ts';
import { runHere } from '../../support/console.ts';
import { read } from '../../support/repository.ts';

const NEEDED = ['--jobs', '10M', '--payload', '200', '--rate', '2000'];
/** Nothing listens there. */
const NOWHERE = ['--redis', 'redis://127.0.0.1:1'];
const plan = (...args: readonly string[]) => runHere(['admin', 'plan', ...args, ...NOWHERE]);

test('shows the arithmetic, one line for each thing, without a Redis', async () => {
  const { code, out } = await plan(...NEEDED, '--workers', '20');
  const lines = out.trimEnd().split('\n');
  expect(code).toBe(0);
  expect(lines.map((text) => /^(Redis CPU|worker CPU|daemon CPU|\S+)/.exec(text)?.[1])).toEqual([
    ...[
      'pending',
      'running',
      'ready',
      'ends',
      'dead',
      'memory',
      'Redis CPU',
      'worker CPU',
      'daemon CPU',
      'partitions',
      'workers',
    ],
    ...['connections', 'CPU'],
  ]);
  expect(lines[0]).toMatch(/^pending +\d[\d.]* GiB {2}10,000,000 × \d+ B: member and due time \d+, record \d+ /);
  expect(lines[11]).toContain('2 × (20 workers + 2 daemons) + 1 producer;');
  expect(Math.max(...lines.map((text) => text.length))).toBeLessThan(170);
});

test('says what the page on sizes shows', async () => {
  const page = read('docs/how-to/sizing.md');
  const [, command = '', shown = ''] = /```sh\nduestream admin plan (.*)\n```\n+```\n([\s\S]*?)…\n```/.exec(page) ?? [];
  const { out } = await plan(...command.split(' '));
  expect(shown.split('\n').length).toBeGreaterThan(6);
  expect(out.startsWith(shown)).toBe(true);
});

test('says as JSON what the lines say', async () => {
  const { code, out } = await plan(...NEEDED, '--json');
  const answer = JSON.parse(out);
  expect(code).toBe(0);
  expect(answer).toMatchObject({ partitions: 1, connections: expect.any(Number), warnings: [] });
  expect(answer.maxmemoryBytes).toBeGreaterThan(answer.memoryBytes);
  expect(answer.workers).toBe(answer.workersNeeded);
  expect(answer.steps).toHaveLength(12);
});

test('says what a month costs where commands are paid, at rest with each profile and for the jobs', async () => {
  const load = ['--jobs', '100k', '--payload', '200', '--rate', '1', '--daemons', '1', '--price', '0.20/100k'];
  const { out } = await plan(...load);
  const lines = out.split('\n');
  expect(lines.find((text) => text.startsWith('idle '))).toMatch(/^idle +[\d.]+ {2}a month at rest, profile default: /);
  expect(lines.find((text) => text.startsWith('quiet '))).toMatch(/^quiet +[\d.]+ {2}a month at rest, profile quiet: /);
  expect(lines.find((text) => text.startsWith('jobs '))).toMatch(/^jobs +[\d.]+ {2}a month of 1\/s × \(schedule /);
  const { bill } = JSON.parse((await plan(...load, '--json')).out);
  const resting = benchFigures.idle.find(({ profile, partitions }) => profile === 'quiet' && partitions === 1);
  const commands = (resting?.commandsPerSecond ?? 0) * 30 * 86_400;
  expect(bill.idle.quiet.commands).toBeCloseTo(commands, 3);
  expect(bill.idle.quiet.money).toBeCloseTo((commands / 100_000) * 0.2, 6);
  expect(bill.idle.default.money).toBeGreaterThan(bill.idle.quiet.money);
});

test('warns of too few workers and of too much for one Redis, and ends with 0', async () => {
  const { code, out } = await plan('--jobs', '1', '--payload', '0', '--rate', '1M', '--workers', '1');
  expect(code).toBe(0);
  expect(out).toMatch(/^warning: .* split the queues over several Redis$/m);
  expect(out).toMatch(/^warning: 1 worker where this load needs \d+/m);
});

describe('bad input is refused with what is allowed:', () => {
  test.each([
    [['--jobs', 'many'], 'Allowed: a whole number from 1 to 10000000000, also as 250k, 10M or 1G'],
    [['--jobs', '0'], 'Allowed: a whole number from 1'],
    [['--payload', '17MiB'], 'Allowed: 0 to 16 MiB, as 200, 4KiB or 1.5kB'],
    [['--rate', '-1'], 'Allowed: a whole number from 1 to 10000000'],
    [['--workers', '0'], 'Allowed: a whole number from 1 to 10000'],
    [['--handler', 'soon'], 'soon'],
    [['--price', '0.20'], 'Allowed: an amount of money for a number of commands, as 0.20/100k'],
    [['--id', '129'], 'Allowed: a whole number from 1 to 128'],
  ])('%j', async (wrong, allowed) => {
    const { code, err } = await plan(...NEEDED, ...wrong);
    expect([code, err]).toEqual([64, expect.stringContaining(allowed)]);
  });

  test('a load without its rate', async () => {
    const { code, err } = await plan('--jobs', '1', '--payload', '1');
    expect([code, err]).toEqual([64, expect.stringContaining("'--rate <n>'")]);
  });
});
