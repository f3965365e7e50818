/**
 * Every invariant of the design is broken once by hand, and `doctor --keys` must name it and nothing else. What it repairs it
 * tells first, and a second repair finds nothing to do.
 */
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../../src/kernel/clock.ts';
import { limitKeys, partitionKeys } from '../../../src/redis/keys.ts';
import { examine, examineControl, growth, growthFlaws } from '../../../src/redis/repair/examine.ts';
import { repair } from '../../../src/redis/repair/repair.ts';
import { limit } from '../../../src/redis/scripts/gates.ts';
import { changeSharedLimits, declareQueue, setQueue } from '../../../src/redis/scripts/queues.ts';
import { useCli } from '../../support/cli.ts';
import { failure, item, only, T0, usePartition } from '../../support/partition.ts';

const LATER = T0 + 5 * 365 * 86_400_000;
const HOUR_MS = 3_600_000;
const BINARY = Buffer.from([0xff, 0x00, 0x80, 0x7f]);

const cli = useCli();
const p = usePartition();

/** The command looks twice, two seconds apart; no test waits for them. */
const { sleep } = systemClock;
beforeEach(async () => {
  vi.spyOn(systemClock, 'sleep').mockImplementation((ms, signal) => sleep(Math.min(ms, 20), signal));
  await declareQueue(p.redis, { namespace: 't', queue: 'q', partitions: 1 });
});

const clock = { ...systemClock, sleep: async () => true };
const look = () => examine(p.redis, p.ref, { clock });
const found = async () => (await look()).flaws.map(({ invariant, what }) => `${invariant} ${what}`);
const doctor = (...args: readonly string[]) =>
  cli.run(['doctor', '--keys', ...args, '--redis', p.server.url, '--namespace', 't']);
const entryOf = async () => only(await p.redis.xrange(p.keys.ready, '-', '+'))[0];
const deleteConsumer = () => p.redis.call('XGROUP', 'DELCONSUMER', p.keys.ready, 'workers', 'w1');

/** Two jobs of a group, of which one is let through and the other waits in line. */
async function inLine(share: string): Promise<void> {
  await limit(p.redis, p.ref, { share: { share, groups: [] }, nowMs: T0 });
  await p.scheduleAll([item('{g}a'), item('{g}b')]);
  await p.promote({ nowMs: T0 });
}

/** Invariant → how it is broken, and what else that breaks. */
type Planted = readonly [flaw: string, how: string, plant: () => Promise<unknown>, also?: readonly string[]];
const planted: readonly Planted[] = [
  ['I18 overnoted', 'a note of an entry that is gone', () => p.redis.zadd(p.keys.stale, T0, 'j:gone')],
  ['I16 unswept', 'the order of the history is removed', () => p.redis.hset(p.keys.past, 'j:a', '1- d 1')],
  [
    'I1 shared',
    'somebody else claims the entry of a running job',
    async () => {
      await p.running('a');
      await p.redis.call('XCLAIM', p.keys.ready, 'workers', 'w2', 0, await entryOf());
    },
  ],
  [
    'I2 orphan',
    'a scheduled member is removed',
    async () => {
      await p.schedule('a', { dueMs: LATER });
      await p.redis.zrem(p.keys.scheduled, 'j:a');
    },
  ],
  [
    'I2 tombstone',
    'the index of what is over is removed',
    async () => {
      await p.complete([await p.running('a')]);
      await p.redis.del(p.keys.done);
    },
  ],
  ['I3 unrecorded', 'a member of ours is put without a record', () => p.put('j:a', LATER)],
  [
    'I4 vanished',
    'a held entry is deleted',
    async () => {
      await p.running('a');
      await p.redis.xdel(p.keys.ready, await entryOf());
    },
    ['I2 orphan'],
  ],
  [
    'I5 stuck',
    'a consumer is removed with what it holds',
    async () => {
      await p.schedule('a');
      await p.deliver();
      await deleteConsumer();
    },
  ],
  [
    'I6 group',
    'the group is destroyed',
    async () => {
      await p.schedule('a');
      await p.promote();
      await p.redis.call('XGROUP', 'DESTROY', p.keys.ready, 'workers');
    },
  ],
  [
    'I7 ahead',
    'the last token of the partition is set back',
    async () => {
      await p.running('a');
      await p.redis.hset(p.keys.meta, 'token', '1');
    },
  ],
  [
    'I8 early',
    'an entry is added long before its due',
    async () => {
      await p.schedule('a', { dueMs: LATER });
      await p.promote();
      await p.redis.xadd(p.keys.ready, '*', 'member', 'j:a', 'due', String(LATER));
    },
  ],
  [
    'I9 overdue',
    'somebody leads and promotes nothing',
    async () => {
      await p.lead();
      await p.schedule('a');
      await p.redis.hset(p.keys.meta, 'wake', '9007199254740991');
    },
  ],
  [
    'I10 lease',
    'a lease is made longer than it was taken for',
    async () => {
      await p.lead();
      await p.redis.pexpire(p.keys.leader, 10 * HOUR_MS);
    },
  ],
  [
    'I10 expiring',
    'a key of jobs gets an end',
    async () => {
      await p.schedule('a', { dueMs: LATER });
      await p.redis.pexpire(p.keys.scheduled, HOUR_MS);
    },
  ],
  [
    'I11 balance',
    'a counter is changed',
    async () => {
      await p.schedule('a', { dueMs: LATER });
      await p.redis.hincrby(p.keys.meta, 'n.scheduled', 1);
    },
  ],
  [
    'I12 idle',
    'a run is put without a record',
    async () => {
      await p.redis.hset(p.keys.runs, 'j:a', '0 0 0 0 0 - - - 0');
    },
  ],
  [
    'I13 unheld',
    'the hold of an entry is removed',
    async () => {
      await limit(p.redis, p.ref, { share: { share: '0 1 0 1', groups: [] }, nowMs: T0 });
      await p.schedule('{g}a');
      await p.promote({ nowMs: T0 });
      await p.redis.del(p.keys.holds);
    },
  ],
  [
    'I13 loose',
    'a hold is put without an entry',
    async () => {
      await inLine('0 1 0 1');
      await p.redis.zadd(p.keys.holds, 0, 'g\x001-1');
    },
  ],
  [
    'I14 unlined',
    'the places in line are removed',
    async () => {
      await inLine('0 1 0 1');
      await p.redis.del(p.keys.line);
    },
  ],
  [
    'I14 shut',
    'the lanes are removed',
    async () => {
      await inLine('0 1 1 0');
      await p.redis.del(p.keys.lanes);
    },
  ],
  [
    'I15 untagged',
    'the entry of a tag is removed',
    async () => {
      await p.schedule('a', { dueMs: LATER, late: { tags: ['x'] } });
      await p.redis.zrem(p.keys.tags, 'x\0j:a');
    },
  ],
  [
    'I15 astray',
    'an entry of a tag is put for a job that is over',
    async () => {
      await p.complete([await p.running('a')]);
      await p.redis.zadd(p.keys.tags, 0, 'x\0j:a');
    },
  ],
];

describe('one flaw of each kind', () => {
  test.each(planted.map(([flaw, how, plant, also = []]) => ({ flaw, how, plant, also })))(
    '$flaw: $how',
    async (one) => {
      const { flaw, plant, also } = one;
      await plant();
      expect((await found()).toSorted()).toEqual([...also, flaw].toSorted());
      // Until nothing more can be repaired: what is repaired once is sound the next time.
      const { flaws } = await look();
      const damages = flaws.flatMap(({ damage, repair }) => (damage && repair ? [damage] : []));
      const replies = [...(await repair(p.redis, p.ref, damages)).values()];
      expect(replies.every((reply) => reply === 'repaired')).toBe(true);
      expect((await look()).flaws.filter(({ repair }) => repair !== undefined)).toEqual([]);
      await p.withoutWrite(() => repair(p.redis, p.ref, damages));
      await p.reset();
    },
  );

  test('every invariant is among them', () => {
    const numbers = new Set(planted.map(([flaw]) => Number(/^I(\d+)/.exec(flaw)?.[1])));
    const wanted = [...Array.from({ length: 16 }, (_, at) => at + 1), 18];
    expect([...numbers].toSorted((one, other) => one - other)).toEqual(wanted);
  });
});

test('bytes that are far from those of the records are counted anew (I17)', async () => {
  await p.schedule('a', { dueMs: LATER });
  await p.redis.hset(p.keys.meta, { quota: '0 1000000', held: '900000 1' });
  expect(await found()).toEqual(['I17 misweighed']);
  const told = await doctor('q');
  expect(told.code).toBe(1);
  expect(told.out).toMatch(/I17 +misweighed: .*\(900000 bytes noted, \d+ counted\) \[can be repaired\]/);
  const repaired = await doctor('q', '--repair', '--yes');
  expect(repaired.code).toBe(0);
  expect(repaired.out).toMatch(/\(900000 bytes noted, \d+ counted\) \[repaired\]/);
  expect(await p.meta('held')).toBe(`${await p.redis.hstrlen(p.keys.jobs, 'j:a')} 1`);
  expect(await found()).toEqual([]);
});

test('a tag that is closed in one partition is closed in all, until the latest end, and each says so (I20)', async () => {
  await declareQueue(p.redis, { namespace: 't', queue: 'two', partitions: 2 });
  const [one, other] = [0, 1].map((partition) => partitionKeys({ namespace: 't', queue: 'two', partition }));
  if (!one || !other) throw new Error('there are two');
  await p.redis.zadd(one.closed, LATER, 'invoice:7', LATER + 1, 'invoice:8');
  await p.redis.hset(one.why, 'invoice:7', '{"at":1,"by":"","reason":"paid"}');
  await p.redis.zadd(other.closed, LATER, 'invoice:8');
  const told = await doctor('two');
  expect(told.code).toBe(1);
  expect(told.out).toMatch(/I20 +unmarked: .*\(2 tags are closed\) \[can be repaired\]/);
  expect(told.out.match(/I20 +unclosed/g)).toHaveLength(2);
  expect((await doctor('two', '--repair', '--yes')).code).toBe(0);
  for (const { closed, meta } of [one, other]) {
    const ends = await p.redis.zrange(closed, '0', '-1', 'WITHSCORES');
    expect(ends).toEqual(['invoice:7', String(LATER), 'invoice:8', String(LATER + 1)]);
    expect(await p.redis.hget(meta, 'closed')).not.toBeNull();
  }
  expect(await p.redis.hget(other.why, 'invoice:7')).toBe('{"at":1,"by":"","reason":"paid"}');
  expect((await doctor('two')).code).toBe(0);
});

describe('what is no flaw', () => {
  test('bytes that are off by as much as comes and goes (I17)', async () => {
    await p.schedule('a', { dueMs: LATER });
    await p.redis.hset(p.keys.meta, { quota: '0 1000000', held: '60000 1' });
    expect(await found()).toEqual([]);
  });

  test('a job that is late in a queue that is paused (I9)', async () => {
    await p.lead();
    await p.redis.hset(p.keys.meta, 'paused', '1 because');
    await p.schedule('a');
    await p.promote();
    expect(await found()).toEqual([]);
  });

  test('a job that is late in a queue that is capped (I9)', async () => {
    for (const id of ['a', 'b']) await p.schedule(id);
    await p.promote({ cap: 1 });
    await p.promote({ cap: 1 });
    expect(await found()).toEqual([]);
    expect(await p.redis.zcard(p.keys.scheduled)).toBe(1);
  });

  test('a job that is late while nobody leads (I9)', async () => {
    await p.schedule('a');
    expect(await found()).toEqual([]);
  });

  test('a heartbeat that ends within its time (I10)', async () => {
    await p.redis.sadd('t:v1:{control}:alive', 'x', 'dead');
    await p.redis.set('t:v1:{control}:beat:x', '{}', 'PX', 10_000);
    expect(await examineControl(p.redis, 't')).toEqual([]);
  });
});

test.each([
  ['never', undefined],
  ['in a day', 24 * HOUR_MS],
])('a heartbeat that ends %s is found (I10)', async (_, ttlMs) => {
  await p.redis.sadd('t:v1:{control}:alive', 'x');
  await p.redis.set('t:v1:{control}:beat:x', '{}');
  if (ttlMs !== undefined) await p.redis.pexpire('t:v1:{control}:beat:x', ttlMs);
  expect((await examineControl(p.redis, 't')).map(({ what }) => what)).toEqual(['immortal']);
});

describe('places of a limit that queues share (I24)', () => {
  const ledger = limitKeys('t', 'places').ledger;
  const HOUR_AGO = T0 - HOUR_MS;
  /** Of a row: epoch, seq, share, need, when it asked, three that count nothing here, since, hands on, turns, target. */
  const row = (share: number, target = share, beatMs = T0) => `1 1 ${share} ${share} ${beatMs} 0 0 0 0 0 0 ${target}`;
  const told = async () => (await examineControl(p.redis, 't')).map(({ what, name }) => `${what} ${name}`);
  beforeEach(async () => {
    const limit = { name: 'places', concurrency: 3, revision: 1, by: 'ada', atMs: HOUR_AGO };
    await changeSharedLimits(p.redis, 't', () => ({ revision: 1, all: [limit] }));
    await setQueue(p.redis, { namespace: 't', queue: 'q', limits: ['places'] });
    await p.redis.hset(ledger, { rule: '1 c 0.000 3', 'q:0': row(2), 'other:0': row(1) });
    await p.redis.hset(p.keys.meta, 'lent', 'places=c,1:1,0,2');
  });

  test('are well where they add up, and where a limit has fallen and places are asked back', async () => {
    expect(await told()).toEqual([]);
    await p.redis.hset(ledger, { 'q:0': row(3, 2), 'other:0': row(3, 1) });
    expect(await told()).toEqual([]);
  });

  test('are not judged before all leaders have asked again', async () => {
    await p.redis.hset(ledger, { 'q:0': row(3), 'other:0': row(3, 3, HOUR_AGO) });
    expect(await told()).toEqual([]);
  });

  test('that a partition has beyond its ledger are found', async () => {
    await p.redis.hset(p.keys.meta, 'lent', 'places=c,1:1,0,3');
    expect(await told()).toEqual(['overlent places q:0']);
    await p.redis.hdel(ledger, 'q:0');
    expect(await told()).toEqual(['overlent places q:0']);
  });

  test('that are more than the limit has, and asked back by nobody, are found', async () => {
    await p.redis.hset(ledger, { 'q:0': row(2), 'other:0': row(2) });
    expect(await told()).toEqual(['overdrawn places']);
  });

  test('are not looked at in a ledger of another type, which is told', async () => {
    await p.redis.set(ledger, 'somebody else');
    expect(await told()).toEqual([`type ${ledger}`]);
    await p.redis.del(ledger);
    await p.redis.hset(ledger, 'rule', '1 c 0.000 3');
    await p.redis.hdel(p.keys.meta, 'lent');
    await p.redis.pexpire(ledger, HOUR_MS);
    expect(await told()).toEqual([`expiring ${ledger}`]);
  });
});

describe('what must only grow (I7)', () => {
  const fell = async (between: () => Promise<unknown>) => {
    const before = await growth(p.redis, p.ref);
    await between();
    return growthFlaws(before, await growth(p.redis, p.ref)).map(({ what, name, means }) => [what, name, means]);
  };
  const isAbout = (text: string) => expect.stringContaining(text);
  const retried = async () => p.retry(await p.running('a'), { delayMs: 1000, error: failure('x') });
  const again = { nowMs: T0 + 2000 };

  test('starts, failures, a replay and a new life are growth', async () => {
    await retried();
    expect(await fell(async () => p.bury(only(await p.run(again))))).toEqual([]);
    const deadLetter = only(await p.redis.xrevrange(p.keys.dead, '+', '-', 'COUNT', 1))[0];
    expect(await fell(() => p.replay(deadLetter))).toEqual([]);
    expect(await fell(async () => p.complete(await p.run(again)))).toEqual([]);
    expect(await fell(async () => p.running('a', { data: 'another' }))).toEqual([]);
  });

  test('the same job that comes again after its window is another life', async () => {
    await retried();
    expect(
      await fell(async () => {
        await p.complete(await p.run(again), { windowMs: 0 });
        await p.running('a');
      }),
    ).toEqual([]);
  });

  test('a token, an epoch and counts that fell are found', async () => {
    await retried();
    const [meta, run] = [await p.redis.hgetall(p.keys.meta), (await p.redis.hget(p.keys.runs, 'j:a')) ?? ''];
    await p.run(again);
    expect(
      await fell(async () => {
        await p.redis.hset(p.keys.runs, 'j:a', run);
        await p.redis.hset(p.keys.meta, { token: meta.token ?? '', epoch: '1' });
      }),
    ).toEqual([
      ['shrunk', '', isAbout('the last token fell')],
      ['shrunk', '', isAbout('the last epoch fell')],
      ['shrunk', 'j:a', isAbout('its token fell')],
    ]);
    await p.reset();
  });

  test('failures that are taken back are found', async () => {
    await retried();
    const run = (await p.redis.hget(p.keys.runs, 'j:a')) ?? '';
    const fewer = run.replace(/^(\d+ \d+ \d+) 1/, '$1 0');
    expect(await fell(() => p.redis.hset(p.keys.runs, 'j:a', fewer))).toEqual([
      ['shrunk', 'j:a', isAbout('its failures fell from 1 to 0')],
    ]);
  });

  test('the command compares two states', async () => {
    await p.running('a');
    // What it waits for before it reads the second state.
    vi.mocked(systemClock.sleep).mockImplementation(async () => {
      await p.redis.hset(p.keys.meta, 'epoch', '0');
      return true;
    });
    const { code, out } = await doctor('q', '--json');
    expect([code, out]).toEqual([1, expect.stringContaining('"what":"shrunk"')]);
    await p.reset();
  });
});

describe('members that are no text', () => {
  test.each(['orphan', 'tombstone', 'idle'] as const)(
    '%s: found, repaired byte by byte, and then whole',
    async (what) => {
      const of = { orphan: p.keys.jobs, tombstone: p.keys.jobs, idle: p.keys.runs }[what];
      const value = { orphan: `1${T0.toString(36)}|{}`, tombstone: '.d0 0 0 0 -', idle: '0 0 0 0 0 - - - 0' }[what];
      await p.redis.hset(of, new Map([[BINARY, value]]));
      if (what === 'orphan') await p.redis.hset(p.keys.meta, 'n.scheduled', '1');
      const [flaw] = (await look()).flaws;
      expect(flaw?.what).toBe(what);
      const damages = flaw?.damage ? [flaw.damage] : [];
      expect([...(await repair(p.redis, p.ref, damages)).values()]).toEqual(['repaired']);
      expect(await found()).toEqual([]);
      const [index] = {
        orphan: await p.redis.zrangeBuffer(p.keys.scheduled, '0', '-1'),
        tombstone: [BINARY],
        idle: [BINARY],
      }[what];
      expect(index).toEqual(BINARY);
      // A record nobody can run ends as a dead letter that still has it.
      if (what === 'orphan') {
        await p.promote({ nowMs: Date.now() + 1000 });
        const [deadLetter] = await p.redis.xrangeBuffer(p.keys.dead, '-', '+');
        expect(deadLetter?.[1].slice(1, 6).map(String)).toEqual([
          String(BINARY),
          'record',
          value,
          'reason',
          'bad-member',
        ]);
      }
      await p.reset();
    },
  );
});

describe('a repair', () => {
  test('tells its plan, carries it out, and has nothing to do the next time', async () => {
    const stuck = await p.running('a');
    await deleteConsumer();
    await p.complete([await p.running('over')]);
    await p.redis.del(p.keys.done);
    await p.schedule('lost', { dueMs: LATER });
    await p.redis.zrem(p.keys.scheduled, 'j:lost');
    await p.redis.hset(p.keys.runs, 'j:over', '0 0 0 0 0 - - - 0');
    const plan = await p.withoutWrite(() => doctor('q', '--repair'));
    const kinds = [...plan.err.matchAll(/plan for q:0: 1 × (\w+): (?!undefined)/g)].map(([, kind]) => kind);
    expect(kinds.toSorted()).toEqual(['idle', 'orphan', 'stuck', 'tombstone']);
    const first = await doctor('q', '--repair', '--yes');
    expect([first.code, first.err.match(/plan for/g)?.length, await p.count('mended')]).toEqual([0, 4, 4]);
    const second = await p.withoutWrite(() => doctor('q', '--repair', '--yes', '--json'));
    expect([second.err, JSON.parse(second.out)]).toMatchObject(['', { ok: true, repaired: 0 }]);
    expect(await p.complete([stuck])).toEqual(['ok']);
  });
});
