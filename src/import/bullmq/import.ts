/**
 * An import from BullMQ, queue by queue. It reads the queues there, and calls the client here; it decides nothing that a call of
 * any other producer would not decide.
 *
 *  1. what an import that was cut short has taken           goes on
 *  2. schedulers become schedules                           from then on BullMQ makes no job of them
 *  3. delayed, prioritized, waiting, failed jobs            a page at a time: judged, taken, scheduled here, removed there
 *  4. schedulers whose next job is no longer there          are removed there
 *
 * Nothing is made twice, because a job has one id here, and the same call is recognised while it lives and within the done window
 * after its end. Jobs that an import had taken may be older than that: then it looks first, and leaves what it cannot know.
 * `copy` takes nothing there, so both have the jobs; `dry-run` writes nothing at all.
 */

import type { Client } from '../../client/client.ts';
import { isGated } from '../../job/gate.ts';
import type { Queue } from '../../job/queue.ts';
import { hintOf } from '../../kernel/checks.ts';
import { systemClock } from '../../kernel/clock.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { type Flaw, isFlaw } from '../flaw.ts';
import { CHANGED, CUT_SHORT, type Here, type JobCall, Maker, type Manner, UNSURE, unlessMissing } from '../making.ts';
import { jobId, type NameMap, queueName } from '../names.ts';
import { type Fate, type Said, type Sums, Tally } from '../tally.ts';
import { type Meant, toldOf } from './counterparts.ts';
import { type BullJob, dueOfScore, type Place, placeNames, schedulerJobId, waitingSince } from './layout.ts';
import { type PlannedSchedule, planSchedule } from './schedules.ts';
import { BullSource, bullQueues, type FoundScheduler, type Kept, type Placed, type QueueFacts } from './source.ts';

export interface ImportParts extends Here {
  /** Of BullMQ. */
  readonly redis: Redis;
  readonly onProgress: (queue: string, looked: number) => void;
}

export interface ImportOptions extends Manner {
  readonly prefix: string;
  /** Default: every queue of the prefix. */
  readonly queues: readonly string[];
  readonly names: NameMap;
  /** Also jobs that have failed for good: each is due at once, once more. */
  readonly failed: boolean;
  /** Of schedulers without one. */
  readonly zone: string;
}

/** What became of one queue. */
export interface ImportedQueue extends Sums, QueueFacts {
  /** Its name there, and here. */
  readonly from: string;
  readonly to: string;
  /** Jobs that were taken there and are not made here: the next import tries again. */
  readonly taken: number;
}

const PAGE = 200;

/** @throws DuestreamError `not-found` for a queue that is not there, `bad-input` for two with one name here */
export async function importBullmq(parts: ImportParts, options: ImportOptions): Promise<readonly ImportedQueue[]> {
  const found = await queuesToImport(parts.redis, options);
  const done: ImportedQueue[] = [];
  for (const [to, from] of namedHere(found, options.names)) done.push(await importQueue(parts, options, { from, to }));
  return done;
}

async function queuesToImport(redis: Redis, { prefix, queues }: ImportOptions): Promise<readonly string[]> {
  if (queues.length === 0) {
    const all = await bullQueues(redis, prefix);
    if (all.length > 0) return all;
    throw new DuestreamError(
      'not-found',
      `there is no queue of BullMQ with the prefix ${prefix}; allowed: the prefix of its queues, --prefix`,
    );
  }
  for (const name of queues) {
    if (await new BullSource(redis, { prefix, name }).exists()) continue;
    const hint = hintOf(name, await bullQueues(redis, prefix));
    throw new DuestreamError('not-found', `there is no queue ${name} of BullMQ with the prefix ${prefix}${hint}`);
  }
  return [...new Set(queues)];
}

/** Name here → name there. */
function namedHere(found: readonly string[], names: NameMap): ReadonlyMap<string, string> {
  const all = new Map<string, string>();
  for (const from of found) {
    const to = queueName(from, names);
    const other = all.get(to);
    if (other !== undefined) {
      throw new DuestreamError(
        'bad-input',
        `queues ${other} and ${from} would both be ${to} here; allowed: a name for each, with --map, or one of them with --queue`,
      );
    }
    all.set(to, from);
  }
  return all;
}

/** The work on one queue. */
interface Work {
  readonly parts: ImportParts;
  readonly options: ImportOptions;
  readonly source: BullSource;
  readonly maker: Maker;
  readonly meant: Meant;
  readonly tally: Tally;
  /**
   * The next job of each scheduler, by its id: it `stays` with the scheduler, or is `covered` by the schedule that makes it. One
   * that was due before the schedule counts is not here, for it is a job like any other.
   */
  readonly nextJobs: Map<string, 'covered' | 'stays'>;
}

async function importQueue(
  parts: ImportParts,
  options: ImportOptions,
  { from, to }: Pick<ImportedQueue, 'from' | 'to'>,
): Promise<ImportedQueue> {
  const source = new BullSource(parts.redis, { prefix: options.prefix, name: from });
  const facts = await source.facts();
  const target = parts.queueOf(to);
  const meant = { names: options.names, isGated: await isGatedHere(parts.client, target) };
  const maker = new Maker(parts, options, { target, nowMs: systemClock.wallMs() });
  const work: Work = { parts, options, source, maker, meant, tally: new Tally(), nextJobs: new Map() };
  if (options.mode === 'move') await goOn(work);
  const schedulers = await source.schedulers();
  const imported: FoundScheduler[] = [];
  for (const one of schedulers) if (await importScheduler(work, one)) imported.push(one);
  for (const place of placeNames) await importPlace(work, place);
  if (options.mode === 'move') for (const { id } of imported) await source.settleScheduler(id);
  return { from, to, ...facts, taken: await source.takenCount(), ...work.tally.sums() };
}

/** Jobs may have a priority in a queue with limits alone. */
async function isGatedHere({ queues }: Pick<Client, 'queues'>, target: Queue): Promise<boolean> {
  if (isGated(target)) return true;
  const report = await unlessMissing(queues.get(target.name));
  return report?.limits !== undefined;
}

// Schedulers.

/** @returns whether it is a schedule now, so that what BullMQ has of it may go */
async function importScheduler(work: Work, found: FoundScheduler): Promise<boolean> {
  const { options, source, maker, meant, tally, nextJobs } = work;
  const { id, nextMs } = found;
  const target = { ...meant, queue: maker.target.name, zone: options.zone, nowMs: maker.nowMs };
  const planned = planSchedule(id, found.scheduler, target);
  const nextJob = schedulerJobId(id, nextMs);
  const stays = (why: Said, isOver = false) => {
    if (!isOver) nextJobs.set(nextJob, 'stays');
    tally.leave('schedulers', why, { id });
    return false;
  };
  if ('why' in planned) {
    const { why, isOver } = planned;
    return stays({ kind: `scheduler ${why}`, text: `a scheduler stays: ${why}` }, isOver);
  }
  if (options.mode === 'move' && !found.isTaken && !(await source.takeScheduler(id, nextMs))) return stays(CHANGED);
  for (const note of planned.notes) tally.note(note, id);
  if (nextMs > (await putSchedule(work, planned))) nextJobs.set(nextJob, 'covered');
  return true;
}

/** @returns since when the schedule counts */
async function putSchedule(
  { parts: { client }, options, tally, maker }: Work,
  { name, input }: PlannedSchedule,
): Promise<number> {
  const isDry = options.mode === 'dry-run';
  const change = isDry ? undefined : await client.schedules.put(name, { ...input, queue: maker.target });
  const view = await client.schedules.get(name);
  const isThere = change ? change.status === 'unchanged' : view !== undefined;
  tally.add('schedulers', isThere ? 'there' : 'imported');
  return view?.schedule.sinceMs ?? maker.nowMs;
}

// Jobs.

/** A job with the call that makes it here. */
interface BullCall extends Placed, JobCall {
  readonly kept: Kept;
  readonly notes: readonly Said[];
  readonly deduplication: string | undefined;
}

async function importPlace(work: Work, place: Place): Promise<void> {
  const { parts, options, source, tally } = work;
  const size = await source.size(place);
  if (place === 'failed' && !options.failed) {
    if (size > 0) tally.leave(place, FAILED, { count: size });
    return;
  }
  // What comes meanwhile is for the next import. What stays in its place is passed over.
  let [looked, passed] = [0, 0];
  while (looked < size) {
    const page = await source.page(place, passed, Math.min(PAGE, size - looked));
    if (page.length === 0) return;
    looked += page.length;
    passed += page.length - (await importPage(work, place, page));
    parts.onProgress(source.queue.name, looked);
  }
}

/** @returns how many have left their place */
async function importPage(work: Work, place: Place, page: readonly Placed[]): Promise<number> {
  const { options, source, tally } = work;
  const jobs = await source.jobs(page.map(({ id }) => id));
  const calls: BullCall[] = [];
  let gone = 0;
  for (const [at, placed] of page.entries()) {
    const verdict = await judge(work, { place, placed, job: jobs[at] ?? { flaw: 'it was not read' } });
    if (verdict === 'covered') {
      tally.add(place, 'covered');
      if (options.mode === 'move' && (await source.drop(placed.id))) gone += 1;
    } else if ('text' in verdict) tally.leave(place, verdict, { id: placed.id });
    else calls.push(verdict);
  }
  return gone + (await importJobs(work, place, calls));
}

/** @returns how many have left their place */
async function importJobs(work: Work, place: Place, calls: readonly BullCall[]): Promise<number> {
  const { options, source, tally } = work;
  if (options.mode === 'dry-run') {
    for (const call of calls) tell(work, place, 'imported', call);
    return 0;
  }
  if (options.mode === 'copy') {
    await makeJobs(work, place, calls);
    return 0;
  }
  const taken = await source.take(place, calls);
  for (const { id } of calls) if (!taken.has(id)) tally.leave(place, CHANGED, { id });
  await makeJobs(
    work,
    place,
    calls.filter(({ id }) => taken.has(id)),
  );
  return taken.size;
}

/** What is to become of one job. */
async function judge(
  work: Work,
  { place, placed, job }: { readonly place: Place; readonly placed: Placed; readonly job: BullJob | Flaw },
): Promise<BullCall | Said | 'covered'> {
  const { meant, source, maker, nextJobs } = work;
  const { nowMs } = maker;
  if (isFlaw(job)) return { kind: job.flaw, text: `a job cannot be read: ${job.flaw}` };
  if (job.isChild) return FLOW;
  const dueMs = dueOf(place, { score: placed.score, job, nowMs });
  const next = nextJobs.get(job.id);
  if (next !== undefined) return next === 'stays' ? SCHEDULER_STAYS : next;
  const { deduplication } = job;
  const isHolder = deduplication !== undefined && (await source.holderOf(deduplication)) === job.id;
  const id = jobId(isHolder ? deduplication : job.id, 'bullmq');
  const call = callOf(job, placed, { dueMs, takenMs: nowMs, isGated: meant.isGated, id }, meant);
  return maker.unfit(call) ?? call;
}

function dueOf(
  place: Place,
  { score, job, nowMs }: { readonly score: string; readonly job: BullJob; readonly nowMs: number },
): number {
  const dueMs = place === 'delayed' ? dueOfScore(score) : Math.min(nowMs, sinceOf(place, score, job));
  return dueMs > 0 ? dueMs : nowMs;
}

/** Since when a job waits, or has failed. */
const sinceOf = (place: Place, score: string, job: BullJob): number =>
  place === 'failed' ? Math.floor(Number(score)) : waitingSince(job);

/** The same job in the same place is the same call, whenever it is made. */
function callOf(job: BullJob, placed: Placed, kept: Kept, { names }: Pick<Meant, 'names'>): BullCall {
  const told = toldOf(job, { names, isGated: kept.isGated });
  const { headers, ...rest } = told.value;
  const isRenamed = kept.id !== job.id;
  const all = { ...headers, ...(isRenamed && { 'bullmq-id': encodeURIComponent(job.id).slice(0, ID_CHARS_MAX) }) };
  return {
    ...placed,
    kept,
    data: job.data,
    options: { ...rest, id: kept.id, at: new Date(kept.dueMs), ...(Object.keys(all).length > 0 && { headers: all }) },
    notes: [...told.notes, ...(isRenamed ? [{ kind: 'id', text: `${RENAMED} ${kept.id}` }] : []), ...windowOf(job)],
    deduplication: job.deduplication,
  };
}

const ID_CHARS_MAX = 1024;
const RENAMED = 'jobs have another id here, and that of BullMQ in the header bullmq-id: such as';

/** How a deduplication goes on is said by later calls. */
function windowOf({ options: { de } }: BullJob): readonly Said[] {
  const names = typeof de === 'object' && de !== null ? Object.keys(de).filter((name) => name !== 'id') : [];
  return names.length === 0 ? [] : [{ kind: 'deduplication', text: `${WINDOW} ${names.join(', ')}` }];
}

const WINDOW = 'a window of deduplication is said by later calls here, with debounce; these jobs had';

/** Makes the jobs here, and removes there what is confirmed. @throws DuestreamError in an outage: the next import goes on */
async function makeJobs(work: Work, place: string, calls: readonly BullCall[]): Promise<void> {
  const { options, source, maker, tally } = work;
  const fates = await maker.make(calls);
  const settled: BullCall[] = [];
  for (const [at, call] of calls.entries()) {
    const fate = fates[at] ?? CHANGED;
    if (typeof fate === 'object') tally.leave(place, fate, { id: call.id });
    else {
      tell(work, place, fate, call);
      settled.push(call);
    }
  }
  if (options.mode === 'move') await source.settle(settled);
}

function tell({ tally }: Work, place: string, fate: Fate, { id, notes }: BullCall): void {
  tally.add(place, fate);
  for (const note of notes) tally.note(note, id);
}

/** What an import has taken that was cut short. */
async function goOn(work: Work): Promise<void> {
  const { source, maker, tally } = work;
  for await (const page of source.taken()) {
    const jobs = await source.jobs(page.map(({ id }) => id));
    const calls: BullCall[] = [];
    const over: { readonly id: string }[] = [];
    for (const [at, { id, kept }] of page.entries()) {
      const job = jobs[at];
      if (job === undefined || isFlaw(job)) {
        // Somebody has removed it there.
        over.push({ id });
        continue;
      }
      const known = await maker.known(kept);
      if (known === 'unsure') tally.leave(CUT_SHORT, UNSURE, { id });
      else if (known === 'there') {
        tally.add(CUT_SHORT, 'there');
        over.push({ id, ...(job.deduplication !== undefined && { deduplication: job.deduplication }) });
      } else calls.push(callOf(job, { id, score: '' }, kept, work.meant));
    }
    await makeJobs(work, CUT_SHORT, calls);
    await source.settle(over);
  }
}

const FAILED: Said = { kind: 'failed', text: 'failed jobs stay, because they would run: --failed makes them due now' };
const FLOW: Said = { kind: 'flow', text: 'parts of a flow stay: the workers of BullMQ finish them' };
const SCHEDULER_STAYS: Said = { kind: 'scheduler stays', text: 'the next job of a scheduler stays with it' };
