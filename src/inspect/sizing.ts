/**
 * What a load needs: memory and CPU of Redis, workers, partitions and connections. Arithmetic over the figures of the
 * bench, with every step said, so that whoever reads a result can check it and change what is different with them.
 */
import type { DoneLimits } from '../config/options.ts';
import { memberOf } from '../job/codec.ts';
import { PROFILES, type Profile } from '../kernel/rhythm.ts';
import { type BenchFigures, benchFigures } from './bench-figures.ts';

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
  readonly done: DoneLimits;
  /** Entries that may be ready per partition before promotion pauses. */
  readonly readyMax: number;
  /** Of a Redis that is paid per command. */
  readonly price?: Price | undefined;
}

/** One line: what it is, how much, and how that was counted. */
interface PlanStep {
  readonly what: string;
  readonly is: string;
  readonly how: string;
}

/** So much money for so many commands. */
export interface Price {
  readonly money: number;
  readonly commands: number;
}

/** What a month of 30 days takes. */
interface Bill {
  readonly commands: number;
  readonly money: number;
}

interface Plan {
  readonly memoryBytes: number;
  /** What to set as the limit of Redis. */
  readonly maxmemoryBytes: number;
  readonly redisCores: number;
  readonly workerCores: number;
  readonly daemonCores: number;
  readonly partitions: number;
  /** How many are needed; the plan may have more. */
  readonly workersNeeded: number;
  readonly workers: number;
  readonly connections: number;
  /** A month of waiting with each profile, and of the jobs. With a price only. */
  readonly bill?: { readonly idle: Readonly<Record<Profile, Bill>>; readonly jobs: Bill };
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
  const paid = input.price && billOf(input, { partitions, workers: fleet.numbers.workers, price: input.price });
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
    daemonCores: cpu.daemonCores,
    ...fleet.numbers,
    ...(paid && { bill: paid.bill }),
    steps: [...memory.steps, ...cpu.steps, split, ...fleet.steps, ...(paid?.steps ?? [])],
    warnings: [...cpu.warnings, ...fleet.warnings],
  };
}

const partitionsFor = ({ jobs }: PlanInput): number =>
  Math.min(PARTITIONS_MAX, Math.max(1, Math.ceil(jobs / JOBS_PER_PARTITION)));

function memoryOf(input: PlanInput, partitions: number) {
  const { jobs, perSecond, handlerMs, dead, done, readyMax } = input;
  const { zset, hash } = pendingBytes(input, Math.ceil(jobs / partitions));
  const running = Math.ceil((perSecond * handlerMs) / 1000);
  // No end goes for their number before it has an age.
  const most = Math.max(done.tombstonesMax * partitions, (perSecond * done.floorMs) / 1000);
  const ends = Math.min((perSecond * done.windowMs) / 1000, most);
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
    part('ends', {
      count: ends,
      bytes: each.ends,
      why: `remembered for done.window; at most done.max per partition, and never for less than ${short(done.floorMs / 1000)} s`,
    }),
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
  const { redisMicros, workerMicros, daemonMicros } = costAt(perSecond / partitions);
  const scheduling = benchFigures.scheduleMicros;
  const redisCores = (perSecond * (scheduling + redisMicros)) / 1e6;
  const workerCores = (perSecond * workerMicros) / 1e6;
  const daemonCores = (perSecond * daemonMicros) / 1e6;
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
    {
      what: 'daemon CPU',
      is: `${short(daemonCores)} cores`,
      how: `${short(perSecond)}/s × ${short(daemonMicros)} µs, of the daemons that lead`,
    },
  ];
  const tooMuch = `${short(redisCores)} cores are more than the ${BUSY} that one Redis should be busy: split the queues over several Redis`;
  return { redisCores, workerCores, daemonCores, steps, warnings: redisCores > BUSY ? [tooMuch] : [] };
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

const MONTH_S = 30 * 86_400;

function billOf(
  { perSecond, daemons }: PlanInput,
  { partitions, workers, price }: { readonly partitions: number; readonly workers: number; readonly price: Price },
) {
  const of = (commandsPerSecond: number): Bill => {
    const commands = commandsPerSecond * MONTH_S;
    return { commands, money: (commands / price.commands) * price.money };
  };
  const pairs = Math.max(daemons, workers);
  const resting = (profile: Profile) => restingAt(profile, partitions);
  const idle = {
    default: of(pairs * resting('default')),
    quiet: of(pairs * resting('quiet')),
  } satisfies Record<Profile, Bill>;
  const { commands } = costAt(perSecond / partitions);
  const each = benchFigures.scheduleCommands + commands;
  const jobs = of(perSecond * each);
  const steps: readonly PlanStep[] = [
    ...PROFILES.map((profile) => ({
      what: profile === 'default' ? 'idle' : profile,
      is: short(idle[profile].money),
      how: `a month at rest, profile ${profile}: ${short(resting(profile))}/s × ${some(pairs, 'pair')} of daemon and worker = ${large(idle[profile].commands)} commands`,
    })),
    {
      what: 'jobs',
      is: short(jobs.money),
      how: `a month of ${short(perSecond)}/s × (schedule ${short(benchFigures.scheduleCommands)}, promote to settle ${short(commands)}) = ${large(jobs.commands)} commands; far below 500/s a job takes up to 30`,
    },
  ];
  return { bill: { idle, jobs }, steps };
}

/** Commands per second of a daemon and a worker: each partition after the first costs the same. */
function restingAt(profile: Profile, partitions: number): number {
  const rows = benchFigures.idle.filter((row) => row.profile === profile);
  const [few, many] = [rows[0], rows.at(-1)];
  if (!few || !many) throw new Error(`the bench has measured nothing at rest with the profile ${profile}`);
  const span = many.partitions - few.partitions;
  const each = span === 0 ? 0 : (many.commandsPerSecond - few.commandsPerSecond) / span;
  return few.commandsPerSecond + each * (partitions - few.partitions);
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
  return {
    redisMicros: between('redisMicros'),
    workerMicros: between('workerMicros'),
    daemonMicros: between('daemonMicros'),
    commands: between('commands'),
  };
}

/*
 * How many bytes jobs take in Redis. Each text, node and table entry is an allocation of its own, and jemalloc rounds its
 * size up to a class: a record of 216 bytes takes 224, and a record of 221 bytes takes 256.
 *
 * The numbers are those of Redis 7 with the jemalloc of Linux distributions, whose classes are 16 bytes apart. Redis' own
 * build has classes of 24, 40 and 56 bytes as well, and Redis 8 packs more into one allocation: both take a few percent less.
 */

interface JobShape {
  readonly idChars: number;
  /** Of the data as JSON. */
  readonly payloadBytes: number;
}

/** Characters around the data in a record: version, due time in base 36, bar, `{"d":` and `}`. */
const RECORD_CHARS = 16;
/** `.d` and the due time, digest, token, attempts, no dead letter, with spaces. */
const TOMBSTONE_CHARS = 48;
/** Token, counters, entry and owner of a job that runs. */
const RUN_CHARS = 69;
/** A due time, ids and lengths in a packed entry of a stream, beside the member. */
const READY_BYTES = 30;
/** In the group and in its consumer, while a job is delivered. */
const PENDING_ENTRY_BYTES = 105;
/** Reason, token, counters and lengths of a dead letter, beside member, record and history. */
const DEAD_BYTES = 90;
/** One line of the history: a short message with its attempt and time. */
const FAILURE_BYTES = 80;
const FAILURES_KEPT = 5;

const POINTER = 8;
const TABLE_ENTRY = 24;
const NODE = 24;
const LEVEL = 16;
/** Each node of a skip list has another level with this chance. */
const LEVEL_CHANCE = 0.25;
const LEVELS_MAX = 32;

/** What an allocation of so many bytes takes. */
export function allocated(bytes: number): number {
  if (bytes <= 8) return 8;
  if (bytes <= 128) return Math.ceil(bytes / 16) * 16;
  const step = 2 ** (Math.ceil(Math.log2(bytes)) - 3);
  return Math.ceil(bytes / step) * step;
}

/** A text as Redis keeps it: a header that grows with its length, and a zero at its end. */
export function textBytes(chars: number): number {
  const header = chars < 32 ? 1 : chars < 256 ? 3 : chars < 65_536 ? 5 : 9;
  return allocated(header + chars + 1);
}

const memberChars = ({ idChars }: JobShape): number => memberOf('').length + idChars;

/** One entry of a hash table that holds so many; the table has the next power of two of places. */
function tableBytes(count: number): number {
  const places = 2 ** Math.ceil(Math.log2(Math.max(4, count)));
  return allocated(TABLE_ENTRY) + (POINTER * places) / Math.max(1, count);
}

/** One field of a hash, with its value. */
function fieldBytes(shape: JobShape, { chars, count }: { readonly chars: number; readonly count: number }): number {
  return tableBytes(count) + textBytes(memberChars(shape)) + textBytes(chars);
}

/** One member of a sorted set: a node of the skip list, and an entry of a table for the same text. */
function scoreBytes(shape: JobShape, count: number): number {
  let node = 0;
  for (let level = 1; level <= LEVELS_MAX; level += 1) {
    node += (1 - LEVEL_CHANCE) * LEVEL_CHANCE ** (level - 1) * allocated(NODE + LEVEL * level);
  }
  return node + tableBytes(count) + textBytes(memberChars(shape));
}

export const recordChars = ({ payloadBytes }: JobShape): number => RECORD_CHARS + payloadBytes;

/** A job that waits, when so many wait in its partition: member and due in `scheduled`, record in `jobs`. */
export function pendingBytes(shape: JobShape, count: number): { readonly zset: number; readonly hash: number } {
  return { zset: scoreBytes(shape, count), hash: fieldBytes(shape, { chars: recordChars(shape), count }) };
}

/** A job that is ready: its record, and a thin entry of the stream. */
export function readyBytes(shape: JobShape, count: number): number {
  return fieldBytes(shape, { chars: recordChars(shape), count }) + READY_BYTES + memberChars(shape);
}

/** A job that runs: ready and delivered, with a field in `runs`. */
export function runningBytes(shape: JobShape, count: number): number {
  return readyBytes(shape, count) + PENDING_ENTRY_BYTES + fieldBytes(shape, { chars: RUN_CHARS, count });
}

/** A job that is over and remembered: a tombstone in `jobs`, and a member of `done`. */
export function endBytes(shape: JobShape, count: number): number {
  return scoreBytes(shape, count) + fieldBytes(shape, { chars: TOMBSTONE_CHARS, count });
}

/** Of the stack of the last failure, a few frames of a handler; at most 2,000. */
const STACK_BYTES = 200;

/** A dead letter, by default with a full history. */
export function deadBytes(shape: JobShape, failures = FAILURES_KEPT): number {
  return DEAD_BYTES + memberChars(shape) + recordChars(shape) + failures * FAILURE_BYTES + STACK_BYTES;
}

// Numbers as people write them: `10M` jobs, `4KiB` of data; and the way back.

const COUNT_UNITS: Readonly<Record<string, number>> = { '': 1, k: 1e3, K: 1e3, M: 1e6, G: 1e9 };
const BYTE_UNITS: Readonly<Record<string, number>> = {
  '': 1,
  B: 1,
  kB: 1e3,
  KB: 1e3,
  MB: 1e6,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  k: 2 ** 10,
  K: 2 ** 10,
  M: 2 ** 20,
};

/** A whole number in a range, also with a unit; undefined for anything else. */
function whole(
  text: string,
  { units, min, max }: { readonly units: Readonly<Record<string, number>>; readonly min: number; readonly max: number },
): number | undefined {
  const [, digits = '', unit = ''] = /^(\d{1,15}(?:\.\d{1,6})?) ?([A-Za-z]*)$/.exec(text) ?? [];
  const times = digits === '' ? undefined : units[unit];
  if (times === undefined) return undefined;
  const value = Math.round(Number(digits) * times * 1e6) / 1e6;
  return Number.isInteger(value) && value >= min && value <= max ? value : undefined;
}

/** `10M`, `2.5k`, `1000`. */
export const countOf = (text: string, range: { readonly min: number; readonly max: number }): number | undefined =>
  whole(text, { units: COUNT_UNITS, ...range });

/** `200`, `4KiB`, `1.5kB`. */
export const bytesOf = (text: string, range: { readonly min: number; readonly max: number }): number | undefined =>
  whole(text, { units: BYTE_UNITS, ...range });

/** `0.20/100k`: money for commands; undefined for anything else. */
export function priceOf(text: string): Price | undefined {
  const [, money = '', many = ''] = /^(\d{1,9}(?:\.\d{1,6})?)\/(\S+)$/.exec(text) ?? [];
  const commands = countOf(many, { min: 1, max: 1e12 });
  return money === '' || commands === undefined ? undefined : { money: Number(money), commands };
}

/** `437`, `6.93M`, `12.3G` */
function large(value: number): string {
  const [size, unit] = value >= 1e9 ? [1e9, 'G'] : value >= 1e6 ? [1e6, 'M'] : [1, ''];
  return `${short(value / size)}${unit}`;
}

/** `4.07 GiB` */
export function bytesText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return `${short(bytes / 1024 ** power)} ${units[power]}`;
}

/** Three digits that count: `0.187`, `4.07`, `437`, `10,000`. */
export function short(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString('en-US');
  return String(Number(value.toPrecision(3)));
}
