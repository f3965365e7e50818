/**
 * Somebody put a value of another type where one of our keys belongs. Redis refuses every command on it and does not say
 * which key it means, so we look: whoever is paged reads its name in the log, in the error and in `doctor --keys`. No script has
 * written anything by then that would not be right without the rest, and all goes on once the key is taken away.
 */
import type { Redis } from 'ioredis';
import { messageOf } from '../../kernel/errors.ts';
import { type SlotKeys, storedKeys } from '../keys.ts';

export interface WrongType {
  readonly key: string;
  readonly is: string;
  readonly wanted: string;
}

/** Keys of a partition, or of a namespace, that are there and of another type than ours. */
export async function wrongTypes(redis: Redis, keys: SlotKeys): Promise<readonly WrongType[]> {
  const typed = storedKeys(keys);
  const types = await Promise.all(typed.map(({ key }) => redis.type(key)));
  return typed.flatMap(({ key, type: wanted }, at) => {
    const is = types[at] ?? 'none';
    return is === wanted || is === 'none' ? [] : [{ key, is, wanted }];
  });
}

/** What to tell of one. */
export const wrongTypeText = ({ is, wanted }: WrongType): string => `it is a ${is} and must be a ${wanted}`;

/** Runs a call on such keys; an error about a wrong type names the one it means. */
export async function naming<T>(redis: Redis, all: readonly SlotKeys[], call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof Error && /^(ERR )?WRONGTYPE\b/.test(messageOf(error))) await nameIn(error, redis, all);
    throw error;
  }
}

/** The error stays what it was, so that everybody still knows its kind. */
async function nameIn(error: Error, redis: Redis, all: readonly SlotKeys[]): Promise<void> {
  const found = await Promise.all(all.map((keys) => wrongTypes(redis, keys).catch(() => [])));
  const [wrong] = found.flat();
  if (wrong) error.message = `WRONGTYPE ${wrong.key}: ${wrongTypeText(wrong)}; rename or delete it`;
}
