/**
 * `queues rm <queue>`: an unused queue vanishes with all its keys. What holds jobs or dead letters, or is served by a living
 * worker, or that schedules make jobs for, stays unless it is forced; then those schedules go first.
 *
 *  check ──▶ remove each partition ──▶ out of the registry, movers are told ──▶ leases are gone ──▶ remove what they left
 *
 * Each removal checks and removes in one step. A job that is scheduled in between is found by the last step: the queue
 * is declared again and keeps it, even when the removal was forced; so is a schedule that is put in between.
 */

import type { Command } from 'commander';
import { rearmSchedules, removeSchedules, schedulesOfQueue } from '../../../client/schedules/schedule-store.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { DuestreamError } from '../../../kernel/errors.ts';
import { counted } from '../../../kernel/humanize.ts';
import type { Redis } from '../../../redis/connection/connect.ts';
import type { PartitionRef } from '../../../redis/keys.ts';
import { type PartitionStats, stats } from '../../../redis/read/inspect.ts';
import { presence } from '../../../redis/scripts/presence.ts';
import { allQueues, declareQueue, partitionsFound, undeclareQueue } from '../../../redis/scripts/queues.ts';
import { remove } from '../../../redis/scripts/upkeep.ts';
import { type Exit, partitionsOfQueue, type Register, type Session, withExamples, withRedis } from '../../session.ts';
import { line } from '../../terminal/output.ts';

const STATES = ['scheduled', 'ready', 'running', 'dead'] as const;
type Held = Readonly<Record<(typeof STATES)[number], number>>;

/** Leaders let go within a pass of theirs; one that does not answer loses its lease. */
const LEADERS_GONE_MS = 3000;
const LOOK_EVERY_MS = 50;

export const queuesRm: Register = (parent, runner) => {
  const command = parent
    .command('rm <queue>')
    .description('remove an empty queue with all its keys')
    .option('--force', 'remove it although it holds jobs or dead letters, has schedules, or workers serve it')
    .action((queue: string, { force = false }: { readonly force?: boolean }, command: Command) =>
      runner.run(command, (session) => run(session, queue, force)),
    );
  withExamples(command, ['duestream queues rm emails', 'duestream queues rm emails --force']);
};

async function run(session: Session, queue: string, force: boolean): Promise<Exit> {
  const { namespace } = session.config;
  const { held, kept, schedules, jobs } = await withRedis(session, async (redis) => {
    const isUnreadable = force && (await allQueues(redis, namespace)).unreadable.some((one) => one.queue === queue);
    const refs = isUnreadable
      ? await partitionsFound(redis, namespace, queue)
      : await partitionsOfQueue(session, redis, queue);
    const found = await heldBy(redis, refs);
    const schedules = await schedulesOfQueue(redis, namespace, queue);
    if (!force) await refuse(redis, { namespace, queue, held: found, schedules });
    await removeSchedules(redis, namespace, schedules);
    const jobs = await removeAll(redis, refs, force);
    await undeclareQueue(redis, namespace, queue);
    await leadersGone(redis, refs);
    const late = await Promise.all(refs.map((ref) => remove(redis, ref, { force: false })));
    const put = await schedulesOfQueue(redis, namespace, queue);
    const came = late.some(({ kind }) => kind === 'holds') || put.length > 0;
    if (came) await declareQueue(redis, { namespace, queue, partitions: Math.max(1, refs.length) });
    await rearmSchedules(redis, namespace, put);
    return {
      held: found,
      jobs,
      kept: came ? (put.length > 0 ? 'schedules were put' : 'jobs were scheduled') : '',
      schedules,
    };
  });
  session.changes.push({ verb: 'queues.rm', queue, target: queue, count: jobs, isWhole: kept === '' });
  session.out.answer({ queue, removed: kept === '', forced: force, held, schedules }, () => [
    kept !== ''
      ? line`${kept} in ${queue} while it was removed: it is kept with those; stop its producers and repeat`
      : [line`${queue} is removed`, ...withWhat(held, schedules)].join(' with '),
  ]);
  return kept === '' ? 0 : 1;
}

/** Says all that stands against it before anything is touched. */
async function refuse(
  redis: Redis,
  {
    namespace,
    queue,
    held,
    schedules,
  }: {
    readonly namespace: string;
    readonly queue: string;
    readonly held: Held;
    readonly schedules: readonly string[];
  },
): Promise<void> {
  if (schedules.length > 0) {
    const names = [...schedules.slice(0, NAMED_MAX), ...(schedules.length > NAMED_MAX ? ['…'] : [])].join(', ');
    throw new DuestreamError(
      'failed',
      `${queue} has ${counted(schedules.length, 'schedule')}: ${names}; remove what makes jobs for it with "duestream schedules rm", or add --force`,
    );
  }
  refuseHeld(queue, total(held) === 0 ? undefined : held);
  const served = (await presence(redis, namespace)).flatMap(({ identity }) =>
    identity !== undefined && identity.role !== 'daemon' && identity.queues.includes(queue) ? [identity] : [],
  );
  const [first] = served;
  if (first === undefined) return;
  const alike = served.filter(({ role }) => role === first.role);
  throw new DuestreamError(
    'failed',
    `${queue} is served by ${counted(alike.length, `living ${first.role}`)}, such as ${first.host}:${first.pid}; stop what serves it, or add --force`,
  );
}

function refuseHeld(queue: string, held: Held | undefined): void {
  if (held === undefined) return;
  throw new DuestreamError('failed', `${queue} holds ${listed(held)}; add --force to remove it with all of that`);
}

/** @returns how many jobs went. @throws DuestreamError `failed` where a partition holds some */
async function removeAll(redis: Redis, refs: readonly PartitionRef[], force: boolean): Promise<number> {
  let jobs = 0;
  for (const ref of refs) {
    const { kind, holds } = await remove(redis, ref, { force });
    // Its entries are counted as waiting: who runs is not asked any more.
    const held = { scheduled: holds.scheduled, ready: holds.entries, running: 0, dead: holds.dead };
    if (kind === 'holds') refuseHeld(ref.queue, held);
    jobs += total(held);
  }
  return jobs;
}

/** A leader that gives its lease back removes it; one that went on for a moment may have written keys again. */
async function leadersGone(redis: Redis, refs: readonly PartitionRef[]): Promise<void> {
  const untilMs = systemClock.monotonicMs() + LEADERS_GONE_MS;
  while (systemClock.monotonicMs() < untilMs) {
    const leases = await Promise.all(refs.map(({ keys }) => redis.exists(keys.leader)));
    if (leases.every((there) => there === 0)) return;
    await systemClock.sleep(LOOK_EVERY_MS);
  }
}

async function heldBy(redis: Redis, refs: readonly PartitionRef[]): Promise<Held> {
  const all: readonly PartitionStats[] = await Promise.all(refs.map((ref) => stats(redis, ref)));
  const sum = (state: keyof Held) => all.reduce((count, one) => count + one[state], 0);
  return { scheduled: sum('scheduled'), ready: sum('ready'), running: sum('running'), dead: sum('dead') };
}

function withWhat(held: Held, schedules: readonly string[]): readonly string[] {
  const parts = [
    ...(total(held) === 0 ? [] : [listed(held)]),
    ...(schedules.length === 0 ? [] : [counted(schedules.length, 'schedule')]),
  ];
  return parts.length === 0 ? [] : [parts.join(', ')];
}

const NAMED_MAX = 10;

const total = (held: Held) => STATES.reduce((sum, state) => sum + held[state], 0);

const listed = (held: Held) =>
  STATES.filter((state) => held[state] > 0)
    .map((state) => `${held[state]} ${state}`)
    .join(', ');
