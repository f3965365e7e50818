/** The audit as people look at it: the newest changes first. */

import type { Namespaced } from '../inspect/refs.ts';
import type { Change } from '../redis/audit.ts';
import { controlKeys } from '../redis/keys.ts';
import { fieldsOf, list, type Reply, text } from '../redis/scripts/scripts.ts';

export interface AuditEntry extends Change {
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

/** How many are of one of these statuses. */
export const countOf = (all: readonly { readonly status: string }[], ...statuses: readonly string[]): number =>
  all.filter(({ status }) => statuses.includes(status)).length;

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
