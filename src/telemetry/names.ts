/**
 * The names by which OpenTelemetry knows what we do. Its conventions for messaging are still in development, so they stand in this file and
 * nowhere else. These are those of version 1.30 to 1.45.
 *
 * Instrumentations that are older than these names keep the old ones until somebody asks for the new ones by
 * `OTEL_SEMCONV_STABILITY_OPT_IN=messaging`. We never had the old ones, so we have the new ones in any case. With `messaging/dup` the
 * attribute that was replaced is there as well, for backends that still look for it. When the conventions are stable and have other names,
 * `messaging` will mean those.
 */

type Values = Readonly<Record<string, string | number>>;

/** What the environment says. */
interface Wishes {
  /** Somebody wants nothing of duestream in traces and metrics. */
  readonly isOff: boolean;
  readonly isOldToo: boolean;
}

let read: Wishes | undefined;

/** Read once, when there is an SDK. */
const wishes = (): Wishes => (read ??= wishesIn(process.env));

export function wishesIn(environment: Readonly<Record<string, string | undefined>>): Wishes {
  return {
    isOff: listed(environment.OTEL_NODE_DISABLED_INSTRUMENTATIONS).includes('duestream'),
    isOldToo: listed(environment.OTEL_SEMCONV_STABILITY_OPT_IN).includes('messaging/dup'),
  };
}

const listed = (text = ''): readonly string[] => text.split(',').map((word) => word.trim());

/** Whether `OTEL_NODE_DISABLED_INSTRUMENTATIONS` names duestream, as it names instrumentations of libraries. */
export const isOff = (): boolean => wishes().isOff;

/** The name of what makes our spans and metrics. */
export const SCOPE = 'duestream';

type Operation = 'send' | 'process';

/** What is known of an operation before it begins, which samplers see. */
interface Operating {
  readonly operation: Operation;
  readonly queue: string;
  /** How many jobs a list has. Not of a call that makes one. */
  readonly count?: number | undefined;
  readonly id?: string | undefined;
}

/** As version 1.24 called them. */
const OLD: Readonly<Record<Operation, string>> = { send: 'publish', process: 'process' };

export const spanName = ({ operation, queue }: Operating): string => `${operation} ${queue}`;

export function messaging({ operation, queue, count, id }: Operating, { isOldToo } = wishes()): Values {
  return {
    'messaging.system': 'duestream',
    'messaging.operation.name': operation,
    'messaging.operation.type': operation,
    'messaging.destination.name': queue,
    ...(count !== undefined && { 'messaging.batch.message_count': count }),
    ...(id !== undefined && messageId(id)),
    ...(isOldToo && { 'messaging.operation': OLD[operation] }),
  };
}

export const messageId = (id: string): Values => ({ 'messaging.message.id': id });

/** Whether an operation failed, and by which kind of failure. */
export const ERROR_TYPE = 'error.type';

export const exception = ({ message, stack }: { readonly message: string; readonly stack?: string | undefined }) => ({
  name: 'exception',
  attributes: { 'exception.message': message, ...(stack !== undefined && { 'exception.stacktrace': stack }) },
});

// What no convention has a name for.

/** `scheduled`, `already` and so on. */
export const STATUS = 'duestream.schedule.status';
/** A foreign producer may have said a time that no date can hold. */
export const dueAt = (dueMs: number): Values =>
  Math.abs(dueMs) <= LAST_MS ? { 'duestream.job.due': new Date(dueMs).toISOString() } : {};
const LAST_MS = 8.64e15;
/** How a start ended: `completed`, `retried` and so on, by the names of events. */
export const OUTCOME = 'duestream.job.outcome';

export const startOf = (job: { readonly name: string; readonly attempt: number; readonly lateMs: number }): Values => ({
  'duestream.job.name': job.name,
  'duestream.job.attempt': job.attempt,
  'duestream.job.late_ms': Math.round(job.lateMs),
});

/** Of the event at the end of a start. */
export const endOf = ({
  delayMs,
  reason,
}: {
  readonly delayMs?: number | undefined;
  readonly reason?: string | undefined;
}): Values => ({
  ...(delayMs !== undefined && { 'duestream.job.delay_ms': Math.round(delayMs) }),
  ...(reason !== undefined && { 'duestream.job.reason': reason }),
});
