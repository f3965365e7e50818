/**
 * `fsck [queue]`: looks whether everything in Redis is whole, and says what each flaw means. With `--repair` it tells
 * what it would do, and with `--yes` does it: only what a script can prove to be safe at that moment. The rest is left
 * to a person.
 */

import type { Command } from 'commander';
import { systemClock } from '../../core/clock.ts';
import { DuestreamError } from '../../core/errors.ts';
import { counted } from '../../core/plain-words.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { wrongTypes } from '../../redis/connection/wrong-type.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import type { Flaw } from '../../redis/repair/flaws.ts';
import { type Examination, examine, examineControl, growthFlaws } from '../../redis/repair/fsck.ts';
import { type Growth, growth } from '../../redis/repair/growth.ts';
import { repair as repairDamage } from '../../redis/repair/repair.ts';
import { listQueues, partitionsOf } from '../../redis/transitions/queues.ts';
import { weighAll } from '../../redis/transitions/quotas.ts';
import { type Exit, type Register, withExamples } from '../register.ts';
import { partitionsOfQueue, type Session, withRedis } from '../session.ts';
import type { Paint } from '../terminal/paint.ts';
import { line } from '../terminal/text.ts';

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
  const { namespace } = session.config;
  const { reports, control } = await withRedis(session, async (redis) => {
    const refs = await refsOf(session, redis, queue);
    const before = await growths(redis, refs);
    const sinceMs = systemClock.monotonicMs();
    const examined: Report[] = [];
    for (const ref of refs) examined.push(await report(session, redis, { ref, repair, yes }));
    await systemClock.sleep(Math.max(0, GROWTH_APART_MS - (systemClock.monotonicMs() - sinceMs)));
    const now = await growths(redis, refs);
    const reports = examined.map((one, at) => ({
      ...one,
      flaws: [...one.flaws, ...growthFlaws(before[at], now[at]).map(told)],
    }));
    return { reports, control: queue === undefined ? await examineControl(redis, namespace) : [] };
  });
  const left = [...control, ...reports.flatMap(({ flaws }) => flaws.filter(({ repaired }) => repaired !== true))]
    .length;
  const repaired = reports.flatMap(({ flaws }) => flaws.filter((flaw) => flaw.repaired === true)).length;
  const more = reports.some((one) => one.more);
  session.out.answer(
    { ok: left === 0 && !more, left, repaired, partitions: reports, control: control.map(told) },
    () => [
      ...reports.flatMap((one) => lines(session.out.paint, one)),
      ...control.map((flaw) => flawLine(session.out.paint, flaw)),
      summary({ left, repaired, partitions: reports.length, planned: repair && !yes, more }),
    ],
  );
  return left === 0 && !more ? 0 : 1;
}

async function refsOf(session: Session, redis: Redis, queue: string | undefined): Promise<readonly PartitionRef[]> {
  if (queue !== undefined) return partitionsOfQueue(session, redis, queue);
  const { namespace } = session.config;
  return (await listQueues(redis, namespace)).flatMap((layout) => partitionsOf(namespace, layout));
}

async function report(
  session: Session,
  redis: Redis,
  { ref, repair, yes }: { readonly ref: PartitionRef; readonly repair: boolean; readonly yes: boolean },
): Promise<Report> {
  const found = await examine(redis, ref, { clock: systemClock });
  const { queue, partition } = ref;
  const plan = found.flaws.filter((flaw) => flaw.repair !== undefined);
  if (repair) for (const text of planLines(ref, plan)) session.out.note(text);
  if (!repair || !yes || plan.length === 0) return { queue, partition, ...found, flaws: found.flaws.map(told) };
  const damages = plan.flatMap(({ damage }) => damage ?? []);
  const replies = await repairDamage(redis, ref, damages);
  const isWeighed = plan.some(({ what }) => what === 'misweighed') && (await weighAll(redis, ref, 'note'));
  const repaired = plan.filter(({ damage, what }) =>
    damage === undefined ? what === 'misweighed' && isWeighed : replies.get(damage) === 'repaired',
  );
  // What is left is looked at again rather than concluded: others work on this partition as well.
  const after = await examine(redis, ref, { clock: systemClock });
  const flaws = [...repaired.map((flaw) => ({ ...told(flaw), repaired: true })), ...after.flaws.map(told)];
  return { queue, partition, ...after, flaws };
}

/** What must only grow, of each partition that can be read at all. */
async function growths(redis: Redis, refs: readonly PartitionRef[]): Promise<readonly (Growth | undefined)[]> {
  const all: (Growth | undefined)[] = [];
  for (const ref of refs) {
    const readable = (await wrongTypes(redis, ref.keys)).length === 0;
    all.push(readable ? await growth(redis, ref) : undefined);
  }
  return all;
}

/** What a repair does, told before it begins: one line per kind. */
function planLines({ queue, partition }: PartitionRef, plan: readonly Flaw[]): readonly string[] {
  const kinds = new Map<string, Flaw[]>();
  for (const flaw of plan) kinds.set(flaw.what, [...(kinds.get(flaw.what) ?? []), flaw]);
  return [...kinds.values()].map(
    (same) => line`plan for ${queue}:${partition}: ${same.length} × ${same[0]?.what}: ${same[0]?.repair}`,
  );
}

function told({ damage, ...flaw }: Flaw): Told {
  return flaw;
}

function lines(paint: Paint, { queue, partition, looked, atomic, flaws, more }: Report): readonly string[] {
  const how = atomic ? 'at one moment' : 'page by page';
  const state = flaws.length === 0 ? paint.green('no damage') : paint.red(counted(flaws.length, 'flaw'));
  const head = `${line`${queue}:${partition}`}  ${state}${line`, ${looked} checked ${how}`}`;
  const rest = flaws.length - LINES_MAX;
  return [
    head,
    ...flaws.slice(0, LINES_MAX).map((flaw) => flawLine(paint, flaw)),
    ...(rest > 0 ? [line`  … and ${rest} more; --json has all of them`] : []),
    ...(more ? ['  there is more damage than one look reports: repair, then look again'] : []),
  ];
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
