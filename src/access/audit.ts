/** The audit as people look at it: the newest changes first. */

import type { Namespaced } from '../client/queues/refs.ts';
import type { Change, Operation } from '../redis/audit.ts';
import { controlKeys } from '../redis/keys.ts';
import { fieldsOf, list, type Reply, text } from '../redis/scripts/scripts.ts';

export interface AuditEntry extends Omit<Change, 'verb'> {
  /** One of `OPERATIONS`, unless a process of another version noted it. */
  readonly verb: string;
  readonly entry: string;
  readonly atMs: number;
}

/** The newest first, from before one of them on. */
export async function auditEntries(
  { redis, namespace }: Namespaced,
  { limit, before }: { readonly limit: number; readonly before?: string | undefined },
): Promise<readonly AuditEntry[]> {
  const from = before === undefined ? '+' : `(${before}`;
  const reply = await redis.call('XREVRANGE', controlKeys(namespace).audit, from, '-', 'COUNT', limit);
  return list(reply as Reply).map(entryOf);
}

const NAMED_MAX = 3;
/** A handler may have written these texts, and a reader of the audit may lack the scope `data`. */
const HIDDEN: readonly string[] = ['error', 'reason'];

/**
 * What a change was about, in a few words: the first names of a list, or what a filter says.
 *
 * @example targetOf(['a', 'b', 'c', 'd', 'e']) // 'a, b, c and 2 more'
 * @example targetOf({ tag: 'user:42', state: ['scheduled', 'ready'] }) // 'state scheduled|ready, tag user:42'
 */
export function targetOf(named: readonly string[] | object): string {
  if (!Array.isArray(named)) return wordsOf(named) || 'all';
  const rest = named.length - NAMED_MAX;
  return `${named.slice(0, NAMED_MAX).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}

/** In one order, whichever window asks. */
const wordsOf = (fields: object): string =>
  Object.entries(fields)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name} ${HIDDEN.includes(name) ? '…' : wordOf(value)}`]))
    .join(', ');

function wordOf(value: unknown): string {
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return value.join('|');
  return typeof value === 'object' && value !== null ? wordsOf(value).replace(', ', ' ') : String(value);
}

/** The statuses of what is different now, whichever window asked for the change. */
const CHANGED = {
  'jobs.cancel': ['cancelled', 'requested'],
  'jobs.reschedule': ['rescheduled'],
  'jobs.run': ['due'],
  'jobs.edit': ['edited'],
  'schedules.trigger': ['scheduled'],
  'schedules.backfill': ['scheduled'],
} as const satisfies { readonly [Verb in Operation]?: readonly string[] };
export type CountedChange = keyof typeof CHANGED;

/** How many of these are different now. */
export const countOf = (verb: CountedChange, all: readonly { readonly status: string }[]): number =>
  all.filter(({ status }) => CHANGED[verb].some((one) => one === status)).length;

function entryOf(reply: Reply): AuditEntry {
  const [id, flat] = list(reply);
  const fields = fieldsOf(flat);
  const entry = text(id);
  const way = fields.get('way');
  return {
    entry,
    atMs: Number(entry.split('-')[0]),
    who: fields.get('who') ?? '',
    verb: fields.get('verb') ?? '',
    way: way === 'api' || way === 'page' || way === 'program' ? way : 'cli',
    queue: fields.get('queue'),
    target: fields.get('target'),
    count: Number(fields.get('count') ?? 0),
    reason: fields.get('reason'),
  };
}
