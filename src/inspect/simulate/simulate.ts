/**
 * What a queue would do with other limits, other workers or another run time: its backlog, its schedules and its usual arrivals
 * played by `engine.ts`, as it is and as somebody asks. Nothing is written.
 */
import { once } from '../../client/calls/retry.ts';
import { processesOf, slotsOf, workersOf } from '../../client/queues/processes.ts';
import { layoutOfQueue, type Namespaced } from '../../client/queues/refs.ts';
import { schedulePartsOn } from '../../client/schedules/schedule-parts.ts';
import {
  checkGateSettings,
  gateShare,
  groupShare,
  isGated,
  limitsText,
  type Pace,
  ratesIn,
  readShare,
} from '../../job/gate.ts';
import type { GateSettings } from '../../job/queue-settings.ts';
import { workerOptions } from '../../job/worker-options.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { counted, span } from '../../kernel/humanize.ts';
import { inTurns, type Steps } from '../../kernel/steps.ts';
import { partitionsOf, type QueueLayout } from '../../redis/scripts/queues.ts';
import { minutesAndTimes, queueMinutes } from '../minutes.ts';
import { type Asked, parseAsk, type SimulateAsk } from './ask.ts';
import { Spread } from './columns.ts';
import { Engine, type World } from './engine.ts';
import { JOBS_MAX, type Known, readKnown } from './reading.ts';
import { LatestByStep, type SimulatedSteps, TimeSteps } from './time-steps.ts';
import { addUsual, type RunTimes, randomFrom, runTimesOf, usualOf } from './usual.ts';

/** What became of the jobs of a group. */
export interface SimulatedGroup {
  readonly group: string;
  /** Usual arrivals have no group and do not count. */
  readonly jobs: number;
  /** When the last of them has started, epoch ms; undefined: not all have. */
  readonly throughMs: number | undefined;
  readonly p50Ms: number | undefined;
  readonly p99Ms: number | undefined;
  readonly maxMs: number;
}

/** What became of all jobs: once as the queue is, once as somebody asks. */
export interface SimulatedRun {
  /** In short. */
  readonly limits: string;
  /** How many jobs the workers run at a time. */
  readonly slots: number;
  readonly runTime: string;
  readonly started: number;
  /** Jobs that had not started a year later. */
  readonly left: number;
  /** When the last of the jobs has started that are due now, epoch ms; undefined: none is due, or not all have. */
  readonly backlogThroughMs: number | undefined;
  /** When the last of all jobs has started, epoch ms; undefined: there is none, or not all have. */
  readonly throughMs: number | undefined;
  /** Half of the jobs start within this after their due times, to 2 %. */
  readonly p50Ms: number | undefined;
  /** 99 % of the jobs start within this after their due times, to 2 %. */
  readonly p99Ms: number | undefined;
  readonly maxMs: number;
  /** The minute in which the job was due that starts latest, epoch ms. */
  readonly worstMinuteMs: number | undefined;
  /** The most jobs that were due and had not started. */
  readonly maxLine: number;
  /** When they did, epoch ms. */
  readonly maxLineAtMs: number;
  /** By step, how late the latest start is of the jobs that are due then; null: none is, or one had not started a year later. */
  readonly latestMs: readonly (number | null)[];
  /** The ten groups with the latest starts. */
  readonly groups: readonly SimulatedGroup[];
}

/** What a queue would do. */
export interface Simulation {
  readonly queue: string;
  /** When this was read, in epoch ms by the clock of Redis. */
  readonly nowMs: number;
  /** Jobs that become due up to then are played, until all have started. */
  readonly untilMs: number;
  readonly seed: number;
  /** Jobs that are due now. */
  readonly due: number;
  /** Jobs that become due. */
  readonly scheduled: number;
  /** Jobs that schedules will make. */
  readonly coming: number;
  /** Jobs that usually come besides; undefined: nobody knows. */
  readonly usual: number | undefined;
  /** All of them by when they are due. */
  readonly steps: SimulatedSteps;
  readonly asItIs: SimulatedRun;
  /** Undefined: nothing else was asked for. */
  readonly asAsked: SimulatedRun | undefined;
  /** What was assumed, a sentence each. */
  readonly assumptions: readonly string[];
}

/** Who asks, and how much may be read for it. */
interface Bounds {
  readonly most?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** @throws DuestreamError `bad-input`, `not-found`, `moved` */
export async function simulate(
  place: Namespaced,
  queue: string,
  ask: SimulateAsk,
  bounds: Bounds = {},
): Promise<Simulation> {
  const { redis, namespace } = place;
  const wanted = parseAsk(ask);
  const layout = await layoutOfQueue(place, queue);
  const settings: GateSettings = { ...layout, ...wanted.settings };
  checkQueue(layout, settings);
  const refs = partitionsOf(namespace, layout);
  const most = bounds.most ?? JOBS_MAX;
  const known = await readKnown(
    { redis, refs, schedules: schedulePartsOn(redis, namespace, once) },
    { untilMs: wanted.untilMs, isGated: isGated(layout) || isGated(settings), signal: bounds.signal, most },
  );
  const { nowMs } = known;
  const untilMs = wanted.untilMs(nowMs);
  const { minutes, times } = await minutesAndTimes(place, queue, { hours: 24, nowMs });
  const weeks = await queueMinutes(place, queue, { days: USUAL_DAYS, by: 'hour', nowMs });
  const usual = addUsual(known, usualOf([weeks, minutes]), { nowMs, untilMs, random: randomFrom(wanted.seed), most });
  const workers = await workersNow(place, queue);
  const measured = runTimesOf(times.run);
  const said = wanted.runMs === undefined ? undefined : runsFor(wanted.runMs);
  const [run, runAsked] = [measured ?? said, said ?? measured];
  if (!run || !runAsked) throw noRunTime(queue);
  const steps = new TimeSteps(nowMs, untilMs);
  const { partitions } = layout;
  const playing = { known, steps, partitions, seed: wanted.seed, usual: usual ?? 0, signal: bounds.signal };
  const { due, scheduled, coming } = known;
  const asked = { settings, slots: slotsAsked(workers, wanted), run: runAsked };
  return {
    ...{ queue, nowMs, untilMs, seed: wanted.seed, due, scheduled, coming, usual },
    steps: steps.dueOf(known.jobs.dueMs, known.jobs.count),
    asItIs: await played(playing, { settings: layout, slots: workers.count * workers.slots, run }),
    asAsked: isOther(wanted, measured) ? await played(playing, asked) : undefined,
    assumptions: assumptionsOf({ known, usual, workers, measured, said, most, shared: settings.limits ?? [] }),
  };
}

/** Four weeks have four of each hour of a week. */
const USUAL_DAYS = 28;

/** @throws DuestreamError `bad-input` */
function checkQueue({ queue, partitions, broadcast }: QueueLayout, settings: GateSettings): void {
  if (broadcast?.isOn) {
    throw new DuestreamError(
      'bad-input',
      `queue ${queue} is a broadcast queue, whose jobs wait for nobody; allowed: queues of workers`,
    );
  }
  checkGateSettings(queue, settings, { partitions });
}

const noRunTime = (queue: string) =>
  new DuestreamError(
    'bad-input',
    `nobody has counted in the last day how long jobs of ${queue} run; say a run time, such as 200ms (--run-time, over HTTP runTime)`,
  );

const isOther = ({ settings, workers, slots, runMs }: Asked, measured: RunTimes | undefined): boolean =>
  Object.keys(settings).length > 0 ||
  workers !== undefined ||
  slots !== undefined ||
  (runMs !== undefined && measured !== undefined);

// Workers.

interface Workers {
  /** As many as live; 1 where none does. */
  readonly count: number;
  /** How many jobs each runs at a time, on average. */
  readonly slots: number;
  readonly isKnown: boolean;
}

/** Where nobody lives who says how many. */
const SLOTS_OTHERWISE = workerOptions.concurrency.fallback;

async function workersNow({ redis, namespace }: Namespaced, queue: string): Promise<Workers> {
  const processes = await processesOf(redis, namespace);
  const count = workersOf(queue, processes);
  const slots = slotsOf(queue, processes);
  if (count === 0 || slots === undefined || slots === 0) {
    return { count: Math.max(1, count), slots: SLOTS_OTHERWISE, isKnown: false };
  }
  return { count, slots: slots / count, isKnown: true };
}

const slotsAsked = (now: Workers, { workers = now.count, slots = now.slots }: Asked): number =>
  Math.max(1, Math.round(workers * slots));

// One run.

interface Playing {
  readonly known: Known;
  readonly steps: TimeSteps;
  readonly partitions: number;
  readonly seed: number;
  readonly usual: number;
  readonly signal: AbortSignal | undefined;
}

interface Column {
  readonly settings: GateSettings;
  readonly slots: number;
  readonly run: Runs;
}

type Runs = Pick<RunTimes, 'within'> & { readonly text: string };

const runsFor = (ms: number): Runs => ({ within: () => ms, text: span(ms) });

/** A year behind the last due time nobody waits for an answer any more. */
const REACH_MS = 366 * 86_400_000;

async function played(playing: Playing, column: Column): Promise<SimulatedRun> {
  const { known, signal } = playing;
  const engine = new Engine(worldOf(playing, column));
  const lastMs = known.nowMs + REACH_MS;
  await inTurns(watched(engine.upTo(lastMs), signal));
  return inTurns(summary(engine, playing, column));
}

/** Ends when nobody waits for it any more. */
function* watched<T>(work: Steps<T>, signal: AbortSignal | undefined): Steps<T> {
  for (let step = work.next(); ; step = work.next()) {
    if (step.done) return step.value;
    signal?.throwIfAborted();
    yield;
  }
}

/** The same seed makes the same run times, in the order of the starts. */
function worldOf({ known, partitions, seed }: Playing, { settings, slots, run }: Column): World {
  const { nowMs, jobs, groups, groupStates } = known;
  const random = randomFrom(seed ^ RUNS_SEED);
  const runMs = () => Math.max(0, Math.round(run.within(random())));
  return {
    ...{ nowMs, jobs, groups, slots, runMs },
    partitions: known.partitions.map(({ gate }, partition) => {
      const share = gateShare(settings, { partition, partitions })?.share;
      if (share === undefined) return undefined;
      const { second, ...limits } = readShare(share);
      const rates = gate ? ratesIn(gate) : [];
      // Turns that were used of another rate are forgotten: they are a burst at most.
      const turnOf = ({ intervalUs }: Pace) => rates.find((one) => one.intervalUs === intervalUs)?.nextTurnMs ?? 0;
      return {
        ...{ ...limits, nextTurnMs: turnOf(limits), closedMs: gate?.closedMs ?? 0 },
        ...(second && { second: { ...second, nextTurnMs: turnOf(second) } }),
      };
    }),
    limitsOf(group) {
      const { nextTurnMs = 0, closedMs = 0 } = groupStates.get(group) ?? {};
      return { ...groupShare(settings, group), nextTurnMs, closedMs };
    },
    // A job that runs has a part of its time before it.
    running: known.running.map(({ group }) => ({ group, endMs: nowMs + Math.round(random() * runMs()) })),
  };
}

const RUNS_SEED = 0x9e3779b9;

// What became of the jobs.

const JOBS_EACH = 10_000;
const GROUPS_TOLD = 10;
const MINUTE_MS = 60_000;

function* summary(
  engine: Engine,
  { known, steps, usual }: Playing,
  { settings, slots, run }: Column,
): Steps<SimulatedRun> {
  const { jobs, due } = known;
  const sums = new Sums(known.nowMs);
  const latest = new LatestByStep(steps);
  const groups = new GroupSums(known);
  for (let job = 0; job < jobs.count; job += 1) {
    if (job % JOBS_EACH === 0) yield;
    const startedMs = engine.startedMs[job] ?? 0;
    sums.add(jobs.dueMs[job] ?? 0, startedMs);
    latest.add(jobs.dueMs[job] ?? 0, startedMs);
    if (job < jobs.count - usual) groups.add(job, startedMs);
  }
  const { all, backlogLeft, backlogMs, lastMs, worstDueMs } = sums;
  const left = jobs.count - engine.started;
  return {
    limits: isGated(settings) ? limitsText(settings) : 'none',
    ...{ slots, runTime: run.text, started: engine.started, left },
    backlogThroughMs: due === 0 || backlogLeft > 0 ? undefined : backlogMs,
    throughMs: left > 0 || jobs.count === 0 ? undefined : lastMs,
    ...{ p50Ms: all.within(0.5), p99Ms: all.within(0.99), maxMs: all.maxMs },
    worstMinuteMs: all.count === 0 ? undefined : Math.floor(worstDueMs / MINUTE_MS) * MINUTE_MS,
    ...{ maxLine: engine.maxLine, maxLineAtMs: engine.maxLineAtMs },
    latestMs: latest.all(),
    groups: yield* groups.latest(engine, jobs.count - usual),
  };
}

class Sums {
  readonly all = new Spread();
  /** When the last of the jobs has started that were due at the beginning, and how many of them have not. */
  backlogMs = 0;
  backlogLeft = 0;
  lastMs = 0;
  worstDueMs = 0;
  readonly #nowMs: number;

  constructor(nowMs: number) {
    this.#nowMs = nowMs;
  }

  /** @param startedMs 0: it has not */
  add(dueMs: number, startedMs: number): void {
    const isBacklog = dueMs <= this.#nowMs;
    if (startedMs === 0) {
      this.backlogLeft += isBacklog ? 1 : 0;
      return;
    }
    if (this.all.count === 0 || startedMs - dueMs > this.all.maxMs) this.worstDueMs = dueMs;
    this.all.add(startedMs - dueMs);
    this.lastMs = Math.max(this.lastMs, startedMs);
    if (isBacklog) this.backlogMs = Math.max(this.backlogMs, startedMs);
  }
}

/** How late the jobs of each group start; of those that start latest more is counted. */
class GroupSums {
  readonly #known: Known;
  readonly #jobs: Int32Array;
  readonly #maxMs: Float64Array;
  readonly #lastMs: Float64Array;
  readonly #left: Int32Array;

  constructor(known: Known) {
    const { count } = known.groups;
    this.#known = known;
    [this.#jobs, this.#left] = [new Int32Array(count), new Int32Array(count)];
    [this.#maxMs, this.#lastMs] = [new Float64Array(count), new Float64Array(count)];
  }

  add(job: number, startedMs: number): void {
    const { group, dueMs } = this.#known.jobs;
    const of = group[job] ?? 0;
    this.#jobs[of] = (this.#jobs[of] ?? 0) + 1;
    if (startedMs === 0) this.#left[of] = (this.#left[of] ?? 0) + 1;
    this.#maxMs[of] = Math.max(this.#maxMs[of] ?? 0, startedMs - (dueMs[job] ?? 0));
    this.#lastMs[of] = Math.max(this.#lastMs[of] ?? 0, startedMs);
  }

  *latest({ startedMs }: Engine, count: number): Steps<readonly SimulatedGroup[]> {
    const { names } = this.#known.groups;
    const { group, dueMs } = this.#known.jobs;
    const named = Array.from(names.keys()).filter((of) => names[of] !== '' && (this.#jobs[of] ?? 0) > 0);
    const told = named.sort((one, other) => (this.#maxMs[other] ?? 0) - (this.#maxMs[one] ?? 0)).slice(0, GROUPS_TOLD);
    const spreads = new Map(told.map((of) => [of, new Spread()]));
    for (let job = 0; job < count && told.length > 0; job += 1) {
      if (job % JOBS_EACH === 0) yield;
      const atMs = startedMs[job] ?? 0;
      if (atMs > 0) spreads.get(group[job] ?? 0)?.add(atMs - (dueMs[job] ?? 0));
    }
    return told.map((of) => {
      const spread = spreads.get(of) ?? new Spread();
      const throughMs = (this.#left[of] ?? 0) > 0 ? undefined : this.#lastMs[of];
      const times = { p50Ms: spread.within(0.5), p99Ms: spread.within(0.99), maxMs: spread.maxMs };
      return { group: names[of] ?? '', jobs: this.#jobs[of] ?? 0, throughMs, ...times };
    });
  }
}

// What was assumed.

function assumptionsOf(of: {
  readonly known: Known;
  readonly usual: number | undefined;
  readonly workers: Workers;
  readonly measured: RunTimes | undefined;
  readonly said: Runs | undefined;
  readonly most: number;
  /** Limits that the queue shares with others. */
  readonly shared: readonly string[];
}): readonly string[] {
  const { known, usual, workers, measured, said, most, shared } = of;
  const paused = known.partitions.some((one) => one.paused);
  return [
    ...(known.isCut ? [`only ${counted(most, 'job')} of the queue were read: the first of each partition`] : []),
    ...(shared.length > 0
      ? [
          `limits that other queues share hold nobody: ${shared.join(', ')}; nobody knows what these queues will take of them`,
        ]
      : []),
    ...(paused ? ['the queue is paused: it is played as if it went on now'] : []),
    ...(workers.isKnown
      ? []
      : [`no worker says how many jobs it runs at a time: each is taken to run ${SLOTS_OTHERWISE}`]),
    ...(said ? [`as asked, each job runs for ${said.text}`] : []),
    ...(measured
      ? [`as it is, jobs run as long as ${counted(measured.runs, 'run')} of the last day did, also under another load`]
      : []),
    usual === undefined
      ? 'nobody has counted how many jobs usually come at this time, so no job comes that is not known by now'
      : 'of other jobs there come as many as at the same hour of the last four weeks, as far as they are known, at random times and without a group',
    'each instant of a schedule makes a job, whatever its overlap policy says',
    'no job fails, is retried, put aside, cancelled or expires, and no worker or daemon stops',
  ];
}
