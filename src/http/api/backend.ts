/**
 * What the operations stand on: a client, and a connection to look. Each connects when it is first used, so a daemon whose
 * API nobody asks has none of these connections.
 */

import { withReadRetry } from '../../client/calls/retry.ts';
import { type Client, createClientOf } from '../../client/client.ts';
import type { DeadLetterOverview } from '../../client/dead/dead-letters.ts';
import type { Namespaced } from '../../client/queues/refs.ts';
import type { DayReading } from '../../inspect/day.ts';
import type { Examined } from '../../inspect/doctor/doctor.ts';
import type { Queue } from '../../job/queue.ts';
import type { TargetAsk, TargetTried } from '../../job/target-tried.ts';
import type { Color } from '../../kernel/checks.ts';
import { systemClock } from '../../kernel/clock.ts';
import type { RedisInput } from '../../redis/connection/address.ts';
import { labelOf, openCommands } from '../../redis/connection/connect.ts';
import { createOpening } from '../../redis/connection/opening.ts';
import { createServers, type ServerClock } from '../../redis/connection/server-clock.ts';
import { checkSchema } from '../../redis/schema.ts';
import type { RemoteWork } from '../../remote/remote-work.ts';
import { createShared, type Shared } from './shared.ts';

export interface BackendOptions {
  readonly redis: RedisInput;
  readonly namespace: string;
  readonly horizonMs: number;
  readonly dataBytesMax: number;
  /** How many tags of a queue may be closed. Default: as of a client. */
  readonly closedMax?: number | undefined;
  readonly doneWindowMs: number;
  /** A queue by its name, as the configuration says it. */
  readonly queueOf: (name: string) => Queue;
  readonly examined: Omit<Examined, 'namespace' | 'horizonMs'>;
  readonly limits: ApiLimits;
  /** At how many undelivered entries leaders stop to promote. */
  readonly readyMax: number;
  /** For workers over HTTP. Left out: nobody may come by that way. */
  readonly work?: RemoteWork | undefined;
  /**
   * One request to the target of a queue; undefined: there were too many of late. Left out: this daemon calls no targets.
   */
  readonly tryTarget?:
    | ((queue: string, asked: TargetAsk, signal: AbortSignal) => Promise<TargetTried | undefined>)
    | undefined;
  /** By which people tell this installation from others. Default: none. */
  readonly title?: string | undefined;
  /** Default `none`. */
  readonly color?: Color | undefined;
}

/** What people tell one installation from another by. */
interface Installation {
  readonly title: string;
  readonly color: Color;
  /** Its address, without user and password. */
  readonly redis: string;
  readonly namespace: string;
}

export interface ApiLimits {
  readonly bodyBytesMax: number;
  readonly batchMax: number;
  /** Requests per second and caller. */
  readonly rateMax: number;
  /** The same of workers over HTTP. */
  readonly workRateMax: number;
}

/** With the clock of its Redis. */
export interface TimedPlace extends Namespaced {
  readonly server: ServerClock;
}

/** Whole ms, by the clock of Redis as far as it was measured. */
export const nowOf = ({ server }: TimedPlace): number => Math.floor(server.nowMs());

export interface Backend
  extends Pick<BackendOptions, 'namespace' | 'queueOf' | 'limits' | 'readyMax' | 'work' | 'tryTarget'> {
  readonly client: Client;
  /** The connection to look over. @throws DuestreamError `unavailable`, `wrong-schema` */
  readonly place: () => Promise<TimedPlace>;
  readonly examined: Examined;
  readonly installation: Installation;
  /** What many ask for, and one reads. */
  readonly readings: { readonly day: Shared<DayReading>; readonly died: Shared<DeadLetterOverview> };
  readonly stop: () => Promise<void>;
}

/** A caller waits no longer than this for an outage to pass; then it is told, and may repeat the request. */
const RETRY_MS = 3000;
const WAIT_MS = 3000;
/** Each viewer of the page Now asks once a minute. */
const DAY_KEPT_MS = 10_000;
/** Each viewer of dead letters asks every ten seconds while jobs die, and again after that. */
const DIED_KEPT_MS = 3000;

export function createBackend(options: BackendOptions): Backend {
  const { redis, namespace, horizonMs, dataBytesMax, closedMax, doneWindowMs, queueOf, limits, readyMax } = options;
  const { title = '', color = 'none' } = options;
  const retryBudget = doneWindowMs === 0 ? RETRY_MS : Math.min(RETRY_MS, doneWindowMs / 2);
  const client = createClientOf({
    redis,
    namespace,
    horizon: horizonMs,
    dataBytesMax,
    closedMax,
    doneWindow: doneWindowMs,
    retryBudget,
    name: 'api',
  });
  const opening = createOpening({
    waitMs: WAIT_MS,
    open: () => [openCommands({ redis, name: 'api:look' })] as const,
    furnish: async ([connection]) => {
      const server = createServers(connection, systemClock)();
      const look = async () => {
        await checkSchema(connection, namespace);
        await server.measure();
      };
      await withReadRetry('look at the namespace', look, { clock: systemClock, budgetMs: RETRY_MS });
      connection.on('ready', server.doubt);
      return { redis: connection, namespace, server };
    },
  });
  return {
    namespace,
    queueOf,
    limits,
    readyMax,
    work: options.work,
    tryTarget: options.tryTarget,
    client,
    place: () => opening.use(),
    examined: { ...options.examined, namespace, horizonMs },
    installation: { title, color, redis: labelOf(redis), namespace },
    readings: { day: createShared(DAY_KEPT_MS), died: createShared(DIED_KEPT_MS) },
    async stop() {
      await client.close();
      opening.close();
    },
  };
}
