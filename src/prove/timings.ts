/** How long things take, as this machine sees it and, where INFO may be read, as the server counts it. */
import { encodeBody, encodeRecord } from '../job/codec.ts';
import { systemClock } from '../kernel/clock.ts';
import { memberOf, membersOf } from '../redis/connection/cluster/members.ts';
import { describe, type Redis } from '../redis/connection/connect.ts';
import { timeAt } from '../redis/connection/server-clock.ts';
import { type PartitionRef, partitionRef } from '../redis/keys.ts';
import { READ_BYTES_MAX } from '../redis/scripts/bytes.ts';
import { createJobs } from '../redis/scripts/jobs.ts';
import { elect } from '../redis/scripts/lease.ts';
import { join, readNew } from '../redis/scripts/ready.ts';
import type { Claim, Delivery } from '../redis/scripts/replies.ts';
import { type Outcome, rounded, share } from './row.ts';
import type { Stage } from './stage.ts';

const PINGS = 100;
const PINGS_MAX_MS = 3000;
/** As `doctor` has it. */
const SLOW_MS = 50;

/** PING to each server in turn. */
export async function roundTrip({ redis, signal }: Stage): Promise<Outcome> {
  const all: { readonly where: string; readonly p50: number; readonly p99: number; readonly max: number }[] = [];
  for (const node of membersOf(redis)) {
    const times: number[] = [];
    const endMs = systemClock.monotonicMs() + PINGS_MAX_MS;
    while (times.length < PINGS && (times.length === 0 || systemClock.monotonicMs() < endMs)) {
      signal.throwIfAborted();
      times.push(await timed(() => node.ping()));
    }
    all.push({ where: describe(node), p50: share(times, 0.5), p99: share(times, 0.99), max: Math.max(...times) });
  }
  const worst = all.reduce((a, b) => (b.p50 > a.p50 ? b : a));
  const figures = { p50Ms: rounded(worst.p50), p99Ms: rounded(worst.p99), maxMs: rounded(worst.max) };
  const slowest = all.length > 1 ? `, the slowest of ${all.length} servers` : '';
  const saw = `${worst.where} answers in ${figures.p50Ms} ms, p99 ${figures.p99Ms} ms, longest ${figures.maxMs} ms${slowest}`;
  if (worst.p50 < SLOW_MS) return { status: 'held', saw, figures };
  const advice = 'run daemons and workers closer to Redis: every start and every end of a job waits this long';
  return { status: 'failed', saw: `${saw}; bound of the median ${SLOW_MS} ms`, advice, figures };
}

const WINDOW_MS = 600_000;
const HORIZON_MS = 365 * 86_400_000;
const LEASE_MS = 60_000;
const CONSUMER = 'prove';
const CALLS_MAX = 200;
const CALLS_MIN = 10;
const SCRIPTS = 4;
const SCRIPTS_MAX_MS = 6000;
/** The tick of a leader: a script of one job that takes longer holds up everything. */
const SCRIPT_MAX_MS = 1000;

interface Times {
  readonly verb: string;
  readonly ms: readonly number[];
  /** In the server, on average, µs; undefined where INFO is forbidden or others ran scripts meanwhile. */
  readonly serverUs: number | undefined;
}

/** The way of jobs, one job per call, with this process as the leader and the worker. */
export async function scriptTimes(stage: Stage): Promise<Outcome> {
  const { redis, namespace } = stage;
  const ref = partitionRef(namespace, { queue: 'scripts', partition: 0, layoutGeneration: 0 });
  const calls = await callsFor(stage, ref);
  const { term } = await elect(redis, ref, { processId: CONSUMER, leaseMs: LEASE_MS });
  await join(redis, ref.keys, CONSUMER);
  const jobs = createJobs(redis);
  const dueMs = Math.floor(await timeAt(memberOf(redis, ref.keys.meta))) - 1000;
  const record = encodeRecord(dueMs, encodeBody({ name: 'default', data: null }));
  const items = Array.from({ length: calls }, (_, at) => ({ member: `j:${at}`, record, dueMs }));
  const settings = { mode: 'keep', horizonMs: HORIZON_MS, bytesMax: READ_BYTES_MAX, layoutAge: 'fresh' } as const;
  const pass = { term, leaseMs: undefined, limit: 1, cap: 2 * CALLS_MAX };
  const by = { consumer: CONSUMER, bytesMax: READ_BYTES_MAX, windowMs: WINDOW_MS };
  const claims: Claim[] = [];
  const start = async (delivery: Delivery) => {
    const [reply] = await jobs.start(ref, [delivery], by);
    if (reply?.kind === 'run') claims.push({ ...delivery, token: reply.token });
  };
  const ends: string[] = [];
  const complete = async (claim: Claim) => void ends.push(...(await jobs.complete(ref, [claim], by)));
  const measured = [
    await measure(stage, ref, { verb: 'schedule', all: items, call: (item) => jobs.schedule(ref, [item], settings) }),
    await measure(stage, ref, { verb: 'promote', all: items, call: () => jobs.promote(ref, pass) }),
    await measure(stage, ref, { verb: 'start', all: await readAll(redis, ref), call: start }),
    await measure(stage, ref, { verb: 'complete', all: claims, call: complete }),
  ];
  return judged(measured, { calls, completed: ends.filter((end) => end === 'ok').length });
}

/** As many of each script as fit into its time; a Redis that is far away gets fewer. */
async function callsFor({ redis, jobs }: Stage, ref: PartitionRef): Promise<number> {
  const tripMs = await timed(() => memberOf(redis, ref.keys.meta).ping());
  const fitting = Math.floor(SCRIPTS_MAX_MS / (SCRIPTS * tripMs));
  return Math.min(jobs, CALLS_MAX, Math.max(CALLS_MIN, fitting));
}

async function measure<T>(
  { redis, signal }: Stage,
  ref: PartitionRef,
  {
    verb,
    all,
    call,
  }: { readonly verb: string; readonly all: readonly T[]; readonly call: (one: T) => Promise<unknown> },
): Promise<Times> {
  const node = memberOf(redis, ref.keys.meta);
  const before = await scriptsRun(node);
  const ms: number[] = [];
  for (const one of all) {
    signal.throwIfAborted();
    ms.push(await timed(() => call(one)));
  }
  const after = await scriptsRun(node);
  const isAlone = before !== undefined && after !== undefined && after.calls - before.calls === all.length;
  return { verb, ms, serverUs: isAlone ? (after.us - before.us) / all.length : undefined };
}

async function readAll(redis: Redis, ref: PartitionRef): Promise<readonly Delivery[]> {
  const read = await readNew(redis, [ref], { consumer: CONSUMER, count: CALLS_MAX, blockMs: 0 });
  return read.flatMap(({ deliveries }) => deliveries);
}

/** What the server counts of EVALSHA, and of EVAL, by which a connection sends a script for the first time; undefined where INFO is forbidden. */
async function scriptsRun(node: Redis): Promise<{ readonly calls: number; readonly us: number } | undefined> {
  const info = await node.info('commandstats').catch(() => '');
  if (info === '') return undefined;
  const found = [...info.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+),usec=(\d+)/gm)];
  return { calls: sumOf(found.map(([, calls]) => calls)), us: sumOf(found.map(([, , us]) => us)) };
}

const sumOf = (texts: readonly (string | undefined)[]) => texts.reduce((sum, text) => sum + Number(text ?? 0), 0);

function judged(
  all: readonly Times[],
  { calls, completed }: { readonly calls: number; readonly completed: number },
): Outcome {
  const figures = Object.fromEntries(
    all.flatMap(({ verb, ms, serverUs }) => [
      [`${verb}P50Ms`, rounded(share(ms, 0.5))],
      [`${verb}P99Ms`, rounded(share(ms, 0.99))],
      ...(serverUs === undefined ? [] : [[`${verb}ServerUs`, Math.round(serverUs)]]),
    ]),
  );
  const told = all.map(({ verb, ms, serverUs }) => {
    const inServer = serverUs === undefined ? '' : `, in the server ${Math.round(serverUs)} µs`;
    return `${verb} ${rounded(share(ms, 0.5))} ms, p99 ${rounded(share(ms, 0.99))} ms${inServer}`;
  });
  const saw = `${calls} calls each with their round trip: ${told.join('; ')}`;
  const shown = { calls, ...figures };
  if (completed < calls) {
    const advice = 'run "duestream doctor": a script did not do what it does elsewhere';
    return {
      status: 'failed',
      saw: `${completed} of ${calls} jobs went their whole way; ${saw}`,
      advice,
      figures: shown,
    };
  }
  const slow = all.filter(({ ms }) => share(ms, 0.99) > SCRIPT_MAX_MS);
  if (slow.length === 0) return { status: 'held', saw, figures: shown };
  const advice = 'look at SLOWLOG of Redis and at its CPU: something else keeps it busy';
  return { status: 'failed', saw: `${saw}; bound of the p99 ${SCRIPT_MAX_MS} ms`, advice, figures: shown };
}

async function timed(act: () => Promise<unknown>): Promise<number> {
  const fromMs = systemClock.monotonicMs();
  await act();
  return systemClock.monotonicMs() - fromMs;
}
