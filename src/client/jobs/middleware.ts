/**
 * What stands around the calls that schedule: each middleware sees the whole call, may change its jobs, refuse it, or look
 * at its results. It stands outside of everything else, so what it adds is checked and encoded like what the caller gave.
 * Without one, a call goes its way without a look.
 */

import type { Queue, Untyped } from '../../job/queue.ts';
import { checkFunction, checkNames } from '../../kernel/checks.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Scheduled } from '../calls/scheduled.ts';
import type { BulkJob } from './scheduling.ts';

/** One call of `schedule`, which has one job, or of `scheduleMany`. */
export interface ScheduleCall {
  readonly queue: Queue;
  /** Data beside options, as in `scheduleMany`. */
  readonly jobs: readonly BulkJob<Untyped>[];
}

/** Returns what `next` resolves to: a result per job, in their order. To refuse a call, throw. */
export type ScheduleMiddleware = (
  call: ScheduleCall,
  next: (call: ScheduleCall) => Promise<readonly Scheduled[]>,
) => Promise<readonly Scheduled[]>;

/** What a producer takes; `handle` is for workers, so that one object can be given to both. */
export interface ClientMiddleware {
  readonly schedule?: ScheduleMiddleware | undefined;
}

/** @throws DuestreamError `bad-input` */
export function checkMiddleware(middleware: object): void {
  checkNames(middleware, ['schedule', 'handle'], 'a middleware', 'bad-input');
  const given = Object.entries(middleware).filter(([, part]) => part !== undefined);
  for (const [name, part] of given) checkFunction(part, `${name} of a middleware`);
  if (given.length > 0) return;
  throw new DuestreamError('bad-input', 'a middleware has neither schedule nor handle; allowed: one of them, or both');
}

/** Those of one producer, the first one outermost. */
export interface ScheduleChain {
  readonly use: (middleware: ClientMiddleware) => void;
  readonly isEmpty: () => boolean;
  readonly run: (call: ScheduleCall, last: ScheduleNext) => Promise<readonly Scheduled[]>;
}

type ScheduleNext = (call: ScheduleCall) => Promise<readonly Scheduled[]>;

export function createScheduleChain(): ScheduleChain {
  const all: ScheduleMiddleware[] = [];
  return {
    use(middleware) {
      checkMiddleware(middleware);
      if (middleware.schedule) all.push(middleware.schedule);
    },
    isEmpty: () => all.length === 0,
    async run(call, last) {
      const through = all.reduceRight<ScheduleNext>(
        (next, middleware) => async (given) => middleware(given, once(next)),
        last,
      );
      return through(call);
    },
  };
}

/** A second `next` would schedule everything twice. */
function once(next: ScheduleNext): ScheduleNext {
  let isCalled = false;
  return async (call) => {
    if (isCalled) throw new DuestreamError('bad-input', 'a middleware called next twice; allowed: once per call');
    isCalled = true;
    return next(call);
  };
}
