/** Tokens and the audit, on the command line. */
import { describe, expect, test } from 'vitest';
import { SCOPES, verifyToken } from '../../../src/access/tokens.ts';
import { declareQueue } from '../../../src/redis/scripts/queues.ts';
import { useCli } from '../../support/cli.ts';
import { usePartition } from '../../support/partition.ts';

const cli = useCli();
const the = usePartition();

const due = (args: readonly string[]) => cli.run([...args, '--redis', the.server.url, '--namespace', 't']);
const answer = async (args: readonly string[]) => JSON.parse((await due([...args, '--json'])).out);

describe('tokens', () => {
  test('are created, shown once, listed and revoked', async () => {
    const args = [
      'tokens',
      'create',
      '--name',
      'ci',
      '--scope',
      'write,data',
      '--queues',
      'emails,sms',
      '--expires',
      '90d',
    ];
    const made = await answer(args);
    expect(made).toMatchObject({ name: 'ci', scopes: ['write', 'data'], queues: ['emails', 'sms'] });
    expect(made.expiresMs - made.createdMs).toBe(90 * 86_400_000);
    expect(made.token).toMatch(/^due_[0-9a-f]{12}_[\w-]{43}$/);
    const place = { redis: the.redis, namespace: 't' };
    expect(await verifyToken(place, made.token, Date.now())).toMatchObject({ name: 'ci' });
    const listed = await due(['tokens', 'ls', '--json']);
    expect(listed.out).not.toContain(made.token);
    expect(JSON.parse(listed.out).tokens).toMatchObject([{ id: made.id, name: 'ci' }]);
    expect((await due(['tokens', 'ls'])).out).toMatch(/^name +id +scopes +queues +created +expires\nci +/);
    expect((await due(['tokens', 'revoke', 'ci'])).out).toBe('token ci is revoked: it opens nothing any more\n');
    expect(await verifyToken(place, made.token, Date.now())).toBeUndefined();
    expect((await due(['tokens', 'ls'])).out).toContain('there is no token');
  });

  test.each([
    [['--name', 'a b', '--scope', 'read'], 64, 'token name is "a b"'],
    [['--name', 'a', '--scope', 'root'], 64, SCOPES.join(', ')],
    [['--name', 'a', '--scope', 'read', '--queues', 'Not A Queue'], 64, 'queue name is "Not A Queue"'],
    [['--name', 'a', '--scope', 'read', '--expires', 'soon'], 64, '--expires is "soon"'],
    [['--name', 'a'], 64, '--scope'],
  ])('with %o is refused with what is allowed', async (args, exit, why) => {
    const { code, err } = await due(['tokens', 'create', ...args]);
    expect([code, err]).toEqual([exit, expect.stringContaining(why)]);
  });

  test('of a name that there is, or is not', async () => {
    await due(['tokens', 'create', '--name', 'twice', '--scope', 'read']);
    const again = await due(['tokens', 'create', '--name', 'twice', '--scope', 'read']);
    expect([again.code, again.err]).toEqual([1, expect.stringContaining('a token called twice exists')]);
    const missing = await due(['tokens', 'revoke', 'twicee']);
    expect([missing.code, missing.err]).toEqual([1, expect.stringContaining('did you mean twice?')]);
  });

  test('without --json are shown with a line to try them', async () => {
    const { out, err } = await due(['tokens', 'create', '--name', 'me', '--scope', 'admin']);
    expect(out).toMatch(
      /^token +due_.*\nname +me\nscopes +admin\nqueues +all\nexpires +never\n\ncurl -H 'Authorization: Bearer due_/,
    );
    expect(err).toContain('not shown again');
    expect(out).toContain("' http://127.0.0.1:7420/v1/queues");
    const elsewhere = await cli.run(
      ['tokens', 'create', '--name', 'you', '--scope', 'read', '--redis', the.server.url, '--namespace', 't'],
      { env: { DUESTREAM_HTTP__HOST: '::1', DUESTREAM_HTTP__PORT: '7999' } },
    );
    expect(elsewhere.out).toContain("' http://[::1]:7999/v1/queues");
  });
});

describe('the audit', () => {
  test('says who did what to how many, newest first, and not what was only looked at', async () => {
    expect((await due(['admin', 'audit'])).out).toBe('no such change is in the audit of namespace t\n');
    await declareQueue(the.redis, { namespace: 't', queue: 'q', partitions: 1 });
    await due(['schedule', 'q', '--id', 'a', '--delay', '1h']);
    await due(['edit', 'q', 'a', '--attempts', '2']);
    await due(['cancel', 'q', 'a', 'nobody']);
    await due(['cancel', 'q', 'nobody']);
    await due(['schedule', 'q', '--id', 'b', '--delay', '1h', '--tag', 'user:42']);
    await due(['cancel', 'q', '--tag', 'user:42', '--dry-run']);
    await due(['cancel', 'q', '--tag', 'user:42', '--state', 'scheduled', '--yes']);
    await due(['queues', 'pause', 'q']);
    await due(['queues', 'pause', 'q']);
    await due(['schedules', 'put', 'nightly', '--queue', 'q', '--every', '1h']);
    await due(['schedules', 'rm', 'nightly']);
    await due(['ls', 'q']);
    const { entries } = await answer(['admin', 'audit']);
    expect(entries.map(({ verb, target, count }: Record<string, unknown>) => [verb, target, count])).toEqual([
      ['schedules.rm', 'nightly', 1],
      ['schedules.put', 'nightly', 1],
      ['queues.pause', 'q', 1],
      ['jobs.cancel', 'state scheduled, tag user:42', 1],
      ['jobs.cancel', 'a, nobody', 1],
      ['jobs.edit', 'a', 1],
    ]);
    for (const { who, way } of entries) expect([way, who]).toEqual(['cli', expect.stringMatching(/^\S+@\S+$/)]);
    expect((await due(['admin', 'audit', '--limit', '1'])).out).toMatch(
      /^when +who +by +what +queue +which +changed +from what\n/,
    );
  });

  test('says why, where somebody gave a reason', async () => {
    await declareQueue(the.redis, { namespace: 't', queue: 'q', partitions: 1 });
    await due(['queues', 'pause', 'q', '--reason', 'the mail server moves']);
    await due(['queues', 'set', 'q', '--rate', '10/s', '--concurrency', '5', '--reason', 'the provider said 429']);
    await due(['queues', 'set', 'q', '--rate', '10/s']);
    const { entries } = await answer(['admin', 'audit']);
    expect(entries.map(({ verb, count, reason }: Record<string, unknown>) => [verb, count, reason])).toEqual([
      ['queues.set', 2, 'the provider said 429'],
      ['queues.pause', 1, 'the mail server moves'],
    ]);
    expect((await due(['admin', 'audit'])).out).toMatch(
      /^when .* changed +from what +to what +why\n.* queues\.set .* the provider said 429\n/,
    );
    const long = await due(['queues', 'set', 'q', '--rate', '9/s', '--reason', 'x'.repeat(201)]);
    expect([long.code, long.err]).toEqual([64, expect.stringContaining('at most 200 characters')]);
    expect(await the.redis.hget('t:v1:{control}:queues', 'q:rate')).toBe('10 1000 1');
  });

  test('that cannot be written is said, and the change stands', async () => {
    await the.redis.set('t:v1:{control}:audit', 'no stream');
    await declareQueue(the.redis, { namespace: 't', queue: 'q', partitions: 1 });
    const { code, err, out } = await due(['queues', 'pause', 'q']);
    expect([code, out]).toEqual([0, expect.stringContaining('q is paused')]);
    expect(err).toContain('this change is not in the audit');
  });
});
