/** The content of a record for whoever looks. Reading a broken record must not throw: somebody looks because it is broken. */
import { decodeRecord, type JobRecord } from './codec.ts';
import type { ToldOptions } from './fields.ts';
import type { JobHeaders } from './headers.ts';
import { decodeHeader } from './record-header.ts';

export interface RecordContent {
  readonly name: string | undefined;
  readonly data: unknown;
  readonly headers: JobHeaders | undefined;
  /** The codec that encoded the data, which is shown as it is stored. */
  readonly codec: string | undefined;
  readonly options: ToldOptions;
  readonly askedDueMs: number | undefined;
  readonly readable: boolean;
  /** The beginning of a record that cannot be read. */
  readonly unreadable: string | undefined;
}

const UNREADABLE_CHARS_MAX = 200;

export const NO_CONTENT: RecordContent = {
  name: undefined,
  data: undefined,
  headers: undefined,
  codec: undefined,
  options: {},
  askedDueMs: undefined,
  readable: false,
  unreadable: undefined,
};

export function contentOf(record: string): RecordContent {
  const content = decoded(record);
  if (!content) {
    const unreadable = record === '' ? undefined : record.slice(0, UNREADABLE_CHARS_MAX);
    return { ...NO_CONTENT, askedDueMs: decodeHeader(record)?.askedDueMs, unreadable };
  }
  const { name, data, headers, askedDueMs, bare: _, codec, ...options } = content;
  return { name, data, headers, codec, options, askedDueMs, readable: true, unreadable: undefined };
}

function decoded(record: string): JobRecord | undefined {
  try {
    return decodeRecord(record);
  } catch {
    return undefined;
  }
}
