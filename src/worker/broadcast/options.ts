/** What a subscriber can be told, read once and checked. */

import { parseName } from '../../job/job.ts';
import { type Queue, queueOf } from '../../job/queue.ts';
import { workerOption, workerOptions } from '../../job/worker-options.ts';
import { quietly } from '../../kernel/callbacks.ts';
import { asConfig, checkFunction, checkNames } from '../../kernel/checks.ts';
import { type Clock, systemClock } from '../../kernel/clock.ts';
import { type DurationInput, show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { type Log, parseLog } from '../../kernel/log.ts';
import { parseAddress, type RedisInput } from '../../redis/connection/address.ts';
import { type Pace, paceOf } from '../fetch/polling-fetcher.ts';
import { isBatchHandler } from '../run/batch.ts';
import { checkHandlers, type QueueHandlers } from '../run/handlers.ts';

/** Jobs that a subscriber did not get. */
export interface Missed {
  readonly queue: string;
  readonly partition: number;
  /**
   * `bounds`: they left the stream before they were read. `lost-writes`: Redis has lost what it had sent, as after a
   * failover; jobs may have been missed, and some may come twice.
   */
  readonly reason: 'bounds' | 'lost-writes';
  /** How many; undefined where nobody can know. */
  readonly count: number | undefined;
}

/** What `createSubscriber` takes. */
export interface SubscriberOptions {
  /** A URL, an object with its `url` and options beside it, or options of ioredis: see `RedisInput`. */
  readonly redis: RedisInput;
  /** Default `duestream`. */
  readonly namespace?: string | undefined;
  /** Where it begins: with what is sent from its start on (`now`, the default), or with the oldest job that is still kept. */
  readonly from?: 'now' | 'oldest' | undefined;
  /** Called when jobs were sent that this process did not get. Without it they are told by the event `jobs.missed`. */
  readonly onMissed?: ((missed: Missed) => void) | undefined;
  /** How long a running handler may take to end at a stop: 0 to `1d`, default `25s`. */
  readonly shutdown?: DurationInput | undefined;
  /** How long a heartbeat is valid, by which others see this subscriber: `100ms` to `1h`, default `10s`. */
  readonly beatTtl?: DurationInput | undefined;
  /**
   * How often it looks for jobs without being told of them: `10ms` to `5s`, default `1s`, and ten times a second while Redis
   * does not let it listen. Where you set it, it looks no more often than that.
   */
  readonly pollEvery?: DurationInput | undefined;
  readonly log?: Log | undefined;
  /** For tests. */
  readonly clock?: Clock | undefined;
}

const SUBSCRIBER_OPTIONS: readonly string[] = Object.keys({
  redis: 0,
  namespace: 0,
  from: 0,
  onMissed: 0,
  shutdown: 0,
  beatTtl: 0,
  pollEvery: 0,
  log: 0,
  clock: 0,
} satisfies Record<keyof SubscriberOptions, number>);

export interface SubscriberSettings {
  readonly queue: Queue;
  readonly handlers: QueueHandlers<never>;
  readonly redis: RedisInput;
  readonly namespace: string;
  readonly fromOldest: boolean;
  readonly onMissed: ((missed: Missed) => void) | undefined;
  readonly shutdownMs: number;
  readonly beatTtlMs: number;
  readonly pace: Pace;
  /** As handlers' own calls need it: how long a call may be repeated. */
  readonly windowMs: number;
  readonly log: Log;
  readonly clock: Clock;
}

/** @throws DuestreamError `bad-config` */
export function readSubscriber(
  queue: Queue | string,
  handlers: QueueHandlers<never>,
  options: SubscriberOptions,
): SubscriberSettings {
  checkNames(options, SUBSCRIBER_OPTIONS, 'createSubscriber');
  return asConfig(() => {
    const { from = 'now', onMissed, clock = systemClock } = options;
    parseAddress(options.redis);
    const definition = queueOf<unknown>(queue);
    checkHandlers(definition.name, handlers, definition.jobs);
    if (isBatchHandler(handlers)) {
      throw new DuestreamError(
        'bad-input',
        `the handler of subscriber ${definition.name} takes batches; allowed: handlers for single jobs, because a job that is sent to everybody is over before its handler begins`,
      );
    }
    if (from !== 'now' && from !== 'oldest') {
      throw new DuestreamError('bad-input', `from is ${show(from)}; allowed: now, oldest`);
    }
    if (onMissed !== undefined) checkFunction(onMissed, 'onMissed');
    return {
      queue: definition,
      handlers,
      redis: options.redis,
      log: parseLog(options.log),
      clock,
      namespace: parseName(options.namespace ?? 'duestream', 'namespace'),
      onMissed: quietly('onMissed', onMissed),
      fromOldest: from === 'oldest',
      shutdownMs: workerOption('shutdown', options.shutdown),
      beatTtlMs: workerOption('beatTtl', options.beatTtl),
      pace: paceOf(workerOption('pollEvery', options.pollEvery), options.pollEvery !== undefined),
      windowMs: workerOptions.doneWindow.fallback,
    };
  });
}
