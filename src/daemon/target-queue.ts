/**
 * One queue whose jobs call a URL, with the worker that serves it. A job is handled by what the target says at that time, so another
 * target needs no other worker.
 */
import { closeIn } from '../client/groups/rules.ts';
import { queueOptions } from '../config/load.ts';
import type { Config } from '../config/options.ts';
import type { CallReport, UrlCaller } from '../dispatch/call-url.ts';
import type { HostSlots } from '../dispatch/host-slots.ts';
import { createHostWatch } from '../dispatch/host-watch.ts';
import type { CallEnd } from '../dispatch/send/sender.ts';
import { type Emitter, forward } from '../job/events.ts';
import { isGated } from '../job/gate.ts';
import type { Job } from '../job/job.ts';
import { groupOf } from '../job/labels.ts';
import { Defer } from '../job/outcome.ts';
import { type Queue, queueFrom } from '../job/queue.ts';
import type { QueueTarget } from '../job/target.ts';
import { readTargetUrl } from '../job/target-url.ts';
import { WORDS_CHARS_MAX } from '../kernel/checks.ts';
import type { Clock } from '../kernel/clock.ts';
import { oneLine } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import { reasonOf } from '../kernel/reason.ts';
import type { RedisInput } from '../redis/connection/address.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { partitionsOf, type QueueLayout } from '../redis/scripts/queues.ts';
import { readWork, readWorkerOptions, type WorkerSettings } from '../worker/options.ts';
import type { HandlerContext } from '../worker/run/handlers.ts';
import { type WatchedWorker, workerOf } from '../worker/worker.ts';
import { createRedisPlaces, createTargetCaller } from './target-calls.ts';

export interface TargetQueueParts {
  readonly config: Config;
  readonly redis: RedisInput;
  /** Of the daemon: to close groups over it, and to see where Redis is. */
  readonly connection: Redis;
  readonly log: Log;
  readonly events: Emitter;
  readonly clock: Clock;
  /** Of all queues of this daemon. */
  readonly slots: HostSlots;
  /** Of all workers of this daemon. */
  readonly workerSettings: Omit<WorkerSettings, 'redis' | 'log'>;
}

const CLOSE_BUDGET_MS = 3000;
/** A job that comes while the worker stops waits for the next one. */
const STOPPING_MS = 5000;
/** A job whose host has no slot comes again after this, or up to twice as long. */
const NO_SLOT_MS = 1000;
/** A handler may take longer than its request: the closing of a group comes after that. */
const TIMEOUT_MS = 930_000;
const ATTEMPTS = 8;
const PER_GROUP = 10;

export class TargetQueue {
  readonly worker: WatchedWorker;
  readonly #parts: TargetQueueParts;
  readonly #hosts = createHostWatch();
  readonly #redisNow: () => Iterable<string>;
  readonly #unforward: () => void;
  #layout: QueueLayout;
  #said: string;
  #caller: UrlCaller | undefined;
  #host: string;
  readonly #concurrency: number;

  /** @throws DuestreamError `bad-config` for a target that this daemon cannot call */
  constructor(parts: TargetQueueParts, layout: QueueLayout, target: QueueTarget) {
    this.#parts = parts;
    this.#layout = layout;
    this.#said = JSON.stringify(target);
    this.#redisNow = createRedisPlaces(parts.connection);
    this.#caller = this.#callerOf(target);
    this.#host = hostOf(target);
    this.#concurrency = concurrencyOf(target, parts);
    const { config, redis, log, events, workerSettings } = parts;
    const settings = { ...readWorkerOptions({ ...workerSettings, redis, log }), dispatches: true };
    const work = {
      queue: targetQueueOf(layout, config),
      handler: (job: Job, context: HandlerContext) => this.#handle(job, context),
      concurrency: this.#concurrency,
    };
    this.worker = workerOf({ settings, works: readWork([work], settings) });
    this.#unforward = forward(this.worker.events, events);
  }

  /** Whether its worker can serve another target, too. */
  suits(target: QueueTarget): boolean {
    return concurrencyOf(target, this.#parts) === this.#concurrency;
  }

  start(): Promise<void> {
    return this.worker.start();
  }

  /** @throws DuestreamError `bad-config` for a target that this daemon cannot call */
  follow(layout: QueueLayout, target: QueueTarget): void {
    this.#layout = layout;
    const said = JSON.stringify(target);
    if (said === this.#said) return;
    const before = this.#caller;
    this.#caller = this.#callerOf(target);
    this.#host = hostOf(target);
    this.#said = said;
    before?.close();
  }

  async stop(): Promise<void> {
    await this.worker.stop();
    this.#unforward();
    this.#caller?.close();
    this.#caller = undefined;
  }

  #callerOf(target: QueueTarget): UrlCaller {
    const { config } = this.#parts;
    return createTargetCaller(target, config.targets, {
      redisNow: this.#redisNow,
      onCall: (report) => this.#ended(report),
    });
  }

  async #handle(job: Job, context: HandlerContext): Promise<unknown> {
    if (!this.#caller) throw new Defer(STOPPING_MS, 'the dispatcher stops');
    const host = this.#caller.hostOf(job);
    const leave = this.#parts.slots.enter(host);
    if (!leave)
      throw new Defer(NO_SLOT_MS * (1 + Math.random()), `${host} has as many requests as targets.perHost allows`);
    try {
      return await this.#caller.handle(job, context);
    } finally {
      leave();
    }
  }

  /**
   * A host that cannot be reached closes the group of the job, or, of a job without one, the queue: they go to that host. A job
   * without a group that says another host closes nothing.
   */
  async #ended({ host, id, end }: CallReport): Promise<void> {
    const { connection, config, clock, log, events } = this.#parts;
    const { queue } = this.#layout;
    events.emit('target.called', { queue, outcome: classOf(end), tookMs: end.tookMs });
    if (end.kind === 'answered' && end.status === 410) events.emit('target.gone', { queue, id, host });
    const forMs = this.#hosts.note(host, end, clock.monotonicMs());
    const group = groupOf(id) ?? (host === this.#host ? '' : undefined);
    if (forMs === undefined || end.kind !== 'no-answer' || group === undefined) return;
    const closing = {
      group,
      until: { forMs, calledMs: clock.monotonicMs() },
      why: oneLine(`${host} cannot be reached: ${end.why}`, WORDS_CHARS_MAX),
      by: 'dispatcher',
    };
    try {
      const refs = partitionsOf(config.namespace, this.#layout);
      const reply = await closeIn(connection, refs, closing, { clock, budgetMs: CLOSE_BUDGET_MS });
      if (reply === 'ok') events.emit('target.closed', { queue, host, forMs, why: end.why });
    } catch (error) {
      // The job is to be settled all the same.
      log.warn({ queue, host, why: reasonOf(error) }, 'the group of a host that cannot be reached could not be closed');
    }
  }
}

/** Where all jobs go to one host, more than it may have would come and be put aside. */
const concurrencyOf = (
  { hosts }: QueueTarget,
  { config: { targets }, slots }: Pick<TargetQueueParts, 'config' | 'slots'>,
): number => (hosts === undefined ? Math.min(targets.concurrency, slots.max) : targets.concurrency);

const hostOf = ({ url }: QueueTarget): string => readTargetUrl(url, 'url of the target').host;

/** As metrics count it. */
function classOf(end: CallEnd): string {
  if (end.kind !== 'answered') return end.kind === 'refused' ? 'refused' : 'none';
  return end.status === 429 ? '429' : `${Math.floor(end.status / 100)}xx`;
}

/**
 * The queue as its dispatcher serves it. It is gated from the start: else a host that does not answer would take all slots, and nothing
 * could be closed.
 */
function targetQueueOf(layout: QueueLayout, config: Config): Queue {
  const said = queueOptions(config, layout.queue);
  const fair = { fair: true as const };
  // Nobody can count what runs where jobs are over before their handlers.
  const gates = said.delivery === 'at-most-once' ? fair : { ...fair, perGroup: PER_GROUP };
  return queueFrom(layout.queue, said, {
    attempts: ATTEMPTS,
    timeoutMs: TIMEOUT_MS,
    ...(isGated(layout) ? {} : gates),
  });
}
