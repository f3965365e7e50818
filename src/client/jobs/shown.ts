/**
 * What was copied from a view must not come back as data. A view shows `[redacted]` where a queue hides a value, and of
 * data that a codec has encoded the text as it is stored: written back, the value would be lost, and a handler would get
 * the text. Whatever takes data for a job or a schedule that people can see asks here. Only what may be a copy is looked at.
 */
import { decodeRecord } from '../../job/codec.ts';
import type { Queue } from '../../job/queue.ts';
import { REDACTED, type Redaction, refuseRedacted } from '../../job/redaction.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { peek } from '../../redis/read/inspect.ts';
import type { ScheduleInput } from '../../schedule/input.ts';
import { type Answers, type Batch, type BatchParts, createBatch } from '../calls/batch.ts';
import { homeOf } from '../calls/layouts.ts';
import type { Plan } from '../calls/plan.ts';
import { withReadRetry } from '../calls/read-retry.ts';

type Replacing = Pick<Plan, 'mode' | 'record'>;

/** What is known of the place that a job goes to: what its queue hides, and the record that it would replace. */
interface There {
  readonly redact: Redaction | undefined;
  readonly before?: string | undefined;
}

/** @throws DuestreamError `bad-input` */
export function refuseShown(plan: Replacing, { redact, before }: There): void {
  if (!isLikely(plan)) return;
  const { data, codec } = decodeRecord(plan.record);
  refuseRedacted(data, redact);
  if (codec === undefined) refuseEncoded(data, before);
}

/**
 * @param before the record whose data is to be replaced
 * @throws DuestreamError `bad-input` for data that is its text as a codec has encoded it
 */
export function refuseEncoded(data: unknown, before: string | undefined): void {
  if (typeof data !== 'string' || before === undefined) return;
  const stored = readable(before);
  if (stored?.codec !== undefined && stored.data === data) throw encoded(stored.codec);
}

function readable(record: string) {
  try {
    return decodeRecord(record);
  } catch {
    return undefined;
  }
}

const encoded = (codec: string): DuestreamError =>
  new DuestreamError(
    'bad-input',
    `data is the text that the codec ${codec} has made of the data, as views show it; allowed: the data itself, where the codec is, or a change without data`,
  );

/**
 * @param before the definition that is to be replaced
 * @throws DuestreamError `bad-input` for data of a schedule that was copied from a view
 */
export function refuseShownSchedule(
  { data, codec }: Pick<ScheduleInput, 'data' | 'codec'>,
  { before, redact }: { readonly before: ScheduleInput | undefined; readonly redact: readonly Redaction[] },
): void {
  const isKept = JSON.stringify(data) === JSON.stringify(before?.data);
  if (isKept && codec === undefined && before?.codec !== undefined && data !== undefined) throw encoded(before.codec);
  if (!isKept) for (const paths of redact) refuseRedacted(data, paths);
}

/** A batch that refuses those. What a queue hides, and what is there, is asked for where a job is likely to be one. */
export function createCheckedBatch({ redis, ...parts }: BatchParts & { readonly redis: Redis }): Batch {
  const { layouts, clock, budgetMs } = parts;
  const batch = createBatch(parts);

  async function refuse(queue: Queue, plan: Plan): Promise<void> {
    const layout = await layouts.load(queue);
    const redact = layout[0]?.redact;
    if (!isReplacingText(plan)) return refuseShown(plan, { redact });
    const ref = homeOf(layout, plan.id);
    const found = await withReadRetry('schedule', () => peek(redis, ref, plan.member), { clock, budgetMs });
    refuseShown(plan, { redact, before: found && 'record' in found ? found.record : undefined });
  }

  async function addChecked(queue: Queue, plan: Plan) {
    await refuse(queue, plan);
    return batch.add(queue, plan);
  }

  async function addManyChecked(queue: Queue, plans: readonly Plan[]): Promise<Answers> {
    const errors = new Map<number, unknown>();
    for (const [at, plan] of plans.entries()) {
      try {
        if (isLikely(plan)) await refuse(queue, plan);
      } catch (error) {
        errors.set(at, error);
      }
    }
    const places = [...plans.keys()].filter((at) => !errors.has(at));
    const sent = await batch.addMany(
      queue,
      plans.filter((_, at) => !errors.has(at)),
    );
    const results: Answers['results'][number][] = plans.map(() => undefined);
    for (const [nth, result] of sent.results.entries()) results[places[nth] ?? nth] = result;
    for (const [nth, error] of sent.errors) errors.set(places[nth] ?? nth, error);
    return { results, errors };
  }

  return {
    ...batch,
    add: (queue, plan) => (isLikely(plan) ? addChecked(queue, plan) : batch.add(queue, plan)),
    addMany: (queue, plans) => (plans.some(isLikely) ? addManyChecked(queue, plans) : batch.addMany(queue, plans)),
  };
}

const isLikely = (plan: Replacing): boolean => plan.record.includes(REDACTED) || isReplacingText(plan);

/** Data that is one text, as a codec makes it. Nobody looks for more than that in a long record. */
const isReplacingText = ({ mode, record }: Replacing): boolean => mode === 'replace' && record.includes('"d":"');
