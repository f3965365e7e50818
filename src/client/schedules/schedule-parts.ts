/** What calls on schedules stand on: a connection, or the schedules of the test kit. */
import type { Redis } from '../../redis/connection/connect.ts';
import { createJobs, type Jobs } from '../../redis/scripts/jobs.ts';
import { once, type Repeating } from '../calls/retry.ts';
import { type ForecastParts, waitingIn } from './forecast.ts';
import { createScheduleStore, definitionsIn, type ScheduleStore } from './schedule-store.ts';

export interface ScheduleParts extends ForecastParts {
  readonly store: ScheduleStore;
  readonly jobs: Pick<Jobs, 'schedule'>;
  /** How each step is repeated. */
  readonly steps: Repeating;
  /** The same parts, whose steps are not repeated. */
  readonly alone: () => ScheduleParts;
}

/** The parts over a connection. */
export function schedulePartsOn(redis: Redis, namespace: string, steps: Repeating): ScheduleParts {
  return {
    steps,
    store: createScheduleStore({ redis, namespace, steps }),
    jobs: createJobs(redis),
    definitions: definitionsIn({ redis, namespace }),
    waiting: (queue, edges) => waitingIn({ redis, namespace }, queue, edges),
    alone: () => schedulePartsOn(redis, namespace, once),
  };
}
