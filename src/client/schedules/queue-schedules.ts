/** The schedules of one queue, for those who remove it. One that nobody can read still says where its jobs would go. */
import { DuestreamError } from '../../kernel/errors.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { allDefinitions } from '../../redis/scripts/schedules.ts';
import { createScheduleStore } from './schedule-store.ts';

/** Their names, in order. */
export async function schedulesOfQueue(redis: Redis, namespace: string, queue: string): Promise<readonly string[]> {
  const names = new Set<string>();
  for await (const page of allDefinitions(redis, namespace)) {
    for (const [name, content] of page) if (queueOf(content) === queue) names.add(name);
  }
  return [...names].sort();
}

/** Removes definitions; jobs that they made stay. */
export async function removeSchedules(redis: Redis, namespace: string, names: readonly string[]): Promise<void> {
  const store = createScheduleStore({ redis, namespace });
  for (const name of names) await store.remove(name);
}

/** Has schedules looked at again whose partitions were removed under them. */
export async function rearmSchedules(redis: Redis, namespace: string, names: readonly string[]): Promise<void> {
  const store = createScheduleStore({ redis, namespace });
  for (const name of names) {
    const { input, source } = (await readable(store.definitionOf(name))) ?? {};
    if (input) await store.put(name, input, { source });
  }
}

/** What nobody can read fires nowhere. */
function readable<T>(definition: Promise<T>): Promise<T | undefined> {
  return definition.catch((error: unknown) => {
    if (error instanceof DuestreamError && error.code === 'bad-input') return undefined;
    throw error;
  });
}

function queueOf(content: string): unknown {
  try {
    const { schedule }: { schedule?: { queue?: unknown } } = JSON.parse(content);
    return schedule?.queue;
  } catch {
    return undefined;
  }
}
