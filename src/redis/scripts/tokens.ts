/** Tokens of the HTTP API, as they are stored: one hash in the control slot. What is in one, `access/tokens.ts` knows. */
import type { Redis } from '../connection/connect.ts';
import { controlKeys } from '../keys.ts';
import { scripts } from './script-table.ts';
import { run, text } from './scripts.ts';

/** How many there may be that have not expired. */
export const TOKENS_MAX = 1000;

export interface NewStored {
  readonly id: string;
  readonly token: string;
  /** Default: `TOKENS_MAX`. */
  readonly most?: number;
  /** All tokens that were read. Undefined: it does not expire. */
  readonly known: readonly { readonly id: string; readonly expiresMs: number | undefined }[];
  readonly nowMs?: number;
}

/** Adds a token to those that were read; those that have expired go in the same step. */
export async function issueToken(
  redis: Redis,
  namespace: string,
  { id, token, most = TOKENS_MAX, known, nowMs }: NewStored,
): Promise<'ok' | 'changed' | 'full'> {
  const each = known.flatMap((one) => [one.id, one.expiresMs ?? '']);
  const args = { now: nowMs ?? '', id, token, most };
  return text(await run(redis, scripts.issue, { keys: controlKeys(namespace), args, each })) as
    | 'ok'
    | 'changed'
    | 'full';
}
