/** Who leads and who works, as the command line shows them. */
import { beforeEach, describe, expect, test } from 'vitest';
import { controlKeys, partitionRef } from '../../../src/redis/keys.ts';
import { beat } from '../../../src/redis/scripts/presence.ts';
import { declareQueue } from '../../../src/redis/scripts/queues.ts';
import { useCli } from '../../support/cli.ts';
import { item, T0, usePartition } from '../../support/partition.ts';

const cli = useCli();
const the = usePartition();
const namespace = 't';

beforeEach(async () => {
  await declareQueue(the.redis, { namespace, queue: 'q', partitions: 1 });
});

const due = (args: readonly string[]) => cli.run([...args, '--redis', the.server.url, '--namespace', namespace]);
const answer = async (args: readonly string[]) => JSON.parse((await due([...args, '--json'])).out);

async function alive(
  id: string,
  role: 'daemon' | 'worker',
  queues: readonly string[] = [],
  said: { readonly version?: string } = {},
): Promise<void> {
  const identity = { id, role, host: 'mill', pid: 7, startedMs: Date.now() - 120_000, queues, ...said };
  await beat(the.redis, { namespace, identity, ttlMs: 60_000 });
}

describe('leaders', () => {
  test('shows leader, last pass, lag and backlog of each partition', async () => {
    await alive('m1', 'daemon');
    await the.schedule('ready');
    await the.promote();
    await the.schedule('late', { dueMs: T0 });
    await declareQueue(the.redis, { namespace, queue: 'wide', partitions: 2 });
    const { code, out } = await due(['queues', 'leaders']);
    expect(code).toBe(0);
    expect(out).toMatch(/^queue +partition +leader +since +last pass +overdue +backlog\n/);
    expect(out).toMatch(/^q +0 +mill:7 +(now|\d+ (ms|s) ago) +\d+ (ms|s) ago +\d+ d +1$/m);
    expect(out).toMatch(/^wide +1 +none +- +- +- +0$/m);
    expect(out).toContain('2 partitions without a leader: start one with "duestream start"');
  });

  test('shows one queue as JSON, and a leader without a heartbeat by its id', async () => {
    await the.lead();
    const { partitions } = await answer(['queues', 'leaders', 'q']);
    expect(partitions).toHaveLength(1);
    const [{ leader, ...rest }] = partitions;
    expect(leader).toMatchObject({ process: 'm1', epoch: expect.any(Number), sinceMs: leader.epoch });
    expect(leader.host).toBeUndefined();
    expect(leader.leaseLeftMs).toBeGreaterThan(0);
    expect(leader.lastPassAgoMs).toBe(
      Number((await the.redis.get(the.keys.leader))?.split(':')[2]) - leader.leaseLeftMs,
    );
    expect(rest).toMatchObject({ queue: 'q', partition: 0, backlog: 0, paused: false });
    expect((await due(['queues', 'leaders'])).out).toMatch(/^q +0 +m1 +/m);
  });

  test('says when leaders are of different versions', async () => {
    await alive('m1', 'daemon', [], { version: '0.2.0' });
    await alive('m2', 'daemon');
    await the.lead();
    const { layoutGeneration } = await declareQueue(the.redis, { namespace, queue: 'other', partitions: 1 });
    const other = partitionRef(namespace, { queue: 'other', layoutGeneration, partition: 0 });
    await the.redis.set(other.keys.leader, 'm2:1763719000000:5000', 'PX', 60_000);
    expect((await answer(['queues', 'leaders', 'q'])).partitions).toMatchObject([{ leader: { version: '0.2.0' } }]);
    expect((await due(['queues', 'leaders', 'q'])).out).not.toContain('differ');
    expect((await due(['queues', 'leaders'])).out).toContain(
      'versions of leaders differ: 0.2.0 (1 process), an unknown version (1 process)',
    );
  });

  test('of a queue that was never used ends with 1, of two queues with 64', async () => {
    expect((await due(['queues', 'leaders', 'nobody'])).code).toBe(1);
    expect((await due(['queues', 'leaders', 'q', 'q'])).code).toBe(64);
  });
});

describe('a worker', () => {
  const lives = async (said: object = { pauses: true }) => {
    const identity = { id: 'w-7', role: 'worker' as const, host: 'mill', pid: 7, startedMs: Date.now(), queues: ['q'] };
    await beat(the.redis, { namespace, identity: { ...identity, ...said }, ttlMs: 60_000 });
  };

  test('is paused and resumed by its id, once, and the list says why', async () => {
    await lives();
    const { out } = await due(['workers', 'pause', 'w-7', '--reason', 'a heap dump']);
    expect(out).toBe(
      'w-7 is paused, from its next heartbeat on\nwhat it runs goes on to its end\nto go on: duestream workers resume w-7\n',
    );
    expect((await due(['workers', 'pause', 'w-7'])).out).toMatch(
      /^w-7 was paused already for .* by \S+@\S+: a heap dump\n/,
    );
    const listed = (await due(['queues', 'workers'])).out;
    expect(listed).toMatch(/^w-7 +paused +mill:7 /m);
    expect(listed).toMatch(/^w-7 is paused for .*: a heap dump$/m);
    expect((await due(['queues', 'why', 'q'])).out).not.toContain('no worker that lives');
    expect(await answer(['workers', 'resume', 'w-7'])).toMatchObject({
      worker: 'w-7',
      paused: false,
      changed: true,
      pause: { reason: 'a heap dump' },
    });
    expect((await due(['workers', 'resume', 'w-7'])).out).toBe('w-7 was not paused\n');
    const { entries } = await answer(['admin', 'audit']);
    expect(entries).toMatchObject([
      { verb: 'workers.resume', target: 'w-7' },
      { verb: 'workers.pause', target: 'w-7', reason: 'a heap dump' },
    ]);
  });

  test('that is paused is told where nothing moves because of it', async () => {
    await lives();
    await the.schedule('a');
    await due(['workers', 'pause', 'w-7']);
    const { out } = await due(['queues', 'why', 'q']);
    expect(out).toContain('each worker that serves it is paused');
    expect(out).toContain('let one go on: duestream workers resume w-7');
  });

  test('that does not live, or hears of no pause, is refused', async () => {
    await lives({ version: '0.2.0' });
    expect(await due(['workers', 'pause', 'w-9'])).toMatchObject({
      code: 1,
      err: expect.stringContaining('no worker'),
    });
    const old = await due(['workers', 'pause', 'w-7']);
    expect([old.code, old.err]).toEqual([64, expect.stringContaining('hears of no pause')]);
  });
});

describe('workers', () => {
  test('shows who lives, what each holds and what it runs', async () => {
    await alive('w-1', 'worker', ['q']);
    await alive('d-1', 'daemon');
    await the.running('first', { consumer: 'w-1' });
    await the.schedule('second');
    await the.deliver({ consumer: 'w-1' });
    const { code, out } = await due(['queues', 'workers']);
    expect(code).toBe(0);
    expect(out).toMatch(
      /^worker +state +where +version +started +last beat +queues +connections +holds\nw-1 +alive +mill:7 +- +2 min ago +\d+ (ms|s) ago +q +- +2\n\nw-1 holds\n/,
    );
    expect(out).toMatch(/^ {2}q {2}first {2}attempt 1, for \d+ \w+\n {2}q {2}second {2}about to start\n$/m);
    expect(out).not.toContain('d-1');
  });

  test('shows a consumer without a heartbeat as missing, and no more jobs than asked for', async () => {
    await the.scheduleAll([item('a'), item('b'), item('c')]);
    await the.run({ consumer: 'w-gone' });
    await the.redis.sadd(controlKeys(namespace).alive, 'w-gone');
    const { workers } = await answer(['queues', 'workers', '--queue', 'q', '--limit', '2']);
    expect(workers).toMatchObject([{ id: 'w-gone', state: 'missing', queues: ['q'], pending: 3 }]);
    expect(workers[0].jobs).toMatchObject([
      { queue: 'q', partition: 0, id: 'a', bare: false, attempt: 1, startedMs: expect.any(Number) },
      { id: 'b' },
    ]);
    expect((await due(['queues', 'workers', '--limit', '2'])).out).toMatch(
      /^w-gone +missing +- +- +- +- +q +- +3$[\s\S]*\n {2}and 1 more\n$/m,
    );
  });

  test('shows only those of one queue, and says when there is none', async () => {
    await alive('w-1', 'worker', ['other']);
    expect((await answer(['queues', 'workers', '--queue', 'q'])).workers).toEqual([]);
    expect((await due(['queues', 'workers', '--queue', 'q'])).out).toContain(
      'no worker in namespace t; start one with',
    );
    expect((await answer(['queues', 'workers'])).workers).toMatchObject([
      { id: 'w-1', state: 'alive', beatAgoMs: expect.any(Number), pending: 0, jobs: [] },
    ]);
  });

  test('says which versions run side by side, those of daemons too', async () => {
    await alive('w-1', 'worker', ['q'], { version: '0.2.0' });
    await alive('d-1', 'daemon', [], { version: '0.2.0' });
    expect((await due(['queues', 'workers'])).out).not.toContain('differ');
    await alive('w-0', 'worker', ['q']);
    const { out } = await due(['queues', 'workers']);
    expect(out).toMatch(/^w-1 +alive +mill:7 +0\.2\.0 +2 min ago/m);
    expect(out).toContain('versions differ: 0.2.0 (2 processes), an unknown version (1 process)');
    const { workers, versions } = await answer(['queues', 'workers', '--queue', 'q']);
    expect(workers).toMatchObject([{ id: 'w-0' }, { id: 'w-1', version: '0.2.0' }]);
    expect(versions).toEqual([{ version: '0.2.0', processes: 2 }, { processes: 1 }]);
  });

  test('with a limit that is no number ends with 64', async () => {
    const { code, err } = await due(['queues', 'workers', '--limit', 'many']);
    expect({ code, err }).toEqual({ code: 64, err: expect.stringContaining('a whole number from 0 to 1000') });
  });
});
