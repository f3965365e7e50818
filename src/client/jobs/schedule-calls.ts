/** How a producer schedules: what is given is read and checked, then planned by the clock of Redis, then sent. */

import { hasContent, seal } from '../../job/content.ts';
import { reserveJobIds } from '../../job/job-id.ts';
import type { ScheduleOptions } from '../../job/options.ts';
import { type QueueInput, queueOf } from '../../job/queue.ts';
import { isPromise } from '../../kernel/checks.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Level } from '../../redis/durable/level.ts';
import { createLevels, type DurabilityOption } from '../calls/durability.ts';
import { planJob } from '../calls/plan.ts';
import type { Scheduled } from '../calls/scheduled.ts';
import type { Calls } from '../calls/session.ts';
import type { ClientSettings } from '../calls/settings.ts';
import { checkList } from '../calls/target.ts';
import { limitsOf, type OneJob, type ScheduleMoment, scheduleList, scheduleOne } from '../parts.ts';
import type { BulkJob, ScheduleCall, ScheduleChain, Scheduling } from './scheduling.ts';

/** The calls, through the middleware where there is any. */
export function schedulingOf(settings: ClientSettings, calls: Calls, chain: ScheduleChain): Scheduling {
  const { clock } = settings;
  const plain = plainCalls(settings, calls);
  const momentOf = (count: number): ScheduleMoment => ({
    calledMs: clock.monotonicMs(),
    newId: reserveJobIds(count),
  });

  /** However long a middleware takes, the jobs keep the moment of the call. */
  async function through(
    given: { readonly queue: QueueInput<unknown>; readonly jobs: readonly BulkJob<unknown>[] },
    last: (call: ScheduleCall, moment: ScheduleMoment) => Promise<readonly Scheduled[]>,
  ): Promise<readonly Scheduled[]> {
    calls.check();
    checkList(given.jobs, 'jobs');
    const moment = momentOf(given.jobs.length);
    return chain.run({ queue: queueOf(given.queue), jobs: given.jobs }, (call) => last(call, moment));
  }

  async function one(
    queue: QueueInput<unknown>,
    data: unknown,
    { durability, ...rest }: ScheduleOptions & DurabilityOption,
  ): Promise<Scheduled> {
    const level = durability === undefined ? {} : { durability };
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
      chain.isEmpty() ? plain.schedule({ queue, data, options }, momentOf(1)) : one(queue, data, options),
    scheduleMany: (queue: QueueInput<unknown>, jobs: readonly BulkJob<unknown>[], options: DurabilityOption = {}) =>
      chain.isEmpty()
        ? plain.scheduleMany({ queue, jobs }, options, momentOf(Array.isArray(jobs) ? jobs.length : 0))
        : through({ queue, jobs }, (call, moment) => plain.scheduleMany(call, options, moment)),
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

function plainCalls(settings: ClientSettings, { check, opened, run, runChecked }: Calls) {
  const { clock } = settings;
  const levelIn = createLevels(settings);

  function scheduleKnown(job: OneJob, asked: Level | undefined): Promise<Scheduled> {
    const parts = opened(asked);
    const runAsked: typeof run = asked ? (work) => run(work, asked) : run;
    if (parts) return scheduleOne(parts, job, runAsked);
    // For its refusals alone: the due time is counted from the clock of Redis, which is not known yet.
    planJob(job.data, job.options, { ...limitsOf(settings), nowMs: clock.wallMs(), delivery: job.to.delivery });
    return run((made) => scheduleOne(made, job, (work) => work(made)), asked);
  }

  return {
    schedule({ queue, data, options }: OneCall, moment: ScheduleMoment): Promise<Scheduled> {
      try {
        check();
        const asked = levelIn(options);
        const to = queueOf(queue);
        const sealed = hasContent(to) ? seal(to, { name: options.name, data }) : data;
        const go = (known: unknown) => scheduleKnown({ to, data: known, options, moment }, asked);
        return isPromise(sealed) ? sealed.then(go) : go(sealed);
      } catch (error) {
        return Promise.reject(error);
      }
    },
    scheduleMany: ({ queue, jobs }: ListCall, options: DurabilityOption, moment: ScheduleMoment) =>
      runChecked(
        () => {
          checkList(jobs, 'jobs');
          return { to: queueOf(queue), list: jobs, moment };
        },
        scheduleList,
        () => levelIn(options, []),
      ),
  };
}
