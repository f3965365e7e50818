/**
 * What traces cost a producer that has no SDK of OpenTelemetry: `npm run bench -- traces`. Beside the build stands a copy of it that does not
 * look for an SDK, and a second such copy, which shows how exact the figures are. All three make the same calls in turns, in one process,
 * and many processes do so. Commands and bytes per job are counted and have to be equal; CPU time is that of the process, and its
 * difference the median of the processes. A look for an SDK is measured alone besides, as it is too little to be seen in a call. Other
 * processes have an SDK, and make the calls with traces. Writes `bench/results/traces.json` and its section of
 * `docs/reference/measured.md`.
 *
 *     --processes 40   how many
 */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { capture, Failed } from '../scripts/run.mjs';
import { root } from '../scripts/steps.mjs';
import { median, rounded, withRedis } from './parts.mjs';

/** @typedef {import('./traces-process.mjs').Told} Told */
/** @typedef {import('./traces-process.mjs').Taken} Taken */

const BUILDS = ['now', 'without', 'again'];
/** What the code without traces has in place of what looks for an SDK. */
const NOTHING = {
  'kernel/telemetry.js': `export const registered = () => undefined;
    export const spanIds = () => undefined;`,
  'telemetry/spans.js': `export const beginSend = () => undefined;
    export const beginFires = () => undefined;
    export const beginStart = () => undefined;
    export const carrying = () => undefined;
    export const inside = (_span, act) => act();
    export const toldIn = (_span, events) => events;`,
};
/** Calls per job, each of which looks for an SDK. @type {Readonly<Record<string, number>>} */
const LOOKS = { 'one call after the other': 1, '100 calls at once': 1, 'lists of 100 jobs': 0.01 };
const TRACED = 4;
/** In percent of CPU. */
const MORE_MAX = 1;

/** @param {import('./bench.mjs').Asked} asked */
export async function run({ binary, number }) {
  const processes = number('processes', { otherwise: 40, from: 3, to: 1000 });
  const folder = mkdtempSync(join(root, '.cache', 'traces-'));
  try {
    for (const build of BUILDS) copy(join(folder, build), build);
    const { plain, traced } = await withRedis(binary, ({ socketPath }) => asked(processes, { folder, socketPath }));
    const lookNs = Math.round(median(plain.map((told) => told.lookNs)));
    const rows = Object.entries(LOOKS).map(([way, looks]) => rowOf(way, { plain, traced, lookNs: lookNs * looks }));
    const what = `${processes} processes, 60 rounds each, jobs of 200 bytes`;
    return [{ name: 'traces', what, lookNs, rows }];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** @param {string} folder where the dependencies are found @param {string} build */
function copy(folder, build) {
  for (const part of ['dist', 'lua/scripts.mjs', 'package.json']) {
    cpSync(join(root, part), join(folder, part), { recursive: true });
  }
  if (build === 'now') return;
  for (const [file, code] of Object.entries(NOTHING)) writeFileSync(join(folder, 'dist', file), code);
}

/** @param {number} processes @param {{ folder: string, socketPath: string }} where */
async function asked(processes, where) {
  const [plain, traced] = [/** @type {Told[]} */ ([]), /** @type {Told[]} */ ([])];
  for (let nth = 0; nth < processes; nth += 1) {
    // Which build is loaded first makes a difference, too.
    const first = nth % BUILDS.length;
    const builds = [...BUILDS.slice(first), ...BUILDS.slice(0, first)];
    plain.push(await told({ ...where, builds, isTraced: false }));
  }
  for (let nth = 0; nth < TRACED; nth += 1) traced.push(await told({ ...where, builds: ['now'], isTraced: true }));
  return { plain, traced };
}

/** @param {object} how @returns {Promise<Told>} */
async function told(how) {
  const file = join(import.meta.dirname, 'traces-process.mjs');
  const { code, output } = await capture(process.execPath, [file, JSON.stringify(how)], { cwd: root });
  if (code !== 0) throw new Failed(code, output);
  return JSON.parse(output);
}

/** @param {string} way @param {{ plain: readonly Told[], traced: readonly Told[], lookNs: number }} seen */
function rowOf(way, { plain, traced, lookNs }) {
  const of = (/** @type {readonly Told[]} */ from, /** @type {string} */ build, /** @type {keyof Taken} */ name) =>
    rounded(median(from.map(({ ways }) => ways[way]?.[build]?.[name] ?? Number.NaN)));
  const [without, now] = [of(plain, 'without', 'micros'), of(plain, 'now', 'micros')];
  const commands = [of(plain, 'without', 'commands'), of(plain, 'now', 'commands')];
  const bytes = [of(plain, 'without', 'bytes'), of(plain, 'now', 'bytes')];
  const more = moreIn(plain, way, 'now');
  const lookPercent = rounded(lookNs / (without * 10));
  const isSame = commands[0] === commands[1] && bytes[0] === bytes[1];
  if (!isSame || lookPercent > MORE_MAX || more.from > MORE_MAX) {
    process.stderr.write(`${way}: traces cost a producer without an SDK something\n`);
    process.exitCode = 1;
  }
  return {
    way,
    ...{ commandsWithout: commands[0], commands: commands[1], bytesWithout: bytes[0], bytes: bytes[1] },
    ...{ microsWithout: without, micros: now, lookPercent },
    ...{ morePercent: more.median, moreFrom: more.from, moreTo: more.to },
    noisePercent: moreIn(plain, way, 'again').median,
    ...{ bytesTraced: of(traced, 'now', 'bytes'), microsTraced: of(traced, 'now', 'micros') },
  };
}

/** How much more CPU time a build takes than that without traces, in percent: the median, and between which two it is with 95 % certainty. @param {readonly Told[]} plain @param {string} way @param {string} build */
function moreIn(plain, way, build) {
  const ratios = plain.map(({ ways }) => ways[way]?.[build]?.ratio ?? Number.NaN).sort((a, b) => a - b);
  const reach = Math.ceil(0.98 * Math.sqrt(ratios.length));
  const at = (/** @type {number} */ nth) =>
    rounded((Number(ratios[Math.min(Math.max(nth, 0), ratios.length - 1)]) - 1) * 100);
  const middle = ratios.length >> 1;
  return { median: at(middle), from: at(middle - reach), to: at(middle + reach) };
}
