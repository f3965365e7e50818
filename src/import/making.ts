/**
 * How an import makes jobs: by the calls of a client, as any producer does. A job has one id, and the same call is recognised while
 * the job lives and within the done window after its end, so a repeated import makes nothing twice.
 */
import type { DurabilityOption } from '../client/calls/durability.ts';
import { limitsOf, type PlanLimits, planJob } from '../client/calls/plan.ts';
import type { Client, Scheduled, ScheduleOptions } from '../client/client.ts';
import type { Queue } from '../job/queue.ts';
import { DuestreamError, messageOf } from '../kernel/errors.ts';
import type { Said } from './tally.ts';

/** What of this side every import is given. */
export interface Here {
  readonly client: Pick<Client, 'schedule' | 'get' | 'queues' | 'schedules'>;
  /** A queue as the configuration defines it. */
  readonly queueOf: (name: string) => Queue;
  readonly limits: Pick<PlanLimits, 'horizonMs' | 'dataBytesMax'>;
  /** How long the end of a job is remembered. */
  readonly windowMs: number;
}

/** What a person says of every import. */
export interface Manner {
  /** `move`: a job leaves the other product when it is here. `copy`: it stays there too. `dry-run`: nothing is written. */
  readonly mode: 'move' | 'copy' | 'dry-run';
  /** Also jobs of which nobody can know whether they ran here. */
  readonly again: boolean;
  readonly durability: DurabilityOption;
}

/** The call that makes a job. */
export interface JobCall {
  readonly data: unknown;
  readonly options: ScheduleOptions;
}

/** What is remembered of the call of a job that was taken. */
export interface KeptCall {
  readonly id: string;
  readonly dueMs: number;
  readonly takenMs: number;
}

/** Makes the jobs of one queue. */
export class Maker {
  readonly #here: Here;
  readonly #manner: Manner;
  readonly target: Queue;
  /** When the import of the queue began. */
  readonly nowMs: number;

  constructor(here: Here, manner: Manner, { target, nowMs }: { readonly target: Queue; readonly nowMs: number }) {
    this.#here = here;
    this.#manner = manner;
    this.target = target;
    this.nowMs = nowMs;
  }

  /** Why duestream would refuse the job; undefined: it would not. */
  unfit({ data, options }: JobCall): Said | undefined {
    try {
      planJob(data, options, { ...limitsOf(this.#here.limits), nowMs: this.nowMs });
      return undefined;
    } catch (error) {
      if (!(error instanceof DuestreamError) || error.code !== 'bad-input') throw error;
      return { kind: 'unfit', text: `a job does not fit here: ${messageOf(error)}` };
    }
  }

  /**
   * Makes the jobs.
   *
   * @returns what became of each, in their order
   * @throws DuestreamError in an outage: some may have been made, and the same calls are recognised
   */
  async make(calls: readonly JobCall[]): Promise<readonly ('imported' | 'there' | Said)[]> {
    const { client } = this.#here;
    const { durability } = this.#manner;
    const made = await Promise.allSettled(
      calls.map(({ data, options }) => client.schedule(this.target, data, { ...options, ...durability })),
    );
    return made.map(fateOf);
  }

  /** Whether the call of a job that was taken some time ago may be made again. */
  async known({ id, dueMs, takenMs }: KeptCall): Promise<'callable' | 'there' | 'unsure'> {
    // Whatever has become of the job, the call is recognised. Half of the window, because the clocks may differ.
    if (this.nowMs < Math.max(dueMs, takenMs) + this.#here.windowMs / 2) return 'callable';
    if ((await unlessMissing(this.#here.client.get(this.target.name, id))) !== undefined) return 'there';
    return this.#manner.again ? 'callable' : 'unsure';
  }
}

/** Undefined for what a queue that nobody has used here answers. */
export async function unlessMissing<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof DuestreamError && error.code === 'not-found') return undefined;
    throw error;
  }
}

/** @throws what the call has failed with, unless this one job was refused */
function fateOf(made: PromiseSettledResult<Scheduled>): 'imported' | 'there' | Said {
  if (made.status === 'fulfilled') {
    const { status } = made.value;
    if (status === 'already') return 'there';
    return status === 'scheduled' ? 'imported' : { kind: status, text: `${OTHER} (${status})` };
  }
  const error: unknown = made.reason;
  if (!(error instanceof DuestreamError) || !REFUSALS.includes(error.code)) throw error;
  return { kind: error.code, text: `a job was refused here: ${messageOf(error)}` };
}

const REFUSALS: readonly string[] = ['bad-input', 'queue-full', 'group-full'];
const OTHER = 'another job of this id lives here, which stays as it was';

// What is said of jobs by every import.

export const CUT_SHORT = 'cut short';
export const CHANGED: Said = { kind: 'changed', text: 'it changed while it was read: the next import looks again' };
export const UNSURE: Said = {
  kind: 'unsure',
  text: 'an import was cut short so long ago that these may have run here: look, then import with --again',
};
