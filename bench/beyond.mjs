/**
 * What duestream does on more than one Redis: `npm run bench:beyond`. A cluster of three primaries on this machine, and real
 * processes. Writes `bench/results/beyond-one.json` and its section of `docs/reference/measured.md`; a part that is not measured keeps its figures.
 *
 *     --only spread,failing  these parts: spread (shares and idle commands of 64 partitions), burst (beside one primary),
 *                            failing (a primary is killed or frozen), resharding (one comes, one goes)
 *     --rounds 5             how many; otherwise 3 of spread, 5 of burst, 1 of failing, 3 of resharding
 *     --quick                fewer jobs, shorter times, 1 round; the page says so
 *     --dry                  nothing is written
 *
 * All of it takes about 40 minutes, with --quick about 6. Ends with 1 when something is not as it is wanted to be, but not
 * with --quick; a job that is missing or early in a burst ends it at once.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { argumentsFor, refuse, wholeNumber } from '../scripts/arguments.mjs';
import { capture } from '../scripts/run.mjs';
import { root } from '../scripts/steps.mjs';
import { missed, NAMES, sectionOf } from './beyond/page.mjs';
import { writeMeasured } from './measured.mjs';
import { prepare } from './parts.mjs';

const RESULTS = join(root, 'bench', 'results', 'beyond-one.json');
const ROUNDS = { spread: 3, burst: 5, failing: 1, resharding: 3 };

const values = argumentsFor(import.meta.filename, {
  only: { type: 'string' },
  rounds: { type: 'string' },
  quick: { type: 'boolean', default: false },
  dry: { type: 'boolean', default: false },
});
const { quick } = values;
const asked = values.only?.split(',') ?? NAMES;
const names = NAMES.filter((name) => asked.includes(name));
const strange = asked.filter((name) => !NAMES.some((known) => known === name));
if (strange.length > 0) refuse(import.meta.filename, `--only ${strange.join(',')}; allowed: ${NAMES.join(', ')}`);
const roundsOf = (/** @type {keyof typeof ROUNDS} */ name) =>
  wholeNumber(import.meta.filename, 'rounds', {
    given: values.rounds,
    otherwise: quick ? 1 : ROUNDS[name],
    from: 1,
    to: 100,
  });
names.forEach(roundsOf);

const { binary } = await prepare();
// Only now: these import what was built.
const [{ spread }, { burst }, { failing }, { resharding }] = await Promise.all([
  import('./beyond/spread.mjs'),
  import('./beyond/burst.mjs'),
  import('./beyond/failing.mjs'),
  import('./beyond/resharding.mjs'),
]);
const measures = { spread, burst, failing, resharding };
const { output } = await capture(binary, ['--version'], { cwd: root });
const of = {
  date: new Date().toISOString().slice(0, 10),
  host: `${cpus().length} × ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB`,
  node: process.versions.node,
  redis: /(\S+) server v=(\S+)/.exec(output)?.slice(1).join(' ') ?? 'unknown',
  quick,
};

/** @type {import('./beyond/page.mjs').Parts} */
let parts = resultsSoFar();
/** @type {import('./beyond/page.mjs').Parts} */
let fresh = {};
for (const name of names) {
  const rounds = roundsOf(name);
  const rows = await measures[name]({ binary, quick, rounds });
  console.table(rows);
  fresh = { ...fresh, [name]: { made: { ...of, rounds }, rows } };
  parts = { ...parts, ...fresh };
  // After each part: what follows may be interrupted.
  if (!values.dry) write();
}
const wrong = missed(fresh);
for (const line of wrong) process.stdout.write(`not as wanted: ${line}\n`);
process.exit(wrong.length > 0 && !quick ? 1 : 0);

function write() {
  mkdirSync(join(root, 'bench', 'results'), { recursive: true });
  writeFileSync(RESULTS, `${JSON.stringify(parts, null, 2)}\n`);
  writeMeasured('beyond', sectionOf(parts));
}

/** @returns {import('./beyond/page.mjs').Parts} */
function resultsSoFar() {
  try {
    return JSON.parse(readFileSync(RESULTS, 'utf8'));
  } catch {
    return {};
  }
}
