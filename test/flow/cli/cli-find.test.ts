/** Finding jobs on the command line, and changing all that a filter means. */
import { beforeEach, describe, expect, test } from 'vitest';
import { partitionKeys } from '../../../src/redis/keys.ts';
import { declareQueue } from '../../../src/redis/scripts/queues.ts';
import { useCli } from '../../support/cli.ts';
import { usePartition } from '../../support/partition.ts';

const cli = useCli();
const p = usePartition();
const DAY_MS = 86_400_000;

beforeEach(async () => {
  await declareQueue(p.redis, { namespace: 't', queue: 'q', partitions: 1 });
});

const run = (args: readonly string[]) => cli.run([...args, '--redis', p.server.url, '--namespace', 't']);
const answer = async (args: readonly string[]) => JSON.parse((await run([...args, '--json'])).out);
const waits = (id: string, tags: readonly string[], dueMs = Date.now() + DAY_MS) =>
  p.schedule(id, { dueMs, data: { to: 'ada' }, late: { tags } });

async function some(): Promise<void> {
  for (const id of ['a', 'b', 'c']) await waits(id, ['user:42']);
  await waits('d', ['user:43'], Date.now() + 3 * DAY_MS);
}

describe('a tag', () => {
  test('is given to a job with --tag, more than once, and shown', async () => {
    await run(['schedule', 'q', '--id', 'x', '--delay', '1h', '--tag', 'user:42', '--tag', 'invoice']);
    expect((await run(['show', 'q', 'x'])).out).toContain('tags       invoice, user:42\n');
    expect(await answer(['show', 'q', 'x'])).toMatchObject({ options: { tags: ['invoice', 'user:42'] } });
    await run(['edit', 'q', 'x', '--tag', 'paid']);
    expect(await answer(['ls', 'q', '--tag', 'paid'])).toMatchObject({ jobs: [{ id: 'x', tags: ['paid'] }] });
    await run(['edit', 'q', 'x', '--unset', 'tag']);
    expect(await answer(['ls', 'q', '--count', '--tag', 'paid'])).toEqual({ queue: 'q', count: 0 });
    const refused = await run(['schedule', 'q', '--tag', 'a b']);
    expect([refused.code, refused.err]).toEqual([64, expect.stringContaining('tags: one is "a b"; allowed: 1 to 64')]);
  });

  test('of the jobs of a schedule is --job-tag', async () => {
    await run(['schedules', 'put', 'n', '--queue', 'q', '--every', '1h', '--job-tag', 'x', '--tag', 'team']);
    expect(await answer(['schedules', 'show', 'n'])).toMatchObject({ input: { tags: ['team'], jobTags: ['x'] } });
  });
});

describe('wait', () => {
  test('waits for jobs by id, and tells how each ended', async () => {
    await p.complete([await p.running('done')]);
    await p.dead('dead');
    await waits('late', ['user:42']);
    const done = await run(['wait', 'q', 'done']);
    expect([done.code, done.out]).toEqual([0, 'done  done\n']);
    const { code, out } = await run(['wait', 'q', 'done', 'dead', 'never', '--timeout', '1s']);
    expect([code, out]).toEqual([
      1,
      'done  done\ndead  dead: attempts\nnever  unknown: it never existed, or it ended long ago; "duestream show" says more\n',
    ]);
    const late = await run(['wait', 'q', 'late', '--timeout', '10ms']);
    expect([late.code, late.out]).toEqual([75, 'late  not over: the time is up\n']);
    expect(await answer(['wait', 'q', 'dead'])).toMatchObject({
      queue: 'q',
      ends: [{ id: 'dead', status: 'dead', reason: 'attempts' }],
    });
  });

  test('waits for all that a filter means, which may be cancelled meanwhile', async () => {
    await some();
    const waiting = run(['wait', 'q', '--tag', 'user:42', '--timeout', '1m']);
    await expect.poll(async () => (await p.redis.hlen(p.keys.runs)) === 3).toBe(true);
    for (const id of ['a', 'b', 'c']) await p.cancel(`j:${id}`);
    expect(await waiting).toMatchObject({ code: 1, out: 'a  cancelled\nb  cancelled\nc  cancelled\n' });
  });

  test.each([
    [['wait', 'q'], 'no job is named; allowed: ids, or a filter such as --tag'],
    [['wait', 'q', 'a', '--tag', 'x'], 'ids and a filter are both given'],
    [['wait', 'q', 'a', '--timeout', '2d'], 'timeout is "2d"; allowed: 0 to 1d'],
  ])('%s is refused', async (args, words) => {
    const { code, err } = await run(args);
    expect([code, err]).toEqual([64, expect.stringContaining(words)]);
  });
});

describe('ls', () => {
  test('lists by tag, name, id and due time, in 80 columns', async () => {
    await some();
    const { code, out } = await run(['ls', 'q', '--tag', 'user:42']);
    expect(code).toBe(0);
    expect(out).toMatch(/^id +state +name +due\na +scheduled +default +\d{4}-.*\)\nb +/);
    expect(out.split('\n').every((row) => row.length <= 80)).toBe(true);
    expect((await answer(['ls', 'q', '--due-from', '+2d', '--state', 'scheduled'])).jobs).toMatchObject([{ id: 'd' }]);
    expect((await answer(['ls', 'q', '--id-prefix', 'd'])).jobs).toMatchObject([{ id: 'd' }]);
    expect((await answer(['ls', 'q', '--name', 'other'])).jobs).toEqual([]);
  });

  test('goes on with a cursor', async () => {
    await some();
    const first = await answer(['ls', 'q', '--tag', 'user:42', '--limit', '2']);
    expect(first).toMatchObject({ jobs: [{ id: 'a' }, { id: 'b' }], scanned: 2 });
    const rest = await answer(['ls', 'q', '--tag', 'user:42', '--limit', '2', '--cursor', first.cursor]);
    expect(rest.jobs).toMatchObject([{ id: 'c' }]);
    expect((await run(['ls', 'q', '--tag', 'user:42', '--limit', '2'])).out).toContain(`--cursor ${first.cursor}\n`);
    expect((await run(['ls', 'q', '--tag', 'user:43', '--cursor', first.cursor])).err).toContain('of another filter');
  });

  test.each([
    [['ls', 'q', '--state', 'done', '--cursor', 'x'], 'the cursor that the call before replied'],
    [['ls', 'q', '--tag', 'x', '--state', 'dead'], 'tag is given, and q keeps no history of jobs that are over'],
    [['ls', 'q', '--due-from', 'soon'], '--due-from is "soon"'],
    [['cancel', 'q'], 'no job is named; give its id, or a filter such as --tag'],
    [['cancel', 'q', 'a', '--tag', 'x'], 'ids and a filter are both given'],
    [['cancel', 'q', '--tag', 'x'], 'see how many and which with --dry-run, or confirm with --yes'],
    [['cancel', 'q', '--tag', 'x', '--yes', '--dry-run'], 'see how many and which with --dry-run'],
    [['cancel', 'q', 'a', '--dry-run'], '--dry-run, --yes, --limit and --cursor go with a filter'],
    [['cancel', 'q', '--tag', 'x', '--yes', '--bare'], '--bare and --durability go with ids'],
  ])('%j is refused', async (args, message) => {
    const { code, err } = await run(args);
    expect([code, err]).toEqual([64, expect.stringContaining(message)]);
  });
});

describe('by filter', () => {
  test('cancel says how many and which, and cancels them once that is confirmed', async () => {
    await some();
    const dry = await run(['cancel', 'q', '--tag', 'user:42', '--dry-run']);
    expect(dry).toMatchObject({ code: 0, out: 'a\nb\nc\n3 jobs would be cancelled, of 3 looked at\n' });
    const limited = await answer(['cancel', 'q', '--tag', 'user:42', '--yes', '--limit', '1']);
    expect(limited).toMatchObject({ matched: 1, changed: 1, requested: 0, ids: ['a'] });
    const done = await run(['cancel', 'q', '--tag', 'user:42', '--yes', '--cursor', limited.cursor]);
    expect(done).toMatchObject({ code: 0, out: '2 jobs matched, 2 cancelled\n' });
    expect((await run(['ls', 'q', '--count'])).out).toBe('1\n');
  });

  test('goes on with what +1d meant when it began, and one due time for all', async () => {
    await some();
    const where = ['--due-from', 'now', '--due-to', '+2d', '--yes', '--limit', '2'];
    const first = await answer(['reschedule', 'q', ...where, '--delay', '9d']);
    expect(first).toMatchObject({ changed: 2 });
    const rest = await answer(['reschedule', 'q', ...where, '--delay', '9d', '--cursor', first.cursor]);
    expect(rest).toMatchObject({ matched: 1, changed: 1 });
    const { jobs } = await answer(['ls', 'q', '--tag', 'user:42']);
    expect(new Set(jobs.map(({ dueMs }: { dueMs: number }) => dueMs)).size).toBe(1);
    const other = await run(['reschedule', 'q', ...where, '--delay', '8d', '--cursor', first.cursor]);
    expect([other.code, other.err]).toEqual([64, expect.stringContaining('another change')]);
    const page = await answer(['ls', 'q', '--due-to', '+30d', '--limit', '2']);
    const next = await answer(['ls', 'q', '--due-to', '+30d', '--limit', '2', '--cursor', page.cursor]);
    expect([...page.jobs, ...next.jobs]).toHaveLength(4);
  });

  test('reschedule, also to now, and edit change those that wait', async () => {
    await some();
    const where = ['--tag', 'user:42', '--yes'];
    expect(await run(['reschedule', 'q', ...where, '--delay', '9d'])).toMatchObject({
      code: 0,
      out: '3 jobs matched, 3 rescheduled\n',
    });
    expect(await run(['reschedule', 'q', ...where, '--delay', '10d', '--only', 'earlier'])).toMatchObject({
      code: 0,
      out: '3 jobs matched, 0 rescheduled\n3 skipped: kept by --only\n',
    });
    const edited = ['edit', 'q', '--where-tag', 'user:42', '--tag', 'user:44', '--attempts', '2', '--yes'];
    expect(await run(edited)).toMatchObject({ code: 0, out: '3 jobs matched, 3 edited\n' });
    expect(await run(['reschedule', 'q', '--now', '--tag', 'user:44', '--yes'])).toMatchObject({
      code: 0,
      out: '3 jobs matched, 3 due now\n',
    });
  });
});

describe('ls of all queues', () => {
  test('has their jobs by due time, of all or of those that are named', async () => {
    await run(['schedule', 'other', '--id', 'x', '--delay', '2d', '--tag', 'user:42']);
    await some();
    const rows = async (args: readonly string[]) =>
      (await answer(['ls', ...args])).jobs.map(({ queue, id }: { queue: string; id: string }) => `${queue} ${id}`);
    expect(await rows(['--tag', 'user:42'])).toEqual(['q a', 'q b', 'q c', 'other x']);
    expect(await rows(['q', 'other', '--due-from', '+36h'])).toEqual(['other x', 'q d']);
    expect(await rows(['--id', 'x'])).toEqual(['other x']);
    expect(await rows(['q', '--sort', 'due'])).toHaveLength(4);
    const first = await answer(['ls', '--limit', '1', '--due-to', '+3d']);
    expect(await rows(['--due-to', '+3d', '--cursor', first.cursor])).not.toContain('q a');
    const { out } = await run(['ls', '--tag', 'user:42']);
    expect(out).toMatch(/^queue +id +state +name +due\nq +a +scheduled +default +/);
    expect((await run(['ls', '--tag', 'none'])).out).toBe('no such jobs among 0 looked at\n');
    expect((await run(['ls', '--count'])).err).toContain('--count goes with one queue');
    expect((await run(['ls', 'q', 'nope'])).code).toBe(1);
    expect((await run(['ls', '--ran-from', '1h'])).err).toContain('--ran-from is "1h"');
  });
});

describe('ls where not all queues answer', () => {
  test('ends with 1, because jobs may be missing', async () => {
    await some();
    await declareQueue(p.redis, { namespace: 't', queue: 'bad', partitions: 1 });
    await p.redis.set(partitionKeys({ namespace: 't', queue: 'bad', partition: 0 }).scheduled, 'a person did this');
    const { code, out } = await run(['ls', '--state', 'scheduled']);
    expect(code).toBe(1);
    expect(out).toContain('queue bad could not be read: ');
    expect(out).toMatch(/^q +a +scheduled/m);
  });

  test('ends with 0 where a queue has answered that it keeps no history', async () => {
    const { code, out } = await run(['ls', '--state', 'over', '--tag', 'user:42']);
    expect([code, out]).toEqual([0, expect.stringContaining('q keeps no history')]);
  });
});

describe('a dry run of a shift', () => {
  test('says before and after of each', async () => {
    await some();
    const { out } = await run(['reschedule', 'q', '--tag', 'user:43', '--shift', '1d', '--dry-run']);
    expect(out).toMatch(/^d {2}\S+Z {2}would be \S+Z \(in \S+ d.*\)\n1 job would be rescheduled/);
  });
});
