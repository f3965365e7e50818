/**
 * Definitions of schedules: put, found, paused, removed. Each step that a call takes is repeated by itself when its reply
 * was lost: the call made anew from its beginning would meet its own work and deny it. Each is written over the very text
 * that was read and, with `ifMatch`, compared: `define` does nothing where another one stands.
 */
import { isGated } from '../../job/gate.ts';
import type { Queue } from '../../job/queue.ts';
import type { GateSettings } from '../../job/queue-settings.ts';
import { REDACTED } from '../../job/redaction.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError, Indeterminate } from '../../kernel/errors.ts';
import { reasonOf } from '../../kernel/reason.ts';
import { memberOf } from '../../redis/connection/cluster/members.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { timeAt } from '../../redis/connection/server-clock.ts';
import { controlKeys, type PartitionRef } from '../../redis/keys.ts';
import { findQueue, type QueueLayout } from '../../redis/scripts/queues.ts';
import { allDefinitions, define, definitions, disarm } from '../../redis/scripts/schedules.ts';
import type { ScheduleInput } from '../../schedule/input.ts';
import { handAfter, handOf, type Pausing, successor, unreadFired } from '../../schedule/progress.ts';
import { parseScheduleName } from '../../schedule/schedule.ts';
import {
  type Definition,
  decodeDefinition,
  encodeDefinition,
  etagOfDefinition,
  type Hand,
  isSame,
  type Source,
} from '../../schedule/text.ts';
import { type IfMatchOption, isMatch } from '../calls/etag.ts';
import { needsOf, refusalOf } from '../calls/needs.ts';
import { once } from '../calls/retry.ts';
import { refuseShownSchedule } from '../jobs/shown.ts';
import {
  armIn,
  type Definitions,
  definedAs,
  firedIn,
  knownRefs,
  type Place,
  placeOf,
  type Store,
  type StoredSchedule,
  unknownSchedule,
} from './schedule-places.ts';

/** What a `put` did. */
export interface ScheduleChange {
  readonly name: string;
  /** `unchanged`: the very same definition was there. */
  readonly status: 'created' | 'changed' | 'unchanged';
  /** Of the definition that is there now, for the next change's `ifMatch`. */
  readonly etag: string;
  /** What it said before and what it says now, where that differs; `before` undefined: there was none that could be read. */
  readonly before?: ScheduleInput | undefined;
  readonly after?: ScheduleInput | undefined;
}

/** Under which condition a call changes a schedule. */
export interface ScheduleCall extends IfMatchOption {
  /** The queue as the caller defines it, where a schedule is put by its definition. */
  readonly queue?: Queue | undefined;
}

/** `ref` is undefined while its queue is not declared. */
export type FoundSchedule = Pick<StoredSchedule, 'definition' | 'fired'> & { readonly ref: PartitionRef | undefined };

const CHANGES_MAX = 20;

export interface ScheduleStore {
  /** The time of Redis. */
  readonly nowMs: () => Promise<number>;
  readonly put: (
    name: string,
    input: ScheduleInput,
    by?: ScheduleCall & { readonly source?: Source | undefined },
  ) => Promise<ScheduleChange>;
  readonly definitionOf: (name: string) => Promise<Definition | undefined>;
  /** Only reads: a queue that is not declared stays so. */
  readonly find: (name: string) => Promise<FoundSchedule | undefined>;
  /** The same for many, a few round trips per partition. */
  readonly findAll: (all: readonly Definition[]) => Promise<readonly StoredSchedule[]>;
  /** Its jobs stay. @returns whether there was one */
  readonly remove: (name: string, call?: ScheduleCall) => Promise<boolean>;
  /**
   * By hand, above what the definition says. `pausing` undefined: it fires again, from now on.
   *
   * @throws DuestreamError `not-found`
   */
  readonly setPaused: (name: string, pausing: Pausing | undefined, call?: ScheduleCall) => Promise<ScheduleChange>;
}

/** The texts that are stored in a namespace. */
export const definitionsIn =
  ({ redis, namespace }: Pick<Store, 'redis' | 'namespace'>): Definitions =>
  () =>
    allDefinitions(redis, namespace);

export function createScheduleStore({ steps = once, ...place }: Omit<Store, 'steps'> & Partial<Store>): ScheduleStore {
  const store: Store = { ...place, steps };
  return {
    nowMs: () => nowMs(store),
    put: (name, input, call = {}) =>
      change(store, name, (content) => putOver(store, content, { name, input, source: call.source ?? 'call', call })),
    definitionOf: (name) => definitionOf(store, name),
    find: (name) => find(store, name),
    findAll: (all) => findAll(store, all),
    remove: (name, call = {}) => change(store, name, (content) => remove(store, { name, content, call })),
    setPaused: (name, pausing, call = {}) =>
      change(store, name, (content) => setPaused(store, { name, content, pausing, call })),
  };
}

async function find(store: Store, name: string): Promise<FoundSchedule | undefined> {
  const definition = await definitionOf(store, name);
  if (!definition) return undefined;
  return { definition, ref: undefined, fired: undefined, ...(await placeOf(store, definition.schedule)) };
}

async function findAll(store: Store, all: readonly Definition[]): Promise<readonly StoredSchedule[]> {
  const { refOf, unread } = await knownRefs(store, all);
  const byRef = new Map<string, { readonly ref: PartitionRef; readonly of: Definition[] }>();
  const lost: StoredSchedule[] = [];
  const bad = (definition: Definition, ref: PartitionRef, why: string): StoredSchedule => ({
    definition,
    ref,
    fired: unreadFired(`queue ${show(ref.queue)} cannot be read: ${why}`),
  });
  for (const definition of all) {
    const ref = refOf(definition.schedule);
    const why = unread.get(ref.queue);
    if (why !== undefined) {
      lost.push(bad(definition, ref, why));
      continue;
    }
    const group = byRef.get(ref.keys.fired) ?? { ref, of: [] };
    byRef.set(ref.keys.fired, group);
    group.of.push(definition);
  }
  const groups = [...byRef.values()];
  const found = await Promise.allSettled(groups.map(({ ref, of }) => firedIn(store, ref, of)));
  const failed = found.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));
  if (failed.length > 0 && failed.length === found.length) throw failed[0];
  // A queue that cannot be read hides the schedules of no other.
  const read = groups.flatMap(({ ref, of }, at) => {
    const one = found[at];
    if (one?.status !== 'rejected') return one?.value ?? [];
    return of.map((definition) => bad(definition, ref, reasonOf(one.reason)));
  });
  return [...read, ...lost];
}

/** A call about what is stored of one schedule. */
interface Asked {
  readonly name: string;
  readonly content: string | undefined;
  readonly call: ScheduleCall;
}

async function remove(store: Store, { name, content, call }: Asked): Promise<boolean | 'lost'> {
  if (content === undefined) return false;
  refuseOther({ name, content, call });
  const before = replaceable(name, content);
  const left = before && (await placeOf(store, before.schedule));
  if ((await write(store, { name, before: content })) === 'changed') return 'lost';
  if (left) await forget(store, name, left);
  return true;
}

async function setPaused(
  store: Store,
  { name, content, pausing, call }: Asked & { readonly pausing: Pausing | undefined },
): Promise<ScheduleChange | 'lost'> {
  if (content === undefined) throw await store.steps.read(() => unknownSchedule(definitionsIn(store), name));
  const definition = decodeDefinition(name, content);
  const { paused: _, ...input } = definition.input;
  const { source } = definition;
  const hand = handOf(definition, pausing, await nowMs(store));
  return putOver(store, content, { name, input, source, call, handAs: () => hand });
}

/** @throws DuestreamError `changed` for another definition than `ifMatch` says */
function refuseOther({ name, content, call }: Asked): void {
  refuseEtag(name, content === undefined ? undefined : etagOfDefinition(content), call);
}

/** A definition that was read, if it is the one that is meant. @throws DuestreamError `changed` */
export function matching(definition: Definition, call: ScheduleCall): Definition {
  refuseEtag(definition.schedule.name, definition.etag, call);
  return definition;
}

/** @throws DuestreamError `changed` */
export function refuseEtag(name: string, etag: string | undefined, call: ScheduleCall): void {
  if (isMatch(call.ifMatch, etag)) return;
  const now = etag === undefined ? 'there is none of this name' : `its etag is ${show(etag)}`;
  throw new DuestreamError(
    'changed',
    `schedule ${name}: ifMatch is ${show(call.ifMatch)}, and ${now}: look at it again`,
  );
}

async function textOf(store: Store, name: string): Promise<string | undefined> {
  const { redis, namespace, steps } = store;
  const parsed = parseScheduleName(name);
  const [content] = await steps.read(() => definitions(redis, namespace, [parsed]));
  return content;
}

async function definitionOf(store: Store, name: string): Promise<Definition | undefined> {
  const content = await textOf(store, name);
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
async function change<T>(
  store: Store,
  name: string,
  work: (content: string | undefined) => Promise<T | 'lost'>,
): Promise<T> {
  for (let tries = 0; tries < CHANGES_MAX; tries += 1) {
    const done = await work(await textOf(store, name));
    if (done !== 'lost') return done;
  }
  throw new DuestreamError('moved', `schedule ${name}: other calls change it all the time; try again in a moment`);
}

/** @throws DuestreamError `indeterminate` where the reply was lost, and somebody has changed it before or since */
function write(
  { redis, namespace, steps }: Store,
  change: { readonly name: string; readonly before: string | undefined; readonly after?: string },
): Promise<'ok' | 'changed'> {
  return steps.write(async (mayHaveRun) => {
    const reply = await define(redis, namespace, change);
    if (reply === 'ok' || !mayHaveRun) return reply;
    throw new Indeterminate(
      `schedule ${change.name}: the reply of Redis was lost, and somebody else has changed the schedule: look at it`,
    );
  });
}

async function nowMs({ redis, namespace, steps }: Store): Promise<number> {
  return Math.floor(await steps.read(() => timeAt(memberOf(redis, controlKeys(namespace).schedules))));
}

async function putOver(
  store: Store,
  content: string | undefined,
  {
    name,
    input,
    source,
    call,
    handAs = (before) => handAfter(before, input),
  }: {
    readonly name: string;
    readonly input: ScheduleInput;
    readonly source: Source;
    readonly call: ScheduleCall;
    readonly handAs?: (before: Definition | undefined) => Hand | undefined;
  },
): Promise<ScheduleChange | 'lost'> {
  const before = replaceable(name, content);
  const place = before && (await placeOf(store, before.schedule));
  const definition = successor(
    before,
    { name, input, source, hand: handAs(before), nowMs: await nowMs(store) },
    place?.fired,
  );
  await store.steps.read(() => refuseCopied(store, { name, input, before: before?.input }));
  const left = before?.schedule.queue === definition.schedule.queue ? undefined : place;
  // What is so already was perhaps the work of the same request before: nothing is left to be refused.
  const isSo = content !== undefined && before !== undefined && isSame(before, definition);
  if (!isSo) {
    refuseOther({ name, content, call });
    const { queue } = definition.schedule;
    const known = await store.steps.read(() => findQueue(store.redis, store.namespace, queue));
    refuse(name, input, [call.queue, known]);
  }
  const queue = definedAs(definition.schedule.queue, call.queue);
  await armIn(store, name, queue);
  if (isSo) return { name, status: 'unchanged', etag: etagOfDefinition(content) };
  const after = encodeDefinition(definition);
  const written = await write(store, { name, before: content, after });
  if (written === 'changed') return 'lost';
  await armIn(store, name, queue);
  if (left) await forget(store, name, left);
  return {
    name,
    status: before ? 'changed' : 'created',
    etag: etagOfDefinition(after),
    before: before?.input,
    after: definition.input,
  };
}

/** What the queue hides, and the queue before, is asked for where the data may be a copy of what was shown. */
async function refuseCopied(
  { redis, namespace }: Store,
  {
    name,
    input,
    before,
  }: { readonly name: string; readonly input: ScheduleInput; readonly before?: ScheduleInput | undefined },
): Promise<void> {
  const queues = JSON.stringify(input.data)?.includes(REDACTED)
    ? new Set([input.queue, before?.queue ?? input.queue])
    : [];
  const layouts = await Promise.all([...queues].map((queue) => findQueue(redis, namespace, queue)));
  try {
    refuseShownSchedule(input, {
      before,
      redact: layouts.flatMap((layout) => (layout?.redact ? [layout.redact] : [])),
    });
  } catch (error) {
    if (!(error instanceof DuestreamError)) throw error;
    throw new DuestreamError('bad-input', `schedule ${name}: ${error.message}`);
  }
}

/** What the definition of the queue says, or somebody by command. Nobody knows yet what a queue will be that was not declared. */
function refuse(
  name: string,
  input: ScheduleInput,
  known: readonly ((GateSettings & Pick<QueueLayout, 'target'>) | undefined)[],
): void {
  const said = known.filter((one) => one !== undefined);
  const gates = said.some(isGated) ? { takesCosts: said.some(({ costs }) => costs) } : undefined;
  const target = said.find((one) => one.target)?.target || undefined;
  const refusal = said.length === 0 ? undefined : refusalOf(input.queue, needsOf(input, undefined), { gates, target });
  if (refusal) throw new DuestreamError('bad-input', `schedule ${name}: ${refusal.message}`);
}

/** As it was read before its definition went; of one that was armed again since, another call's is the last word. */
async function forget(store: Store, name: string, { ref, fired }: Place): Promise<void> {
  const { redis, steps } = store;
  if (fired?.unreadable === undefined) {
    if (fired) await steps.read(() => disarm(redis, ref, name, fired.text));
    return;
  }
  // Its bytes cannot be named, and a put does not change them: what was put meanwhile gets a new state.
  await steps.read(() => disarm(redis, ref, name));
  const since = replaceable(name, await textOf(store, name));
  if (since) await armIn(store, name, definedAs(since.schedule.queue, undefined));
}

// The schedules of one queue, for those who remove it. One that nobody can read still says where its jobs would go.

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
