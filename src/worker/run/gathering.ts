/**
 * Batches: jobs that were started are gathered until they are enough, and one call of a handler takes them.
 *
 *  a start ─▶ joins ─▶ open batch of its partition (and group) ─▶ full, or its first job waited long enough ─▶ ripe ─▶ called
 *               │                │                                                                              │
 *               │                └─ a job is lost meanwhile: it leaves the batch, and ends alone                 ▼
 *               └─ a worker died under it before: a batch of its own, at once              each job ends by itself
 *
 * What must always hold. Each job is a start of its own, from Redis to its end (`execution.ts`): its lease is extended while it
 * waits for others, its time counts from the call of its batch, and nothing here knows how it ends. As many batches run as the worker has
 * `concurrency`; one that is ripe waits for its turn, and takes jobs until it is full. While a batch runs that is not full, the places that
 * it leaves empty are no free slots: else jobs would be started that had to wait for its end, while another worker has nothing to do.
 */

import type { Job } from '../../job/job.ts';
import { type HandledJob, type Together, togetherOf } from '../../job/judge.ts';
import { groupOf } from '../../job/labels.ts';
import { type AbortReason, Defer } from '../../job/outcome.ts';
import { createAbort } from '../../kernel/abort.ts';
import { type Clock, setImmediate } from '../../kernel/clock.ts';
import { crash } from '../../kernel/crash.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Log } from '../../kernel/log.ts';
import { type Batch, type BatchHandler, type BatchJob, type BatchTarget, GATED_WAIT_MS_MAX } from './batch.ts';
import { inBatch } from './context.ts';
import type { HandlerCalls, HandlerContext } from './handler-context.ts';
import type { InFlight, InFlightEntry } from './in-flight.ts';

/** A start whose handler takes batches. */
export interface Member {
  readonly entry: InFlightEntry;
  /** It waits for its batch: its time does not run. @returns why not, where it was lost while its data were opened */
  readonly joined: () => AbortReason | undefined;
  /** Its batch is called with all these jobs, and its time begins. @returns the epoch ms at which it is up */
  readonly called: (together: Together) => number;
  /** With its data open. */
  readonly handled: HandledJob;
}

/** What a member brings. */
export interface Joining {
  readonly job: Job<never>;
  readonly context: HandlerContext;
}

interface GatheringParts {
  readonly batch: BatchHandler<never>;
  /** So many batches run at once. */
  readonly concurrency: number;
  readonly inFlight: Pick<InFlight, 'setAside'>;
  readonly around: (call: BatchCall) => BatchCall;
  readonly clock: Clock;
  readonly log: Log;
  readonly calls: () => HandlerCalls;
}

export type BatchCall = (batch: Batch<never>) => unknown;

interface Place extends Joining {
  readonly member: Member;
  readonly end: (thrown: Thrown | undefined) => void;
}

/** Boxed: anything can be thrown. */
interface Thrown {
  readonly thrown: unknown;
}

interface OpenBatch {
  readonly key: string;
  readonly group: string | undefined;
  readonly places: Place[];
  /** Calls off its wait. */
  disarm: () => void;
}

export class Gathering {
  readonly #parts: GatheringParts;
  /** Those that still take jobs, by partition and group. */
  readonly #open = new Map<string, OpenBatch>();
  /** Those that are to be called, the first first. They may be open. */
  readonly #ripe = new Set<OpenBatch>();
  /** Where a start waits. */
  readonly #waiting = new Map<Member, OpenBatch>();
  #running = 0;
  #isHurried = false;

  constructor(parts: GatheringParts) {
    this.#parts = parts;
  }

  /** Settles as the job of this start ends in its batch. */
  join(member: Member, { job, context }: Joining): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (thrown: Thrown | undefined) => (thrown ? reject(thrown.thrown) : resolve());
      const lost = member.joined();
      if (lost !== undefined) {
        end({ thrown: abortedBefore(lost) });
        return;
      }
      const batch = this.#batchFor(member, job);
      batch.places.push({ member, job, context, end });
      this.#waiting.set(member, batch);
      if (batch.places.length === this.#parts.batch.size) this.#fill(batch);
      else if (this.#isHurried || batch.key === ALONE) this.#ripen(batch);
    });
  }

  /** A job is lost before its batch was called. Returns whether it was there. */
  leave(member: Member, why: AbortReason): boolean {
    const batch = this.#waiting.get(member);
    const at = batch?.places.findIndex((place) => place.member === member) ?? -1;
    if (!batch || at === -1) return false;
    const [place] = batch.places.splice(at, 1);
    this.#waiting.delete(member);
    if (batch.places.length === 0) this.#drop(batch);
    place?.end({ thrown: abortedBefore(why) });
    return true;
  }

  /** The worker stops: nothing more comes, so no batch waits for more. */
  hurry(): void {
    this.#isHurried = true;
    for (const batch of this.#open.values()) this.#ripen(batch);
  }

  #batchFor({ entry }: Member, job: Job<never>): OpenBatch {
    const group = this.#parts.batch.by === 'group' ? groupOf(entry.delivery.member) : undefined;
    if (job.crashes > 0) return { key: ALONE, group, places: [], disarm: () => undefined };
    const key = `${entry.ref.partition} ${group ?? ''}`;
    const known = this.#open.get(key);
    if (known) return known;
    const batch: OpenBatch = { key, group, places: [], disarm: () => undefined };
    this.#open.set(key, batch);
    this.#await(batch, entry);
    return batch;
  }

  /** From the first job on. What one reply of Redis brought is here before the next turn of the event loop. */
  #await(batch: OpenBatch, { ref }: InFlightEntry): void {
    const {
      clock,
      batch: { waitMs },
    } = this.#parts;
    const ms = ref.gates === undefined ? waitMs : Math.min(waitMs, GATED_WAIT_MS_MAX);
    if (ms > 0) batch.disarm = clock.timer(ms, () => this.#ripen(batch));
    else setImmediate(() => this.#ripen(batch));
  }

  #fill(batch: OpenBatch): void {
    this.#close(batch);
    this.#ripen(batch);
  }

  #ripen(batch: OpenBatch): void {
    if (batch.places.length === 0) return;
    batch.disarm();
    this.#ripe.add(batch);
    this.#callNext();
  }

  #close(batch: OpenBatch): void {
    if (this.#open.get(batch.key) === batch) this.#open.delete(batch.key);
  }

  #drop(batch: OpenBatch): void {
    batch.disarm();
    this.#close(batch);
    this.#ripe.delete(batch);
  }

  #callNext(): void {
    const { concurrency } = this.#parts;
    for (const batch of this.#ripe) {
      if (this.#running >= concurrency) return;
      this.#drop(batch);
      this.#call(batch).catch(crash);
    }
  }

  async #call({ places, group }: OpenBatch): Promise<void> {
    const {
      batch: { size, handler },
      inFlight,
      around,
      log,
      calls,
    } = this.#parts;
    const unused = size - places.length;
    this.#running += 1;
    inFlight.setAside(unused);
    for (const { member } of places) this.#waiting.delete(member);
    const together = togetherOf(places.map(({ member }) => member.handled));
    const deadlineMs = Math.min(...places.map(({ member }) => member.called(together)));
    const called = new CalledBatch(places, { group, deadlineMs, log, calls });
    const ending = await endOf(around(handler), called);
    // Before its jobs end: what ends makes room, and what comes then joins a batch that may be called.
    this.#running -= 1;
    inFlight.setAside(-unused);
    called.end(ending);
    this.#callNext();
  }
}

const abortedBefore = (why: AbortReason): Error => new Error(`job aborted before its batch was called: ${why}`);

/** The key of a batch that takes no other job. No partition has this name. */
const ALONE = 'alone';

/** What the handler threw, if it did. */
async function endOf(call: BatchCall, batch: Batch<never>): Promise<Thrown | undefined> {
  try {
    await call(batch);
    return undefined;
  } catch (thrown) {
    return { thrown };
  }
}

interface Called {
  readonly group: string | undefined;
  readonly deadlineMs: number;
  readonly log: Log;
  readonly calls: () => HandlerCalls;
}

/** What the handler gets. Its functions stand alone, so that a handler can take it apart. */
class CalledBatch implements Batch<never> {
  readonly jobs: readonly BatchJob<never>[];
  readonly group: string | undefined;
  readonly deadlineMs: number;
  readonly log: Log;
  readonly fail: Batch['fail'];
  readonly defer: Batch['defer'];
  readonly #places: readonly Place[];
  readonly #calls: () => HandlerCalls;
  /** What the handler said of single jobs. */
  readonly #said = new Map<Place, Thrown>();
  #abort: AbortController | undefined = undefined;
  #isOver = false;

  constructor(places: readonly Place[], { group, deadlineMs, log, calls }: Called) {
    this.#places = places;
    this.#calls = calls;
    this.group = group;
    this.deadlineMs = deadlineMs;
    this.log = log;
    this.jobs = places.map(({ job, context }) => inBatch(job, context));
    this.fail = (target, error) => void this.#said.set(this.#placeOf(target, 'fail'), { thrown: error });
    this.defer = (target, delay, options) =>
      void this.#said.set(this.#placeOf(target, 'defer'), { thrown: new Defer(delay, options) });
  }

  get tag(): string {
    return this.#places[0]?.context.tag ?? '';
  }

  get signal(): AbortSignal {
    this.#abort ??= this.#watched();
    return this.#abort.signal;
  }

  get lost(): readonly BatchJob<never>[] {
    return this.jobs.filter(({ signal }) => signal.aborted);
  }

  get schedule(): HandlerCalls['schedule'] {
    return this.#calls().schedule;
  }

  get reschedule(): HandlerCalls['reschedule'] {
    return this.#calls().reschedule;
  }

  get cancel(): HandlerCalls['cancel'] {
    return this.#calls().cancel;
  }

  /** The handler has ended: now each job has its end. */
  end(ending: Thrown | undefined): void {
    this.#isOver = true;
    for (const place of this.#places) place.end(this.#said.get(place) ?? ending);
  }

  #watched(): AbortController {
    const abort = createAbort();
    const signals = this.jobs.map(({ signal }) => signal);
    const test = () => {
      if (!signals.every(({ aborted }) => aborted)) return;
      abort.abort(new Error('batch aborted: its last job is lost'));
    };
    for (const signal of signals) signal.addEventListener('abort', test, { once: true });
    test();
    return abort;
  }

  #placeOf(target: BatchTarget, what: 'fail' | 'defer'): Place {
    if (this.#isOver) throw new DuestreamError('bad-input', `${what} was called after the handler had ended`);
    const isIt = ({ id, bare }: Job) =>
      typeof target === 'string' ? id === target : id === target?.id && bare === target.bare;
    const found = this.#places.find(({ job }) => isIt(job));
    if (found) return found;
    throw new DuestreamError('bad-input', `${what} was given ${show(target)}; allowed: a job of this batch, or its id`);
  }
}
