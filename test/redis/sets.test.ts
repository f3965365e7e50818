/** `gather`, `seal`, `disband`, `tend` beside other calls: what only a caller of another kind, or a broken index, can show. */
import { expect, test } from 'vitest';
import { encodeBody, encodeRecord } from '../../src/job/codec.ts';
import { callbackId } from '../../src/job/labels.ts';
import { digestOf } from '../../src/job/record-header.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { examine } from '../../src/redis/repair/examine.ts';
import { repair } from '../../src/redis/repair/repair.ts';
import { luaOf } from '../support/model-cut.ts';
import { item, T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const clock = { ...systemClock, sleep: async () => true };
const member = `j:${callbackId('s', undefined)}`;
const callback = { member, record: encodeRecord(0, encodeBody({ name: 'default', data: 1 })), delayMs: 0 };
const begin = () => p.jobs.changeSet(p.ref, { kind: 'gather', name: 's', callback }, { nowMs: T0 });
const seal = () => p.jobs.changeSet(p.ref, { kind: 'seal', name: 's', member }, { nowMs: T0 });
const inSet = (id: string) => item(`{set:s}${id}`, { late: { set: 's' } });

test('a caller that does not name the index of tags can enter no member', async () => {
  await begin();
  const { scheduled, jobs, runs, done, meta, wake, stale } = p.keys;
  const keys = [scheduled, jobs, runs, done, meta, wake, stale];
  const one = inSet('1');
  const args = [T0, 0, 'keep', 1e12, 1e6, one.member, one.record, T0];
  expect(await p.redis.eval(luaOf('schedule'), keys.length, ...keys, ...args)).toEqual(['bad-record']);
});

test('an edit keeps a job in its set', async () => {
  await begin();
  const one = inSet('1');
  await p.scheduleAll([one]);
  const other = one.record.replace('set:s', 'set:t');
  const asked = { member: one.member, before: digestOf(one.record), record: other };
  const reply = await p.jobs.edit(p.ref, [asked], { bytesMax: 1e6 });
  expect(reply).toEqual([{ kind: 'bad-record' }]);
  expect(await p.edit(one.member, { options: { tags: ['x'] } })).toEqual({ kind: 'ok' });
  expect(await p.redis.zrange(p.keys.tags, '0', '-1')).toContain(`=set:s\0${one.member}`);
});

test('the end of a member in a call of many counts by its outcome', async () => {
  await begin();
  await p.scheduleAll([inSet('1'), inSet('2'), item('other')]);
  await seal();
  const claims = await p.run();
  await p.cancel('j:{set:s}2');
  await p.complete(claims);
  expect(await p.redis.hget(p.keys.jobs, member)).toContain(';n=1.0.1.0.s|');
});

test('a set that the index does not list, and an entry without its set, are found and mended', async () => {
  await begin();
  await p.redis.zrem(p.keys.tags, '=sets\0s');
  await p.redis.zadd(p.keys.tags, 0, '=sets\0gone');
  const { flaws } = await examine(p.redis, p.ref, { clock, apartMs: 0 });
  expect(flaws.map(({ invariant, what, name }) => [invariant, what, name])).toEqual([
    ['I21', 'unlisted', 's'],
    ['I15', 'astray', '=sets\0gone'],
  ]);
  const damages = flaws.flatMap(({ damage }) => (damage ? [damage] : []));
  expect([...(await repair(p.redis, p.ref, damages)).values()]).toEqual(['repaired', 'repaired']);
  expect((await examine(p.redis, p.ref, { clock, apartMs: 0 })).flaws).toEqual([]);
  expect([...(await repair(p.redis, p.ref, damages)).values()]).toEqual(['sound', 'sound']);
});

test('a job in no set costs no command more', async () => {
  const commands = async () => {
    const stats = await p.redis.info('commandstats');
    return [...stats.matchAll(/cmdstat_(\w+):calls=(\d+)/g)]
      .filter(([, name]) => !/info|config|eval/.test(name ?? ''))
      .map(([, ...of]) => of.join(' '));
  };
  const round = async (late: Parameters<typeof item>[1]) => {
    await p.reset();
    await p.redis.config('RESETSTAT');
    await p.scheduleAll([item('1', late)]);
    await p.complete(await p.run());
    return commands();
  };
  // A tag that only looks like that of a set counts as any tag does.
  const tagged = await round({ late: { tags: ['x'] } });
  expect(await round({ late: { tags: ['a=set:b'] } })).toEqual(tagged);
  expect(tagged.join()).not.toContain('lex');
});
