/** Whether every schedule can fire. Nobody notices a schedule that stopped silently, unless this check finds it. */
import type { StoredSchedule } from '../../client/schedules/schedule-places.ts';
import { createScheduleStore } from '../../client/schedules/schedule-store.ts';
import { viewOf } from '../../client/schedules/schedule-view.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { counted } from '../../kernel/humanize.ts';
import { inTurns, type Steps } from '../../kernel/steps.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { naming } from '../../redis/connection/wrong-type.ts';
import { askEach } from '../../redis/read/each-queue.ts';
import { listQueues } from '../../redis/scripts/queues.ts';
import { allDefinitions } from '../../redis/scripts/schedules.ts';
import { firedSince } from '../../schedule/progress.ts';
import { type Definition, decodeDefinition } from '../../schedule/text.ts';
import { type Finding, leavingOut, type Subject } from './check.ts';

const LOOKED_MAX = 10_000;
/** A leader that was away for a moment is no finding. */
const LATE_MS = 60_000;
/** Nor are clocks of two servers that differ a little. */
const AHEAD_MS = 60_000;

const ILLS = {
  unreadable: ['cannot be read', 'put it again, or remove it with "duestream schedules rm"'],
  homeless: ['has a queue that is not declared', 'put it again: that declares its queue'],
  unarmed: [
    'is unknown to the leader of its queue, so it does not fire',
    'put it again: the same definition is enough',
  ],
  lost: ['has a state that cannot be read', 'remove it with "duestream schedules rm" and put it again'],
  ahead: [
    'has fired up to an instant in the future, because a clock went back, and fires nothing until then',
    'compare the clocks of the servers; to let it fire sooner, remove it with "duestream schedules rm" and put it again',
  ],
  late: ['is overdue and nobody fires it', 'start a daemon that leads its queue, or look at its log'],
} as const;

type Ill = keyof typeof ILLS;

export async function schedules({ redis, namespace }: Subject): Promise<Finding> {
  const ill = new Map<Ill, string[]>();
  const found = (what: Ill, name: string) => {
    const names = ill.get(what);
    if (names) names.push(name);
    else ill.set(what, [name]);
  };
  const readable = await read(redis, namespace, (name) => found('unreadable', name));
  const declared = new Set((await listQueues(redis, namespace)).map(({ queue }) => queue));
  const housed = readable.filter(({ schedule }) => declared.has(schedule.queue));
  for (const { schedule } of readable) if (!declared.has(schedule.queue)) found('homeless', schedule.name);
  const store = createScheduleStore({ redis, namespace });
  const [stored, nowMs] = [await store.findAll(housed), await store.nowMs()];
  const byQueue = new Map<string, StoredSchedule[]>();
  for (const one of stored) {
    const some = byQueue.get(one.ref.queue) ?? [];
    byQueue.set(one.ref.queue, some);
    some.push(one);
  }
  const asked = [...byQueue].map(([queue, some]) => ({ queue, some }));
  const look = { all: asked, unread: [] };
  const { found: unwell, unread } = await askEach(look, ({ some }) => unfired(redis, some, nowMs));
  for (const [name, what] of unwell.flat()) found(what, name);
  const all = readable.length + (ill.get('unreadable')?.length ?? 0);
  if (ill.size === 0) {
    const well = all === 0 ? 'none' : `${counted(all, 'schedule')}, each known to its leader`;
    return leavingOut({ status: 'ok', saw: well }, unread);
  }
  const some = [...ill].map(([what, names]) => `${names.length} of ${all} ${ILLS[what][0]}, such as ${show(names[0])}`);
  const advice = [...ill.keys()].map((what) => ILLS[what][1]).join('; ');
  return leavingOut({ status: 'warn', saw: some.join('; '), advice }, unread);
}

async function read(
  redis: Redis,
  namespace: string,
  unreadable: (name: string) => void,
): Promise<readonly Definition[]> {
  const readable = new Map<string, Definition>();
  for await (const page of allDefinitions(redis, namespace)) {
    for (const [name, content] of page) {
      try {
        readable.set(name, decodeDefinition(name, content));
      } catch (error) {
        if (!(error instanceof DuestreamError)) throw error;
        unreadable(name);
      }
    }
    if (readable.size >= LOOKED_MAX) break;
  }
  return [...readable.values()];
}

/** Those that have an instant to come and no look, or one that is long past. */
async function unfired(
  redis: Redis,
  stored: readonly StoredSchedule[],
  nowMs: number,
): Promise<readonly (readonly [name: string, what: Ill])[]> {
  const looks = await Promise.all(
    stored.map(({ ref: { keys }, definition }) =>
      naming(redis, [keys], redis.zscore(keys.fires, definition.schedule.name)),
    ),
  );
  const found: (readonly [name: string, what: Ill])[] = [];
  for (const [at, one] of stored.entries()) {
    const ill = await inTurns(illOf(one, looks[at] ?? undefined, nowMs));
    if (ill !== undefined) found.push([one.definition.schedule.name, ill]);
  }
  return found;
}

function* illOf(one: StoredSchedule, look: string | undefined, nowMs: number): Steps<Ill | undefined> {
  if (one.fired === undefined) return 'unarmed';
  if (one.fired.unreadable !== undefined) return 'lost';
  if ((yield* viewOf(one, nowMs)).nextMs === undefined) return undefined;
  if (look === undefined) return 'unarmed';
  if (firedSince(one.definition.schedule, one.fired, nowMs).reachedMs - nowMs > AHEAD_MS) return 'ahead';
  // 0 means at once: then it counts since when the definition holds.
  return nowMs - Math.max(Number(look), one.definition.schedule.sinceMs) > LATE_MS ? 'late' : undefined;
}
