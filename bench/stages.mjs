/**
 * What each script costs: `npm run bench -- stages`. For every script, batch size and record size the time inside Redis
 * (INFO commandstats and latencystats, one script at a time) and the CPU of the caller, as medians over rounds. Writes
 * `bench/results/stages.json` and its section of `docs/reference/measured.md`.
 *
 *     --rounds 5           how many
 *     --only start,…       these scripts alone
 *     --against <folder>   compares with another built checkout instead: the two take turns, each with its own code, and the
 *                          table has the ratio within each round
 */
import { join, resolve } from 'node:path';
import { capture, Failed } from '../scripts/run.mjs';
import { root } from '../scripts/steps.mjs';
import { median, rounded } from './parts.mjs';
import { cases } from './stages-cases.mjs';

/** @typedef {import('./stages-round.mjs').Row} Row */

/** @param {import('./bench.mjs').Asked} asked */
export async function run({ chosen, number, refuse, values, writes }) {
  const rounds = number('rounds', { otherwise: 5, from: 1, to: 100 });
  const only = chosen('only', Object.keys(cases)) ?? [];
  const other = typeof values.against === 'string' ? resolve(values.against) : undefined;
  if (other !== undefined && writes) refuse('--write with --against; a comparison is no page');
  /** @type {(readonly Row[])[]} */
  const ours = [];
  /** @type {(readonly Row[])[]} */
  const theirs = [];
  for (let nth = 1; nth <= rounds; nth += 1) {
    for (const [folder, all] of /** @type {const} */ ([
      [other, theirs],
      [root, ours],
    ])) {
      if (folder === undefined) continue;
      process.stderr.write(`bench: round ${nth} of ${rounds}, ${folder} …\n`);
      all.push(await roundOf(folder, only));
    }
  }
  const [first = []] = ours;
  const rows = first.flatMap((row, at) =>
    other === undefined
      ? mediansOf(
          row,
          ours.flatMap((all) => all[at] ?? []),
        )
      : (compared(
          row,
          ours.map((all) => all[at]),
          theirs,
        ) ?? []),
  );
  return [{ name: 'stages', what: `each script by batch and record size, medians of ${rounds} rounds`, rounds, rows }];
}

/**
 * @param {string} folder
 * @param {readonly string[]} only
 * @returns {Promise<readonly Row[]>}
 */
async function roundOf(folder, only) {
  const script = join(folder, 'bench', 'stages-round.mjs');
  const { code, output } = await capture(process.execPath, [script, ...only], {
    cwd: folder,
    kept: Number.POSITIVE_INFINITY,
  });
  if (code !== 0) throw new Failed(code, output);
  return JSON.parse(output.slice(output.lastIndexOf('\n{') + 1)).rows;
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

/**
 * What both checkouts measure; undefined for a case that only one has.
 *
 * @param {Row} row
 * @param {readonly (Row | undefined)[]} mines the same case in each round
 * @param {readonly (readonly Row[])[]} theirs
 */
function compared({ script, batch, bytes }, mines, theirs) {
  const pairs = mines.flatMap((mine, nth) => {
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
