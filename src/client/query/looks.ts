/** The methods of a producer that look at one job. */

import { type QueueInput, queueOf } from '../../job/queue.ts';
import type { InputOf } from '../../job/types.ts';
import { checkNames } from '../../kernel/option-names.ts';
import type { Calls } from '../calls/session.ts';
import { parseAnyId } from '../calls/settings.ts';
import type { JobResult } from './past.ts';
import type { JobReport } from './report.ts';

export interface Looks {
  /**
   * The report of one job as it is stored: facts and timeline. Undefined when nothing is known about it. A record that cannot be read is said to be so
   * (`readable: false`) and never thrown.
   *
   * @example const due = (await client.get(emails, id))?.dueMs;
   */
  get<Data>(
    queue: QueueInput<Data>,
    id: string,
    options?: { readonly bare?: boolean },
  ): Promise<JobReport<InputOf<Data>> | undefined>;
  /**
   * What is stored about the end of one job, at this moment; it never waits. With `history` and its `result` in the
   * queue's options `result` has what the handler returned; without, an end is known for the done window.
   *
   * @example
   * const end = await producer.result<{ url: string }>(reports, id);
   * if (end.status === 'done' && end.result.kind === 'kept') console.log(end.result.value.url);
   */
  result<Result = unknown>(
    queue: QueueInput<unknown>,
    id: string,
    options?: { readonly bare?: boolean },
  ): Promise<JobResult<Result>>;
}

export function looksOf({ runChecked }: Calls): Looks {
  return {
    get: (queue, id, options = {}) =>
      runChecked(
        () => one(queue, id, bareIn(options, 'get')),
        ({ get }, given) => get(given.to, given.id, given),
      ),
    result: <Result>(queue: QueueInput<unknown>, id: string, options: { readonly bare?: boolean } = {}) =>
      runChecked(
        () => one(queue, id, bareIn(options, 'result')),
        // The queue's handlers are the only witness of the type.
        ({ past }, given) => past.result(given.to, given.id, given) as Promise<JobResult<Result>>,
      ),
  };
}

/** One job of a queue, checked. */
export function one<Data>(queue: QueueInput<Data>, id: string, bare = false) {
  return { to: queueOf(queue), id: parseAnyId(id, bare), bare };
}

function bareIn(options: { readonly bare?: boolean }, method: string): boolean | undefined {
  checkNames(options, ['bare'], method, 'bad-input');
  return options.bare;
}
