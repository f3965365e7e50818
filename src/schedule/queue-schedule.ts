/**
 * A schedule that names its queue by what `defineQueue` returned → one that names it by name: its data is checked and
 * encoded as that of a single job is. All of its jobs have the same data, so this happens once, when it is put.
 */
import { Sealed, seal } from '../job/content.ts';
import { type Queue, queueOf } from '../job/queue.ts';
import { refuseRedacted } from '../job/redaction.ts';
import type { InputIn, NamedData, NameIn } from '../job/types.ts';
import { isPromise } from '../kernel/function.ts';
import type { ScheduleInput } from './input.ts';

type Rest = Omit<ScheduleInput, 'queue' | 'job' | 'data' | 'codec'>;

/** A schedule whose jobs go to a defined queue, which says what their data is. */
export type QueueSchedule<Data> = Rest & {
  readonly queue: Queue<Data>;
  readonly job?: string | undefined;
  readonly data?: Data | undefined;
};

/** The same of a queue with `jobs`: `job` is one of their names. */
export type NamedSchedule<Jobs> = {
  readonly [Name in keyof Jobs]: Rest &
    NameIn<'job', Name> & { readonly queue: Queue<NamedData<Jobs>>; readonly data: InputIn<Jobs, Name> };
}[keyof Jobs];

/** What `put` takes, whatever the compiler knew. */
export type AnySchedule = ScheduleInput | QueueSchedule<unknown>;

/** @throws DuestreamError `bad-input`; the promise of a schema or codec that takes its time rejects with the same */
export function plainSchedule(input: AnySchedule): ScheduleInput | Promise<ScheduleInput> {
  const { queue: given, ...rest } = input;
  // What is no object is checked with the other fields of the schedule.
  if (typeof given !== 'object' || given === null) return { ...rest, queue: given };
  const queue = queueOf(given);
  refuseRedacted(rest.data, queue.redact);
  // As it was read: another time would encode what is encoded.
  if ('codec' in rest && rest.codec !== undefined) return { ...rest, queue: queue.name };
  const sealed = seal(queue, { name: rest.job, data: rest.data });
  const plain = (data: unknown): ScheduleInput => ({ ...rest, queue: queue.name, ...dataOf(data) });
  return isPromise(sealed) ? sealed.then(plain) : plain(sealed);
}

function dataOf(data: unknown): Pick<ScheduleInput, 'data' | 'codec'> {
  if (data instanceof Sealed) return { data: data.text, codec: data.codec };
  return data === undefined ? {} : { data };
}
