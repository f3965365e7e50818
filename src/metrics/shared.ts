/**
 * What belongs to a registry rather than to one part of a process: an application may give one registry to a daemon and to
 * several workers. Each family is there once; the counts of the parts add up, and one scrape reads for all parts.
 *
 * What must always hold: a part that has ended adds nothing any more, and the reading of one scrape is one moment's.
 */
import type { Gauge, Registry } from 'prom-client';
import type { ServerReading } from '../redis/connection/server-reading.ts';
import { createFamilies, type Families } from './families.ts';
import { fillQueues, type PartitionReading, QUEUE_WIDE } from './readings.ts';

export interface Reading {
  readonly partitions: readonly PartitionReading[];
  /** Workers with a valid heartbeat, where the part asks for them. */
  readonly alive: number | undefined;
  readonly servers: ServerReading | undefined;
}

/** One part of a process, for as long as it lives. */
export interface Source {
  /** What Redis says, or undefined in an outage. */
  readonly read: () => Promise<Reading | undefined>;
  /** Which of these queues are declared; its answer is undefined in an outage. Left out: the part asks nobody. */
  readonly declared: ((queues: readonly string[]) => Promise<ReadonlySet<string> | undefined>) | undefined;
  /** Whether the part is ready; undefined when nobody asks it. */
  readonly ready: (() => boolean) | undefined;
  readonly isQueueWide: boolean;
  /** Families that this part does not fill: they would show a 0 that nobody measured. */
  readonly without: readonly (keyof Families)[];
}

export interface Shared {
  readonly families: Families;
  /** Per listener: who has lost Redis at the moment. */
  readonly away: Set<ReadonlySet<string>>;
  /** Queues that have series of what this process counts. */
  readonly queues: Set<string>;
  /** Per listener: what it keeps of a queue goes. */
  readonly forgetters: Set<(queue: string) => void>;
  readonly join: (source: Source) => () => void;
}

/** What daemons alone ask Redis for. */
const OF_REDIS = ['workersAlive', 'redisMemoryRatio', 'redisClockOffset'] as const;

const known = new WeakMap<Registry, Shared>();

/** The families of a registry, made when the first part comes. */
export function sharedOf(registry: Registry): Shared {
  const found = known.get(registry) ?? create(registry);
  known.set(registry, found);
  return found;
}

function create(registry: Registry): Shared {
  const sources = new Set<Source>();
  const away = new Set<ReadonlySet<string>>();
  const queues = new Set<string>();
  const forgetters = new Set<(queue: string) => void>();
  let filling: Promise<void> | undefined;

  /** The families of one scrape share one reading, so that many of them cost Redis as much as one. */
  function collect(): Promise<void> {
    filling ??= fill().finally(() => {
      filling = undefined;
    });
    return filling;
  }

  const families = createFamilies(collect);

  async function fill(): Promise<void> {
    const asked = [...sources];
    const [readings, gone] = await Promise.all([
      Promise.all(asked.map(({ read }) => read())),
      goneOf([...queues], asked),
    ]);
    // From here on nothing waits, so the values are of one moment.
    for (const queue of gone) {
      queues.delete(queue);
      removeQueue(families, queue);
      for (const forget of forgetters) forget(queue);
    }
    fillQueues(
      families,
      readings.flatMap((reading) => reading?.partitions ?? []),
    );
    setOrRemove(families.workersAlive, most(readings.flatMap((reading) => reading?.alive ?? [])));
    const servers = readings.flatMap((reading) => reading?.servers ?? []);
    setOrRemove(families.redisMemoryRatio, most(servers.flatMap(({ memoryRatio }) => memoryRatio ?? [])));
    const offsetMs = most(servers.map(({ clockOffsetMs }) => clockOffsetMs));
    setOrRemove(families.redisClockOffset, offsetMs === undefined ? undefined : offsetMs / 1000);
    const isUp = readings.every((reading) => reading !== undefined) && [...away].every(({ size }) => size === 0);
    setOrRemove(families.redisUp, asked.length === 0 ? undefined : Number(isUp));
    const ready = asked.flatMap((source) => (source.ready ? [source.ready()] : []));
    setOrRemove(families.ready, ready.length === 0 ? undefined : Number(ready.every(Boolean)));
  }

  return {
    families,
    away,
    queues,
    forgetters,
    join(source) {
      const queueWide: readonly string[] = source.isQueueWide ? [] : [...QUEUE_WIDE, ...OF_REDIS];
      const left = new Set<string>([...queueWide, ...source.without]);
      for (const [name, family] of Object.entries(families)) if (!left.has(name)) registry.registerMetric(family);
      sources.add(source);
      return () => sources.delete(source);
    },
  };
}

/** Queues that have series here and that no part knows any more. An outage says nothing. */
async function goneOf(queues: readonly string[], sources: readonly Source[]): Promise<readonly string[]> {
  const asked = sources.flatMap(({ declared }) => declared ?? []);
  if (queues.length === 0 || asked.length === 0) return [];
  const all = await Promise.all(asked.map((declared) => declared(queues)));
  return all.includes(undefined) ? [] : queues.filter((queue) => all.every((known) => !known?.has(queue)));
}

/** Removes the series that this process counted. A scrape fills the other series anew in any case. */
function removeQueue(families: Families, queue: string): void {
  const { moverPassDuration, promotionLateness, startLateness, runDuration } = families;
  for (const one of [moverPassDuration, promotionLateness, startLateness, runDuration]) one.removeQueue(queue);
  const { scheduleMissed, scheduleLateness, fenced, adopted, parked, parkedJobs, waitingSuspects, lostSlots } =
    families;
  for (const one of [scheduleMissed, scheduleLateness, fenced, adopted, parked]) one.remove({ queue });
  for (const one of [parkedJobs, waitingSuspects, lostSlots]) one.remove({ queue });
  for (const outcome of FIRE_OUTCOMES) families.scheduleFires.remove({ queue, outcome });
}

const FIRE_OUTCOMES = ['ok', 'already', 'skipped', 'waiting', 'ended'];

/** Sets the value, or removes it if nobody measured one. */
function setOrRemove(gauge: Gauge, value: number | undefined): void {
  if (value === undefined) gauge.remove();
  else gauge.set(value);
}

/** The number that is furthest from 0. */
function most(values: readonly number[]): number | undefined {
  return [...values].sort((a, b) => Math.abs(b) - Math.abs(a))[0];
}
