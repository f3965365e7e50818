/**
 * `fsck [queue]`: looks whether everything in Redis is whole, and says what each flaw means. With `--repair` it tells
 * what it would do, and with `--yes` does it: only what a script can prove to be safe at that moment. The rest is left
 * to a person.
 */

import type { Command } from 'commander';
import { systemClock } from '../../kernel/clock.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { counted } from '../../kernel/humanize.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { wrongTypes } from '../../redis/connection/wrong-type.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { type Answered, askEach } from '../../redis/read/each-queue.ts';
import type { Flaw } from '../../redis/repair/flaws.ts';
import {
  type Examination,
  examine,
  examineControl,
  type Growth,
  growth,
  growthFlaws,
} from '../../redis/repair/fsck.ts';
import { type Bookkeeping, leftovers, removeLeftover } from '../../redis/repair/leftovers.ts';
import { mend } from '../../redis/repair/repair.ts';
import { listQueues, partitionsOf } from '../../redis/scripts/queues.ts';
import { type Exit, partitionsOfQueue, type Register, type Session, withExamples, withRedis } from '../session.ts';
import { line, type Paint, unreadLines } from '../terminal/output.ts';

interface Flags {
  readonly repair?: boolean;
  readonly yes?: boolean;
}

interface Report extends Omit<Examination, 'flaws'> {
  readonly queue: string;
  readonly partition: number;
  readonly flaws: readonly Told[];
}

/** A flaw as it is printed: `repaired` only after a repair. */
interface Told extends Omit<Flaw, 'damage'> {
  readonly repaired?: boolean;
}

/** The two states that are compared for what fell are at least so far apart. */
const GROWTH_APART_MS = 2000;
/** Many flaws of one kind have one cause; JSON has all of them. */
const LINES_MAX = 20;

export const fsck: Register = (parent, runner) => {
  const command = parent
    .command('fsck [queue]')
    .description('check the data in Redis for damage, and repair what is safe to repair')
    .option('--repair', 'show the repairs that are possible; with --yes, make them')
    .option('--yes', 'with --repair: make the repairs')
    .action((queue: string | undefined, flags: Flags, command: Command) =>
      runner.run(command, (session) => run(session, queue, flags)),
    );
  withExamples(command, ['duestream fsck', 'duestream fsck emails --repair', 'duestream fsck emails --repair --yes']);
};

async function run(session: Session, queue: string | undefined, { repair = false, yes = false }: Flags): Promise<Exit> {
  if (yes && !repair) throw new DuestreamError('usage', '--yes is given without --repair; allowed: both, or neither');
  const { reports, unread, control, bookkeeping } = await withRedis(session, async (redis) => {
    const refs = await refsOf(session, redis, queue);
    const { found, unread } = await reportsOf(session, redis, { refs, repair, yes });
    const reports = found.map((one) => one.report);
    if (queue !== undefined) return { reports, unread, control: [], bookkeeping: undefined };
    return { reports, unread, ...(await controlReport(session, redis, { found, repair, yes })) };
  });
  const all = [...control, ...reports.flatMap(({ flaws }) => flaws)];
  const repaired = all.filter((flaw) => flaw.repaired === true).length;
  const left = all.length - repaired;
  const more = reports.some((one) => one.more);
  const ok = left === 0 && !more && unread.length === 0;
  session.out.answer({ ok, left, repaired, partitions: reports, unread, control, bookkeeping }, () => [
    ...reports.flatMap((one) => lines(session.out.paint, one)),
    ...unreadLines(unread),
    ...(bookkeeping === undefined ? [] : [bookkeepingLine(bookkeeping)]),
    ...flawLines(session.out.paint, control),
    summary({ left, repaired, partitions: reports.length, planned: repair && !yes, more }),
  ]);
  return ok ? 0 : 1;
}

interface Reported {
  readonly ref: PartitionRef;
  readonly report: Report;
}

/** A partition that does not answer, because its node is down, hides the damage of no other. */
async function reportsOf(
  session: Session,
  redis: Redis,
  { refs, repair, yes }: Required<Flags> & { readonly refs: readonly PartitionRef[] },
): Promise<Answered<Reported>> {
  const before = await growths(redis, refs);
  const sinceMs = systemClock.monotonicMs();
  const examined = await askEach(
    { all: refs, unread: [] },
    async (ref): Promise<Reported> => {
      // Closed tags are compared with those of partitions that can be read.
      const all = refs.filter((one) => one.queue === ref.queue && before.has(one));
      return { ref, report: await report(session, redis, { ref, all, repair, yes }) };
    },
    1,
  );
  await systemClock.sleep(Math.max(0, GROWTH_APART_MS - (systemClock.monotonicMs() - sinceMs)));
  const read = examined.found.map(({ ref }) => ref);
  const now = await growths(redis, read);
  const found = examined.found.map(({ ref, report: one }) => {
    const fallen = growthFlaws(before.get(ref), now.get(ref)).map(told);
    return { ref, report: { ...one, flaws: [...one.flaws, ...fallen] } };
  });
  return { found, unread: examined.unread };
}

async function refsOf(session: Session, redis: Redis, queue: string | undefined): Promise<readonly PartitionRef[]> {
  if (queue !== undefined) return partitionsOfQueue(session, redis, queue);
  const { namespace } = session.config;
  return (await listQueues(redis, namespace)).flatMap((layout) => partitionsOf(namespace, layout));
}

async function report(
  session: Session,
  redis: Redis,
  { ref, all, repair, yes }: Flags & { readonly ref: PartitionRef; readonly all: readonly PartitionRef[] },
): Promise<Report> {
  const found = await examine(redis, ref, { clock: systemClock, all });
  const { queue, partition } = ref;
  const plan = found.flaws.filter((flaw) => flaw.repair !== undefined);
  if (repair) for (const text of planLines(line`${queue}:${partition}`, plan)) session.out.note(text);
  if (!repair || !yes || plan.length === 0) return { queue, partition, ...found, flaws: found.flaws.map(told) };
  const repaired = await mend(redis, plan, { ref, all, nowMs: systemClock.wallMs() });
  // What is left is looked at again rather than concluded: others work on this partition as well.
  const after = await examine(redis, ref, { clock: systemClock, all });
  const flaws = [...repaired.map((flaw) => ({ ...told(flaw), repaired: true })), ...after.flaws.map(told)];
  return { queue, partition, ...after, flaws };
}

/** The keys of the namespace, and what is known of the schedules of its queues. */
async function controlReport(
  session: Session,
  redis: Redis,
  of: { readonly found: readonly Reported[] } & Required<Flags>,
): Promise<{ readonly control: readonly Told[]; readonly bookkeeping: Bookkeeping | undefined }> {
  const { namespace } = session.config;
  const control = (await examineControl(redis, namespace)).map(told);
  // With another type at one of those nothing in it can be looked at.
  if (control.some(isWrongType)) return { control, bookkeeping: undefined };
  const refs = of.found.flatMap(({ ref, report: { flaws } }) => (flaws.some(isWrongType) ? [] : [ref]));
  const look = { namespace, refs, clock: systemClock };
  const { counts, found } = await leftovers(redis, look);
  const plan = found.flatMap(({ flaw, left }) => (left ? [{ flaw, left }] : []));
  if (of.repair) {
    const where = line`namespace ${namespace}`;
    for (const text of planLines(
      where,
      plan.map(({ flaw }) => flaw),
    ))
      session.out.note(text);
  }
  if (!of.repair || !of.yes || plan.length === 0) {
    return { control: [...control, ...found.map(({ flaw }) => told(flaw))], bookkeeping: counts };
  }
  const repaired: Told[] = [];
  for (const { flaw, left } of plan) {
    if (await removeLeftover(redis, namespace, left)) repaired.push({ ...told(flaw), repaired: true });
  }
  const after = await leftovers(redis, look);
  return {
    control: [...control, ...repaired, ...after.found.map(({ flaw }) => told(flaw))],
    bookkeeping: after.counts,
  };
}

const isWrongType = ({ what }: Told): boolean => what === 'type';

/** What must only grow, of each partition that can be read at all. */
async function growths(redis: Redis, refs: readonly PartitionRef[]): Promise<ReadonlyMap<PartitionRef, Growth>> {
  const all = new Map<PartitionRef, Growth>();
  for (const ref of refs) {
    const readable = (await wrongTypes(redis, ref.keys).catch(() => [ref])).length === 0;
    const found = readable && (await growth(redis, ref).catch(() => undefined));
    if (found) all.set(ref, found);
  }
  return all;
}

/** What a repair does, told before it begins: one line per kind. */
function planLines(where: string, plan: readonly Flaw[]): readonly string[] {
  const kinds = new Map<string, Flaw[]>();
  for (const flaw of plan) kinds.set(flaw.what, [...(kinds.get(flaw.what) ?? []), flaw]);
  return [...kinds.values()].map(
    (same) => `plan for ${where}: ${line`${same.length} × ${same[0]?.what}: ${same[0]?.repair}`}`,
  );
}

function told({ damage, ...flaw }: Flaw): Told {
  return flaw;
}

function lines(paint: Paint, { queue, partition, looked, atomic, flaws, more }: Report): readonly string[] {
  const how = atomic ? 'at one moment' : 'page by page';
  const state = flaws.length === 0 ? paint.green('no damage') : paint.red(counted(flaws.length, 'flaw'));
  const head = `${line`${queue}:${partition}`}  ${state}${line`, ${looked} checked ${how}`}`;
  return [
    head,
    ...flawLines(paint, flaws),
    ...(more ? ['  there is more damage than one look reports: repair, then look again'] : []),
  ];
}

function flawLines(paint: Paint, flaws: readonly Told[]): readonly string[] {
  const rest = flaws.length - LINES_MAX;
  return [
    ...flaws.slice(0, LINES_MAX).map((flaw) => flawLine(paint, flaw)),
    ...(rest > 0 ? [line`  … and ${rest} more; --json has all of them`] : []),
  ];
}

/** What is kept beside the jobs, and how much of it belongs to nothing any more. */
function bookkeepingLine(of: Bookkeeping): string {
  const excess = (count: number, what: string) => (count === 0 ? '' : ` (${count} ${what})`);
  const timed =
    of.sessions === undefined
      ? 'sessions and Idempotency-Keys not counted: this user may not use SCAN'
      : `${counted(of.sessions, 'session')}, ${counted(of.idempotencyKeys ?? 0, 'Idempotency-Key')}${excess(of.withoutTtl ?? 0, 'of both without a time to live')}`;
  return [
    `bookkeeping: ${counted(of.settings, 'setting')}${excess(of.settingsWithoutQueue, 'without a queue')}`,
    `${of.tokens} of ${counted(of.tokensMax, 'token')}`,
    `${counted(of.processes, 'process', 'processes')}${excess(of.processesWithoutBeat, 'without a heartbeat')}`,
    timed,
    `${counted(of.firedSchedules, 'schedule')} that fired${excess(of.firedSchedulesGone, 'gone')}`,
  ].join(', ');
}

function flawLine(paint: Paint, { invariant, what, name, means, repair, repaired }: Told): string {
  const mark = repaired
    ? paint.green('repaired')
    : repair === undefined
      ? paint.yellow('not repaired by fsck')
      : paint.red('can be repaired');
  return `  ${invariant.padEnd(3)}  ${line`${[what, name].join(' ').trim()}: ${means}`} [${mark}]`;
}

function summary(of: { left: number; repaired: number; partitions: number; planned: boolean; more: boolean }): string {
  if (of.left === 0 && of.repaired === 0) return line`no damage found in ${counted(of.partitions, 'partition')}`;
  const repaired = of.repaired > 0 ? line`${of.repaired} repaired, ` : '';
  const next = of.planned ? '; nothing was changed: add --yes to carry out the plan' : '';
  return line`${repaired}${of.left} left${next}`;
}
