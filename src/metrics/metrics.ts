/**
 * The metrics of one process as text for Prometheus. It listens to events and, at each scrape, asks for the counts of
 * the partitions that this process leads; it decides nothing and touches nothing.
 *
 * What must always hold: no timer, no listener and no series outlives its owner, so Node's own process metrics are left
 * out (the library's collectors keep an observer of garbage collection that cannot be taken back). Redis away leaves the
 * queue-wide values out instead of showing old ones as new; the rest is still answered.
 */
import { Registry } from 'prom-client';
import { DuestreamError } from '../core/errors.ts';
import type { EventSource } from '../core/events.ts';
import { weatherOf } from '../redis/weather.ts';
import { createFamilies } from './families.ts';
import { observeEvents } from './observe.ts';
import { fillQueues, type PartitionReading } from './readings.ts';

export interface MetricsOptions {
  /** Of this package. */
  readonly version: string;
  /** The partitions of this process. Only those it leads are shown with their counts. */
  readonly queueStats?: () => Promise<readonly PartitionReading[]>;
  /** How many workers have a valid heartbeat. */
  readonly alive?: () => Promise<number>;
  readonly state?: { readonly ready: () => boolean };
}

export interface Metrics {
  /** Listens to a source of events until the returned function is called. */
  readonly observe: (events: EventSource) => () => void;
  /** Everything as text. Scrapes at the same time share one answer, so that many scrapers cost Redis as much as one. */
  readonly scrape: () => Promise<string>;
  /** Of the text. */
  readonly contentType: string;
}

/** The version in every key; see the key table in `redis/keys.ts`. */
const WIRE = 'v1';

export function createMetrics(options: MetricsOptions): Metrics {
  const registry = new Registry();
  const queueWide = options.queueStats !== undefined || options.alive !== undefined;
  const families = createFamilies(registry, { queueWide });
  const away = new Set<string>();
  let scraping: Promise<string> | undefined;
  families.buildInfo.set({ version: options.version, node: process.versions.node, wire: WIRE }, 1);

  async function scrape(): Promise<string> {
    const reading = await read(options);
    // From here to the text nothing waits, so the text is of one moment.
    fillQueues(families, reading?.partitions ?? []);
    if (reading?.alive === undefined) families.workersAlive.remove();
    else families.workersAlive.set(reading.alive);
    families.redisUp.set(reading !== undefined && away.size === 0 ? 1 : 0);
    if (options.state === undefined) families.ready.remove();
    else families.ready.set(options.state.ready() ? 1 : 0);
    return registry.metrics();
  }

  return {
    observe: (events) => observeEvents({ events, families, away }),
    scrape() {
      scraping ??= scrape().finally(() => {
        scraping = undefined;
      });
      return scraping;
    },
    contentType: registry.contentType,
  };
}

interface Reading {
  readonly partitions: readonly PartitionReading[];
  readonly alive: number | undefined;
}

/** What Redis says, or undefined in bad weather. A bug is not weather and reaches the caller. */
async function read({ queueStats, alive }: MetricsOptions): Promise<Reading | undefined> {
  try {
    const [partitions, count] = await Promise.all([queueStats?.() ?? [], alive?.()]);
    return { partitions, alive: count };
  } catch (error) {
    if (error instanceof DuestreamError || weatherOf(error) !== 'unknown') return undefined;
    throw error;
  }
}
