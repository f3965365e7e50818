/** A dead letter as programs see it. What cannot be read is said to be so: somebody looks at it because it is broken. */

import { contentOf } from '../../job/codec.ts';
import type { ToldOptions } from '../../job/fields.ts';
import type { JobHeaders } from '../../job/labels.ts';
import type { JobLog } from '../../job/log-lines.ts';
import type { Attempted, Deferred } from '../../job/outcome.ts';
import { tagsOfRecord } from '../../job/record-header.ts';
import { etagOfDeadLetter } from '../calls/etag.ts';
import { errorOf } from './filter.ts';
import type { Placed } from './walk.ts';

/** A dead letter in a list: everything but the data of its job. */
export interface DeadLetterRow {
  /** Its id, unique in its partition. */
  readonly deadLetter: string;
  readonly queue: string;
  readonly partition: number;
  /** The id of the job. */
  readonly id: string;
  /** Whether a foreign producer put the job with a plain ZADD. */
  readonly bare: boolean;
  /** Undefined when the record cannot be read. */
  readonly name: string | undefined;
  readonly tags: readonly string[];
  /** Why the job is not tried again: `attempts-exhausted`, `no-handler`, … or the text of an `Unrecoverable`. */
  readonly reason: string;
  /** The last error without numbers and ids: what `groups` counts by. */
  readonly error: string;
  /** The last failures, oldest first, at most 5. */
  readonly history: readonly Attempted[];
  /** How often its handler put it aside, and why it did the last time. */
  readonly deferred: Deferred | undefined;
  /** How often handlers were started. */
  readonly attempts: number;
  readonly failures: number;
  readonly crashes: number;
  readonly generation: number;
  /** Tells this dead letter from any other, for `ifMatch` of `replay`. */
  readonly etag: string;
  /** When the job died, in epoch ms. */
  readonly overMs: number;
  /** The due time that the producer asked for, in epoch ms. */
  readonly askedDueMs: number | undefined;
  /** False when the job's record is missing or cannot be read. */
  readonly readable: boolean;
}

/** A dead letter with the data of its job. */
export interface DeadLetterView<Data = unknown> extends DeadLetterRow {
  readonly data: Data | undefined;
  /** Texts beside the data, if there are any. */
  readonly headers: JobHeaders | undefined;
  /** The codec that encoded the data, which is shown as it is stored. */
  readonly codec: string | undefined;
  /** What this one job was told, if that differs from its queue's. */
  readonly options: ToldOptions;
  /** What its handlers said by `context.log`. Undefined: nothing. */
  readonly log: JobLog | undefined;
}

export function rowOf(placed: Placed): DeadLetterRow {
  const { data: _data, headers: _headers, codec: _codec, options: _options, log: _log, ...row } = viewOf(placed);
  return row;
}

export function viewOf<Data>({ ref, letter }: Placed, log?: JobLog): DeadLetterView<Data> {
  const { entry, id, bare, record, reason, history, deferred, attempts, failures, crashes, generation, atMs } = letter;
  const { name, data, headers, codec, options, askedDueMs, readable } = contentOf(record);
  return {
    deadLetter: entry,
    queue: ref.queue,
    partition: ref.partition,
    id,
    bare,
    name,
    tags: tagsOfRecord(record),
    reason,
    error: errorOf(letter),
    history,
    deferred,
    attempts,
    failures,
    crashes,
    generation,
    overMs: atMs,
    etag: etagOfDeadLetter(letter),
    askedDueMs,
    readable,
    // The queue's definition is the only witness of the type, here as in a handler.
    data: data as Data | undefined,
    headers,
    codec,
    options,
    log,
  };
}
