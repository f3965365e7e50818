/**
 * duestream beside its peers and the floor: `npm run bench`. Real processes on a Redis of their own; every round puts each
 * system through each workload, one after the other, so that a ratio compares what ran within the same minutes. Figures
 * are medians over rounds; a job that is missing, doubled or early ends the bench. Writes `bench/results/peers.json`,
 * `docs/benchmarks.md` with its charts, and what the README shows of it.
 *
 *     --quick                a fifth of the jobs, 2 rounds, nothing is written; at most 6 minutes
 *     --rounds 5             how many; what hardly moves is measured in the first only
 *     --only burst,steady500 these workloads; nothing is written
 *     --only linger          the table of linger alone; nothing is written
 *     --systems duestream,floor   these systems; nothing is written
 *     --against file         compares counts and ratios with those of a file, and ends with 1 when they got worse
 *     --keep file            writes the results there as well
 *     --log file             adds each result as a line; an interrupted run that is started again goes on after the last
 *     --page                 measures nothing: writes the page again from `bench/results`
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { argumentsFor, refuse, wholeNumber } from '../scripts/arguments.mjs';
import { capture } from '../scripts/run.mjs';
import { root } from '../scripts/steps.mjs';
import { installPeers, prepare } from './parts.mjs';

/** @typedef {Readonly<Record<string, number>>} Figures */
/** @typedef {{ workload: string, system: string, round: number, figures: Figures }} Result */

const values = argumentsFor(import.meta.filename, {
  quick: { type: 'boolean', default: false },
  rounds: { type: 'string' },
  only: { type: 'string' },
  systems: { type: 'string' },
  against: { type: 'string' },
  keep: { type: 'string' },
  log: { type: 'string' },
  page: { type: 'boolean', default: false },
});
const RESULTS = join(root, 'bench/results/peers.json');
if (values.page) {
  await writePage(JSON.parse(readFileSync(RESULTS, 'utf8')));
  process.exit();
}
const rounds = wholeNumber(import.meta.filename, 'rounds', {
  given: values.rounds,
  otherwise: values.quick ? 2 : 5,
  from: 1,
  to: 100,
});

// What was asked for is looked at before anything is installed or measured; the systems are known when they are there.
const { workloads: every } = await import('./peers/workloads.mjs');
const ofLinger = values.only === 'linger';
const workloads = ofLinger
  ? every.filter(({ name }) => name.startsWith('steady'))
  : chosen('--only', every, values.only);
const before = values.against === undefined ? undefined : rowsOf(values.against);
await installPeers();
const { binary } = await prepare();
const { systems: all, absent } = await import('./peers/systems.mjs');
const { PEER } = await import('./peers/page.mjs');
const shows = (/** @type {typeof all[number]} */ { name, lingerMs }) => lingerMs !== undefined || name === PEER;
const systems = chosen('--systems', ofLinger ? all.filter(shows) : all, values.systems);
const size = (/** @type {number} */ jobs) => Math.max(1, Math.round(values.quick ? jobs / 5 : jobs));

/** What is measured at one time. @type {readonly (readonly { round: number, workload: typeof every[number], system: typeof all[number] }[])[]} */
const batches = Array.from({ length: rounds }, (_, at) => at + 1).flatMap((round) =>
  workloads.flatMap((workload) => {
    // Each round begins with another system, so that none is always the one after a long rest.
    const cells = [...systems.slice(round % systems.length), ...systems.slice(0, round % systems.length)]
      .filter((system) => system.workloads?.includes(workload.name) ?? (!workload.linger || shows(system)))
      .filter((system) => round <= Math.min(workload.rounds ?? rounds, system.rounds ?? rounds))
      .map((system) => ({ round, workload, system }));
    return workload.together ? [cells] : cells.map((cell) => [cell]);
  }),
);
const total = batches.flat().length;
const logged = values.log === undefined ? [] : resultsIn(values.log);
/** @type {Result[]} */
const results = [];
/** Cells of peers that lost, doubled or never ended a job: the run goes on, and says so. @type {string[]} */
const broken = [];
const mayBreak = (/** @type {typeof all[number]} */ { name }) => /^(bee-queue|bunqueue)/.test(name);
let measured = 0;
const fromMs = performance.now();
for (const batch of batches) {
  const known = batch.map(({ round, workload, system }) =>
    logged.find((one) => one.round === round && one.workload === workload.name && one.system === system.name),
  );
  const filled = gate(known.filter((one) => one === undefined).length);
  const measure = async (/** @type {typeof batch[number]} */ { round, workload, system }) => {
    const figures = await workload.run({ binary, system, size, seed: round, filled }).catch((error) => {
      if (!mayBreak(system) || workload.together) throw error;
      const why = error instanceof Error ? error.message : String(error);
      broken.push(`${workload.name} of ${system.title} in round ${round}: ${why}`);
    });
    if (!figures) return;
    const result = { workload: workload.name, system: system.name, round, figures };
    results.push(result);
    measured += 1;
    if (values.log !== undefined) appendFileSync(values.log, `${JSON.stringify(result)}\n`);
    const leftMs = ((performance.now() - fromMs) / measured) * (total - results.length);
    process.stderr.write(
      `${results.length}/${total}  ${workload.name.padEnd(10)} ${system.name.padEnd(13)} ${shown(figures)}  (${Math.round(leftMs / 1000)} s left)\n`,
    );
  };
  for (const one of known) if (one) results.push(one);
  await Promise.all(batch.filter((_, nth) => !known[nth]).map(measure));
}

const { report } = await import('./peers/page.mjs');
const made = {
  what: 'duestream beside its peers and the floor; medians over rounds, ratios within a round',
  host: `${cpus().length} × ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB`,
  node: process.version,
  redis: await versionOfRedis(binary),
  date: new Date().toISOString().slice(0, 10),
  rounds,
  quick: values.quick,
  systems: systems.map(({ name, title, settings, counts, lingerMs }) => ({ name, title, settings, counts, lingerMs })),
  absent: [...absent, ...broken],
  rows: report({ results, workloads: workloads.map(({ name, title }) => ({ name, title })) }),
};
console.table(
  made.rows.map(({ workload, figure, system, median, ratio }) => ({ workload, figure, system, median, ratio })),
);
if (values.keep !== undefined) writeFileSync(values.keep, `${JSON.stringify(made, null, 2)}\n`);
const whole = !values.quick && values.only === undefined && values.systems === undefined;
if (whole) {
  writeFileSync(RESULTS, `${JSON.stringify(made, null, 2)}\n`);
  await writePage(made);
}
if (before !== undefined) await compare(before);

/** @param {Parameters<typeof import('./peers/page.mjs').pageOf>[0]} run */
async function writePage(run) {
  const { chartsOf, pageOf } = await import('./peers/page.mjs');
  const { withPeers } = await import('./peers/readme.mjs');
  const readme = join(root, 'README.md');
  writeFileSync(readme, withPeers(readFileSync(readme, 'utf8'), run));
  writeFileSync(join(root, 'docs/benchmarks.md'), pageOf(run));
  mkdirSync(join(root, 'docs/charts'), { recursive: true });
  for (const [name, svg] of chartsOf(run)) writeFileSync(join(root, 'docs/charts', name), svg);
}

/** @template {{ name: string }} T @param {string} flag @param {readonly T[]} list @param {string | undefined} text @returns {readonly T[]} */
function chosen(flag, list, text) {
  if (text === undefined) return list;
  const names = text.split(',');
  const known = new Map(list.map((one) => [one.name.toLowerCase(), one]));
  return names.map((name) => {
    const one = known.get(name.toLowerCase());
    return one ?? refuse(import.meta.filename, `${flag} ${name}; allowed: ${list.map((each) => each.name).join(', ')}`);
  });
}

/** Opens when so many have come to it. @param {number} count */
function gate(count) {
  let waiting = 0;
  let open = () => {};
  /** @type {Promise<void>} */
  const opened = new Promise((resolve) => {
    open = resolve;
  });
  return () => {
    waiting += 1;
    if (waiting === count) open();
    return opened;
  };
}

/** @param {Figures} figures */
function shown(figures) {
  return Object.entries(figures)
    .map(([name, value]) => `${name} ${value >= 100 ? Math.round(value) : Math.round(value * 100) / 100}`)
    .join('  ');
}

/** @param {string} path */
async function versionOfRedis(path) {
  const { output } = await capture(path, ['--version'], { cwd: root });
  return /(\S+) server v=(\S+)/.exec(output)?.slice(1).join(' ') ?? 'unknown';
}

/** What an interrupted run has measured; it has to be of the same size and code. @param {string} file @returns {any[]} */
function resultsIn(file) {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line));
}

/** @param {string} file the results of a run before */
function rowsOf(file) {
  try {
    const { rows } = JSON.parse(readFileSync(file, 'utf8'));
    if (Array.isArray(rows)) return rows;
  } catch {
    // It is not there, or no JSON: said below.
  }
  return refuse(
    import.meta.filename,
    `--against ${file}; allowed: a file that --keep wrote, such as bench/baseline.json`,
  );
}

/** @param {readonly import('./peers/page.mjs').Row[]} before */
async function compare(before) {
  const { worse } = await import('./peers/baseline.mjs');
  const complaints = worse({ now: made.rows, before });
  for (const line of complaints) process.stdout.write(`worse: ${line}\n`);
  if (complaints.length > 0) process.exitCode = 1;
  else process.stdout.write('nothing that is stable got worse\n');
}
