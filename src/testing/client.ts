/**
 * A client in virtual time. Its methods are those of the product, with all their checks; here are the parts on which
 * they stand, over the jobs of the kit instead of a connection. What these answer is what the scripts would answer.
 */
import type { Answers } from '../client/calls/batch.ts';
import { etagOfDeadLetter, isMatch } from '../client/calls/etag.ts';
import type { Scheduled } from '../client/calls/scheduled.ts';
import { type Calls, stopped } from '../client/calls/session.ts';
import { settingsOf } from '../client/calls/settings.ts';
import { type Client, type JobsClient, jobsOver } from '../client/client.ts';
import { type DeadLetters, replaysOver } from '../client/dead/dead-letters.ts';
import type { Replayed, ReplayRequest } from '../client/dead/replay.ts';
import type { ScheduleChain } from '../client/jobs/middleware.ts';
import type { Parts } from '../client/parts.ts';
import type { JobResult } from '../client/query/past.ts';
import { reportOf } from '../client/query/report.ts';
import type { ScheduleParts } from '../client/schedules/schedule-parts.ts';
import { schedulesOver } from '../client/schedules/schedules.ts';
import type { Queue } from '../job/queue.ts';
import type { Clock } from '../kernel/clock.ts';
import { letterOf, peekOf, refOf } from './changes.ts';
import { findingIn } from './finding.ts';
import type { JobBook } from './jobs.ts';
import { type DeadLetter, freshJob, type Kept } from './kept.ts';
import { endsOf } from './past.ts';

/** Nobody dials it. */
const NOWHERE = 'redis://127.0.0.1:6379';

/** What the client of a kit offers: jobs, schedules, and the replay of dead letters that are named. */
export type KitClient = JobsClient & Pick<Client, 'schedules'> & { readonly deadLetters: Pick<DeadLetters, 'replay'> };

/** @param chain the middleware around what it schedules */
export function createKitClient(
  book: JobBook,
  schedules: ScheduleParts,
  { clock, chain }: { readonly clock: Clock; readonly chain?: ScheduleChain | undefined },
): KitClient {
  const settings = settingsOf({ redis: NOWHERE, clock });
  const { horizonMs, dataBytesMax } = settings;
  const parts: Parts = {
    server: { settle: () => undefined },
    limits: () => ({ horizonMs, dataBytesMax, nowMs: book.nowMs() }),
    batch: { add: book.add, addMany: (queue, plans) => addMany(book, queue, plans), quiet: async () => undefined },
    letters: {
      async replayNamed(queue, requests) {
        const results: Replayed[] = [];
        for (const request of requests) results.push(await replay(book, queue, request));
        return results;
      },
    },
    async get(queue, id, { bare }) {
      const job = bare ? undefined : book.find(queue.name, id);
      return (
        job && reportOf(refOf(job), { id, bare, past: endsOf(job), letter: letterOf(job) }, peekOf(job, book.nowMs()))
      );
    },
    past: {
      async result(queue, id, { bare }) {
        const job = bare ? undefined : book.find(queue.name, id);
        return job ? resultOf(job) : { status: 'unknown' };
      },
    },
    finding: findingIn(book, settings),
    schedules: async () => schedules,
    fit: async () => undefined,
  };
  const calls = callsOver(parts);
  return {
    ...jobsOver(settings, calls, chain),
    deadLetters: replaysOver(settings, calls),
    schedules: schedulesOver(settings, calls),
  };
}

/** There is no connection to wait for; a call begins in the turn in which it is made. */
function callsOver(parts: Parts): Calls {
  let isStopped = false;
  const check = () => {
    if (isStopped) throw stopped();
  };
  const run: Calls['run'] = async (work) => {
    check();
    return work(parts);
  };
  return {
    check,
    run,
    opened: () => parts,
    async connected() {
      check();
      return parts;
    },
    async runChecked(read, work, levelOf) {
      levelOf?.();
      const input = read();
      return run((made) => work(made, input));
    },
    async stop() {
      isStopped = true;
    },
  };
}

async function addMany(book: JobBook, queue: Queue, plans: Parameters<Parts['batch']['addMany']>[1]): Promise<Answers> {
  const results: (Scheduled | undefined)[] = [];
  const errors = new Map<number, unknown>();
  for (const [at, plan] of plans.entries()) {
    const adding = book.add(queue, plan).catch((error: unknown) => void errors.set(at, error));
    results.push((await adding) ?? undefined);
  }
  return { results, errors };
}

/** The rules of `replay.lua`. */
async function replay(
  book: JobBook,
  queue: Queue,
  { target, dueMs, partition, ifMatch }: ReplayRequest,
): Promise<Replayed> {
  const named = ({ entry, id }: DeadLetter) =>
    target.deadLetterId === undefined ? !target.bare && id === target.id : entry === target.deadLetterId;
  const isThere = (one: DeadLetter) => (partition ?? refOf(one).partition) === refOf(one).partition && !one.isGone;
  const found = book.deadLetters.findLast((one) => one.queue.name === queue.name && named(one) && isThere(one));
  if (!found) {
    const id = target.deadLetterId === undefined ? target.id : undefined;
    return { deadLetter: target.deadLetterId, status: 'gone', id, dueMs: undefined };
  }
  const { entry: deadLetter, id } = found;
  const etag = etagOfDeadLetter({ entry: deadLetter, generation: found.generation ?? 0, id, bare: false });
  if (!isMatch(ifMatch, etag)) return { deadLetter, status: 'changed', id, dueMs: undefined };
  if (book.isLive(queue.name, id)) return { deadLetter, status: 'live', id, dueMs: undefined };
  found.isGone = true;
  const { token, attempts, generation } = found;
  const before = book.find(queue.name, id);
  const past = before ? endsOf(before) : [];
  const job = { ...freshJob(found.queue, { id, record: withoutLateness(found.record), dueMs, past }), token, attempts };
  await book.begin({ ...job, generation: (generation ?? 0) + 1, nextDueMs: dueMs });
  return { deadLetter, status: 'scheduled', id, dueMs };
}

/** A replayed dead letter does not expire. */
function withoutLateness(record: string): string {
  const bar = record.indexOf('|');
  return record.slice(0, bar).replace(/;[elp]=\w+/g, '') + record.slice(bar);
}

/** What became of a job. */
function resultOf({ state, dueMs, overMs, result, reason, history, deadLetter }: Kept): JobResult {
  switch (state) {
    case 'scheduled':
    case 'waiting':
      return { status: 'pending', state, dueMs };
    case 'ready':
    case 'running':
      return { status: 'pending', state, dueMs: undefined };
    case 'done':
      return { status: state, overMs, result };
    case 'dead':
      return { status: state, overMs, reason, error: history.at(-1), deadLetter };
    case 'cancelled':
    case 'expired':
      return { status: state, overMs };
  }
}
