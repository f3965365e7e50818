/**
 * Pages of jobs by state, for people and tools. They are not one moment in time, and whatever is asked for, no step
 * reads more than a bounded part: a record may be of 256 KiB, so few are held at once and none is kept.
 */
import { decodeRun, decodeTombstone, idOf, isTombstone } from '../core/codec.ts';
import type { EntryId } from '../core/job.ts';
import { decodeHeader } from '../core/record-header.ts';
import type { JobState } from '../core/state.ts';
import type { Redis } from './connection/connect.ts';
import { type DeadLetter, deadLetters } from './inspect.ts';
import { GROUP, type PartitionRef } from './keys.ts';
import { createStep } from './transitions/bytes.ts';
import { readEntries } from './transitions/ready.ts';
import { fieldsOf, list, type Reply, score, text } from './transitions/scripts.ts';

export interface Row {
  readonly id: string;
  readonly bare: boolean;
  readonly state: JobState;
  readonly dueMs: number | undefined;
  readonly name: string | undefined;
  /** When it was over. */
  readonly overMs?: number;
}

/** How much one page looks through where a filter may leave little of a step. */
const LOOK_MAX = 20_000;
const TOMBSTONES_STEP = 500;
const RECORDS_STEP = 100;
const DEAD_LETTERS_STEP = 50;

/** A page of jobs in one state: scheduled by due time, ready and running by entry, over by time (newest first). */
export async function page(
  redis: Redis,
  ref: PartitionRef,
  { state, limit, offset = 0 }: { readonly state: JobState; readonly limit: number; readonly offset?: number },
): Promise<readonly Row[]> {
  // Only the zset of due times can be entered in its middle; of the others what comes first is read and dropped.
  let skip = state === 'scheduled' ? 0 : offset;
  const rows: Row[] = [];
  for await (const chunk of chunksOf(redis, ref, { state, limit, offset })) {
    const kept = chunk.slice(skip);
    skip -= chunk.length - kept.length;
    rows.push(...kept);
    if (rows.length >= limit) break;
  }
  return rows.slice(0, limit);
}

/** Dead letters backwards, from the newest there was at the beginning or from before one of them, at most `max`. */
export async function* everyDeadLetter(
  redis: Redis,
  ref: PartitionRef,
  max: number,
  from?: string,
): AsyncGenerator<DeadLetter> {
  let before = from;
  const step = createStep(DEAD_LETTERS_STEP);
  for (let seen = 0; seen < max; ) {
    const found = await deadLetters(redis, ref, {
      limit: Math.min(step.next(), max - seen),
      ...(before && { before }),
    });
    step.saw(found.map(({ id, record }) => id.length + record.length));
    yield* found;
    seen += found.length;
    before = found.at(-1)?.entry;
    if (before === undefined) return;
  }
}

type Asked = { readonly state: JobState; readonly limit: number; readonly offset: number };

function chunksOf(redis: Redis, ref: PartitionRef, asked: Asked): AsyncIterable<readonly Row[]> {
  switch (asked.state) {
    case 'scheduled':
      return scheduledRows(redis, ref, asked);
    case 'ready':
      return readyRows(redis, ref);
    case 'running':
      return runningRows(redis, ref);
    case 'dead':
      return deadRows(redis, ref, asked);
    case 'done':
    case 'cancelled':
    case 'expired':
      return overRows(redis, ref, asked.state);
  }
}

async function* scheduledRows(redis: Redis, { keys }: PartitionRef, { limit, offset }: Asked) {
  const end = offset + limit;
  const step = createStep(RECORDS_STEP);
  for (let from = offset; from < end; ) {
    const last = Math.min(from + step.next(), end) - 1;
    const flat = await redis.zrange(keys.scheduled, String(from), String(last), 'WITHSCORES');
    const members = flat.filter((_, index) => index % 2 === 0);
    if (members.length === 0) return;
    from += members.length;
    const records = await redis.hmget(keys.jobs, ...members);
    step.saw(members.map((member, at) => member.length + (records[at]?.length ?? 0)));
    yield members.map((member, at) => row(member, 'scheduled', score(flat[2 * at + 1] ?? ''), records[at] ?? null));
  }
}

/** Entries whose job neither runs nor is over, in their order. */
async function* readyRows(redis: Redis, { keys }: PartitionRef): AsyncGenerator<readonly Row[]> {
  let from = '-';
  const step = createStep(RECORDS_STEP);
  for (let looked = 0; looked < LOOK_MAX; ) {
    const reply = await redis.call('XRANGE', keys.ready, from, '+', 'COUNT', step.next());
    const entries = list(reply as Reply).map(list);
    if (entries.length === 0) return;
    looked += entries.length;
    from = `(${text(entries.at(-1)?.[0])}`;
    const fields = entries.map(([, flat]) => fieldsOf(flat));
    const members = fields.map((entry) => entry.get('member') ?? '');
    const [records, started] = [await redis.hmget(keys.jobs, ...members), await redis.hmget(keys.runs, ...members)];
    step.saw(members.map((member, at) => member.length + (records[at]?.length ?? 0)));
    yield members.flatMap((member, at) => {
      const record = records[at] ?? null;
      const waits = record !== null && !isTombstone(record) && decodeRun(started[at] ?? '')?.owner === undefined;
      return waits ? [row(member, 'ready', Number(fields[at]?.get('due')), record)] : [];
    });
  }
}

/** Pending entries whose job was started under them. Names are left out: they would cost a record each. */
async function* runningRows(redis: Redis, { keys }: PartitionRef): AsyncGenerator<readonly Row[]> {
  if ((await redis.exists(keys.ready)) === 0) return;
  let from = '-';
  for (let looked = 0; looked < LOOK_MAX; looked += RECORDS_STEP) {
    const reply = list((await redis.call('XPENDING', keys.ready, GROUP, from, '+', RECORDS_STEP)) as Reply);
    const pending = reply.map((item) => text(list(item)[0]) as EntryId);
    if (pending.length === 0) return;
    from = `(${pending.at(-1)}`;
    const entries = await readEntries(redis, keys, pending);
    if (entries.length === 0) continue;
    const started = await redis.hmget(keys.runs, ...entries.map(({ member }) => member));
    yield entries.flatMap(({ entry, member, dueMs }, at) => {
      const run = decodeRun(started[at] ?? '');
      return run?.owner !== undefined && run.entry === entry ? [row(member, 'running', dueMs, null)] : [];
    });
  }
}

/** Jobs that ended in one way and are in the done window, newest first. */
async function* overRows(redis: Redis, { keys }: PartitionRef, state: JobState): AsyncGenerator<readonly Row[]> {
  for (let from = 0; from < LOOK_MAX; from += TOMBSTONES_STEP) {
    const flat = await redis.zrevrange(keys.done, String(from), String(from + TOMBSTONES_STEP - 1), 'WITHSCORES');
    const over = flat.filter((_, index) => index % 2 === 0);
    if (over.length === 0) return;
    const tombstones = (await redis.hmget(keys.jobs, ...over)).map((value) => decodeTombstone(value ?? ''));
    yield over.flatMap((member, at) => {
      const tombstone = tombstones[at];
      if (tombstone?.outcome !== state) return [];
      return [{ ...row(member, state, tombstone.askedDueMs, null), overMs: score(flat[2 * at + 1] ?? '') }];
    });
  }
}

async function* deadRows(redis: Redis, ref: PartitionRef, { limit, offset }: Asked): AsyncGenerator<readonly Row[]> {
  for await (const { id, bare, record, atMs } of everyDeadLetter(redis, ref, offset + limit)) {
    yield [{ id, bare, state: 'dead', ...contentOf(record), overMs: atMs }];
  }
}

function row(member: string, state: JobState, dueMs: number, record: string | null): Row {
  return { ...idOf(member), state, dueMs, name: contentOf(record ?? '').name };
}

/** The name is copied: a part of a text keeps the whole text in memory. */
function contentOf(record: string): Pick<Row, 'dueMs' | 'name'> {
  const name = /^[^|]*\|\{"n":"([^"]*)"/.exec(record)?.[1];
  return {
    dueMs: decodeHeader(record)?.askedDueMs,
    name: name === undefined ? undefined : Buffer.from(name).toString(),
  };
}
