/** The processes of the kit, as in production: a daemon that moves, and a worker, over the model of Redis in this process. */
import type { Calls } from '../client/calls/calls.ts';
import { once } from '../client/calls/retry.ts';
import { settingsOf } from '../client/calls/settings.ts';
import { type Client, clientOver } from '../client/client.ts';
import { createScheduleChain } from '../client/jobs/scheduling.ts';
import { setLimit } from '../client/limits/limits.ts';
import { createCalls } from '../client/session.ts';
import { createEmitter } from '../job/events.ts';
import type { Queue } from '../job/queue.ts';
import { parseShared, type SharedLimitOptions } from '../job/shared-limit.ts';
import type { Clock } from '../kernel/clock.ts';
import { silentLog } from '../kernel/log.ts';
import { RHYTHMS, type Rhythm } from '../kernel/rhythm.ts';
import { version } from '../kernel/version.ts';
import { LeaderPool } from '../mover/leader-pool.ts';
import { openCommands, openSubscriber, type RedisAddress, serveHere } from '../redis/connection/connect.ts';
import { claimNamespace, declarationOf, declareQueue } from '../redis/scripts/queues.ts';
import { readWork, readWorkerOptions, type Settings } from '../worker/options.ts';
import { isBatchHandler } from '../worker/run/batch.ts';
import type { Handler, Handlers } from '../worker/run/handlers.ts';
import type { HandleChain } from '../worker/run/middleware.ts';
import { createHandleChain } from '../worker/run/middleware.ts';
import { type Chains, workerOf } from '../worker/worker.ts';
import type { Ledger } from './ledger.ts';
import { openLine } from './line.ts';
import { waitedFor } from './play.ts';
import { createServer } from './redis/server.mjs';
import { SortedSet } from './redis/sorted-set.mjs';
import type { VirtualTime } from './time.ts';

export const NAMESPACE = 'duestream';
/** Longer than any test: leases and heartbeats outlive the longest step, and what has ended is remembered for ever. */
export const AGE_MS = 10 ** 12;

const RHYTHM: Rhythm = {
  ...RHYTHMS.default,
  leaseMs: AGE_MS,
  safetyTickMs: AGE_MS,
  wholePassMs: AGE_MS,
  firesMs: AGE_MS,
  daemonBeatTtlMs: AGE_MS,
  beatTtlMs: AGE_MS,
  graceMs: AGE_MS,
  registryBeats: 1,
  layoutBeats: 1,
  blockMs: AGE_MS,
  adoptMs: AGE_MS,
  passGapMs: 0,
  gatherMs: 0,
};

/** Production names its uses; these are the connections of processes. */
const isService = (name: string) => !/^client/.test(name);

/** Above are those that stand in line. */
const WAITS = 2 ** 52;

export interface World {
  /** Leaders hear of the job that is due next, also where nobody told them: in production they look every second. */
  readonly tellHeads: () => void;
  readonly redis: RedisAddress;
  /** From now on clients are served. */
  readonly welcome: () => void;
}

export function createWorld(time: VirtualTime, ledger: Ledger): World {
  const server = createServer({
    nowUs: () => Math.floor(time.nowMs * 1000),
    timer: (ms, act) => time.at(time.nowMs + ms, act),
    writes: (words) => ledger.note(words),
  });
  ledger.watch(server);
  const redis: RedisAddress = { host: 'in-this-process' };
  /** Connections of clients that came before the processes were up. */
  let early: { begin: () => void }[] | undefined = [];
  serveHere(redis, (name) => {
    const line = openLine(server, time, {
      isService: isService(name),
      isReady: isService(name) || early === undefined,
    });
    if (line.status !== 'ready') early?.push(line);
    return line;
  });
  const told = new Map<string, string>();
  return {
    redis,
    welcome() {
      for (const line of early ?? []) line.begin();
      early = undefined;
    },
    tellHeads() {
      for (const place of ledger.places) {
        const head = server.db.find(SortedSet, `${place}:scheduled`)?.sorted[0];
        const name = head && `${head.score} ${head.member}`;
        if (!head || told.get(place) === name) continue;
        told.set(place, name ?? '');
        if (head.score < WAITS) server.ask(['SPUBLISH', `${place}:wake`, String(head.score)]);
      }
    },
  };
}

export function createMovers(redis: RedisAddress, time: VirtualTime) {
  const commands = openCommands({ redis, name: 'daemon' });
  const subscriber = openSubscriber({ redis, name: 'nudges' });
  const identity = {
    id: 'd-kit',
    role: 'daemon' as const,
    host: 'kit',
    pid: 1,
    version,
    startedMs: time.nowMs,
    queues: [],
  };
  const pool = new LeaderPool({
    redis: commands,
    subscriber,
    namespace: NAMESPACE,
    identity,
    beatTtlMs: AGE_MS,
    options: { leaseMs: AGE_MS, batchMax: 1000, readyMax: 100_000, safetyTickMs: AGE_MS },
    limits: {
      batch: 500,
      windowMs: AGE_MS,
      tombstonesMax: 10 ** 9,
      floorMs: AGE_MS,
      retentionMs: AGE_MS,
      deadLettersMax: 10 ** 9,
    },
    rhythm: RHYTHM,
    clock: time.clock,
    events: createEmitter(),
  });
  return {
    commands,
    /** Before a queue names them. */
    async define(limits: Readonly<Record<string, SharedLimitOptions>>) {
      await claimNamespace(commands, NAMESPACE, 0);
      const by = { by: 'the kit', why: '', atMs: time.nowMs };
      for (const [name, said] of Object.entries(limits)) {
        await setLimit(
          { redis: commands, namespace: NAMESPACE, steps: once },
          { name, shared: parseShared(name, said), by },
        );
      }
    },
    async start(queues: readonly Queue[]) {
      for (const queue of queues) await declareQueue(commands, declarationOf(NAMESPACE, queue));
      await pool.start();
    },
  };
}

export interface WorkerParts {
  readonly redis: RedisAddress;
  readonly time: VirtualTime;
  readonly handlers: Handlers;
  readonly queueOf: (name: string) => Queue;
  readonly random: () => number;
  readonly chains: Chains;
  /** Handlers run in the calls of others, and no batch waits for more jobs. */
  readonly inline: boolean;
}

export function createKitWorker({ redis, time, handlers, queueOf, random, chains, inline }: WorkerParts) {
  const read = readWorkerOptions({ redis, clock: time.clock, concurrency: 10_000 });
  const settings: Settings = {
    ...read,
    log: silentLog,
    random,
    rhythm: RHYTHM,
    jobLeaseMs: AGE_MS,
    extendEveryMs: AGE_MS / 3,
    beatTtlMs: AGE_MS,
    graceMs: AGE_MS,
    windowMs: AGE_MS,
    recycleAtPercent: 0,
  };
  const works = Object.entries(handlers.map).map(([name, given]) => {
    const handler = inline && isBatchHandler(given) ? { ...given, waitMs: 0 } : given;
    const onAbandoned = Object.hasOwn(handlers.onAbandoned, name) ? handlers.onAbandoned[name] : undefined;
    return { queue: waitedFor(queueOf(name), time), handler, onAbandoned };
  });
  if (works.length === 0) return undefined;
  return workerOf({ settings, works: readWork(works, settings), chains, consumer: 'kit' });
}

export function createKitClient(redis: RedisAddress, clock: Clock, chain = createScheduleChain()): Client {
  const settings = { ...settingsOf({ redis, clock }), windowMs: AGE_MS };
  return clientOver(settings, asDurable(createCalls(settings)), chain);
}

/** No write of the kit gets lost: it is as durable as its call wants it once it is answered. A wrong wish is refused all the same. */
function asDurable<P>(calls: Calls<P>): Calls<P> {
  return {
    ...calls,
    opened: () => calls.opened(),
    connected: () => calls.connected(),
    run: (work, _, turn) => calls.run(work, undefined, turn),
    runChecked: (read, work, levelOf, claimsOf) => calls.runChecked(read, work, () => void levelOf?.(), claimsOf),
  };
}

/** The middleware of users inside of what plays handlers, which stands around everything. A job that joins a batch is not played: its batch is. */
export function chainInside(stage: {
  readonly around: (handler: Handler<never>) => Handler<never>;
  readonly aroundBatch: HandleChain['aroundBatch'];
}): HandleChain {
  const chain = createHandleChain();
  const made = new WeakMap<Handler<never>, Handler<never>>();
  return {
    use: chain.use,
    around(handler) {
      const inner = chain.around(handler);
      const known = made.get(inner) ?? stage.around(inner);
      made.set(inner, known);
      return known;
    },
    aroundMember: chain.aroundMember,
    aroundBatch: (call) => stage.aroundBatch(call),
  };
}
