/**
 * Schedules in virtual time: the same instants, policies and ids as in a daemon. A look is noted for the next instant,
 * and while a job waits for another, every half second.
 */
import { firesDue } from '../core/catch-up.ts';
import { encodeRecord } from '../core/codec.ts';
import { DuestreamError } from '../core/errors.ts';
import { type PreviewRow, previewOf } from '../core/preview.ts';
import type { Queue } from '../core/queue.ts';
import { dueOfFire, fireId, recurrenceOf, type Schedule } from '../core/schedule.ts';
import { parseSchedule, type ScheduleInput } from '../core/schedule-input.ts';
import type { Agenda } from './agenda.ts';
import type { JobBook } from './jobs.ts';

interface Armed {
  readonly schedule: Schedule;
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

export function createScheduleBook({ agenda, jobs, queueOf }: ScheduleBookParts) {
  const all = new Map<string, Armed>();

  async function look(armed: Armed): Promise<void> {
    const { schedule } = armed;
    const recurrence = recurrenceOf(schedule);
    const nowMs = agenda.nowMs();
    const afterMs = Math.max(armed.reachedMs, schedule.sinceMs);
    const { instants, nextMs } = firesDue(recurrence, { afterMs, nowMs, catchUp: schedule.catchUp });
    armed.reachedMs = nowMs;
    if (schedule.overlap === 'replace' && instants.length > 0 && armed.last) jobs.cancel(schedule.queue, armed.last);
    for (const atMs of [...(armed.waitingMs === undefined ? [] : [armed.waitingMs]), ...instants])
      await fire(armed, atMs);
    const spent = schedule.maxRuns !== undefined && armed.runs >= schedule.maxRuns && armed.waitingMs === undefined;
    const soonMs = armed.waitingMs === undefined ? Number.POSITIVE_INFINITY : nowMs + WAITING_LOOK_MS;
    const lookMs = Math.min(nextMs ?? Number.POSITIVE_INFINITY, soonMs);
    if (!spent && lookMs < Number.POSITIVE_INFINITY) armed.strike = agenda.at(lookMs, () => look(armed));
  }

  /** The rules of `fire.lua`. */
  async function fire(armed: Armed, atMs: number): Promise<void> {
    const { schedule, last, waitingMs } = armed;
    const busy = schedule.overlap !== 'allow' && last !== undefined && jobs.isLive(schedule.queue, last);
    if (busy) {
      const waits = schedule.overlap === 'replace' || (schedule.overlap === 'queue' && waitingMs === undefined);
      if (waits) armed.waitingMs = atMs;
      return;
    }
    if (waitingMs === atMs) armed.waitingMs = undefined;
    if (schedule.maxRuns !== undefined && armed.runs >= schedule.maxRuns) return;
    armed.runs += 1;
    armed.last = fireId(schedule.name, atMs);
    const askedMs = dueOfFire(schedule, atMs);
    const record = encodeRecord(askedMs, schedule.body, schedule.lateness);
    const dueMs = waitingMs === atMs ? Math.max(askedMs, agenda.nowMs()) : askedMs;
    await jobs.add(queueOf(schedule.queue), { id: armed.last, record, dueMs, mode: 'keep', strict: false });
  }

  function armedOf(name: string): Armed {
    const armed = all.get(name);
    if (armed) return armed;
    throw new DuestreamError('not-found', `there is no schedule ${JSON.stringify(name)}`);
  }

  return {
    /** Creates a schedule or changes it; it counts from now. @throws DuestreamError `bad-input` */
    put(name: string, input: ScheduleInput): void {
      const schedule = parseSchedule(name, input, agenda.nowMs());
      const before = all.get(name);
      before?.strike();
      const kept = { runs: before?.runs ?? 0, waitingMs: before?.waitingMs, last: before?.last };
      const armed: Armed = { schedule, reachedMs: 0, ...kept, strike: () => undefined };
      all.set(name, armed);
      if (schedule.paused === undefined) armed.strike = agenda.at(agenda.nowMs(), () => look(armed));
    },
    remove(name: string): boolean {
      all.get(name)?.strike();
      return all.delete(name);
    },
    /** What it will do. @throws DuestreamError `not-found` */
    preview: (name: string, next = 10): readonly PreviewRow[] => [
      ...previewOf(armedOf(name).schedule, { fromMs: agenda.nowMs(), next }),
    ],
  };
}
