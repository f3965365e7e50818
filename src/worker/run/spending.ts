/**
 * What a running handler says of the turns of a rate that it has really used:
 *
 *   context.spent ──▶ `spend`, at once: less lets others start, more keeps them waiting
 *
 * A call without a reply is made again. Each has a number within its start, so the script knows one that it has carried out, and one that
 * comes behind a later one. Whatever Redis answers is no failure of the job: its work is done, and to do it again would use the turns again.
 */
import type { Clock } from '../../kernel/clock.ts';
import { withRetry } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import type { Spending } from '../../redis/scripts/worker-jobs.ts';

/** So long a call is repeated. */
const BUDGET_MS = 10_000;

/** Whether the turns count from now on. */
export async function counts(
  { jobs, clock }: { readonly jobs: Pick<Jobs, 'spend'>; readonly clock: Clock },
  ref: PartitionRef,
  spending: Spending,
): Promise<boolean> {
  const call = () => jobs.spend(ref, spending);
  const reply = await withRetry('spent', call, { clock, budgetMs: BUDGET_MS }).catch(() => undefined);
  return reply === 'ok';
}
