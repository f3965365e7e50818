/** Dead letters go for ever, by age and reason, as many as asked for. */
import { beforeEach, expect, test } from 'vitest';
import { declareQueue } from '../../../src/redis/scripts/queues.ts';
import { useCli } from '../../support/cli.ts';
import { usePartition } from '../../support/partition.ts';

const cli = useCli();
const the = usePartition();
const DAY_MS = 86_400_000;

beforeEach(async () => {
  await declareQueue(the.redis, { namespace: 't', queue: 'q', partitions: 1 });
});

const purge = (...args: readonly string[]) =>
  cli.run(['dead', 'purge', 'q', ...args, '--redis', the.server.url, '--namespace', 't']);
const left = () => the.redis.xlen(the.keys.dead);

/** A dead letter of a job that is not there any more, `days` old. */
async function deadLetter(days: number, reason = 'attempts-exhausted'): Promise<void> {
  const at = Date.now() - days * DAY_MS;
  await the.redis.xadd(the.keys.dead, `${at}-*`, 'member', `j:${at}`, 'record', '1a|{}', 'reason', reason);
}

test('dead letters of an age and a reason go, the others stay', async () => {
  for (const days of [9, 8]) await deadLetter(days);
  await deadLetter(7.5, 'no-handler');
  await deadLetter(1);
  expect(await purge('--older-than', '7d', '--reason', 'no-handler', '--yes')).toEqual({
    code: 0,
    out: '1 dead letter removed\n',
    err: '',
  });
  const { out } = await purge('--older-than', '7d', '--yes', '--json');
  expect(JSON.parse(out)).toEqual({ queue: 'q', dryRun: false, removed: 2, looked: 2, more: false });
  expect(await left()).toBe(1);
});

test('a dry run counts and touches nothing', async () => {
  for (const days of [9, 8, 1]) await deadLetter(days);
  const dryRun = () => purge('--older-than', '7d', '--dry-run');
  expect((await the.withoutWrite(dryRun)).out).toBe('2 dead letters would be removed, of 2 checked\n');
  const { out } = await purge('--dry-run', '--json');
  expect(JSON.parse(out)).toEqual({ queue: 'q', dryRun: true, matched: 3, looked: 3, more: false });
});

test('a limit ends the run, and the next goes on where it stopped, with the cursor or without', async () => {
  for (const days of [5, 4, 3, 2]) await deadLetter(days);
  const limited = await purge('--limit', '2', '--yes');
  expect(limited.out).toMatch(/^2 dead letters removed\nthere may be more; go on with\n--cursor [\w-]+\n$/);
  const [, cursor = ''] = /--cursor (\S+)/.exec(limited.out) ?? [];
  // It died after the first run had begun.
  await deadLetter(0);
  const { out } = await purge('--limit', '1', '--yes', '--cursor', cursor, '--json');
  expect(JSON.parse(out)).toMatchObject({ removed: 1, more: true, cursor: expect.any(String) });
  expect((await purge('--yes', '--cursor', cursor)).out).toBe('1 dead letter removed\n');
  expect(await left()).toBe(1);
  expect((await purge('--yes', '--older-than', '1d', '--cursor', cursor)).err).toContain('the cursor is of another');
  expect((await purge('--yes')).out).toBe('1 dead letter removed\n');
});

test('thousands go in bounded batches, with progress on stderr', async () => {
  const pipeline = the.redis.pipeline();
  for (let nth = 1; nth <= 5050; nth += 1) pipeline.xadd(the.keys.dead, `1000-${nth}`, 'member', 'j:a', 'reason', 'x');
  await pipeline.exec();
  const { out, err } = await purge('--yes');
  expect(out).toBe('5050 dead letters removed\n');
  expect(err).toBe('5000 dead letters checked, 5000 removed\n');
  expect(await the.count('forgotten')).toBe(5050);
  const evals = /cmdstat_xdel:calls=(\d+)/.exec(await the.redis.info('commandstats'))?.[1];
  expect(Number(evals)).toBeGreaterThanOrEqual(51);
});

test('without a word of consent, or with both, nothing is touched and the end is 64', async () => {
  await deadLetter(9);
  for (const flags of [[], ['--dry-run', '--yes'], ['--older-than', 'a while', '--yes']]) {
    const { code, err } = await purge(...flags);
    expect(code).toBe(64);
    expect(err).toContain('next: duestream dead purge --help');
  }
  expect(await left()).toBe(1);
});
