/** What rows ask for besides the absence of anomalies: each predicate is shown what it must not let pass. */
import { describe, expect, test } from 'vitest';
import { atLeast, flow, foundAgain, needsQuiet, notLater, resumed, settled } from '../chaos/judge/predicates.mjs';

type Outcome = Parameters<typeof resumed>[0];
type Event = Outcome['effects'][number];

/** The wall clock at the end of the fault. */
const END = 1_000_000;
/** Two jobs of one partition, and one of another: by the checksum of their ids. */
const [ONE, BESIDE, ELSEWHERE] = ['job-0', 'job-8', 'job-1'];

describe('work goes on', () => {
  test('where a job that was begun after the fault has its effect in time', () => {
    expect(resumed(outcome([taken(ONE)], [...ran(ONE, END + 800)]), 1000)).toEqual([]);
  });

  test('not because a handler that was under way comes to its end', () => {
    const both = outcome([taken(ONE), taken(BESIDE)], [...ran(ONE, END - 50), ...ran(BESIDE, END + 3000)]);
    expect(resumed(both, 1000)).toEqual([`ms until work went on in partition ${partitionOf(ONE)}: 3100, allowed 1000`]);
  });

  test('not because another partition does', () => {
    const both = outcome([taken(ONE), taken(ELSEWHERE)], ran(ELSEWHERE, END + 100));
    expect(resumed(both, 1000)).toEqual([`work never went on in partition ${partitionOf(ONE)}`]);
  });

  test('not where a start has no effect', () => {
    const started = outcome([taken(ONE)], ran(ONE, END + 100).slice(0, 1));
    expect(resumed(started, 1000)).toEqual([`work never went on in partition ${partitionOf(ONE)}`]);
  });

  test('from when there is a job that is due', () => {
    const later = outcome([taken(ONE, { due: END + 6000 })], ran(ONE, END + 6100));
    expect(resumed(later, 1000)).toEqual([]);
  });

  test('whatever became of a job that Redis forgot', () => {
    const both = outcome([taken(ONE), taken(BESIDE), taken(ELSEWHERE)], ran(BESIDE, END + 500), [ONE, ELSEWHERE]);
    expect(resumed(both, 1000)).toEqual([]);
  });

  test('only if there was something left to do', () => {
    expect(resumed(outcome([taken(ONE)], ran(ONE, END - 500)), 1000)).toEqual([
      'partitions that had work left: 0, expected 1 or more',
    ]);
  });
});

describe('after a loss', () => {
  test('a job counts that was asked for afterwards, and no other', () => {
    const before = [call('enq.call', ONE, END - 10), taken(ONE, { ms: END + 10 })];
    const after = [call('enq.call', BESIDE, END + 10), taken(BESIDE, { ms: END + 20 })];
    expect(flow(outcome([...before, ...after], ran(BESIDE, END + 500)))).toEqual([]);
    expect(flow(outcome([...before, ...after], ran(ONE, END + 500)))).toEqual([
      `work never went on in partition ${partitionOf(ONE)}`,
    ]);
  });
});

describe('what a fault struck', () => {
  test('is found again in time, all of it', () => {
    const calls = [taken(ONE), taken(BESIDE)];
    const effects = [...ran(ONE, END + 100), ...ran(BESIDE, END + 9000)];
    expect(foundAgain(outcome(calls, effects), 10_000)).toEqual([]);
    expect(foundAgain(outcome(calls, effects), 5000)).toEqual(['ms until all were found again: 9100, allowed 5000']);
    expect(foundAgain(outcome(calls, ran(ONE, END + 100)), 5000)).toEqual([
      'ms until all were found again: Infinity, allowed 5000',
    ]);
  });

  test('is something', () => {
    expect(foundAgain(outcome([taken(ONE)], ran(ONE, END - 500)), 5000)).toEqual([
      'jobs that the fault struck: 0, expected 1 or more',
    ]);
  });
});

test('how long something took is left to a quiet machine, what never came is not', () => {
  const slow = settled({ calls: [call('enq.call', ONE, 0), { ...taken(ONE), us: 99_000_000 }] });
  const flaps = ['2 FLAP, allowed 0; the first: partition 1: led in calm by a, b, a'];
  const fewer = atLeast('lost replies to extend', 9, 10);
  expect([...slow, ...notLater(5000, 1000), ...flaps, ...fewer].filter((line) => !needsQuiet(line))).toEqual([]);
  const hang = settled({ calls: [call('enq.call', ONE, 0)] });
  const never = foundAgain(outcome([taken(ONE)], []), 5000);
  const none = atLeast('lost replies to extend', 0, 10);
  expect([...hang, ...never, ...none].filter((line) => !needsQuiet(line))).toEqual([
    'calls that never settled: 1, expected 0',
    'ms until all were found again: Infinity, allowed 5000',
    'lost replies to extend: 0, expected 10 or more',
  ]);
});

/** The fault ended at `END`; all were asked for before, unless their calls say otherwise. */
function outcome(calls: readonly Event[], effects: readonly Event[], forgotten: readonly string[] = []): Outcome {
  return { calls, effects, toMs: END, report: { excused: new Set(forgotten) } as unknown as Outcome['report'] };
}

function taken(id: string, more: Partial<Event> = {}): Event {
  return { ...call('enq.ok', id, END - 2000), due: END - 1000, ...more };
}

function call(ev: string, id: string, ms: number): Event {
  return { ev, id, ms, us: ms, actor: 'producer', pid: 1 };
}

/** It began then, and had its effect 100 ms later. */
function ran(id: string, startMs: number): readonly Event[] {
  return [call('start', id, startMs), call('effect', id, startMs + 100)].map((event) => ({ ...event, token: id }));
}

function partitionOf(id: string): number {
  return { [ONE]: 4, [BESIDE]: 4 }[id] ?? 5;
}
