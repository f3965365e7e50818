/**
 * Schedules in virtual time: the same instants, policies and ids as in a daemon. A look is noted for the next instant,
 * and while a job waits for another, every half second.
 */

import { once } from '../client/calls/retry.ts';
import { refuseShownSchedule } from '../client/jobs/shown.ts';
import { checkUsed, type Waiting } from '../client/schedules/forecast.ts';
import type { ScheduleParts } from '../client/schedules/schedule-parts.ts';
import { type StoredSchedule, unknownSchedule } from '../client/schedules/schedule-places.ts';
import {
  refuseEtag,
  refuseUngated,
  type ScheduleCall,
  type ScheduleChange,
  type ScheduleStore,
} from '../client/schedules/schedule-store.ts';
import { encodeRecord, idOf, memberOf } from '../job/codec.ts';
import type { Queue } from '../job/queue.ts';
import { isPromise } from '../kernel/checks.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { atOnce } from '../kernel/steps.ts';
import type { ScheduleReply } from '../redis/scripts/replies.ts';
import { partitionOfSchedule } from '../redis/scripts/schedules.ts';
import { type AnySchedule, plainSchedule, type ScheduleInput } from '../schedule/input.ts';
import { firesDue } from '../schedule/instants.ts';
import { handAfter, handOf, type Pausing, successor } from '../schedule/progress.ts';
import { dueOfFire, fireId, parseScheduleName, recurrenceOf } from '../schedule/schedule.ts';
import {
  type Definition,
  decodeDefinition,
  encodeDefinition,
  etagOfDefinition,
  type Hand,
  isSame,
  type Source,
} from '../schedule/text.ts';
import type { Agenda } from './agenda.ts';
import type { JobBook } from './jobs.ts';

interface Armed {
  readonly definition: Definition;
  reachedMs: number;
  runs: number;
  skipped: number;
  waitingMs: number | undefined;
  last: string | undefined;
  strike: () => void;
}

export interface ScheduleBookParts {
  readonly agenda: Agenda;
  readonly jobs: JobBook;
  readonly namespace: string;
  readonly queueOf: (name: string) => Queue;
}

const WAITING_LOOK_MS = 500;

interface Book extends ScheduleBookParts {
  readonly all: Map<string, Armed>;
}

export interface ScheduleBook {
  /** Creates a schedule of an option of the kit: its schema and its codec answer at once. @throws DuestreamError `bad-input` */
  readonly put: (name: string, input: AnySchedule) => void;
  /** What the calls of a client stand on. */
  readonly parts: ScheduleParts;
}

export function createScheduleBook(parts: ScheduleBookParts): ScheduleBook {
  const book: Book = { ...parts, all: new Map() };
  return {
    put: (name, input) => void put(book, name, { input: plainNow(input), source: 'call' }),
    parts: partsOf(book),
  };
}

function partsOf(book: Book): ScheduleParts {
  const { agenda, all, jobs, queueOf } = book;
  const findAll: ScheduleStore['findAll'] = async (some) =>
    some.flatMap(({ schedule }) => foundIn(book, schedule.name));
  const parts: ScheduleParts = {
    steps: once,
    alone: () => parts,
    definitions: async function* () {
      yield [...all].map(([name, { definition }]) => [name, encodeDefinition(definition)] as const);
    },
    store: {
      nowMs: async () => agenda.nowMs(),
      definitionOf: async (name) => foundIn(book, name)[0]?.definition,
      find: async (name) => foundIn(book, name)[0],
      findAll,
      put: async (name, input, { source = 'call', ...call } = {}) => put(book, name, { input, source, call }),
      remove: async (name, call = {}) => remove(book, name, call),
      setPaused: async (name, pausing, call) => setPaused(book, parts, { name, pausing, call }),
    },
    jobs: {
      async schedule({ queue }, items) {
        const replies: ScheduleReply[] = [];
        for (const { member, record, dueMs } of items) {
          const plan = { id: idOf(member).id, record, dueMs, mode: 'keep', strict: false } as const;
          replies.push(await jobs.place(queueOf(queue), plan));
        }
        return replies;
      },
    },
    waiting: async (queue, edges) => waitingIn(book, queue, edges),
  };
  return parts;
}

/** A schedule as a look at Redis would show it. */
function foundIn({ all, namespace, queueOf }: Book, name: string): readonly StoredSchedule[] {
  const armed = all.get(parseScheduleName(name));
  if (!armed) return [];
  const { reachedMs, runs, skipped, waitingMs, last } = armed;
  const definition = decodeDefinition(name, encodeDefinition(armed.definition));
  const { queue } = definition.schedule;
  const { partitions } = queueOf(queue);
  const waiting = waitingMs === undefined ? undefined : memberOf(fireId(name, waitingMs));
  return [
    {
      definition,
      ref: partitionOfSchedule(namespace, { queue, partitions, layoutGeneration: 0 }, name),
      fired: { text: '', reachedMs, runs, skipped, waiting, last: last === undefined ? undefined : memberOf(last) },
    },
  ];
}

function remove(book: Book, name: string, call: ScheduleCall): boolean {
  const [found] = foundIn(book, name);
  if (!found) return false;
  refuseEtag(name, found.definition.etag, call);
  book.all.get(name)?.strike();
  return book.all.delete(name);
}

async function setPaused(
  book: Book,
  { definitions }: ScheduleParts,
  {
    name,
    pausing,
    call,
  }: { readonly name: string; readonly pausing: Pausing | undefined; readonly call?: ScheduleCall | undefined },
): Promise<ScheduleChange> {
  const [found] = foundIn(book, name);
  if (!found) throw await unknownSchedule(definitions, name);
  const { input: whole, source } = found.definition;
  const { paused: _, ...input } = whole;
  const hand = handOf(found.definition, pausing, book.agenda.nowMs());
  return put(book, name, { input, source, call, handAs: () => hand });
}

function waitingIn({ jobs, all }: Book, queue: string | undefined, edges: readonly number[]): Waiting {
  const names = new Set([...jobs.all()].map((job) => job.queue));
  for (const { definition } of all.values()) names.add(definition.schedule.queue);
  checkUsed(queue, [...names]);
  const mine = jobs.all().filter((job) => queue === undefined || job.queue === queue);
  const dues = mine.flatMap(({ state, dueMs }) => (state === 'scheduled' && dueMs !== undefined ? [dueMs] : []));
  const due = edges.map(
    (edge, at) => dues.filter((ms) => ms <= edge && (at === 0 || ms > (edges[at - 1] ?? 0))).length,
  );
  const paused = jobs.gates.paused().filter((one) => queue === undefined || one === queue);
  return { due, ready: mine.filter(({ state }) => state === 'ready').length, paused };
}

function plainNow(given: AnySchedule): ScheduleInput {
  const input = plainSchedule(given);
  if (!isPromise(input)) return input;
  input.catch(() => undefined);
  throw new DuestreamError(
    'bad-input',
    'the schema or the codec of the queue is async; allowed in the option schedules of the kit: those that answer at once. client.schedules.put takes the others',
  );
}

/** The rules of the store. */
function put(
  book: Book,
  name: string,
  {
    input,
    source,
    call = {},
    handAs = (before) => handAfter(before, input),
  }: {
    readonly input: ScheduleInput;
    readonly source: Source;
    readonly call?: ScheduleCall | undefined;
    readonly handAs?: (before: Definition | undefined) => Hand | undefined;
  },
): ScheduleChange {
  const { agenda, all, queueOf, jobs } = book;
  const before = all.get(parseScheduleName(name));
  const definition = successor(
    before?.definition,
    { name, input, source, hand: handAs(before?.definition), nowMs: agenda.nowMs() },
    before,
  );
  const redact = queueOf(definition.schedule.queue).redact;
  refuseShownSchedule(input, { before: before?.definition.input, redact: redact ? [redact] : [] });
  if (before && isSame(before.definition, definition))
    return { name, status: 'unchanged', etag: etagIn(before.definition) };
  refuseEtag(name, before && etagIn(before.definition), call);
  refuseUngated(name, input, jobs.gates.settingsOf(definition.schedule.queue));
  jobs.declare(queueOf(definition.schedule.queue));
  before?.strike();
  const stays = before?.definition.schedule.queue === definition.schedule.queue;
  const fresh = { reachedMs: 0, runs: 0, skipped: 0, waitingMs: undefined, last: undefined };
  const armed: Armed = { ...(stays && before ? before : fresh), definition, strike: () => undefined };
  all.set(name, armed);
  if (definition.schedule.paused === undefined) armed.strike = agenda.at(agenda.nowMs(), () => look(book, armed));
  return { name, status: before ? 'changed' : 'created', etag: etagIn(definition) };
}

const etagIn = (definition: Definition): string => etagOfDefinition(encodeDefinition(definition));

async function look(book: Book, armed: Armed): Promise<void> {
  const { agenda } = book;
  const { schedule } = armed.definition;
  const recurrence = recurrenceOf(schedule);
  const nowMs = agenda.nowMs();
  const afterMs = Math.max(armed.reachedMs, schedule.sinceMs);
  const { instants, missed, nextMs } = atOnce(firesDue(recurrence, { afterMs, nowMs, catchUp: schedule.catchUp }));
  armed.reachedMs = nowMs;
  armed.skipped += missed;
  for (const atMs of [...(armed.waitingMs === undefined ? [] : [armed.waitingMs]), ...instants])
    await fire(book, armed, atMs);
  await makeWay(book, armed);
  const spent = schedule.maxRuns !== undefined && armed.runs >= schedule.maxRuns && armed.waitingMs === undefined;
  const soonMs = armed.waitingMs === undefined ? Number.POSITIVE_INFINITY : nowMs + WAITING_LOOK_MS;
  const lookMs = Math.min(nextMs ?? Number.POSITIVE_INFINITY, soonMs);
  if (!spent && lookMs < Number.POSITIVE_INFINITY) armed.strike = agenda.at(lookMs, () => look(book, armed));
}

/** What `replace` does once the newest waits. */
async function makeWay(book: Book, armed: Armed): Promise<void> {
  const { jobs } = book;
  const { waitingMs, last, definition } = armed;
  const { queue, overlap } = definition.schedule;
  if (overlap !== 'replace' || waitingMs === undefined || last === undefined) return;
  if (jobs.cancel(queue, last).kind !== 'requested') await fire(book, armed, waitingMs);
}

/** The rules of `fire.lua`. */
async function fire(book: Book, armed: Armed, atMs: number): Promise<void> {
  const { jobs, agenda, queueOf } = book;
  const { definition, last, waitingMs } = armed;
  const { schedule } = definition;
  const isSpent = schedule.maxRuns !== undefined && armed.runs >= schedule.maxRuns;
  const busy = !isSpent && schedule.overlap !== 'allow' && last !== undefined && jobs.isLive(schedule.queue, last);
  if (busy) {
    const waits = schedule.overlap === 'replace' || (schedule.overlap === 'queue' && waitingMs === undefined);
    if (waits) armed.waitingMs = atMs;
    else armed.skipped += 1;
    return;
  }
  if (waitingMs === atMs) armed.waitingMs = undefined;
  if (isSpent) return;
  armed.runs += 1;
  armed.last = fireId(schedule.name, atMs);
  const askedMs = dueOfFire(schedule, atMs);
  const record = encodeRecord(askedMs, schedule.body, schedule.header);
  const dueMs = waitingMs === atMs ? Math.max(askedMs, agenda.nowMs()) : askedMs;
  await jobs.add(queueOf(schedule.queue), { id: armed.last, record, dueMs, mode: 'keep', strict: false, isOwed: true });
}
