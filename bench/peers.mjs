/**
 * duestream beside its peers and the floor: `npm run bench`. Real processes on a Redis of their own; every round puts each
 * system through each workload, one after the other, so that a ratio compares what ran within the same minutes. Figures
 * are medians over rounds; a job that is missing, doubled or early ends the bench. Writes `bench/results/peers.json`,
 * `docs/benchmarks.md` with its charts, and what the README shows of it.
 *
 *     --quick                a fifth of the jobs, 2 rounds; at most 6 minutes
 *     --rounds 5             how many; what hardly moves is measured in the first only
 *     --only burst,steady500 these workloads
 *     --only linger          the table of linger alone
 *     --systems duestream,floor   these systems
 *     --against file         compares counts and ratios with those of a file, and ends with 1 when they got worse
 *     --keep file            writes the results there as well
 *     --log file             adds each result as a line; an interrupted run that is started again goes on after the last
 */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { worse } from './peers/baseline.mjs';
import { PEER, report } from './peers/page.mjs';
import { absent, systems as everySystem } from './peers/systems.mjs';
import { workloads as everyWorkload } from './peers/workloads.mjs';

/** @typedef {Readonly<Record<string, number>>} Figures */
/** @typedef {{ workload: string, system: string, round: number, figures: Figures }} Result */
/** @typedef {import('./peers/system.mjs').System} System */
/** @typedef {import('./peers/workloads.mjs').Workload} Workload */
/** @typedef {{ round: number, workload: Workload, system: System }} Cell */

/** @param {import('./bench.mjs').Asked} asked */
export async function run({ binary, chosen, number, refuse, values }) {
  const quick = values.quick === true;
  const rounds = number('rounds', { otherwise: quick ? 2 : 5, from: 1, to: 100 });
  const before = typeof values.against === 'string' ? rowsOf(values.against, refuse) : undefined;
  const ofLinger = values.only === 'linger';
  const named = ofLinger
    ? everyWorkload.filter(({ name }) => name.startsWith('steady')).map(({ name }) => name)
    : chosen(
        'only',
        everyWorkload.map(({ name }) => name),
      );
  const workloads = everyWorkload.filter(({ name }) => named?.includes(name) ?? true);
  const some = chosen(
    'systems',
    everySystem.map(({ name }) => name),
  );
  const systems = everySystem.filter((one) => some?.includes(one.name) ?? (!ofLinger || shows(one)));
  const batches = batchesOf({ rounds, workloads, systems });
  const log = typeof values.log === 'string' ? values.log : undefined;
  const size = (/** @type {number} */ jobs) => Math.max(1, Math.round(quick ? jobs / 5 : jobs));
  const { results, broken } = await measured(batches, { binary, size, log });
  const made = {
    name: 'peers',
    what: 'duestream beside its peers and the floor; medians over rounds, ratios within a round',
    host: `${cpus().length} × ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB`,
    rounds,
    quick,
    systems: systems.map(({ name, title, settings, counts, lingerMs }) => ({
      name,
      title,
      settings,
      counts,
      lingerMs,
    })),
    absent: [...absent, ...broken],
    rows: report({ results, workloads: workloads.map(({ name, title }) => ({ name, title })) }),
  };
  if (typeof values.keep === 'string') writeFileSync(values.keep, `${JSON.stringify(made, null, 2)}\n`);
  if (before !== undefined) {
    const complaints = worse({ now: made.rows, before });
    for (const line of complaints) process.stdout.write(`worse: ${line}\n`);
    if (complaints.length > 0) process.exitCode = 1;
    else process.stdout.write('nothing that is stable got worse\n');
  }
  return [made];
}

/** In the table of linger. @param {System} system */
const shows = ({ name, lingerMs }) => lingerMs !== undefined || name === PEER;

/** What is measured at one time. @param {{ rounds: number, workloads: readonly Workload[], systems: readonly System[] }} of @returns {readonly (readonly Cell[])[]} */
function batchesOf({ rounds, workloads, systems }) {
  return Array.from({ length: rounds }, (_, at) => at + 1).flatMap((round) =>
    workloads.flatMap((workload) => {
      // Each round begins with another system, so that none is always the one after a long rest.
      const cells = [...systems.slice(round % systems.length), ...systems.slice(0, round % systems.length)]
        .filter((system) => system.workloads?.includes(workload.name) ?? (!workload.linger || shows(system)))
        .filter((system) => round <= Math.min(workload.rounds ?? rounds, system.rounds ?? rounds))
        .map((system) => ({ round, workload, system }));
      return workload.together ? [cells] : cells.map((cell) => [cell]);
    }),
  );
}

/** @param {readonly (readonly Cell[])[]} batches @param {{ binary: string, size: (jobs: number) => number, log: string | undefined }} how */
async function measured(batches, { binary, size, log }) {
  const total = batches.flat().length;
  const logged = log === undefined ? [] : resultsIn(log);
  /** @type {Result[]} */
  const results = [];
  /** Cells of peers that lost, doubled or never ended a job: the run goes on, and says so. @type {string[]} */
  const broken = [];
  let fresh = 0;
  const fromMs = performance.now();
  for (const batch of batches) {
    const known = batch.map(({ round, workload, system }) =>
      logged.find((one) => one.round === round && one.workload === workload.name && one.system === system.name),
    );
    const filled = gate(known.filter((one) => one === undefined).length);
    const measure = async (/** @type {Cell} */ { round, workload, system }) => {
      const figures = await workload.run({ binary, system, size, seed: round, filled }).catch((error) => {
        if (!mayBreak(system) || workload.together) throw error;
        const why = error instanceof Error ? error.message : String(error);
        broken.push(`${workload.name} of ${system.title} in round ${round}: ${why}`);
      });
      if (!figures) return;
      const result = { workload: workload.name, system: system.name, round, figures };
      results.push(result);
      fresh += 1;
      if (log !== undefined) appendFileSync(log, `${JSON.stringify(result)}\n`);
      const left = Math.round((((performance.now() - fromMs) / fresh) * (total - results.length)) / 1000);
      const cell = `${workload.name.padEnd(10)} ${system.name.padEnd(13)} ${shown(figures)}`;
      process.stderr.write(`${results.length}/${total}  ${cell}  (${left} s left)\n`);
    };
    for (const one of known) if (one) results.push(one);
    await Promise.all(batch.filter((_, nth) => !known[nth]).map(measure));
  }
  return { results, broken };
}

/** @param {System} system */
const mayBreak = ({ name }) => /^(bee-queue|bunqueue)/.test(name);

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

/** What an interrupted run has measured; it has to be of the same size and code. @param {string} file @returns {any[]} */
function resultsIn(file) {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line));
}

/** @param {string} file the results of a run before @param {(why: string) => never} refuse @returns {readonly import('./peers/page.mjs').Row[]} */
function rowsOf(file, refuse) {
  try {
    const { rows } = JSON.parse(readFileSync(file, 'utf8'));
    if (Array.isArray(rows)) return rows;
  } catch {
    // It is not there, or no JSON: said below.
  }
  return refuse(`--against ${file}; allowed: a file that --keep wrote, such as bench/baseline.json`);
}
