/** `--durability`: who must have a write before the command ends. */
import type { Durability } from '../../client/calls/durability.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';

export const DURABILITY_FLAG = [
  '--durability <who>',
  'who must have it before the command ends: memory (of the primary), replicated or fsynced',
] as const;

/** @throws DuestreamError `usage` */
export function readDurability(given: string | undefined): { readonly durability?: Durability } {
  if (given === undefined) return {};
  if (given === 'memory' || given === 'replicated' || given === 'fsynced') return { durability: given };
  throw new DuestreamError('usage', `--durability is ${show(given)}; allowed: memory, replicated or fsynced`);
}
