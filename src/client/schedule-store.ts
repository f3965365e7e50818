/**
 * Definitions of schedules: put, found, paused, removed. Every call names a whole definition, so the second identical
 * call changes nothing, and a lost reply is simply asked for again.
 */
import { DuestreamError } from '../core/errors.ts';
import { defineQueue } from '../core/queue.ts';
import { parseScheduleName, type Schedule } from '../core/schedule.ts';
import type { ScheduleInput } from '../core/schedule-input.ts';
import {
  type Definition,
  decodeDefinition,
  defineSchedule,
  encodeDefinition,
  firesAlike,
  isSame,
  type Source,
} from '../core/schedule-text.ts';
import type { Redis } from '../redis/connect.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { declareQueue, findQueue, type QueueLayout } from '../redis/queues.ts';
import {
  arm,
  definitions,
  deleteDefinition,
  disarm,
  type Fired,
  firedOf,
  partitionOfSchedule,
  writeDefinition,
} from '../redis/schedules.ts';

/** What a `put` did. */
export interface ScheduleChange {
  readonly name: string;
  /** `unchanged`: the very same definition was there. */
  readonly status: 'created' | 'changed' | 'unchanged';
}

export interface StoredSchedule {
  readonly definition: Definition;
  /** Undefined before its first look. */
  readonly fired: Fired | undefined;
  readonly ref: PartitionRef;
}

interface Place {
  readonly ref: PartitionRef;
  readonly fired: Fired | undefined;
}

const MOVES_MAX = 5;
const CHUNK = 1000;

export function createScheduleStore({ redis, namespace }: { readonly redis: Redis; readonly namespace: string }) {
  async function refOf(queue: string, name: string): Promise<PartitionRef> {
    const { partitions } = defineQueue(queue);
    return partitionOfSchedule(namespace, await declareQueue(redis, { namespace, queue, partitions }), name);
  }

  /** For reading many: a queue's layout is asked for once. */
  async function knownRef(layouts: Map<string, QueueLayout>, { queue, name }: Schedule): Promise<PartitionRef> {
    const layout = layouts.get(queue) ??
      (await findQueue(redis, namespace, queue)) ?? { queue, partitions: 1, generation: 0 };
    layouts.set(queue, layout);
    return partitionOfSchedule(namespace, layout, name);
  }

  async function firedIn(ref: PartitionRef, all: readonly Definition[]): Promise<readonly StoredSchedule[]> {
    const found: StoredSchedule[] = [];
    for (let from = 0; from < all.length; from += CHUNK) {
      const slice = all.slice(from, from + CHUNK);
      const states = await firedOf(
        redis,
        ref,
        slice.map(({ schedule }) => schedule.name),
      );
      found.push(...slice.map((definition, at) => ({ definition, ref, fired: states[at] })));
    }
    return found;
  }

  async function armIn(queue: string, name: string): Promise<void> {
    for (let tries = 0; tries < MOVES_MAX; tries += 1) {
      if ((await arm(redis, await refOf(queue, name), name)) !== 'moved') return;
    }
    throw new DuestreamError('moved', `schedule ${name}: queue ${queue} is being resized; try again in a moment`);
  }

  async function definitionOf(name: string): Promise<Definition | undefined> {
    const [content] = await definitions(redis, namespace, [parseScheduleName(name)]);
    return content === undefined ? undefined : decodeDefinition(name, content);
  }

  /** One that cannot be read may be replaced. */
  async function replaceable(name: string): Promise<Definition | undefined> {
    try {
      return await definitionOf(name);
    } catch (error) {
      if (error instanceof DuestreamError && error.code === 'bad-input') return undefined;
      throw error;
    }
  }

  async function nowMs(): Promise<number> {
    const [seconds, micros] = await redis.time();
    return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  }

  /** A rule that changed counts from now; anything else goes on where it was. */
  async function put(name: string, input: ScheduleInput, source: Source = 'call'): Promise<ScheduleChange> {
    parseScheduleName(name);
    const before = await replaceable(name);
    const fresh = defineSchedule(name, input, { sinceMs: await nowMs(), source });
    const { sinceMs = 0 } = before?.schedule ?? {};
    const kept = before ? defineSchedule(name, input, { sinceMs, source }) : fresh;
    const left = await leftBy(before, fresh);
    const definition = before && firesAlike(before, kept) ? since(left?.fired?.reachedMs, kept) : fresh;
    await armIn(definition.schedule.queue, name);
    if (before && isSame(before, definition)) return { name, status: 'unchanged' };
    await writeDefinition(redis, namespace, name, encodeDefinition(definition));
    await armIn(definition.schedule.queue, name);
    if (left) await forget(name, left);
    return { name, status: before ? 'changed' : 'created' };
  }

  /** Where a schedule is armed, and how far it was fired there. */
  async function placeOf({ queue, name }: Pick<Schedule, 'queue' | 'name'>): Promise<Place | undefined> {
    const layout = await findQueue(redis, namespace, queue);
    if (!layout) return undefined;
    const ref = partitionOfSchedule(namespace, layout, name);
    const [fired] = await firedOf(redis, ref, [name]);
    return { ref, fired };
  }

  /** The place in another queue that a definition leaves. */
  async function leftBy(before: Definition | undefined, after: Definition): Promise<Place | undefined> {
    return before && before.schedule.queue !== after.schedule.queue ? placeOf(before.schedule) : undefined;
  }

  /** As it was read before its definition went; of one that was armed again since, another call's is the last word. */
  async function forget(name: string, { ref, fired }: Place): Promise<void> {
    if (fired) await disarm(redis, ref, name, fired.text);
  }

  return {
    nowMs,
    put,
    definitionOf,

    async find(name: string): Promise<StoredSchedule | undefined> {
      const definition = await definitionOf(name);
      if (!definition) return undefined;
      const ref = await refOf(definition.schedule.queue, name);
      const [fired] = await firedOf(redis, ref, [name]);
      return { definition, fired, ref };
    },

    /** The same for many, a few round trips per partition. */
    async findAll(all: readonly Definition[]): Promise<readonly StoredSchedule[]> {
      const layouts = new Map<string, QueueLayout>();
      const byRef = new Map<string, { readonly ref: PartitionRef; readonly of: Definition[] }>();
      for (const definition of all) {
        const ref = await knownRef(layouts, definition.schedule);
        const group = byRef.get(ref.keys.fired) ?? { ref, of: [] };
        byRef.set(ref.keys.fired, group);
        group.of.push(definition);
      }
      const found = await Promise.all([...byRef.values()].map(({ ref, of }) => firedIn(ref, of)));
      return found.flat();
    },

    /** Its jobs stay. @returns whether there was one */
    async remove(name: string): Promise<boolean> {
      const before = await replaceable(name);
      const left = before && (await placeOf(before.schedule));
      const removed = await deleteDefinition(redis, namespace, parseScheduleName(name));
      if (left) await forget(name, left);
      return removed;
    },

    /** `paused` undefined: it fires again, from now on. @throws DuestreamError `not-found` */
    async setPaused(name: string, paused: string | undefined): Promise<ScheduleChange> {
      const before = await definitionOf(name);
      if (!before) throw unknownSchedule(name);
      return put(name, { ...before.input, paused: paused === undefined ? undefined : paused || true }, before.source);
    },
  };
}

/** In another queue it goes on where it was: what became a job in the one before becomes none there. */
function since(reachedMs: number | undefined, { schedule, source, input }: Definition): Definition {
  const sinceMs = Math.max(schedule.sinceMs, reachedMs ?? 0);
  return defineSchedule(schedule.name, input, { sinceMs, source });
}

export function unknownSchedule(name: string): DuestreamError {
  return new DuestreamError(
    'not-found',
    `there is no schedule ${JSON.stringify(name)}; "duestream schedules ls" lists those that are`,
  );
}
