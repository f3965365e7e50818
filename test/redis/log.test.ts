/** `log`: lines that a handler says of its running job, how many are kept, and when they go. */
import { describe, expect, test } from 'vitest';
import { decodeLog, LINES_BYTES_MAX, LINES_MAX } from '../../src/job/log-lines.ts';
import { readLog } from '../../src/redis/read/log-lines.ts';
import { type SweepLimits, sweep } from '../../src/redis/scripts/lease.ts';
import type { Claim } from '../../src/redis/scripts/replies.ts';
import { eraseLines, forget, purge, remove } from '../../src/redis/scripts/upkeep.ts';
import { cutOff, luaOf } from '../support/model-cut.ts';
import { firstSend, item, only, T0, usePartition, WINDOW_MS } from '../support/partition.ts';

const p = usePartition();
const LIMITS: SweepLimits = {
  batch: 100,
  windowMs: WINDOW_MS,
  tombstonesMax: 10_000,
  floorMs: 60_000,
  retentionMs: 3_600_000,
  deadLettersMax: 100_000,
};

const stored = (field: string) => p.redis.hget(p.keys.logs, field);
const fields = () => p.redis.hkeys(p.keys.logs);
/** The lines of a job as they were sent, and how many are not kept. */
async function kept(id: string): Promise<readonly [lines: readonly string[], leftOut: number]> {
  const text = (await stored(`j:${id}`)) ?? '';
  return [text.split('\n').slice(1), decodeLog(text)?.leftOut ?? 0];
}
const numbered = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => `"line ${from + at}"`);
const sweepAt = async (nowMs: number, limits: Partial<SweepLimits> = {}) =>
  sweep(p.redis, p.ref, { term: await p.lead(), limits: { ...LIMITS, ...limits }, nowMs });
/** The next start of a job that waits for one. */
async function again(nowMs: number): Promise<Claim> {
  await p.promote({ nowMs });
  const [delivery] = await p.read();
  const started = delivery && only(await p.start([delivery], { nowMs }));
  if (!started || !('token' in started)) throw new Error('nothing runs');
  return { ...delivery, token: started.token };
}

describe('lines of a running job', () => {
  test('are kept in their order, with a mark in meta that there are some', async () => {
    const claim = await p.running('a');
    expect(await p.meta('logs')).toBeNull();
    expect(await p.log(claim, ['"one"', '"two"'])).toEqual(['ok']);
    expect(await p.log(claim, ['"three"'], { last: 3 })).toEqual(['ok']);
    expect(await kept('a')).toEqual([['"one"', '"two"', '"three"'], 0]);
    expect(await p.meta('logs')).toBe('0');
  });

  test('are kept once, however often a call is made, and also where a later call repeats some of them', async () => {
    const claim = await p.running('a');
    await p.log(claim, ['"one"', '"two"']);
    expect(await p.withoutWrite(() => p.log(claim, ['"one"', '"two"']))).toEqual(['ok']);
    expect(await p.log(claim, ['"two"', '"three"'], { last: 3 })).toEqual(['ok']);
    expect(await kept('a')).toEqual([['"one"', '"two"', '"three"'], 0]);
  });

  test('that never came are counted by their numbers', async () => {
    const claim = await p.running('a');
    await p.log(claim, ['"three"'], { last: 3 });
    await p.log(claim, ['"seven"'], { last: 7 });
    expect(await kept('a')).toEqual([['"three"', '"seven"'], 5]);
  });

  test('stay up to a number, and the oldest go', async () => {
    const claim = await p.running('a');
    await p.log(claim, numbered(1, LINES_MAX));
    expect(await kept('a')).toEqual([numbered(1, LINES_MAX), 0]);
    await p.log(claim, numbered(LINES_MAX + 1, LINES_MAX + 3), { last: LINES_MAX + 3 });
    expect(await kept('a')).toEqual([numbered(4, LINES_MAX + 3), 3]);
  });

  test('stay up to so many bytes, to the byte', async () => {
    const claim = await p.running('a');
    // With its line break each takes a quarter.
    const line = (letter: string) => letter.repeat(LINES_BYTES_MAX / 4 - 1);
    await p.log(claim, ['a', 'b', 'c', 'd'].map(line));
    expect(await kept('a')).toEqual([['a', 'b', 'c', 'd'].map(line), 0]);
    await p.log(claim, ['x'], { last: 5 });
    expect(await kept('a')).toEqual([[...['b', 'c', 'd'].map(line), 'x'], 1]);
    await p.log(claim, ['y'.repeat(LINES_BYTES_MAX)], { last: 6 });
    expect(await kept('a')).toEqual([[], 6]);
  });

  test('of a later start come behind those of the starts before it', async () => {
    const first = await p.running('a');
    await p.log(first, ['"one"']);
    await p.retry(first);
    const second = await again(T0 + 1000);
    await p.log(second, ['"again"']);
    expect(await kept('a')).toEqual([['"one"', '"again"'], 0]);
  });

  test('of a whole call are answered one by one', async () => {
    await p.scheduleAll([item('a'), item('b')]);
    const claims = await p.run();
    await p.complete(claims.slice(0, 1));
    const said = claims.map((claim) => ({ ...claim, lines: { last: 1, tags: '-', texts: ['"x"'] } }));
    expect(await p.jobs.log(p.ref, said)).toEqual(['gone', 'ok']);
  });
});

describe('a call is refused without a write', () => {
  test('with an older token, with another entry, and when the job is over or never was', async () => {
    const old = await p.running('a');
    await p.retry(old);
    const current = await again(T0 + 1000);
    expect(await p.withoutWrite(() => p.log(old, ['"x"']))).toEqual(['fenced']);
    expect(await p.withoutWrite(() => p.log({ ...current, entry: old.entry }, ['"x"']))).toEqual(['fenced']);
    await p.complete([current]);
    expect(await p.withoutWrite(() => p.log(current, ['"x"']))).toEqual(['gone']);
    expect(await p.withoutWrite(() => p.log({ ...current, member: 'j:nobody' }, ['"x"']))).toEqual(['gone']);
  });

  test('when Redis is full', async () => {
    const claim = await p.running('a');
    await p.redis.config('SET', 'maxmemory', '1');
    await expect(p.log(claim, ['"x"'])).rejects.toThrow(/OOM/);
    await p.redis.config('SET', 'maxmemory', '0');
    expect(await fields()).toEqual([]);
  });
});

test('a call that was cut off before any of its writes ends as it would have when it is made again', async () => {
  for (let allowed = 0, site: string | undefined = ''; site !== undefined; allowed += 1) {
    await p.reset();
    const claim = await p.running('a');
    const call = () => p.log(claim, ['"one"', '"two"']);
    site = await cutOff(p.redis, { verb: 'log', lua: luaOf('log'), allowed, call });
    expect(await call()).toEqual(['ok']);
    expect(await kept('a')).toEqual([['"one"', '"two"'], 0]);
    expect(await p.meta('logs')).toBe('0');
  }
});

describe('the lines of a job that is over', () => {
  test('stay with its tombstone, and go with it', async () => {
    const claim = await p.running('a');
    await p.log(claim, ['"one"']);
    await p.complete([claim]);
    expect(await kept('a')).toEqual([['"one"'], 0]);
    await sweepAt(T0 + WINDOW_MS);
    expect(await fields()).toEqual(['j:a']);
    await sweepAt(T0 + WINDOW_MS + 1);
    expect(await fields()).toEqual([]);
    expect(await p.meta('logs')).toBeNull();
  });

  test.each([
    ['complete', (claim: Claim) => p.complete([claim], { windowMs: 0 })],
    ['commit', (claim: Claim) => p.commit(claim, [], { windowMs: 0 })],
    ['retry of a cancelled one', (claim: Claim) => p.cancel('j:a').then(() => p.retry(claim, { windowMs: 0 }))],
    ['defer of a cancelled one', (claim: Claim) => p.cancel('j:a').then(() => p.defer(claim, { windowMs: 0 }))],
    ['bury of a cancelled one', (claim: Claim) => p.cancel('j:a').then(() => p.bury(claim, { windowMs: 0 }))],
  ])('go with %s where no end is remembered', async (_, end) => {
    const claim = await p.running('a');
    await p.log(claim, ['"one"']);
    await end(claim);
    expect(await fields()).toEqual([]);
  });

  test('go when its entry is dropped where no end is remembered', async () => {
    const claim = await p.running('a');
    await p.log(claim, ['"one"']);
    await p.retry(claim);
    await p.promote({ nowMs: T0 + 1000 });
    await p.cancel('j:a', { windowMs: 0 });
    expect(await p.start(await p.read(), { windowMs: 0, nowMs: T0 + 1000 })).toEqual([{ kind: 'dropped' }]);
    expect(await fields()).toEqual([]);
  });

  test('go with the sweep when a job that waits is cancelled and no end is remembered', async () => {
    const claim = await p.running('a');
    await p.log(claim, ['"one"']);
    await p.retry(claim);
    await p.cancel('j:a', { windowMs: 0 });
    await sweepAt(T0);
    expect(await fields()).toEqual([]);
    expect(await p.meta('logs')).toBeNull();
  });

  test('go when its id gets a new life', async () => {
    const claim = await p.running('a');
    await p.log(claim, ['"one"']);
    await p.complete([claim]);
    await p.schedule('a', { dueMs: T0 + 5000, data: 'another', sends: firstSend() });
    expect(await fields()).toEqual([]);
  });

  test('give way to those of the first start of a new life of a bare member', async () => {
    await p.put('order-1', T0);
    const [first] = await p.run();
    if (!first) throw new Error('nothing runs');
    await p.log(first, ['"one"']);
    await p.complete([first]);
    await p.put('order-1', T0 + 1);
    const next = await again(T0 + 1);
    await p.log(next, ['"two"']);
    expect((await stored('order-1'))?.split('\n').slice(1)).toEqual(['"two"']);
  });
});

describe('the lines of a dead job', () => {
  async function dead(): Promise<string> {
    const claim = await p.running('a');
    await p.log(claim, ['{"t":1,"a":1,"m":"one"}']);
    await p.bury(claim);
    return only(await p.redis.xrange(p.keys.dead, '-', '+'))[0];
  }

  test('stay with its dead letter, longer than its tombstone, and go with it', async () => {
    const deadLetter = await dead();
    expect(await fields()).toEqual([`\0${deadLetter}`]);
    const lines = [{ atMs: 1, attempt: 1, text: 'one', fields: undefined }];
    const diedMs = Number(deadLetter.split('-')[0]);
    const whose = { member: 'j:a', deadLetter: { entry: deadLetter, atMs: diedMs } };
    expect(await readLog(p.redis, p.ref, whose)).toEqual({ lines, leftOut: 0 });
    await sweepAt(diedMs + WINDOW_MS + 1);
    expect(await fields()).toEqual([`\0${deadLetter}`]);
    await sweepAt(diedMs + LIMITS.retentionMs + 1);
    expect(await fields()).toEqual([]);
  });

  test('are found where a call that was cut off has left them, and those of a later job with its id are not', async () => {
    const cut = { entry: '1-0', atMs: T0 + 10 };
    const line = '{"t":1,"a":1,"m":"one"}';
    const read = () => readLog(p.redis, p.ref, { member: 'j:a', deadLetter: cut });
    await p.redis.hset(p.keys.logs, 'j:a', `${T0}000 1 0 -\n${line}`);
    expect((await read())?.lines).toHaveLength(1);
    await p.redis.hset(p.keys.logs, 'j:a', `${T0 + 11}000 1 0 -\n${line}`);
    expect(await read()).toBeUndefined();
    await p.redis.del(p.keys.logs);
  });

  test.each([
    ['is named', (id: string) => forget(p.redis, p.ref, [id])],
    ['is old enough', () => purge(p.redis, p.ref, { mode: 'remove', limit: 10 })],
  ])('go when its dead letter is removed because it %s', async (_, removal) => {
    await removal(await dead());
    expect(await fields()).toEqual([]);
  });

  test('stay where dead letters are only counted', async () => {
    await dead();
    await purge(p.redis, p.ref, { mode: 'count', limit: 10 });
    expect(await fields()).toHaveLength(1);
  });

  test('come back with a replay, and those of the next start come behind them', async () => {
    await p.replay(await dead());
    expect(await fields()).toEqual(['j:a']);
    await p.log(await again(T0), ['"again"']);
    expect(await kept('a')).toEqual([['{"t":1,"a":1,"m":"one"}', '"again"'], 0]);
  });

  test('of a commit that was carried out by half stay with its dead letter', async () => {
    const claim = await p.running('a');
    await p.log(claim, ['"one"']);
    const key = `${p.keys.meta.replace(/:meta$/, '')}:x`;
    const effects = [
      { command: 'SET', key, args: ['1'] },
      { command: 'LPUSH', key, args: ['1'] },
    ];
    expect(await p.commit(claim, effects)).toMatch(/^half 2 /);
    expect(await fields()).toEqual([`\0${only(await p.redis.xrange(p.keys.dead, '-', '+'))[0]}`]);
    await p.redis.del(key);
  });

  test('that expired after a start stay with its dead letter', async () => {
    await p.schedule('a', { late: { expiresAtMs: T0 + 500, onLate: 'dead' } });
    const claim = only(await p.run());
    await p.log(claim, ['"one"']);
    await p.retry(claim);
    await p.promote({ nowMs: T0 + 1000 });
    const late = await p.read();
    expect(await p.start(late, { nowMs: T0 + 1000 })).toEqual([{ kind: 'late' }]);
    expect(await p.expire(late, { nowMs: T0 + 1000 })).toEqual(['dead']);
    expect(await fields()).toEqual([`\0${only(await p.redis.xrange(p.keys.dead, '-', '+'))[0]}`]);
  });

  test.each(['bury', 'replay'])('are where they belong after a %s that was cut off and made again', async (verb) => {
    for (let allowed = 0, site: string | undefined = ''; site !== undefined; allowed += 1) {
      await p.reset();
      const claim = await p.running('a');
      await p.log(claim, ['"one"']);
      if (verb === 'replay') await p.bury(claim);
      const [letter] = await p.redis.xrange(p.keys.dead, '-', '+');
      const call = () => (verb === 'bury' ? p.bury(claim) : p.replay(letter?.[0] ?? ''));
      site = await cutOff(p.redis, { verb, lua: luaOf(verb), allowed, call });
      await call();
      const [there] = await p.redis.xrange(p.keys.dead, '-', '+');
      expect(await fields()).toEqual([there ? `\0${there[0]}` : 'j:a']);
    }
    // A count that was cut off is short by one.
    await p.reset();
  });
});

test('lines of jobs and dead letters that are not there go with the sweep, a few at a time, and others stay', async () => {
  const claim = await p.running('a');
  await p.log(claim, ['"one"']);
  const lost = Array.from({ length: 200 }, (_, nth) => [`j:lost-${nth}`, '1 1 0 -\nx']).flat();
  await p.redis.hset(p.keys.logs, ...lost, '\x001763719000000-0', '1 1 0 -\nx', '\0nonsense', 'x');
  for (let passes = 0; passes < 100; passes += 1) await sweepAt(T0);
  expect(await fields()).toEqual(['j:a']);
  await p.complete([claim]);
});

describe('the lines of jobs with a tag', () => {
  async function said(id: string, tags: string): Promise<Claim> {
    await p.schedule(id);
    const claim = only(await p.run());
    await p.log(claim, ['"one"'], { tags });
    await p.complete([claim]);
    return claim;
  }

  test('are counted, and erased, and those of others stay', async () => {
    await said('a', 'user:42,paid');
    await said('b', 'user:4');
    await said('c', '-');
    const ask = { tag: 'user:42', limit: 30, after: undefined } as const;
    expect(await eraseLines(p.redis, p.ref, { ...ask, mode: 'count' })).toMatchObject({ matched: 1, next: undefined });
    expect(await fields()).toHaveLength(3);
    expect(await eraseLines(p.redis, p.ref, { ...ask, mode: 'remove' })).toMatchObject({ matched: 1, looked: 3 });
    expect((await fields()).toSorted()).toEqual(['j:b', 'j:c']);
    expect(await eraseLines(p.redis, p.ref, { ...ask, mode: 'remove' })).toMatchObject({ matched: 0 });
  });

  test('are met by a walk of many steps', async () => {
    const many = Array.from({ length: 500 }, (_, nth) => [
      `j:${nth}`,
      `1 1 0 ${nth % 2 ? 'odd' : '-'}\n${'x'.repeat(100)}`,
    ]).flat();
    await p.redis.hset(p.keys.logs, ...many);
    let after: string | undefined;
    let steps = 0;
    do {
      ({ next: after } = await eraseLines(p.redis, p.ref, { tag: 'odd', mode: 'remove', limit: 30, after }));
      steps += 1;
    } while (after !== undefined);
    expect(steps).toBeGreaterThan(5);
    expect(await fields()).toHaveLength(250);
    await p.redis.del(p.keys.logs);
  });
});

test('a partition that is removed takes all lines with it', async () => {
  const claim = await p.running('a');
  await p.log(claim, ['"one"']);
  await p.complete([claim]);
  await remove(p.redis, p.ref, { force: true });
  expect(await p.redis.exists(p.keys.logs)).toBe(0);
});

test('in a queue that uses none of it no script touches the key of the lines, and one that does is told by a field that it reads anyway', async () => {
  // No command for a hash goes through here.
  await p.redis.set(p.keys.logs, 'no hash');
  const story = async () => {
    await p.scheduleAll(['a', 'b', 'c', 'd', 'e', 'f'].map((id) => item(id)));
    const [a, b, c, d, e, f] = await p.run();
    if (!a || !b || !c || !d || !e || !f) throw new Error('six run');
    await p.extend([a]);
    await p.complete([a], { windowMs: 0 });
    await p.complete([b]);
    await p.retry(c);
    await p.bury(d);
    await p.commit(e, [], { windowMs: 0 });
    await p.defer(f);
    await p.cancel('j:c', { windowMs: 0 });
    await p.schedule('b', { data: 'another', sends: firstSend() });
    await forget(p.redis, p.ref, [only(await p.redis.xrange(p.keys.dead, '-', '+'))[0]]);
    await sweepAt(T0 + WINDOW_MS + 1);
  };
  await story();
  expect(await p.redis.get(p.keys.logs)).toBe('no hash');
  await p.reset();
  await p.redis.set(p.keys.logs, 'no hash');
  await p.redis.hset(p.keys.meta, 'logs', '0');
  await expect(story()).rejects.toThrow('WRONGTYPE');
  await p.reset();
});
