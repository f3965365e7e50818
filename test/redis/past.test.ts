/** The history of a queue: each verb that ends a job keeps a record of it, once, and a queue without one keeps nothing. */
import { describe, expect, test } from 'vitest';
import { isMoved } from '../../src/client/calls/partition-calls.ts';
import { decodePast, encodeNote } from '../../src/job/past.ts';
import { parseSettings } from '../../src/job/queue-settings.ts';
import { partitionRef } from '../../src/redis/keys.ts';
import { type EndPlace, endsOf, pastOf, turnsWhile } from '../../src/redis/read/ends.ts';
import { createJobs } from '../../src/redis/scripts/jobs.ts';
import { type Swept, sweep } from '../../src/redis/scripts/lease.ts';
import type { Claim } from '../../src/redis/scripts/replies.ts';
import { cutOff, luaOf } from '../support/model-cut.ts';
import { failure, only, T0, usePartition, WINDOW_MS } from '../support/partition.ts';

const history = parseSettings({ history: { keep: '1h', max: 1000, result: true, resultBytesMax: 100 } }).history;
if (!history) throw new Error('no history');
const p = usePartition({ history });

const past = (id: string, max = 10) => pastOf(p.redis, p.ref, { member: `j:${id}`, max });
const end = async (id: string) => only(await past(id, 1));
const note = (returned?: unknown, name = 'welcome', record = '1a|{}') =>
  encodeNote({ name, record, startedMs: T0 + 1, tookMs: 12.4 }, returned, history);
const done = (claims: readonly Claim[], said = note(), more = {}) =>
  p.complete(
    claims.map((claim) => ({ ...claim, mark: `${T0.toString(36)} 0123456789abcdef\n${said}` })),
    more,
  );
/** The ids in the history, the latest end first, 50 at a time. */
async function everyEnd(): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let after: EndPlace | undefined; ; ) {
    const ends = await endsOf(p.redis, p.ref, { index: 'history', after, limit: 50 });
    if (isMoved(ends) || ends.length === 0) return ids;
    ids.push(...ends.map(({ ended }) => ended?.id ?? ''));
    after = ends.at(-1);
  }
}
const counts = async () => [await p.redis.hlen(p.keys.past), await p.redis.zcard(p.keys.ended)];

describe('what ends a job keeps its record', () => {
  test('complete: with name, tags, times, worker and result', async () => {
    const claim = await p.running('a');
    await done([claim], note({ url: 'x' }, 'welcome', '1a;t=user:42,vip|{}'), { nowMs: T0 + 20 });
    expect(await end('a')).toEqual({
      id: 'a',
      bare: false,
      outcome: 'done',
      name: 'welcome',
      tags: ['user:42', 'vip'],
      askedDueMs: T0,
      attempts: 1,
      failures: 0,
      crashes: 0,
      generation: 0,
      token: claim.token,
      owner: 'w1',
      startedMs: T0 + 1,
      tookMs: 12,
      overMs: T0 + 20,
      history: [],
      deadLetter: undefined,
      result: { kind: 'kept', value: { url: 'x' } },
    });
    expect(await p.redis.zscore(p.keys.ended, 'j:a')).toBe(String(T0 + 20));
  });

  test('a job that failed twice and then succeeded tells that', async () => {
    let claim = await p.running('a');
    for (const nth of [1, 2]) {
      await p.retry(claim, { error: failure(`boom ${nth}`, nth), delayMs: 0, note: note() });
      claim = only(await p.run());
    }
    await done([claim]);
    expect(await end('a')).toMatchObject({
      outcome: 'done',
      attempts: 3,
      failures: 2,
      history: [
        { attempt: 1, message: 'boom 1' },
        { attempt: 2, message: 'boom 2' },
      ],
    });
  });

  test('bury: with the stack of each failure', async () => {
    const claim = await p.running('a');
    await p.retry(claim, { error: failure('first', 1, 'Error: first'), delayMs: 0, note: note() });
    await p.bury(only(await p.run()), { error: failure('last', 2, 'Error: last'), note: note() });
    expect((await end('a')).history.map(({ stack }) => stack)).toEqual(['Error: first', 'Error: last']);
  });

  test('serve: many at once, and what is started beside them goes on', async () => {
    const claims = [await p.running('a'), await p.running('b')];
    await p.schedule('c');
    await p.promote();
    const ended = claims.map((claim) => ({ ...claim, mark: `${T0.toString(36)} 0123456789abcdef\n${note()}` }));
    const asked = { ended, given: [], take: 1 };
    const served = await p.jobs.serve(p.ref, asked, { consumer: 'w1', bytesMax: 1e6, windowMs: WINDOW_MS, nowMs: T0 });
    expect(served.taken).toHaveLength(1);
    expect([(await end('a')).outcome, (await end('b')).outcome]).toEqual(['done', 'done']);
  });

  test('bury: with its errors, the last included, and the address of the dead letter', async () => {
    const claim = await p.running('a');
    await p.bury(claim, { note: note(), reason: 'no-handler', error: failure('last') });
    const [deadLetter = ''] = (await p.redis.xrange(p.keys.dead, '-', '+')).map(([id]) => id);
    expect(await end('a')).toMatchObject({ outcome: 'dead', deadLetter, history: [{ message: 'last' }] });
  });

  test.each(['retry', 'defer', 'bury', 'complete'] as const)('%s of a job whose cancel was requested', async (verb) => {
    const claim = await p.running('a');
    await p.cancel('j:a');
    expect(await past('a')).toEqual([]);
    await (verb === 'complete' ? done([claim]) : p[verb](claim, { note: note() }));
    expect(await end('a')).toMatchObject({ outcome: 'cancelled', name: 'welcome', attempts: 1, owner: 'w1' });
  });

  test('cancel of one that waits: the name and the tags of its record', async () => {
    const record = `1${T0.toString(36)};t=user:42|{"n":"invoice","d":{"n":"x"}}`;
    await p.scheduleAll([{ member: 'j:a', record, dueMs: T0 }]);
    await p.cancel('j:a', { nowMs: T0 - 5 });
    expect(await end('a')).toMatchObject({
      outcome: 'cancelled',
      name: 'invoice',
      tags: ['user:42'],
      attempts: 0,
      token: undefined,
      owner: undefined,
      askedDueMs: T0,
      overMs: T0 - 5,
      startedMs: undefined,
    });
  });

  test.each([
    ['{"d":{"n":"deep"},"n":"last"}', 'last'],
    ['{ "o" : {"t":[{"n":"deep"}]} , "n" : "spaced" , "d":1}', 'spaced'],
    [String.raw`{"d":"\\\"n\":\"text\",","n":"caf\u00e9 \"x\" \\"}`, 'café "x" \\'],
    ['{"d":["n",{"x":"n"}]}', 'default'],
    ['{"d":{"n":"deep"}}', 'default'],
  ])('cancel of a foreign record %s: its name is %s', async (json, name) => {
    await p.scheduleAll([{ member: 'j:a', record: `1${T0.toString(36)}|${json}`, dueMs: T0 }]);
    await p.cancel('j:a');
    expect((await end('a')).name).toBe(name);
  });

  test.each([[['-']], [['-', 'x']], [['--']]])('the tags %j, by cancel and by complete', async (tags) => {
    const record = `1${T0.toString(36)};t=${tags.join(',').replaceAll(' ', '=')}|{}`;
    await p.scheduleAll([{ member: 'j:a', record, dueMs: T0 }]);
    await p.cancel('j:a');
    await done([await p.running('b')], note(1, 'welcome', record));
    expect([(await end('a')).tags, (await end('b')).tags]).toEqual([tags, tags]);
  });

  test('start of one whose worker was lost after a cancel was requested', async () => {
    await p.running('a');
    await p.cancel('j:a');
    await p.start((await p.reclaim('w1')).deliveries, { consumer: 'w2' });
    expect(await end('a')).toMatchObject({ outcome: 'cancelled', name: 'default', attempts: 1, crashes: 1 });
  });

  test.each([
    ['drop', 'expired'],
    ['dead', 'dead'],
  ] as const)('expire: what is too late, onLate %s', async (onLate, outcome) => {
    await p.schedule('a', { late: { expiresAtMs: T0 + 10, onLate } });
    const deliveries = await p.deliver({ nowMs: T0 + 20 });
    await p.expire(deliveries, { nowMs: T0 + 20 });
    expect(await end('a')).toMatchObject({ outcome, attempts: 0, overMs: T0 + 20 });
  });

  test('commit: done with its effects, or half of them', async () => {
    const tag = '{q:0}';
    await p.commit(await p.running('a'), [{ command: 'SET', key: `${tag}a`, args: [1] }], { note: note(7) });
    expect(await end('a')).toMatchObject({ outcome: 'done', result: { kind: 'kept', value: 7 } });
    await p.redis.set(`${tag}text`, 'x');
    const effects = [
      { command: 'SET', key: `${tag}b`, args: [1] },
      { command: 'HSET', key: `${tag}text`, args: ['a', 1] },
    ];
    await p.commit(await p.running('b'), effects, { note: note() });
    expect(await end('b')).toMatchObject({ outcome: 'dead', deadLetter: expect.any(String) });
    await p.redis.del(`${tag}a`, `${tag}b`, `${tag}text`);
  });
});

describe('a record', () => {
  test('is the same when the call is sent twice, and of each end there is one', async () => {
    const claim = await p.running('a');
    await done([claim, claim]);
    const first = await past('a');
    await done([claim], note(), { nowMs: T0 + 50 });
    expect(await past('a')).toEqual(first);
    expect(await counts()).toEqual([1, 1]);
  });

  test('of an earlier life of the id is kept behind the last', async () => {
    const ends: (string | undefined)[] = [];
    for (const nth of [1, 2, 3]) {
      const claim = await p.running('a', { data: nth });
      await done([claim], note(nth), { nowMs: T0 + nth });
      ends.push(claim.token);
    }
    expect((await past('a')).map(({ token, overMs }) => [token, overMs])).toEqual([
      [ends[2], T0 + 3],
      [ends[1], T0 + 2],
      [ends[0], T0 + 1],
    ]);
    expect(await counts()).toEqual([3, 3]);
    const listed = await everyEnd();
    expect(listed).toEqual(['a', 'a', 'a']);
  });

  test('of a dead letter stays when it is replayed, and the next end stands before it', async () => {
    await p.bury(await p.running('a'), { note: note() });
    const [deadLetter = ''] = (await p.redis.xrange(p.keys.dead, '-', '+')).map(([id]) => id);
    await p.replay(deadLetter);
    await done([only(await p.run())]);
    expect((await past('a')).map(({ outcome }) => outcome)).toEqual(['done', 'dead']);
  });

  test('of a life that was never started is kept beside the one before it, also of the same millisecond', async () => {
    for (const data of [1, 2, 3]) {
      await p.schedule('a', { dueMs: T0 + 5000, data });
      await p.cancel('j:a', { nowMs: T0 });
    }
    expect((await past('a')).map(({ outcome, token }) => [outcome, token])).toEqual(
      [1, 2, 3].map(() => ['cancelled', undefined]),
    );
    expect(await counts()).toEqual([3, 3]);
  });

  test('of the same call made again without a window is another one', async () => {
    for (const nowMs of [T0, T0 + 1, T0 + 7]) {
      await p.schedule('a', { dueMs: T0 + 5000 });
      await p.cancel('j:a', { nowMs, windowMs: 0 });
    }
    expect((await past('a')).map(({ overMs }) => overMs)).toEqual([T0 + 7, T0 + 1, T0]);
  });

  test('of a bare job that was put again for the same time is another one', async () => {
    for (const nowMs of [T0 + 1, T0 + 2]) {
      await p.put('bare', T0);
      await p.promote({ nowMs: T0 });
      await p.cancel('bare', { nowMs });
    }
    expect((await pastOf(p.redis, p.ref, { member: 'bare', max: 5 })).map(({ overMs }) => overMs)).toEqual([
      T0 + 2,
      T0 + 1,
    ]);
  });

  test('of a job that died stays when it is replayed and cancelled, or dies and is replayed again', async () => {
    const letter = async () => (await p.redis.xrevrange(p.keys.dead, '+', '-', 'COUNT', 1)).map(([id]) => id)[0] ?? '';
    await p.bury(await p.running('a'), { note: note() });
    await p.replay(await letter());
    await p.bury(only(await p.run()), { note: note() });
    await p.replay(await letter());
    await p.cancel('j:a');
    const ends = await past('a');
    expect(ends.map(({ outcome, generation }) => [outcome, generation])).toEqual([
      ['cancelled', 2],
      ['dead', 1],
      ['dead', 0],
    ]);
    expect(ends[0]?.token).toBe(ends[1]?.token);
  });

  test('is not made for a job that was put again while it ran: it lives', async () => {
    await p.put('bare', T0);
    const claim = only(await p.run());
    await p.put('bare', T0 + 1000);
    await done([claim]);
    expect(await counts()).toEqual([0, 0]);
    await p.cancel('bare');
  });

  test('is kept without a done window too', async () => {
    await done([await p.running('a')], note(), { windowMs: 0 });
    expect(await p.redis.hlen(p.keys.jobs)).toBe(0);
    expect((await end('a')).outcome).toBe('done');
  });

  test('of a refused end is not made', async () => {
    const claim = await p.running('a');
    await done([{ ...claim, token: '1' as Claim['token'] }]);
    expect(await counts()).toEqual([0, 0]);
    await done([claim]);
  });

  test('of thousands in one millisecond is listed once each, in pages', async () => {
    const claims: Claim[] = [];
    for (let nth = 0; nth < 130; nth += 1) claims.push(await p.running(`a${nth}`));
    for (let from = 0; from < 130; from += 65) await done(claims.slice(from, from + 65));
    const ids = await everyEnd();
    expect([new Set(ids).size, ids.length]).toEqual([130, 130]);
  });
});

test.each([
  ['complete', 'done', (claim: Claim) => done([claim])],
  ['bury', 'dead', (claim: Claim) => p.bury(claim, { note: note() })],
  ['retry', 'cancelled', (claim: Claim) => p.retry(claim, { note: note() })],
  ['cancel', 'cancelled', (_: Claim) => p.cancel('j:a')],
] as const)('%s that is cut off at any write and called again keeps each end once', async (verb, outcome, end) => {
  let cuts = 0;
  for (let isCut = true; isCut; cuts += 1) {
    await p.reset();
    await done([await p.running('a', { data: 1 })], note(), { nowMs: T0 - 10 });
    const claim = await p.running('a', { data: 2 });
    if (verb === 'cancel') await p.defer(claim, { delayMs: 5000 });
    if (verb === 'retry') await p.cancel('j:a');
    const call = () => end(claim);
    const site = await cutOff(p.redis, { verb, lua: luaOf(verb), allowed: cuts, call }).catch(() => undefined);
    isCut = site !== undefined;
    if (isCut) expect(await p.redis.hlen(p.keys.past)).toBeLessThanOrEqual(await p.redis.zcard(p.keys.ended));
    if (isCut) await call();
    expect((await past('a')).map((one) => one.outcome)).toEqual([outcome, 'done']);
    expect(await counts()).toEqual([2, 2]);
  }
  // Four writes for the record and the life before it, and those of the verb.
  expect(cuts).toBeGreaterThan(6);
});

describe('a note', () => {
  test('tells a result that is too large, and one that is no JSON', async () => {
    const [a, b] = [await p.running('a'), await p.running('b')];
    await done([a], note('x'.repeat(200)));
    await done([b], note(10n));
    expect((await end('a')).result).toEqual({ kind: 'too-large', bytes: 202 });
    expect((await end('b')).result).toEqual({ kind: 'no-json', why: expect.stringContaining('the result') });
  });

  test('that is missing or unreadable leaves a record all the same', async () => {
    const [a, b] = [await p.running('a'), await p.running('b')];
    await p.complete([a], {});
    await done([b], '- {"n":');
    expect(await end('a')).toMatchObject({ outcome: 'done', name: 'default', result: { kind: 'none' }, attempts: 1 });
    expect(await end('b')).toMatchObject({ outcome: 'done', name: 'default' });
    expect(decodePast('j:x', 'nonsense')).toBeUndefined();
  });
});

describe('sweep', () => {
  const limits = {
    batch: 100,
    windowMs: WINDOW_MS,
    tombstonesMax: 10_000,
    floorMs: 0,
    retentionMs: 1e12,
    deadLettersMax: 1e6,
  };
  const swept = async (nowMs: number, kept = history) => {
    const reply = await sweep(p.redis, p.ref, { term: await p.lead(), limits, history: kept, nowMs });
    return reply as Swept;
  };

  test('drops what is older than the queue keeps, a step at a time', async () => {
    for (const [nth, id] of ['a', 'b', 'c'].entries()) await done([await p.running(id)], note(), { nowMs: T0 + nth });
    expect(await swept(T0 + history.keepMs)).toMatchObject({ past: 0 });
    const step = { ...limits, batch: 1 };
    const first = await sweep(p.redis, p.ref, { term: await p.lead(), limits: step, nowMs: T0 + history.keepMs + 2 });
    expect(first).toMatchObject({ past: 1, more: true });
    expect(await swept(T0 + history.keepMs + 2)).toMatchObject({ past: 1 });
    expect(await counts()).toEqual([1, 1]);
  });

  test('drops the oldest above the number, also when nothing more is kept', async () => {
    for (const [nth, id] of ['a', 'b', 'c'].entries()) await done([await p.running(id)], note(), { nowMs: T0 + nth });
    expect(await swept(T0 + 10, { ...history, isOn: false, max: 1 })).toMatchObject({ past: 2 });
    expect((await end('c')).id).toBe('c');
    expect(await counts()).toEqual([1, 1]);
  });
});

test('who had a turn while a job was in line is counted, of its group where it has one, and the last is named', async () => {
  const ends = [
    ['{acme}a', 10],
    ['{acme}b', 20],
    ['{umbrella}c', 30],
  ] as const;
  for (const [id, afterMs] of ends) await done([await p.running(id)], note(), { nowMs: T0 + afterMs });
  await p.schedule('{acme}never');
  await p.cancel('j:{acme}never', { nowMs: T0 + 35 });
  const wait = { member: 'j:{acme}z', fromMs: T0, toMs: T0 + 40, nowMs: T0 + 50 };
  const turns = { isLeast: false, ofGroup: true, last: '{acme}b' };
  expect(await turnsWhile(p.redis, p.ref, wait)).toEqual({ ...turns, count: 2 });
  expect(await turnsWhile(p.redis, p.ref, { ...wait, fromMs: T0 + 15 })).toEqual({ ...turns, count: 1 });
  expect(await turnsWhile(p.redis, p.ref, { ...wait, toMs: T0 + 9 })).toBeUndefined();
  expect(await turnsWhile(p.redis, p.ref, { ...wait, nowMs: T0 + 700_000 })).toMatchObject({ isLeast: true });
  const any = { isLeast: false, ofGroup: false, count: 3, last: '{umbrella}c' };
  expect(await turnsWhile(p.redis, p.ref, { ...wait, member: 'j:z' })).toEqual(any);
});

test('a queue without a history names no key of it, and keeps nothing', async () => {
  const plain = partitionRef('t', { queue: 'q', partition: 0, layoutGeneration: 0 });
  const jobs = createJobs(p.redis);
  const claim = await p.running('a');
  await jobs.complete(plain, [claim], { windowMs: WINDOW_MS, nowMs: T0 });
  await p.schedule('b');
  await jobs.cancel(plain, ['j:b'], { windowMs: WINDOW_MS, nowMs: T0 });
  expect(await counts()).toEqual([0, 0]);
});
