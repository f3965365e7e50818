/** Dead letters and queues as the command line shows them. */
import { beforeEach, describe, expect, test } from 'vitest';
import { encodeAttempted, encodeDeferral } from '../../../src/job/codec.ts';
import { partitionKeys } from '../../../src/redis/keys.ts';
import { declareQueue } from '../../../src/redis/scripts/queues.ts';
import { useCli } from '../../support/cli.ts';
import { failure, only, T0, usePartition } from '../../support/partition.ts';

const cli = useCli();
const the = usePartition();

beforeEach(async () => {
  await declareQueue(the.redis, { namespace: 't', queue: 'q', partitions: 1 });
});

const due = (args: readonly string[]) => cli.run([...args, '--redis', the.server.url, '--namespace', 't']);
const answer = async (args: readonly string[]) => JSON.parse((await due([...args, '--json'])).out);

async function deadLetters(ids: readonly string[]): Promise<readonly string[]> {
  const made: string[] = [];
  for (const id of ids) made.push(await the.dead(id));
  return made;
}

describe('dead ls', () => {
  test('shows the newest dead letters first', async () => {
    const [, second, third] = await deadLetters(['a', 'b', 'c']);
    const { deadLetters: found } = await answer(['dead', 'ls', 'q', '--limit', '2']);
    expect(found.map(({ deadLetter }: { readonly deadLetter: string }) => deadLetter)).toEqual([third, second]);
    const { out } = await due(['dead', 'ls', 'q']);
    expect(out).toMatch(/^dead letter +id +name +died +reason\n/);
    expect(out.split('\n')[1]).toMatch(new RegExp(`^${third} +c +default +\\d+ d ago +attempts$`));
  });

  test('says when there is none', async () => {
    expect(await due(['dead', 'ls', 'q'])).toEqual({ code: 0, out: 'no dead letters in q\n', err: '' });
  });
});

describe('dead ls without a queue', () => {
  test('says what jobs of all queues died of', async () => {
    await deadLetters(['a', 'b']);
    const { kinds, unread } = await answer(['dead', 'ls']);
    expect(kinds).toMatchObject([{ reason: 'attempts', count: 2, shares: { queue: [{ value: 'q', count: 2 }] } }]);
    expect(unread).toEqual([]);
    const { out } = await due(['dead', 'ls']);
    expect(out).toMatch(/^dead letters +queues +reason +last error +last died +hosts\n +2 +q +attempts +/);
    expect((await due(['dead', 'ls', '--name', 'none'])).out).toBe('no dead letters\n');
    expect((await due(['dead', 'ls', '--limit', '2'])).err).toContain('--limit and --cursor go with a queue');
    const { code, err } = await due(['dead', 'ls', '--groups']);
    expect([code, err]).toEqual([64, expect.stringContaining('--groups is given without a queue')]);
  });

  test('ends with 1 where a queue could not be read: what it has is not in the answer', async () => {
    await deadLetters(['a']);
    await declareQueue(the.redis, { namespace: 't', queue: 'bad', partitions: 1 });
    await the.redis.set(partitionKeys({ namespace: 't', queue: 'bad', partition: 0 }).dead, 'a person did this');
    const { code, out } = await due(['dead', 'ls']);
    expect([code, out]).toEqual([1, expect.stringContaining('queue bad could not be read: ')]);
  });
});

describe('dead show', () => {
  test('shows data and history of a dead letter, and how to run it again', async () => {
    await the.bury(await the.running('a', { data: { to: 'a@b.c' } }), { reason: 'gone\u001b[31m' });
    const { deadLetters: found } = await answer(['dead', 'ls', 'q']);
    const { out } = await due(['dead', 'show', 'q', found[0].deadLetter]);
    expect(out).toMatch(
      /^data +\{"to":"a@b.c"\}\ndied +2025-11-21T.*\nreason +gone \[31m\nattempts +1\n\n.*Z {2}attempt 1 failed: boom\n/m,
    );
    expect(out).toContain(`duestream dead replay q ${found[0].deadLetter}`);
    expect(await answer(['dead', 'show', 'q', found[0].deadLetter])).toMatchObject({
      id: 'a',
      data: { to: 'a@b.c' },
      reason: 'gone\u001b[31m',
      attempts: 1,
      readable: true,
    });
  });

  test('shows where its last failure was thrown, what it was put aside for, and its counts, as show does', async () => {
    const why = encodeDeferral({ atMs: T0, reason: 'ann holds it' });
    await the.defer(await the.running('a'), { delayMs: 0, why });
    await the.retry(only(await the.run()), {
      delayMs: 0,
      error: failure('first', 2, 'Error: first\n    at f (/a.js:1:1)'),
    });
    const stack = 'Error: last\n    at g (/b.js:2:2)\nCaused by: Error: why\n    at h (/c.js:3:3)';
    const line = { atMs: T0, attempt: 3, kind: 'failure', message: 'last', worker: 'w1', tookMs: 7, stack } as const;
    await the.bury(only(await the.run()), { error: encodeAttempted(line) });
    const { deadLetters: found } = await answer(['dead', 'ls', 'q']);
    for (const args of [
      ['dead', 'show', 'q', found[0].deadLetter],
      ['show', 'q', 'a'],
    ]) {
      const { out } = await due(args);
      expect(out).toMatch(/^put aside +1 time, last because: ann holds it$/m);
      expect(out).toMatch(/attempt 2 failed: first\n[^ ].*attempt 3 failed after 7 ms on worker w1: last\n/);
      expect(out).toContain(': last\n    at g (/b.js:2:2)\n    Caused by: Error: why\n    at h (/c.js:3:3)\n');
      expect(await answer(args)).toMatchObject({
        attempts: 3,
        failures: 2,
        crashes: 0,
        deferred: { times: 1, lastMs: T0, reason: 'ann holds it' },
        history: [{ message: 'first' }, { message: 'last', stack }],
      });
    }
  });

  test('of what is no dead letter ends with 64, of one that is gone with 1', async () => {
    expect((await due(['dead', 'show', 'q', 'a'])).code).toBe(64);
    const { code, err } = await due(['dead', 'show', 'q', '5-5']);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('no dead letter "5-5"') });
  });
});

describe('dead replay', () => {
  test('schedules one dead letter again', async () => {
    const [deadLetter = ''] = await deadLetters(['a']);
    expect(await due(['dead', 'replay', 'q', deadLetter])).toEqual({
      code: 0,
      out: `${deadLetter}  a  scheduled again\n`,
      err: '',
    });
    expect(await the.redis.xlen(the.keys.dead)).toBe(0);
    expect(await the.redis.zscore(the.keys.scheduled, 'j:a')).not.toBeNull();
  });

  test('of all is bounded, and goes on where it stopped', async () => {
    await deadLetters(['a', 'b', 'c']);
    expect((await due(['dead', 'replay', 'q', '--all', '--limit', '2'])).out).toMatch(
      /^2 replayed\nthere may be more; go on with\n--cursor \S+\n$/,
    );
    expect(await the.redis.xlen(the.keys.dead)).toBe(1);
    expect((await due(['dead', 'replay', 'q', '--all'])).out).toBe('1 replayed\n');
    expect((await due(['dead', 'replay', 'q', '--all'])).out).toBe('0 replayed\n');
  });

  test('goes on by its cursor behind a job that has died again, with the due time of the run that began', async () => {
    await deadLetters(['a', 'b', 'c']);
    const options = ['dead', 'replay', 'q', '--all', '--limit', '1', '--delay', '1h'];
    const { cursor } = await answer(options);
    const dueMs = await the.redis.zscore(the.keys.scheduled, 'j:c');
    await the.redis.xadd(the.keys.dead, '*', 'member', 'j:c', 'record', '1a|{}', 'reason', 'again');
    await answer([...options, '--cursor', cursor]);
    expect(await the.redis.zrange(the.keys.scheduled, '0', '-1', 'WITHSCORES')).toEqual(['j:b', dueMs, 'j:c', dueMs]);
    const other = await due(['dead', 'replay', 'q', '--id', 'a', '--cursor', cursor]);
    expect(other).toMatchObject({ code: 64, err: expect.stringContaining('the cursor is of another') });
    const named = await due(['dead', 'replay', 'q', '1-1', '--cursor', cursor]);
    expect(named).toMatchObject({ code: 64, err: expect.stringContaining('--cursor go with --all') });
  });

  test('takes only the dead letters of one job, and waits if told to', async () => {
    await deadLetters(['a', 'b']);
    expect(await answer(['dead', 'replay', 'q', '--id', 'a', '--delay', '1d'])).toMatchObject({
      replayed: 1,
      failed: 0,
    });
    expect(Number(await the.redis.zscore(the.keys.scheduled, 'j:a'))).toBeGreaterThan(Date.now() + 86_000_000);
    expect((await answer(['dead', 'ls', 'q'])).deadLetters).toHaveLength(1);
  });

  test('leaves the dead letter of a job that lives again, says so and ends with 1', async () => {
    const [deadLetter = ''] = await deadLetters(['a']);
    await the.schedule('a', { dueMs: T0 + 1000 });
    const { code, out } = await due(['dead', 'replay', 'q', '--all']);
    expect(code).toBe(1);
    expect(out).toBe(
      `${deadLetter}  a  not replayed: a job of this id is live; cancel it, or wait until it ends\n0 replayed, 1 not\n`,
    );
  });
});

describe('filters', () => {
  beforeEach(async () => {
    await the.bury(await the.running('a'), { reason: 'no-handler' });
    await the.bury(await the.running('b'));
    await the.bury(await the.running('c'));
  });
  const ids = async (...flags: readonly string[]) =>
    (await answer(['dead', 'ls', 'q', ...flags])).deadLetters.map(({ id }: { readonly id: string }) => id);

  test('are the same for every verb', async () => {
    expect(await ids('--reason', 'no-handler')).toEqual(['a']);
    expect(await ids('--id', 'b', '--name', 'default', '--error', 'boom', '--newer-than', '1h')).toEqual(['b']);
    expect(await answer(['dead', 'replay', 'q', '--reason', 'no-handler', '--over', '1h'])).toMatchObject({
      replayed: 1,
    });
    expect((await due(['dead', 'purge', 'q', '--id', 'b', '--yes'])).out).toBe('1 dead letter removed\n');
    expect(await ids()).toEqual(['c']);
  });

  test('groups count what died alike', async () => {
    const { out } = await due(['dead', 'ls', 'q', '--groups']);
    expect(out).toMatch(
      /^dead letters +reason +name +last error +last died +one of them\n2 +attempts +default +boom +\S/,
    );
    expect(await answer(['dead', 'ls', 'q', '--groups', '--reason', 'none'])).toMatchObject({
      groups: [],
      scanned: 3,
      others: 0,
    });
  });

  test('a list that ended says how to go on', async () => {
    const { cursor } = await answer(['dead', 'ls', 'q', '--limit', '2']);
    expect((await due(['dead', 'ls', 'q', '--limit', '2'])).out).toContain(`add --cursor ${cursor}`);
    expect(await ids('--cursor', cursor)).toEqual(['a']);
  });

  test('a dry run of a replay counts and writes nothing', async () => {
    const { out } = await the.withoutWrite(() => due(['dead', 'replay', 'q', '--name', 'default', '--dry-run']));
    expect(out).toBe('3 dead letters would be replayed, of 3 checked\n');
  });

  test('a replay can wait for the disk, and says so where nobody can promise it', async () => {
    const { code, err } = await due(['dead', 'replay', 'q', '--id', 'b', '--durability', 'fsynced']);
    expect({ code, err }).toEqual({ code: 69, err: expect.stringContaining('cannot give the durability') });
    expect(await ids('--id', 'b')).toEqual(['b']);
    expect((await due(['dead', 'replay', 'q', '--id', 'b', '--durability', 'disk'])).code).toBe(64);
  });

  test('addresses and filters do not go together', async () => {
    expect((await due(['dead', 'replay', 'q', '1-1', '--name', 'x'])).code).toBe(64);
    expect((await due(['dead', 'replay', 'q', '1-1', '--dry-run'])).err).toContain(
      '--dry-run, --over and --cursor go with',
    );
  });
});

describe('queues ls', () => {
  test('counts the jobs of each queue and says who leads', async () => {
    await deadLetters(['a']);
    await the.schedule('b', { dueMs: T0 + 1000 });
    await declareQueue(the.redis, { namespace: 't', queue: 'wide', partitions: 2 });
    const { out } = await due(['queues', 'ls']);
    const [head, first, second] = out.split('\n');
    expect(head).toMatch(/^queue +partitions +scheduled +ready +running +dead +waits +workers +leader$/);
    expect(first).toMatch(/^q +1 +1 +0 +0 +1 +\d+ d +0 +m1$/);
    expect(second).toMatch(/^wide +2 +0 +0 +0 +0 +\S+ +0 +none: start one with "duestream start"$/);
    const { queues } = await answer(['queues', 'ls']);
    expect(queues[0]).toMatchObject({ queue: 'q', partitions: 1, scheduled: 1, dead: 1, leaders: ['m1'] });
  });

  test('says how a queue comes into being when there is none', async () => {
    await the.redis.flushall();
    expect((await due(['queues', 'ls'])).out).toContain('no queue was used in namespace t yet');
  });
});
