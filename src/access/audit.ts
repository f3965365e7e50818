/** The audit as people look at it: the newest changes first, all or those that they ask for. */

import type { Namespaced } from '../client/queues/refs.ts';
import type { Change, Said } from '../redis/audit.ts';
import { controlKeys } from '../redis/keys.ts';
import { fieldsOf, list, type Reply, text } from '../redis/scripts/scripts.ts';

export interface AuditEntry extends Change {
  readonly entry: string;
  readonly atMs: number;
}

/** Which changes are meant. What is left out means any. */
export interface AuditFilter {
  readonly queue?: string | undefined;
  /** A job, schedule, group, tag or token: the target, one of the names that it is made of, or one of the ids of the change. */
  readonly target?: string | undefined;
  readonly who?: string | undefined;
  /** The name of an operation, or of all that begin with it and a dot: `queues`. */
  readonly verb?: string | undefined;
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
}

interface Asked extends AuditFilter {
  readonly limit: number;
  readonly before?: string | undefined;
}

const PAGE = 1000;

/** The newest first, from before one of them on. Few changes are meant by a filter, so all are looked through. */
export async function auditEntries(
  { redis, namespace }: Namespaced,
  { limit, before, ...filter }: Asked,
): Promise<readonly AuditEntry[]> {
  const { fromMs, toMs } = filter;
  const until = toMs === undefined ? '+' : String(Math.floor(toMs));
  const found: AuditEntry[] = [];
  const isAll = Object.values(filter).every((value) => value === undefined);
  const count = isAll ? limit : PAGE;
  for (let from = before === undefined ? until : `(${before}`; ; ) {
    const least = fromMs === undefined ? '-' : String(Math.ceil(fromMs));
    const reply = await redis.call('XREVRANGE', controlKeys(namespace).audit, from, least, 'COUNT', count);
    const entries = list(reply as Reply).map(entryOf);
    found.push(...entries.filter((entry) => isMeant(entry, filter)).slice(0, limit - found.length));
    const last = entries.at(-1);
    if (last === undefined || entries.length < count || found.length >= limit) return found;
    from = `(${last.entry}`;
  }
}

function isMeant(entry: AuditEntry, { queue, target, who, verb, toMs }: AuditFilter): boolean {
  const isOf = (said: string | undefined, wanted: string | undefined) => wanted === undefined || said === wanted;
  return (
    isOf(entry.queue, queue) &&
    isOf(entry.who, who) &&
    (isOf(entry.verb, verb) || entry.verb.startsWith(`${verb}.`)) &&
    (target === undefined || namesIn(entry).includes(target)) &&
    entry.atMs <= (toMs ?? entry.atMs)
  );
}

/** A target is one name, or the first of several: `a, b, c and 2 more`, `state scheduled, tag user:42`. */
const namesIn = ({ target = '', ids = [] }: AuditEntry): readonly string[] => [
  target,
  ...ids,
  ...target.replace(/ and \d+ more$/, '').split(', '),
];

function entryOf(reply: Reply): AuditEntry {
  const [id, flat] = list(reply);
  const fields = fieldsOf(flat);
  const entry = text(id);
  const way = fields.get('way');
  const ids = parsed(fields.get('ids'));
  return {
    entry,
    atMs: Number(entry.split('-')[0]),
    who: fields.get('who') ?? '',
    verb: fields.get('verb') ?? '',
    way: way === 'api' || way === 'page' || way === 'program' ? way : 'cli',
    queue: fields.get('queue'),
    target: fields.get('target'),
    ids: Array.isArray(ids) ? ids.map(String) : undefined,
    count: Number(fields.get('count') ?? 0),
    before: saidOf(parsed(fields.get('before'))),
    after: saidOf(parsed(fields.get('after'))),
    reason: fields.get('reason'),
  };
}

const saidOf = (value: unknown): Said | undefined =>
  typeof value === 'object' && value !== null ? { ...value } : undefined;

function parsed(json: string | undefined): unknown {
  try {
    return json === undefined ? undefined : JSON.parse(json);
  } catch {
    return undefined;
  }
}
