/**
 * What a load needs: memory and CPU of Redis, workers, partitions and connections. Arithmetic over the figures of the
 * bench, with every step said, so that whoever reads a result can check it and change what is different with them.
 */
import { type BenchFigures, benchFigures } from './figures.ts';
import { deadBytes, endBytes, type JobShape, pendingBytes, readyBytes, recordChars, runningBytes } from './memory.ts';
import { bytesText, short } from './quantity.ts';

export interface PlanInput extends JobShape {
  /** That wait at one time. */
  readonly jobs: number;
  /** Jobs that are scheduled, and that end, per second. */
  readonly perSecond: number;
  /** How long a handler runs. */
  readonly handlerMs: number;
  /** Processes; undefined = as many as are needed. */
  readonly workers: number | undefined;
  readonly concurrency: number;
  readonly daemons: number;
  readonly producers: number;
  /** Dead letters that are kept. */
  readonly dead: number;
  /** How long an end is remembered, and how many per partition. */
  readonly doneMs: number;
  readonly doneMax: number;
  /** Entries that may be ready per partition before promotion pauses. */
  readonly readyMax: number;
}

/** One line: what it is, how much, and how that was counted. */
export interface PlanStep {
  readonly what: string;
  readonly is: string;
  readonly how: string;
}

export interface Plan {
  readonly memoryBytes: number;
  /** What to set as the limit of Redis. */
  readonly maxmemoryBytes: number;
  readonly redisCores: number;
  readonly workerCores: number;
  readonly partitions: number;
  /** How many are needed; the plan may have more. */
  readonly workersNeeded: number;
  readonly workers: number;
  readonly connections: number;
  readonly steps: readonly PlanStep[];
  /** What does not fit, and what to do. */
  readonly warnings: readonly string[];
}

/** A table of more doubles in one allocation of over 128 MiB, and to move one to another server takes many seconds. */
const JOBS_PER_PARTITION = 10_000_000;
const PARTITIONS_MAX = 1024;
/** More of one core, and a burst has to wait. */
const BUSY = 0.7;
/** An empty Redis, with our scripts loaded. */
const EMPTY_BYTES = 2 * 2 ** 20;
/** Room for tables that double, the copy of an AOF rewrite, and output to clients. */
const ROOM = 1.5;
/** For commands and for what it waits for; a daemon has one that hears nudges instead. */
const CONNECTIONS = 2;

export function planOf(input: PlanInput): Plan {
  const partitions = partitionsFor(input);
  const memory = memoryOf(input, partitions);
  const cpu = cpuOf(input, partitions);
  const fleet = fleetOf(input, cpu.workerCores);
  const split: PlanStep = {
    what: 'partitions',
    is: String(partitions),
    how: `at most ${short(JOBS_PER_PARTITION)} pending jobs each; on Redis Cluster at least 2 per master`,
  };
  return {
    memoryBytes: memory.bytes,
    maxmemoryBytes: memory.bytes * ROOM,
    partitions,
    redisCores: cpu.redisCores,
    workerCores: cpu.workerCores,
    ...fleet.numbers,
    steps: [...memory.steps, ...cpu.steps, split, ...fleet.steps],
    warnings: [...cpu.warnings, ...fleet.warnings],
  };
}

const partitionsFor = ({ jobs }: PlanInput): number =>
  Math.min(PARTITIONS_MAX, Math.max(1, Math.ceil(jobs / JOBS_PER_PARTITION)));

function memoryOf(input: PlanInput, partitions: number) {
  const { jobs, perSecond, handlerMs, dead, doneMs, doneMax, readyMax } = input;
  const { zset, hash } = pendingBytes(input, Math.ceil(jobs / partitions));
  const running = Math.ceil((perSecond * handlerMs) / 1000);
  const ends = Math.min((perSecond * doneMs) / 1000, doneMax * partitions);
  const ready = Math.min(jobs, readyMax * partitions);
  const each = {
    pending: zset + hash,
    running: runningBytes(input, Math.ceil(jobs / partitions)),
    ends: endBytes(input, Math.max(1, ends)),
    ready: readyBytes(input, Math.ceil(jobs / partitions)) - hash,
    dead: deadBytes(input),
  };
  const part = (what: string, { count, bytes, why }: { count: number; bytes: number; why: string }) => ({
    bytes: count * bytes,
    step: { what, is: bytesText(count * bytes), how: `${short(count)} × ${short(bytes)} B: ${why}` },
  });
  const parts = [
    part('pending', {
      count: jobs,
      bytes: each.pending,
      why: `member and due time ${short(zset)}, record ${short(hash)} (${recordChars(input)} characters)`,
    }),
    part('running', { count: running, bytes: each.running, why: `${short(perSecond)}/s × ${short(handlerMs)} ms` }),
    part('ready', { count: ready, bytes: each.ready, why: `at most, while workers are behind (mover.readyMax)` }),
    part('ends', { count: ends, bytes: each.ends, why: `remembered for done.window, at most done.max per partition` }),
    part('dead', { count: dead, bytes: each.dead, why: `dead letters with five failures (--dead)` }),
  ];
  const bytes = EMPTY_BYTES + parts.reduce((sum, one) => sum + one.bytes, 0);
  const sum: PlanStep = {
    what: 'memory',
    is: bytesText(bytes),
    how: `the sum, and ${bytesText(EMPTY_BYTES)} of an empty Redis; maxmemory ${bytesText(bytes * ROOM)} leaves room to grow and to rewrite the AOF`,
  };
  return { bytes, steps: [...parts.map(({ step }) => step), sum] };
}

function cpuOf({ perSecond }: PlanInput, partitions: number) {
  const { redisMicros, workerMicros } = costAt(perSecond / partitions);
  const scheduling = benchFigures.scheduleMicros;
  const redisCores = (perSecond * (scheduling + redisMicros)) / 1e6;
  const workerCores = (perSecond * workerMicros) / 1e6;
  const steps: readonly PlanStep[] = [
    {
      what: 'Redis CPU',
      is: `${short(redisCores)} cores`,
      how: `${short(perSecond)}/s × (schedule ${short(scheduling)} µs, promote to settle ${short(redisMicros)} µs); it has one core for commands`,
    },
    {
      what: 'worker CPU',
      is: `${short(workerCores)} cores`,
      how: `${short(perSecond)}/s × ${short(workerMicros)} µs, without what handlers compute`,
    },
  ];
  const tooMuch = `${short(redisCores)} cores are more than the ${BUSY} that one Redis should be busy: split the queues over several Redis`;
  return { redisCores, workerCores, steps, warnings: redisCores > BUSY ? [tooMuch] : [] };
}

function fleetOf(input: PlanInput, workerCores: number) {
  const { perSecond, handlerMs, concurrency, daemons, producers } = input;
  const running = (perSecond * handlerMs) / 1000;
  const byCpu = Math.ceil(workerCores / BUSY);
  const bySlots = Math.ceil(running / (concurrency * BUSY));
  const workersNeeded = Math.max(1, byCpu, bySlots);
  const workers = input.workers ?? workersNeeded;
  const connections = CONNECTIONS * (workers + daemons) + producers;
  const steps: readonly PlanStep[] = [
    {
      what: 'workers',
      is: String(workers),
      how: `needed: ${workersNeeded}; ${byCpu} for the CPU, ${bySlots} for ${short(running)} running jobs with ${short(concurrency)} slots each, ${BUSY * 100} % busy`,
    },
    {
      what: 'connections',
      is: short(connections),
      how: `${CONNECTIONS} × (${some(workers, 'worker')} + ${some(daemons, 'daemon')}) + ${some(producers, 'producer')}; one more per worker for each further queue`,
    },
  ];
  const few = `${some(workers, 'worker')} where this load needs ${workersNeeded}: jobs would start ever later`;
  return {
    numbers: { workersNeeded, workers, connections },
    steps,
    warnings: workers < workersNeeded ? [few] : [],
  };
}

const some = (count: number, what: string): string => `${short(count)} ${what}${count === 1 ? '' : 's'}`;

type Cost = BenchFigures['run'][number];

/**
 * The more jobs per second, the more of them share a call, so the cost of a job falls while that of all grows: between two
 * rates that were measured evenly. Beyond them a job costs what it does at the nearest.
 */
function costAt(perSecond: number): Omit<Cost, 'perSecond'> {
  const known = benchFigures.run;
  const above = known.find((one) => one.perSecond >= perSecond) ?? known.at(-1);
  const below = known.findLast((one) => one.perSecond <= perSecond) ?? known[0];
  if (!above || !below) throw new Error('the bench has measured no rate');
  if (above === below) return below;
  const part = (perSecond - below.perSecond) / (above.perSecond - below.perSecond);
  const between = (field: keyof Omit<Cost, 'perSecond'>) => {
    const [from, to] = [below.perSecond * below[field], above.perSecond * above[field]];
    return (from + (to - from) * part) / perSecond;
  };
  return { redisMicros: between('redisMicros'), workerMicros: between('workerMicros') };
}
