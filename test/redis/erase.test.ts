/** `erase`: records of the history that have a tag go, a bounded batch per call, and nothing else does. */
import { expect, test } from 'vitest';
import { isMoved } from '../../src/client/calls/partition-calls.ts';
import { encodeNote } from '../../src/job/past.ts';
import { parseSettings } from '../../src/job/queue-settings.ts';
import { endsOf, pastOf } from '../../src/redis/read/ends.ts';
import { scripts } from '../../src/redis/scripts/script-table.ts';
import { run } from '../../src/redis/scripts/scripts.ts';
import { erase } from '../../src/redis/scripts/upkeep.ts';
import { cutOff, luaOf } from '../support/model-cut.ts';
import { T0, usePartition } from '../support/partition.ts';

const history = parseSettings({ history: { keep: '1h', max: 100_000, result: true, resultBytesMax: 262_144 } }).history;
if (!history) throw new Error('no history');
const p = usePartition({ history });

async function done(id: string, tags: string, { nowMs = T0, returned = undefined as unknown } = {}): Promise<void> {
  const record = `1a${tags === '' ? '' : `;t=${tags}`}|{}`;
  const note = encodeNote({ name: 'welcome', record, startedMs: T0, tookMs: 1 }, returned, history ?? never());
  const claim = await p.running(id);
  await p.complete([{ ...claim, mark: `${T0.toString(36)} 0123456789abcdef\n${note}` }], { nowMs });
}
const never = () => {
  throw new Error('no history');
};
const call = (which: Partial<Parameters<typeof erase>[2]> = {}) =>
  erase(p.redis, p.ref, { tag: 'user:42', mode: 'remove', limit: 200, ...which });
async function left(): Promise<readonly string[]> {
  const ends = await endsOf(p.redis, p.ref, { index: 'history', after: undefined, limit: 1000 });
  return isMoved(ends) ? [] : ends.flatMap(({ ended }) => (ended ? [ended.id] : [])).toSorted();
}
const counts = async () => [await p.redis.hlen(p.keys.past), await p.redis.zcard(p.keys.ended)];

test('records with the tag go, whichever of their tags it is, and no other', async () => {
  await done('a', 'user:42');
  await done('b', 'first,user:42,vip');
  await done('c', 'user:421,user:4');
  await done('d', '');
  expect(await call()).toEqual({ matched: 2, looked: 4, next: undefined });
  expect(await left()).toEqual(['c', 'd']);
  expect(await counts()).toEqual([2, 2]);
  expect(await p.withoutWrite(() => call())).toEqual({ matched: 0, looked: 2, next: undefined });
});

test('a tag that a record writes for "no tags" means no record', async () => {
  await done('a', '');
  expect(await call({ tag: '-' })).toMatchObject({ matched: 0, looked: 1 });
  await done('b', 'x=y');
  expect(await call({ tag: 'x=y' })).toMatchObject({ matched: 1 });
});

test('counting looks the same and writes nothing', async () => {
  await done('a', 'user:42');
  await done('b', '');
  expect(await p.withoutWrite(() => call({ mode: 'count' }))).toEqual({ matched: 1, looked: 2, next: undefined });
  expect(await p.withoutWrite(() => call({ tag: 'nobody' }))).toEqual({ matched: 0, looked: 2, next: undefined });
});

test('a history that is empty, or never was, has nothing to erase', async () => {
  expect(await p.withoutWrite(() => call())).toEqual({ matched: 0, looked: 0, next: undefined });
});

test('a batch goes on behind its place, though the record there is gone and many ended in one millisecond', async () => {
  for (const id of ['a', 'b', 'c', 'd', 'e']) await done(id, id === 'c' ? 'other' : 'user:42');
  const seen: { readonly matched: number; readonly looked: number }[] = [];
  let after: string | undefined;
  do {
    const { next, ...batch } = await call({ limit: 2, after });
    seen.push(batch);
    after = next;
  } while (after !== undefined);
  expect(seen).toEqual([
    { matched: 2, looked: 2 },
    { matched: 1, looked: 2 },
    { matched: 1, looked: 1 },
  ]);
  expect(await left()).toEqual(['c']);
});

test('a full last batch says that there may be more, and the next one finds nothing', async () => {
  await done('a', 'user:42');
  const { next } = await call({ limit: 1 });
  expect(next).toBe(`${T0} j:a`);
  expect(await call({ limit: 1, after: next })).toEqual({ matched: 0, looked: 0, next: undefined });
});

test('an end that comes between two batches is met, and so is the life before it', async () => {
  await done('a', 'other', { nowMs: T0 + 1 });
  await done('b', 'user:42', { nowMs: T0 + 2 });
  const first = await call({ limit: 1 });
  expect(first).toMatchObject({ matched: 0, looked: 1 });
  await done('b', 'user:42', { nowMs: T0 + 3 });
  expect(await counts()).toEqual([3, 3]);
  expect(await call({ after: first.next })).toMatchObject({ matched: 2, looked: 2 });
  expect(await left()).toEqual(['a']);
});

test('the last end of an id goes, and an earlier one without the tag stays', async () => {
  await done('a', 'other', { nowMs: T0 + 1 });
  await done('a', 'user:42', { nowMs: T0 + 2 });
  expect(await call()).toMatchObject({ matched: 1, looked: 2 });
  expect(await left()).toEqual(['a']);
  expect(await pastOf(p.redis, p.ref, { member: 'j:a', max: 5 })).toEqual([]);
  await done('a', 'third', { nowMs: T0 + 3 });
  expect((await pastOf(p.redis, p.ref, { member: 'j:a', max: 5 })).map(({ tags }) => tags)).toEqual([['third']]);
});

test('a call ends when it has read a quarter of a megabyte, and the next goes on', async () => {
  const returned = 'x'.repeat(90_000);
  for (const id of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) await done(id, 'user:42', { returned });
  const looked: number[] = [];
  let after: string | undefined;
  do {
    const batch = await call({ after });
    looked.push(batch.looked);
    after = batch.next;
  } while (after !== undefined);
  expect(looked).toEqual([3, 3, 1]);
  expect(await counts()).toEqual([0, 0]);
});

test('members that are no text, and one with a zero byte, are places like any other', async () => {
  const text = '1- c 0 0 0 0 0 a 5 - - user:42\n{}';
  const members = [Buffer.from([0xff, 0xfe]), Buffer.from('j:a\x005'), Buffer.from('j:a')];
  for (const member of members) {
    await p.redis.hset(p.keys.past, member, text);
    await p.redis.zadd(p.keys.ended, 5, member);
  }
  const first = await call({ limit: 1, mode: 'count' });
  const second = await call({ limit: 1, mode: 'count', after: first.next });
  const third = await call({ limit: 1, mode: 'count', after: second.next });
  expect([first, second, third].map(({ looked }) => looked)).toEqual([1, 1, 1]);
  expect(await call({ limit: 1, after: third.next })).toMatchObject({ looked: 0 });
  expect(await call()).toMatchObject({ matched: 3 });
  expect(await counts()).toEqual([0, 0]);
});

test('what nobody can read stays, and stops nobody', async () => {
  await p.redis.hset(p.keys.past, 'j:a', 'nonsense user:42', 'j:b', '');
  await p.redis.zadd(p.keys.ended, 1, 'j:a', 2, 'j:b', 3, 'j:gone');
  await done('c', 'user:42');
  expect(await call()).toEqual({ matched: 1, looked: 4, next: undefined });
  await p.redis.del(p.keys.past, p.keys.ended);
});

test('cut off after each write and called again it leaves no record of the tag, and no record without a place', async () => {
  let cuts = 0;
  for (let isCut = true; isCut; cuts += 1) {
    await p.reset();
    for (const id of ['a', 'b']) await done(id, 'user:42');
    await done('c', 'other');
    // The reply as text: that is the method which is cut off.
    const args = { tag: 'user:42', mode: 'remove', score: '', limit: 200 };
    const asText = () => run(p.redis, scripts.erase, { keys: p.keys, args });
    const site = await cutOff(p.redis, { verb: 'erase', lua: luaOf('erase'), allowed: cuts, call: asText });
    isCut = site !== undefined;
    const [records = 0, places = 0] = await counts();
    expect(records).toBeLessThanOrEqual(places);
    if (isCut) await call();
    expect(await left()).toEqual(['c']);
    expect(await p.redis.hlen(p.keys.past)).toBe(1);
  }
  // Two writes.
  expect(cuts).toBe(3);
});
