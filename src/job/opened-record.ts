/** A record whose data is decoded and checked, for `judge.ts`. */

import { isPromise } from '../kernel/function.ts';
import type { JobRecord } from './codec.ts';
import { BadData, type Content, open } from './content.ts';

export /** The record with its data as the handler gets it, or why there is none. A codec may say that it cannot tell yet. */
function openedRecord(queue: Content, record: JobRecord): JobRecord | Promise<JobRecord> | BadData {
  try {
    const data = open(queue, record);
    return isPromise(data) ? data.then((known) => ({ ...record, data: known })) : { ...record, data };
  } catch (thrown) {
    return thrown instanceof BadData ? thrown : Promise.reject(thrown);
  }
}

/** Anything can be thrown, also an object that throws when it is looked at. */
export function isBadData(thrown: unknown): boolean {
  try {
    return thrown instanceof BadData;
  } catch {
    return false;
  }
}
