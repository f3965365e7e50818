/**
 * What belongs to a registry rather than to one part of a process: an application may give one registry to a daemon and to
 * several workers. Each family is there once; what the parts count adds up, and what they read is read together.
 *
 * What must always hold: a part that has ended adds nothing any more, and the reading of one scrape is one moment's.
 */
import type { Registry } from 'prom-client';
import { createFamilies, type Families } from './families.ts';
import { fillQueues, type PartitionReading, QUEUE_WIDE } from './readings.ts';

export interface Reading {
  readonly partitions: readonly PartitionReading[];
  /** Workers with a valid heartbeat, where the part asks for them. */
  readonly alive: number | undefined;
}

/** One part of a process, for as long as it lives. */
export interface Source {
  /** What Redis says, or undefined in an outage. */
  readonly read: () => Promise<Reading | undefined>;
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
  readonly join: (source: Source) => () => void;
}

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
    const readings = await Promise.all(asked.map(({ read }) => read()));
    // From here on nothing waits, so the values are of one moment.
    fillQueues(
      families,
      readings.flatMap((reading) => reading?.partitions ?? []),
    );
    const alive = readings.flatMap((reading) => reading?.alive ?? []);
    if (alive.length === 0) families.workersAlive.remove();
    else families.workersAlive.set(Math.max(...alive));
    const isUp = readings.every((reading) => reading !== undefined) && [...away].every(({ size }) => size === 0);
    if (asked.length === 0) families.redisUp.remove();
    else families.redisUp.set(isUp ? 1 : 0);
    const ready = asked.flatMap((source) => (source.ready ? [source.ready()] : []));
    if (ready.length === 0) families.ready.remove();
    else families.ready.set(ready.every(Boolean) ? 1 : 0);
  }

  return {
    families,
    away,
    join(source) {
      const queueWide: readonly string[] = source.isQueueWide ? [] : [...QUEUE_WIDE, 'workersAlive'];
      const left = new Set<string>([...queueWide, ...source.without]);
      for (const [name, family] of Object.entries(families)) if (!left.has(name)) registry.registerMetric(family);
      sources.add(source);
      return () => sources.delete(source);
    },
  };
}
