/** What we want of a run, beside what it shows: met or missed, so that a miss cannot hide among many figures. */
import { readFileSync } from 'node:fs';

/** @typedef {import('./page.mjs').Row} Row */
/** @typedef {{ is: string, met: boolean | undefined }} Found `met`: undefined where there is no such figure */
/** @typedef {{ work: string, figure: string, wanted: string, shapes: readonly Found[], floor: string, why: string | undefined }} Verdict */

/** The same is wanted of both: as people deploy it, and in one process. */
const SHAPES = /** @type {const} */ (['duestream', 'embedded']);

/** Of a ratio to the peer, or of the figure itself; at least so much, or at most; and what bounds it, if it is missed. */
const TARGETS =
  /** @type {readonly (readonly [workload: string, figure: string, of: 'ratio' | 'median', bound: 'least' | 'most', wanted: number, why: keyof typeof WHY | undefined, lingerMs?: number])[]} */ ([
    ['one', 'jobsPerSecond', 'ratio', 'least', 2.2, 'one'],
    ['bulk', 'jobsPerSecond', 'ratio', 'least', 5, undefined],
    ['burst', 'jobsPerSecond', 'ratio', 'least', 3, 'burst'],
    ['burst2', 'jobsPerSecond', 'ratio', 'least', 3.5, 'burst'],
    ['drain', 'jobsPerSecond', 'ratio', 'least', 3, 'burst'],
    ['burst', 'serverMicros', 'ratio', 'most', 0.35, 'burst'],
    ['burst', 'workerMicros', 'ratio', 'most', 0.35, 'burst'],
    ['steady500', 'lateP50Ms', 'median', 'most', 1, 'late'],
    ['steady500', 'lateP99Ms', 'median', 'most', 5, 'late'],
    ['steady500', 'serverMicros', 'ratio', 'most', 1.5, 'alone'],
    ['steady500', 'workerMicros', 'ratio', 'most', 1.6, 'alone'],
    ['steady500', 'daemonMicros', 'median', 'most', 150, 'alone'],
    ['steady2000', 'lateP50Ms', 'median', 'most', 1, 'late'],
    ['steady2000', 'lateP99Ms', 'median', 'most', 5, 'late'],
    ['steady2000', 'serverMicros', 'ratio', 'most', 0.7, 'alone'],
    ['steady2000', 'workerMicros', 'ratio', 'most', 0.8, 'alone'],
    ['steady500', 'serverMicros', 'ratio', 'most', 0.7, 'linger', 20],
    ['steady500', 'workerMicros', 'ratio', 'most', 0.9, 'linger', 20],
    ['steady500', 'lateP99Ms', 'median', 'most', 25, 'late', 20],
    ['steady2000', 'serverMicros', 'ratio', 'most', 0.4, 'linger', 20],
    ['steady2000', 'workerMicros', 'ratio', 'most', 0.5, 'linger', 20],
    ['steady2000', 'lateP99Ms', 'median', 'most', 25, 'late', 20],
    ['idle', 'commandsPerSecond', 'median', 'most', 3, undefined],
    ['memory', 'bytesPerJob', 'median', 'most', 430, undefined],
  ]);

/** What the profiles say about a miss. */
const WHY = {
  one: `**One by one** is as fast as the process that schedules: its CPU per job says so, for duestream and for the floor. The floor
checks nothing, encodes nothing and has no promise of its own for each call.`,
  burst: `**A burst and a drain** keep both cores busy, so their rate is what Redis and the workers spend per job. The floor does
the least that this shape can, with no token, no retry, no recovery and no done window; what it reaches is the most that there is to
get on this machine. Of what duestream spends more, Redis has the runs, the records and the tombstones, and the worker an
object per start; a quarter of the worker's time is V8 that compiles and collects garbage. Tried without a gain: turns of a
third of the slots, smaller passes more often, due times as texts, no turn of the event loop between two reads.`,
  alone: `**At a low rate** a job has a call of its own. It wakes Redis and the worker up, and each finds its caches cold: the same
script takes three times as long as in a row of calls. BullMQ starts jobs 40 ms late and works through a row of them with warm
caches. Tried without a gain: passes 2.5 and 3 ms apart.`,
  linger: `**With a linger** a job shares its pass, and a pass costs about the same whatever it carries: at 500 jobs/s and 20 ms it
carries ten jobs, at 2,000/s forty.`,
  late: `**Lateness** is counted by the clocks of processes that share two cores with Redis, the producer and each other. The floor
has the same way to go with less to do, and its lateness in the same run says how much of it is the machine.`,
  script: `**Scripts** of default size end within 4 ms in 99 of 100 calls ([all of them](reference/measured.md#what-each-script-costs)); one of a thousand waits for
a core as well.`,
  minute: `**Schedules of one minute** share two cores: one daemon that fires them, Redis, and two workers that run their jobs.`,
};

/**
 * One verdict per target of those that the run has figures for.
 *
 * @param {readonly Row[]} rows @param {ReadonlyMap<string, string>} names of figures @returns {readonly Verdict[]}
 */
function verdictsOf(rows, names) {
  return TARGETS.flatMap(([workload, figure, of, bound, wanted, why, lingerMs]) => {
    const own = rows.filter((row) => row.workload === workload && row.figure === figure);
    const measured = (/** @type {string} */ system) => own.find((row) => row.system === system)?.[of];
    const [sign, floor] = [of === 'ratio' ? '×' : '', lingerMs === undefined ? measured('floor') : undefined];
    const shapes = SHAPES.map((system) => {
      const is = measured(lingerMs === undefined ? system : `${system}-${lingerMs}`);
      if (is === undefined) return { is: '', met: undefined };
      return { is: `${sign}${is}`, met: bound === 'least' ? is >= wanted : is <= wanted };
    });
    if (shapes.every(({ met }) => met === undefined)) return [];
    return [
      {
        work: `${own[0]?.title ?? workload}${lingerMs === undefined ? '' : `, linger ${lingerMs} ms`}`,
        figure: names.get(figure) ?? figure,
        wanted: `${bound === 'least' ? '≥' : '≤'} ${sign}${wanted}`,
        shapes,
        floor: floor === undefined ? '' : `${sign}${floor}`,
        why: why && WHY[why],
      },
    ];
  });
}

/**
 * What other benches measured of duestream alone, from `bench/results`; nothing for one that was not run.
 *
 * @returns {readonly Verdict[]}
 */
function aloneVerdicts() {
  const minutes = rowsIn('schedules-minute').map(({ schedules, p99Ms }) => ({
    work: `${count(schedules)} schedules of one minute`,
    figure: 'from the instant to the start of the handler, p99, ms',
    is: p99Ms,
    most: schedules > 10_000 ? 8000 : 1000,
    why: WHY.minute,
  }));
  const longest = Math.max(
    ...rowsIn('stages')
      .filter(({ byDefault, bytes }) => byDefault && bytes <= 4096)
      .map(({ longestMs }) => longestMs),
  );
  const scripts = { work: 'any script at default settings, records of up to 4 KiB', figure: 'one call, p99.9, ms' };
  const all = [...minutes, ...(longest > 0 ? [{ ...scripts, is: longest, most: 5, why: WHY.script }] : [])];
  return all.map(({ work, figure, is, most, why }) => ({
    work,
    figure,
    wanted: `≤ ${count(most)}`,
    shapes: [
      { is: count(is), met: is <= most },
      { is: '', met: undefined },
    ],
    floor: '',
    why,
  }));
}

/** @param {readonly Row[]} rows @param {ReadonlyMap<string, string>} names of figures */
export function targetsIn(rows, names) {
  const verdicts = [...verdictsOf(rows, names), ...aloneVerdicts()];
  const cell = (/** @type {Found} */ { is, met }) => `${is} | ${met === undefined ? '' : met ? 'met' : '**missed**'}`;
  const lines = verdicts.map(
    ({ work, figure, wanted, shapes, floor }) =>
      `| ${work} | ${figure} | ${wanted} | ${shapes.map(cell).join(' | ')} | ${floor} |`,
  );
  const missed = verdicts.filter(({ shapes }) => shapes.some(({ met }) => met === false));
  const reasons = new Set(missed.flatMap(({ why }) => (why === undefined ? [] : [why])));
  return [
    [
      '| work | figure | wanted | duestream | | one process | | floor |',
      '|---|---|---:|---:|---|---:|---|---:|',
      ...lines,
    ].join('\n'),
    ...reasons,
  ];
}

/** @param {string} name @returns {readonly any[]} */
function rowsIn(name) {
  try {
    return JSON.parse(readFileSync(new URL(`../results/${name}.json`, import.meta.url), 'utf8')).rows;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  }
}

/** @param {number} value */
const count = (value) => value.toLocaleString('en-US');
