/**
 * One start of one job: judged, then its handler, then judged again, and on to the settle station. What is decided
 * stands in `job/judge.ts`; here it is carried out.
 */
import type { JobRecord } from '../../job/codec.ts';
import type { Abandoned } from '../../job/compensation.ts';
import type { Rules } from '../../job/judge.ts';
import { startVerdict } from '../../job/judgement.ts';
import type { Queue } from '../../job/queue.ts';
import type { Started } from '../../redis/scripts/replies.ts';
import { handlerFor } from './handler-for.ts';
import type { Handler, PlainHandlers } from './handlers.ts';
import type { InFlightEntry } from './in-flight.ts';
import type { HandleChain } from './middleware.ts';
import { type Executing, endedUnstarted, nowMs, Run, rulesFor, type Stations } from './run.ts';
import { within } from './within.ts';

export interface ExecuteParts extends Stations {
  readonly queue: Queue;
  readonly handlers: PlainHandlers<never>;
  readonly onAbandoned: Handler<Abandoned> | undefined;
  /** A handler inside of all middleware. */
  readonly around: HandleChain['around'];
}

/** Runs a started entry to its outcome. Returns at once, and never throws; the settle station hears of the end. */
export type Execute = (held: InFlightEntry, started: Started) => void;

export function createExecute(parts: ExecuteParts): Execute {
  const { queue, handlers, onAbandoned, around, ...stations } = parts;
  const rules: Rules<Handler<never>> = {
    queue,
    handlerOf: (name) => handlerFor({ handlers, onAbandoned, around }, name),
    compensations: onAbandoned !== undefined,
  };
  const executing: Executing = { ...stations, queue: queue.name, rules };
  return (held, started) => {
    try {
      execute(executing, held, started);
    } catch (thrown) {
      executing.faults.caught(held, thrown, { attempt: started.attempts });
    }
  };
}

function execute(executing: Executing, held: InFlightEntry, started: Started): void {
  const { settle, inFlight } = executing;
  const rules = rulesFor(executing, held);
  const life = { member: held.delivery.member, started };
  const verdict = startVerdict(life, rules, nowMs(executing, held));
  if (verdict.kind === 'run' && verdict.isOver && verdict.opening) {
    void openFirst(executing, new Run(executing, held, life, verdict), verdict.opening);
    return;
  }
  if (verdict.kind === 'refused') {
    inFlight.refused(held);
    settle.settle(endedUnstarted(held, verdict.name, started.record), verdict.outcome);
    return;
  }
  const run = new Run(executing, held, life, verdict);
  if (verdict.isOver) settle.acknowledge(run.endedAfter(), () => run.begin());
  else run.begin();
}

/**
 * Of a job that is over before its handler, the data must be known to be good before that. Nothing extends its lease
 * meanwhile: if somebody else starts it, this start is not the one that completes it, and its handler is not called.
 */
async function openFirst(
  { clock, inFlight, settle, faults }: Executing,
  run: Run,
  opening: Promise<JobRecord>,
): Promise<void> {
  const { held, verdict } = run;
  try {
    const record = await within(opening, { clock, timeoutMs: verdict.timeoutMs });
    run.verdict = { ...verdict, record, opening: undefined };
    settle.acknowledge(run.endedAfter(), () => run.begin());
  } catch (thrown) {
    try {
      const outcome = run.judgeUnopened(thrown);
      inFlight.refused(held);
      settle.settle(endedUnstarted(held, verdict.record.name, run.record), outcome);
    } catch (fault) {
      faults.caught(held, fault, { name: verdict.record.name });
    }
  }
}
