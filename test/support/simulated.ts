/** Random queues with limits, for the engine of simulations and for what it is compared with. */

import { GroupTable, JobColumns, type PriorityNumber } from '../../src/inspect/simulate/columns.ts';
import { Engine, type World } from '../../src/inspect/simulate/engine.ts';
import { randomFrom } from '../../src/inspect/simulate/usual.ts';
import { type GateShare, gateShare, groupShare, readShare } from '../../src/job/gate.ts';
import type { GateSettings, GroupSettings } from '../../src/job/queue-settings.ts';
import { atOnce } from '../../src/kernel/steps.ts';

/** One job of such a queue. */
export interface PlayedJob {
  /** With its group. */
  readonly id: string;
  readonly group: string;
  readonly priority: PriorityNumber;
  /** After the beginning. */
  readonly dueMs: number;
  readonly runMs: number;
}

export interface PlayedQueue {
  readonly settings: GateSettings;
  readonly slots: number;
  readonly partitions: number;
  /** By due time. */
  readonly jobs: readonly PlayedJob[];
}

/** @param most the slots; default: few at times */
export function randomQueue(
  seed: number,
  {
    count = 300,
    partitions = 1,
    slots,
  }: { readonly count?: number; readonly partitions?: number; readonly slots?: number } = {},
): PlayedQueue {
  const random = randomFrom(seed);
  const below = (most: number) => Math.floor(random() * most);
  const or = <T>(value: T): T | undefined => (random() < 0.5 ? value : undefined);
  const rate = (limit: number) => ({ limit: 1 + below(limit), perMs: 1000, burst: 1 + below(3) });
  const own: GroupSettings = {
    ...(random() < 0.5 && { concurrency: 1 + below(4) }),
    ...(random() < 0.5 && { rate: rate(20) }),
    ...(random() < 0.5 && { weight: 1 + below(4) }),
  };
  const first = or(rate(60));
  // Every fourth with a rate has a second one.
  const second = { limit: 5 + (seed % 7), perMs: 1000, burst: 4 + (seed % 5) };
  const settings: GateSettings = {
    fair: true,
    rate: first && seed % 4 === 3 ? [first, second] : first,
    concurrency: or(partitions + below(10)),
    perGroup: or(1 + below(3)),
    groupRate: random() < 0.3 ? rate(20) : undefined,
    groups: random() < 0.3 ? { g1: own, 'g*': { weight: 2 } } : undefined,
  };
  const names = Array.from({ length: 2 + below(8) }, (_, nth) => (nth === 0 ? '' : `g${nth}`));
  const spanMs = 5000 + below(30_000);
  const jobs = Array.from({ length: count }, (_, nth): PlayedJob => {
    const group = names[below(names.length)] ?? '';
    const priority = ([0, 1, 1, 1, 2] as const)[below(5)] ?? 1;
    const id = `${group === '' ? '' : `{${group}}`}n${String(nth).padStart(4, '0')}`;
    return { id, group, priority, dueMs: below(spanMs), runMs: 20 + below(400) };
  });
  const byPlace = (one: PlayedJob, other: PlayedJob) => one.dueMs - other.dueMs || (one.id < other.id ? -1 : 1);
  return { settings, slots: slots ?? 1 + below(12), partitions, jobs: jobs.sort(byPlace) };
}

/** @returns the start of each job, after the beginning */
export function playedByEngine({ settings, slots, partitions, jobs }: PlayedQueue, beginMs: number): readonly number[] {
  const engine = engineOf({ settings, slots, partitions, jobs }, beginMs);
  atOnce(engine.upTo(Number.MAX_SAFE_INTEGER));
  return jobs.map((_, at) => (engine.startedMs[at] ?? 0) - beginMs);
}

export function engineOf({ settings, slots, partitions, jobs }: PlayedQueue, beginMs: number): Engine {
  const groups = new GroupTable(partitions);
  const columns = new JobColumns();
  for (const { group, priority, dueMs } of jobs) {
    columns.add(beginMs + dueMs, groups.numberOf(partitionOfGroup(group, partitions), group), priority);
  }
  const world: World = {
    nowMs: beginMs,
    jobs: columns,
    groups,
    partitions: sharesOf(settings, partitions).map(({ second, ...share }) => ({
      ...{ ...share, nextTurnMs: 0, closedMs: 0 },
      ...(second && { second: { ...second, nextTurnMs: 0 } }),
    })),
    limitsOf: (group) => ({ ...groupShare(settings, group), nextTurnMs: 0, closedMs: 0 }),
    slots,
    running: [],
    runMs: (job) => jobs[job]?.runMs ?? 0,
  };
  return new Engine(world);
}

export const partitionOfGroup = (group: string, partitions: number): number =>
  group === '' ? 0 : Number(group.slice(1)) % partitions;

export const sharesOf = (settings: GateSettings, partitions: number): readonly GateShare[] =>
  Array.from({ length: partitions }, (_, partition) =>
    readShare(gateShare(settings, { partition, partitions })?.share ?? ''),
  );
