/** Which limit holds the jobs in line of a partition: the one that counts, and the same one while nothing changes. */
import { expect, test } from 'vitest';
import { type HeldBy, holdersOfLine, type Line, shutBy } from '../../src/job/gate.ts';
import { stats } from '../../src/redis/read/inspect.ts';
import { openLanes } from '../../src/redis/scripts/gates.ts';
import { Desk } from '../support/gates-desk.ts';
import { usePartition } from '../support/partition.ts';

const p = usePartition();

/** As `queues why` asks, at the moment of the desk. Tokens are made by the clock of the server, so the last start is given. */
async function held(desk: Desk, startedMs: number): Promise<readonly HeldBy[]> {
  const found = await stats(p.redis, p.ref);
  const line = { entries: found.ready + found.running, openLanes: await openLanes(p.redis, p.ref), startedMs };
  return holdersOfLine({ ...found, ...line, gate: found.gate, nowMs: desk.nowMs });
}

/** Asks 60 times, every 13 ms, while jobs run for so long; what counted first each time, once the first turn was used. */
async function asked(desk: Desk, runMs: number): Promise<readonly (string | undefined)[]> {
  const first = new Set<string | undefined>();
  let [running] = await desk.serve(1);
  let startedMs = desk.nowMs;
  for (let asks = 0; asks < 80; asks += 1) {
    desk.nowMs += 13;
    if (running === undefined || desk.nowMs >= startedMs + runMs) {
      [running] = await desk.serve(1, { over: running === undefined ? [] : [running] });
      startedMs = running === undefined ? startedMs : desk.nowMs;
    }
    if (asks >= 20) first.add((await held(desk, startedMs))[0]);
  }
  return [...first];
}

const many = (prefix: string) => Array.from({ length: 80 }, (_, nth) => `${prefix}${String(nth).padStart(3, '0')}`);

test('a group that is the bottleneck is named each time, although a rate is shut for a moment after each start', async () => {
  const desk = await new Desk(p.redis, p.ref).begin('100000 1 0 1');
  await desk.line(...many('{acme}j'));
  expect(await asked(desk, 150)).toEqual(['group-full']);
});

test('a rate that is the bottleneck is named each time, although the group is full while its job runs', async () => {
  const desk = await new Desk(p.redis, p.ref).begin('100000 1 0 1');
  await desk.line(...many('{acme}j'));
  expect(await asked(desk, 20)).toEqual(['rate']);
});

test('a concurrency that is the bottleneck is named each time', async () => {
  const desk = await new Desk(p.redis, p.ref).begin('100000 1 1 0');
  await desk.line(...many('j'));
  expect(await asked(desk, 150)).toEqual(['queue-full']);
});

const GATE = { intervalUs: 100_000, burst: 1, concurrency: 2, perGroup: 1, nextTurnMs: 0, closedMs: 0 };
const LINE: Line = { waiting: 3, gate: GATE, entries: 1, openLanes: 1, startedMs: 900, nowMs: 10_000 };
/** A start at 9,980 that had waited for its turn uses one from the arrival on, which was 50 ms ahead. */
const paced = { ...GATE, nextTurnMs: 9_980 + 100 };
/** One that had not waited uses one from then on. */
const unpaced = { ...GATE, nextTurnMs: 9_980 + 50 };

test.each<readonly [why: string, line: Partial<Line>, held: readonly HeldBy[]]>([
  ['nobody waits', { waiting: 0, entries: 2 }, []],
  ['the queue has no limits', { gate: undefined }, []],
  ['a slot of a worker', {}, []],
  ['all groups are full', { openLanes: 0 }, ['group-full']],
  ['the queue is full', { entries: 2 }, ['queue-full']],
  [
    'both are full: the end of one of the group makes room in both',
    { openLanes: 0, entries: 2 },
    ['group-full', 'queue-full'],
  ],
  [
    'the queue is closed, whatever else',
    { openLanes: 0, gate: { ...paced, closedMs: 20_000 }, startedMs: 9_980 },
    ['queue-closed', 'rate', 'group-full'],
  ],
  ['the rate is shut', { gate: paced, startedMs: 9_980 }, ['rate']],
  [
    'the rate allows a start since a moment, and it is taken at once',
    { gate: { ...paced, nextTurnMs: 9_500 }, startedMs: 9_400 },
    ['rate'],
  ],
  ['the rate has allowed a start for long', { gate: { ...paced, nextTurnMs: 8_900 }, startedMs: 8_800 }, []],
  [
    'the rate is shut, and the last start had waited for it',
    { openLanes: 0, gate: paced, startedMs: 9_980 },
    ['rate', 'group-full'],
  ],
  [
    'the rate is shut, and the last start had not',
    { openLanes: 0, gate: unpaced, startedMs: 9_980 },
    ['group-full', 'rate'],
  ],
  ['the same in a full queue', { entries: 2, gate: unpaced, startedMs: 9_980 }, ['queue-full', 'rate']],
  [
    'the same, and nobody knows the last start',
    { entries: 2, gate: paced, startedMs: undefined },
    ['queue-full', 'rate'],
  ],
])('%s', (_why, line, expected) => {
  expect(holdersOfLine({ ...LINE, ...line })).toEqual(expected);
});

test('one job is held first by what a person ends, then by places, then by turns, the later one first', () => {
  const group = { most: 1, nextTurnMs: 20_000, closedMs: 30_000 };
  const now = { entries: 2, held: 1, group, startedMs: 9_980, nowMs: 10_000 };
  const all = ['queue-closed', 'group-closed', 'group-full', 'queue-full', 'group-rate', 'rate'];
  expect(shutBy({ ...unpaced, closedMs: 20_000 }, now)).toEqual(all);
  expect(shutBy(unpaced, { ...now, group: { ...group, nextTurnMs: 10_010, closedMs: 0 } })).toEqual([
    ...['group-full', 'queue-full', 'rate', 'group-rate'],
  ]);
  expect(shutBy(paced, { ...now, group: { ...group, closedMs: 0 } })[0]).toBe('group-rate');
});
