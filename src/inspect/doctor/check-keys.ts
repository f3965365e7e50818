/**
 * The check of `doctor` that looks at each key and may mend: whether all of a partition is whole, and what each flaw means. A
 * repair is told first and carried out only where a person agreed; then what is left is looked at again.
 */
import { systemClock } from '../../kernel/clock.ts';
import { counted } from '../../kernel/humanize.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { wrongTypes } from '../../redis/connection/wrong-type.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { type Answered, askEach, type UnreadQueue } from '../../redis/read/each-queue.ts';
import {
  type Examination,
  examine,
  examineControl,
  type Growth,
  growth,
  growthFlaws,
} from '../../redis/repair/examine.ts';
import type { Flaw } from '../../redis/repair/flaws.ts';
import { type Bookkeeping, leftovers, removeLeftover } from '../../redis/repair/leftovers.ts';
import { mend } from '../../redis/repair/repair.ts';
import type { Finding } from './check.ts';

export interface KeysAsked {
  readonly namespace: string;
  readonly refs: readonly PartitionRef[];
  /** Besides these: the keys of the namespace, and what is left there of queues that are gone. */
  readonly isAll: boolean;
  /** `plan` tells what a repair would do; `make` does it. */
  readonly repair: 'none' | 'plan' | 'make';
  /** Is told each repair before it begins. */
  readonly note: (line: string) => void;
}

/** What was found, and what is left of it after a repair. */
export interface KeysFound {
  readonly left: number;
  readonly repaired: number;
  readonly partitions: readonly PartitionReport[];
  readonly unread: readonly UnreadQueue[];
  readonly control: readonly KeyFlaw[];
  readonly bookkeeping: Bookkeeping | undefined;
}

export interface PartitionReport extends Omit<Examination, 'flaws'> {
  readonly queue: string;
  readonly partition: number;
  readonly flaws: readonly KeyFlaw[];
}

/** A flaw as it is printed: `repaired` only after a repair. */
export interface KeyFlaw extends Omit<Flaw, 'damage'> {
  readonly repaired?: boolean;
}

/** The two states that are compared for what fell are at least so far apart. */
const GROWTH_APART_MS = 2000;

export async function checkKeys(redis: Redis, asked: KeysAsked): Promise<KeysFound> {
  const { found, unread } = await reportsOf(redis, asked);
  const partitions = found.map((one) => one.report);
  const { control, bookkeeping } = asked.isAll
    ? await controlReport(redis, asked, found)
    : { control: [], bookkeeping: undefined };
  const all = [...control, ...partitions.flatMap(({ flaws }) => flaws)];
  const repaired = all.filter((flaw) => flaw.repaired === true).length;
  return { left: all.length - repaired, repaired, partitions, unread, control, bookkeeping };
}

/** What `doctor` says of it in one line. */
export function keysFinding({ left, repaired, partitions, unread }: KeysFound, { repair }: KeysAsked): Finding {
  const mended = repaired > 0 ? `${repaired} repaired, ` : '';
  const whole = `no damage found in ${counted(partitions.length, 'partition')}`;
  const saw = left + repaired === 0 ? whole : `${mended}${left} left`;
  if (left === 0 && unread.length === 0 && !partitions.some(({ more }) => more)) return { status: 'ok', saw };
  if (left === 0) return { status: 'fail', saw, advice: 'look again: not all could be looked at' };
  const advice = {
    none: '"duestream doctor --repair" tells what it would repair',
    plan: 'nothing was changed: add --yes to carry out the plan',
    make: 'repair the others by hand, then look again',
  };
  return { status: 'fail', saw, advice: advice[repair] };
}

interface Reported {
  readonly ref: PartitionRef;
  readonly report: PartitionReport;
}

/** A partition that does not answer, because its node is down, hides the damage of no other. */
async function reportsOf(redis: Redis, asked: KeysAsked): Promise<Answered<Reported>> {
  const { refs } = asked;
  const before = await growths(redis, refs);
  const sinceMs = systemClock.monotonicMs();
  const examined = await askEach(
    { all: refs, unread: [] },
    async (ref): Promise<Reported> => {
      // Closed tags are compared with those of partitions that can be read.
      const all = refs.filter((one) => one.queue === ref.queue && before.has(one));
      return { ref, report: await report(redis, asked, { ref, all }) };
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

async function report(
  redis: Redis,
  { repair, note }: KeysAsked,
  { ref, all }: { readonly ref: PartitionRef; readonly all: readonly PartitionRef[] },
): Promise<PartitionReport> {
  const found = await examine(redis, ref, { clock: systemClock, all });
  const { queue, partition } = ref;
  const plan = found.flaws.filter((flaw) => flaw.repair !== undefined);
  if (repair !== 'none') tellPlan(note, `${queue}:${partition}`, plan);
  if (repair !== 'make' || plan.length === 0) return { queue, partition, ...found, flaws: found.flaws.map(told) };
  const repaired = await mend(redis, plan, { ref, all, nowMs: systemClock.wallMs() });
  // What is left is looked at again rather than concluded: others work on this partition as well.
  const after = await examine(redis, ref, { clock: systemClock, all });
  const flaws = [...repaired.map((flaw) => ({ ...told(flaw), repaired: true })), ...after.flaws.map(told)];
  return { queue, partition, ...after, flaws };
}

/** The keys of the namespace, and what is known of the schedules of its queues. */
async function controlReport(
  redis: Redis,
  { namespace, repair, note }: KeysAsked,
  reported: readonly Reported[],
): Promise<{ readonly control: readonly KeyFlaw[]; readonly bookkeeping: Bookkeeping | undefined }> {
  const control = (await examineControl(redis, namespace)).map(told);
  // With another type at one of those nothing in it can be looked at.
  if (control.some(isWrongType)) return { control, bookkeeping: undefined };
  const refs = reported.flatMap(({ ref, report: { flaws } }) => (flaws.some(isWrongType) ? [] : [ref]));
  const look = { namespace, refs, clock: systemClock };
  const { counts, found } = await leftovers(redis, look);
  const plan = found.flatMap(({ flaw, left }) => (left ? [{ flaw, left }] : []));
  if (repair !== 'none')
    tellPlan(
      note,
      `namespace ${namespace}`,
      plan.map(({ flaw }) => flaw),
    );
  if (repair !== 'make' || plan.length === 0) {
    return { control: [...control, ...found.map(({ flaw }) => told(flaw))], bookkeeping: counts };
  }
  const repaired: KeyFlaw[] = [];
  for (const { flaw, left } of plan) {
    if (await removeLeftover(redis, namespace, left)) repaired.push({ ...told(flaw), repaired: true });
  }
  const after = await leftovers(redis, look);
  return {
    control: [...control, ...repaired, ...after.found.map(({ flaw }) => told(flaw))],
    bookkeeping: after.counts,
  };
}

const isWrongType = ({ what }: KeyFlaw): boolean => what === 'type';

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
function tellPlan(note: KeysAsked['note'], where: string, plan: readonly Flaw[]): void {
  const kinds = new Map<string, Flaw[]>();
  for (const flaw of plan) kinds.set(flaw.what, [...(kinds.get(flaw.what) ?? []), flaw]);
  for (const [what, same] of kinds) note(`plan for ${where}: ${same.length} × ${what}: ${same[0]?.repair}`);
}

function told({ damage, ...flaw }: Flaw): KeyFlaw {
  return flaw;
}
