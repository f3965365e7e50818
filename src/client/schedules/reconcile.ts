/**
 * Brings the schedules that came from a file in step with it: creates, changes, and removes those that left it. What a
 * call has put is never touched, also when the file has the same name.
 *
 * Each step alone is idempotent and names a whole definition, so two processes with the same file may do this at once,
 * and one that was cut off is completed by the next.
 */

import type { Redis } from '../../redis/connection/connect.ts';
import { allDefinitions } from '../../redis/scripts/schedules.ts';
import type { ScheduleInput } from '../../schedule/input.ts';
import { createScheduleStore } from './schedule-store.ts';

/** What was done, each list by name. */
export interface Reconciled {
  readonly created: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
  readonly unchanged: readonly string[];
  /** In the file, but put by a call, or by nobody knows whom: left as they are. */
  readonly kept: readonly string[];
}

/** Few round trips wait for each other, and no more than these at once. */
const AT_ONCE = 50;

/**
 * @param wanted the schedules of the file, all of them checked
 * @throws DuestreamError `unavailable` in an outage, when the same call may be repeated
 */
export async function reconcileSchedules(
  redis: Redis,
  { namespace, wanted }: { readonly namespace: string; readonly wanted: ReadonlyMap<string, ScheduleInput> },
): Promise<Reconciled> {
  const store = createScheduleStore({ redis, namespace });
  const held = await heldIn(redis, namespace);
  const done: Record<'created' | 'changed' | 'unchanged' | 'removed', string[]> = {
    created: [],
    changed: [],
    unchanged: [],
    removed: [],
  };
  const kept = [...wanted.keys()].filter((name) => held.get(name) === false);
  const mine = [...wanted].filter(([name]) => held.get(name) !== false);
  const left = [...held].flatMap(([name, fromFile]) => (fromFile && !wanted.has(name) ? [name] : []));
  await inTurns(mine, async ([name, input]) => {
    const { status } = await store.put(name, input, { source: 'file' });
    done[status].push(name);
  });
  await inTurns(left, async (name) => {
    if (await store.remove(name)) done.removed.push(name);
  });
  for (const names of [...Object.values(done), kept]) names.sort();
  return { ...done, kept };
}

/** Whether each that there is came from the file. */
async function heldIn(redis: Redis, namespace: string): Promise<ReadonlyMap<string, boolean>> {
  const held = new Map<string, boolean>();
  for await (const page of allDefinitions(redis, namespace)) {
    for (const [name, content] of page) held.set(name, isFromFile(content));
  }
  return held;
}

/** Only who wrote it is asked, so that one that nobody can read is repaired by the file it came from. */
function isFromFile(content: string): boolean {
  try {
    const { source }: { source?: unknown } = JSON.parse(content);
    return source === 'file';
  } catch {
    return false;
  }
}

async function inTurns<T>(all: readonly T[], act: (one: T) => Promise<void>): Promise<void> {
  for (let from = 0; from < all.length; from += AT_ONCE) {
    const ended = await Promise.allSettled(all.slice(from, from + AT_ONCE).map(act));
    const failed = ended.find((one) => one.status === 'rejected');
    if (failed) throw failed.reason;
  }
}
