/**
 * The check of `doctor` that looks at queues with limits. Jobs that wait in line are as they should be; the check warns where
 * they wait although a slot is free: in one partition beside others that have room, in a group whose slots a dead worker has, or
 * where the partitions cannot share a limit.
 */

import { type ProcessesById, processesOf } from '../../client/queues/processes.ts';
import { limitsHolding, partitionSeen, type SeenPartition } from '../../client/queues/why.ts';
import { isGated, unknownToOlder } from '../../job/gate.ts';
import { groupOf } from '../../job/labels.ts';
import { idleRate, rateText } from '../../job/rate.ts';
import {
  type DefinedLimit,
  isSame,
  parseShared,
  type Shared,
  type SharedLimitOptions,
  sharedText,
} from '../../job/shared-limit.ts';
import { durationText, show } from '../../kernel/duration.ts';
import { counted, span } from '../../kernel/humanize.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { limitKeys, type PartitionRef } from '../../redis/keys.ts';
import { askEach } from '../../redis/read/each-queue.ts';
import { hasWaiting, holdsOf, otherShare } from '../../redis/scripts/gates.ts';
import { ledgerRows, rowOf } from '../../redis/scripts/lending.ts';
import { listQueues, olderBeside, partitionsOf, type QueueLayout, sharedLimitsIn } from '../../redis/scripts/queues.ts';
import { consumers, ownPending, readEntries } from '../../redis/scripts/ready.ts';
import { type Finding, leavingOut, type Subject } from './check.ts';

const QUEUES_MAX = 256;
const EXAMPLES_MAX = 5;
const GROUPS_MAX = 3;
/** Of each dead worker so many entries are looked at, the oldest. */
const ENTRIES_MAX = 100;
/** Longer than workers need to take over what a dead one holds, and than a partition is full by chance. */
const LONG_MS = 60_000;

interface Flaw {
  readonly text: string;
  readonly advice: string;
}

interface Limited {
  readonly layout: QueueLayout;
  readonly refs: readonly PartitionRef[];
  readonly all: readonly SeenPartition[];
}

export async function limits({ redis, namespace, sharedLimits = {} }: Subject): Promise<Finding> {
  const layouts = (await listQueues(redis, namespace)).filter(isGated).slice(0, QUEUES_MAX);
  const said = await otherFiles(redis, namespace, sharedLimits);
  if (layouts.length === 0 && said.length === 0) return { status: 'ok', saw: 'no queue has limits' };
  const processes = await processesOf(redis, namespace);
  const named = await sharedFlaws(redis, namespace, layouts);
  const answered = await askEach({ all: layouts, unread: [] }, async (layout): Promise<readonly Flaw[]> => {
    const refs = partitionsOf(namespace, layout);
    const all = await Promise.all(refs.map((ref) => partitionSeen(redis, ref)));
    const queue = { layout, refs, all };
    const dead = await heldByDead(redis, queue, processes);
    const own = [...undivided(layout), ...idle(layout), ...uneven(queue), ...outdated(layout, processes)];
    return [...own, ...(await misshared(redis, queue)), ...dead];
  });
  const found = [...said, ...named, ...answered.found.flat()];
  if (found.length === 0) {
    const queues = counted(answered.found.length, 'queue');
    const well = `${queues} with limits; no slot is free while a job waits for it`;
    return leavingOut({ status: 'ok', saw: well }, answered.unread);
  }
  const more = found.length > EXAMPLES_MAX ? [`and ${found.length - EXAMPLES_MAX} more`] : [];
  const flawed: Finding = {
    status: 'warn',
    saw: [...found.slice(0, EXAMPLES_MAX).map(({ text }) => text), ...more].join('; '),
    advice: [...new Set(found.map(({ advice }) => advice))].join('; '),
  };
  return leavingOut(flawed, answered.unread);
}

/** A process of an older version beside a queue whose limits it does not know: it starts nothing there, whatever it was started for. */
function outdated(layout: QueueLayout, processes: ProcessesById): readonly Flaw[] {
  const { queue } = layout;
  const what = unknownToOlder(layout);
  const [older] = what
    ? olderBeside(
        [...processes].map(([id, identity]) => ({ id, identity })),
        queue,
      )
    : [];
  if (!older) return [];
  const { role, id, host, version = 'of before 0.2.0' } = older;
  return [
    {
      text: `${show(queue)} has ${what}, and ${role} ${id} on ${host} has duestream ${version} and starts none of its jobs`,
      advice: `bring all processes of ${queue} to one version; "duestream queues workers" says which version each one has`,
    },
  ];
}

/** Its leader compares them each minute, so only what was written just now, or has no leader, differs. */
async function misshared(redis: Redis, { layout: { queue }, refs }: Limited): Promise<readonly Flaw[]> {
  const shares = await Promise.all(refs.map((ref) => otherShare(redis, ref)));
  return shares.flatMap((share, partition) =>
    share === undefined
      ? []
      : [
          {
            text: `${show(queue)}: partition ${partition} has ${share}`,
            advice: `see that a daemon leads ${queue}: it writes the share that the registry says within a minute`,
          },
        ],
  );
}

/** Limits that this file says otherwise than whoever said them last: of two files the later start of a daemon counts. */
async function otherFiles(
  redis: Redis,
  namespace: string,
  said: Readonly<Record<string, SharedLimitOptions>>,
): Promise<readonly Flaw[]> {
  const names = Object.keys(said);
  if (names.length === 0) return [];
  const { all } = await sharedLimitsIn(redis, namespace);
  return all.flatMap((limit) => {
    const own = said[limit.name] && parseShared(limit.name, said[limit.name]);
    if (!own || isSame(own, limit)) return [];
    return [
      {
        text: `limit ${limit.name} is ${sharedText(limit)}, as ${limit.by} said ${new Date(limit.atMs).toISOString()}, and this file says ${sharedText(own)}`,
        advice: `say the same in all files, and start a daemon, or set it: duestream limits set ${limit.name} ${flagsOf(own)}`,
      },
    ];
  });
}

function flagsOf({ rate, concurrency }: Shared): string {
  if (rate === undefined) return `--concurrency ${concurrency}`;
  return `--rate ${rateText({ ...rate, burst: 1 })}${rate.burst === 1 ? '' : ` --burst ${rate.burst}`}`;
}

/** Limits that queues share: one that is named and not defined, and places that a ledger has lent to a partition that does not name it. */
async function sharedFlaws(redis: Redis, namespace: string, layouts: readonly QueueLayout[]): Promise<readonly Flaw[]> {
  const sharing = layouts.filter(({ limits: names = [] }) => names.length > 0);
  const { all } = await sharedLimitsIn(redis, namespace);
  const undefinedOnes = sharing.flatMap(({ queue, limits: names = [] }) =>
    names
      .filter((name) => all.every((limit) => limit.name !== name))
      .map((name) => ({
        text: `${show(queue)} names limit ${name}, which is not defined, so none of its jobs start`,
        advice: `define it: duestream limits set ${name} --rate 10/s; or take it from the queue: duestream queues set ${queue} --limits none`,
      })),
  );
  const strays = await Promise.all(all.map((limit) => straysOf(redis, namespace, limit, sharing)));
  return [...undefinedOnes, ...strays.flat()];
}

async function straysOf(
  redis: Redis,
  namespace: string,
  { name, concurrency }: DefinedLimit,
  sharing: readonly QueueLayout[],
): Promise<readonly Flaw[]> {
  if (concurrency === undefined) return [];
  const rows = sharing.flatMap((layout) =>
    (layout.limits ?? []).includes(name) ? partitionsOf(namespace, layout).map(rowOf) : [],
  );
  const lent = await ledgerRows(redis, limitKeys(namespace, name));
  const strays = lent.filter(({ row, share }) => share > 0 && !rows.includes(row));
  const places = strays.reduce((sum, { share }) => sum + share, 0);
  if (places === 0) return [];
  return [
    {
      text: `limit ${name} has lent ${counted(places, 'place')} of ${concurrency} to ${strays.map(({ row }) => row).join(', ')}, which does not name it any more`,
      advice: `take back what nobody uses there: duestream limits check ${name}`,
    },
  ];
}

/** Each partition runs one job at least, whatever the limit: `queues set` refuses such a limit, another program may write it. */
function undivided({ queue, concurrency = 0, partitions }: QueueLayout): readonly Flaw[] {
  if (concurrency === 0 || concurrency >= partitions) return [];
  return [
    {
      text: `${show(queue)} has concurrency ${concurrency} and ${partitions} partitions, and each of them runs one job at a time`,
      advice: `set a concurrency of ${partitions} or more: duestream queues set ${queue} --concurrency ${partitions}; or give all jobs that are to be limited one group, and set --per-group ${concurrency}`,
    },
  ];
}

/** Of two rates one never counts. */
function idle({ queue, rate }: QueueLayout): readonly Flaw[] {
  const found = idleRate(rate);
  if (!found) return [];
  const [faster, slower] = [rateText(found.idle), rateText(found.slower)];
  return [
    {
      text: `${show(queue)} has the rates ${faster} and ${slower}, and ${faster} never counts: ${slower} lets no more than ${found.slower.burst} start at once`,
      advice: `give ${slower} of ${queue} a larger burst, such as { limit: ${found.slower.limit}, per: '${durationText(found.slower.perMs)}', burst: ${10 * found.idle.burst} }, or one rate alone`,
    },
  ];
}

/** A partition has waited at its share for long, and another has room. */
function uneven({ layout: { queue }, all }: Limited): readonly Flaw[] {
  const stuck = all.flatMap((one, partition) => {
    const limit = SHARED.get(limitsHolding(one)[0]);
    const waitMs = one.nowMs - (one.waitingSinceMs ?? one.nowMs);
    return limit !== undefined && waitMs >= LONG_MS ? [{ partition, limit, waitMs }] : [];
  });
  const idle = all.filter((one) => one.waiting === 0 && !one.paused && hasRoom(one)).length;
  if (stuck.length === 0 || idle === 0) return [];
  const longest = stuck.reduce((one, other) => (other.waitMs > one.waitMs ? other : one));
  const others = stuck.length > 1 ? ` and ${counted(stuck.length - 1, 'other')}` : '';
  return [
    {
      text: `${show(queue)}: partition ${longest.partition}${others} has waited at its share of the ${longest.limit} for ${span(longest.waitMs)}, while ${idle} of ${all.length} partitions have room`,
      advice: `raise the ${longest.limit} of ${queue}, use one partition, or put the jobs that are to be limited into one group with --per-group: an unused share is not lent to another partition`,
    },
  ];
}

/** The limits that are divided among partitions. */
const SHARED: ReadonlyMap<unknown, string> = new Map([
  ['queue-full', 'concurrency'],
  ['rate', 'rate'],
]);

const hasRoom = ({ gate, ready, running, nowMs }: SeenPartition): boolean =>
  gate !== undefined &&
  (gate.concurrency === 0 || ready + running < gate.concurrency) &&
  (gate.intervalUs === 0 || gate.nextTurnMs <= nowMs);

/** Groups that are full, with jobs of a worker that is dead and somebody in line. */
async function heldByDead(
  redis: Redis,
  { layout: { queue }, refs, all }: Limited,
  processes: ProcessesById,
): Promise<readonly Flaw[]> {
  const groups = new Set<string>();
  for (const [at, ref] of refs.entries()) {
    const { waiting = 0, running = 0, gate } = all[at] ?? {};
    if (waiting === 0 || running === 0 || !gate || gate.perGroup === 0) continue;
    for (const group of await groupsOfDead(redis, ref, processes)) {
      const isFull = (await holdsOf(redis, ref, { group, limit: gate.perGroup })) >= gate.perGroup;
      if (isFull && (await hasWaiting(redis, ref, group))) groups.add(group);
    }
  }
  if (groups.size === 0) return [];
  const names = [...groups].slice(0, GROUPS_MAX).map((group) => show(group));
  const which = `${names.join(', ')}${groups.size > GROUPS_MAX ? ', …' : ''}`;
  return [
    {
      text: `${show(queue)}: jobs of dead workers have filled ${counted(groups.size, 'group')} for more than ${span(LONG_MS)}: ${which}`,
      advice: `start a worker of ${queue}, which takes over what dead ones hold; if workers live, look at their logs`,
    },
  ];
}

/** The groups of entries that nobody has taken over although their worker has been silent for long. */
async function groupsOfDead(
  redis: Redis,
  { keys }: PartitionRef,
  processes: ProcessesById,
): Promise<ReadonlySet<string>> {
  const groups = new Set<string>();
  for (const { name, pending } of await consumers(redis, keys)) {
    if (pending === 0 || processes.get(name) !== undefined) continue;
    const entries = await ownPending(redis, keys, { consumer: name, idleMs: LONG_MS, limit: ENTRIES_MAX });
    for (const { member } of await readEntries(redis, keys, entries)) {
      const group = groupOf(member);
      if (group !== undefined) groups.add(group);
    }
  }
  return groups;
}
