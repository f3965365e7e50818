/** How a producer schedules: what is given is read and checked, then planned by the clock of Redis, then sent. */
import { hasContent, isPromise, seal } from '../core/content.ts';
import type { ScheduleOptions } from '../core/job-options.ts';
import type { Level } from '../redis/durable/level.ts';
import { checkList } from './bulk.ts';
import type { Calls } from './calls.ts';
import { createLevels, type DurabilityOption } from './durability.ts';
import { planJob } from './plan.ts';
import { limitsOf, type OneJob, scheduleList, scheduleOne } from './producer-parts.ts';
import type { Scheduled } from './scheduled.ts';
import type { BulkJob, Scheduling } from './scheduling.ts';
import { type ProducerSettings, type QueueInput, queueOf } from './settings.ts';

export function schedulingOf(settings: ProducerSettings, { check, opened, run, runChecked }: Calls): Scheduling {
  const { clock } = settings;
  const levelIn = createLevels(settings);

  function scheduleKnown(job: OneJob, asked: Level | undefined): Promise<Scheduled> {
    const parts = opened(asked);
    const again: typeof run = asked ? (work) => run(work, asked) : run;
    if (parts) return scheduleOne(parts, job, again);
    // For its refusals alone: the due time is counted from the clock of Redis, which is not known yet.
    planJob(job.data, job.options, { ...limitsOf(settings), nowMs: clock.wallMs() });
    return run((made) => scheduleOne(made, job, (work) => work(made)), asked);
  }

  return {
    schedule(queue: QueueInput<unknown>, data: unknown, options: ScheduleOptions & DurabilityOption = {}) {
      const calledMs = clock.monotonicMs();
      try {
        check();
        const asked = levelIn(options);
        const to = queueOf(queue);
        const sealed = hasContent(to) ? seal(to, { name: options.name, data }) : data;
        const go = (known: unknown) => scheduleKnown({ to, data: known, options, calledMs }, asked);
        return isPromise(sealed) ? sealed.then(go) : go(sealed);
      } catch (error) {
        return Promise.reject(error);
      }
    },
    scheduleMany: (queue: QueueInput<unknown>, list: readonly BulkJob<unknown>[], options: DurabilityOption = {}) =>
      runChecked(
        () => {
          checkList(list, 'jobs');
          return { to: queueOf(queue), list, calledMs: clock.monotonicMs() };
        },
        scheduleList,
        () => levelIn(options, []),
      ),
  };
}
