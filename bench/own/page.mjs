/** Results → rows with medians, and rows → the page in the docs. */

/** @typedef {{ workload: string, title: string, figure: string, median: number, least: number, most: number }} Row */
/** @typedef {{ workload: string, title: string, figures: Readonly<Record<string, number>> }} Result */
/** @typedef {{ title: string, reason: string }} Skipped */

/** With the append-only file, a burst must keep so much of its rate. */
const AOF_KEEPS = 0.75;

/** How each figure is called, and in what it is counted. */
const FIGURES = new Map([
  ['jobsPerSecond', 'jobs/s'],
  ['serverMicros', 'Redis CPU per job, µs'],
  ['commands', 'Redis commands per job'],
  ['scripts', 'scripts per job'],
  ['workerMicros', 'CPU of the worker process per job, µs'],
  ['bytesPerJob', 'bytes per pending job'],
  ['schedulesPerSecond', 'schedule one by one, 100 in flight, jobs/s'],
  ['scheduleMicros', 'Redis CPU of one schedule, µs'],
  ['lateP50Ms', 'start lateness p50 at 200 jobs/s, ms'],
  ['lateP99Ms', 'start lateness p99 at 200 jobs/s, ms'],
  ['probeP50Ms', 'another client: PING or GET, p50, ms'],
  ['probeP99Ms', 'another client, p99, ms'],
  ['probeMaxMs', 'another client, longest, ms'],
  ['scriptP999Ms', 'scripts p99.9, ms'],
]);

/** @param {readonly Result[]} results @returns {readonly Row[]} */
export function rowsOf(results) {
  const titles = new Map(results.map(({ workload, title }) => [workload, title]));
  return [...titles].flatMap(([workload, title]) => {
    const own = results.filter((one) => one.workload === workload);
    return Object.keys(own[0]?.figures ?? {}).map((figure) => {
      const values = own.map(({ figures }) => figures[figure] ?? 0).sort((a, b) => a - b);
      const [least = 0, most = 0] = [values[0], values.at(-1)];
      const median = rounded(values[values.length >> 1] ?? 0);
      return { workload, title, figure, median, least: rounded(least), most: rounded(most) };
    });
  });
}

/** How much of its rate a burst keeps with the append-only file; undefined unless both were measured. @param {readonly Row[]} rows */
export function keptWithAof(rows) {
  const rate = (/** @type {string} */ workload) =>
    rows.find((row) => row.workload === workload && row.figure === 'jobsPerSecond')?.median;
  const [off, on] = [rate('burst'), rate('burstAof')];
  if (!off || !on) return undefined;
  return { percent: Math.round((on / off) * 100), wanted: AOF_KEEPS * 100, met: on / off >= AOF_KEEPS };
}

/** @param {{ host: string, node: string, redis: string, date: string, rounds: number, rows: readonly Row[], skipped: readonly Skipped[] }} made */
export function pageOf({ host, node, redis, date, rounds, rows, skipped }) {
  const titles = new Map(rows.map(({ workload, title }) => [workload, title]));
  const kept = keptWithAof(rows);
  return `${[
    '# What duestream does under load',
    '<!-- Made by `npm run bench:own`. Edit bench/own/page.mjs instead. -->',
    `Measured on ${host}, Node ${node}, ${redis}, on ${date}: medians of ${rounds} rounds with the least and the most in brackets.
Real processes with their defaults, a Redis of its own for each workload, 200 bytes of data unless said otherwise, one worker
process with the mover inside and a concurrency of 100. A job that was lost, started too often or started early would have
ended the run. duestream beside others is in the bench of peers (\`npm run bench\`).`,
    ...(kept
      ? [`With the append-only file a burst keeps ${kept.percent} % of its rate; wanted are ${kept.wanted} %.`]
      : []),
    ...[...titles].map(([workload, title]) =>
      section(
        rows.filter((row) => row.workload === workload),
        title,
      ),
    ),
    ...(skipped.length > 0
      ? [`## Not run here\n\n${skipped.map(({ title, reason }) => `* ${title}: ${reason}`).join('\n')}`]
      : []),
  ].join('\n\n')}\n`;
}

/** @param {readonly Row[]} rows @param {string} title */
function section(rows, title) {
  return [
    `## ${title.charAt(0).toUpperCase()}${title.slice(1)}`,
    '',
    '| | |',
    '|---|---:|',
    ...rows.map(
      ({ figure, median, least, most }) =>
        `| ${FIGURES.get(figure) ?? figure} | ${number(median)} (${number(least)}–${number(most)}) |`,
    ),
  ].join('\n');
}

/** @param {number} value */
const number = (value) => (value >= 100 ? Math.round(value).toLocaleString('en-US') : String(value));

/** @param {number} value */
const rounded = (value) => Math.round(value * 100) / 100;
