/**
 * What is known of the jobs of a queue: those that run, wait in line or are due later, read from Redis in slices, and those that
 * its schedules will make. Only a due time, a group and a priority are kept of each. Nothing is written, and no record is read:
 * a group stands in the id, and a priority in the index of tags.
 *
 * Partitions are read from the end of the way of a job to its beginning, so no job is met twice; one that moves on meanwhile may
 * be missed.
 */
import { isMoved } from '../../client/calls/partition-calls.ts';
import type { ForecastParts } from '../../client/schedules/forecast.ts';
import { groupOf } from '../../job/labels.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { inTurns, oneStep } from '../../kernel/steps.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { groupsOf } from '../../redis/read/groups.ts';
import { type PartitionStats, stats } from '../../redis/read/inspect.ts';
import { heldUntil } from '../../redis/read/order.ts';
import { type Place, placesOf, type Source } from '../../redis/read/places.ts';
import { partitionNumber } from '../../redis/scripts/schedules.ts';
import { dueOfFire, recurrenceOf, type Schedule } from '../../schedule/schedule.ts';
import { decodeDefinition } from '../../schedule/text.ts';
import { nextFire } from '../../time/recurrence.ts';
import { GroupTable, JobColumns, type PriorityNumber } from './columns.ts';

/** More jobs are not read, so that memory has a bound: about 100 bytes for each, and as much for each group. */
export const JOBS_MAX = 1_000_000;
const SLICE = 1000;
/** Of a partition, so many groups are asked for their rates and closings. */
const GROUPS_ASKED_MAX = 20_000;
const GROUPS_SLICE = 50;

/** Jobs that are known by now. */
export interface Known {
  readonly nowMs: number;
  readonly jobs: JobColumns;
  readonly groups: GroupTable;
  readonly partitions: readonly PartitionStats[];
  /** Jobs that run: their groups. */
  readonly running: readonly { readonly group: number }[];
  /** Of groups that are closed or held by a job that waits, or have used their rate. */
  readonly groupStates: ReadonlyMap<string, { readonly nextTurnMs: number; readonly closedMs: number }>;
  readonly due: number;
  readonly scheduled: number;
  /** Jobs that schedules will make. */
  readonly coming: number;
  /** Whether there were more than are read. */
  readonly isCut: boolean;
}

interface Reading {
  readonly redis: Redis;
  readonly refs: readonly PartitionRef[];
  readonly untilMs: number;
  readonly isGated: boolean;
  readonly signal: AbortSignal | undefined;
  readonly most: number;
  readonly jobs: JobColumns;
  readonly groups: GroupTable;
  readonly running: { readonly group: number }[];
  readonly groupStates: Map<string, { readonly nextTurnMs: number; readonly closedMs: number }>;
  due: number;
}

/** @param asked `isGated`: groups and priorities count now, or would @throws DuestreamError `moved` */
export async function readKnown(
  {
    redis,
    refs,
    schedules,
  }: { redis: Redis; refs: readonly PartitionRef[]; schedules: Pick<ForecastParts, 'definitions' | 'store'> },
  asked: {
    readonly untilMs: (nowMs: number) => number;
    readonly isGated: boolean;
    readonly signal?: AbortSignal | undefined;
    readonly most?: number;
  },
): Promise<Known> {
  const partitions = await Promise.all(refs.map((ref) => stats(redis, ref)));
  const nowMs = Math.max(...partitions.map((one) => one.nowMs));
  const reading: Reading = {
    redis,
    refs,
    untilMs: asked.untilMs(nowMs),
    isGated: asked.isGated,
    signal: asked.signal,
    most: asked.most ?? JOBS_MAX,
    jobs: new JobColumns(),
    groups: new GroupTable(refs.length),
    running: [],
    groupStates: new Map(),
    due: 0,
  };
  let isWhole = true;
  for (const ref of refs) isWhole = (await readPartition(reading, ref, nowMs)) && isWhole;
  const scheduled = reading.jobs.count - reading.due;
  isWhole = (await readSchedules(reading, schedules, nowMs)) && isWhole;
  const coming = reading.jobs.count - reading.due - scheduled;
  const { jobs, groups, running, groupStates, due } = reading;
  return { nowMs, jobs, groups, partitions, running, groupStates, due, scheduled, coming, isCut: !isWhole };
}

/** @returns whether all of it was read */
async function readPartition(reading: Reading, ref: PartitionRef, nowMs: number): Promise<boolean> {
  const { partition } = ref;
  const groupIn = ({ member }: Place) => reading.groups.numberOf(partition, groupOf(member) ?? '');
  const held = new Set<string>();
  await eachPlace(reading, ref, { kind: 'running' }, (place) => {
    held.add(place.at);
    reading.running.push({ group: groupIn(place) });
    return true;
  });
  const priorities = await prioritiesIn(reading, ref);
  const add = (place: Place, dueMs: number): boolean => {
    if (reading.jobs.count >= reading.most) return false;
    reading.jobs.add(dueMs, groupIn(place), priorities(place.member));
    return true;
  };
  const late = (place: Place) => {
    const isAdded = add(place, lateSince(place.dueMs, nowMs));
    if (isAdded) reading.due += 1;
    return isAdded;
  };
  const everything = { fromMs: undefined, toMs: undefined };
  const upTo = { fromMs: undefined, toMs: reading.untilMs };
  const isWhole =
    (await eachPlace(reading, ref, { kind: 'ready' }, (place) => held.has(place.at) || late(place))) &&
    (await eachPlace(reading, ref, { kind: 'waiting', due: everything }, late)) &&
    (await eachPlace(reading, ref, { kind: 'scheduled', due: upTo }, (place) =>
      (place.dueMs ?? 0) <= nowMs ? late(place) : add(place, place.dueMs ?? nowMs),
    ));
  if (reading.isGated) await readGroups(reading, ref);
  return isWhole;
}

/** A due time of 0, or in seconds, says that the job was due when it was put, and nobody knows when that was. */
const lateSince = (dueMs: number | undefined, nowMs: number): number =>
  dueMs === undefined || !(dueMs > EARLIEST_MS) ? nowMs : Math.min(dueMs, nowMs);
const EARLIEST_MS = Date.UTC(2001, 8, 9);

/** Calls back for each place, until that says no. @returns whether it never did */
async function eachPlace(
  { redis, signal }: Pick<Reading, 'redis' | 'signal'>,
  ref: PartitionRef,
  source: Source,
  take: (place: Place) => boolean,
): Promise<boolean> {
  let after: string | undefined;
  do {
    signal?.throwIfAborted();
    const slice = await placesOf(redis, ref, { source, after, last: undefined, limit: SLICE });
    if (isMoved(slice)) {
      throw new DuestreamError('moved', `queue ${ref.queue} was resized while it was read; ask again`);
    }
    for (const place of slice.places) if (!take(place)) return false;
    after = slice.next;
  } while (after !== undefined);
  return true;
}

/** The index of tags has each job that has a priority. */
async function prioritiesIn(reading: Reading, ref: PartitionRef): Promise<(member: string) => PriorityNumber> {
  const [high, low] = [new Set<string>(), new Set<string>()];
  for (const [tag, members] of reading.isGated
    ? ([
        ['=high', high],
        ['=low', low],
      ] as const)
    : []) {
    await eachPlace(reading, ref, { kind: 'tag', tag }, ({ member }) => members.add(member).size < reading.most);
  }
  return (member) => (high.has(member) ? 0 : low.has(member) ? 2 : 1);
}

/** How much the groups in line have used of their rates, and which are closed. */
async function readGroups({ redis, groupStates, signal }: Reading, ref: PartitionRef): Promise<void> {
  let after = '';
  for (let asked = 0; asked < GROUPS_ASKED_MAX; asked += GROUPS_SLICE) {
    signal?.throwIfAborted();
    const found = await groupsOf(redis, ref, { after, limit: GROUPS_SLICE });
    if (isMoved(found)) return;
    const names = found.groups.map(({ group }) => group);
    const held = await heldUntil(redis, ref, names);
    for (const { group, state } of found.groups) {
      const { nextTurnMs = 0 } = state ?? {};
      // Nobody starts either while the job that has the group waits itself.
      const closedMs = Math.max(state?.closedMs ?? 0, held.get(group) ?? 0);
      if (nextTurnMs + closedMs > 0) groupStates.set(group, { nextTurnMs, closedMs });
    }
    if (found.groups.length < GROUPS_SLICE) return;
    after = found.groups.at(-1)?.group ?? '';
  }
}

/** @returns whether all of them were counted */
async function readSchedules(
  reading: Reading,
  { definitions, store }: Pick<ForecastParts, 'definitions' | 'store'>,
  nowMs: number,
): Promise<boolean> {
  const [{ queue }] = reading.refs as readonly [PartitionRef];
  for await (const page of definitions()) {
    for (const [name, content] of page) {
      if (!content.includes(queue)) continue;
      const schedule = await scheduleIn(name, content);
      if (schedule?.queue !== queue || schedule.paused !== undefined) continue;
      const left = await runsLeft(store, name, content, schedule);
      if (!(await addInstants(reading, schedule, { nowMs, left }))) return false;
    }
  }
  return true;
}

/** Undefined for one that nobody can read. */
async function scheduleIn(name: string, content: string): Promise<Schedule | undefined> {
  try {
    return (await inTurns(oneStep(() => decodeDefinition(name, content)))).schedule;
  } catch (error) {
    if (error instanceof DuestreamError && error.code === 'bad-input') return undefined;
    throw error;
  }
}

async function runsLeft(
  store: ForecastParts['store'],
  name: string,
  content: string,
  { maxRuns }: Schedule,
): Promise<number> {
  if (maxRuns === undefined) return Number.POSITIVE_INFINITY;
  const [found] = await store.findAll([decodeDefinition(name, content)]);
  return Math.max(0, maxRuns - (found?.fired?.runs ?? 0));
}

async function addInstants(
  { jobs, groups, refs, untilMs, most, signal }: Reading,
  schedule: Schedule,
  { nowMs, left }: { readonly nowMs: number; readonly left: number },
): Promise<boolean> {
  const recurrence = recurrenceOf(schedule);
  const group = groups.numberOf(partitionNumber({ partitions: refs.length }, schedule.name), '');
  const priority = ({ high: 0, normal: 1, low: 2 } as const)[schedule.header.priority ?? 'normal'];
  let atMs = nowMs;
  for (let fires = 0; fires < left; fires += 1) {
    signal?.throwIfAborted();
    const nextMs = await inTurns(nextFire(recurrence, atMs, untilMs));
    if (nextMs === undefined || nextMs > untilMs) return true;
    if (jobs.count >= most) return false;
    jobs.add(dueOfFire(schedule, nextMs), group, priority);
    atMs = nextMs;
  }
  return true;
}
