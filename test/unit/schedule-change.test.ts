/** What becomes of the place of a schedule when a definition is put over another. */
import { describe, expect, test } from 'vitest';
import type { ScheduleInput } from '../../src/schedule/input.ts';
import { handAfter, handOf, successor } from '../../src/schedule/progress.ts';
import { type Definition, decodeDefinition, encodeDefinition, isSame } from '../../src/schedule/text.ts';

const FIRST = Date.UTC(2026, 0, 1, 0, 7);
const LATER = FIRST + 86_400_000 + 1234;
const hourly: ScheduleInput = { queue: 'q', every: '1h' };

/** Puts one after the other, as they are read again; the first at `FIRST`, the others at `LATER`. */
function puts(inputs: readonly ScheduleInput[], fired?: { readonly reachedMs: number; readonly runs: number }) {
  return inputs.reduce<Definition | undefined>((before, input, at) => {
    const put = { name: 'n', input, source: 'call', nowMs: at === 0 ? FIRST : LATER } as const;
    const read = before && decodeDefinition('n', encodeDefinition(before));
    return successor(read, put, fired);
  }, undefined)?.schedule;
}

const since = (...given: Parameters<typeof puts>) => puts(...given)?.sinceMs;

describe('what goes on where it was', () => {
  test('is a schedule whose rule is the same, whatever else changed', () => {
    expect(since([hourly, hourly])).toBe(FIRST);
    expect(since([hourly, { ...hourly, data: 1, overlap: 'skip', maxRuns: 7 }])).toBe(FIRST);
  });

  test('is one with runs left that gets more', () => {
    const inputs = [3, 5].map((maxRuns) => ({ ...hourly, maxRuns }));
    expect(since(inputs, { reachedMs: FIRST, runs: 2 })).toBe(FIRST);
  });

  test('is one that goes to another queue, from where it got to', () => {
    const reachedMs = FIRST + 5;
    expect(since([hourly, { ...hourly, queue: 'other' }], { reachedMs, runs: 1 })).toBe(reachedMs);
  });
});

describe('what counts from now', () => {
  test('is a rule that changed, and a schedule that is resumed', () => {
    expect(since([hourly, { ...hourly, every: '2h' }])).toBe(LATER);
    expect(since([{ ...hourly, paused: true }, hourly])).toBe(LATER);
  });

  test('is one whose definition no longer says that it is paused', () => {
    expect(puts([{ ...hourly, paused: 'why' }, hourly])?.paused).toBeUndefined();
  });

  test('is one that had all its runs and gets more, or loses the limit', () => {
    const ended = { reachedMs: FIRST, runs: 3 };
    expect(
      since(
        [
          { ...hourly, maxRuns: 3 },
          { ...hourly, maxRuns: 5 },
        ],
        ended,
      ),
    ).toBe(LATER);
    expect(since([{ ...hourly, maxRuns: 3 }, hourly], ended)).toBe(LATER);
  });
});

describe('an interval that counts from its first put', () => {
  const aligned: ScheduleInput = { ...hourly, align: 'start' };
  const anchor = (...inputs: readonly ScheduleInput[]) => {
    const rule = puts(inputs)?.rule;
    return rule && 'anchorMs' in rule ? rule.anchorMs : undefined;
  };

  test('does so however often it is put, paused, resumed or moved', () => {
    expect(anchor(aligned)).toBe(FIRST);
    expect(anchor(aligned, aligned)).toBe(FIRST);
    expect(anchor(aligned, { ...aligned, paused: 'lunch' }, aligned)).toBe(FIRST);
    expect(anchor(aligned, { ...aligned, queue: 'other' }, { ...aligned, data: 1 })).toBe(FIRST);
  });

  test('counts from a put that gives it another length or makes it one, and from a start that is given', () => {
    expect(anchor(aligned, { ...aligned, every: '2h' })).toBe(LATER);
    expect(anchor(hourly, aligned)).toBe(LATER);
    expect(anchor(aligned, { ...aligned, start: '2026-03-01T00:00:00Z' })).toBe(Date.UTC(2026, 2));
  });

  test('goes on in its own time when it moves on from where it got to', () => {
    const fired = { reachedMs: FIRST + 123, runs: 1 };
    const moved = puts([aligned, { ...aligned, queue: 'other' }], fired);
    expect(moved).toMatchObject({ sinceMs: FIRST + 123, rule: { anchorMs: FIRST } });
  });

  test('that was stored without its anchor counts from since when it holds', () => {
    const content = JSON.stringify({ since: FIRST, source: 'call', schedule: aligned });
    expect(decodeDefinition('n', content).schedule.rule).toMatchObject({ anchorMs: FIRST });
  });
});

describe('a pause by hand', () => {
  const who = { by: 'ada', atMs: FIRST };
  const byHand = (why: string): Definition =>
    decodeDefinition('n', encodeDefinition(successor(undefined, { ...at(FIRST), hand: { why, who } }, undefined)));
  const at = (nowMs: number, input = hourly) => ({ name: 'n', input, source: 'call', nowMs }) as const;
  const put = (before: Definition, input: ScheduleInput) =>
    successor(before, { ...at(LATER, input), hand: handAfter(before, input) }, undefined);

  test('holds whatever is put, and is no part of what was written', () => {
    for (const why of ['', 'incident 7']) {
      const before = byHand(why);
      const hand = { why, who };
      expect(before).toMatchObject({ hand, input: hourly, schedule: { paused: why } });
      expect(isSame(before, put(before, hourly))).toBe(true);
      for (const input of [
        { ...hourly, data: 1 },
        { ...hourly, every: '2h' },
        { ...hourly, queue: 'other' },
      ])
        expect(put(before, input)).toMatchObject({ hand, schedule: { paused: why } });
    }
  });

  test('ends where a definition says itself what is to be', () => {
    expect(put(byHand('incident 7'), { ...hourly, paused: false })).toMatchObject({ hand: undefined });
    const own = put(byHand('incident 7'), { ...hourly, paused: 'until May' });
    expect(own).toMatchObject({ hand: undefined, schedule: { paused: 'until May' } });
    expect(put(decodeDefinition('n', encodeDefinition(own)), hourly).schedule.paused).toBeUndefined();
  });

  test('is any pause that does not say that its definition did it, as 0.2.0 wrote it', () => {
    const stored = JSON.stringify({ since: 1, source: 'call', schedule: { ...hourly, paused: true } });
    const before = decodeDefinition('n', stored);
    expect(before.hand).toEqual({ why: '', who: undefined });
    expect(put(before, hourly)).toMatchObject({ hand: { why: '' }, schedule: { paused: '' } });
  });

  test.each([[7], [{ by: 7, at: 1 }], [{ by: 'ada' }], [{ by: 'ada', at: 'now' }]])(
    'of which %j says who did it was done by nobody knows whom',
    (hand) => {
      const stored = JSON.stringify({ since: 1, source: 'call', hand, schedule: { ...hourly, paused: 'why' } });
      expect(decodeDefinition('n', stored).hand).toEqual({ why: 'why', who: undefined });
    },
  );

  test('keeps the reason and the name of the first where a second one says nothing', () => {
    const before = byHand('incident 7');
    const after = { ...before, hand: handOf(before, { why: '', by: 'bob' }, LATER) };
    expect(after.hand).toEqual({ why: 'incident 7', who: { by: 'bob', atMs: LATER } });
    expect(isSame(before, after)).toBe(true);
  });
});
