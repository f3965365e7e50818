/** What `doctor` sees beyond the settings of a server: its holes, its clock, our rights, and what producers put wrongly. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createScheduleStore } from '../../../src/client/schedules/schedule-store.ts';
import { limits } from '../../../src/inspect/doctor/check-limits.ts';
import { dueTimes, isReadable } from '../../../src/inspect/doctor/check-members.ts';
import { closedTags, done, unsealedSets } from '../../../src/inspect/doctor/check-namespace.ts';
import { schedules } from '../../../src/inspect/doctor/check-schedules.ts';
import { targetSecrets } from '../../../src/inspect/doctor/check-targets.ts';
import { checks, commandsUsed, patches } from '../../../src/inspect/doctor/checks.ts';
import { ruleOf } from '../../../src/redis/connection/access.ts';
import { controlKeys, GROUP, partitionKeys, partitionRef } from '../../../src/redis/keys.ts';
import { beat } from '../../../src/redis/scripts/presence.ts';
import { declareQueue, setQueue, undeclareQueue } from '../../../src/redis/scripts/queues.ts';
import { disarm } from '../../../src/redis/scripts/schedules.ts';
import { useCli } from '../../support/cli.ts';
import { T0, usePartition } from '../../support/partition.ts';
import { read, walk } from '../../support/repository.ts';

const cli = useCli();
const the = usePartition({ port: true, appendonly: true });

beforeEach(async () => {
  await declareQueue(the.redis, { namespace: 't', queue: 'q', partitions: 1 });
});

const doctor = (...args: readonly string[]) =>
  cli.run(['doctor', '--namespace', 't', '--redis', the.server.url, ...args]);
const found = async (name: string, ...args: readonly string[]) => {
  const { checks: all } = JSON.parse((await doctor('--json', ...args)).out);
  return all.find(({ check }: { readonly check: string }) => check === name);
};

test('an unknown flag ends with 64', async () => {
  expect((await doctor('--cure')).code).toBe(64);
});

describe('patches', () => {
  const of = (version: string, name = 'redis_version') => patches(new Map([[name, version]]));

  test.each(['7.2.16', '7.4.11', '8.2.9', '8.4.6', '8.6.6', '8.8.2', '8.10.1', '9.0.0'])(
    'Redis %s has none we know',
    (version) => {
      expect(of(version)).toMatchObject({
        status: 'ok',
        saw: `Redis ${version} has none of the vulnerabilities that we know`,
      });
    },
  );

  const OF_MAY = ['CVE-2026-23479', 'CVE-2026-23631', 'CVE-2026-25243'];
  const SINCE = ['CVE-2026-66373', 'CVE-2026-81934'];

  test.each([
    ['7.0.15', ['CVE-2025-49844', 'CVE-2026-23631', 'CVE-2026-25243', ...SINCE], '7.2.16'],
    ['7.2.10', ['CVE-2025-49844', ...OF_MAY, ...SINCE], '7.2.16'],
    ['7.2.13', [...OF_MAY, ...SINCE], '7.2.16'],
    ['7.2.14', SINCE, '7.2.16'],
    ['7.4.10', ['CVE-2026-81934'], '7.4.11'],
    ['8.2.1', ['CVE-2025-49844', ...OF_MAY, ...SINCE], '8.2.9'],
    ['8.0.6', [...OF_MAY, ...SINCE], '8.2.9'],
    ['8.6.3', SINCE, '8.6.6'],
    ['8.8.1', ['CVE-2026-81934'], '8.8.2'],
    ['8.10.0', ['CVE-2026-81934'], '8.10.1'],
  ])('Redis %s is open to %j', (version, cves, remedy) => {
    const { status, saw, advice } = of(version);
    expect(status).toBe('warn');
    expect(saw.match(/CVE-[\d-]+/g)).toEqual(cves);
    expect(advice).toBe(`upgrade to ${remedy} or later, unless your distribution has patched this version`);
  });

  test('Valkey is judged by its own version, not by the one of Redis it names', () => {
    const info = (valkey: string) =>
      new Map([
        ['redis_version', '7.2.4'],
        ['valkey_version', valkey],
      ] as const);
    expect(patches(info('8.1.9'))).toMatchObject({ status: 'ok', saw: expect.stringContaining('Valkey 8.1.9') });
    expect(patches(info('8.1.8'))).toMatchObject({ status: 'warn', advice: expect.stringContaining('8.1.9') });
    expect(patches(info('8.1.8')).saw.match(/CVE-[\d-]+/g)).toEqual(['CVE-2026-56684', 'CVE-2026-63639']);
    expect(patches(info('9.0.1')).saw.match(/CVE-[\d-]+/g)).toContain('CVE-2025-67733');
    expect(['7.2.14', '8.0.10', '9.0.5', '9.1.1', '9.2.0'].map((one) => patches(info(one)).status)).toEqual(
      Array(5).fill('ok'),
    );
  });
});

describe('limits', () => {
  const place = { namespace: 't', horizonMs: 1, done: { windowMs: 1, tombstonesMax: 1, floorMs: 1 }, closedMax: 1 };
  const look = () => limits({ redis: the.redis, info: new Map(), ...place });
  const partition = (nth: number) => partitionRef('t', { queue: 'two', partition: nth, layoutGeneration: 0 });
  const WAITS = 2 ** 52;

  beforeEach(() => declareQueue(the.redis, { namespace: 't', queue: 'two', partitions: 2 }));

  /** A job that has been in line for so long. */
  async function inLine(nth: number, id: string, ms: number): Promise<void> {
    await the.redis.zadd(partition(nth).keys.scheduled, WAITS + Date.now() - ms, `j:${id}`);
    // Its lane is open, unless its group is full.
    if (!id.startsWith('{')) await the.redis.zadd(partition(nth).keys.lanes, 2 ** 50 + 128, '1');
  }
  /** An entry that a worker has held for so long, and its hold. */
  async function heldBy(consumer: string, id: string, ms: number): Promise<void> {
    const { keys } = partition(0);
    const entry = (await the.redis.xadd(keys.ready, '*', 'member', `j:${id}`, 'due', '1')) ?? '';
    await the.redis.xgroup('CREATE', keys.ready, GROUP, '0', 'MKSTREAM');
    await the.redis.xreadgroup('GROUP', GROUP, consumer, 'COUNT', 1, 'STREAMS', keys.ready, '>');
    await the.redis.xclaim(keys.ready, GROUP, consumer, 0, entry, 'IDLE', ms);
    await the.redis.zadd(keys.holds, 0, `acme\0${entry}`);
  }

  test('that nobody has set, or that hold nobody, are as they should be', async () => {
    expect(await look()).toEqual({ status: 'ok', saw: 'no queue has limits' });
    await setQueue(the.redis, {
      namespace: 't',
      queue: 'two',
      concurrency: 2,
      rate: { limit: 1, perMs: 1000, burst: 1 },
    });
    expect(await look()).toMatchObject({ status: 'ok', saw: expect.stringContaining('1 queue with limits') });
    expect(await found('limits')).toMatchObject({ status: 'ok' });
  });

  test('of which one of two rates never counts are told, with the burst that is missing', async () => {
    const slower = { limit: 500, perMs: 3_600_000, burst: 1 };
    const rate = [{ limit: 10, perMs: 1000, burst: 1 }, slower] as const;
    await setQueue(the.redis, { namespace: 't', queue: 'two', rate });
    expect(await look()).toMatchObject({
      status: 'warn',
      saw: '"two" has the rates 10/s and 500/h, and 10/s never counts: 500/h lets no more than 1 start at once',
      advice: "give 500/h of two a larger burst, such as { limit: 500, per: '1h', burst: 10 }, or one rate alone",
    });
    await setQueue(the.redis, { namespace: 't', queue: 'two', rate: [rate[0], { ...slower, burst: 10 }] });
    expect((await look()).status).toBe('ok');
  });

  test('of which one partition has waited at its share for a minute, while the other has room, are told', async () => {
    await setQueue(the.redis, { namespace: 't', queue: 'two', concurrency: 2 });
    await the.redis.xadd(partition(0).keys.ready, '*', 'member', 'j:runs', 'due', '1');
    await inLine(0, 'a', 59_000);
    expect((await look()).status).toBe('ok');
    await inLine(0, 'b', 125_000);
    expect(await look()).toMatchObject({
      status: 'warn',
      saw: '"two": partition 0 has waited at its share of the concurrency for 2 min, while 1 of 2 partitions have room',
      advice: expect.stringContaining('an unused share is not lent'),
    });
    await inLine(1, 'c', 1);
    expect((await look()).status).toBe('ok');
  });

  test('of a group that a dead worker has filled for more than a minute are told, with what to do', async () => {
    await setQueue(the.redis, { namespace: 't', queue: 'two', perGroup: 1 });
    await heldBy('gone', '{acme}runs', 125_000);
    expect((await look()).status).toBe('ok');
    await inLine(0, '{acme}waits', 1);
    await the.redis.zadd(partition(0).keys.line, 0, 'acme\x001000000000j:{acme}waits');
    expect(await look()).toMatchObject({
      status: 'warn',
      saw: '"two": jobs of dead workers have filled 1 group for more than 60 s: "acme"',
      advice: expect.stringContaining('start a worker of two'),
    });
    const identity = { id: 'gone', role: 'worker' as const, host: 'mill', pid: 7, startedMs: 1, queues: ['two'] };
    await beat(the.redis, { namespace: 't', identity, ttlMs: 60_000 });
    expect((await look()).status).toBe('ok');
  });

  test('that are less than the partitions need are told', async () => {
    await the.redis.hset(controlKeys('t').queues, 'two:concurrency', '1');
    expect(await look()).toMatchObject({
      status: 'warn',
      saw: '"two" has concurrency 1 and 2 partitions, and each of them runs one job at a time',
      advice: expect.stringContaining('duestream queues set two --concurrency 2'),
    });
  });
});

describe('ends', () => {
  const DONE = { windowMs: 600_000, tombstonesMax: 1000, floorMs: 60_000 };
  const look = (limits = DONE) =>
    done({ redis: the.redis, info: new Map(), namespace: 't', horizonMs: 1, done: limits, closedMax: 1 });
  /** So many ends, spread evenly over so long a time until now. */
  async function over(count: number, spanMs: number): Promise<void> {
    const nowMs = Date.now();
    await the.redis.zadd(
      the.keys.done,
      ...Array.from({ length: count }, (_, at) => [nowMs - (spanMs * (count - at)) / count, `j:${at}`]).flat(),
    );
  }
  afterEach(() => the.redis.del(the.keys.done, the.keys.meta));

  test('that are few are all remembered for the whole window', async () => {
    await over(99, 1000);
    expect(await look()).toEqual({ status: 'ok', saw: 'every end of a job is remembered for 10 min' });
    await over(900, 600_000);
    expect((await look()).status).toBe('ok');
  });

  test('that come faster than done.max allows are remembered for less, and what to set is told', async () => {
    await over(500, 150_000);
    const { status, saw, advice } = await look();
    expect(status).toBe('warn');
    expect(saw).toMatch(
      /^ends in q:0 are remembered for 5 min, not for 10 min: about 3 jobs end there per second, and done.max is 1000$/,
    );
    expect(advice).toMatch(/^set done.max to \d{4} or more, about 1 MiB of memory/);
  });

  test('of which one went near the floor are told so', async () => {
    await the.redis.hset(the.keys.meta, 'evicted', `61000 ${Date.now()}`);
    expect(await look()).toMatchObject({
      status: 'warn',
      saw: expect.stringContaining('remembered for 61 s'),
      advice: expect.stringContaining('no end is forgotten before 60 s'),
    });
  });

  test('that come so fast that only the floor keeps them are told so before the first goes', async () => {
    await over(900, 1000);
    expect(await look()).toMatchObject({ saw: expect.stringContaining('remembered for 60 s') });
  });

  test('that nobody wants are not looked at', async () => {
    await over(900, 1000);
    expect(await look(OFF)).toMatchObject({ status: 'ok' });
  });
});

describe('sets', () => {
  const look = () =>
    unsealedSets({ redis: the.redis, info: new Map(), namespace: 't', horizonMs: 1, done: OFF, closedMax: 1 });
  const begin = (name: string, madeMs: number, sealed = 0) =>
    Promise.all([
      the.redis.zadd(the.keys.tags, 0, `=sets\0${name}`),
      the.redis.hset(
        the.keys.jobs,
        `\0set\0${name}`,
        `.${sealed} ${madeMs} 0.0.0.0`,
        `\0then\0${name}`,
        '.0 j:x 10|{}',
      ),
    ]);
  afterEach(() => the.redis.del(the.keys.tags, the.keys.jobs));

  test('that nobody has sealed for a day are told, the oldest first', async () => {
    const nowMs = Date.now();
    await begin('new', nowMs);
    await begin('sealed', nowMs - 2 * 86_400_000, 1);
    expect(await look()).toEqual({ status: 'ok', saw: '2 sets whose callbacks were not made yet' });
    await begin('old', nowMs - 2 * 86_400_000);
    expect(await look()).toMatchObject({
      status: 'warn',
      advice: expect.stringContaining('duestream sets seal q old'),
    });
  });
});

describe('secrets of targets', () => {
  const look = (secrets?: readonly string[]) =>
    targetSecrets({
      redis: the.redis,
      info: new Map(),
      namespace: 't',
      horizonMs: 1,
      done: OFF,
      closedMax: 1,
      secrets,
    });
  const target = (secret: string) =>
    setQueue(the.redis, { namespace: 't', queue: 'q', target: { url: 'https://a.example.com/', secret } });

  test('that no queue names are told, beside names that are not there, and no secret is', async () => {
    expect(await look()).toMatchObject({ status: 'ok' });
    await target('mian');
    expect(await look(['main'])).toEqual({
      status: 'warn',
      saw: 'no target of a queue names "main" of targets.secrets; targets name "mian", which is not there',
      advice: 'name it in the target of its queue, or take it out of targets.secrets',
    });
    await target('main');
    expect(await look(['main'])).toEqual({ status: 'ok', saw: '1 secret, and queues name each' });
  });

  test('are those of the configuration, and their names alone are shown', async () => {
    const { out } = await cli.run(['doctor', '--namespace', 't', '--redis', the.server.url], {
      env: { DUESTREAM_TARGETS__SECRETS: '{"spare": "whsec_Q0FOQVJZQ0FOQVJZQ0FOQVJZQ0FOQVJZ"}' },
    });
    expect(out).toMatch(/warn {2}targets +no target of a queue names "spare" of targets\.secrets/);
    expect(out).not.toContain('Q0FOQVJZ');
  });
});

describe('closed tags', () => {
  const look = (closedMax = 10) =>
    closedTags({ redis: the.redis, info: new Map(), namespace: 't', horizonMs: 1, done: OFF, closedMax });
  const close = (count: number) =>
    the.redis.zadd(the.keys.closed, ...Array.from({ length: count }, (_, at) => [T0, `tag-${at}`]).flat());
  afterEach(() => the.redis.del(the.keys.closed));

  test('that are few are counted', async () => {
    expect(await look()).toEqual({ status: 'ok', saw: '0 tags closed' });
    await close(7);
    expect(await look()).toEqual({ status: 'ok', saw: '7 tags closed' });
    expect(await found('closed')).toEqual({ check: 'closed', status: 'ok', saw: '7 tags closed' });
  });

  test('that are nearly as many as may be are told, with what to do', async () => {
    await close(8);
    const { status, saw, advice } = await look();
    expect(status).toBe('warn');
    expect(saw).toBe('8 tags of q are closed, and mover.closedMax is 10: one more than that is refused');
    expect(advice).toMatch(/^open some: duestream tags ls q, .* set mover.closedMax to 20/);
  });
});

const OFF = { windowMs: 0, tombstonesMax: 0, floorMs: 0 };

describe('clock', () => {
  const clock = checks.find(({ name }) => name === 'clock');
  const withOffset = (offsetMs: number) =>
    clock?.look({
      info: new Map(),
      namespace: 't',
      horizonMs: 1,
      done: OFF,
      closedMax: 1,
      redis: new Proxy(the.redis, {
        get: (target, name) =>
          name === 'time'
            ? async () => [Math.floor((Date.now() + offsetMs) / 1000), ((Date.now() + offsetMs) % 1000) * 1000]
            : Reflect.get(target, name),
      }),
    });

  test('of Redis within half a second of ours is well', async () => {
    expect(await found('clock')).toMatchObject({ status: 'ok', saw: expect.stringMatching(/this machine$/) });
    expect(await withOffset(-300)).toMatchObject({ status: 'ok' });
  });

  test('that is further away is told, with its direction', async () => {
    expect(await withOffset(-120_000)).toMatchObject({ status: 'warn', saw: 'Redis is 2 min behind this machine' });
    expect(await withOffset(2000)).toMatchObject({
      status: 'warn',
      saw: 'Redis is 2 s ahead of this machine',
      advice: expect.stringContaining('NTP'),
    });
  });
});

describe('rights', () => {
  const as = async (...rules: readonly string[]) => {
    await the.redis.call('ACL', 'SETUSER', 'limited', 'reset', 'on', '>pw', ...rules);
    return found('rights', '--redis', `redis://limited:pw@127.0.0.1:${the.server.port}`);
  };

  test('every command of a script is asked for', () => {
    const named = walk('lua').flatMap((path) => [...read(path).matchAll(/redis\.call\('([A-Z]+)'/g)]);
    const asked = new Set(commandsUsed('t').map(([name]) => name));
    expect(named.map(([, name = '']) => name.toLowerCase()).filter((name) => !asked.has(name))).toEqual([]);
  });

  test('of a user that may do all are well', async () => {
    expect(await found('rights')).toMatchObject({ status: 'ok', saw: expect.stringContaining('user default may use') });
  });

  test('that lack a command, keys or channels are told with the rule that gives them', async () => {
    expect(await as('~other:*', '&t:*', '+@all', '-xadd')).toEqual({
      check: 'rights',
      status: 'fail',
      saw: expect.stringMatching(/user limited may not use .*keys like t:v1:.*command xadd/),
      advice: 'ACL SETUSER limited ~t:v1:* &t:v1:* +xadd',
    });
    expect(await as('~*', '&other:*', '+@all')).toMatchObject({
      saw: expect.stringContaining('channels like t:v1:{doctor:0}:wake'),
    });
  });

  test('that cannot be seen are a warning with what they must be', async () => {
    expect(await as('~*', '&*', '+@all', '-acl|dryrun')).toMatchObject({
      status: 'warn',
      saw: 'the rights of user limited cannot be seen: ACL DRYRUN is not allowed',
      advice: expect.stringContaining(`has ${ruleOf('service', { namespace: 't' })}`),
    });
  });
});

describe('schema', () => {
  test('of ours, and of a partition that was never led, is well', async () => {
    expect(await found('schema')).toMatchObject({ status: 'ok', saw: 'schema 1, in 1 partition' });
    await the.lead();
    expect(await found('schema')).toMatchObject({ status: 'ok' });
  });

  test('of another version fails', async () => {
    await the.redis.hset(the.keys.meta, 'schema', '2');
    const { code, out } = await doctor();
    expect(code).toBe(1);
    expect(out).toMatch(/^fail {2}schema {7}1 partition with another schema than 1: q partition 0 has "2"$/m);
    expect(out).toContain('another namespace');
  });
});

describe('scores', () => {
  test('that make sense are well', async () => {
    await the.schedule('a', { dueMs: T0 + 1 });
    await the.put('now', 0);
    expect(await found('scores')).toMatchObject({ status: 'ok', saw: 'every due time makes sense, in 1 partition' });
  });

  test('in seconds, below zero and past the horizon are reported with an example', async () => {
    await the.put('order-1', 1_763_719_000);
    await the.put('order-2', -5);
    await the.put('order-3', '+inf');
    const { code, out } = await doctor();
    expect(code).toBe(0);
    expect(out).toMatch(
      /^warn {2}scores {7}2 due times that look like seconds, such as "order-2" at -5 in q; 1 due time past the horizon/m,
    );
    expect(out).toContain(
      'change the producer: the score is milliseconds since 1970; if nobody means these times, remove',
    );
  });

  test('that a mover has refused already are found among the dead letters', async () => {
    await the.put('order-1', 1_763_719_000);
    await the.promote();
    expect(await found('scores')).toMatchObject({ status: 'warn', saw: '1 dead letter for the reason bad-due' });
  });

  test('are looked at without a write', async () => {
    await the.put('order-1', 5);
    const subject = { redis: the.redis, info: new Map(), namespace: 't', horizonMs: 1000, done: OFF, closedMax: 1 };
    expect(await the.withoutWrite(() => Promise.resolve(dueTimes(subject)))).toMatchObject({ status: 'warn' });
  });
});

describe('members', () => {
  test('that can be read are well', async () => {
    await the.schedule('a', { dueMs: T0 + 1 });
    await the.put('order-1', T0);
    expect(await found('members')).toMatchObject({ status: 'ok', saw: '2 ids checked, all can be read' });
  });

  test('that are binary, too long or refused already are told', async () => {
    await the.put(Buffer.from([0xff, 0x1b, 0x00]), T0);
    await the.promote();
    await the.put(Buffer.from([0xff, 0x1b, 0x00]), T0 + 1);
    await the.put('x'.repeat(131), T0 + 2);
    await the.put('two words', T0 + 3);
    const { out } = await doctor();
    expect(out).toMatch(
      /^warn {2}members {6}3 of 3 ids cannot be read, such as ".*" in q; 1 dead letter for the reason bad-member$/m,
    );
    expect(out).not.toContain('\u001b');
    expect(await found('members')).toMatchObject({ advice: expect.stringContaining('printable ASCII') });
  });

  test('are judged as promote judges them', () => {
    expect(['a', `j:${'x'.repeat(198)}`, 'x'.repeat(130)].filter((member) => !isReadable(member))).toEqual([]);
    expect(['', 'ä', 'a b', 'x'.repeat(131), `j:${'x'.repeat(199)}`].filter(isReadable)).toEqual([]);
  });
});

describe('schedules', () => {
  const { fires, fired } = partitionKeys({ namespace: 't', queue: 'q', partition: 0 });
  const { schedules: definitions } = controlKeys('t');
  const look = () =>
    schedules({ redis: the.redis, info: new Map(), namespace: 't', horizonMs: 1, done: OFF, closedMax: 1 });
  const store = () => createScheduleStore({ redis: the.redis, namespace: 't' });

  test('that their leaders know are well, and so are those that are paused or over', async () => {
    expect(await look()).toEqual({ status: 'ok', saw: 'none' });
    await store().put('hourly', { queue: 'q', every: '1h' });
    await store().put('paused', { queue: 'q', every: '1h', paused: true });
    await store().put('over', { queue: 'q', every: '1h', end: '2020-01-01' });
    await the.redis.zrem(fires, 'paused', 'over');
    expect(await look()).toEqual({ status: 'ok', saw: '3 schedules, each known to its leader' });
  });

  test('that cannot fire are told, each with what to do', async () => {
    for (const name of ['unarmed', 'forgotten', 'late', 'homeless', 'ahead', 'near']) {
      await store().put(name, { queue: name === 'homeless' ? 'away' : 'q', every: '1h' });
    }
    await the.redis.hset(definitions, 'odd', 'no JSON');
    await the.redis.hset(definitions, 'late', '{"since":1,"schedule":{"queue":"q","every":"1h"}}');
    await the.redis.zadd(fires, T0, 'late');
    await the.redis.zrem(fires, 'forgotten');
    await disarm(the.redis, partitionRef('t', { queue: 'q', partition: 0, layoutGeneration: 0 }), 'unarmed');
    await undeclareQueue(the.redis, 't', 'away');
    await the.redis.hset(
      fired,
      'ahead',
      `${Date.now() + 3_600_000} 1 0 - - 1`,
      'near',
      `${Date.now() + 30_000} 1 0 - - 1`,
    );
    const { status, saw, advice } = await look();
    expect(status).toBe('warn');
    expect(saw).toContain('1 of 7 has fired up to an instant in the future, because a clock went back');
    expect(saw).toContain('such as "ahead"');
    expect(saw).toContain('1 of 7 cannot be read, such as "odd"');
    expect(saw).toContain('1 of 7 has a queue that is not declared, such as "homeless"');
    expect(saw).toMatch(
      /2 of 7 is unknown to the leader of its queue, so it does not fire, such as "(unarmed|forgotten)"/,
    );
    expect(saw).toContain('1 of 7 is overdue and nobody fires it, such as "late"');
    expect(advice).toMatch(/put it again.*start a daemon/);
    await store().put('unarmed', { queue: 'q', every: '1h' });
    await store().put('forgotten', { queue: 'q', every: '1h' });
    expect((await look()).saw).not.toContain('unknown to the leader');
  });
});
