/** What a client is given, checked: its options once, and the queue and the id that each call names. */

import { parseJobId, parseName } from '../../job/job.ts';
import { workerOption } from '../../job/worker-options.ts';
import {
  asConfig,
  checkNames,
  closedMaxRange,
  dataBytesMaxRange,
  durationIn,
  wholeNumber,
} from '../../kernel/checks.ts';
import { type Clock, systemClock } from '../../kernel/clock.ts';
import { type DurationInput, show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { CONNECT_TIMEOUT_MS, parseAddress, type RedisInput } from '../../redis/connection/address.ts';
import type { Level } from '../../redis/durable/level.ts';
import { type Durability, levelOf } from './durability.ts';

/** What `createClient` takes. */
export interface ClientOptions {
  /** A URL, an object with its `url` and options beside it, or options of ioredis: see `RedisInput`. */
  readonly redis: RedisInput;
  /** Prefix of every key. Default `duestream`; the same for clients, daemons and workers. */
  readonly namespace?: string | undefined;
  /** How far ahead a job may be due: `1s` to `3650d`, the default. */
  readonly horizon?: DurationInput | undefined;
  /** Largest data of a job in bytes of JSON: 1 to 64 MiB. Default 262144. In the configuration: `limits.dataBytesMax`. */
  readonly dataBytesMax?: number | undefined;
  /**
   * How long a call is repeated in an outage: 0 to `5m`, at most half of `doneWindow`. Default `10s`. If it is longer than
   * `done.retryBudget` of the daemons (10 s), raise that too: else a repeated call may make a second job.
   */
  readonly retryBudget?: DurationInput | undefined;
  /** How long Redis remembers a job that this client cancelled: 0 (not at all) to `30d`. Default `10m`. */
  readonly doneWindow?: DurationInput | undefined;
  /** How many tags of a queue may be closed at a time: 1 to 10,000,000. Default 200000. In the configuration: `mover.closedMax`. */
  readonly closedMax?: number | undefined;
  /** Who must have a write before its call resolves, unless the call says otherwise. Default `memory`: see `Durability`. */
  readonly durability?: Durability | undefined;
  /** How long Redis waits for the replicas and disks of a durable call: `1ms` to `10s`. Default `5s`. */
  readonly durabilityTimeout?: DurationInput | undefined;
  /** Shows in CLIENT LIST as `duestream:<name>`. Default `client`. */
  readonly name?: string | undefined;
  /** For tests. */
  readonly clock?: Clock | undefined;
}

export interface ClientSettings {
  readonly redis: RedisInput;
  readonly namespace: string;
  readonly horizonMs: number;
  readonly dataBytesMax: number;
  readonly budgetMs: number;
  /** How long a first call waits for Redis: at least for one whole try to connect. */
  readonly waitMs: number;
  readonly windowMs: number;
  readonly closedMax: number;
  /** Of calls that do not name theirs; undefined: the memory of the primary is enough. */
  readonly level: Level | undefined;
  readonly durabilityTimeoutMs: number;
  readonly name: string;
  readonly clock: Clock;
}

const DAY_MS = 86_400_000;
const BARE_CHARS_MAX = 1024;
const NAME = /^[!-~]{1,64}$/;

const PRODUCER_OPTIONS: readonly string[] = Object.keys({
  redis: 0,
  namespace: 0,
  horizon: 0,
  dataBytesMax: 0,
  retryBudget: 0,
  doneWindow: 0,
  closedMax: 0,
  name: 0,
  clock: 0,
  durability: 0,
  durabilityTimeout: 0,
} satisfies Record<keyof ClientOptions, number>);

/** @throws DuestreamError `bad-config` */
export function clientSettings(options: ClientOptions): ClientSettings {
  checkNames(options, PRODUCER_OPTIONS, 'createClient');
  return settingsOf(options);
}

/** @throws DuestreamError `bad-config` */
export function settingsOf(options: ClientOptions): ClientSettings {
  return asConfig(() => checked(options));
}

function checked(options: ClientOptions): ClientSettings {
  const { redis, name = 'client', clock = systemClock } = options;
  const { connectTimeoutMs = CONNECT_TIMEOUT_MS } = parseAddress(redis);
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw new DuestreamError('bad-input', `name is ${show(name)}; allowed: 1 to 64 printable ASCII characters`);
  }
  const windowMs = workerOption('doneWindow', options.doneWindow);
  // A repeated call is recognised by what the window keeps, so it must have ended well within it.
  const budgetMax = windowMs === 0 ? 300_000 : Math.min(300_000, windowMs / 2);
  const durabilityTimeoutMs = durationIn(options.durabilityTimeout ?? '5s', 'durabilityTimeout', {
    min: 1,
    max: 10_000,
  });
  const budgetMs = durationIn(options.retryBudget ?? '10s', 'retryBudget', { min: 0, max: budgetMax });
  return {
    redis,
    namespace: parseName(options.namespace ?? 'duestream', 'namespace'),
    ...parseLimits(options),
    budgetMs,
    waitMs: Math.max(budgetMs, connectTimeoutMs),
    windowMs,
    closedMax: wholeNumber(options.closedMax ?? closedMaxRange.default, { what: 'closedMax', ...closedMaxRange }),
    level: levelOf(options.durability, durabilityTimeoutMs),
    durabilityTimeoutMs,
    name,
    clock,
  };
}

/** How far ahead a job may be due, and how large its data may be. @throws DuestreamError `bad-input` */
export const parseLimits = ({
  horizon = '3650d',
  dataBytesMax = dataBytesMaxRange.default,
}: Pick<ClientOptions, 'horizon' | 'dataBytesMax'>): Pick<ClientSettings, 'horizonMs' | 'dataBytesMax'> => ({
  horizonMs: durationIn(horizon, 'horizon', { min: 1000, max: 3650 * DAY_MS }),
  dataBytesMax: wholeNumber(dataBytesMax, { what: 'dataBytesMax', ...dataBytesMaxRange }),
});

/** The id of a job to look up: also those that duestream made itself, and with `bare` those of foreign producers. */
export function parseAnyId(input: unknown, bare: boolean): string {
  if (!bare) return parseJobId(input, { internal: true });
  if (typeof input === 'string' && input !== '' && input.length <= BARE_CHARS_MAX && !input.startsWith('j:'))
    return input;
  throw new DuestreamError(
    'bad-input',
    `bare id is ${show(input)}; allowed: 1 to ${BARE_CHARS_MAX} characters that do not begin with j:`,
  );
}
