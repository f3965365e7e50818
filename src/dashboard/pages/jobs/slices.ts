/**
 * A change of all jobs that a filter finds. The API does a bounded slice per request and says where to go on: so the
 * slices are asked for one after the other, and their numbers added up.
 */
import { ask } from '../../api.ts';
import type { Schemas } from '../../api-types.ts';

type Slice = Schemas['ChangedJobs'];

export interface Sum {
  readonly matched: number;
  readonly changed: number;
  readonly requested: number;
  readonly skipped: Readonly<Record<string, number>>;
  /** The first of them. */
  readonly ids: readonly string[];
}

export const NOTHING: Sum = { matched: 0, changed: 0, requested: 0, skipped: {}, ids: [] };
const IDS_SHOWN = 20;

export interface Slices {
  /** `POST queues/emails/batch/cancel` */
  readonly what: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
  readonly onSum: (sum: Sum) => void;
}

/** Until there is no more, or it is aborted: what was changed by then stays changed. */
export async function eachSlice({ what, body, signal, onSum }: Slices): Promise<Sum> {
  let sum = NOTHING;
  let cursor: string | undefined;
  do {
    const slice: Slice = await ask(what, cursor === undefined ? body : { ...body, cursor });
    sum = add(sum, slice);
    onSum(sum);
    cursor = slice.next;
  } while (cursor !== undefined && !signal.aborted);
  return sum;
}

export function add(sum: Sum, slice: Slice): Sum {
  const skipped: Record<string, number> = { ...sum.skipped };
  for (const [reason, count] of Object.entries(slice.skipped)) skipped[reason] = (skipped[reason] ?? 0) + count;
  return {
    matched: sum.matched + slice.matched,
    changed: sum.changed + slice.changed,
    requested: sum.requested + (slice.requested ?? 0),
    skipped,
    ids: [...sum.ids, ...(slice.ids ?? [])].slice(0, IDS_SHOWN),
  };
}
