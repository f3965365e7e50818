/** How many jobs of a group may wait or run: `schedule` counts them by the tag `=group` in the index of tags. */
import { expect, test } from 'vitest';
import { assembled, partsNamed } from '../../lua/assemble.mjs';
import type { HeaderOptions } from '../../src/job/fields.ts';
import { gateShare } from '../../src/job/gate.ts';
import type { GateSettings } from '../../src/job/queue-settings.ts';
import { countedRecord, tagsOfRecord } from '../../src/job/record-header.ts';
import { groupsOf } from '../../src/redis/read/groups.ts';
import { limit } from '../../src/redis/scripts/gates.ts';
import { scriptOptions } from '../../src/redis/scripts/scripts.ts';
import { cutOff, luaOf } from '../support/model-cut.ts';
import { brokenTexts } from '../support/mutants.ts';
import { item, only, T0, usePartition } from '../support/partition.ts';
import { read } from '../support/repository.ts';

const p = usePartition();
const DUE = T0 + 5000;

async function limits(settings: GateSettings): Promise<void> {
  const share = gateShare(settings, { partition: 0, partitions: 1 });
  if (share) await limit(p.redis, p.ref, { share, nowMs: T0 });
}

/** As a client sends it to such a queue. */
function job(id: string, { dueMs = DUE, late = {} }: { readonly dueMs?: number; readonly late?: HeaderOptions } = {}) {
  const { record, ...rest } = item(id, { dueMs, late });
  return { ...rest, record: countedRecord(record) };
}
const put = async (...ids: readonly string[]) =>
  (await p.scheduleAll(ids.map((id) => job(id)))).map((reply) => reply.kind);
const pendingIn = async (group: string) => {
  const seen = await groupsOf(p.redis, p.ref, { named: [group] });
  const state = 'groups' in seen ? only(seen.groups).state : undefined;
  return [state?.pending, state?.maxPending];
};
const commandsOf = async () => {
  const stats = await p.redis.info('commandstats');
  const calls = [...stats.matchAll(/cmdstat_([\w|-]+):calls=(\d+)/g)].map(([, name, count]) => [name, Number(count)]);
  return Object.fromEntries(calls) as Readonly<Record<string, number>>;
};

test('a queue whose groups have no such limit asks for none of it', async () => {
  await limits({ perGroup: 1 });
  await put('{a}1');
  await p.redis.config('RESETSTAT');
  await put('{a}2', '{a}3');
  const { zlexcount, hmget, zscore } = await commandsOf();
  expect({ zlexcount, hmget, zscore }).toEqual({ hmget: 1 });
  expect(await pendingIn('a')).toEqual([0, 0]);
});

test('the new job for which its group has no room is refused, and those of others are not', async () => {
  await limits({ groupPending: 2 });
  expect(await p.scheduleAll(['{a}1', '{a}2', '{a}3', '{b}1', '{aa}1', 'x'].map((id) => job(id)))).toEqual([
    { kind: 'ok' },
    { kind: 'ok' },
    { kind: 'full', what: 'group', limit: 2, there: 2 },
    { kind: 'ok' },
    { kind: 'ok' },
    { kind: 'ok' },
  ]);
  expect(await p.redis.hexists(p.keys.jobs, 'j:{a}3')).toBe(0);
  expect([await pendingIn('a'), await pendingIn('b'), await pendingIn('c')]).toEqual([
    [2, 2],
    [1, 2],
    [0, 2],
  ]);
});

test('a group is counted once a call, however many of its jobs there are', async () => {
  await limits({ groupPending: 100 });
  await put('{a}0');
  await p.redis.config('RESETSTAT');
  const ids = Array.from({ length: 30 }, (_, nth) => `{${nth % 2 === 0 ? 'a' : 'b'}}n${nth}`);
  expect(new Set(await put(...ids))).toEqual(new Set(['ok']));
  const { zlexcount, hmget, zscore } = await commandsOf();
  expect({ zlexcount, hmget, zscore }).toEqual({ zlexcount: 2, hmget: 1 });
});

test('what is scheduled, in line, let through, running or to be tried again counts; its end makes room', async () => {
  await limits({ perGroup: 1, groupPending: 3 });
  await p.scheduleAll([job('{a}1', { dueMs: T0 }), job('{a}2', { dueMs: T0 }), job('{a}3')]);
  const claim = only(await p.run());
  expect(await put('{a}4')).toEqual(['full']);
  await p.retry(claim, { delayMs: 60_000 });
  expect(await put('{a}4')).toEqual(['full']);
  expect(await p.cancel('j:{a}1')).toMatchObject({ kind: 'cancelled' });
  expect(await put('{a}4', '{a}5')).toEqual(['ok', 'full']);
  const second = only(await p.run());
  await p.complete([second]);
  expect(await put('{a}5', '{a}6')).toEqual(['ok', 'full']);
});

test('a dead job makes room, and its replay is never refused, and counts', async () => {
  await limits({ groupPending: 1 });
  await p.scheduleAll([job('{a}1', { dueMs: T0 })]);
  await p.bury(only(await p.run()));
  const [deadLetter = ''] = only(await p.redis.xrevrange(p.keys.dead, '+', '-', 'COUNT', 1));
  expect(await put('{a}2')).toEqual(['ok']);
  expect(await p.replay(deadLetter, { dueMs: DUE })).toMatchObject({ kind: 'ok' });
  expect(await pendingIn('a')).toEqual([2, 1]);
  await p.cancel('j:{a}1');
  expect(await put('{a}3')).toEqual(['full']);
  await p.cancel('j:{a}2');
  expect(await put('{a}3')).toEqual(['ok']);
});

test('the same call again, an id that lives and one that is replaced need no room', async () => {
  await limits({ groupPending: 1 });
  expect([await put('{a}1'), await put('{a}1')]).toEqual([['ok'], ['already']]);
  const other = job('{a}1', { dueMs: DUE + 1 });
  expect(await p.scheduleAll([other])).toEqual([{ kind: 'exists', dueMs: DUE }]);
  expect(await p.scheduleAll([other, job('{a}2')], { mode: 'replace' })).toMatchObject([
    { kind: 'replaced' },
    { kind: 'full', there: 1 },
  ]);
});

test('the same call is recognised where the limit has come or gone in between', async () => {
  await p.scheduleAll([item('{a}1', { dueMs: DUE })]);
  await limits({ groupPending: 9 });
  await p.scheduleAll([job('{a}2')]);
  expect(await p.scheduleAll([job('{a}1'), item('{a}2', { dueMs: DUE })])).toMatchObject([
    { kind: 'already' },
    { kind: 'already' },
  ]);
  await p.cancel('j:{a}1');
  await p.cancel('j:{a}2');
  expect(await p.scheduleAll([job('{a}1'), item('{a}2', { dueMs: DUE })])).toMatchObject([
    { kind: 'already', over: 'cancelled' },
    { kind: 'already', over: 'cancelled' },
  ]);
});

test('a job from before the limit does not count, until it is replaced; a new one has to say that it counts', async () => {
  const before = ['{a}1', '{a}2', '{a}3'].map((id) => item(id, { dueMs: DUE }));
  expect((await p.scheduleAll(before)).map(({ kind }) => kind)).toEqual(['ok', 'ok', 'ok']);
  await limits({ groupPending: 2 });
  const silent = [item('{a}1', { dueMs: DUE }), item('{a}1', { dueMs: DUE + 1 }), item('{a}4', { dueMs: DUE })];
  expect((await p.scheduleAll(silent)).map(({ kind }) => kind)).toEqual(['already', 'exists', 'uncounted']);
  expect(await p.scheduleAll(silent, { mode: 'replace' })).toMatchObject([
    { kind: 'already' },
    { kind: 'uncounted' },
    { kind: 'uncounted' },
  ]);
  expect(await put('{a}4')).toEqual(['ok']);
  const replaced = [job('{a}1', { dueMs: DUE + 1 }), job('{a}5')];
  expect(await p.scheduleAll(replaced, { mode: 'replace' })).toMatchObject([
    { kind: 'replaced' },
    { kind: 'full', limit: 2, there: 2 },
  ]);
});

test('a group has a limit of its own by its name, or by the longest beginning of it, or none', async () => {
  const groups = { a: { maxPending: 2 }, 'a*': { maxPending: 3 }, 'ab*': { maxPending: 0 }, b: { concurrency: 7 } };
  await limits({ groupPending: 1, groups });
  const some = (group: string) => put(...[1, 2, 3, 4].map((nth) => `{${group}}${nth}`));
  expect(await some('a')).toEqual(['ok', 'ok', 'full', 'full']);
  expect(await some('aa')).toEqual(['ok', 'ok', 'ok', 'full']);
  expect(await some('abc')).toEqual(['ok', 'ok', 'ok', 'ok']);
  expect(await some('b')).toEqual(['ok', 'full', 'full', 'full']);
  expect([await pendingIn('aa'), await pendingIn('abc'), await pendingIn('b')]).toEqual([
    [3, 3],
    [0, 0],
    [1, 1],
  ]);
});

test('single groups may have such a limit where all others have none; it goes with the setting', async () => {
  await limits({ groups: { a: { maxPending: 1 } } });
  expect(await put('{a}1', '{a}2', '{b}1', '{b}2')).toEqual(['ok', 'full', 'ok', 'ok']);
  await limits({ groups: { a: { concurrency: 1 } } });
  expect(await put('{a}2', '{a}3')).toEqual(['ok', 'ok']);
  await limits({ groupPending: 4 });
  expect(await put('{a}4', '{a}5')).toEqual(['ok', 'full']);
});

test('an edit keeps what counts, beside new tags and another priority', async () => {
  await limits({ groupPending: 1 });
  await put('{a}1');
  const options = { tags: ['paid'], priority: 'high' };
  expect(await p.edit('j:{a}1', { options })).toMatchObject({ kind: 'ok' });
  expect(await put('{a}2')).toEqual(['full']);
  const record = (await p.redis.hget(p.keys.jobs, 'j:{a}1')) ?? '';
  expect(record).toMatch(/;t= high,paid, group;m=/);
  expect(tagsOfRecord(record)).toEqual(['paid']);
  await p.edit('j:{a}1', { options: { tags: null, priority: null } });
  expect(await put('{a}2')).toEqual(['full']);
  await p.cancel('j:{a}1');
  expect(await put('{a}2')).toEqual(['ok']);
});

const KEYS = ['scheduled', 'jobs', 'runs', 'done', 'meta', 'wake', 'stale', 'tags', 'ready', 'line'] as const;
/** A call of a producer that does not know of `K:groups`. */
async function foreign(id: string, lua = luaOf('schedule')): Promise<unknown> {
  const { member, record, dueMs } = job(id);
  const keys = KEYS.map((name) => p.keys[name]);
  return p.redis.call('EVAL', lua, keys.length, ...keys, T0, '0', 'keep', 1e11, 1e6, member, record, dueMs);
}

test('a producer that does not know of groups may leave their key out, and is not refused', async () => {
  await limits({ groupPending: 1 });
  await put('{a}1');
  expect(await foreign('{a}2')).toEqual(['ok']);
});

test('cut off before each write and made again, a call has the place that it had', async () => {
  const items = ['{a}1', '{a}2', '{b}1'].map((id) => job(id));
  for (let allowed = 0, isCut = true; isCut; allowed += 1) {
    await p.reset();
    await limits({ groupPending: 2 });
    const call = () => p.scheduleAll(items);
    isCut = (await cutOff(p.redis, { verb: 'schedule', lua: luaOf('schedule'), allowed, call })) !== undefined;
    if (isCut) expect((await call()).map(({ kind }) => kind)).toEqual(expect.not.arrayContaining(['full']));
    expect([await put('{a}3'), await pendingIn('a'), await pendingIn('b')]).toEqual([['full'], [2, 2], [1, 2]]);
  }
});

/** All that such a limit means. */
async function story(lua?: string): Promise<readonly unknown[]> {
  await p.reset();
  await p.scheduleAll(['{a}4', '{b}4'].map((id) => item(id, { dueMs: DUE })));
  await limits({ groupPending: 2, groups: { big: { maxPending: 3 }, 'free*': { maxPending: 0 } } });
  const told: unknown[] = [
    await put('{a}1', '{a}2', '{a}3', 'x', 'y', 'z', '{b}1'),
    await put('{a}1', '{a}3'),
    await put('{big}1', '{big}2', '{big}3', '{big}4', '{free}1', '{free}2', '{free}3'),
  ];
  told.push(await p.scheduleAll([item('{a}8', { dueMs: DUE }), job('{b}2'), item('x', { dueMs: DUE })]));
  const replacing = [
    ...[job('{a}4', { dueMs: DUE + 1 }), job('{b}1', { dueMs: DUE + 1 }), job('{b}3')],
    item('{b}4', { dueMs: DUE + 1 }),
  ];
  told.push(await p.scheduleAll(replacing, { mode: 'replace' }));
  // As a call leaves them that was cut off behind its first write.
  await p.put('j:{a}5', DUE);
  told.push(await put('{a}5'), await foreign('{a}6', lua));
  // Of one call, one whose record counts from now on, one that counts already, and one more.
  await p.cancel('j:{b}2');
  const counting = [job('{b}5'), job('{b}4', { dueMs: DUE + 1 }), job('{b}6')];
  told.push(await p.scheduleAll(counting, { mode: 'replace' }), await pendingIn('b'));
  // One that waits for a worker.
  await p.scheduleAll([job('{r}1', { dueMs: T0 })]);
  await p.promote();
  const ready = [job('{r}2'), job('{r}1', { dueMs: DUE + 1 }), job('{r}3')];
  told.push(await p.scheduleAll(ready, { mode: 'replace' }));
  await p.cancel('j:{big}1');
  await p.cancel('j:{big}2');
  const again = [job('{big}5'), job('{big}3', { dueMs: DUE + 1 }), job('{big}6'), job('{big}7')];
  told.push(await p.scheduleAll(again, { mode: 'replace' }));
  return told;
}

/** Bugs that no operator makes. */
const SLIPS: readonly (readonly [words: string, instead: string])[] = [
  ["'(' .. of .. '~'", "'(' .. of .. '}'"],
  ["'[' .. of .. '}'", "'[' .. of"],
  ['own or all', 'all'],
  ['own or all', 'own or 0'],
  [" >= most and reply == 'ok'", ' >= most'],
  [" or reply == 'replaced'", ''],
  ['there[group] + 1', 'there[group]'],
  ['not isCounted(before) and ', ''],
  ["or redis.call('ZSCORE', keys.scheduled, member)", ''],
];

test('planted bugs are noticed', async () => {
  const parts = partsNamed(read('lua/verbs/schedule.lua'));
  expect(parts).toContain('group-quota');
  const own = read('lua/lib/group-quota.lua');
  const slips = SLIPS.map(([words, instead]) => {
    expect(own.split(words)).toHaveLength(2);
    return { name: `${words} → ${instead}`, lua: own.replace(words, () => instead) };
  });
  const name = 'duestream_schedule';
  const whole: unknown = Reflect.get(p.redis, name);
  const right = await story();
  const unnoticed: string[] = [];
  const bugs = [...brokenTexts('group-quota'), ...slips];
  for (const bug of bugs) {
    const lua = assembled(read('lua/verbs/schedule.lua'), (part) =>
      part === 'group-quota' ? bug.lua : read(`lua/lib/${part}.lua`),
    );
    const keys = scriptOptions()[name]?.numberOfKeys ?? 0;
    Reflect.set(p.redis, name, (...words: (string | number)[]) => p.redis.call('EVAL', lua, keys, ...words));
    const isSame = await story(lua).then(
      (told) => JSON.stringify(told) === JSON.stringify(right),
      () => false,
    );
    if (isSame) unnoticed.push(bug.name);
  }
  Reflect.set(p.redis, name, whole);
  await p.reset();
  expect(unnoticed).toEqual([]);
  expect(bugs.length).toBeGreaterThan(15);
});
