/**
 * Schedules in virtual time: the same instants, policies and ids as in a daemon. A look is noted for the next instant,
 * and while a job waits for another, every half second.
 */

import { refuseShownSchedule } from '../client/jobs/shown.ts';
import type { ScheduleChange } from '../client/schedules/schedules.ts';
import { encodeRecord } from '../job/codec.ts';
import type { Queue } from '../job/queue.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { isPromise } from '../kernel/function.ts';
import { atOnce } from '../kernel/steps.ts';
import { firesDue } from '../schedule/catch-up.ts';
import { successor } from '../schedule/change.ts';
import type { ScheduleInput } from '../schedule/input.ts';
import { previewOf, runsLeft } from '../schedule/preview.ts';
import type { PreviewRow } from '../schedule/preview-row.ts';
import { type AnySchedule, type NamedSchedule, plainSchedule, type QueueSchedule } from '../schedule/queue-schedule.ts';
import { dueOfFire, fireId, recurrenceOf } from '../schedule/schedule.ts';
import { type Definition, encodeDefinition, etagOfDefinition, isSame } from '../schedule/text.ts';
import type { Agenda } from './agenda.ts';
import type { JobBook } from './jobs.ts';

interface Armed {
  readonly definition: Definition;
  reachedMs: number;
  runs: number;
  waitingMs: number | undefined;
  last: string | undefined;
  strike: () => void;
}

export interface ScheduleBookParts {
  readonly agenda: Agenda;
  readonly jobs: JobBook;
  readonly queueOf: (name: string) => Queue;
}

const WAITING_LOOK_MS = 500;

interface Book extends ScheduleBookParts {
  readonly all: Map<string, Armed>;
}

/** A schema or a codec that answers later is refused here: time stands still while a schedule is put. */
interface Put {
  <Jobs>(name: string, input: NamedSchedule<Jobs>): ScheduleChange;
  <Data>(name: string, input: ScheduleInput | QueueSchedule<Data>): ScheduleChange;
}

export interface ScheduleBook {
  /** Creates a schedule or changes it; the same definition again changes nothing. @throws DuestreamError `bad-input` */
  readonly put: Put;
  readonly remove: (name: string) => boolean;
  /** What it will do. @throws DuestreamError `not-found` */
  readonly preview: (name: string, next?: number) => readonly PreviewRow[];
}

export function createScheduleBook(parts: ScheduleBookParts): ScheduleBook {
  const book: Book = { ...parts, all: new Map() };
  const { agenda, all } = book;
  return {
    put: (name: string, input: AnySchedule) => put(book, name, plainNow(input)),
    remove(name) {
      all.get(name)?.strike();
      return all.delete(name);
    },
    preview(name, next = 10) {
      const { definition, reachedMs, runs, waitingMs } = armedOf(book, name);
      const fired = { reachedMs, runs, waiting: waitingMs === undefined ? undefined : fireId(name, waitingMs) };
      const nowMs = agenda.nowMs();
      const left = atOnce(runsLeft(definition.schedule, { fired, nowMs }));
      return atOnce(previewOf(definition.schedule, { fromMs: nowMs, next, left })).rows;
    },
  };
}

function plainNow(given: AnySchedule): ScheduleInput {
  const input = plainSchedule(given);
  if (!isPromise(input)) return input;
  input.catch(() => undefined);
  throw new DuestreamError(
    'bad-input',
    'the schema or the codec of the queue is async; allowed in the schedules of the kit: those that answer at once',
  );
}

function put(book: Book, name: string, input: ScheduleInput): ScheduleChange {
  const { agenda, all, queueOf } = book;
  const before = all.get(name);
  const wanted = { name, input, source: 'call', nowMs: agenda.nowMs() } as const;
  const definition = successor(before?.definition, wanted, before);
  const redact = queueOf(definition.schedule.queue).redact;
  refuseShownSchedule(input, { before: before?.definition.input, redact: redact ? [redact] : [] });
  if (before && isSame(before.definition, definition))
    return { name, status: 'unchanged', etag: etagIn(before.definition) };
  before?.strike();
  const stays = before?.definition.schedule.queue === definition.schedule.queue;
  const kept = stays && before ? before : { reachedMs: 0, runs: 0, waitingMs: undefined, last: undefined };
  const armed: Armed = { ...kept, definition, strike: () => undefined };
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
  const { instants, nextMs } = atOnce(firesDue(recurrence, { afterMs, nowMs, catchUp: schedule.catchUp }));
  armed.reachedMs = nowMs;
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

function armedOf(book: Book, name: string): Armed {
  const { all } = book;
  const armed = all.get(name);
  if (armed) return armed;
  throw new DuestreamError('not-found', `there is no schedule ${JSON.stringify(name)}`);
}
