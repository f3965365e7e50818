/**
 * What would become of a job, before it is there: when it would be due, who comes due beside it, when it would be tried again, and
 * what would refuse it now. Nothing is written, and no queue is declared.
 */
import { backoffMs, storable } from '../../job/backoff.ts';
import { hasContent, seal } from '../../job/content.ts';
import { gateShare } from '../../job/gate.ts';
import { DEFAULT_NAME } from '../../job/job.ts';
import type { ScheduleOptions } from '../../job/options.ts';
import { type Queue, type QueueInput, queueOf } from '../../job/queue.ts';
import { isLiveState, type LiveState } from '../../job/state.ts';
import type { InputOf } from '../../job/types.ts';
import type { DuestreamError } from '../../kernel/errors.ts';
import { snapshot } from '../../kernel/snapshot.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { stats } from '../../redis/read/inspect.ts';
import type { Moved } from '../../redis/scripts/replies.ts';
import type { CallClock, Calls } from '../calls/calls.ts';
import { homeOf, type Layout } from '../calls/layouts.ts';
import { type Honours, refusalOf } from '../calls/needs.ts';
import { isMoved } from '../calls/partition-calls.ts';
import { type Plan, planJob } from '../calls/plan.ts';
import { withReadRetry } from '../calls/retry.ts';
import type { ClientSettings } from '../calls/settings.ts';
import type { WalkParts } from '../query/walk.ts';

/** What would become of a job that is scheduled now. */
export interface JobPreview {
  readonly queue: string;
  readonly name: string;
  /** Epoch ms. */
  readonly dueMs: number;
  /** A job of its id that lives: what becomes of both, `ifExists` says. */
  readonly there: { readonly state: LiveState; readonly dueMs: number | undefined } | undefined;
  /** What would refuse the job now; undefined: nothing that is known before. */
  readonly refusal: PreviewRefusal | undefined;
  /** When it would be tried again if each start failed at once: the first 20, each between two times in epoch ms, because of jitter. */
  readonly retries: readonly { readonly attempt: number; readonly fromMs: number; readonly toMs: number }[];
  /** Jobs of its queue that wait for a due time around its own, by the minute: 30 before, its own, 30 after. */
  readonly beside: { readonly fromMs: number; readonly stepMs: number; readonly counts: readonly number[] };
}

/** Why a job would not be taken. */
export type PreviewRefusal =
  /** As much waits or runs as the queue may hold: its share of one partition. */
  | { readonly kind: 'queue-full'; readonly limit: number; readonly pending: number }
  /** A tag of it is closed. */
  | { readonly kind: 'closed'; readonly tag: string; readonly untilMs: number }
  /** Its queue cannot honour what it asks for, such as a group, a cost or a target. */
  | { readonly kind: 'unfit'; readonly why: string };

/** Looks at a job before it is scheduled. */
export interface Previews {
  /**
   * What would become of a job that `schedule` is given: its due time, the jobs that come due beside it, its retries, and what
   * would refuse it. Nothing is written. Another moment may have another answer.
   *
   * @throws DuestreamError `bad-input`, as `schedule` does
   * @example
   * const { dueMs, beside, refusal } = await client.preview(reminders, { to: 'ada' }, { at: '2030-03-01T09:00:00Z' });
   * if (refusal === undefined) console.log(new Date(dueMs), Math.max(...beside.counts), 'at most in a minute');
   */
  preview<Data>(queue: QueueInput<Data>, data: InputOf<Data>, options?: ScheduleOptions): Promise<JobPreview>;
}

const MINUTE_MS = 60_000;
const MINUTES_BESIDE = 30;
const RETRIES_MAX = 20;
/** Just below 1: the longest wait that jitter makes. */
const LONGEST = 1 - Number.EPSILON;

interface PreviewParts extends CallClock {
  readonly finding: WalkParts;
  readonly place: () => Promise<{ readonly redis: Redis }>;
}

interface PreviewAsk {
  readonly to: Queue<unknown>;
  readonly data: unknown;
  readonly options: ScheduleOptions;
  /** Monotonic. */
  readonly calledMs: number;
}

export const previewsOf = (
  { clock }: Pick<ClientSettings, 'clock'>,
  { runChecked }: Pick<Calls<PreviewParts>, 'runChecked'>,
): Previews => ({
  preview: (queue, data, options = {}) =>
    runChecked(
      () => ({ to: queueOf(queue), data, options: snapshot(options), calledMs: clock.monotonicMs() }),
      previewOf,
    ),
});

async function previewOf(parts: PreviewParts, { to, data, options, calledMs }: PreviewAsk): Promise<JobPreview> {
  const { server, limits, finding, place } = parts;
  await server.settle();
  const content = hasContent(to) ? await seal(to, { name: options.name, data }) : data;
  const plan = planJob(content, options, limits(calledMs, undefined, to));
  const { redis } = await place();
  return finding.callPartitions(to as Queue, async (layout, policy): Promise<JobPreview | Moved> => {
    const ref = homeOf(layout, plan.id);
    const { reader } = finding;
    const { tags = [] } = options;
    const look = () =>
      Promise.all([
        reader.peek(ref, plan.member),
        tags.length === 0 ? { tags: [] } : reader.closed(ref, { named: tags }),
        stats(redis, ref),
        reader.renewed(ref),
        besideIn(finding, layout, plan.dueMs),
      ]);
    const [job, { tags: shut }, { quota, nowMs }, now, beside] = await withReadRetry('preview', look, policy);
    if (isMoved(job)) return job;
    const there = job && isLiveState(job.state) ? { state: job.state, dueMs: job.dueMs } : undefined;
    const closed = shut.find(({ untilMs }) => untilMs > nowMs);
    return {
      queue: to.name,
      name: options.name ?? DEFAULT_NAME,
      dueMs: plan.dueMs,
      there,
      refusal: previewRefusal({ unfit: unfitFor(to, plan, now), closed, quota: there ? undefined : quota }),
      retries: retriesOf(to, options, plan.dueMs),
      beside,
    };
  });
}

/** The definition of a queue adds to what the queue has by now, as it does when a job is scheduled. */
function unfitFor(to: Queue<unknown>, { needs }: Plan, now: Honours): DuestreamError | undefined {
  const said = gateShare(to, { partition: 0, partitions: 1 });
  const gates = said || now.gates ? { ...now.gates, ...said } : undefined;
  return refusalOf(to.name, needs, { gates, target: to.target || now.target });
}

interface Obstacles {
  readonly unfit: DuestreamError | undefined;
  readonly closed: { readonly tag: string; readonly untilMs: number } | undefined;
  readonly quota: { readonly pending: number; readonly pendingMax: number } | undefined;
}

function previewRefusal({ unfit, closed, quota }: Obstacles): PreviewRefusal | undefined {
  if (unfit) return { kind: 'unfit', why: unfit.message };
  if (closed) return { kind: 'closed', tag: closed.tag, untilMs: closed.untilMs };
  if (!quota || quota.pendingMax === 0 || quota.pending < quota.pendingMax) return undefined;
  return { kind: 'queue-full', limit: quota.pendingMax, pending: quota.pending };
}

/** An index by due time counts each minute. */
async function besideIn({ reader }: WalkParts, layout: Layout, dueMs: number): Promise<JobPreview['beside']> {
  const fromMs = Math.floor(dueMs / MINUTE_MS - MINUTES_BESIDE) * MINUTE_MS;
  const minutes = Array.from({ length: 2 * MINUTES_BESIDE + 1 }, (_, nth) => fromMs + nth * MINUTE_MS);
  const countIn = (ref: PartitionRef, at: number) =>
    reader.countScheduled(ref, { kind: 'scheduled', due: { fromMs: at, toMs: at + MINUTE_MS } });
  const counts = minutes.map(() => 0);
  for (const ref of layout) {
    const found = await Promise.all(minutes.map((at) => countIn(ref, at)));
    for (const [nth, count] of found.entries()) counts[nth] = (counts[nth] ?? 0) + count;
  }
  return { fromMs, stepMs: MINUTE_MS, counts };
}

function retriesOf(queue: Queue<unknown>, options: ScheduleOptions, dueMs: number): JobPreview['retries'] {
  const attempts = options.attempts ?? queue.attempts;
  const backoff = options.backoff === undefined ? queue.backoff : storable(options.backoff);
  const retries: { attempt: number; fromMs: number; toMs: number }[] = [];
  if (queue.delivery === 'at-most-once') return retries;
  let [fromMs, toMs] = [dueMs, dueMs];
  for (let failures = 1; failures < attempts && retries.length < RETRIES_MAX; failures += 1) {
    fromMs += Math.floor(backoffMs(backoff, failures, 0));
    toMs += Math.ceil(backoffMs(backoff, failures, LONGEST));
    retries.push({ attempt: failures + 1, fromMs, toMs });
  }
  return retries;
}
