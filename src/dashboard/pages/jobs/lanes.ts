/** What the counts of queues tell of a time: the starts of each queue that ran anything then, and a sentence over all. Pure. */
import type { Schemas } from '../../api-types.ts';
import { numberText } from '../../parts/words.ts';
import { words } from '../../words/words.ts';

/** The starts of a queue by step. */
export interface Lane {
  readonly queue: string;
  readonly starts: readonly number[];
  readonly dead: readonly number[];
}

export interface Lanes {
  /** Of the queues that ran anything, those with dead jobs first. */
  readonly lanes: readonly Lane[];
  /** So many queues have counts of the time; of the others nobody knows what ran. */
  readonly counted: number;
  /** So many queues there are. */
  readonly all: number;
}

interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

export const sum = (values: readonly number[]): number => values.reduce((all, one) => all + one, 0);

/** @param all how many queues there are: not all of them are asked */
export function lanesIn(asked: readonly Schemas['QueueMinutes'][], span: Span, all: number): Lanes {
  const counted = asked.filter((one) => isCounted(one, span));
  const lanes = counted.map((one) => laneOf(one, span));
  return { lanes: lanes.filter(hasRun).toSorted(byTrouble), counted: counted.length, all };
}

const isIn =
  ({ startMs, stepMs }: Schemas['QueueMinutes'], { fromMs, toMs }: Span) =>
  (_: unknown, at: number): boolean =>
    startMs + at * stepMs >= fromMs - stepMs && startMs + at * stepMs < toMs;

const isCounted = (one: Schemas['QueueMinutes'], span: Span): boolean =>
  one.known.filter(isIn(one, span)).some((isKnown) => isKnown);

function laneOf(one: Schemas['QueueMinutes'], span: Span): Lane {
  const { queue, startMs, stepMs, start, counts } = one;
  const lead = Math.max(0, Math.round((startMs - span.fromMs) / stepMs));
  const padded = (values: readonly number[]) => [
    ...Array.from({ length: lead }, () => 0),
    ...values.filter(isIn(one, span)),
  ];
  return { queue, starts: padded(start.count), dead: padded(counts.dead) };
}

const hasRun = ({ starts, dead }: Lane): boolean => sum(starts) + sum(dead) > 0;
const byTrouble = (one: Lane, other: Lane): number =>
  sum(other.dead) - sum(one.dead) || sum(other.starts) - sum(one.starts);

/** What ran around a time; it says nothing of queues whose counts nobody has. */
export function sentenceOf({ lanes, counted, all }: Lanes, time: string): string {
  if (counted === 0) return words.moment.unknown(time);
  const where = counted < all ? words.moment.ofCounted(counted, all) : '';
  if (lanes.length === 0) return words.moment.nothing(time, where);
  const bad = lanes.filter(({ dead }) => sum(dead) > 0);
  const died = sum(bad.map(({ dead }) => sum(dead)));
  if (died === 0) return words.moment.well(time, where);
  const first = bad.slice(0, 2).map(({ queue }) => queue);
  return words.moment.died(time, numberText(died), first.join(', '), bad.length);
}
