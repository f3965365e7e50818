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
import { type Answers, type BatchParts, type Order, ScheduleBatch } from '../calls/batch.ts';
import { homeOf } from '../calls/layouts.ts';
import type { Plan } from '../calls/plan.ts';
import { withReadRetry } from '../calls/retry.ts';
import type { Scheduled } from '../calls/scheduled.ts';
import { Lane, type Turns } from '../calls/turns.ts';

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

type CheckedParts = BatchParts & { readonly redis: Redis; readonly turns: Turns };

/**
 * A batch that refuses data that was copied from a view. It asks Redis for the paths that the queue hides and for the record
 * that is there, where a job is likely to have such data. Meanwhile later calls on the job wait.
 */
export class CheckedBatch {
  readonly #parts: CheckedParts;
  readonly #batch: ScheduleBatch;

  constructor(parts: CheckedParts) {
    this.#parts = parts;
    this.#batch = new ScheduleBatch(parts);
  }

  /** @throws DuestreamError as `ScheduleBatch.add`, and `bad-input` for such data */
  add(queue: Queue, plan: Plan, order?: Order): Promise<Scheduled> {
    if (!isLikely(plan)) return this.#batch.add(queue, plan, order);
    return this.#inOrder(queue, { plans: [plan], order }, async () => {
      await this.#refuse(queue, plan);
      return this.#batch.add(queue, plan, 'none');
    });
  }

  addMany(queue: Queue, plans: readonly Plan[], order?: Order): Promise<Answers> {
    if (!plans.some(isLikely)) return this.#batch.addMany(queue, plans, order);
    return this.#inOrder(queue, { plans, order }, () => this.#addManyChecked(queue, plans));
  }

  quiet(): Promise<void> {
    return this.#batch.quiet();
  }

  #inOrder<T>(
    queue: Queue,
    { plans, order = 'own' }: { readonly plans: readonly Plan[]; readonly order: Order | undefined },
    call: () => Promise<T>,
  ): Promise<T> {
    if (order !== 'own') return call();
    const { turns } = this.#parts;
    const keys = plans.map(({ member }) => member);
    return turns.run(turns.take([{ lane: queue.name, kind: 'jobs', keys }]), call);
  }

  async #addManyChecked(queue: Queue, plans: readonly Plan[]): Promise<Answers> {
    const errors = new Map<number, unknown>();
    for (const [at, plan] of plans.entries()) {
      try {
        if (isLikely(plan)) await this.#refuse(queue, plan);
      } catch (error) {
        errors.set(at, error);
      }
    }
    const places = [...plans.keys()].filter((at) => !errors.has(at));
    const sent = await this.#batch.addMany(
      queue,
      plans.filter((_, at) => !errors.has(at)),
      new Lane(),
    );
    const results: Answers['results'][number][] = plans.map(() => undefined);
    for (const [nth, result] of sent.results.entries()) results[places[nth] ?? nth] = result;
    for (const [nth, error] of sent.errors) errors.set(places[nth] ?? nth, error);
    return { results, errors };
  }

  async #refuse(queue: Queue, plan: Plan): Promise<void> {
    const { redis, layouts, clock, budgetMs } = this.#parts;
    const layout = await layouts.load(queue);
    const redact = layout[0]?.redact;
    if (!isReplacingText(plan)) return refuseShown(plan, { redact });
    const ref = homeOf(layout, plan.id);
    const found = await withReadRetry('schedule', () => peek(redis, ref, plan.member), { clock, budgetMs });
    refuseShown(plan, { redact, before: found && 'record' in found ? found.record : undefined });
  }
}

const isLikely = (plan: Replacing): boolean => plan.record.includes(REDACTED) || isReplacingText(plan);

/** Data that is one text, as a codec makes it. Nobody looks for more than that in a long record. */
const isReplacingText = ({ mode, record }: Replacing): boolean => mode === 'replace' && record.includes('"d":"');
