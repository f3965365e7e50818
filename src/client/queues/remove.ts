/**
 * An unused queue vanishes with all its keys. What holds jobs or dead letters, or is served by a living worker, or that
 * schedules make jobs for, stays unless it is forced; then those schedules go first.
 *
 *  check ──▶ remove each partition ──▶ out of the registry, movers are told ──▶ leases are gone ──▶ remove what they left
 *
 * Each removal checks and removes in one step. A job that is scheduled in between is found by the last step: the queue
 * is declared again and keeps it, even when the removal was forced; so is a schedule that is put in between. A removal that
 * was cut short leaves a queue with less in it, and the next one goes on with that.
 */
import { DuestreamError } from '../../kernel/errors.ts';
import { counted } from '../../kernel/humanize.ts';
import { limitKeys, type PartitionRef } from '../../redis/keys.ts';
import { type PartitionStats, stats } from '../../redis/read/inspect.ts';
import { freeRow, rowOf } from '../../redis/scripts/lending.ts';
import { presence } from '../../redis/scripts/presence.ts';
import { allQueues, declareQueue, partitionsFound, undeclareQueue } from '../../redis/scripts/queues.ts';
import { remove } from '../../redis/scripts/upkeep.ts';
import { rearmSchedules, removeSchedules, schedulesOfQueue } from '../schedules/schedule-store.ts';
import { type At, refsOfQueue } from './refs.ts';

const STATES = ['scheduled', 'ready', 'running', 'dead'] as const;
type Held = Readonly<Record<(typeof STATES)[number], number>>;

/** What became of a call that removes a queue. */
export interface QueueRemoved {
  /** False: jobs or schedules came while it was removed, and it is kept with those. */
  readonly isRemoved: boolean;
  /** What came meanwhile. */
  readonly came?: 'jobs' | 'schedules' | undefined;
  /** What it held before. */
  readonly held: Held;
  /** How many jobs and dead letters went. */
  readonly jobs: number;
  /** The names of its schedules, which went first. */
  readonly schedules: readonly string[];
}

/** Leaders let go within a pass of theirs; one that does not answer loses its lease. */
const LEADERS_GONE_MS = 3000;
const LOOK_EVERY_MS = 50;
const NAMED_MAX = 10;

/** @throws DuestreamError `not-found`, or `failed` for a queue that is in use */
export async function removeQueue(at: At, queue: string, force: boolean): Promise<QueueRemoved> {
  const { redis, namespace, steps } = at;
  const refs = await steps.read(() => partitionsTo(at, queue, force));
  const held = await steps.read(() => heldBy(at, refs));
  const schedules = await steps.read(() => schedulesOfQueue(redis, namespace, queue));
  if (!force) await refuse(at, { queue, held, schedules });
  await steps.write(() => removeSchedules(redis, namespace, schedules));
  const jobs = await removeAll(at, refs, force);
  await steps.write(() => undeclareQueue(redis, namespace, queue));
  await leadersGone(at, refs);
  await steps.write(() => freeRows(at, refs));
  const late = await steps.write(() => Promise.all(refs.map((ref) => remove(redis, ref, { force: false }))));
  const put = await steps.read(() => schedulesOfQueue(redis, namespace, queue));
  const hasJobs = late.some(({ kind }) => kind === 'holds');
  const isRemoved = !hasJobs && put.length === 0;
  const partitions = Math.max(1, refs.length);
  if (!isRemoved) await steps.write(() => declareQueue(redis, { namespace, queue, partitions }));
  await steps.write(() => rearmSchedules(redis, namespace, put));
  return { isRemoved, ...(!isRemoved && { came: put.length > 0 ? 'schedules' : 'jobs' }), held, jobs, schedules };
}

/** Of a queue whose entry nobody can read, by force: those that have keys. */
async function partitionsTo(at: At, queue: string, force: boolean): Promise<readonly PartitionRef[]> {
  const { redis, namespace } = at;
  const isUnreadable = force && (await allQueues(redis, namespace)).unreadable.some((one) => one.queue === queue);
  return isUnreadable ? partitionsFound(redis, namespace, queue) : refsOfQueue(at, queue);
}

/** Says all that stands against it before anything is touched. @throws DuestreamError `failed` */
async function refuse(
  { redis, namespace, steps }: At,
  { queue, held, schedules }: Pick<QueueRemoved, 'held' | 'schedules'> & { readonly queue: string },
): Promise<void> {
  if (schedules.length > 0) {
    const names = [...schedules.slice(0, NAMED_MAX), ...(schedules.length > NAMED_MAX ? ['…'] : [])].join(', ');
    throw new DuestreamError(
      'failed',
      `${queue} has ${counted(schedules.length, 'schedule')}: ${names}; remove what makes jobs for it with "duestream schedules rm", or add --force`,
    );
  }
  refuseHeld(queue, total(held) === 0 ? undefined : held);
  const served = (await steps.read(() => presence(redis, namespace))).flatMap(({ identity }) =>
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
  throw new DuestreamError('failed', `${queue} holds ${heldText(held)}; add --force to remove it with all of that`);
}

/** @returns how many jobs went. @throws DuestreamError `failed` where a partition holds some */
async function removeAll({ redis, steps }: At, refs: readonly PartitionRef[], force: boolean): Promise<number> {
  let jobs = 0;
  for (const ref of refs) {
    const { kind, holds } = await steps.write(() => remove(redis, ref, { force }));
    // Its entries are counted as waiting: who runs is not asked any more.
    const held = { scheduled: holds.scheduled, ready: holds.entries, running: 0, dead: holds.dead };
    if (kind === 'holds') refuseHeld(ref.queue, held);
    jobs += total(held);
  }
  return jobs;
}

/** What ledgers of shared limits have lent to its partitions is theirs again. */
async function freeRows({ redis, namespace }: At, refs: readonly PartitionRef[]): Promise<void> {
  const calls = refs.flatMap((ref) => (ref.shared ?? []).map((limit) => ({ limit, row: rowOf(ref) })));
  await Promise.all(calls.map(({ limit, row }) => freeRow(redis, limitKeys(namespace, limit.name), { limit, row })));
}

/** A leader that gives its lease back removes it; one that went on for a moment may have written keys again. */
async function leadersGone({ redis, steps, clock }: At, refs: readonly PartitionRef[]): Promise<void> {
  for (let waitedMs = 0; waitedMs < LEADERS_GONE_MS; waitedMs += LOOK_EVERY_MS) {
    const leases = await steps.read(() => Promise.all(refs.map(({ keys }) => redis.exists(keys.leader))));
    if (leases.every((there) => there === 0)) return;
    await clock.sleep(LOOK_EVERY_MS);
  }
}

async function heldBy({ redis }: At, refs: readonly PartitionRef[]): Promise<Held> {
  const all: readonly PartitionStats[] = await Promise.all(refs.map((ref) => stats(redis, ref)));
  const sum = (state: keyof Held) => all.reduce((count, one) => count + one[state], 0);
  return { scheduled: sum('scheduled'), ready: sum('ready'), running: sum('running'), dead: sum('dead') };
}

const total = (held: Held) => STATES.reduce((sum, state) => sum + held[state], 0);

/** `3 scheduled, 1 dead`; '' for nothing. */
export const heldText = (held: Held): string =>
  STATES.filter((state) => held[state] > 0)
    .map((state) => `${held[state]} ${state}`)
    .join(', ');
