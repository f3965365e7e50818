/** What sets promise, told on one partition. Each tale throws where it does not hold. */
import { expect } from 'vitest';
import { encodeBody, encodeRecord, memberOf } from '../../src/job/codec.ts';
import { setsOf } from '../../src/redis/read/sets.ts';
import { tendSets } from '../../src/redis/scripts/sets.ts';
import { CALLBACK, NOW, SET, type SetDesk } from './sets-stories.ts';

const member = (id: string) => memberOf(`{set:${SET}}${id}`);
const die = async (desk: SetDesk) => {
  await desk.jobs.bury(desk.ref, desk.claim, { ...desk.when, reason: 'attempts', error: '' });
  const [entry] = await desk.redis.xrevrange(desk.ref.keys.dead, '+', '-', 'COUNT', 1);
  return entry?.[0] ?? '';
};
const seen = async (desk: SetDesk) => (await setsOf(desk.redis, desk.ref, { after: undefined, limit: 10 })).sets;
const ENDS = { done: 0, dead: 0, cancelled: 0, expired: 0 };

export const tales: readonly { readonly title: string; readonly tell: (desk: SetDesk) => Promise<void> }[] = [
  {
    title: 'a set begins once, with one callback, and is listed until it is over',
    async tell(desk) {
      await desk.begin();
      expect(await desk.gather()).toEqual({ kind: 'ok' });
      expect(await desk.gather()).toEqual({ kind: 'already' });
      expect(await desk.gather({ ...CALLBACK, delayMs: 5 })).toEqual({ kind: 'exists' });
      await desk.put(['1', '2']);
      const shown = { name: SET, ...ENDS, isSealed: false, madeMs: NOW, open: 2, callback: CALLBACK };
      expect(await seen(desk)).toEqual([shown]);
      expect(await desk.seal()).toEqual({ kind: 'ok' });
      expect(await desk.seal()).toEqual({ kind: 'already' });
      expect(await seen(desk)).toEqual([{ ...shown, isSealed: true }]);
      await desk.cancel('1');
      expect(await seen(desk)).toEqual([{ ...shown, isSealed: true, open: 1, cancelled: 1 }]);
      expect(await desk.callback()).toBeUndefined();
      await desk.cancel('2');
      expect(await desk.callback()).toEqual([0, 0, 2, 0]);
      expect(await desk.left()).toEqual([]);
      expect([await desk.gather(), await desk.seal()]).toEqual([{ kind: 'over' }, { kind: 'over' }]);
    },
  },
  {
    title: 'a member needs its set, and no job leaves or joins one by another way',
    async tell(desk) {
      await desk.begin();
      expect(await desk.put(['1'])).toEqual(['no-set']);
      expect(await desk.redis.zcard(desk.ref.keys.scheduled)).toBe(0);
      const alike = { header: { set: undefined, tags: ['a=set:b'] } };
      expect(await desk.put(['5'], alike)).toEqual(['ok']);
      expect(await desk.put(['5'], { ...alike, data: 2, mode: 'replace' })).toEqual(['replaced']);
      await desk.cancel('5');
      await desk.gather();
      expect(await desk.put(['1', '1'])).toEqual(['ok', 'already']);
      expect(await desk.put(['1'], { header: { set: 'other' }, mode: 'replace' })).toEqual(['exists']);
      expect(await desk.put(['1'], { header: { set: undefined }, mode: 'replace' })).toEqual(['exists']);
      expect(await desk.put(['1'], { data: 2, mode: 'replace' })).toEqual(['replaced']);
      expect(await desk.put(['2'], { header: { set: undefined } })).toEqual(['ok']);
      expect(await desk.put(['2'], { mode: 'replace' })).toEqual(['exists']);
      await desk.seal();
      await desk.cancel('1');
      expect(await desk.put(['1'], { data: 2 })).toEqual(['already']);
      expect(await desk.put(['3'])).toEqual(['no-set']);
      expect(await desk.callback()).toEqual([0, 0, 1, 0]);
    },
  },
  {
    title: 'members are added to a sealed set as long as one is open',
    async tell(desk) {
      await desk.begin();
      await desk.gather();
      await desk.put(['1']);
      await desk.seal();
      expect(await desk.put(['2'])).toEqual(['ok']);
      await desk.cancel('1');
      expect(await desk.callback()).toBeUndefined();
      expect(await desk.put(['3'])).toEqual(['ok']);
      await desk.cancel('2');
      await desk.cancel('3');
      expect(await desk.callback()).toEqual([0, 0, 3, 0]);
    },
  },
  {
    title: 'a call that is made again counts nothing',
    async tell(desk) {
      await desk.begin();
      await desk.gather();
      await desk.put(['1', '2']);
      await desk.seal();
      await desk.run();
      const [one, two] = desk.claims;
      if (!one || !two) throw new Error('nothing runs');
      await desk.complete(one);
      await desk.complete(one);
      await desk.complete(two);
      await desk.complete(two);
      await desk.tend();
      expect(await desk.callback()).toEqual([2, 0, 0, 0]);
      expect(await desk.redis.hget(desk.ref.keys.meta, 'n.scheduled')).toBe('3');
    },
  },
  {
    title: 'a dead member that is replayed is no longer dead, and after the callback a job like any other',
    async tell(desk) {
      await desk.begin();
      await desk.gather();
      await desk.put(['1', '2']);
      await desk.seal();
      await desk.run();
      const other = await claimsOf(desk, '2');
      const letter = await die(desk);
      expect(await seen(desk)).toMatchObject([{ dead: 1, open: 1 }]);
      await desk.jobs.replay(desk.ref, letter, { nowMs: NOW });
      expect(await seen(desk)).toMatchObject([{ dead: 0, open: 2 }]);
      await desk.run();
      const second = await die(desk);
      await desk.jobs.cancel(desk.ref, [member('2')], desk.when);
      await desk.jobs.complete(desk.ref, other, desk.when);
      expect(await desk.callback()).toEqual([0, 1, 1, 0]);
      expect(await desk.jobs.replay(desk.ref, second, { nowMs: NOW })).toMatchObject({ kind: 'ok' });
      await desk.cancel('1');
      await desk.tend();
      expect(await desk.left()).toEqual([]);
      expect(await desk.callback()).toEqual([0, 1, 1, 0]);
    },
  },
  {
    title: 'a delay is counted from the end of the last member, and tags and priority of the callback are its own',
    async tell(desk) {
      await desk.begin();
      const record = CALLBACK.record.replace('|', ';t=paid|');
      await desk.gather({ ...CALLBACK, record, delayMs: 5000 });
      await desk.redis.hset(desk.ref.keys.meta, 'wake', NOW + 9000, 'held', '0 0');
      await desk.seal();
      const { scheduled, jobs, tags, meta } = desk.ref.keys;
      expect(await desk.redis.zscore(scheduled, CALLBACK.member)).toBe(String(NOW + 5000));
      const made = (await desk.redis.hget(jobs, CALLBACK.member)) ?? '';
      expect(made).toBe(record.replace('10', `1${(NOW + 5000).toString(36)};n=0.0.0.0.${SET}`));
      expect(await desk.redis.zrange(tags, '0', '-1')).toEqual([`paid\0${CALLBACK.member}`]);
      expect(await desk.redis.hmget(meta, 'n.scheduled', 'wake', 'held')).toEqual([
        '1',
        String(NOW + 5000),
        `${made.length} 1`,
      ]);
    },
  },
  {
    title: 'a live job of the id of the callback stays, and the set waits for its end',
    async tell(desk) {
      await desk.begin();
      await desk.gather();
      const item = { member: CALLBACK.member, record: '10|{}', dueMs: NOW };
      await desk.jobs.schedule(desk.ref, [item], { mode: 'keep', horizonMs: 1e12, bytesMax: 1e6, nowMs: NOW });
      await desk.seal();
      expect(await desk.redis.hget(desk.ref.keys.jobs, CALLBACK.member)).toBe('10|{}');
      await desk.jobs.cancel(desk.ref, [CALLBACK.member], desk.when);
      expect(await desk.tend()).toEqual({ over: 1, next: '' });
      expect(await desk.callback()).toEqual([0, 0, 0, 0]);
    },
  },
  {
    title: 'a set that is removed makes no callback, and its members go on',
    async tell(desk) {
      await desk.begin();
      const disband = () => desk.jobs.changeSet(desk.ref, { kind: 'disband', name: SET });
      expect(await disband()).toEqual({ kind: 'unknown' });
      expect(await desk.seal()).toEqual({ kind: 'unknown' });
      await desk.gather();
      await desk.put(['1']);
      await desk.seal();
      expect(await disband()).toEqual({ kind: 'ok' });
      expect(await desk.left()).toEqual([`=set:${SET} ${member('1')}`]);
      await desk.cancel('1');
      expect(await desk.left()).toEqual([]);
      expect(await desk.callback()).toBeUndefined();
    },
  },
  {
    title:
      'a name is used again when nobody of its earlier set lives, and what calls that were cut off left is no member',
    async tell(desk) {
      await desk.begin();
      const { tags, jobs } = desk.ref.keys;
      const disband = () => desk.jobs.changeSet(desk.ref, { kind: 'disband', name: SET });
      await desk.gather();
      await desk.put(['1']);
      await disband();
      const before = await desk.redis.zrange(tags, '0', '-1');
      expect(await desk.gather()).toEqual({ kind: 'lives' });
      expect(await desk.redis.zrange(tags, '0', '-1')).toEqual(before);
      await desk.cancel('1');
      await desk.redis.zadd(tags, 0, `=set:${SET}\0${member('0')}`, 0, `=set:${SET}\0${member('00')}`);
      await desk.redis.hset(jobs, member('0'), '.x0 0 0 0 -');
      expect(await desk.gather()).toEqual({ kind: 'ok' });
      expect(await seen(desk)).toMatchObject([{ ...ENDS, open: 0 }]);
      await disband();
      const many = Array.from({ length: 201 }, (_, nth) => [0, `=set:${SET}\0${member(`many${nth}`)}`]).flat();
      await desk.redis.zadd(tags, ...many);
      expect([await desk.gather(), await desk.gather()]).toEqual([{ kind: 'lives' }, { kind: 'ok' }]);
      await desk.seal();
      expect(await desk.callback()).toEqual([0, 0, 0, 0]);
    },
  },
  {
    title: 'a dead letter of an earlier set of the name is replayed as a job of no set',
    async tell(desk) {
      await desk.begin();
      await desk.gather();
      const tagged = { header: { tags: ['row', 'zone'] } };
      for (const [id, options] of [
        ['1', tagged],
        ['2', {}],
      ] as const) {
        await desk.put([id], options);
        await desk.run();
        await die(desk);
      }
      await desk.jobs.changeSet(desk.ref, { kind: 'disband', name: SET });
      const again = { kind: 'gather', name: SET, callback: CALLBACK } as const;
      await desk.jobs.changeSet(desk.ref, again, { nowMs: NOW + 1 });
      await desk.put(['3']);
      await desk.run();
      await desk.jobs.bury(desk.ref, desk.claim, { ...desk.when, nowMs: NOW + 1, reason: 'attempts', error: '' });
      const [first, second, own] = await desk.redis.xrange(desk.ref.keys.dead, '-', '+');
      const replay = async (letter: typeof own) =>
        (await desk.jobs.replay(desk.ref, letter?.[0] ?? '', { nowMs: NOW + 2 })).kind;
      for (const letter of [first, second]) expect(await replay(letter)).toBe('ok');
      expect(await seen(desk)).toMatchObject([{ dead: 1, open: 0 }]);
      const { jobs, tags, dead } = desk.ref.keys;
      const records = await desk.redis.hmget(jobs, member('1'), member('2'));
      expect(records.map((record) => record?.replace(/^1\w+/, '1').split('|', 1).join())).toEqual([
        '1;t=row,zone',
        '1',
      ]);
      expect(await desk.redis.zrange(tags, '0', '-1')).toEqual(
        [`=sets\0${SET}`, `row\0${member('1')}`, `zone\0${member('1')}`].toSorted(),
      );
      // As a call leaves it that was cut off before its last write.
      const left = (await desk.redis.xadd(dead, '*', ...(first?.[1] ?? []))) ?? '';
      expect(await replay([left, []])).toBe('ok');
      expect(await replay(own)).toBe('ok');
      expect(await seen(desk)).toMatchObject([{ dead: 0, open: 1 }]);
    },
  },
  {
    title: 'a job of another group is no member, though its partition is that of the set',
    async tell(desk) {
      await desk.begin();
      await desk.gather();
      const record = encodeRecord(NOW, encodeBody({ name: 'row', data: 1 }), { set: SET });
      const items = ['j:{acme}1', 'j:1', member('1'), member('2')].map((one) => ({ member: one, record, dueMs: NOW }));
      const options = { mode: 'keep', horizonMs: 1e12, bytesMax: 1e6, nowMs: NOW } as const;
      const reply = await desk.jobs.schedule(desk.ref, items, options);
      expect(reply).toMatchObject([{ kind: 'no-set' }, { kind: 'no-set' }, { kind: 'ok' }, { kind: 'ok' }]);
      expect(await seen(desk)).toMatchObject([{ open: 2 }]);
    },
  },
  {
    title: 'the leader makes what was not made, of sealed sets without a member, a page at a time',
    async tell(desk) {
      await desk.begin();
      const { tags, jobs } = desk.ref.keys;
      await desk.gather();
      await desk.put(['1']);
      await desk.redis.zadd(
        tags,
        0,
        `=set:${SET}\0${member('0')}`,
        0,
        '=sets\0gone',
        0,
        `=set:${SET}\0${member('00')}`,
      );
      await desk.redis.hset(jobs, member('0'), '.x0 0 0 0 -');
      expect(await desk.tend()).toEqual({ over: 0, next: '' });
      expect(await seen(desk)).toMatchObject([{ open: 3, dead: 0 }]);
      await desk.seal();
      const ask = { term: desk.term, after: '', limit: 1, nowMs: NOW };
      expect(await tendSets(desk.redis, desk.ref, { ...ask, limit: 50 })).toEqual({ over: 0, next: '' });
      expect(await seen(desk)).toMatchObject([{ open: 1, dead: 1 }]);
      await desk.redis.zrem(tags, `=set:${SET}\0${member('1')}`);
      expect(await tendSets(desk.redis, desk.ref, ask)).toEqual({ over: 1, next: SET });
      expect(await tendSets(desk.redis, desk.ref, { ...ask, after: SET })).toEqual({ over: 0, next: '' });
      expect(await desk.callback()).toEqual([0, 1, 0, 0]);
      expect(await tendSets(desk.redis, desk.ref, { ...ask, term: 'other' })).toBe('fenced');
      await desk.redis.hdel(jobs, CALLBACK.member);
      for (const name of ['a', 'b']) {
        await desk.jobs.changeSet(desk.ref, { kind: 'gather', name, callback: CALLBACK });
      }
      expect(await tendSets(desk.redis, desk.ref, ask)).toEqual({ over: 0, next: 'a' });
      expect(await tendSets(desk.redis, desk.ref, { ...ask, after: 'a' })).toEqual({ over: 0, next: 'b' });
      expect(await tendSets(desk.redis, desk.ref, { ...ask, after: 'b' })).toEqual({ over: 0, next: '' });
      for (const name of ['a', 'b']) await desk.jobs.changeSet(desk.ref, { kind: 'disband', name });
      await desk.redis.hset(jobs, '\0set\0old', '.2 5 0.0.0.0', '\0then\0old', '.0 j:x 10|{}');
      await desk.redis.zadd(tags, 0, '=sets\0old');
      expect(await desk.tend()).toEqual({ over: 1, next: '' });
      expect(await desk.redis.hget(jobs, 'j:x')).toBeNull();
      expect(await desk.left()).toEqual([]);
    },
  },
  {
    title: 'a set is changed in the layout that the caller knows, and no other',
    async tell(desk) {
      await desk.begin();
      const ref = { ...desk.ref, layoutGeneration: 3 };
      const changes = [
        { kind: 'gather', name: SET, callback: CALLBACK },
        { kind: 'seal', name: SET, member: CALLBACK.member },
        { kind: 'disband', name: SET },
      ] as const;
      for (const change of changes) {
        expect(await desk.jobs.changeSet(ref, change)).toEqual({ kind: 'moved', layoutGeneration: 0 });
      }
      const [gather] = changes;
      expect(await desk.jobs.changeSet(desk.ref, { ...gather, layoutAge: 'remembered' })).toMatchObject({
        kind: 'moved',
      });
      expect(await desk.jobs.changeSet(desk.ref, { ...gather, layoutAge: 'fresh' })).toEqual({ kind: 'ok' });
      expect(await desk.redis.hget(desk.ref.keys.meta, 'generation')).toBe('0');
    },
  },
];

async function claimsOf(desk: SetDesk, id: string) {
  return desk.claims.filter((claim) => claim.member === member(id)).map((claim) => ({ ...claim, mark: '' }));
}
