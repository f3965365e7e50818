/** The methods of a producer that look at one job. */
import { checkNames } from '../core/option-names.ts';
import type { Calls } from './calls.ts';
import type { JobResult } from './past.ts';
import type { Producer } from './producer.ts';
import { parseAnyId, type QueueInput, queueOf } from './settings.ts';

export function looksOf({ runChecked }: Calls): Pick<Producer, 'get' | 'result'> {
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
