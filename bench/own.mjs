/**
 * What duestream alone does under load: `npm run bench:own`. Retries, growth, a herd that other clients of Redis feel, the
 * append-only file, large records, Valkey. Real processes, every round runs each workload once; medians. Writes
 * `bench/results/own.json` and `docs/benchmarks-own.md`.
 *
 *     --quick           a twentieth of the jobs, 1 round, nothing is written
 *     --rounds 3        how many
 *     --only herd,large these workloads; nothing is written
 *     --full            10 million pending jobs as well
 */
import { writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { argumentsFor, refuse, wholeNumber } from '../scripts/arguments.mjs';
import { capture } from '../scripts/run.mjs';
import { root } from '../scripts/steps.mjs';
import { prepare } from './parts.mjs';

const values = argumentsFor(import.meta.filename, {
  quick: { type: 'boolean', default: false },
  rounds: { type: 'string' },
  only: { type: 'string' },
  full: { type: 'boolean', default: false },
});
const rounds = wholeNumber(import.meta.filename, 'rounds', {
  given: values.rounds,
  otherwise: values.quick ? 1 : 3,
  from: 1,
  to: 100,
});

const { binary } = await prepare();
const [{ workloads: every }, { keptWithAof, pageOf, rowsOf }] = await Promise.all([
  import('./own/workloads.mjs'),
  import('./own/page.mjs'),
]);
const wanted = values.only?.split(',') ?? every.map(({ name }) => name);
for (const name of wanted) {
  if (every.some((one) => one.name === name)) continue;
  refuse(import.meta.filename, `--only ${name}; allowed: ${every.map((one) => one.name).join(', ')}`);
}
const size = (/** @type {number} */ jobs) => Math.max(1, Math.round(values.quick ? jobs / 20 : jobs));

/** @type {import('./own/page.mjs').Result[]} */
const results = [];
/** @type {Map<string, import('./own/page.mjs').Skipped>} */
const skipped = new Map();
for (let round = 1; round <= rounds; round += 1) {
  for (const { name: workload, title, run, skip } of every.filter(({ name }) => wanted.includes(name))) {
    const given = { binary, size, round, full: values.full };
    const reason = await skip?.(given);
    if (reason !== undefined) skipped.set(workload, { title, reason });
    const figures = reason === undefined ? await run(given) : undefined;
    if (figures) results.push({ workload, title, figures });
    process.stderr.write(
      `${round}/${rounds}  ${workload.padEnd(10)} ${figures ? shown(figures) : `skipped: ${reason}`}\n`,
    );
  }
}

const { output } = await capture(binary, ['--version'], { cwd: root });
const made = {
  what: 'duestream alone under load; medians over rounds',
  host: `${cpus().length} × ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB`,
  node: process.version,
  redis: /(\S+) server v=(\S+)/.exec(output)?.slice(1).join(' ') ?? 'unknown',
  date: new Date().toISOString().slice(0, 10),
  rounds,
  rows: rowsOf(results),
  skipped: [...skipped.values()],
};
console.table(
  made.rows.map(({ workload, figure, median, least, most }) => ({ workload, figure, median, least, most })),
);
const kept = keptWithAof(made.rows);
if (kept)
  process.stdout.write(`with the append-only file a burst keeps ${kept.percent} %; wanted are ${kept.wanted} %\n`);
if (!values.quick && values.only === undefined) {
  writeFileSync(join(root, 'bench/results/own.json'), `${JSON.stringify(made, null, 2)}\n`);
  writeFileSync(join(root, 'docs/benchmarks-own.md'), pageOf(made));
  if (kept && !kept.met) process.exitCode = 1;
}

/** @param {Readonly<Record<string, number>>} figures */
function shown(figures) {
  return Object.entries(figures)
    .map(([name, value]) => `${name} ${value >= 100 ? Math.round(value) : Math.round(value * 100) / 100}`)
    .join('  ');
}
