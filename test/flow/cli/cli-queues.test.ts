/** What an operator does to a whole queue: looks at its counts, lets it rest and go on, removes it. */
import { Readable } from 'node:stream';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { runCli } from '../../../src/cli/cli.ts';
import { addTime, MINUTE_MS, noTally, stateText } from '../../../src/job/minutes.ts';
import { controlKeys, partitionKeys } from '../../../src/redis/keys.ts';
import { addCauses } from '../../../src/redis/read/causes.ts';
import { addTimes, stateNow, writeStates } from '../../../src/redis/read/minutes.ts';
import { SCHEMA_FIELD } from '../../../src/redis/schema.ts';
import { beat, noteLag } from '../../../src/redis/scripts/presence.ts';
import { declareQueue, findQueue, setQueue } from '../../../src/redis/scripts/queues.ts';
import { useCli } from '../../support/cli.ts';
import { runHere } from '../../support/console.ts';
import { item, T0, usePartition } from '../../support/partition.ts';

const cli = useCli();
const the = usePartition();
const namespace = 't';

beforeEach(async () => {
  await declareQueue(the.redis, { namespace, queue: 'q', partitions: 1 });
});

const due = (args: readonly string[]) => cli.run([...args, '--redis', the.server.url, '--namespace', namespace]);
const answer = async (args: readonly string[]) => JSON.parse((await due([...args, '--json'])).out);
const registry = () => the.redis.hkeys(controlKeys(namespace).queues);
const queueNames = async () => (await registry()).filter((name) => name !== SCHEMA_FIELD);
const ahead = (ms: number) => ({ dueMs: Date.now() + ms });

async function worker(id: string, queues: readonly string[]): Promise<void> {
  const identity = { id, role: 'worker' as const, host: 'mill', pid: 7, startedMs: Date.now(), queues };
  await beat(the.redis, { namespace, identity, ttlMs: 60_000 });
}

describe('queues why', () => {
  const said = async () => (await due(['queues', 'why', 'q'])).out;

  test('says that the queue holds no job, and how to schedule one', async () => {
    expect(await said()).toMatch(/^empty +q holds no job\n +schedule one: duestream schedule q --delay 1m\n$/);
  });

  test('names each obstacle with what to do about it', async () => {
    await the.scheduleAll([item('noon', ahead(7_200_000))]);
    await due(['queues', 'pause', 'q', '--reason', 'the mail server moves']);
    const out = await said();
    expect(out).toMatch(/^no-leader +q: no daemon leads it.*\n +start a daemon with the role mover: duestream start$/m);
    expect(out).toMatch(
      /^paused +q: it has been paused for .*: the mail server moves\n +when .*: duestream queues resume q$/m,
    );
    expect(out).toMatch(/^no-worker +q: no worker that lives serves it\n +start one with "duestream worker <module>"/m);
  });

  test('says which limit holds the jobs in line, and how to raise it', async () => {
    await setQueue(the.redis, { namespace, queue: 'q', concurrency: 1 });
    await the.scheduleAll([item('a'), item('b'), item('c')]);
    await the.run();
    await worker('w', ['q']);
    expect(await said()).toMatch(
      /^waiting +q: \d jobs? wait in line, the first for .*: as many run as its concurrency allows\n +each .*: duestream queues set q --concurrency <n>\nlast start +nobody can tell: a worker does not say how many jobs it runs at a time\n$/,
    );
    expect(await answer(['queues', 'why', 'q'])).toMatchObject({
      queue: 'q',
      moves: true,
      reasons: [{ code: 'waiting', heldBy: 'queue-full' }],
    });
  });

  test('says when the rate allows the next start', async () => {
    await setQueue(the.redis, { namespace, queue: 'q', rate: { limit: 1, perMs: 86_400_000, burst: 1 } });
    await the.scheduleAll([item('a'), item('b'), item('c')]);
    await the.run({ nowMs: Date.now() });
    await worker('w', ['q']);
    expect(await said()).toMatch(/^waiting +q: 2 jobs wait in line, .*: its rate allows the next start in 24 h\n/);
    const { reasons } = await answer(['queues', 'why', 'q']);
    expect(reasons).toMatchObject([{ heldBy: 'rate', nextMs: expect.any(Number) }]);
    expect(reasons[0].nextMs - Date.now()).toBeGreaterThan(86_000_000);
  });

  test('counts those in line among the jobs that wait for a slot, where no limit holds them', async () => {
    await setQueue(the.redis, { namespace, queue: 'q', fair: true });
    await the.scheduleAll([item('a'), item('b'), item('c')]);
    await the.run();
    await worker('w', ['q']);
    expect(await said()).toMatch(/^busy +q: 2 jobs wait for a free slot, while workers hold 1\n +to start more /);
  });
});

describe('queues show', () => {
  beforeEach(async () => {
    await the.dead('dead');
    await the.complete([await the.running('done')]);
    await the.running('runs');
    await the.scheduleAll([item('late'), item('soon', ahead(30_000)), item('noon', ahead(7_200_000))]);
    await the.scheduleAll([item('never', ahead(30 * 86_400_000)), item('noon2', ahead(7_300_000))], {
      nowMs: Date.now(),
    });
  });

  test('counts what there is per state and partition, what was, and what comes due when', async () => {
    const { code, out } = await due(['queues', 'show', 'q']);
    expect(code).toBe(0);
    expect(out).toMatch(/^queue +q\njobs +5 scheduled, 0 ready, 1 running, 1 dead; 2 ended within the done window\n/);
    expect(out).toMatch(/^oldest +due and not started for \d+ d$/m);
    expect(out).toMatch(/^workers +0$/m);
    expect(out).toMatch(
      /^partition +scheduled +ready +running +dead +over +waits +leader\n +0 +5 +0 +1 +1 +2 +\d+ d +m1$/m,
    );
    expect(out).toMatch(/^so far +1 dead, 1 done, 3 promoted, 8 scheduled$/m);
    expect(out).toMatch(/^now +1 +█{20}\nin 1 min +1 +█{20}\nin 5 min +0\nin 1 h +0\nin 6 h +2 +█{40}\nin 1 d +0\n/m);
    expect(out).toMatch(/^in 1 w +0\nlater +1 +█{20}\n$/m);
  });

  test('says the same as JSON', async () => {
    const found = await answer(['queues', 'show', 'q']);
    expect(found).toMatchObject({
      queue: 'q',
      scheduled: 5,
      ready: 0,
      running: 1,
      dead: 1,
      over: 2,
      paused: false,
      counters: { dead: 1, done: 1, promoted: 3, scheduled: 8 },
      partitions: [{ partition: 0, scheduled: 5, leader: { process: 'm1' } }],
    });
    expect(found.oldestDueAgeMs).toBeGreaterThan(0);
    expect(found.dueNext).toHaveLength(8);
    expect(found.dueNext[0]).toEqual({ toMs: 0, count: 1 });
    expect(found.dueNext[4]).toEqual({ fromMs: 3_600_000, toMs: 21_600_000, count: 2 });
    expect(found.dueNext[7]).toEqual({ fromMs: 604_800_000, count: 1 });
  });
});

test('queues show of a queue that was never used ends with 1, without a name with 64', async () => {
  const { code, err } = await due(['queues', 'show', 'nobody']);
  expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('queue "nobody" was never used') });
  expect((await due(['queues', 'show'])).code).toBe(64);
});

describe('queues late', () => {
  const minute = Math.floor(Date.now() / MINUTE_MS) - 30;
  const write = async (at: number) => {
    const text = stateText(await stateNow(the.redis, the.ref));
    const mark = { minute: at, since: minute };
    await writeStates(the.redis, the.ref, { at: mark, states: [{ ...mark, text }] });
  };
  /** What a leader and a worker have told of one minute: how late its starts were, and why. */
  const told = async (...lateMs: readonly number[]) => {
    await write(minute);
    const tally = noTally();
    for (const ms of lateMs) addTime(tally, ms);
    await addTimes(the.redis, the.ref, { name: 'start', tally, minute });
    await write(minute + 1);
    const late = lateMs.filter((ms) => ms > 1000);
    const ms = new Map([['promotion', late.reduce((sum, one) => sum + one, 0)] as const]);
    const groups = new Map([['acme', 40_000]]);
    const sums = { starts: lateMs.length, late: late.length, ms, groups, lateBy: new Map() };
    if (late.length > 0) await addCauses(the.redis, the.ref, { minute, sums, nowMs: Date.now() });
  };
  const said = async (...flags: readonly string[]) => (await due(['queues', 'late', 'q', ...flags])).out;

  test('says first that a queue was late and why, then causes, groups, and who did what meanwhile', async () => {
    await told(40_000, 39_000, 41_000, ...Array.from({ length: 7 }, () => 5));
    await due(['queues', 'pause', 'q', '--reason', 'it moves']);
    await due(['queues', 'resume', 'q']);
    const out = await said();
    expect(out.split('\n')[0]).toMatch(/^q from 2\S+T\S+ to 2\S+T\S+ \(UTC\)$/);
    expect(out.split('\n')[1]).toMatch(
      /^q was late: 3 of 10 starts were late by a second or more; 100 % of the lateness: promotion/,
    );
    expect(out).toMatch(/^waited +share +because\n2 min +100 % +promotion$/m);
    expect(out).toMatch(/^waited +group\n40 s +acme$/m);
    expect(out).toMatch(
      /^when +what +who +why\n\S+ +paused +\S+@\S+ +it moves\n\S+ +resumed, since \S+ +\S+@\S+ +it moves$/m,
    );
    const { verdict, starts, late, causes, groups, diary } = await answer(['queues', 'late', 'q']);
    expect([verdict, starts, late]).toEqual([out.split('\n')[1], 10, 3]);
    expect(causes).toEqual([{ cause: 'promotion', text: 'promotion', ms: 120_000, share: 1 }]);
    expect(groups).toEqual([{ group: 'acme', ms: 40_000 }]);
    expect(diary.intervals).toMatchObject([{ what: 'paused', why: 'it moves', partitions: 1 }]);
  });

  test('says that a queue was on time, and that no start is told', async () => {
    expect(await said()).toMatch(/\nno start of q is told in this time: no leader has kept minutes\.\n/);
    await told(5, 5);
    expect(await said()).toMatch(/\nq was on time: 2 starts, 99 % of them within \d ms\.\n/);
    expect(await said('--from', '-2m')).toContain('no start of q is told');
  });

  test('takes times of a zone, the last that there were, and refuses an end before its beginning', async () => {
    const range = async (...flags: readonly string[]) => {
      const { fromMs, toMs } = await answer(['queues', 'late', 'q', ...flags]);
      return [fromMs, toMs].map((ms) => new Date(ms).toISOString());
    };
    const [from = '', to = ''] = await range('--from', '02:00', '--to', '04:00', '--zone', 'Asia/Kolkata');
    expect([from.slice(11), to.slice(11)]).toEqual(['20:30:00.000Z', '22:30:00.000Z']);
    expect(Date.parse(to) - Date.parse(from)).toBe(7_200_000);
    expect(Date.now() - Date.parse(to)).toBeLessThan(86_400_000);
    const local = ['--from', '2026-03-01T02:00', '--to', '2026-03-01T04:00:00Z', '--zone', 'Europe/Berlin'];
    expect(await range(...local)).toEqual(['2026-03-01T01:00:00.000Z', '2026-03-01T04:00:00.000Z']);
    expect(await range('--to', '2026-03-01T04:00:00Z')).toEqual([
      '2026-03-01T03:00:00.000Z',
      '2026-03-01T04:00:00.000Z',
    ]);
    expect((await due(['queues', 'late', 'q', '--from', '-1h', '--to', '-2h'])).err).toContain('allowed: before to');
    expect((await due(['queues', 'late', 'q', '--from', 'noon'])).err).toContain('--from is "noon"');
  });
});

describe('queues pause', () => {
  test('says since when and why, what goes on, and shows in the stats', async () => {
    await the.running('runs');
    expect(await due(['queues', 'pause', 'q', '--reason', 'the mail server moves'])).toEqual({
      code: 0,
      err: '',
      out: 'q is paused\nrunning jobs go on to their end: 1 job\nto go on: duestream queues resume q\n',
    });
    expect(await the.promote()).toMatchObject({ kind: 'paused' });
    expect((await due(['queues', 'show', 'q'])).out).toMatch(/^paused +since 20.*: the mail server moves$/m);
    expect(await answer(['queues', 'show', 'q'])).toMatchObject({
      paused: true,
      pause: { reason: 'the mail server moves', sinceMs: expect.any(Number) },
    });
    expect((await due(['queues', 'pause', 'q'])).out).toMatch(
      /^q was paused already, since 20.*the mail server moves\n/,
    );
  });

  test('is one answer as JSON, of all partitions', async () => {
    await declareQueue(the.redis, { namespace, queue: 'wide', partitions: 3 });
    expect(await answer(['queues', 'pause', 'wide', '--reason', 'why'])).toMatchObject({
      queue: 'wide',
      paused: true,
      changed: true,
      running: 0,
      pause: { reason: 'why' },
    });
    for (const partition of [0, 1, 2]) {
      const { meta } = partitionKeys({ namespace, queue: 'wide', partition });
      expect(await the.redis.hexists(meta, 'paused')).toBe(1);
    }
  });

  test('refuses a reason that is a story', async () => {
    const { code, err } = await due(['queues', 'pause', 'q', '--reason', 'x'.repeat(201)]);
    expect({ code, err }).toEqual({
      code: 64,
      err: expect.stringContaining('201 characters; allowed: a text of at most 200'),
    });
  });
});

describe('queues resume', () => {
  test('lets the queue go on, and says how long it rested', async () => {
    await due(['queues', 'pause', 'q', '--reason', 'why']);
    const { code, out } = await due(['queues', 'resume', 'q']);
    expect(out).toMatch(/^q goes on; it was paused since 20.*: why\n$/);
    expect(code).toBe(0);
    expect(await the.promote()).toMatchObject({ kind: 'promoted' });
    expect((await due(['queues', 'resume', 'q'])).out).toBe('q was not paused\n');
  });

  test('says as JSON whether anything changed', async () => {
    expect(await answer(['queues', 'resume', 'q'])).toEqual({ queue: 'q', paused: false, changed: false });
    await due(['queues', 'pause', 'q']);
    expect(await answer(['queues', 'resume', 'q'])).toMatchObject({ changed: true, pause: { reason: '' } });
  });

  test('of a queue that was never used ends with 1', async () => {
    expect((await due(['queues', 'resume', 'nobody'])).code).toBe(1);
  });
});

describe('queues rm', () => {
  /** The registry, and the audit: who removed it. */
  const kept = [controlKeys(namespace).audit, controlKeys(namespace).queues];

  test('removes a queue that holds nothing, and leaves no key but the registry, which says the schema', async () => {
    await the.complete([await the.running('a')]);
    expect(await due(['queues', 'rm', 'q'])).toEqual({ code: 0, out: 'q is removed\n', err: '' });
    expect((await the.redis.keys('*')).sort()).toEqual(kept);
    expect(await registry()).toEqual([SCHEMA_FIELD]);
  });

  test('refuses one that holds anything, says what, and removes it by force', async () => {
    await the.dead('a');
    await the.schedule('b', { dueMs: T0 + 1000 });
    const { code, err } = await due(['queues', 'rm', 'q']);
    expect({ code, err }).toEqual({
      code: 1,
      err: expect.stringContaining('q holds 1 scheduled, 1 dead; add --force'),
    });
    expect(await queueNames()).toEqual(['q']);
    expect(await answer(['queues', 'rm', 'q', '--force'])).toEqual({
      queue: 'q',
      removed: true,
      forced: true,
      held: { scheduled: 1, ready: 0, running: 0, dead: 1 },
      schedules: [],
    });
    expect((await the.redis.keys('*')).sort()).toEqual(kept);
    await declareQueue(the.redis, { namespace, queue: 'q', partitions: 1 });
    await the.schedule('c', { dueMs: T0 + 1000 });
    expect((await due(['queues', 'rm', 'q', '--force'])).out).toBe('q is removed with 1 scheduled\n');
  });

  test('is in the audit with the number of jobs that went, an empty queue as one change', async () => {
    const audited = async () => {
      const { entries } = JSON.parse((await due(['admin', 'audit', '--json'])).out);
      return entries.map(({ verb, count }: { verb: string; count: number }) => [verb, count]);
    };
    for (let nth = 0; nth < 3; nth += 1) await the.dead(`dead${nth}`);
    await the.running('runs');
    await the.scheduleAll(Array.from({ length: 45 }, (_, nth) => item(`j${nth}`, { dueMs: T0 + 1000 })));
    await due(['queues', 'rm', 'q', '--force']);
    expect(await audited()).toEqual([['queues.rm', 49]]);
    await declareQueue(the.redis, { namespace, queue: 'q', partitions: 1 });
    await due(['queues', 'rm', 'q']);
    expect(await audited()).toEqual([
      ['queues.rm', 1],
      ['queues.rm', 49],
    ]);
  });

  test('removes one whose entry cannot be read by force, with the keys of each partition that has some', async () => {
    await the.schedule('b', { dueMs: T0 + 1000 });
    await the.redis.hset(controlKeys(namespace).queues, 'q', '{"partitions":null,"generation":0}');
    await the.redis.zadd(partitionKeys({ namespace, queue: 'q', partition: 7 }).scheduled, 1, 'bare');
    const { code, err } = await due(['queues', 'rm', 'q']);
    expect({ code, err }).toEqual({
      code: 69,
      err: expect.stringContaining('"duestream queues rm q --force" removes it'),
    });
    const { control } = await answer(['doctor', '--keys']);
    expect(control).toMatchObject([{ what: 'unreadable', name: 'q' }]);
    expect((await due(['doctor'])).out).toMatch(/fail +schema +the registry's entry of queue "q" cannot be read/);
    expect((await due(['queues', 'rm', 'q', '--force'])).out).toBe('q is removed with 2 scheduled\n');
    expect((await the.redis.keys('*')).sort()).toEqual(kept);
    expect((await due(['doctor'])).out).toMatch(/ok +schema/);
  });

  test('refuses one that schedules make jobs for, says which, and removes them by force', async () => {
    const put = (name: string, queue: string) => due(['schedules', 'put', name, '--queue', queue, '--every', '1h']);
    await put('nightly', 'q');
    await put('other', 'elsewhere');
    await the.redis.hset(controlKeys(namespace).schedules, 'odd', '{"schedule":{"queue":"q"}}');
    const { code, err } = await due(['queues', 'rm', 'q']);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('q has 2 schedules: nightly, odd; remove') });
    expect((await due(['queues', 'rm', 'q', '--force'])).out).toBe('q is removed with 2 schedules\n');
    expect(await the.redis.hkeys(controlKeys(namespace).schedules)).toEqual(['other']);
    expect(await the.redis.keys('t:v1:{q:0}:*')).toEqual([]);
  });

  test('keeps a schedule that is put while the queue is removed by force, and has it fired', async () => {
    const connection: { exists: typeof the.redis.exists } = Object.getPrototypeOf(the.redis);
    const lookForLeaders = vi.spyOn(connection, 'exists').mockImplementationOnce(async () => {
      lookForLeaders.mockRestore();
      const args = ['schedules', 'put', 'late', '--queue', 'q', '--every', '1h'];
      await runHere([...args, '--redis', the.server.url, '--namespace', namespace]);
      return 0;
    });
    const args = ['queues', 'rm', 'q', '--force', '--redis', the.server.url, '--namespace', namespace];
    const { code, out } = await runHere(args);
    expect({ code, out }).toEqual({
      code: 1,
      out: expect.stringContaining('schedules were put in q while it was removed'),
    });
    expect(await queueNames()).toEqual(['q']);
    expect(await the.redis.zrange(partitionKeys({ namespace, queue: 'q', partition: 0 }).fires, '0', '-1')).toEqual([
      'late',
    ]);
  });

  test('refuses one that a living worker serves', async () => {
    await worker('w-1', ['other', 'q']);
    const { code, err } = await due(['queues', 'rm', 'q']);
    expect({ code, err }).toEqual({
      code: 1,
      err: expect.stringContaining('q is served by 1 living worker, such as mill:7'),
    });
    expect((await due(['queues', 'rm', 'q', '--force'])).code).toBe(0);
    expect(await queueNames()).toEqual([]);
  });

  test('keeps a job that is scheduled while the queue is removed by force, declares the queue again and ends with 1', async () => {
    const connection: { exists: typeof the.redis.exists } = Object.getPrototypeOf(the.redis);
    const lookForLeaders = vi.spyOn(connection, 'exists').mockImplementationOnce(async () => {
      await the.schedule('late', { dueMs: T0 + 1000 });
      return 0;
    });
    let text = '';
    const screen = { write: (part: string) => (text += part) };
    const args = ['queues', 'rm', 'q', '--force', '--redis', the.server.url, '--namespace', namespace];
    const invocation = { args, env: {}, cwd: cli.folder, stdin: Readable.from([]), stdout: screen, stderr: screen };
    expect(await runCli(invocation)).toBe(1);
    lookForLeaders.mockRestore();
    expect(text).toContain('jobs were scheduled in q while it was removed: it is kept with those');
    expect(await queueNames()).toEqual(['q']);
    expect(await the.picture()).toEqual({ scheduled: { 'j:late': T0 + 1000 }, jobs: { 'j:late': 'record' } });
  });

  test('of a name outside the grammar ends with 64', async () => {
    expect((await due(['queues', 'rm', 'A B'])).code).toBe(64);
  });
});

describe('a daemon that runs', () => {
  const entries = () => the.redis.xlen(the.keys.ready);
  const leads = () => the.redis.exists(the.keys.leader);

  test('rests while its queue is paused, goes on when it resumes, and lets go of it when it is removed', async () => {
    const args = ['start', '--roles', 'mover', '--redis', the.server.url, '--namespace', namespace];
    const daemon = await cli.start(args, { env: { DUESTREAM_PROFILE: 'quiet' } });
    await expect.poll(leads).toBe(1);
    await due(['queues', 'pause', 'q']);
    await the.schedule('a', { nowMs: T0 });
    await the.redis.spublish(the.keys.wake, '0');
    await expect.poll(() => the.redis.hget(the.keys.meta, 'wake')).toBe('0');
    expect(await entries()).toBe(0);
    await due(['queues', 'resume', 'q']);
    await expect.poll(entries).toBe(1);
    const claims = await the.claim(await the.read());
    await the.complete(claims);
    expect((await due(['queues', 'rm', 'q'])).out).toBe('q is removed\n');
    expect(await the.redis.keys('t:v1:{q:*')).toEqual([]);
    expect(await daemon.end()).toBe(0);
    expect(await the.redis.keys('t:v1:{q:*')).toEqual([]);
  });
});

describe('a broadcast queue', () => {
  const subscriber = async (id: string, lag: number) => {
    const identity = { id, role: 'subscriber' as const, host: 'mill', pid: 7, startedMs: 1, queues: ['q'] };
    await beat(the.redis, { namespace, identity, ttlMs: 60_000 });
    await noteLag(the.redis, { namespace, identity, beatTtlMs: 60_000, lag });
  };

  test('is made by a setting, and unmade', async () => {
    const on = await due([
      'queues',
      'set',
      'q',
      '--broadcast',
      'on',
      '--broadcast-max',
      '500',
      '--broadcast-age',
      '10m',
    ]);
    expect(on.out).toContain(
      'every subscriber of q gets each job; kept for those behind: 500, of 16777216 bytes, for 10m',
    );
    expect((await findQueue(the.redis, namespace, 'q'))?.broadcast).toMatchObject({ isOn: true, max: 500 });
    expect((await due(['queues', 'set', 'q', '--broadcast', 'off'])).out).toContain('each job of q goes to one worker');
    expect((await findQueue(the.redis, namespace, 'q'))?.broadcast).toMatchObject({ isOn: false });
    for (const wrong of [
      [],
      ['--broadcast', 'maybe'],
      ['--broadcast-max', '5'],
      ['--broadcast', 'off', '--broadcast-age', '1h'],
    ]) {
      expect((await due(['queues', 'set', 'q', ...wrong])).code).toBe(64);
    }
  });

  test('says who subscribes, and how far behind each is', async () => {
    await due(['queues', 'set', 'q', '--broadcast', 'on']);
    await subscriber('s-1', 3);
    await subscriber('s-2', 12);
    await the.redis.xadd(
      the.keys.cast,
      '*',
      'count',
      '1',
      'before',
      '0',
      'member',
      'j:a',
      'due',
      '1',
      'record',
      '1a|{}',
    );
    const { out } = await due(['queues', 'show', 'q']);
    expect(out).toMatch(/^workers +none: every subscriber gets each job$/m);
    expect(out).toMatch(/^broadcast +keeps 1 job; at most 10000, of 16777216 bytes, for 1h$/m);
    expect(out).toMatch(/^s-2 +mill:7 +12\ns-1 +mill:7 +3$/m);
    expect((await answer(['queues', 'show', 'q'])).broadcast).toMatchObject({
      kept: 1,
      subscribers: [{ lag: 12 }, { lag: 3 }],
    });
    const refused = await due(['queues', 'rm', 'q']);
    expect(refused.err).toMatch(/served by 2 living subscribers, such as mill:7/);
  });

  test('is removed with what it has sent and its setting', async () => {
    await due(['queues', 'set', 'q', '--broadcast', 'on']);
    await the.redis.xadd(the.keys.cast, '*', 'count', '1');
    expect((await due(['queues', 'rm', 'q'])).code).toBe(0);
    expect([await the.redis.exists(the.keys.cast), await queueNames()]).toEqual([0, []]);
  });
});

describe('how long due jobs linger', () => {
  test.each([
    ['20ms', 'due jobs of q wait for company: passes are 20ms apart at least', 20],
    ['1s', 'due jobs of q wait for company: passes are 1s apart at least', 1000],
    ['0', 'due jobs of q start on time', 0],
  ])('is set to %s', async (linger, said, ms) => {
    const { out } = await due(['queues', 'set', 'q', '--linger', linger]);
    expect(out).toContain(said);
    expect(out).toContain('all processes follow within half a minute');
    expect((await findQueue(the.redis, namespace, 'q'))?.lingerMs).toBe(ms);
    expect(await answer(['queues', 'show', 'q'])).toMatchObject({ lingerMs: ms });
    const stats = (await due(['queues', 'show', 'q'])).out;
    expect(/^linger +.*$/m.exec(stats)?.[0]).toBe(
      ms > 0 ? `linger     due jobs wait up to ${linger} for company` : undefined,
    );
  });

  test.each(['2s', '1001ms', '20', 'soon', ''])('is not %j', async (linger) => {
    const refused = await due(['queues', 'set', 'q', '--linger', linger]);
    expect(refused.code).toBe(64);
    expect(refused.err).toMatch(/linger is ".*"[;,] .*(allowed|did you mean)/);
  });
});

describe('limits of what runs', () => {
  test.each([
    [['--rate', '10/s', '--burst', '3'], 'q starts 10/s, burst 3'],
    [['--rate', '7/90s'], 'q starts 7 per 90s'],
    [['--rate', '10/s,500/h', '--burst', '1,50'], 'q starts 10/s and 500/h, burst 50'],
    [
      ['--rate', '10/s,500/h'],
      'q starts 10/s and 500/h; 10/s never counts, as 500/h lets no more than 1 start at once: say a larger --burst for it',
    ],
    [['--rate', 'none'], 'q has no rate'],
    [['--concurrency', '1'], 'q runs at most 1 job at a time'],
    [['--per-group', '2'], 'q runs at most 2 jobs of each group at a time'],
    [['--fair'], 'groups and priorities of q start in turns'],
    [
      ['--costs'],
      'a job of q may cost more than one turn of a rate; processes of older versions start none of its jobs',
    ],
  ])('are set by %j', async (flags, words) => {
    const { code, out } = await due(['queues', 'set', 'q', ...flags]);
    const setting = flags[0]?.slice(2);
    expect({ code, out }).toEqual({
      code: 0,
      out: `${words}\nthis holds from now on; what has no turn waits in line\nto take it back: duestream queues set q --unset ${setting}\n`,
    });
  });

  test.each([
    [['--rate', '10'], 'rate is "10"; allowed: a text such as 10/s'],
    [['--burst', '5'], 'say --rate beside --burst'],
    [
      ['--rate', '10/s,500/h', '--burst', '5'],
      '--burst has 1 number and --rate 2; allowed: one number for each rate, such as --rate 10/s,500/h --burst 1,50',
    ],
    [['--rate', '1/s,2/m,3/h'], 'or two of them in a list'],
    [['--rate', '10/s,none'], 'allowed: a text such as 10/s'],
    [['--per-group', '1', '--group-rate', '1/s,2/m'], 'per of rate is "s,2/m"'],
    [['--per-group', '0'], '--per-group'],
  ])('are refused for %j', async (flags, words) => {
    const { code, err } = await due(['queues', 'set', 'q', ...flags]);
    expect({ code, err }).toEqual({ code: 64, err: expect.stringContaining(words) });
    expect(await findQueue(the.redis, namespace, 'q')).toEqual({ queue: 'q', partitions: 1, layoutGeneration: 0 });
  });

  test('that are set by command hold against a definition, say so, and are taken back', async () => {
    const declare = () =>
      declareQueue(the.redis, { namespace, queue: 'q', partitions: 1, rate: { limit: 100, perMs: 1000, burst: 1 } });
    await declare();
    const { out } = await due(['queues', 'set', 'q', '--rate', '1/s', '--reason', 'incident 7']);
    expect(out).toContain('code says 100/s for rate; it counts again when you take this back\n');
    await declare();
    const held = /1\/s \(set by \S+, incident 7; code says 100\/s\)/;
    expect((await due(['queues', 'ls'])).out).toMatch(held);
    const stats = await due(['queues', 'show', 'q']);
    expect(stats.out).toMatch(/^by hand +rate is 1\/s \(set by \S+, incident 7; code says 100\/s\)$/m);
    expect(await due(['queues', 'set', 'q', '--unset', 'rat'])).toMatchObject({
      code: 64,
      err: expect.stringContaining('did you mean'),
    });
    expect((await due(['queues', 'set', 'q', '--unset', 'rate', '--reason', 'it is over'])).out).toBe(
      'rate of q is 100/s again\n',
    );
    expect((await due(['queues', 'show', 'q'])).out).toMatch(/^limits +100\/s$/m);
    expect((await due(['admin', 'audit'])).out).toMatch(/queues\.unset .*it is over(.|\n)*queues\.set .*incident 7/);
  });

  test('and a linger by command, go back to what nobody said', async () => {
    await due(['queues', 'set', 'q', '--linger', '20ms', '--per-group', '2', '--group-rate', '1/s']);
    expect((await due(['queues', 'set', 'q', '--unset', 'linger', '--unset', 'per-group'])).out).toBe(
      'linger of q is as it is by default again\nperGroup of q is no limit again\n',
    );
    expect(await findQueue(the.redis, namespace, 'q')).toMatchObject({ perGroup: 0, groupRate: 0 });
    expect((await findQueue(the.redis, namespace, 'q'))?.lingerMs).toBeUndefined();
  });

  test('are told with how many wait, and every command that is named there is one', async () => {
    await due(['queues', 'set', 'q', '--concurrency', '1']);
    await the.scheduleAll([item('a'), item('b')]);
    await the.promote();
    const { out } = await due(['queues', 'show', 'q']);
    expect(out).toMatch(/0 scheduled, 1 waiting, 1 ready/);
    expect(out).toMatch(/in line +the first of them has waited for /);
    expect(out).not.toContain('duestream ');
  });

  test('stand in queues ls and stats, with what runs and what waits', async () => {
    await due(['queues', 'set', 'q', '--concurrency', '1', '--rate', '10/s']);
    await the.scheduleAll([item('a'), item('b'), item('c')]);
    await the.run();
    expect((await due(['queues', 'ls'])).out).toMatch(
      /^gated +in line +for +running +limits\nq +2 +\d+ \S+ +1\/1 +10\/s · 1 at once$/m,
    );
    const { out } = await due(['queues', 'show', 'q']);
    expect(out).toMatch(/^limits +10\/s · 1 at once; 1 of 1 run$/m);
    expect(out).toMatch(/^partition +scheduled +in line +ready +running .*\n +0 +0 +2 +0 +1\/1 /m);
    const rate = { limit: 10, perMs: 1000, burst: 1 };
    const limits = { text: '10/s · 1 at once', rate, concurrency: 1 };
    expect(await answer(['queues', 'show', 'q'])).toMatchObject({ limits, partitions: [{ concurrency: 1 }] });
    expect((await answer(['queues', 'ls'])).queues).toMatchObject([{ waiting: 2, limits }]);
  });
});
