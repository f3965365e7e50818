/** The index of tags: what scripts enter and take out, what they bear, and how it is checked and mended. */
import { describe, expect, test } from 'vitest';
import { checkMembers, checkTags } from '../../src/redis/repair/damage.ts';
import { repair } from '../../src/redis/repair/repair.ts';
import { createJobs } from '../../src/redis/scripts/jobs.ts';
import { item, only, T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const DUE = T0 + 9;
const tagged = (id: string, tags: readonly string[], dueMs = DUE) => item(id, { dueMs, late: { tags } });
const index = async () => (await p.redis.zrange(p.keys.tags, '0', '-1')).map((entry) => entry.replace('\0', ' '));
const schedule = (id: string, tags: readonly string[], mode: 'keep' | 'replace' = 'keep') =>
  p.scheduleAll([tagged(id, tags)], { mode });

describe('a live job is entered by its tags', () => {
  test('when it is scheduled, replaced, edited and replayed', async () => {
    await schedule('a', ['x', 'y=z']);
    expect(await index()).toEqual(['x j:a', 'y=z j:a']);
    expect(await p.redis.hget(p.keys.jobs, 'j:a')).toContain(';t=x,y z|');
    await schedule('a', ['x', 'w'], 'replace');
    expect(await index()).toEqual(['w j:a', 'x j:a']);
    await p.edit('j:a', { options: { tags: ['v'] } });
    expect(await index()).toEqual(['v j:a']);
    const [claim] = await p.run({ nowMs: DUE });
    if (!claim) throw new Error('nothing runs');
    await p.bury(claim);
    expect(await index()).toEqual([]);
    await p.replay(only(await p.redis.xrange(p.keys.dead, '-', '+'))[0]);
    expect(await index()).toEqual(['v j:a']);
  });

  test('and is found by its new ones alone when it was too large to be read', async () => {
    await p.scheduleAll([item('a', { dueMs: DUE, data: 'x'.repeat(400), late: { tags: ['x'] } })]);
    await schedule('a', ['y'], 'replace');
    expect(await index()).toEqual(['y j:a']);
  });

  test('a mark that stands in a tag is none: a call of an edited job is known by its first record', async () => {
    const call = tagged('a', ['m=1.0', 'team=ops.a']);
    await p.scheduleAll([call]);
    expect(only(await p.scheduleAll([call]))).toEqual({ kind: 'already', over: undefined });
    await p.edit('j:a', { data: 2 });
    expect(only(await p.scheduleAll([call]))).toEqual({ kind: 'already', over: undefined });
    await p.cancel('j:a');
    expect(only(await p.scheduleAll([call]))).toEqual({ kind: 'already', over: 'cancelled' });
  });

  test.each([
    ['as it is', 600_000, false],
    ['without a done window', 0, false],
    ['and holds its entry', 600_000, true],
  ])('until it is complete %s, with and without its mark', async (_, windowMs, hold) => {
    for (const mark of ['', '1 0123456789abcdef|x,y z']) {
      await p.reset();
      await schedule('a', ['x', 'y=z']);
      const [claim] = await p.run({ nowMs: DUE });
      if (!claim) throw new Error('nothing runs');
      const call = { windowMs, hold, nowMs: T0 };
      expect(await p.jobs.complete(p.ref, [{ ...claim, mark }], call)).toEqual(['ok']);
      expect(await index()).toEqual([]);
      await p.jobs.complete(p.ref, [{ ...claim, mark }], { ...call, hold: false });
    }
  });

  test('ten of at most 64 bytes count, whatever a foreign producer writes', async () => {
    const many = Array.from({ length: 14 }, (_, nth) => `t${nth}`);
    const long = 'l'.repeat(64);
    const record = `1${DUE.toString(36)};t=${'x'.repeat(65)},${long},${many.join(',')}|{}`;
    await p.scheduleAll([{ member: 'j:a', record, dueMs: DUE }]);
    expect((await index()).length).toBe(10);
    expect(await index()).toContain(`${long} j:a`);
    expect(await index()).not.toContain('t9 j:a');
    await p.cancel('j:a');
    expect(await index()).toEqual([]);
  });

  test('a call that has entered 500 tags does no more', async () => {
    const tags = Array.from({ length: 10 }, (_, nth) => `t${nth}`);
    const items = Array.from({ length: 60 }, (_, nth) => tagged(`j${nth}`, tags));
    const kinds = (await p.scheduleAll(items)).map(({ kind }) => kind);
    expect(kinds).toEqual([...Array<string>(50).fill('ok'), ...Array<string>(10).fill('later')]);
    expect(await p.redis.zcard(p.keys.tags)).toBe(500);
  });
});

/** Looks for what is wrong with tags, and mends it. */
async function mended(): Promise<readonly string[]> {
  const members = await checkMembers(p.redis, p.ref, { part: 'all', limit: 1000 });
  if (members.kind === 'large') throw new Error('too large for one look');
  const damages = [...members.found];
  for (let after: string | undefined, more = true; more; more = after !== undefined) {
    const page: Awaited<ReturnType<typeof checkTags>> = await checkTags(p.redis, p.ref, { after, limit: 2 });
    damages.push(...page.found);
    after = page.next;
  }
  const replies = await repair(p.redis, p.ref, damages);
  return [...replies].map(([{ kind, name }, reply]) => `${kind} ${name.replace('\0', ' ')}: ${reply}`);
}

describe('what disagrees is found and mended', () => {
  test('an entry of a job that is over, of one with other tags, and of none', async () => {
    await schedule('a', ['x']);
    await schedule('b', ['x', 'y']);
    await p.cancel('j:b');
    await p.redis.zadd(p.keys.tags, 0, 'w\0j:a', 0, 'x\0j:b', 0, 'x\0j:none', 0, 'no zero', 0, 'é\0j:a');
    expect((await mended()).toSorted()).toEqual([
      'astray no zero: repaired',
      'astray w j:a: repaired',
      'astray x j:b: repaired',
      'astray x j:none: repaired',
      expect.stringMatching(/^astray .* j:a: repaired$/),
    ]);
    expect(await index()).toEqual(['x j:a']);
    expect(await mended()).toEqual([]);
  });

  test('a job whose tags are not all there', async () => {
    await schedule('a', ['x', 'y']);
    await schedule('b', ['x']);
    await p.redis.zrem(p.keys.tags, 'y\0j:a', 'x\0j:b');
    expect((await mended()).toSorted()).toEqual(['untagged j:a: repaired', 'untagged j:b: repaired']);
    expect(await index()).toEqual(['x j:a', 'x j:b', 'y j:a']);
  });

  test('and nothing that is right again by now', async () => {
    await schedule('a', ['x']);
    const damages = [
      { kind: 'astray', name: 'x\0j:a', detail: '' },
      { kind: 'untagged', name: 'j:a', detail: '' },
      { kind: 'untagged', name: 'j:gone', detail: '' },
    ] as const;
    expect([...(await repair(p.redis, p.ref, damages)).values()]).toEqual(['sound', 'sound', 'sound']);
  });
});

test('a queue without tags calls no command for them', async () => {
  // Not the ones of the other tests, which look at the partition around each call.
  const jobs = createJobs(p.redis);
  const call = { horizonMs: 1e11, bytesMax: 1e6, nowMs: T0 };
  const term = await p.lead();
  await p.redis.config('RESETSTAT');
  await jobs.schedule(p.ref, [item('a', { dueMs: T0 })], { mode: 'keep', ...call });
  await jobs.promote(p.ref, { term, leaseMs: 60_000, limit: 500, cap: 10_000, nowMs: T0 });
  const delivery = only(await p.read());
  const started = only(await jobs.start(p.ref, [delivery], { consumer: 'w1', windowMs: 600_000, ...call }));
  if (started.kind !== 'run') throw new Error(started.kind);
  const claim = { entry: delivery.entry, member: delivery.member, token: started.token };
  await jobs.complete(p.ref, [{ ...claim, mark: '1 0123456789abcdef' }], { windowMs: 600_000, hold: false });
  const told = (await p.redis.info('commandstats')).matchAll(/cmdstat_([a-z|]+):calls=(\d+)/g);
  const counts = [...told].map(([, name = '', calls]) => [name, Number(calls)] as const);
  const own = counts.filter(([name]) => !/^(config|eval|script|hello|client|info)/.test(name));
  expect(Object.fromEntries(own)).toMatchInlineSnapshot(`
    {
      "exists": 1,
      "get": 1,
      "hdel": 1,
      "hincrby": 2,
      "hmget": 7,
      "hset": 5,
      "hstrlen": 1,
      "pexpire": 1,
      "time": 2,
      "xack": 1,
      "xadd": 2,
      "xdel": 1,
      "xgroup|create": 1,
      "xlen": 1,
      "xpending": 1,
      "xreadgroup": 1,
      "zadd": 2,
      "zmscore": 2,
      "zrange": 1,
      "zrem": 1,
    }
  `);
});
