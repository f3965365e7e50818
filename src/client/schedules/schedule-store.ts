/**
 * Definitions of schedules: put, found, paused, removed. Every call names a whole definition, so the second identical
 * call changes nothing, and a lost reply is simply asked for again.
 */
import { DuestreamError } from '../../core/errors.ts';
import { defineQueue } from '../../core/queue.ts';
import { parseScheduleName, type Schedule } from '../../core/recurring/schedule.ts';
import { successor } from '../../core/recurring/schedule-change.ts';
import type { ScheduleInput } from '../../core/recurring/schedule-input.ts';
import type { Fired } from '../../core/recurring/schedule-progress.ts';
import {
  type Definition,
  decodeDefinition,
  encodeDefinition,
  isSame,
  type Source,
} from '../../core/recurring/schedule-text.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { timeAt } from '../../redis/connection/server-clock.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { declareQueue, findQueue, listQueues } from '../../redis/transitions/queues.ts';
import {
  arm,
  define,
  definitions,
  disarm,
  firedOf,
  partitionNumber,
  partitionOfSchedule,
} from '../../redis/transitions/schedules.ts';
import { unknownSchedule } from './unknown-schedule.ts';

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

/** `ref` is undefined while its queue is not declared. */
export type FoundSchedule = Pick<StoredSchedule, 'definition' | 'fired'> & { readonly ref: PartitionRef | undefined };

interface Place {
  readonly ref: PartitionRef;
  readonly fired: Fired | undefined;
}

const MOVES_MAX = 5;
const CHANGES_MAX = 20;
const CHUNK = 1000;
const FEW_QUEUES = 20;

export function createScheduleStore({ redis, namespace }: { readonly redis: Redis; readonly namespace: string }) {
  async function refOf(queue: string, name: string): Promise<PartitionRef> {
    const { partitions } = defineQueue(queue);
    return partitionOfSchedule(namespace, await declareQueue(redis, { namespace, queue, partitions }), name);
  }

  /** For reading many: layouts are asked for once, and each partition is named once. */
  async function knownRefs(all: readonly Definition[]): Promise<(schedule: Schedule) => PartitionRef> {
    const queues = [...new Set(all.map(({ schedule }) => schedule.queue))];
    const known =
      queues.length > FEW_QUEUES
        ? await listQueues(redis, namespace)
        : await Promise.all(queues.map((queue) => findQueue(redis, namespace, queue)));
    const layouts = new Map(known.flatMap((layout) => (layout ? [[layout.queue, layout]] : [])));
    const refs = new Map<string, PartitionRef>();
    return ({ queue, name }) => {
      const layout = layouts.get(queue) ?? { queue, partitions: 1, generation: 0 };
      const place = `${queue} ${partitionNumber(layout, name)}`;
      const ref = refs.get(place) ?? partitionOfSchedule(namespace, layout, name);
      refs.set(place, ref);
      return ref;
    };
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

  async function textOf(name: string): Promise<string | undefined> {
    const [content] = await definitions(redis, namespace, [parseScheduleName(name)]);
    return content;
  }

  async function definitionOf(name: string): Promise<Definition | undefined> {
    const content = await textOf(name);
    return content === undefined ? undefined : decodeDefinition(name, content);
  }

  /** One that cannot be read may be replaced. */
  function replaceable(name: string, content: string | undefined): Definition | undefined {
    if (content === undefined) return undefined;
    try {
      return decodeDefinition(name, content);
    } catch (error) {
      if (error instanceof DuestreamError && error.code === 'bad-input') return undefined;
      throw error;
    }
  }

  /** Does something with what is stored, and again when somebody else has changed it meanwhile. */
  async function change<T>(name: string, work: (content: string | undefined) => Promise<T | 'lost'>): Promise<T> {
    for (let tries = 0; tries < CHANGES_MAX; tries += 1) {
      const done = await work(await textOf(name));
      if (done !== 'lost') return done;
    }
    throw new DuestreamError('moved', `schedule ${name}: other calls change it all the time; try again in a moment`);
  }

  async function nowMs(): Promise<number> {
    return Math.floor(await timeAt(redis));
  }

  async function putOver(
    content: string | undefined,
    { name, input, source }: { readonly name: string; readonly input: ScheduleInput; readonly source: Source },
  ): Promise<ScheduleChange | 'lost'> {
    const before = replaceable(name, content);
    const place = before && (await placeOf(before.schedule));
    const definition = successor(before, { name, input, source, nowMs: await nowMs() }, place?.fired);
    const left = before?.schedule.queue === definition.schedule.queue ? undefined : place;
    await armIn(definition.schedule.queue, name);
    if (before && isSame(before, definition)) return { name, status: 'unchanged' };
    const written = await define(redis, namespace, { name, before: content, after: encodeDefinition(definition) });
    if (written === 'changed') return 'lost';
    await armIn(definition.schedule.queue, name);
    if (left) await forget(name, left);
    return { name, status: before ? 'changed' : 'created' };
  }

  const put = (name: string, input: ScheduleInput, source: Source = 'call'): Promise<ScheduleChange> =>
    change(name, (content) => putOver(content, { name, input, source }));

  /** Where a schedule is armed, and how far it was fired there. */
  async function placeOf({ queue, name }: Pick<Schedule, 'queue' | 'name'>): Promise<Place | undefined> {
    const layout = await findQueue(redis, namespace, queue);
    if (!layout) return undefined;
    const ref = partitionOfSchedule(namespace, layout, name);
    const [fired] = await firedOf(redis, ref, [name]);
    return { ref, fired };
  }

  /** As it was read before its definition went; of one that was armed again since, another call's is the last word. */
  async function forget(name: string, { ref, fired }: Place): Promise<void> {
    if (fired?.unreadable === undefined) {
      if (fired) await disarm(redis, ref, name, fired.text);
      return;
    }
    // Its bytes cannot be named, and a put does not change them: what was put meanwhile gets a new state.
    await disarm(redis, ref, name);
    const since = replaceable(name, await textOf(name));
    if (since) await armIn(since.schedule.queue, name);
  }

  return {
    nowMs,
    put,
    definitionOf,

    /** Only reads: a queue that is not declared stays so. */
    async find(name: string): Promise<FoundSchedule | undefined> {
      const definition = await definitionOf(name);
      return (
        definition && { definition, ...{ ref: undefined, fired: undefined, ...(await placeOf(definition.schedule)) } }
      );
    },

    /** The same for many, a few round trips per partition. */
    async findAll(all: readonly Definition[]): Promise<readonly StoredSchedule[]> {
      const refOf = await knownRefs(all);
      const byRef = new Map<string, { readonly ref: PartitionRef; readonly of: Definition[] }>();
      for (const definition of all) {
        const ref = refOf(definition.schedule);
        const group = byRef.get(ref.keys.fired) ?? { ref, of: [] };
        byRef.set(ref.keys.fired, group);
        group.of.push(definition);
      }
      const found = await Promise.all([...byRef.values()].map(({ ref, of }) => firedIn(ref, of)));
      return found.flat();
    },

    /** Its jobs stay. @returns whether there was one */
    remove: (name: string): Promise<boolean> =>
      change(name, async (content) => {
        if (content === undefined) return false;
        const before = replaceable(name, content);
        const left = before && (await placeOf(before.schedule));
        if ((await define(redis, namespace, { name, before: content })) === 'changed') return 'lost';
        if (left) await forget(name, left);
        return true;
      }),

    /**
     * `paused` undefined: it fires again, from now on. An empty reason leaves the reason of an earlier pause.
     *
     * @throws DuestreamError `not-found`
     */
    setPaused: (name: string, paused: string | undefined): Promise<ScheduleChange> =>
      change(name, async (content) => {
        if (content === undefined) throw await unknownSchedule(redis, namespace, name);
        const { input, source, schedule } = decodeDefinition(name, content);
        const state = paused === undefined ? undefined : paused || schedule.paused || true;
        return putOver(content, { name, input: { ...input, paused: state }, source });
      }),
  };
}
