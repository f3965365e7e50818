/**
 * A queue as code sees it: a name, the type of its data, and how its jobs are tried again. Producers and workers share
 * the definition, which is why a job's record does not have to carry it.
 */

import { asConfig, checkFunction, checkNames, durationIn, queueRanges, wholeNumber } from '../kernel/checks.ts';
import { type DurationInput, show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { type BackoffInput, type BackoffPolicy, defaultBackoff, storable } from './backoff.ts';
import { type Codec, type JobSchemas, parseCodec, parseJobs } from './content.ts';
import { checkGateSettings } from './gate.ts';
import { parseName } from './job.ts';
import { parseSettings, type QueueSettingOptions, type QueueSettings, settingWords } from './queue-settings.ts';
import { checkTargetOf } from './target.ts';
import type { DataBySchemas } from './types.ts';

/** How the jobs of a queue are run, unless a job says otherwise. Producers and workers take the same object. */
export interface QueueOptions extends QueueSettingOptions {
  /** How often handlers may fail before the job is dead. 1 to 1000, default 5. */
  readonly attempts?: number;
  /** How often workers may die under the job before it is dead. 1 to 100, default 3. */
  readonly crashes?: number;
  /** How long a job waits after a failure. Default: exponential, 10 s … 1 h, with full jitter. */
  readonly backoff?: BackoffInput | BackoffPolicy;
  /** How long a handler may run before its signal aborts and the start counts as a failure. 1 ms to 365 d, default 15 min. */
  readonly timeout?: DurationInput;
  /**
   * `at-least-once` (default): acknowledged after the handler, tried again after failures and crashes.
   * `at-most-once`: acknowledged before the handler and never tried again; a crash or a failure loses the job's work.
   * `effectively-once`: like at-least-once, for handlers that use `context.commit` or compare `context.token` in their
   * store; the worker refuses `doneWindow: 0`, which would forget the ends of jobs.
   */
  readonly delivery?: DeliveryMode;
  /** Over how many partitions a **new** queue is split. Default 1. An existing queue keeps what it has; another number is told once. */
  readonly partitions?: number;
  /**
   * What data goes through on its way into Redis, for encryption or compression. Only handlers see it decoded: `get`, the
   * command line, dead letters and logs show what is stored. Producers and workers need the same one.
   */
  readonly codec?: Codec | undefined;
}

/** Options of a queue whose jobs have names, with a schema each. */
export interface NamedQueueOptions<Schemas extends JobSchemas = JobSchemas> extends QueueOptions {
  /**
   * Job name → schema of its data: of zod, valibot, arktype, or anything with the interface Standard Schema. Data is
   * checked when a job is scheduled (`bad-input`, nothing is written), and again when it is started, where it makes a
   * dead letter with the reason `bad-data`. The record holds what was scheduled; the handler gets what the schema makes
   * of it.
   */
  readonly jobs: Schemas;
}

type AnyQueueOptions = QueueOptions & { readonly jobs?: JobSchemas | undefined };

/** When a job is acknowledged, and so what a crash means: see `QueueOptions.delivery`. */
export type DeliveryMode = 'at-least-once' | 'at-most-once' | 'effectively-once';

const QUEUE_OPTIONS: readonly string[] = [
  ...Object.keys({
    attempts: 0,
    crashes: 0,
    backoff: 0,
    timeout: 0,
    delivery: 0,
    partitions: 0,
    jobs: 0,
    codec: 0,
  } satisfies Record<Exclude<keyof NamedQueueOptions, keyof QueueSettingOptions>, number>),
  ...settingWords,
];

const DELIVERIES: readonly DeliveryMode[] = ['at-least-once', 'at-most-once', 'effectively-once'];

/** The data of jobs without a type argument: the type that `JSON.parse` returns. */
export type Untyped = ReturnType<typeof JSON.parse>;

/**
 * A defined queue; `Data` is the type of its jobs' data, or `NamedData` where its jobs have names with schemas. Of a setting
 * that it says nothing of, what is stored holds.
 */
export interface Queue<Data = unknown, Name extends string = string> extends QueueSettings {
  readonly name: Name;
  readonly attempts: number;
  readonly crashes: number;
  readonly backoff: BackoffPolicy;
  readonly timeoutMs: number;
  readonly delivery: DeliveryMode;
  readonly partitions: number;
  /** The number was said, and is no default. */
  readonly saysPartitions?: true | undefined;
  readonly jobs?: JobSchemas | undefined;
  readonly codec?: Codec | undefined;
  /** Never present: it lets the compiler carry the data type. */
  readonly data?: Data;
}

/**
 * Defines a queue. It sends nothing to Redis: the first call that makes jobs of it, a worker, a closed tag, a set or a schedule
 * declares it there. A look or a change of jobs declares none.
 *
 * Without a type argument, the data of its jobs has the type `any`.
 *
 * @throws DuestreamError `bad-config` for a name outside the grammar or an option outside its range.
 * @example
 * const emails = defineQueue<{ to: string }>('emails', { attempts: 5, backoff: exponential('10s', { max: '1h' }) });
 * @example
 * const mail = defineQueue('mail', { jobs: { welcome: z.object({ to: z.email() }), invoice: z.object({ cents: z.int() }) } });
 */
export function defineQueue<const Name extends string, const Schemas extends JobSchemas>(
  name: Name,
  options: NamedQueueOptions<Schemas>,
): Queue<DataBySchemas<Schemas>, Name>;
export function defineQueue<Data = Untyped>(
  name: string,
  options?: QueueOptions & { readonly jobs?: undefined },
): Queue<Data>;
export function defineQueue(name: string, options: AnyQueueOptions = {}): Queue {
  return asConfig(() => queueFrom(name, options));
}

/** A queue as `defineQueue` made it, or its name: then it has the defaults. */
export type QueueInput<Data> = Queue<Data> | string;

/**
 * The queue that a caller names: all that takes a queue asks here. An object that `defineQueue` did not make is refused, a
 * copy of one too: it was never checked, and what it lacks would stop its jobs half-way.
 *
 * @throws DuestreamError `bad-input`
 */
export function queueOf<Data>(input: QueueInput<Data>, what = 'queue'): Queue<Data> {
  if (typeof input === 'string') return (byName.get(input) ?? remembered(input)) as Queue<Data>;
  if (typeof input === 'object' && input !== null && Object.hasOwn(input, DEFINED)) return input;
  throw new DuestreamError(
    'bad-input',
    `${what} is ${shownQueue(input)}; allowed: what defineQueue returned, or a name`,
  );
}

/** Queues of which a caller gives the name with every job. */
const byName = new Map<string, Queue>();
const NAMES_MAX = 1000;

function remembered(name: string): Queue {
  const queue = queueFrom(name, {});
  if (byName.size >= NAMES_MAX) byName.clear();
  byName.set(name, queue);
  return queue;
}

function shownQueue(input: unknown): string {
  if (typeof input !== 'object' || input === null || !('name' in input)) return show(input);
  return `an object with the name ${show(input.name)} that defineQueue did not return, or a copy of one`;
}

/** Known to every copy of this package in a process. It is not enumerable, so a spread does not take it along. */
const DEFINED = Symbol.for('duestream.queue');

/** What a queue has of which nobody has said anything. */
const DEFAULTS = {
  attempts: 5,
  crashes: 3,
  backoff: defaultBackoff,
  timeoutMs: 900_000,
  delivery: 'at-least-once',
  partitions: 1,
} as const;

/**
 * The same where the types are not known.
 *
 * @param below what the options do not say is as it says
 * @throws DuestreamError `bad-input`
 */
export function queueFrom<Data>(name: string, options: AnyQueueOptions, below: Partial<Queue<Data>> = {}): Queue<Data> {
  checkNames(options, QUEUE_OPTIONS, 'defineQueue', 'bad-input');
  const base = { ...DEFAULTS, ...below };
  const queue: Queue<Data> = {
    ...base,
    name: parseName(name, 'queue'),
    attempts: wholeNumber(options.attempts ?? base.attempts, { what: 'attempts', ...queueRanges.attempts }),
    crashes: wholeNumber(options.crashes ?? base.crashes, { what: 'crashes', ...queueRanges.crashes }),
    backoff: backoffOf(options.backoff ?? base.backoff),
    timeoutMs: durationIn(options.timeout ?? base.timeoutMs, 'timeout', queueRanges.timeoutMs),
    delivery: deliveryOf(options.delivery ?? base.delivery),
    partitions: wholeNumber(options.partitions ?? base.partitions, { what: 'partitions', ...queueRanges.partitions }),
    ...(options.partitions === undefined ? {} : { saysPartitions: true as const }),
    ...(options.jobs === undefined ? {} : { jobs: parseJobs(options.jobs) }),
    ...(options.codec === undefined ? {} : { codec: parseCodec(options.codec) }),
    ...parseSettings(options),
  };
  checkGateSettings(queue.name, queue, { ...queue, isBroadcast: queue.broadcast?.isOn === true });
  if (queue.target) {
    checkTargetOf(queue.name, { isBroadcast: queue.broadcast?.isOn === true, hasCodec: queue.codec !== undefined });
  }
  return asDefined(queue);
}

/** Marks what was checked, or made from what was. */
const asDefined = <Data>(queue: Queue<Data>): Queue<Data> =>
  Object.freeze(Object.defineProperty(queue, DEFINED, { value: true }));

function backoffOf(policy: BackoffInput | BackoffPolicy): BackoffPolicy {
  if (typeof policy !== 'function') return storable(policy);
  checkFunction(policy, 'backoff');
  return policy;
}

function deliveryOf(value: DeliveryMode): DeliveryMode {
  if (DELIVERIES.includes(value)) return value;
  throw new DuestreamError('bad-input', `delivery is ${show(value)}; allowed: ${DELIVERIES.join(', ')}`);
}
