/**
 * What each script costs: `npm run bench:stages`. For every script, batch size and record size the time inside Redis
 * (INFO commandstats and latencystats, one script at a time) and the CPU of the caller, as medians over rounds. Writes
 * `bench/results/stages.json` and its section of `docs/reference/measured.md`.
 *
 * `npm run bench:stages -- --against <folder>` compares with another built checkout instead: the two take turns, each
 * with its own code, and the table has the ratio within each round. Nothing is written then.
 *
 *     --rounds 5        how many
 *     --only start,…    these scripts alone; nothing is written then
 */
import { join, resolve } from 'node:path';
import { argumentsFor, refuse, wholeNumber } from '../scripts/arguments.mjs';
import { capture, Failed } from '../scripts/run.mjs';
import { root } from '../scripts/steps.mjs';
import { writeMeasured } from './measured.mjs';
import { keep, median, rounded } from './parts.mjs';
import { cases } from './stages-cases.mjs';
import { sectionOf } from './stages-page.mjs';

/** @typedef {import('./stages-round.mjs').Row} Row */

const values = argumentsFor(import.meta.filename, {
  rounds: { type: 'string' },
  against: { type: 'string' },
  only: { type: 'string', default: '' },
});
const rounds = wholeNumber(import.meta.filename, 'rounds', { given: values.rounds, otherwise: 5, from: 1, to: 100 });
const only = values.only === '' ? [] : values.only.split(',');
const strange = only.filter((name) => !Object.hasOwn(cases, name));
if (strange.length > 0) {
  refuse(import.meta.filename, `--only ${strange.join(',')}; allowed: ${Object.keys(cases).join(', ')}`);
}

/** @type {(readonly Row[])[]} */
const ours = [];
/** @type {(readonly Row[])[]} */
const theirs = [];
let redis = '';
for (let nth = 1; nth <= rounds; nth += 1) {
  if (values.against !== undefined) theirs.push(await round(resolve(values.against), nth, 'other checkout'));
  ours.push(await round(root, nth, 'this checkout'));
}

if (values.against !== undefined) {
  console.table(ours[0]?.flatMap((row, at) => compared(row, at) ?? []));
} else {
  const rows =
    ours[0]?.map((row, at) =>
      mediansOf(
        row,
        ours.flatMap((all) => all[at] ?? []),
      ),
    ) ?? [];
  if (only.length > 0) console.table(rows);
  else {
    const result = keep('stages', { what: `each script by batch and record size, medians of ${rounds} rounds`, rows });
    writeMeasured('stages', sectionOf({ ...result, redis, rounds, rows }));
  }
}

/**
 * @param {string} folder
 * @param {number} nth
 * @param {string} whose
 * @returns {Promise<readonly Row[]>}
 */
async function round(folder, nth, whose) {
  process.stderr.write(`round ${nth} of ${rounds}, ${whose} …\n`);
  const script = join(folder, 'bench', 'stages-round.mjs');
  const { code, output } = await capture(process.execPath, [script, ...only], {
    cwd: folder,
    kept: Number.POSITIVE_INFINITY,
  });
  if (code !== 0) throw new Failed(code, output);
  const { version, rows } = JSON.parse(output.slice(output.lastIndexOf('\n{') + 1));
  redis = version;
  return rows;
}

/** @param {Row} row @param {readonly Row[]} all the same case in each round @returns {Row} */
function mediansOf(row, all) {
  return {
    ...row,
    redisMicros: median(all.map(({ redisMicros }) => redisMicros)),
    nodeMicros: median(all.map(({ nodeMicros }) => nodeMicros)),
    medianMs: median(all.map(({ medianMs }) => medianMs)),
    p99Ms: median(all.map(({ p99Ms }) => p99Ms)),
    longestMs: median(all.map(({ longestMs }) => longestMs)),
  };
}

/** @param {Row} row @param {number} at @returns what both checkouts measure; undefined for a case that only one has */
function compared({ script, batch, bytes }, at) {
  const pairs = ours.flatMap((rows, nth) => {
    const mine = rows[at];
    const other = theirs[nth]?.find((one) => one.script === script && one.batch === batch && one.bytes === bytes);
    return mine && other ? [{ mine, other }] : [];
  });
  if (pairs.length === 0) return undefined;
  const ratio = (/** @type {'redisMicros' | 'nodeMicros'} */ field) =>
    rounded(median(pairs.map(({ mine, other }) => mine[field] / other[field])));
  return {
    script,
    batch,
    bytes,
    redisMicros: median(pairs.map(({ mine }) => mine.redisMicros)),
    otherMicros: median(pairs.map(({ other }) => other.redisMicros)),
    redisRatio: ratio('redisMicros'),
    nodeRatio: ratio('nodeMicros'),
  };
}
