/**
 * What was copied from a view must not come back as data: a job that replaces another one with `[redacted]` where its queue
 * hides a value would lose that value. An edit is refused for the same. Only a text that has the word is looked at.
 */
import { decodeRecord } from '../core/codec.ts';
import type { Queue } from '../core/queue.ts';
import { REDACTED, type Redaction, refuseRedacted } from '../core/redaction.ts';
import { type Answers, type Batch, type BatchParts, createBatch } from './batch.ts';
import type { Plan } from './plan.ts';

type Replacing = Pick<Plan, 'mode' | 'record'>;

/** @throws DuestreamError `bad-input` */
export function refuseShown(plan: Replacing, redact: Redaction | undefined): void {
  if (isLikely(plan)) refuseRedacted(decodeRecord(plan.record).data, redact);
}

/** A batch that refuses those. What a queue hides is asked for where a job is likely to be one. */
export function createCheckedBatch(parts: BatchParts): Batch {
  const { layouts } = parts;
  const batch = createBatch(parts);
  const redactOf = async (queue: Queue) => (await layouts.load(queue))[0]?.redact;

  async function addChecked(queue: Queue, plan: Plan) {
    refuseShown(plan, await redactOf(queue));
    return batch.add(queue, plan);
  }

  async function addManyChecked(queue: Queue, plans: readonly Plan[]): Promise<Answers> {
    const errors = new Map<number, unknown>();
    for (const [at, plan] of plans.entries()) {
      try {
        if (isLikely(plan)) refuseShown(plan, await redactOf(queue));
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

const isLikely = ({ mode, record }: Replacing): boolean => mode === 'replace' && record.includes(REDACTED);
