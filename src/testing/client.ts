/**
 * A client in virtual time. Its methods are those of the product, with all their checks; here are the parts on which
 * they stand, over the jobs of the kit instead of a connection. What these answer is what the scripts would answer.
 */

import type { Answers, Order, UpdateJob } from '../client/calls/batch.ts';
import type { Plan } from '../client/calls/plan.ts';
import { type Scheduled, updatedOf } from '../client/calls/scheduled.ts';
import { type Calls, stopped } from '../client/calls/session.ts';
import { settingsOf } from '../client/calls/settings.ts';
import { Turns } from '../client/calls/turns.ts';
import { type Client, clientOver } from '../client/client.ts';
import { createLetters } from '../client/dead/letters.ts';
import type { ScheduleChain } from '../client/jobs/scheduling.ts';
import { updating } from '../client/jobs/update.ts';
import type { Parts } from '../client/parts.ts';
import type { JobResult } from '../client/query/past.ts';
import { reportOf } from '../client/query/report.ts';
import type { ScheduleParts } from '../client/schedules/schedule-parts.ts';
import { isGated } from '../job/gate.ts';
import type { Queue } from '../job/queue.ts';
import { createAbort } from '../kernel/abort.ts';
import type { Clock } from '../kernel/clock.ts';
import { endsIn } from './awaiting.ts';
import { peekOf } from './changes.ts';
import { findingIn, waitsFor } from './finding.ts';
import type { JobBook } from './jobs.ts';
import { type Kept, refOf } from './kept.ts';
import { letterOf, lettersIn } from './letters.ts';
import { historyIn, shownEndsOf } from './past.ts';

/** Nobody dials it. */
const NOWHERE = 'redis://127.0.0.1:6379';

/** @param chain the middleware around what it schedules */
export function createKitClient(
  book: JobBook,
  schedules: ScheduleParts,
  { clock, chain }: { readonly clock: Clock; readonly chain?: ScheduleChain | undefined },
): Client {
  const settings = settingsOf({ redis: NOWHERE, clock });
  const { horizonMs, dataBytesMax } = settings;
  const finding = findingIn(book, settings);
  const { callPartitions, reader } = finding;
  const store = lettersIn(book, reader.peek);
  const stopping = createAbort();
  const turns = new Turns(settings);
  const parts: Parts = {
    server: { settle: () => undefined },
    limits: () => ({ horizonMs, dataBytesMax, nowMs: book.nowMs(), orderOf: book.orderOf }),
    batch: batchIn(adding(book, updating(finding)), turns),
    letters: createLetters({ store, callPartitions }),
    async get(queue, id, { bare }) {
      const job = bare ? undefined : book.find(queue.name, id);
      if (!job) return undefined;
      const waits = await waitsFor(book, job);
      const known = { id, bare, past: shownEndsOf(job), letter: letterOf(book, job), waitsFor: waits };
      return reportOf(refOf(job), known, peekOf(job, book.nowMs()));
    },
    past: {
      async result(queue, id, { bare }) {
        const job = bare ? undefined : book.find(queue.name, id);
        return job ? resultOf(book, job) : { status: 'unknown' };
      },
    },
    finding,
    rules: {
      setGroup: async (queue, of) => book.gates.setGroup(queue, of),
      close: async (queue, of) => book.gates.close(isGated(queue) ? book.use(queue) : book.seen(queue), of),
    },
    erasing: {
      ...historyIn(book),
      finding,
      store,
      queues: async () => book.queues().map((queue) => ({ queue })),
      note: async () => undefined,
    },
    ends: endsIn(book, { callPartitions, clock, stopping: stopping.signal }),
    schedules: async () => schedules,
    fit: async () => undefined,
  };
  return clientOver(settings, callsOver(parts, { turns, stopping }), { chain });
}

interface Going {
  readonly turns: Turns;
  readonly stopping: AbortController;
}

/** There is no connection to wait for; a call begins in the turn in which it is made, unless it waits for one before it. */
function callsOver(parts: Parts, { turns, stopping }: Going): Calls {
  let isStopped = false;
  const check = () => {
    if (isStopped) throw stopped();
  };
  const run: Calls['run'] = async (work, _, turn) => {
    if (!turn) check();
    // A handler that runs in line with the call makes calls of its own.
    return turn ? turns.run(turn, () => turns.inside(turn, () => work(parts))) : work(parts);
  };
  return {
    check,
    run,
    turns,
    track: (call) => call,
    opened: () => parts,
    async connected() {
      check();
      return parts;
    },
    async runChecked(read, work, levelOf, claimsOf) {
      levelOf?.();
      const input = read();
      check();
      const turn = claimsOf && turns.take(claimsOf(input));
      return run((made) => work(made, input, turn), undefined, turn);
    },
    async stop() {
      isStopped = true;
      stopping.abort(stopped());
    },
  };
}

type Add = (queue: Queue, plan: Plan) => Promise<Scheduled>;

/** An update edits the job that is there, as `ScheduleBatch` has it. */
const adding =
  (book: JobBook, update: UpdateJob): Add =>
  async (queue, plan) => {
    const added = await book.add(queue, plan);
    if (added.status !== 'exists' || !plan.names) return added;
    return updatedOf(queue.name, added, await update(queue, plan, { isDoubtful: false }));
  };

/** Jobs go in one after the other. */
function batchIn(add: Add, turns: Turns): Parts['batch'] {
  const inOrder = <T>(queue: Queue, plans: readonly Plan[], order: Order, work: () => Promise<T>): Promise<T> => {
    if (order !== 'own') return work();
    const keys = plans.flatMap(({ member, isNewId }) => (isNewId === true ? [] : [member]));
    const turn = turns.take([{ lane: queue.name, kind: 'jobs', keys }]);
    return turns.run(turn, () => turns.inside(turn, work));
  };
  return {
    add: (queue, plan, order = 'own') => inOrder(queue, [plan], order, () => add(queue, plan)),
    addMany: (queue, plans, order = 'own') => inOrder(queue, plans, order, () => addMany(add, queue, plans)),
    quiet: async () => undefined,
  };
}

async function addMany(add: Add, queue: Queue, plans: readonly Plan[]): Promise<Answers> {
  const results: Answers['results'][number][] = [];
  const errors = new Map<number, unknown>();
  for (const [at, plan] of plans.entries()) {
    const adding = add(queue, plan).catch((error: unknown) => void errors.set(at, error));
    results.push((await adding) ?? undefined);
  }
  return { results, errors };
}

/** What became of a job. */
function resultOf(book: JobBook, job: Kept): JobResult {
  const { state, dueMs, overMs, deadLetter } = job;
  const [end] = shownEndsOf(job);
  const letter = letterOf(book, job);
  switch (state) {
    case 'scheduled':
    case 'waiting':
      return { status: 'pending', state, dueMs };
    case 'ready':
    case 'running':
      return { status: 'pending', state, dueMs: undefined };
    case 'done':
      return { status: state, overMs, result: end?.result ?? { kind: 'none' } };
    case 'dead':
      return { status: state, overMs, reason: letter?.reason, error: (end ?? letter)?.history.at(-1), deadLetter };
    case 'cancelled':
    case 'expired':
      return { status: state, overMs };
  }
}
