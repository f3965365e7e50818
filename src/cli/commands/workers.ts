/**
 * `workers`: every worker that sent a heartbeat or is a consumer of a queue, whether it lives, and what it runs. One
 * without a heartbeat is missing: once it has been so for a grace, the living take over what it holds.
 */
import type { Command } from 'commander';
import { systemClock } from '../../core/clock.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { type Held, holdings } from '../../redis/holdings.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { beatAges, type Identity, presence } from '../../redis/transitions/presence.ts';
import { listQueues, partitionsOf } from '../../redis/transitions/queues.ts';
import { type Exit, type Register, wholeNumber, withExamples } from '../register.ts';
import { partitionsOfQueue, type Session, withRedis } from '../session.ts';
import { line, table } from '../terminal/text.ts';
import { relative, span } from '../terminal/when.ts';

interface Flags {
  readonly queue?: string;
  readonly limit: number;
}

interface Running extends Held {
  readonly queue: string;
  readonly partition: number;
}

interface Seen {
  readonly id: string;
  readonly state: 'alive' | 'missing';
  readonly host: string | undefined;
  readonly pid: number | undefined;
  readonly startedMs: number | undefined;
  /** How long ago it sent its last heartbeat. */
  readonly beatAgoMs: number | undefined;
  readonly queues: readonly string[];
  /** How many it has to Redis, all nodes together. */
  readonly connections: number | undefined;
  /** Entries it holds: running, or about to start. */
  readonly pending: number;
  readonly jobs: readonly Running[];
}

export const workers: Register = (parent, runner) => {
  const command = parent
    .command('workers')
    .description('show workers, the last heartbeat of each, and the jobs that it runs')
    .option('--queue <name>', 'only workers of this queue')
    .option('--limit <n>', 'show at most this many jobs of each worker: the oldest', wholeNumber(0, 1000), 10)
    .action((flags: Flags, command: Command) => runner.run(command, (session) => run(session, flags)));
  withExamples(command, ['duestream workers', 'duestream workers --queue emails --limit 100 --json']);
};

async function run(session: Session, { queue, limit }: Flags): Promise<Exit> {
  const { namespace } = session.config;
  const seen = await withRedis(session, async (redis) => {
    const refs = await refsOf(session, redis, queue);
    const known = await presence(redis, namespace);
    const drafts = new Map<string, Draft>();
    // Daemons send heartbeats too; an id without one may be either, and counts once it is a consumer.
    for (const { id, identity } of known) {
      if (identity?.role === 'worker' && (queue === undefined || identity.queues.includes(queue))) {
        drafts.set(id, { identity, queues: new Set(identity.queues), pending: 0, jobs: [] });
      }
    }
    const alive = new Map(known.map(({ id, identity }) => [id, identity]));
    for (const ref of refs) await addConsumers(redis, ref, { drafts, alive, limit });
    const processes = [...drafts.values()].flatMap(({ identity }) => identity ?? []);
    const ages = await beatAges(redis, namespace, processes);
    return [...drafts].map(([id, draft]) => seenOf(id, draft, ages.get(id))).sort((a, b) => (a.id < b.id ? -1 : 1));
  });
  session.out.answer({ namespace, workers: seen }, () => linesOf(session, seen));
  return 0;
}

interface Draft {
  readonly identity: Identity | undefined;
  readonly queues: Set<string>;
  pending: number;
  readonly jobs: Running[];
}

async function addConsumers(
  redis: Redis,
  ref: PartitionRef,
  into: { drafts: Map<string, Draft>; alive: ReadonlyMap<string, Identity | undefined>; limit: number },
): Promise<void> {
  const { queue, partition } = ref;
  for (const { name, pending, jobs } of await holdings(redis, ref, into.limit)) {
    const known = into.drafts.get(name);
    const draft = known ?? { identity: into.alive.get(name), queues: new Set<string>(), pending: 0, jobs: [] };
    into.drafts.set(name, draft);
    draft.queues.add(queue);
    draft.pending += pending;
    draft.jobs.push(...jobs.slice(0, into.limit - draft.jobs.length).map((job) => ({ queue, partition, ...job })));
  }
}

function seenOf(id: string, { identity, queues, pending, jobs }: Draft, beatAgoMs: number | undefined): Seen {
  const { host, pid, startedMs, connections } = identity ?? {};
  const state = identity ? 'alive' : 'missing';
  return { id, state, host, pid, startedMs, beatAgoMs, queues: [...queues].sort(), connections, pending, jobs };
}

async function refsOf(session: Session, redis: Redis, queue: string | undefined): Promise<readonly PartitionRef[]> {
  if (queue !== undefined) return partitionsOfQueue(session, redis, queue);
  const { namespace } = session.config;
  return (await listQueues(redis, namespace)).flatMap((layout) => partitionsOf(namespace, layout));
}

function linesOf({ out, config }: Session, seen: readonly Seen[]): readonly string[] {
  if (seen.length === 0) {
    return [line`no worker in namespace ${config.namespace}; start one with "duestream worker <module>"`];
  }
  const nowMs = systemClock.wallMs();
  const rows = seen.map(({ id, state, host, pid, startedMs, beatAgoMs, queues, connections, pending }) => [
    id,
    state,
    host === undefined ? undefined : `${host}:${pid}`,
    startedMs === undefined ? undefined : relative(startedMs, nowMs),
    beatAgoMs === undefined ? undefined : `${span(beatAgoMs)} ago`,
    queues.join(', '),
    connections,
    pending,
  ]);
  return [
    ...table(out.paint, ['worker', 'state', 'where', 'started', 'last beat', 'queues', 'connections', 'holds'], rows),
    ...seen.flatMap((worker) => jobLines(worker, nowMs)),
  ];
}

function jobLines({ id, pending, jobs }: Seen, nowMs: number): readonly string[] {
  if (jobs.length === 0) return [];
  return [
    '',
    line`${id} holds`,
    ...jobs.map(({ queue, id: job, bare, attempt, startedMs }) => {
      const name = bare ? `${job} (bare)` : job;
      if (attempt === undefined || startedMs === undefined) return `  ${line`${queue}  ${name}  about to start`}`;
      return `  ${line`${queue}  ${name}  attempt ${attempt}, for ${span(Math.max(0, nowMs - startedMs))}`}`;
    }),
    ...(pending > jobs.length ? [`  and ${pending - jobs.length} more`] : []),
  ];
}
