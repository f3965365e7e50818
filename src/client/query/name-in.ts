/** The name in a record, undefined where it cannot be read. Nearly always it comes first, and nothing has to be parsed. */
import { decodeRecord } from '../../job/codec.ts';
import { DEFAULT_NAME } from '../../job/job.ts';

const FIRST = /^[^|]*\|\{"n":"([^"\\]*)"/;

export function nameIn(record: string | undefined): string | undefined {
  // A bare job that was not promoted yet.
  if (record === undefined) return DEFAULT_NAME;
  const first = FIRST.exec(record)?.[1];
  if (first !== undefined) return first;
  try {
    return decodeRecord(record).name;
  } catch {
    return undefined;
  }
}
