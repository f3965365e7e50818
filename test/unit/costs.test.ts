/** Costs of jobs: how they are said, what a partition is told of them, and how many turns a handler may say. */
import { describe, expect, test } from 'vitest';
import { decodeRecord, encodeRecord } from '../../src/job/codec.ts';
import { parseSpent } from '../../src/job/cost.ts';
import { headerOf } from '../../src/job/fields.ts';
import { gateShare, readShare, unknownToOlder } from '../../src/job/gate.ts';
import { type GateSettings, parseSettings } from '../../src/job/queue-settings.ts';

const ALONE = { partition: 0, partitions: 1 };
const PER_SECOND = { limit: 10, perMs: 1000, burst: 1 };
const shareOf = (settings: GateSettings) => gateShare(settings, ALONE);

describe('a cost', () => {
  test('stands in the header of the record in base 36, and is left out where nobody says it', () => {
    const record = encodeRecord(1_763_719_000_000, '{}', headerOf({ cost: 1000 }, 0));
    expect(record).toBe('1mi8or64g;c=rs|{}');
    expect(decodeRecord(record).cost).toBe(1000);
    expect(decodeRecord('1mi8or64g|{}').cost).toBeUndefined();
    expect(decodeRecord('1mi8or64g;c=-1|{}').cost).toBeUndefined();
  });

  test('stands beside a priority and tags, which are one field', () => {
    const header = headerOf({ cost: 2, priority: 'high', tags: ['paid'] }, 0);
    expect(encodeRecord(1_763_719_000_000, '{}', header)).toBe('1mi8or64g;t= high,paid;c=2|{}');
  });

  test.each([0, 1001, 1.5, '2'])('is not %j', (cost) => {
    expect(() => headerOf({ cost: cost as never }, 0)).toThrow('allowed: a whole number from 1 to 1000');
  });
});

describe('the share of a partition', () => {
  test('says at its end that jobs have costs, and is marked', () => {
    expect(shareOf({ rate: PER_SECOND, costs: true })).toMatchObject({
      ...{ share: '100000 1 0 0 c', isMarked: true, takesCosts: true },
    });
    const strict = { rate: PER_SECOND, perGroup: 1, groupOrder: 'strict', groupOnDead: 'hold', costs: true } as const;
    expect(shareOf(strict)?.share).toBe('100000 1 0 1 sh c');
    expect(readShare('100000 1 0 1 sh c')).toMatchObject({ isStrict: true, hasCosts: true });
    expect(readShare('100000 1 0 1 c > =acme')).toMatchObject({ hasCosts: true });
    expect(readShare('100000 1 0 1 s')).not.toHaveProperty('hasCosts');
  });

  test('says it where groups have a rate, and where one of them has', () => {
    expect(shareOf({ groupRate: PER_SECOND, costs: true })?.share).toMatch(/ c$/);
    expect(shareOf({ groups: { acme: { rate: PER_SECOND } }, costs: true })?.share).toMatch(/ c$/);
  });

  test('says nothing of it without a rate, and jobs may have costs all the same', () => {
    const gates = shareOf({ costs: true, concurrency: 3, groups: { acme: { rate: 0 } } });
    expect(gates?.share).not.toMatch(/ c$/);
    expect([gates?.takesCosts, gates?.isMarked]).toEqual([true, undefined]);
    expect(shareOf({ rate: PER_SECOND })).toEqual({ share: '100000 1 0 0', groups: [] });
  });
});

test('costs are a setting that older processes do not know', () => {
  expect(parseSettings({ costs: true })).toEqual({ costs: true });
  expect(() => parseSettings({ costs: false as never })).toThrow('costs is a value of type boolean; allowed: true');
  expect([unknownToOlder({ costs: true }), unknownToOlder({ costs: true, rate: PER_SECOND })]).toEqual([
    undefined,
    'costs',
  ]);
});

test('a handler may say none to a thousand turns', () => {
  expect([parseSpent(0), parseSpent(1000)]).toEqual([0, 1000]);
  for (const given of [-1, 1001, 0.5, Number.NaN, '3', undefined]) {
    expect(() => parseSpent(given)).toThrow('allowed: a whole number from 0 to 1000');
  }
});
