/**
 * Who changed what, and how many, by which way: a stream of the newest changes. What a change held is not in it. Scheduling a
 * job is no entry: the job itself shows it, and producers would push all else out.
 *
 * An entry is written after its change. A process that dies between the two leaves a change without an entry; nobody has to
 * wait for the audit, and a Redis that is full still lets jobs be cancelled.
 */
import { controlKeys } from '../redis/keys.ts';
import { fieldsOf, list, type Reply, text } from '../redis/transitions/scripts.ts';
import type { Place } from './refs.ts';

export interface Change {
  /** The name of a token, or the user of a machine. */
  readonly who: string;
  readonly way: 'api' | 'page' | 'cli';
  /** What was done: `jobs.cancel`. */
  readonly verb: string;
  readonly queue?: string | undefined;
  /** The job, schedule or token, where it is one. */
  readonly target?: string | undefined;
  /** How many are different now. */
  readonly count: number;
}

export interface AuditEntry extends Change {
  readonly entry: string;
  readonly atMs: number;
}

const ENTRIES_MAX = 10_000;
const TARGET_CHARS_MAX = 200;

/** @throws whatever Redis failed with */
export async function audit(
  { redis, namespace }: Place,
  { who, way, verb, queue, target, count }: Change,
): Promise<void> {
  const fields = { who, way, verb, queue, target: target?.slice(0, TARGET_CHARS_MAX), count: String(count) };
  const flat = Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [name, value]));
  await redis.xadd(controlKeys(namespace).audit, 'MAXLEN', '~', ENTRIES_MAX, '*', ...flat);
}

/** The newest first, from before one of them on. */
export async function auditEntries(
  { redis, namespace }: Place,
  { limit, before }: { readonly limit: number; readonly before?: string | undefined },
): Promise<readonly AuditEntry[]> {
  const from = before === undefined ? '+' : `(${before}`;
  const reply = await redis.call('XREVRANGE', controlKeys(namespace).audit, from, '-', 'COUNT', limit);
  return list(reply as Reply).map(entryOf);
}

/** How many are of one of these statuses. */
export const countOf = (all: readonly { readonly status: string }[], ...statuses: readonly string[]): number =>
  all.filter(({ status }) => statuses.includes(status)).length;

function entryOf(reply: Reply): AuditEntry {
  const [id, flat] = list(reply);
  const fields = fieldsOf(flat);
  const entry = text(id);
  const way = fields.get('way');
  return {
    ...{ entry, atMs: Number(entry.split('-')[0]), who: fields.get('who') ?? '', verb: fields.get('verb') ?? '' },
    way: way === 'api' || way === 'page' ? way : 'cli',
    queue: fields.get('queue'),
    target: fields.get('target'),
    count: Number(fields.get('count') ?? 0),
  };
}
