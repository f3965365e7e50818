/**
 * How a producer schedules: what is given is read, checked and planned by the clock of Redis, then sent. All of it is read before
 * the call returns. Where the connection or the clock is not there yet, or a schema or a codec takes its time, a copy waits.
 */

import { memberOf } from '../../job/codec.ts';
import { hasContent, seal } from '../../job/content.ts';
import { dataText } from '../../job/data-json.ts';
import { reserveJobIds } from '../../job/job-id.ts';
import type { ScheduleOptions } from '../../job/options.ts';
import { type Queue, type QueueInput, queueOf } from '../../job/queue.ts';
import { checkNames, isPromise } from '../../kernel/checks.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { snapshot } from '../../kernel/snapshot.ts';
import { beginSend, type SendSpan } from '../../telemetry/spans.ts';
import type { CallClock, Calls } from '../calls/calls.ts';
import { createLevels, type DurabilityOption } from '../calls/durability.ts';
import { limitsOf, namedMember, type Plan, type PlanLimits, planJob, planListed } from '../calls/plan.ts';
import type { Scheduled } from '../calls/scheduled.ts';
import type { ClientSettings } from '../calls/settings.ts';
import { checkList } from '../calls/target.ts';
import { type Claim, Lane, type Turn } from '../calls/turns.ts';
import { eachInTurns, eachJob, isOneSlice, scheduleAll } from './bulk.ts';
import type { BulkJob, ScheduleCall, ScheduleChain, Scheduling } from './scheduling.ts';
import type { CheckedBatch } from './shown.ts';

interface SchedulingParts extends CallClock {
  readonly batch: Pick<CheckedBatch, 'add' | 'addMany'>;
}

/** What is settled when the user calls, and not when what was scheduled is sent: the order of calls is the order of jobs. */
interface Moment {
  /** Monotonic. */
  readonly calledMs: number;
  /** The ids that were reserved, where they are made for the jobs. */
  readonly newId: (() => string) | undefined;
  /** Of a call that goes through middleware: it has had its turn since it was made. */
  readonly turn?: Turn;
  /** The call, where an application traces its calls. */
  readonly span?: SendSpan;
}

/** The calls, through the middleware where there is any. */
export function schedulingOf(
  settings: ClientSettings,
  calls: Calls<SchedulingParts>,
  chain: ScheduleChain,
): Scheduling {
  const { clock } = settings;
  const { turns } = calls;
  const momentOf = (count: number): Moment => ({
    calledMs: clock.monotonicMs(),
    newId: count === 0 ? undefined : reserveJobIds(count),
  });
  const plain = tracedCalls(plainCalls(settings, calls), momentOf);

  /** However long a middleware takes, the jobs keep the moment of the call, and the call its place among others. */
  async function through(
    given: { readonly queue: QueueInput<unknown>; readonly jobs: readonly BulkJob<unknown>[] },
    last: (call: ScheduleCall, moment: Moment) => Promise<readonly Scheduled[]>,
  ): Promise<readonly Scheduled[]> {
    calls.check();
    checkList(given.jobs, 'jobs');
    const queue = queueOf(given.queue);
    const jobs = snapshot(given.jobs);
    const turn = turns.take([claimOf(queue, jobs)]);
    const moment = { ...momentOf(jobs.length), turn };
    try {
      return await turns.inside(turn, () => calls.track(chain.run({ queue, jobs }, (call) => last(call, moment))));
    } finally {
      turn.end();
    }
  }

  async function one(
    queue: QueueInput<unknown>,
    data: unknown,
    { durability, ...rest }: ScheduleOptions & DurabilityOption,
  ): Promise<Scheduled> {
    const level = durability === undefined ? {} : { durability: snapshot(durability) };
    const results = await through({ queue, jobs: [{ ...rest, data }] }, async (call, moment) => {
      const [job] = call.jobs;
      if (!job || call.jobs.length > 1) return plain.scheduleMany(call, level, moment);
      const { data: known, ...own } = job;
      return [await plain.schedule({ queue: call.queue, data: known, options: { ...own, ...level } }, moment)];
    });
    const [scheduled] = results;
    if (scheduled) return scheduled;
    throw new DuestreamError('bad-input', 'a middleware gave no result for a job; allowed: what next resolves to');
  }

  // These functions are not async: without middleware a call makes no promise of its own.
  return {
    schedule: (queue: QueueInput<unknown>, data: unknown, options: ScheduleOptions & DurabilityOption = {}) =>
      chain.isEmpty() ? plain.schedule({ queue, data, options }) : one(queue, data, options),
    scheduleMany: (queue: QueueInput<unknown>, jobs: readonly BulkJob<unknown>[], given: DurabilityOption = {}) => {
      if (chain.isEmpty())
        return plain.scheduleMany({ queue, jobs }, given, momentOf(Array.isArray(jobs) ? jobs.length : 0));
      const options = snapshot(given);
      return through({ queue, jobs }, (call, moment) => plain.scheduleMany(call, options, moment));
    },
  };
}

interface OneCall {
  readonly queue: QueueInput<unknown>;
  readonly data: unknown;
  readonly options: ScheduleOptions & DurabilityOption;
}

interface ListCall {
  readonly queue: QueueInput<unknown>;
  readonly jobs: readonly BulkJob<unknown>[];
}

/** What a call that schedules these jobs changes. A job whose id is made for it is meant by no other call. */
const claimOf = (queue: Queue<unknown>, jobs: readonly Pick<ScheduleOptions, 'id' | 'group' | 'set'>[]): Claim => ({
  lane: queue.name,
  kind: 'jobs',
  keys: jobs.flatMap((job) => namedMember(job ?? {}) ?? []),
});

const claimOfPlans = (queue: Queue<unknown>, plans: readonly Plan[]): Claim => ({
  lane: queue.name,
  kind: 'jobs',
  keys: plans.flatMap(({ id, isNewId }) => (isNewId === true ? [] : [memberOf(id)])),
});

function limitsIn(parts: SchedulingParts, to: Queue<unknown>, { calledMs, newId, span }: Moment): PlanLimits {
  const limits = parts.limits(calledMs, newId, to);
  return span ? { ...limits, carry: span.carry } : limits;
}

function plainCalls(settings: ClientSettings, calls: Calls<SchedulingParts>) {
  const { clock } = settings;
  const { turns } = calls;
  const levelIn = createLevels(settings);

  function scheduleNow({ queue, data, options }: OneCall, moment: Moment): Promise<Scheduled> {
    if (!moment.turn) calls.check();
    const level = levelIn(options);
    const to = queueOf(queue);
    const sealed = hasContent(to) ? seal(to, { name: options.name, data }) : data;
    const parts = calls.opened(level);
    if (!moment.turn && parts && !isPromise(sealed) && (options?.at !== undefined || !parts.server.settle())) {
      return parts.batch.add(to, planJob(sealed, options, limitsIn(parts, to, moment)));
    }
    // For its refusals alone: the due time is counted from the clock of Redis, which may not be known yet.
    const refusing = { ...limitsOf(settings), nowMs: clock.wallMs(), delivery: to.delivery };
    if (!isPromise(sealed)) planJob(sealed, options, refusing);
    const known = Promise.resolve(hasContent(to) ? sealed : dataText(sealed));
    // A call that waits for others is refused when it is its turn.
    known.catch(() => undefined);
    const said = snapshot(options);
    const send = async (made: SchedulingParts) => {
      const record = await known;
      if (said.at === undefined) await made.server.settle();
      return made.batch.add(to, planJob(record, said, limitsIn(made, to, moment)), 'none');
    };
    return calls.run(send, level, moment.turn ?? turns.take([claimOf(to, [said])]));
  }

  function scheduleManyNow({ queue, jobs }: ListCall, options: DurabilityOption, moment: Moment) {
    if (!moment.turn) calls.check();
    checkNames(options, ['durability'], 'scheduleMany', 'bad-input');
    const level = levelIn(options);
    checkList(jobs, 'jobs');
    const to = queueOf(queue);
    const parts = calls.opened(level);
    if (!moment.turn && parts && !hasContent(to) && !parts.server.settle()) {
      const within = limitsIn(parts, to, moment);
      const plans = eachJob(jobs, (job) => planListed(job, within));
      if (isOneSlice(plans)) {
        return calls.run(({ batch }) => scheduleAll(plans, (slice) => batch.addMany(to, slice)), level);
      }
      return calls.run((made) => sendSlices(made, to, plans), level, turns.take([claimOfPlans(to, plans)]));
    }
    const kept = eachJob(jobs, ({ data, ...said }) => ({ ...snapshot(said), data: dataText(data) }));
    const send = async (made: SchedulingParts) => {
      await made.server.settle();
      const within = limitsIn(made, to, moment);
      const plans = await eachInTurns(kept, async (job) =>
        planListed(hasContent(to) ? { ...job, data: await seal(to, job) } : job, within),
      );
      return sendSlices(made, to, plans);
    };
    return calls.run(send, level, moment.turn ?? turns.take([claimOf(to, kept)]));
  }

  return { scheduleNow, scheduleManyNow };
}

/** Each call is a span where the application traces its calls. Where it does not, nothing is made for that. */
function tracedCalls(
  { scheduleNow, scheduleManyNow }: ReturnType<typeof plainCalls>,
  momentOf: (count: number) => Moment,
) {
  return {
    schedule(call: OneCall, given?: Moment): Promise<Scheduled> {
      const moment = given ?? momentOf(call.options?.id === undefined ? 1 : 0);
      const span = beginSend(call.queue);
      if (!span) return orRejected(() => scheduleNow(call, moment));
      return span.through(() => orRejected(() => scheduleNow(call, { ...moment, span })));
    },
    scheduleMany(call: ListCall, options: DurabilityOption, moment: Moment): Promise<readonly Scheduled[]> {
      const span = beginSend(call.queue, call.jobs);
      if (!span) return orRejected(() => scheduleManyNow(call, options, moment));
      return span.through(() => orRejected(() => scheduleManyNow(call, options, { ...moment, span })));
    },
  };
}

/** A list that has its turn: in it, jobs of one id are in a line of their own. */
function sendSlices(
  { batch }: SchedulingParts,
  to: Queue<unknown>,
  plans: readonly Plan[],
): Promise<readonly Scheduled[]> {
  const own = new Lane();
  return scheduleAll(plans, (slice) => batch.addMany(to, slice, own));
}

/** What is thrown before anything was sent is what the call rejects with. */
function orRejected<T>(call: () => Promise<T>): Promise<T> {
  try {
    return call();
  } catch (error) {
    return Promise.reject(error);
  }
}
