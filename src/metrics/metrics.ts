/**
 * The metrics of one part of a process (a daemon, or a worker that an application embeds) as text for Prometheus or as a
 * registry. It listens to events and, at each scrape, asks for the counts of the partitions that this part leads; it
 * decides nothing and touches nothing.
 *
 * What must always hold: no timer and no listener outlives its owner, so Node's own process metrics are left out (the
 * library's collectors keep an observer of garbage collection that cannot be taken back). Redis away leaves the
 * queue-wide values out instead of showing old ones as new; the rest is still answered.
 */
import { Registry } from 'prom-client';
import type { EventSource } from '../job/events.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { outageOf } from '../redis/connection/outage.ts';
import type { ServerReading } from '../redis/connection/server-reading.ts';
import { observeEvents } from './observe.ts';
import type { PartitionReading } from './readings.ts';
import { type Reading, type Source, sharedOf } from './shared.ts';

export type { Registry };

export interface MetricsOptions {
  /** Of this package. */
  readonly version: string;
  /** The partitions of this process. Only those it leads are shown with their counts. */
  readonly queueStats?: () => Promise<readonly PartitionReading[]>;
  /** How many workers have a valid heartbeat. */
  readonly alive?: () => Promise<number | undefined>;
  /** How full Redis is, and what time it is there. */
  readonly servers?: () => Promise<ServerReading | undefined>;
  /** Which of these queues are declared. */
  readonly declared?: Source['declared'];
  readonly state?: { readonly ready: () => boolean };
  /** Where the metrics are put. Default: a registry of their own. */
  readonly registry?: Registry | undefined;
  /** Families that nobody fills here. */
  readonly without?: Source['without'];
}

export interface Metrics {
  /** Listens to a source of events until the returned function is called. */
  readonly observe: (events: EventSource) => () => void;
  /** Everything as text. Scrapes at the same time share one answer, so that many scrapers cost Redis as much as one. */
  readonly scrape: () => Promise<string>;
  /** Of the text. */
  readonly contentType: string;
  readonly registry: Registry;
  /** Nothing is read for it any more. What was counted stays. Twice is fine. */
  readonly close: () => void;
}

/** The version in every key; see the key table in `redis/keys.ts`. */
const WIRE = 'v1';

export function createMetrics(options: MetricsOptions): Metrics {
  const { registry = new Registry(), without = [] } = options;
  const shared = sharedOf(registry);
  const { families } = shared;
  let scraping: Promise<string> | undefined;
  const close = shared.join({
    read: () => read(options),
    declared: options.declared && ((queues) => declaredOf(options, queues)),
    ready: options.state?.ready,
    isQueueWide: options.queueStats !== undefined || options.alive !== undefined,
    without,
  });
  families.buildInfo.set({ version: options.version, node: process.versions.node, wire: WIRE }, 1);

  return {
    observe: (events) => observeEvents(events, shared),
    scrape() {
      scraping ??= registry.metrics().finally(() => {
        scraping = undefined;
      });
      return scraping;
    },
    contentType: registry.contentType,
    registry,
    close,
  };
}

async function declaredOf({ declared }: MetricsOptions, queues: readonly string[]) {
  try {
    return await declared?.(queues);
  } catch (error) {
    if (error instanceof DuestreamError || outageOf(error) !== 'unknown') return undefined;
    throw error;
  }
}

/** What Redis says, or undefined in an outage. A bug is not outage and reaches the caller. */
async function read({ queueStats, alive, servers }: MetricsOptions): Promise<Reading | undefined> {
  try {
    const [partitions, count, found] = await Promise.all([queueStats?.() ?? [], alive?.(), servers?.()]);
    return { partitions, alive: count, servers: found };
  } catch (error) {
    if (error instanceof DuestreamError || outageOf(error) !== 'unknown') return undefined;
    throw error;
  }
}
