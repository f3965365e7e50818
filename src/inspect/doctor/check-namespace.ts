/** The checks of `doctor` that look at one namespace: its layout, its closed tags, its streams, its sets, its ends of jobs. */
import type { DoneLimits } from '../../config/options.ts';
import { show } from '../../kernel/duration.ts';
import { counted, span } from '../../kernel/humanize.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { type PartitionStats, stats } from '../../redis/read/inspect.ts';
import { setsOf } from '../../redis/read/sets.ts';
import { exhaustedStreams, hollowStreams } from '../../redis/repair/streams.ts';
import { readSchema, remedyFor, SCHEMA } from '../../redis/schema.ts';
import { allQueues, listQueues, partitionsOf, type QueueLayout } from '../../redis/scripts/queues.ts';
import { askPartitions, type Finding, latestMs, leavingOut, refsOf, type Subject, sum } from './check.ts';

/* Whether the namespace and its partitions have the layout that this version reads. An unused namespace has no layout yet. */

const SCHEMA_PARTITIONS_MAX = 1024;

export async function schema({ redis, namespace }: Subject): Promise<Finding> {
  const found = await readSchema(redis, namespace);
  // Not even the registry can be read then, so this is all that can be said.
  if (found !== undefined && found !== SCHEMA) {
    return {
      status: 'fail',
      saw: `namespace ${namespace} has schema ${show(found)}; this version knows ${SCHEMA}, and no part of it works here`,
      advice: remedyFor(found),
    };
  }
  const { queues, unreadable: entries } = await allQueues(redis, namespace);
  const [unreadable, ...more] = entries;
  if (unreadable !== undefined) {
    const others = more.length > 0 ? ` and of ${counted(more.length, 'other queue')}` : '';
    return {
      status: 'fail',
      saw: `the registry's entry of queue ${show(unreadable.queue)}${others} cannot be read: ${show(unreadable.text)}`,
      advice: `nobody serves it; "duestream queues rm ${unreadable.queue} --force" removes it with its jobs`,
    };
  }
  const refs = queues.flatMap((layout) => partitionsOf(namespace, layout)).slice(0, SCHEMA_PARTITIONS_MAX);
  const look = async (ref: PartitionRef) => ({ ref, value: await redis.hget(ref.keys.meta, 'schema') });
  const { found: values, unread } = await askPartitions(redis, refs, look);
  return leavingOut(schemaFinding({ queues, values, isMarked: found !== undefined }), unread);
}

function schemaFinding({
  queues,
  values,
  isMarked,
}: {
  readonly queues: readonly QueueLayout[];
  readonly values: readonly { readonly ref: PartitionRef; readonly value: string | null }[];
  readonly isMarked: boolean;
}): Finding {
  const foreign = values.flatMap(({ ref, value }) => (value === null || value === SCHEMA ? [] : [{ ref, value }]));
  const [example] = foreign;
  if (example !== undefined) {
    const { ref, value } = example;
    return {
      status: 'fail',
      saw: `${counted(foreign.length, 'partition')} with another schema than ${SCHEMA}: ${ref.queue} partition ${ref.partition} has ${show(value)}`,
      advice: `no daemon of this version leads them: ${remedyFor(value)}`,
    };
  }
  const odd = queues.find(({ asked }) => asked !== undefined);
  if (odd !== undefined) {
    return {
      status: 'warn',
      saw: `queue ${show(odd.queue)} has ${counted(odd.partitions, 'partition')}, and a definition says ${odd.asked}`,
      advice: `a queue keeps the number of its first use: say partitions: ${odd.partitions} in the code, or take a new queue for new jobs`,
    };
  }
  const unmarked = isMarked ? '' : '; the namespace does not say, and the first use marks it so';
  return { status: 'ok', saw: `schema ${SCHEMA}, in ${counted(values.length, 'partition')}${unmarked}` };
}

/*
 * Whether Redis keeps the end of every job for the done window. If more jobs end than `done.max` has room for, the daemons
 * remove the oldest tombstones early, but none that is younger than the floor. The window and the limit come from the
 * configuration of `doctor`; the daemons report what they removed.
 */

/** Of fewer ends than this part of the limit nobody can say how fast they come. */
const SAMPLE = 1 / 10;
/** So near to the floor the number of tombstones grows with the rate. */
const NEAR = 1.5;

interface Shortage {
  readonly ref: PartitionRef;
  /** For how long ends are remembered there, as far as can be seen. */
  readonly rememberedMs: number;
  readonly perSecond: number;
}

/** A tag more than may be closed is refused, so jobs that should end with it would start. */
export async function closedTags({ redis, namespace, closedMax }: Subject): Promise<Finding> {
  // Each partition has them all.
  const firsts = (await listQueues(redis, namespace)).flatMap((one) => partitionsOf(namespace, one).slice(0, 1));
  const look = async ({ queue, keys }: PartitionRef) => ({ queue, count: await redis.zcard(keys.closed) });
  const { found, unread } = await askPartitions(redis, firsts, look);
  const all = sum(found.map(({ count }) => count));
  const most = found.reduce((one, other) => (other.count > one.count ? other : one), { queue: '', count: 0 });
  const isNear = most.count >= NEARLY_ALL * closedMax;
  return leavingOut(
    isNear ? nearlyAll(most, closedMax) : { status: 'ok', saw: `${counted(all, 'tag')} closed` },
    unread,
  );
}

function nearlyAll(most: { readonly queue: string; readonly count: number }, closedMax: number): Finding {
  return {
    status: 'warn',
    saw: `${counted(most.count, 'tag')} of ${most.queue} are closed, and mover.closedMax is ${closedMax}: one more than that is refused`,
    advice: `open some: duestream tags ls ${most.queue}, duestream tags open ${most.queue} <tag>; close them for a shorter time; or set mover.closedMax to ${2 * closedMax}, at 128 bytes of memory for each tag in each partition`,
  };
}

/** A Redis with a hollow stream may not start again; to an exhausted one nothing can be added. */
export async function streams({ redis, namespace }: Subject): Promise<Finding> {
  const refs = await refsOf(redis, namespace);
  const { found, unread } = await askPartitions(redis, refs, async ({ keys }) => ({
    hollow: await hollowStreams(redis, keys),
    exhausted: await exhaustedStreams(redis, keys),
  }));
  const hollow = found.flatMap((one) => one.hollow);
  const [first] = hollow;
  const exhausted = found.flatMap((one) => one.exhausted);
  if (exhausted[0] !== undefined) {
    const saw = `${counted(exhausted.length, 'stream')} with an entry of the last id of all, such as ${exhausted[0]}: nothing can be added, so no job of its partition runs`;
    return leavingOut({ status: 'fail', saw, advice: 'give it an id of now: duestream doctor --repair --yes' }, unread);
  }
  if (first === undefined) {
    return leavingOut(
      { status: 'ok', saw: `the streams of ${counted(found.length, 'partition')} can be loaded` },
      unread,
    );
  }
  const bad: Finding = {
    status: 'fail',
    saw: `${counted(hollow.length, 'stream')} with more nodes than entries, such as ${first}: newer versions of Redis refuse to load a dump of it, so they would not start again`,
    advice: 'take the empty nodes off: duestream doctor --repair --yes',
  };
  return leavingOut(bad, unread);
}

/** A set that nobody seals has no callback, however long its members are over. */
export async function unsealedSets({ redis, namespace }: Subject): Promise<Finding> {
  const nowMs = await latestMs(redis);
  const refs = (await listQueues(redis, namespace)).flatMap((layout) => partitionsOf(namespace, layout));
  const { found, unread } = await askPartitions(redis, refs, async (ref) => {
    const { sets } = await setsOf(redis, ref, { after: undefined, limit: SETS_SEEN });
    return sets.map((one) => ({ queue: ref.queue, ...one }));
  });
  const all = found.flat();
  const old = all.filter((one) => !one.isSealed && one.madeMs < nowMs - DAY_MS).sort((a, b) => a.madeMs - b.madeMs);
  const [oldest] = old;
  if (!oldest) {
    return leavingOut({ status: 'ok', saw: `${counted(all.length, 'set')} whose callbacks were not made yet` }, unread);
  }
  const { queue, name, madeMs } = oldest;
  const unsealed: Finding = {
    status: 'warn',
    saw: `${counted(old.length, 'set')} not sealed for more than a day, first ${name} of ${queue}, begun ${new Date(madeMs).toISOString()}: the callback is not made before`,
    advice: `seal it when all its members are there: duestream sets seal ${queue} ${name}; or remove it: duestream sets rm ${queue} ${name}`,
  };
  return leavingOut(unsealed, unread);
}

/** Of each partition so many sets are looked at, by their names. */
const SETS_SEEN = 1000;
const DAY_MS = 86_400_000;

/** Of the tags that may be closed. */
const NEARLY_ALL = 0.8;

export async function done({ redis, namespace, done: limits }: Subject): Promise<Finding> {
  const { windowMs, tombstonesMax } = limits;
  if (windowMs === 0) return { status: 'ok', saw: 'this configuration remembers no end of a job' };
  const { found, unread } = await askPartitions(
    redis,
    await refsOf(redis, namespace),
    async (ref): Promise<readonly Shortage[]> => {
      const now = await stats(redis, ref);
      if (now.done < tombstonesMax * SAMPLE && now.evicted === undefined) return [];
      const [, oldest] = await redis.zrange(ref.keys.done, '0', '0', 'WITHSCORES');
      const short = shortage(now, { oldestMs: Number(oldest ?? now.nowMs), ...limits });
      return short === undefined ? [] : [{ ref, ...short }];
    },
  );
  const [worst] = found.flat().sort((one, other) => one.rememberedMs - other.rememberedMs);
  const well: Finding = { status: 'ok', saw: `every end of a job is remembered for ${span(windowMs)}` };
  return leavingOut(worst === undefined ? well : forgotten(worst, limits), unread);
}

function forgotten(worst: Shortage, { windowMs, tombstonesMax, floorMs }: DoneLimits): Finding {
  const { queue, partition } = worst.ref;
  const wanted = Math.ceil((worst.perSecond * windowMs) / 1000);
  const saw =
    `ends in ${queue}:${partition} are remembered for ${span(worst.rememberedMs)}, not for ${span(windowMs)}: ` +
    `about ${Math.round(worst.perSecond)} jobs end there per second, and done.max is ${tombstonesMax}`;
  const advice =
    worst.rememberedMs > NEAR * floorMs
      ? `set done.max to ${wanted} or more, about ${mib(wanted)} of memory; or set done.window to the time that you need`
      : `no end is forgotten before ${span(floorMs)}, so memory now grows with the rate: add partitions, or set done.max to ${wanted}, about ${mib(wanted)} of memory`;
  return { status: 'warn', saw, advice };
}

/** How much less than the window is remembered, if it is less. */
function shortage(
  { nowMs, done: count, evicted }: Pick<PartitionStats, 'nowMs' | 'done' | 'evicted'>,
  of: DoneLimits & { readonly oldestMs: number },
): Omit<Shortage, 'ref'> | undefined {
  const spanMs = Math.max(1, nowMs - of.oldestMs);
  const perSecond = (1000 * count) / spanMs;
  // At this rate the limit is reached after so long; no end goes below the floor.
  const filledMs =
    count < of.tombstonesMax * SAMPLE ? of.windowMs : Math.max(of.floorMs, (1000 * of.tombstonesMax) / perSecond);
  const rememberedMs = Math.min(filledMs, evicted?.ageMs ?? of.windowMs);
  return rememberedMs < of.windowMs ? { rememberedMs, perSecond } : undefined;
}

/** `npm run bench -- ends` measures it, with ids of 22 characters. */
const BYTES_PER_END = 270;
const mib = (count: number): string => `${Math.max(1, Math.round((count * BYTES_PER_END) / 2 ** 20))} MiB`;
