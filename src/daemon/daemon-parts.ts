/** What stands on the connections of a daemon, and how events of its parts become events of its own. */
import { hostname } from 'node:os';
import { doneLimits } from '../config/done.ts';
import { queueOptions } from '../config/load.ts';
import type { Config } from '../config/options.ts';
import type { createEmitter } from '../job/emitter.ts';
import { newJobId } from '../job/new-job-id.ts';
import { defineQueue } from '../job/queue.ts';
import { systemClock } from '../kernel/clock.ts';
import { version } from '../kernel/version.ts';
import { LeaderPool } from '../mover/leader-pool.ts';
import type { NearWorker } from '../mover/promotion/lone-worker.ts';
import { openCommands, openSubscriber, type Redis } from '../redis/connection/connect.ts';
import { claimNamespace, declareQueue } from '../redis/scripts/queues.ts';
import { createGuard } from './eviction-guard.ts';
import type { DaemonSettings } from './input.ts';

/** One for commands, and one that hears nudges where it moves jobs. */
export function openAll({ config, redis }: DaemonSettings): readonly [Redis, ...Redis[]] {
  const nudges = config.roles.includes('mover') ? [openSubscriber({ redis, name: 'nudges' })] : [];
  return [openCommands({ redis, name: 'daemon' }), ...nudges];
}

/** What stands on the connections. */
export function furnish(
  { config }: DaemonSettings,
  events: ReturnType<typeof createEmitter>,
  [redis, subscriber]: readonly [Redis, ...Redis[]],
  nearWorker: () => NearWorker | undefined,
) {
  const id = `d-${newJobId()}`;
  const movers = subscriber ? moversOf({ config, redis, subscriber, id, events, nearWorker }) : undefined;
  return { redis, movers, guard: createGuard({ redis, clock: systemClock, events }) };
}

export type Furnished = ReturnType<typeof furnish>;

/** What a configuration names exists from now on: it has movers before its first job, and the partitions it was given. */
export async function declareQueues(redis: Redis, config: Config): Promise<void> {
  const { namespace } = config;
  await claimNamespace(redis, namespace);
  for (const name of Object.keys(config.queues)) {
    const { partitions, history, redact, broadcast, ...limits } = defineQueue(name, queueOptions(config, name));
    const { maxPending, maxBytes } = limits;
    const settings = { history, redact, broadcast, maxPending, maxBytes };
    await declareQueue(redis, { namespace, queue: name, partitions, ...settings });
  }
}

/** Charts are looked at by the HTTP API; without it nothing is kept for them, unless somebody asks for it. */
function keepsMinutes({ roles, http }: Config): boolean {
  if (http.minutes !== 'auto') return http.minutes === 'on';
  return roles.includes('http') && http.api === 'on';
}

function moversOf(parts: {
  config: Config;
  redis: Redis;
  subscriber: Redis;
  id: string;
  events: ReturnType<typeof createEmitter>;
  nearWorker: () => NearWorker | undefined;
}) {
  const { config, redis, subscriber, id, events, nearWorker } = parts;
  const { dead, mover, namespace } = config;
  return new LeaderPool({
    minutes: keepsMinutes(config),
    redis,
    subscriber,
    namespace,
    events,
    nearWorker,
    options: mover,
    clock: systemClock,
    beatTtlMs: 15_000,
    identity: {
      id,
      role: 'daemon',
      host: hostname(),
      pid: process.pid,
      version,
      startedMs: systemClock.wallMs(),
      queues: [],
    },
    limits: {
      batch: 500,
      retentionMs: dead.retentionMs,
      deadLettersMax: dead.max,
      ...doneLimits(config),
    },
  });
}
