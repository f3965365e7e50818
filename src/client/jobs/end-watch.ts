/**
 * Who waits for jobs to end hears of it, and asks:
 *
 *   listen to K:over of their partitions ──▶ ask: the script `await` marks the jobs, or says how they have ended
 *                                               ▲                          │
 *                                               └── 5 s, or a reconnect ───┴──▶ a message: a job is over
 *
 * Whoever ends a job that is marked says so. The message is an optimisation: one that was lost, or a mark that a new life of
 * the job took away, costs no more than the 5 s until the same call is made again.
 */
import type { Queue } from '../../job/queue.ts';
import type { Clock } from '../../kernel/clock.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Listener } from '../../redis/channels.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { AWAIT_JOBS_MAX } from '../../redis/scripts/bytes.ts';
import { type AwaitReply, type End, endTold, type Moved } from '../../redis/scripts/replies.ts';
import { homeOf, type Layout } from '../calls/layouts.ts';
import { type CallPartitions, isMoved } from '../calls/partition-calls.ts';
import { withReadRetry } from '../calls/retry.ts';

/** What ends are heard and asked through: Redis, or the jobs of the test kit. */
export interface EndSource {
  readonly clock: Clock;
  readonly callPartitions: CallPartitions;
  /** How long until the same call is made again. */
  readonly againMs: number;
  /** Aborts when the client stops. */
  readonly stopping: AbortSignal | undefined;
  readonly listen: (ref: PartitionRef, listener: Listener) => Heard;
  /** Subscribes what could not be subscribed before. */
  readonly mend: () => void;
  readonly ask: (ref: PartitionRef, members: readonly string[]) => Promise<readonly AwaitReply[] | Moved>;
}

/** A partition that is listened to. */
export interface Heard {
  readonly isDeaf: () => boolean;
  readonly stop: () => void;
}

/** A job whose end is waited for. */
export interface Awaited {
  readonly id: string;
  readonly bare: boolean;
  readonly member: string;
  /** Where it was found. Default: the partition of its id. */
  readonly partition?: number | undefined;
}

/** `unknown`: nothing is known of the job · `timeout`: the time is up, and the job is not over. */
export type EndNews = { readonly job: Awaited } & (End | { readonly kind: 'unknown' | 'timeout' });

export interface EndAsk {
  readonly queue: Queue;
  readonly jobs: readonly Awaited[];
  /** Monotonic ms at which the time is up. */
  readonly endMs: number;
  readonly signal: AbortSignal | undefined;
}

/** How each of the jobs ended, as it comes. @throws DuestreamError `unavailable`, `stopped`; or the reason of the signal */
export async function* endsOf(source: EndSource, ask: EndAsk): AsyncGenerator<EndNews, void, undefined> {
  const watch = new EndWatch(source, ask);
  try {
    yield* watch.news();
  } finally {
    watch.close();
  }
}

/** A message is at most so late, compared with the reply of another connection that was sent after it. */
const MESSAGE_MS = 100;
/** How long a subscription is waited for before a call is made without it. */
const SUBSCRIBE_MS = 1000;

class EndWatch {
  readonly #source: EndSource;
  readonly #ask: EndAsk;
  readonly #signals: readonly AbortSignal[];
  readonly #open: Set<Awaited>;
  /** Those that wait, as Redis has said. */
  readonly #marked = new Set<Awaited>();
  /** By partition and member. */
  readonly #byPlace = new Map<string, Awaited>();
  readonly #heard = new Map<string, Heard>();
  readonly #found: EndNews[] = [];
  #isMissed = false;
  #wake: () => void = () => undefined;

  constructor(source: EndSource, ask: EndAsk) {
    this.#source = source;
    this.#ask = ask;
    this.#open = new Set(ask.jobs);
    this.#signals = [ask.signal, source.stopping].flatMap((signal) => signal ?? []);
    for (const signal of this.#signals) signal.addEventListener('abort', this.#awake);
  }

  close(): void {
    for (const { stop } of this.#heard.values()) stop();
    for (const signal of this.#signals) signal.removeEventListener('abort', this.#awake);
  }

  async *news(): AsyncGenerator<EndNews, void, undefined> {
    const { clock, againMs } = this.#source;
    for (let isFirst = true; this.#open.size > 0; isFirst = false) {
      await this.#look(isFirst);
      const againAtMs = clock.monotonicMs() + againMs;
      do {
        yield* this.#found.splice(0);
        this.#check();
      } while (await this.#waits(againAtMs));
    }
    yield* this.#found.splice(0);
  }

  /** Until there is something to tell, or the time is up. @returns whether it goes on without another look */
  async #waits(againAtMs: number): Promise<boolean> {
    if (this.#found.length > 0) return true;
    const nowMs = this.#source.clock.monotonicMs();
    if (this.#open.size === 0 || this.#isMissed || nowMs >= againAtMs) return false;
    const { endMs } = this.#ask;
    if (nowMs < endMs) await this.#sleep(Math.min(againAtMs, endMs) - nowMs);
    else for (const job of this.#open) this.#settle({ job, kind: 'timeout' });
    return true;
  }

  readonly #awake = () => this.#wake();

  /** Asks how all of them are. In an outage only the first look fails: the others are made again until the time is up. */
  async #look(isFirst: boolean): Promise<void> {
    this.#check();
    if (!isFirst) this.#source.mend();
    const asking = this.#source.callPartitions(this.#ask.queue, async (layout, policy) => {
      const groups = this.#groupsIn(layout);
      await this.#listen(groups.map(({ ref }) => ref));
      this.#isMissed = false;
      for (const { ref, jobs } of groups) {
        const members = jobs.map(({ member }) => member);
        const replies = await withReadRetry('wait', () => this.#source.ask(ref, members), policy);
        if (isMoved(replies)) return replies;
        await this.#take(jobs, replies);
      }
      return undefined;
    });
    try {
      await (isFirst ? asking : this.#unlessOver(asking));
    } catch (error) {
      const isAway = error instanceof DuestreamError && error.code === 'unavailable';
      if (isFirst || !isAway) throw error;
    }
  }

  /** A look in an outage may take longer than there is time. */
  async #unlessOver(asking: Promise<unknown>): Promise<void> {
    asking.catch(() => undefined);
    const calledOff: { readonly by: () => void }[] = [];
    const isOver = new Promise<void>((resolve) => {
      const leftMs = Math.max(0, this.#ask.endMs - this.#source.clock.monotonicMs());
      calledOff.push({ by: this.#source.clock.timer(leftMs, resolve) });
      for (const signal of this.#signals) {
        const onAbort = () => resolve();
        signal.addEventListener('abort', onAbort);
        calledOff.push({ by: () => signal.removeEventListener('abort', onAbort) });
      }
    });
    try {
      await Promise.race([asking, isOver]);
    } finally {
      for (const { by } of calledOff) by();
    }
  }

  /** Those that are still waited for, as many as one call takes. */
  #groupsIn(layout: Layout): readonly { readonly ref: PartitionRef; readonly jobs: readonly Awaited[] }[] {
    const places = new Map<PartitionRef, Awaited[]>();
    this.#byPlace.clear();
    for (const job of this.#open) {
      const ref = layout[job.partition ?? -1] ?? homeOf(layout, job.id);
      this.#byPlace.set(`${ref.partition} ${job.member}`, job);
      const here = places.get(ref) ?? [];
      places.set(ref, here);
      here.push(job);
    }
    return [...places].flatMap(([ref, jobs]) =>
      Array.from({ length: Math.ceil(jobs.length / AWAIT_JOBS_MAX) }, (_, at) => ({
        ref,
        jobs: jobs.slice(at * AWAIT_JOBS_MAX, (at + 1) * AWAIT_JOBS_MAX),
      })),
    );
  }

  /** A job that ends between the call and the subscription would be told to nobody, so the subscription comes first. */
  async #listen(refs: readonly PartitionRef[]): Promise<void> {
    const { clock, listen } = this.#source;
    const known = this.#heard.size;
    for (const ref of refs) {
      const channel = ref.keys.over;
      if (!this.#heard.has(channel))
        this.#heard.set(
          channel,
          listen(ref, (said) => this.#hear(ref, said)),
        );
    }
    if (this.#heard.size === known) return;
    const untilMs = clock.monotonicMs() + SUBSCRIBE_MS;
    for (let leftMs = SUBSCRIBE_MS; leftMs > 0 && this.#isDeaf(); leftMs = untilMs - clock.monotonicMs()) {
      await this.#sleep(leftMs);
      this.#check();
    }
  }

  #isDeaf(): boolean {
    return [...this.#heard.values()].some(({ isDeaf }) => isDeaf());
  }

  #hear({ partition }: PartitionRef, message: string | undefined): void {
    if (message === undefined) {
      this.#isMissed = true;
      this.#wake();
      return;
    }
    const told = endTold(message);
    const job = told && this.#byPlace.get(`${partition} ${told.member}`);
    if (told && job) this.#settle({ job, kind: 'over', over: told.over, token: told.token });
  }

  async #take(jobs: readonly Awaited[], replies: readonly AwaitReply[]): Promise<void> {
    const gone: Awaited[] = [];
    for (const [at, job] of jobs.entries()) {
      const reply = replies[at];
      if (reply?.kind === 'over') this.#settle({ job, ...reply });
      if (reply?.kind === 'waits') this.#marked.add(job);
      if (reply?.kind === 'unknown') gone.push(job);
    }
    // Where ends are not remembered, the message says how it was.
    if (gone.some((job) => this.#marked.has(job))) await this.#source.clock.sleep(MESSAGE_MS);
    for (const job of gone) this.#settle({ job, kind: 'unknown' });
  }

  #settle(news: EndNews): void {
    if (!this.#open.delete(news.job)) return;
    this.#found.push(news);
    this.#wake();
  }

  /** @throws why nobody waits any more */
  #check(): void {
    for (const signal of this.#signals) signal.throwIfAborted();
  }

  /** Until something is heard, at most. */
  async #sleep(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const callOff = this.#source.clock.timer(ms, resolve);
      this.#wake = () => {
        callOff();
        resolve();
      };
    });
  }
}
