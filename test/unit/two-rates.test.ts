/** Two rates of a queue: how they are said, what a partition gets of them, and which of two never counts. */
import { describe, expect, test } from 'vitest';
import { gateShare, gateState, ratesIn, readShare, turnsFree } from '../../src/job/gate.ts';
import { parseSettings } from '../../src/job/queue-settings.ts';
import { decodeRates, encodeRates, idleRate, parseRates, type Rate } from '../../src/job/rate.ts';

const PER_SECOND = { limit: 10, perMs: 1000, burst: 1 };
const PER_HOUR = { limit: 500, perMs: 3_600_000, burst: 50 };
const shareOf = (rate: readonly [Rate, Rate], partition = 0, partitions = 1) =>
  gateShare({ rate }, { partition, partitions })?.share ?? '';

describe('two rates', () => {
  test.each([
    [['10/s'], 'rate is a list of 1; allowed: '],
    [['10/s', '500/h', '5000/d'], 'allowed: a text such as 10/s'],
    [
      ['10/s', false],
      "or two of them in a list, such as ['10/s', { limit: 500, per: '1h', burst: 50 }], which both hold",
    ],
    [['10/s', 'often'], 'rate 2 of rate is "often"; allowed: a text such as 10/s'],
    [['10/s', ['1/m', '2/h']], 'rate 2 of rate is a list; allowed: one rate'],
  ])('are not %j', (given, words) => {
    expect(() => parseRates(given, 'rate')).toThrow(words);
  });

  test('are of a queue: a group has one', () => {
    expect(() => parseSettings({ perGroup: { rate: ['1/s', '9/m'] as never } })).toThrow(
      'rate of perGroup is a list; allowed: one rate',
    );
  });

  test('stand in one field, which an older process cannot read, and half of which nobody reads', () => {
    const text = encodeRates([PER_SECOND, PER_HOUR]);
    expect(text).toBe('10 1000 1 500 3600000 50');
    expect(decodeRates(text)).toEqual([PER_SECOND, PER_HOUR]);
    expect(decodeRates('10 1000 1 500 3600000')).toBeUndefined();
    expect(decodeRates('10 1000 1 500 3600000 0')).toBeUndefined();
    expect(decodeRates('0 10 1000 1 0 0')).toBeUndefined();
  });

  test('have the faster one in front, whichever was said first, and are marked', () => {
    const share = '100000 1 0 0 r7200000,50';
    expect([shareOf([PER_SECOND, PER_HOUR]), shareOf([PER_HOUR, PER_SECOND])]).toEqual([share, share]);
    const gates = gateShare({ rate: [PER_SECOND, PER_HOUR] }, { partition: 0, partitions: 1 });
    expect([gates?.isMarked, gates?.isStrict]).toEqual([true, undefined]);
    expect(gateShare({ rate: PER_SECOND }, { partition: 0, partitions: 1 })?.isMarked).toBeUndefined();
  });

  test('are divided among partitions; where a burst is too small for that, its partitions have places in time', () => {
    expect(shareOf([PER_SECOND, PER_HOUR], 1, 4)).toBe('400000 1 0 0 s1/4/1 r28800000,13');
    expect(
      shareOf(
        [
          { ...PER_SECOND, burst: 8 },
          { ...PER_HOUR, burst: 2 },
        ],
        1,
        4,
      ),
    ).toBe('400000 2 0 0 r28800000,1,1/4/2');
    // One place of each of both would seldom come together.
    expect(shareOf([PER_SECOND, { ...PER_HOUR, burst: 1 }], 1, 4)).toBe('400000 1 0 0 r28800000,1,1/4/1');
    expect(readShare('400000 2 0 0 r28800000,1,1/4/2')).toEqual({
      ...{ intervalUs: 400_000, burst: 2, concurrency: 0, perGroup: 0 },
      second: {
        intervalUs: 28_800_000,
        burst: 1,
        places: { phaseUs: 7_200_000, toleranceUs: 1.5 * 7_200_000 + 50_000 },
      },
    });
  });

  test('allow a start when both do', () => {
    const nowMs = 1_764_000_000_000;
    const texts = {
      gates: '100000 1 0 0 r1000000,3',
      gate: `${nowMs + 100}000.00 0 0 0 0 0`,
      gate2: `${nowMs + 4000}000.00`,
    };
    const state = gateState(texts, nowMs);
    expect(state).toMatchObject({
      nextTurnMs: nowMs + 1950,
      firstTurnMs: nowMs + 50,
      second: { nextTurnMs: nowMs + 1950 },
    });
    const later = gateState(texts, nowMs + 3000);
    expect(later && ratesIn(later).map((rate) => turnsFree(rate, nowMs + 3000))).toEqual([1, 2]);
    expect(gateState({ ...texts, gate2: null }, nowMs)?.nextTurnMs).toBe(nowMs + 50);
  });

  test.each([
    [[PER_SECOND, PER_HOUR], undefined],
    [[{ ...PER_HOUR, burst: 1 }, PER_SECOND], PER_SECOND],
    [[{ ...PER_SECOND, burst: 50 }, PER_HOUR], { ...PER_SECOND, burst: 50 }],
  ] as const)('of %j the faster one never counts where the slower one lets no more start at once', (rates, idle) => {
    expect(idleRate(rates)?.idle).toEqual(idle);
  });
});
