/** `hand`: a worker over HTTP claims jobs, and the same claim has the same answer. */
import { describe, expect, test } from 'vitest';
import type { EntryId } from '../../src/job/job.ts';
import { markOf } from '../../src/job/record-header.ts';
import { limit } from '../../src/redis/scripts/gates.ts';
import { ensureGroup } from '../../src/redis/scripts/ready.ts';
import type { Claim, Handed } from '../../src/redis/scripts/replies.ts';
import type { HandAsk } from '../../src/redis/scripts/worker-jobs.ts';
import { broken, takeSnapshot } from '../support/invariants.ts';
import { cutOff, drain, endsOf, luaOf, savePoint } from '../support/model-cut.ts';
import { item, only, T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const settings = { consumer: 'h-1', bytesMax: 1_000_000, windowMs: 60_000, nowMs: T0 };
/** A worker that has left: every claim of it comes too late. */
const LEFT = Number.MAX_SAFE_INTEGER;

interface Asked extends Partial<HandAsk> {
  readonly consumer?: string;
  readonly bytesMax?: number;
  readonly suspects?: number;
}

const hand = ({ ended = [], given = [], take = 5, lane = 0, seq = 1, ...call }: Asked = {}) =>
  p.jobs.hand(p.ref, { ended, given, take, lane, seq }, { ...settings, ...call });
const wordsIn = ({ word, taken }: Handed) => [word, ...taken.map(({ member, kind }) => `${member} ${kind}`)];
const tokensIn = ({ taken }: Handed) => taken.map((one) => ('token' in one ? one.token : ''));
const claimsIn = ({ taken }: Handed): readonly Claim[] =>
  taken.flatMap((one) => ('record' in one ? [{ entry: one.entry, member: one.member, token: one.token }] : []));
const ledger = (consumer = 'h-1', lane = 0) => p.redis.hget(p.keys.claims, `${consumer} ${lane}`);
async function ready(...ids: readonly string[]): Promise<void> {
  await p.scheduleAll(ids.map((id) => item(id)));
  await p.promote();
}

describe('a claim', () => {
  test('is handed new jobs, and the ledger has its number and their entries', async () => {
    await ready('a', 'b');
    const handed = await hand();
    expect(wordsIn(handed)).toEqual(['new', 'j:a run', 'j:b run']);
    expect(handed).toMatchObject({ completed: undefined, delivered: 2, refusal: undefined });
    expect(await ledger()).toBe(['1', ...handed.taken.map(({ entry }) => entry)].join(' '));
    expect((await p.picture()).pending).toEqual({ 'h-1': ['j:a', 'j:b'] });
  });

  test('is handed as many as it asks for', async () => {
    await ready('a', 'b', 'c');
    expect(wordsIn(await hand({ take: 2 }))).toEqual(['new', 'j:a run', 'j:b run']);
    expect(wordsIn(await hand({ take: 2, seq: 2 }))).toEqual(['new', 'j:c run']);
  });

  test('stands in the ledger also where there was nothing, and takes what came since when it asks once more', async () => {
    await p.promote();
    expect(wordsIn(await hand())).toEqual(['new']);
    expect(await ledger()).toBe('1');
    await ready('a');
    expect(wordsIn(await hand())).toEqual(['new', 'j:a run']);
  });

  test('has a ledger for each lane and each worker', async () => {
    await ready('a', 'b', 'c');
    await hand({ take: 1, lane: 0, seq: 7 });
    expect(wordsIn(await hand({ take: 1, lane: 1, seq: 1 }))).toEqual(['new', 'j:b run']);
    expect(wordsIn(await hand({ take: 1, consumer: 'h-2', seq: 1 }))).toEqual(['new', 'j:c run']);
    expect(await p.redis.hlen(p.keys.claims)).toBe(3);
  });

  test('takes nothing while the queue is paused, and gives what it took over back', async () => {
    const lost = await p.running('a', { consumer: 'h-9' });
    await ready('b');
    await p.redis.hset(p.keys.meta, 'paused', `${T0} test`);
    const { deliveries } = await p.reclaim('h-9', { consumer: 'h-1' });
    expect(deliveries).toMatchObject([{ entry: lost.entry }]);
    expect(wordsIn(await hand({ given: deliveries }))).toEqual(['new', 'j:a released']);
  });

  test('is told that the group is gone', async () => {
    await ready('a');
    await p.redis.xgroup('DESTROY', p.keys.ready, 'workers');
    expect((await hand()).refusal).toMatch(/^NOGROUP/);
    await ensureGroup(p.redis, p.keys);
  });

  test('is not handed a job before it is due', async () => {
    const soon = Date.now() + 3_600_000;
    await p.scheduleAll([item('a', { dueMs: soon })], { nowMs: soon - 1000 });
    const leader = { term: await p.lead(), leaseMs: 60_000, limit: 500, cap: 10_000 };
    await p.jobs.promote(p.ref, { ...leader, aheadMs: 100, nowMs: soon - 50 });
    expect(await p.redis.xlen(p.keys.ready)).toBe(1);
    expect(wordsIn(await hand())).toEqual(['new', 'j:a dropped']);
    expect(await p.picture()).toMatchObject({ scheduled: { 'j:a': soon } });
  });
});

describe('the same claim again', () => {
  test('is answered the same jobs with the same tokens, and counts nothing twice', async () => {
    await ready('a', 'b');
    const first = await hand();
    await ready('c');
    const again = await hand();
    expect(wordsIn(again)).toEqual(['again', 'j:a again', 'j:b again']);
    expect(tokensIn(again)).toEqual(tokensIn(first));
    expect(again.taken).toMatchObject([{ attempts: 1 }, { attempts: 1 }]);
    expect((await p.picture()).ready).toEqual(['j:a', 'j:b', 'j:c']);
  });

  test('leaves out what was settled since, and takes nothing in its place', async () => {
    await ready('a', 'b');
    const first = await hand();
    await p.complete(claimsIn(first).slice(0, 1));
    await ready('c');
    expect(wordsIn(await hand())).toEqual(['again', 'j:b again']);
    await p.complete(claimsIn(first).slice(1));
    expect(await hand()).toMatchObject({ word: 'again', taken: [], delivered: 0 });
  });

  test('starts what was handed to it and was cut off before its start', async () => {
    await ready('a');
    expect(await cutOff(p.redis, { verb: 'hand', lua: luaOf('hand'), allowed: 2, call: () => hand() })).toMatch(/HSET/);
    expect(await ledger()).toMatch(/^1 \d+-\d+$/);
    expect(wordsIn(await hand())).toEqual(['again', 'j:a run']);
  });

  test('is told what another worker has taken over', async () => {
    await ready('a', 'b');
    const first = await hand();
    const [lost] = claimsIn(first);
    const { deliveries } = await p.reclaim('h-1', { consumer: 'h-2', entries: lost ? [lost.entry] : [] });
    expect(wordsIn(await hand({ consumer: 'h-2', given: deliveries, take: 0 }))).toEqual(['new', 'j:a run']);
    expect(wordsIn(await hand())).toEqual(['again', 'j:a lost', 'j:b again']);
  });

  test('takes nothing in a partition that it is told of after it was handed jobs in another one', async () => {
    await ready('a');
    expect(await hand({ take: -1 })).toMatchObject({ word: 'new', taken: [], delivered: 0 });
    expect(await ledger()).toBe('1 -');
    expect(await hand()).toMatchObject({ word: 'again', taken: [], delivered: 0 });
    expect(wordsIn(await hand({ seq: 2 }))).toEqual(['new', 'j:a run']);
  });

  test('tells again how its ends became', async () => {
    const ended = [{ ...(await p.running('a', { consumer: 'h-1' })), mark: '' }];
    await ready('b');
    expect((await hand({ ended })).completed).toBeUndefined();
    expect((await hand({ ended })).completed).toEqual(['already']);
  });
});

describe('an older claim', () => {
  test('is superseded and takes nothing, and what it has done is done', async () => {
    const claim = await p.running('a', { consumer: 'h-1' });
    await ready('b');
    await hand({ seq: 3, take: 0 });
    const ended = [{ ...claim, mark: markOf(item('a').record) }];
    expect(await hand({ seq: 2, ended })).toEqual({
      word: 'superseded',
      completed: undefined,
      taken: [],
      delivered: 0,
      refusal: undefined,
    });
    expect(await p.picture()).toMatchObject({ jobs: { 'j:a': 'tombstone done', 'j:b': 'record' }, ready: ['j:b'] });
    expect(await ledger()).toBe('3');
  });

  test('of a worker that has left is superseded, whatever its number', async () => {
    await ready('a');
    await hand({ seq: LEFT, take: 0 });
    expect(await ledger()).toBe('9007199254740991');
    expect(wordsIn(await hand({ seq: LEFT - 1 }))).toEqual(['superseded']);
  });
});

describe('what was taken over', () => {
  test('is started before new jobs, under a new token, and the first start is fenced', async () => {
    const lost = await p.running('a', { consumer: 'h-9' });
    await ready('b');
    const { deliveries } = await p.reclaim('h-9', { consumer: 'h-1' });
    const handed = await hand({ given: deliveries, take: 1 });
    expect(new Set(wordsIn(handed))).toEqual(new Set(['new', 'j:b run', 'j:a run']));
    expect(await ledger()).toBe(`1 ${lost.entry} ${handed.taken.find(({ member }) => member === 'j:b')?.entry}`);
    expect(await p.complete([lost])).toEqual(['fenced']);
    expect(handed.taken.find(({ member }) => member === 'j:a')).toMatchObject({ attempts: 2, crashes: 1 });
  });

  test('is answered suspect and not started where workers died under it', async () => {
    await p.running('a', { consumer: 'h-9' });
    const { deliveries } = await p.reclaim('h-9', { consumer: 'h-1' });
    expect(wordsIn(await hand({ given: deliveries, take: 0, suspects: 1 }))).toEqual(['new', 'j:a suspect']);
    expect((await p.picture()).pending).toEqual({ 'h-1': ['j:a'] });
  });
});

test('reads as many bytes of records as it is told, and answers later for the rest', async () => {
  await p.scheduleAll([item('a', { data: 'x'.repeat(400) }), item('b')]);
  await p.promote();
  expect(wordsIn(await hand({ bytesMax: 500 }))).toEqual(['new', 'j:a run', 'j:b later']);
});

describe('in a queue with limits', () => {
  test('whoever claims fills its slots from the line, and keeps the order of a group', async () => {
    await limit(p.redis, p.ref, { share: { share: '0 1 0 1', groups: [] }, nowMs: T0 });
    await ready('{acme}a', '{acme}b', '{beta}c');
    const first = await hand();
    expect(wordsIn(first).toSorted()).toEqual(['j:{acme}a run', 'j:{beta}c run', 'new']);
    expect(wordsIn(await hand({ seq: 2 }))).toEqual(['new']);
    const ended = claimsIn(first)
      .filter(({ member }) => member === 'j:{acme}a')
      .map((claim) => ({ ...claim, mark: '' }));
    expect(wordsIn(await hand({ seq: 3, ended }))).toEqual(['new', 'j:{acme}b run']);
  });

  test('a superseded claim that ends a job lets the next one of its group through', async () => {
    await limit(p.redis, p.ref, { share: { share: '0 1 0 1', groups: [] }, nowMs: T0 });
    await ready('{acme}a', '{acme}b');
    const first = await hand();
    await hand({ seq: 9, take: 0 });
    const ended = claimsIn(first).map((claim) => ({ ...claim, mark: '' }));
    expect(wordsIn(await hand({ seq: 2, ended }))).toEqual(['superseded']);
    expect((await p.picture()).ready).toEqual(['j:{acme}b']);
  });
});

/** What is done before a call, and the call that is cut off. */
type Cut = readonly [title: string, reach: () => Promise<() => Promise<unknown>>];
const cuts: readonly Cut[] = [
  [
    'of new jobs',
    async () => {
      await ready('a', 'b');
      return () => hand({ consumer: 'w2' });
    },
  ],
  [
    'with ends and what it takes over',
    async () => {
      const claim = await p.running('a', { consumer: 'w2' });
      await p.running('b', { consumer: 'w3' });
      await ready('c');
      const { deliveries } = await p.reclaim('w3', { consumer: 'w2', entries: [await entryOf('j:b')] });
      return () => hand({ consumer: 'w2', ended: [{ ...claim, mark: '' }], given: deliveries });
    },
  ],
  [
    'that is made again, with ends',
    async () => {
      const claim = await p.running('c', { consumer: 'w2' });
      await ready('a', 'b');
      await hand({ consumer: 'w2' });
      return () => hand({ consumer: 'w2', ended: [{ ...claim, mark: '' }] });
    },
  ],
  [
    'of a job that was put off meanwhile',
    async () => {
      await ready('a');
      await p.put('j:a', T0 + 1000);
      return () => hand({ consumer: 'w2' });
    },
  ],
];

const entryOf = async (member: string): Promise<EntryId> => {
  const found = await p.redis.xrange(p.keys.ready, '-', '+');
  return only(found.filter(([, fields]) => fields.includes(member)).map(([entry]) => entry)) as EntryId;
};

test.each(cuts)(
  'a claim %s, cut off before each of its writes and made again, ends as it would have',
  async (_, reach) => {
    const call = await reach();
    const { redis, ref, keys } = p;
    const back = await savePoint(redis);
    const ends = async () => {
      await call();
      await drain(redis, ref, { fromMs: T0 });
      return endsOf(await takeSnapshot(redis, keys));
    };
    const expected = await ends();
    const sites = [];
    for (let allowed = 0; ; allowed += 1) {
      await back();
      const site = await cutOff(redis, { verb: 'hand', lua: luaOf('hand'), allowed, call });
      if (site === undefined) break;
      sites.push(site);
      expect(broken(await takeSnapshot(redis, keys), { cutOff: true })).toEqual([]);
      expect([site, await ends()]).toEqual([site, expected]);
    }
    expect(sites.length).toBeGreaterThan(0);
    // A durable counter may have been raised by both calls.
    await p.reset();
  },
);
