/** Limits with a name: what they may be, how the registry keeps them, and what a partition has of them. */
import { describe, expect, test } from 'vitest';
import { gateShare, gateState, readShare, shutBy, spentIn, unknownToOlder } from '../../src/job/gate.ts';
import { decodeLimits, encodeLimits, isSame, lentIn, parseShared, sharedText } from '../../src/job/shared-limit.ts';

const NOW = 1_764_000_000_000;

describe('a limit with a name', () => {
  test.each([
    [undefined, 'limit provider is undefined; allowed: { rate:'],
    [{}, 'limit provider is nothing; allowed: { rate:'],
    [{ rate: '10/s', concurrency: 3 }, 'limit provider is a rate and a concurrency; allowed: { rate:'],
    [{ rate: false }, 'limit provider is no rate; allowed: { rate:'],
    [{ concurrency: 0 }, 'concurrency of limit provider is 0; allowed: '],
    [{ rat: '10/s' }, 'rat'],
  ])('is not %j', (given, words) => {
    expect(() => parseShared('provider', given)).toThrow(words);
  });

  test('is a rate or a concurrency, and is the same however somebody says it', () => {
    const rate = parseShared('provider', { rate: '10/s' });
    expect(sharedText(rate)).toBe('10/s');
    expect(isSame(rate, parseShared('provider', { rate: { limit: 10, per: '1s' } }))).toBe(true);
    expect(isSame(rate, parseShared('provider', { rate: { limit: 10, per: '1s', burst: 5 } }))).toBe(false);
    const places = parseShared('provider', { concurrency: 10 });
    expect(sharedText(places)).toBe('10 at once');
    expect(isSame(rate, places)).toBe(false);
  });

  test('stands in the registry with its revision, which a limit that goes leaves behind', () => {
    const said = { by: 'ada', atMs: NOW };
    const all = [
      { name: 'licences', concurrency: 3, revision: 7, ...said },
      { name: 'provider', rate: { limit: 10, perMs: 1000, burst: 1 }, revision: 6, ...said },
    ];
    expect(decodeLimits(encodeLimits({ revision: 9, all }))).toEqual({ revision: 9, all });
    expect(decodeLimits(encodeLimits({ revision: 9, all: [] }))).toEqual({ revision: 9, all: [] });
    expect(decodeLimits('somebody else wrote this')).toEqual({ revision: 0, all: [] });
  });
});

describe('the share of a partition', () => {
  test('ends with the names, behind two rates and strict order, and is marked for older processes', () => {
    const limits = ['provider', 'licences'];
    expect(gateShare({ limits }, { partition: 0, partitions: 1 })).toMatchObject({
      share: '0 1 0 0 lprovider,licences',
      isMarked: true,
    });
    const rate = [
      { limit: 10, perMs: 1000, burst: 1 },
      { limit: 500, perMs: 3_600_000, burst: 50 },
    ] as const;
    const settings = { rate, perGroup: 1, groupOrder: 'strict', limits } as const;
    const share = gateShare(settings, { partition: 0, partitions: 1 })?.share;
    expect(share).toBe('100000 1 0 1 r7200000,50 s lprovider,licences');
    expect(readShare(share ?? '')).toMatchObject({ shared: limits, isStrict: true, second: { burst: 50 } });
    expect(readShare('0 1 0 1 s')).not.toHaveProperty('shared');
  });

  test('is what older processes do not know', () => {
    expect(unknownToOlder({ limits: ['provider'] })).toBe('limits that other queues share');
    expect(unknownToOlder({ limits: [] })).toBeUndefined();
  });
});

describe('what a partition has of a limit', () => {
  const text = `provider=r,12:3,40,2@${NOW + 100}/5@${NOW} licences=c,12:4,9,3`;
  const names = ['provider', 'licences', 'other'];

  test('are turns that have not ended, or places; what nobody lent is not there', () => {
    expect(lentIn(text, { names, nowMs: NOW })).toEqual([
      { name: 'provider', kind: 'rate', turns: 2, share: 0 },
      { name: 'licences', kind: 'concurrency', turns: 0, share: 3 },
      { name: 'other', kind: undefined, turns: 0, share: 0 },
    ]);
    expect(lentIn('', { names: ['provider'], nowMs: NOW })).toEqual([
      { name: 'provider', kind: undefined, turns: 0, share: 0 },
    ]);
  });

  test('shuts it where a turn has ended or a place is used, and nothing else does', () => {
    const texts = { gates: '0 1 5 0 lprovider,licences', gate: '', lent: text };
    const at = (nowMs: number, entries: number) => {
      const gate = gateState(texts, nowMs);
      if (!gate) throw new Error('it is gated');
      return { shut: shutBy(gate, { entries, held: 0, group: undefined, nowMs }), spent: spentIn(gate, entries) };
    };
    expect(at(NOW, 2)).toEqual({ shut: [], spent: [] });
    expect(at(NOW + 100, 2)).toEqual({ shut: ['shared'], spent: ['provider'] });
    expect(at(NOW, 3)).toEqual({ shut: ['shared'], spent: ['licences'] });
    expect(at(NOW + 100, 5)).toEqual({ shut: ['queue-full'], spent: ['provider', 'licences'] });
  });

  test('is unknown where nobody has looked, and shuts nobody then', () => {
    const gate = gateState({ gates: '0 1 0 0 lprovider', gate: '' }, NOW);
    expect(gate && shutBy(gate, { entries: 0, held: 0, group: undefined, nowMs: NOW })).toEqual([]);
  });
});
