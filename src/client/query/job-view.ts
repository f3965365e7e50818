/**
 * One job as it is stored right now, for people and programs that look. What cannot be read is said to be so; looking
 * at a broken job must not throw, because somebody looks at it because it is broken.
 */
import { decodeRecord, type JobRecord, memberOf } from '../../job/codec.ts';
import type { ToldOptions } from '../../job/fields.ts';
import type { JobHeaders } from '../../job/headers.ts';
import { DEFAULT_NAME } from '../../job/job.ts';
import type { Attempted, Deferred } from '../../job/outcome.ts';
import { isEndOf, type PastJob } from '../../job/past.ts';
import type { Queue } from '../../job/queue.ts';
import { decodeHeader, digestOf } from '../../job/record-header.ts';
import type { JobState } from '../../job/state.ts';
import type { InputOf } from '../../job/types.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { RetryPolicy } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { type DeadLetter, deadLetter, type Peek, peek } from '../../redis/read/inspect.ts';
import { pastOf } from '../../redis/read/past.ts';
import type { Moved } from '../../redis/scripts/replies.ts';
import { etagOfJob } from '../calls/etag.ts';
import { type CallPartitions, placesOf } from '../calls/partition-calls.ts';
import { withReadRetry } from '../calls/read-retry.ts';

/** A job at one moment. */
export interface JobView<Data = unknown> {
  readonly id: string;
  readonly queue: string;
  readonly partition: number;
  /** Whether a foreign producer put it with a plain ZADD. */
  readonly bare: boolean;
  readonly state: JobState;
  /** Undefined when its record cannot be read, and once the job is over, but for a dead one and in a queue that keeps a history. */
  readonly name: string | undefined;
  /** Undefined once the job is over, and when its record cannot be read. Of a dead job its dead letter has them. */
  readonly data: Data | undefined;
  /** Texts beside the data; undefined as `data` is, and where there are none. */
  readonly headers: JobHeaders | undefined;
  /** The codec that encoded the data, which is shown as it is stored: a text that only handlers get decoded. */
  readonly codec: string | undefined;
  /** What this one job was told, if that differs from its queue's: attempts, times in ms, and the rest. Empty once it is over and not dead. */
  readonly options: ToldOptions;
  /** Tells this content from any other, for `ifDigest` of an edit. Undefined once the job is over, or without a record. */
  readonly digest: string | undefined;
  /** Tells the job as it is now from what it becomes by an edit, a start or another due time, for `ifMatch`. Undefined once it is over. */
  readonly etag: string | undefined;
  /** Epoch ms of the next start; undefined when it is over. Of a job that is ready or runs `list` knows it, `get` does not. */
  readonly dueMs: number | undefined;
  /** The due time that the producer asked for, in epoch ms. */
  readonly askedDueMs: number | undefined;
  /** How often handlers were started. */
  readonly attempts: number;
  readonly failures: number;
  readonly crashes: number;
  /** Grows when the job is replaced or replayed. */
  readonly generation: number;
  readonly cancelRequested: boolean;
  /** The worker that runs it, or had it last. */
  readonly owner: string | undefined;
  /** The number of its last start. */
  readonly token: string | undefined;
  /** The last failures, oldest first, at most 5. */
  readonly history: readonly Attempted[];
  /** How often its handler put it aside, and why it did the last time. */
  readonly deferred: Deferred | undefined;
  /** When it ended, in epoch ms. */
  readonly overMs: number | undefined;
  /** Why it is dead, as long as its dead letter is there. */
  readonly reason: string | undefined;
  /** The address of its dead letter, to show or replay it. */
  readonly deadLetter: string | undefined;
  /** How it ended, if its queue keeps a history; the ends of earlier lives of its id follow. Empty while it lives its first, and
   * in what `list` returns. */
  readonly past: readonly PastJob[];
  /** False when there should be a record and it is missing or cannot be read: the job will become a dead letter. */
  readonly readable: boolean;
}

/** What a record says, as far as it can be read. */
type Content = Pick<JobView, 'name' | 'data' | 'headers' | 'codec' | 'options' | 'digest' | 'askedDueMs' | 'readable'>;

export type Get = <Data>(
  queue: Queue<Data>,
  id: string,
  how: { readonly bare: boolean },
) => Promise<JobView<InputOf<Data>> | undefined>;

export function createGet({
  redis,
  callPartitions,
}: {
  readonly redis: Redis;
  readonly callPartitions: CallPartitions;
}): Get {
  return <Data>(
    queue: Queue<Data>,
    id: string,
    { bare }: { readonly bare: boolean },
  ): Promise<JobView<InputOf<Data>> | undefined> =>
    callPartitions(queue, async (layout, policy) => {
      for (const ref of placesOf(layout, id, bare)) {
        const view = await viewIn<InputOf<Data>>(redis, ref, { id, bare, policy });
        if (view) return view;
      }
      return undefined;
    });
}

async function viewIn<Data>(
  redis: Redis,
  ref: PartitionRef,
  { id, bare, policy }: { readonly id: string; readonly bare: boolean; readonly policy: RetryPolicy },
): Promise<JobView<Data> | Moved | undefined> {
  const member = memberOf(id, { bare });
  const found = await withReadRetry('get', () => peek(redis, ref, member), policy);
  if (found && 'kind' in found) return found;
  const past = await withReadRetry('get', () => endsOf(redis, ref, member), policy);
  const entry = (found ? found.tombstone : past[0])?.deadLetter;
  const letter = await withReadRetry('get', () => letterIn(redis, ref, entry), policy);
  return viewFrom<Data>(ref, { id, bare, past, letter }, found);
}

/** What else is known of a job that is looked at. */
interface Known {
  readonly id: string;
  readonly bare: boolean;
  readonly past: readonly PastJob[];
  /** Of a dead job, as long as it is there. */
  readonly letter?: Letter | undefined;
}

type Letter = Pick<DeadLetter, 'record' | 'reason' | 'history' | 'deferred' | 'failures' | 'crashes' | 'generation'>;

function viewFrom<Data>(ref: PartitionRef, of: Known, found: Peek | undefined): JobView<Data> | undefined {
  return found ? viewOf<Data>(ref, of, found) : pastView<Data>(ref, of);
}

/** What is known of a job, as callers see it. */
export function viewOf<Data>(
  ref: Pick<PartitionRef, 'queue' | 'partition'>,
  { letter, ...of }: Known,
  found: Omit<Peek, 'member' | 'nowMs'>,
): JobView<Data> {
  const { tombstone, run } = found;
  const content = contentOf(found, of.bare, letter);
  const { data, headers, codec, options, digest, askedDueMs, readable } = content;
  // A tombstone knows nothing of this; the record of the same end does.
  const end = tombstone && isEndOf(of.past[0], tombstone) ? of.past[0] : undefined;
  const name = content.name ?? end?.name;
  return {
    ...of,
    queue: ref.queue,
    partition: ref.partition,
    state: found.state,
    name,
    // The queue's definition is the only witness of the type, here as in a handler.
    data: data as Data | undefined,
    headers,
    codec,
    options,
    digest,
    etag: found.seen === undefined ? undefined : etagOfJob(found.seen),
    dueMs: found.dueMs,
    askedDueMs,
    attempts: tombstone?.attempts ?? run?.attempts ?? 0,
    failures: run?.failures ?? end?.failures ?? letter?.failures ?? 0,
    crashes: run?.crashes ?? end?.crashes ?? letter?.crashes ?? 0,
    generation: run?.generation ?? end?.generation ?? letter?.generation ?? 0,
    cancelRequested: run?.cancelRequested ?? false,
    owner: run?.owner ?? end?.owner,
    token: started(tombstone?.token ?? run?.token),
    history: run?.history ?? end?.history ?? letter?.history ?? [],
    deferred: (run ?? end ?? letter)?.deferred,
    overMs: found.overMs,
    deadLetter: tombstone?.deadLetter,
    reason: letter?.reason,
    readable,
  };
}

/** Ends of earlier lives that are told. */
const ENDS_MAX = 5;

/** Nothing is asked where no history was ever kept. */
async function endsOf(redis: Redis, ref: PartitionRef, member: string): Promise<readonly PastJob[]> {
  return ref.history ? pastOf(redis, ref, { member, max: ENDS_MAX }) : [];
}

async function letterIn(redis: Redis, ref: PartitionRef, entry: string | undefined): Promise<Letter | undefined> {
  return entry === undefined ? undefined : deadLetter(redis, ref, entry);
}

/** A job of which only the history knows. */
function pastView<Data>(ref: PartitionRef, { past, letter }: Known): JobView<Data> | undefined {
  const [end] = past;
  if (!end) return undefined;
  const { id, bare, outcome: state, name, askedDueMs, attempts, failures, crashes, generation } = end;
  const { data, headers, codec, options, readable } = letter ? contentIn(letter.record) : OVER;
  return {
    id,
    bare,
    queue: ref.queue,
    partition: ref.partition,
    state,
    name,
    headers,
    codec,
    // The queue's definition is the only witness of the type, here as in a handler.
    data: data as Data | undefined,
    options,
    digest: undefined,
    etag: undefined,
    dueMs: undefined,
    askedDueMs,
    attempts,
    failures,
    crashes,
    generation,
    cancelRequested: false,
    owner: end.owner,
    token: end.token,
    history: end.history,
    overMs: end.overMs,
    deferred: end.deferred,
    deadLetter: end.deadLetter,
    reason: letter?.reason,
    past,
    readable,
  };
}

const NO_CONTENT = {
  name: undefined,
  data: undefined,
  headers: undefined,
  codec: undefined,
  options: {},
  digest: undefined,
} as const;

/** Of what is over nobody keeps the record. */
const OVER = { ...NO_CONTENT, askedDueMs: undefined, readable: true } as const;

function contentOf(
  { tombstone, record, dueMs }: Pick<Peek, 'tombstone' | 'record' | 'dueMs'>,
  bare: boolean,
  letter: Letter | undefined,
): Content {
  if (tombstone) {
    const content = letter ? contentIn(letter.record) : OVER;
    return { ...content, digest: undefined, askedDueMs: content.askedDueMs ?? tombstone.askedDueMs };
  }
  if (record === undefined) {
    // A bare member gets its record when it is promoted; one of ours without a record has lost it.
    return { ...NO_CONTENT, name: bare ? DEFAULT_NAME : undefined, askedDueMs: dueMs, readable: bare };
  }
  return contentIn(record);
}

function contentIn(record: string): Content {
  const digest = digestOf(record);
  const content = decoded(record);
  if (!content) return { ...NO_CONTENT, digest, askedDueMs: decodeHeader(record)?.askedDueMs, readable: false };
  const { name, data, headers, askedDueMs, bare: _, codec, ...options } = content;
  return { name, data, headers, codec, options, digest, askedDueMs, readable: true };
}

function decoded(record: string): JobRecord | undefined {
  try {
    return decodeRecord(record);
  } catch {
    return undefined;
  }
}

/** Token 0 stands for "not started yet". */
const started = (token: string | undefined) => (token === '0' ? undefined : token);
