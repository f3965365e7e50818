/** What the queues of a worker share: a connection for commands, the heartbeat, the clock of the server, the extension of leases. */
import { hostname } from 'node:os';
import type { ScheduleChain } from '../client/jobs/middleware.ts';
import type { Emitter } from '../job/events.ts';
import { version } from '../kernel/version.ts';
import { isCluster, membersOf } from '../redis/connection/cluster/members.ts';
import { openBlocking, openCommands, openSubscriber, type Redis } from '../redis/connection/connect.ts';
import { createServers } from '../redis/connection/server-clock.ts';
import { createJobs } from '../redis/scripts/jobs.ts';
import { createCalls } from './fetch/wake-channel.ts';
import type { Settings, Work } from './options.ts';
import { createHeartbeat } from './recover/heartbeat.ts';
import { createHandlerCalls } from './run/context.ts';
import { createExtender } from './run/extender.ts';
import type { HandleChain } from './run/middleware.ts';
import { createTimekeeper } from './run/timekeeper.ts';
import { createServedQueue } from './served-queue.ts';

/** One for commands, and one for each queue to wait on; in a cluster one that hears calls for all queues. */
export function openAll(redis: Settings['redis'], names: readonly string[]): readonly [Redis, ...Redis[]] {
  const commands = openCommands({ redis, name: `worker:${names.join(',')}` });
  if (isCluster(commands)) return [commands, openSubscriber({ redis, name: `calls:${names.join(',')}` })];
  return [commands, ...names.map((name) => openBlocking({ redis, name: `reader:${name}` }))];
}

/** The middleware of a worker: around its handlers, and around what they schedule. */
export interface Chains {
  readonly handle: HandleChain;
  readonly schedule: ScheduleChain;
}

export type Shared = ReturnType<typeof wire>;

/** What the queues share, and the queues. */
export function wire(
  shared: {
    readonly settings: Settings;
    readonly works: readonly Work[];
    readonly consumer: string;
    readonly events: Emitter;
    readonly giveUp: AbortSignal;
    readonly chains: Chains;
  },
  [commands, ...readers]: readonly [Redis, ...Redis[]],
) {
  const { settings, works, consumer, events, giveUp, chains } = shared;
  const calls = createHandlerCalls(commands, settings, { chain: chains.schedule, giveUp });
  const { clock, namespace, beatTtlMs } = settings;
  const jobs = createJobs(commands);
  const serverOf = createServers(commands, clock);
  const names = works.map(({ queue }) => queue.name);
  const [first] = readers;
  const called = first && isCluster(first) ? createCalls(first) : undefined;
  const connections = [commands, ...readers].reduce((sum, one) => sum + membersOf(one).length, 0);
  const startedMs = clock.wallMs();
  const ofProcess = { host: hostname(), pid: process.pid, version, startedMs };
  const identity = { id: consumer, role: 'worker' as const, ...ofProcess, queues: names, connections };
  const server = serverOf();
  const timekeeper = createTimekeeper({ redis: commands, namespace, serverMs: server.nowMs, events });
  const heartbeat = createHeartbeat({
    redis: commands,
    namespace,
    identity,
    beatTtlMs,
    server,
    clock,
    events,
    onBeat: () => Promise.all([...served.map((one) => one.declare()), timekeeper.pass()]),
  });
  const served = works.flatMap((work, at) => {
    const blocking = readers[at];
    const source = called ?? blocking;
    if (!source) return [];
    const own = { work, settings, commands, source, jobs, consumer, events, giveUp };
    return [createServedQueue({ ...own, beats: heartbeat, serverOf, around: chains.handle.around, calls })];
  });
  const extender = createExtender({
    jobs,
    consumer,
    clock,
    events,
    queue: names.join(', '),
    probe: () => commands.ping(),
    extendEveryMs: settings.extendEveryMs,
    jobLeaseMs: settings.jobLeaseMs,
    inFlights: served.map(({ inFlight }) => inFlight),
  });
  return { commands, heartbeat, extender, served };
}

/** All queues at the same time; then what they share. */
export async function handOver(parts: Shared | undefined, endMs: number, giveUp: AbortController): Promise<void> {
  if (!parts) return;
  const { heartbeat, extender, served } = parts;
  await Promise.all(served.map((one) => one.stop(endMs)));
  giveUp.abort();
  await extender.stop();
  await heartbeat.stop();
  await heartbeat.leave();
  await Promise.all(served.map((one) => one.leave()));
}
