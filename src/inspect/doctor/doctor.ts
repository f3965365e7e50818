/** All checks, one after the other: whether a Redis can be trusted with jobs, and what to do about what was seen. */

import { parseListFilter } from '../../client/query/filter.ts';
import { firstJobs } from '../../client/query/list.ts';
import { queueOf } from '../../job/queue.ts';
import { show } from '../../kernel/duration.ts';
import { counted, span } from '../../kernel/humanize.ts';
import { reasonOf } from '../../kernel/reason.ts';
import { membersOf } from '../../redis/connection/cluster/members.ts';
import { describe, type Redis } from '../../redis/connection/connect.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { dueNext, stats } from '../../redis/read/inspect.ts';
import { listQueues, partitionsOf } from '../../redis/scripts/queues.ts';
import type { Check, Finding, Info, Subject } from './check.ts';
import { checks, readInfo } from './checks.ts';

export interface Result extends Finding {
  readonly check: string;
}

/** What is judged besides Redis. */
export type Examined = Omit<Subject, 'redis' | 'info'>;

/** @param names only these checks */
export async function examine(
  redis: Redis,
  place: Examined,
  names = checks.map(({ name }) => name),
): Promise<readonly Result[]> {
  const [first = redis] = membersOf(redis);
  const info = await infoOr(first);
  const results: Result[] = [];
  for (const check of checks.filter(({ name }) => names.includes(name)))
    results.push(await look(check, { redis, info, place }));
  return results;
}

async function infoOr(redis: Redis): Promise<Info | undefined> {
  try {
    return await readInfo(redis);
  } catch {
    return undefined;
  }
}

async function look(check: Check, seen: { redis: Redis; info: Info | undefined; place: Examined }): Promise<Result> {
  const servers = membersOf(seen.redis);
  if (!check.perServer || servers.length === 1) return lookAt(check, seen);
  const all = await Promise.all(
    servers.map(async (redis) => ({
      where: describe(redis),
      result: await lookAt(check, { ...seen, redis, info: await infoOr(redis) }),
    })),
  );
  return together(all);
}

/** One line for all servers. Where they differ, the worst decides, and each is named with what it is like. */
function together(all: readonly { readonly where: string; readonly result: Result }[]): Result {
  const [first] = all;
  if (!first) throw new Error('a cluster without a server');
  const worst = all.reduce((a, b) => (BADNESS[b.result.status] > BADNESS[a.result.status] ? b : a)).result;
  if (all.every(({ result }) => result.saw === first.result.saw)) {
    return { ...worst, saw: `${worst.saw} (each of ${all.length} servers)` };
  }
  return { ...worst, saw: all.map(({ where, result }) => `${where} ${result.saw}`).join('; ') };
}

const BADNESS: Readonly<Record<Finding['status'], number>> = { ok: 0, warn: 1, fail: 2 };

async function lookAt(
  { name, needsInfo = false, look: examineIt }: Check,
  { redis, info, place }: { redis: Redis; info: Info | undefined; place: Examined },
): Promise<Result> {
  if (info === undefined && needsInfo) {
    return { check: name, status: 'warn', saw: 'not visible', advice: 'allow INFO to this user, then run this again' };
  }
  try {
    return { check: name, ...(await examineIt({ ...place, redis, info: info ?? new Map() })) };
  } catch (error) {
    return {
      check: name,
      status: 'fail',
      saw: reasonOf(error),
      advice: 'run this again; if it stays, look at the log of Redis',
    };
  }
}

// What a backup brings back. It is a moment of the past: whatever was due after it may have run already, and so may
// what was ready or running then. So every queue has to be paused before anything starts, and a person looks at what is
// listed here.

/** Jobs of one queue that may run a second time. */
interface MayRepeat {
  readonly queue: string;
  readonly paused: boolean;
  readonly running: number;
  readonly ready: number;
  /** Due by now and not ready: scheduled, or in line. */
  readonly due: number;
  /** For how long the first of them has been due. */
  readonly oldestMs: number;
  /** The first ids, those that ran before those that were due. */
  readonly ids: readonly string[];
}

/** So many ids are named. */
const IDS_MAX = 20;

/** A finding for each queue: it fails while a queue is not paused, and warns of what may run twice. */
export async function restored(redis: Redis, namespace: string): Promise<readonly Result[]> {
  const layouts = await listQueues(redis, namespace);
  const found: Result[] = [];
  for (const layout of layouts) {
    const looked = mayRepeat(redis, layout.queue, partitionsOf(namespace, layout)).then(resultOf);
    found.push(await looked.catch((error: unknown) => unreadable(layout.queue, error)));
  }
  if (found.length > 0) return found;
  return [{ check: 'restored', status: 'warn', saw: `no queue in namespace ${show(namespace)}`, advice: OTHER }];
}

const OTHER = 'check --namespace and --redis: a backup with jobs has queues';

/** It hides no other queue. */
const unreadable = (queue: string, error: unknown): Result => ({
  check: 'restored',
  status: 'fail',
  saw: `${show(queue)}: it cannot be read, so nobody knows what of it may run twice: ${reasonOf(error)}`,
  advice: 'before you start anything: mend it, then run this again',
});

async function mayRepeat(redis: Redis, queue: string, refs: readonly PartitionRef[]): Promise<MayRepeat> {
  const all = await Promise.all(refs.map((ref) => stats(redis, ref)));
  const due = await Promise.all(refs.map(async (ref, at) => (await dueNext(redis, ref, all[at]?.nowMs ?? 0))[0] ?? 0));
  const sum = (of: readonly number[]) => of.reduce((total, one) => total + one, 0);
  return {
    queue,
    paused: all.every(({ paused }) => paused),
    running: sum(all.map((one) => one.running)),
    ready: sum(all.map((one) => one.ready)),
    due: sum(due) + sum(all.map(({ waiting }) => waiting)),
    oldestMs: Math.max(
      0,
      ...all.map(({ nowMs, headDueMs = nowMs, waitingSinceMs = nowMs }) => nowMs - Math.min(headDueMs, waitingSinceMs)),
    ),
    ids: await idsOf(redis, refs, Math.max(...all.map(({ nowMs }) => nowMs))),
  };
}

async function idsOf(redis: Redis, refs: readonly PartitionRef[], nowMs: number): Promise<readonly string[]> {
  const queue = queueOf(refs[0]?.queue ?? '');
  const ids: string[] = [];
  for (const state of ['running', 'ready', 'waiting', 'scheduled'] as const) {
    const due = state === 'scheduled' ? { to: new Date(Math.floor(nowMs) + 1) } : undefined;
    const limit = IDS_MAX - ids.length;
    if (limit === 0) return ids;
    const { jobs } = await firstJobs(redis, refs, {
      queue,
      filter: parseListFilter({ state, due }, { owner: '' }),
      limit,
    });
    ids.push(...jobs.map(({ id }) => id));
  }
  return ids;
}

function resultOf({ queue, paused, running, ready, due, oldestMs, ids }: MayRepeat): Result {
  const parts = [
    ...(running > 0 ? [`${running} that ran`] : []),
    ...(ready > 0 ? [`${ready} ready`] : []),
    ...(due > 0 ? [`${due} due, the first ${span(oldestMs)} ago`] : []),
  ];
  const count = running + ready + due;
  const jobs = `${show(queue)}: ${counted(count, 'job')} may run twice (${parts.join(', ')})`;
  const names = `${ids.join(', ')}${count > ids.length ? ', …' : ''}`;
  const saw = count === 0 ? `${show(queue)}: no job that may run twice` : `${jobs}: ${names}`;
  if (!paused) {
    const advice = `before you start anything: duestream queues pause --all --reason "restored"`;
    return { check: 'restored', status: 'fail', saw: `${saw}; it is not paused`, advice };
  }
  if (count === 0) return { check: 'restored', status: 'ok', saw: `${saw}; it is paused` };
  const advice = `cancel those that have run: duestream cancel ${queue} <id>; then duestream queues resume ${queue}`;
  return { check: 'restored', status: 'warn', saw: `${saw}; it is paused`, advice };
}
