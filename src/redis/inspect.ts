/**
 * Reading without touching: counts of a partition, one job's whole story, and pages of jobs by state. Pages are for
 * people and tools; they are bounded and not one moment in time.
 */
import {
  decodeHeader,
  decodeHistory,
  decodeRun,
  decodeStub,
  idOf,
  isStub,
  type Run,
  type Stub,
} from '../core/codec.ts';
import type { Attempted } from '../core/outcome.ts';
import type { JobState } from '../core/state.ts';
import type { Redis } from './connect.ts';
import type { PartitionRef } from './keys.ts';
import type { Moved } from './replies.ts';
import { fieldsOf, list, type Reply, run, score, text } from './scripts.ts';
import { type Pause, pauseOf } from './upkeep.ts';

export interface PartitionStats {
  readonly nowMs: number;
  readonly scheduled: number;
  readonly headDueMs: number | undefined;
  /** Entries nobody has read yet. */
  readonly ready: number;
  /** Entries some worker holds: running, or about to start. */
  readonly running: number;
  readonly dead: number;
  readonly done: number;
  readonly term: string | undefined;
  readonly leaseTtlMs: number;
  readonly paused: boolean;
  /** Since when and why, while it is paused. */
  readonly pause?: Pause;
  readonly wakeMs: number | undefined;
  /** Durable counters: scheduled, promoted, done, retried, deferred, dead, cancelled, replayed, adopted, reclaimed, … */
  readonly counters: Readonly<Record<string, number>>;
}

/** What is known about one job, at one moment. */
export interface Peek {
  readonly nowMs: number;
  readonly state: JobState;
  readonly member: string;
  readonly record: string | undefined;
  readonly stub: Stub | undefined;
  readonly dueMs: number | undefined;
  readonly run: Run | undefined;
  readonly overMs: number | undefined;
}

export interface Letter {
  readonly letter: string;
  readonly id: string;
  readonly bare: boolean;
  readonly record: string;
  readonly reason: string;
  readonly history: readonly Attempted[];
  readonly attempts: number;
  readonly generation: number;
  readonly atMs: number;
}

export interface Row {
  readonly id: string;
  readonly bare: boolean;
  readonly state: JobState;
  readonly dueMs: number | undefined;
  readonly name: string | undefined;
}

export async function stats(redis: Redis, ref: PartitionRef): Promise<PartitionStats> {
  const reply = list(await run(redis, 'stats', { keys: ref.keys, args: {} })).map(text);
  const [now, scheduled, head, entries, pending, dead, done, , , term, ttl, ...flat] = reply;
  const meta = fieldsOf(flat);
  const counters = [...meta]
    .filter(([field]) => field.startsWith('n.'))
    .map(([field, value]) => [field.slice(2), Number(value)]);
  return {
    nowMs: Number(now),
    scheduled: Number(scheduled),
    headDueMs: head === undefined || head === '' ? undefined : score(head),
    ready: Math.max(0, Number(entries) - Number(pending)),
    running: Number(pending),
    dead: Number(dead),
    done: Number(done),
    term: term === '' ? undefined : term,
    leaseTtlMs: Number(ttl),
    paused: meta.has('paused'),
    ...(meta.has('paused') ? { pause: pauseOf(meta.get('paused') ?? '') } : {}),
    wakeMs: meta.has('wake') ? Number(meta.get('wake')) : undefined,
    counters: Object.fromEntries(counters) as Record<string, number>,
  };
}

/** The story of one member, or undefined when nothing is known about it. */
export async function peek(redis: Redis, ref: PartitionRef, member: string): Promise<Peek | Moved | undefined> {
  const args = { generation: ref.generation, member };
  const reply = list(await run(redis, 'peek', { keys: ref.keys, args })).map(text);
  if (reply[0] === 'moved') return { kind: 'moved', generation: Number(reply[1]) };
  const [now, value = '', due = '', runText = '', over = ''] = reply;
  if (value === '' && due === '') return undefined;
  const stub = isStub(value) ? decodeStub(value) : undefined;
  const started = decodeRun(runText);
  return {
    nowMs: Number(now),
    state: stateOf({ stub, due, run: started }),
    member,
    record: value === '' || stub ? undefined : value,
    stub,
    dueMs: due === '' ? undefined : score(due),
    run: started,
    overMs: over === '' ? undefined : Number(over),
  };
}

/** Dead letters, newest first, from `before` (exclusive) backwards. */
export async function letters(
  redis: Redis,
  ref: PartitionRef,
  { limit, before = '+' }: { readonly limit: number; readonly before?: string },
): Promise<readonly Letter[]> {
  const reply = await redis.call('XREVRANGE', ref.keys.dead, before === '+' ? '+' : `(${before}`, '-', 'COUNT', limit);
  return list(reply as Reply).map(letterOf);
}

/** One dead letter, or undefined. */
export async function letter(redis: Redis, ref: PartitionRef, entry: string): Promise<Letter | undefined> {
  const found = list((await redis.call('XRANGE', ref.keys.dead, entry, entry)) as Reply);
  return found[0] === undefined ? undefined : letterOf(found[0]);
}

/** A page of jobs in one state: scheduled by due, ready and running by entry, over by time (newest first). */
export async function page(
  redis: Redis,
  ref: PartitionRef,
  { state, limit, offset = 0 }: { readonly state: JobState; readonly limit: number; readonly offset?: number },
): Promise<readonly Row[]> {
  const { scheduled, runs, jobs } = ref.keys;
  if (state === 'dead') {
    const found = await letters(redis, ref, { limit: offset + limit });
    return found.slice(offset).map(({ id, bare, record }) => row({ id, bare }, state, undefined, record));
  }
  if (state === 'scheduled') {
    const flat = await redis.zrange(scheduled, String(offset), String(offset + limit - 1), 'WITHSCORES');
    const members = flat.filter((_, index) => index % 2 === 0);
    const records = members.length === 0 ? [] : await redis.hmget(jobs, ...members);
    return members.map((member, i) => row(idOf(member), state, score(flat[2 * i + 1] ?? ''), records[i] ?? null));
  }
  if (state === 'running') {
    const all = Object.entries(await redis.hgetall(runs));
    const owned = all.filter(([, value]) => decodeRun(value)?.owner !== undefined).slice(offset, offset + limit);
    return owned.map(([member]) => row(idOf(member), state, undefined, null));
  }
  const chunks = state === 'ready' ? readyRows(redis, ref) : overRows(redis, ref, state);
  const rows: Row[] = [];
  for await (const chunk of chunks) {
    rows.push(...chunk);
    if (rows.length >= offset + limit) break;
  }
  return rows.slice(offset, offset + limit);
}

/** How much one page looks through, and in which steps: a filter may leave little of a step. */
const LOOK_MAX = 10_000;
const LOOK_STEP = 500;

/** Entries whose job neither runs nor is over, in their order. */
async function* readyRows(redis: Redis, { keys }: PartitionRef): AsyncGenerator<readonly Row[]> {
  let from = '-';
  for (let looked = 0; looked < LOOK_MAX; looked += LOOK_STEP) {
    const entries = list((await redis.call('XRANGE', keys.ready, from, '+', 'COUNT', LOOK_STEP)) as Reply).map(list);
    if (entries.length === 0) return;
    from = `(${text(entries.at(-1)?.[0])}`;
    const fields = entries.map(([, flat]) => fieldsOf(flat));
    const members = fields.map((entry) => entry.get('member') ?? '');
    const [records, started] = [await redis.hmget(keys.jobs, ...members), await redis.hmget(keys.runs, ...members)];
    yield members.flatMap((member, at) => {
      const record = records[at] ?? null;
      const waits = record !== null && !isStub(record) && decodeRun(started[at] ?? '')?.owner === undefined;
      return waits ? [row(idOf(member), 'ready', Number(fields[at]?.get('due')), record)] : [];
    });
  }
}

/** Jobs that ended in one way and are in the done window, newest first. */
async function* overRows(redis: Redis, { keys }: PartitionRef, state: JobState): AsyncGenerator<readonly Row[]> {
  for (let from = 0; from < LOOK_MAX; from += LOOK_STEP) {
    const over = await redis.zrevrange(keys.done, String(from), String(from + LOOK_STEP - 1));
    if (over.length === 0) return;
    const stubs = (await redis.hmget(keys.jobs, ...over)).map((value) => decodeStub(value ?? ''));
    yield over.flatMap((member, at) =>
      stubs[at]?.outcome === state ? [row(idOf(member), state, stubs[at]?.askedDueMs, null)] : [],
    );
  }
}

function stateOf({ stub, due, run: started }: { stub: Stub | undefined; due: string; run: Run | undefined }): JobState {
  if (stub) return stub.outcome;
  if (started?.owner !== undefined) return 'running';
  return due === '' ? 'ready' : 'scheduled';
}

function row(
  of: { id: string; bare: boolean },
  state: JobState,
  dueMs: number | undefined,
  record: string | null,
): Row {
  const name = record === null ? undefined : /^[^|]*\|\{"n":"([^"]*)"/.exec(record)?.[1];
  return { ...of, state, dueMs: dueMs ?? (record ? decodeHeader(record)?.askedDueMs : undefined), name };
}

function letterOf(reply: Reply): Letter {
  const [entry, flat] = list(reply);
  const fields = fieldsOf(flat);
  const field = (name: string) => fields.get(name) ?? '';
  return {
    letter: text(entry),
    ...idOf(field('member')),
    record: field('record'),
    reason: field('reason'),
    history: decodeHistory(field('history').split('\n')),
    attempts: Number(field('attempts')),
    generation: Number(field('generation')),
    atMs: Number(field('at')),
  };
}
