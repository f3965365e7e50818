/**
 * Every option there is: type, default, allowed range, flag and one line of prose, in one table. The type `Config`,
 * the names of environment variables, the reference and every error message come from here,
 * so that none of them can say something else. Whatever can grow has a maximum.
 */
import { z } from 'zod';
import { parseShared, SHARED_ALLOWED, SHARED_MAX, type SharedLimitOptions } from '../job/shared-limit.ts';
import { READS, workerOptions } from '../job/worker-options.ts';
import { COLORS, closedMaxRange, dataBytesMaxRange, queueRanges } from '../kernel/checks.ts';
import { isNetwork } from '../kernel/networks.ts';
import { PROFILES, RHYTHMS } from '../kernel/rhythm.ts';
import { queue } from './queue-options.ts';
import { redisOptions } from './redis-options.ts';
import { type Ms, ms, type Option, option, shared, tableOf, whole } from './table.ts';
import { targetOptions } from './target-options.ts';

const SECOND = 1000;
const HOUR = 3600 * SECOND;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

const ROLES = ['mover', 'http', 'worker', 'dispatcher'] as const;
const LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

const PATH = { kind: 'text', allowed: 'a path of at most 4096 characters, or empty' } as const;
const path = (doc: string) => option(z.string().max(4096).default(''), { ...PATH, doc });
const TOKENS = ['beyond-loopback', 'always'] as const;
const SCOPES = ['read', 'data', 'write', 'admin', 'work'] as const;
const MINUTES = ['auto', 'on', 'off'] as const;

/** The HTTP API: who may ask, by which names, how much, and with which certificate. */
const api = {
  api: option(z.enum(['on', 'off']).default('on'), {
    kind: 'text',
    doc: 'Whether the HTTP API answers below /v1.',
    allowed: 'on, off',
  }),
  tokens: option(z.enum(TOKENS).default('beyond-loopback'), {
    kind: 'text',
    doc: 'Where the HTTP API needs a token of "duestream tokens create": at other addresses than loopback, or always.',
    allowed: TOKENS.join(', '),
  }),
  allowedHosts: option(
    z
      .array(z.string().regex(/^[A-Za-z0-9.:-]{1,255}$/))
      .max(100)
      .default([]),
    {
      kind: 'list',
      doc: 'The names by which the HTTP API may be asked, besides http.host and those of loopback; without a port.',
      allowed: 'at most 100 host names or IP addresses',
    },
  ),
  allowedOrigins: option(
    z
      .array(z.string().regex(/^https?:\/\/[A-Za-z0-9.:[\]-]{1,255}$/))
      .max(100)
      .default([]),
    {
      kind: 'list',
      doc: 'The pages of other hosts that may use the HTTP API (CORS).',
      allowed: 'at most 100 origins such as https://ops.example.com',
    },
  ),
  trustProxy: option(z.array(z.string().refine(isNetwork)).max(100).default([]), {
    kind: 'list',
    doc: 'The addresses of proxies in front: from them X-Forwarded-Host, -Proto, -Prefix and Forwarded count, and http.userHeader.',
    allowed: 'at most 100 addresses or networks such as 10.0.0.5, 10.0.0.0/8, fd00::/8',
  }),
  userHeader: option(
    z
      .string()
      .regex(/^(?!(authorization|cookie|host)$)[A-Za-z0-9-]{0,64}$/i)
      .default(''),
    {
      kind: 'text',
      doc: 'The header in which a proxy of http.trustProxy says who has logged in there, such as X-Forwarded-Email; empty means none.',
      allowed:
        'the name of a header, or empty; it needs http.trustProxy, and at an address beyond loopback http.allowedHosts',
    },
  ),
  userScopes: option(z.array(z.enum(SCOPES)).min(1).max(SCOPES.length).default(['read']), {
    kind: 'list',
    doc: 'What users of http.userHeader may.',
    allowed: `one or more of ${SCOPES.join(', ')}`,
  }),
  title: option(
    z
      .string()
      .regex(/^[^\p{Cc}\p{Bidi_Control}]{0,40}$/u)
      .default(''),
    {
      kind: 'text',
      doc: 'By what people tell this installation from others, at the top of every page of the dashboard: production.',
      allowed: 'at most 40 characters without line breaks, or empty',
    },
  ),
  color: option(z.enum(COLORS).default('none'), {
    kind: 'text',
    doc: 'The colour of http.title and of the edge of every page.',
    allowed: COLORS.join(', '),
  }),
  minutes: option(z.enum(MINUTES).default('auto'), {
    kind: 'text',
    doc: 'Whether leaders keep counts and lateness by the minute for a day, by the hour for 90 days and by the day for 13 months; auto: daemons that also answer the HTTP API do.',
    allowed: MINUTES.join(', '),
  }),
  metricGroups: whole(0, {
    min: 0,
    max: 100,
    doc: 'For how many groups of each queue with limits /metrics tells how many of their jobs are in line: the longest. A scrape then looks at every group. 0: for none.',
  }),
  cert: path('With TLS: the file with the certificate that the server shows; it needs http.key.'),
  key: path('With TLS: the file with the key of http.cert.'),
  bodyBytesMax: whole(4 * 1024 * 1024, {
    min: 1024,
    max: 64 * 1024 * 1024,
    unit: 'bytes',
    doc: 'How large the body of a request to the HTTP API may be.',
  }),
  batchMax: whole(1000, { min: 1, max: 10_000, doc: 'How many jobs one request to the HTTP API may name.' }),
  rateMax: whole(200, {
    min: 1,
    max: 1_000_000,
    doc: 'How many requests per second a caller of the HTTP API may send.',
  }),
  work: option(z.enum(['on', 'off']).default('off'), {
    kind: 'text',
    doc: 'Whether workers in any language may claim jobs over HTTP. Their tokens need the scope work.',
    allowed: 'on, off',
  }),
  pollsMax: whole(500, {
    min: 1,
    max: 10_000,
    doc: 'How many claims of workers over HTTP may wait in this daemon at a time. So many connections more are taken.',
  }),
  pollsMaxPerToken: whole(200, {
    min: 1,
    max: 10_000,
    doc: 'How many of them may be of one token.',
  }),
  workRateMax: whole(2000, {
    min: 1,
    max: 1_000_000,
    doc: 'How many requests per second one token may send for workers over HTTP, beside http.rateMax.',
  }),
};

const http = z.strictObject({
  host: option(
    z
      .string()
      .regex(/^[A-Za-z0-9.:_-]{1,255}$/)
      .default('127.0.0.1'),
    {
      kind: 'text',
      doc: 'The address at which health and metrics listen.',
      allowed: 'a host name or an IP address; any but a loopback one needs http.token',
      flag: 'http-host',
    },
  ),
  port: whole(7420, {
    min: 0,
    max: 65_535,
    flag: 'http-port',
    doc: 'The port at which health and metrics listen; 0 takes any free port and prints it.',
  }),
  keepAlive: ms(
    75_000,
    { min: 1000, max: 3_600_000 },
    'How long a connection stays open between two requests. Longer than the balancer in front keeps its own.',
  ),
  token: option(
    z
      .string()
      .regex(/^([\x21-\x7e]{16,256})?$/)
      .default(''),
    {
      kind: 'text',
      doc: 'The bearer token that callers of /metrics must send; empty means none.',
      allowed: '16 to 256 printable characters without spaces, or empty',
      secret: 'value',
    },
  ),
  ...api,
});

const mover = z.strictObject({
  lease: ms(
    RHYTHMS.default.leaseMs,
    { min: 500, max: 60_000 },
    'How long a leader keeps its lease without renewing it; then another daemon may lead. With the profile quiet: 1m.',
  ),
  batchMax: whole(300, { min: 1, max: 500, doc: 'How many jobs one pass may promote.' }),
  readyMax: whole(10_000, {
    min: 1,
    max: 1_000_000,
    doc: 'How many jobs may be ready and not yet delivered before promotion pauses.',
  }),
  closedMax: whole(closedMaxRange.default, {
    min: closedMaxRange.min,
    max: closedMaxRange.max,
    doc: 'How many tags of a queue may be closed at a time, by the HTTP API and the command line; a client has the option closedMax. A tag more is refused. About 128 bytes each, in every partition.',
  }),
  linger: ms(
    0,
    queueRanges.lingerMs,
    'How long due jobs may wait for company, in queues that say nothing of it: passes are so far apart at least. The daemon that started last says it for the whole namespace.',
  ),
});

const { doneWindow, ...ofWorker } = workerOptions;

const worker = z.strictObject({
  module: option(z.string().max(4096).default(''), {
    kind: 'text',
    doc: 'The file whose default export holds the handlers, relative to the working directory.',
    allowed: 'a path of at most 4096 characters; the worker role needs one',
    flag: 'module',
  }),
  read: option(z.enum(READS).default('block'), {
    kind: 'text',
    doc: 'How a worker waits for jobs: block in a read, or poll every worker.pollEvery, for services that refuse reads that block.',
    allowed: READS.join(', '),
  }),
  ...shared(ofWorker),
  timeout: ms(
    900_000,
    queueRanges.timeoutMs,
    'How long a handler may run before its signal aborts, unless its queue says otherwise.',
  ),
});

const done = z.strictObject({
  window: shared({ doneWindow }).doneWindow,
  max: whole(10_000, {
    min: 0,
    max: 10_000_000,
    doc: 'How many ends of jobs are remembered per partition. Ends of the last minute are always kept, because their calls may be repeated. 0 remembers nothing.',
  }),
  retryBudget: ms(
    10_000,
    { min: 0, max: 300_000 },
    'The longest retryBudget of your producers. However many ends there are, each is kept for at least twice the sum of this and redis.commandTimeout.',
  ),
});

const dead = z.strictObject({
  retention: ms(30 * DAY, { min: SECOND, max: 10 * YEAR }, 'How long dead letters are kept.'),
  max: whole(100_000, { min: 1, max: 10_000_000, doc: 'How many dead letters are kept per partition.' }),
});

const limits = z.strictObject({
  dataBytesMax: whole(dataBytesMaxRange.default, {
    min: dataBytesMaxRange.min,
    max: dataBytesMaxRange.max,
    unit: 'bytes',
    doc: 'How large the JSON data of one job may be.',
  }),
  horizon: ms(10 * YEAR, { min: SECOND, max: 10 * YEAR }, 'How far in the future a job may be due.'),
});

const log = z.strictObject({
  level: option(z.enum(LEVELS).default('info'), {
    kind: 'text',
    doc: 'The level of the log: lines of this level and above it are written.',
    allowed: LEVELS.join(', '),
    flag: 'log-level',
  }),
});

const schedules = z.strictObject({
  file: option(z.string().max(4096).default(''), {
    kind: 'text',
    doc: 'A YAML file of schedules, relative to the working directory. At its start a daemon with the role mover creates, changes and removes schedules to match it.',
    allowed: 'a path of at most 4096 characters, or empty: schedules are left alone',
    flag: 'schedules',
  }),
});

/** Limits with a name, which several queues share. They are defined when a daemon starts. */
const sharedLimits = option(
  z.record(z.string().regex(/^[a-z0-9][a-z0-9._-]{0,63}$/), z.custom<SharedLimitOptions>(isShared)).default({}),
  {
    kind: 'text',
    doc: 'Limits with a name, which queues share that name them in `queues.<name>.limits`: each a rate or a concurrency of all of them together.',
    allowed: `an object with at most ${SHARED_MAX} names, each with ${SHARED_ALLOWED}, as { "provider": { "rate": "10/s" } }`,
  },
);

function isShared(given: unknown): boolean {
  try {
    parseShared('', given);
    return true;
  } catch {
    return false;
  }
}

/** The whole configuration; missing sections and options take their defaults, unknown ones are refused. */
export const schema = z.strictObject({
  namespace: option(
    z
      .string()
      .regex(/^[a-z0-9][a-z0-9._-]{0,63}$/)
      .default('duestream'),
    {
      kind: 'text',
      doc: 'The prefix of every key, so that several installations can share one Redis.',
      allowed: '1 to 64 of a-z 0-9 . _ - beginning with a letter or digit',
      flag: 'namespace',
    },
  ),
  roles: option(z.array(z.enum(ROLES)).min(1).max(ROLES.length).default(['mover', 'http']), {
    kind: 'list',
    doc: 'What this process does.',
    allowed: `one or more of ${ROLES.join(', ')}`,
    flag: 'roles',
  }),
  profile: option(z.enum(PROFILES).default('default'), {
    kind: 'text',
    doc: 'How often a process looks that waits: default, or quiet for a Redis that is paid per command. An option that is set wins over it.',
    allowed: PROFILES.join(', '),
  }),
  redis: redisOptions.prefault({}),
  http: http.prefault({}),
  mover: mover.prefault({}),
  worker: worker.prefault({}),
  done: done.prefault({}),
  dead: dead.prefault({}),
  limits: limits.prefault({}),
  sharedLimits,
  schedules: schedules.prefault({}),
  targets: targetOptions.prefault({}),
  log: log.prefault({}),
  queues: z.record(z.string().regex(/^[a-z0-9][a-z0-9._-]{0,63}$/), queue).prefault({}),
});

/** The options whose default is that of the profile. */
export const PROFILED = {
  'mover.lease': 'leaseMs',
  'worker.beatTtl': 'beatTtlMs',
  'worker.grace': 'graceMs',
} as const;

/** The table, in the order of the file. */
export const options: readonly Option[] = [...tableOf(schema)];

/** What callers may write: everything is optional. */
export type ConfigInput = Given<z.input<typeof schema>>;

type Given<T> = T extends readonly (infer U)[]
  ? readonly Given<U>[]
  : T extends object
    ? { readonly [K in keyof T]: Given<T[K]> }
    : T;

/** The effective configuration, complete and frozen. */
export type Config = Frozen<z.output<typeof schema>>;

/** A duration has its unit in its name here: the setting `lease: 5s` is `leaseMs` 5000. */
type Frozen<T> = T extends readonly (infer U)[]
  ? readonly Frozen<U>[]
  : T extends Ms
    ? number
    : T extends object
      ? { readonly [K in keyof T as NameOf<K, T[K]>]: Frozen<T[K]> }
      : T;

type NameOf<K, V> = K extends string ? ([NonNullable<V>] extends [Ms] ? `${K}Ms` : K) : never;

// How long and how many ends of jobs Redis keeps, by the configuration; `sweep` and `doctor` use the numbers.

export interface DoneLimits {
  /** 0 = nothing is remembered. */
  readonly windowMs: number;
  readonly tombstonesMax: number;
  /** No tombstone younger than this goes because of the count. */
  readonly floorMs: number;
}

export function doneLimits({ done, redis }: Pick<Config, 'done' | 'redis'>): DoneLimits {
  const { windowMs, max, retryBudgetMs } = done;
  const isOff = windowMs === 0 || max === 0;
  const floorMs = isOff ? 0 : tombstoneAgeMinMs({ retryBudgetMs, commandTimeoutMs: redis.commandTimeoutMs });
  return { windowMs: isOff ? 0 : windowMs, tombstonesMax: max, floorMs };
}

const AGE_MIN_MS = 60_000;

/**
 * The age below which no tombstone goes, however many there are. Redis recognises a repeated call, whose reply was lost,
 * by the tombstone of its job; without a tombstone Redis would carry the call out once more, and the job would run twice.
 *
 *  first try carried out ── retry budget ──▶ last try sent ── command time-out ──▶ carried out, or given up
 *
 * The tombstone is at most as old as this when the last try meets it, because a job ends after it was scheduled. The age
 * is twice that time, so that a clock of another speed and a busy Redis do not use it up. It is never less than a minute,
 * for the caller who hears that the outcome is unknown and makes the same call again.
 *
 * A worker repeats the acknowledgement of a job that is delivered at most once for as long as the worker lives. Such jobs
 * need no share of this age: until the worker has its answer, the entry stays in ready, and the sweep leaves its tombstone.
 */
function tombstoneAgeMinMs(of: { readonly retryBudgetMs: number; readonly commandTimeoutMs: number }): number {
  return Math.max(AGE_MIN_MS, 2 * (of.retryBudgetMs + of.commandTimeoutMs));
}
