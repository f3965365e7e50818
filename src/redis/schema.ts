/**
 * The guard of the layout: a namespace says which schema its keys and values have, and a process that knows another one
 * touches nothing there. The number stands in the registry of queues, as a field that no queue can be named by, so that
 * whoever reads a layout reads it in the same command; `K:meta` says it of a partition, for `elect`.
 *
 * A namespace without a number was written by foreign producers only, or before there was a guard. Its layout is the
 * first one, so the first `declare` gives it the number 1; a later version must not give it another.
 */
import { DuestreamError } from '../kernel/errors.ts';
import type { Redis } from './connection/connect.ts';
import { naming } from './connection/wrong-type.ts';
import { controlKeys } from './keys.ts';

/** What this version reads and writes. Later versions of the same schema only add what this one ignores. */
export const SCHEMA = '1';

/** The field of the registry that is no queue. */
export const SCHEMA_FIELD = ':schema';

/** What the namespace says; undefined when it says nothing. */
export async function readSchema(redis: Redis, namespace: string): Promise<string | undefined> {
  const keys = controlKeys(namespace);
  return (await naming(redis, [keys], redis.hget(keys.queues, SCHEMA_FIELD))) ?? undefined;
}

/** @throws DuestreamError `wrong-schema` */
export async function checkSchema(redis: Redis, namespace: string): Promise<void> {
  refuseOther(`namespace ${namespace}`, await readSchema(redis, namespace));
}

/** @throws DuestreamError `wrong-schema` when somebody else's number was found there */
export function refuseOther(where: string, found: string | null | undefined): void {
  if (found === null || found === undefined || found === SCHEMA) return;
  throw new DuestreamError(
    'wrong-schema',
    `${where} has schema ${JSON.stringify(found.slice(0, 40))}, this duestream knows ${SCHEMA} and touches nothing there: ${remedyFor(found)}`,
  );
}

/** What to do about a number that is not ours. */
export function remedyFor(found: string): string {
  if (!/^\d{1,15}$/.test(found))
    return 'somebody else wrote that number; use another namespace (--namespace), or repair it';
  return Number(found) > Number(SCHEMA)
    ? 'update this process to the version that wrote it, or use another namespace (--namespace)'
    : 'let the version that wrote it empty its queues first, or use another namespace (--namespace)';
}
