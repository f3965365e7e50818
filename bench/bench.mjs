/**
 * What duestream costs, and how late jobs start: `npm run bench -- <case> [options]`; without a case it is `peers`.
 * `npm run bench -- --help` lists the cases, `npm run bench -- <case> --help` says what a case measures and which options it
 * has. Each case runs on a Redis of its own. Its figures are printed; without an option they are also written, with host
 * and versions, to `bench/results` and into the pages that show them (`npm run generate` makes these again);
 * with an option nothing is written, unless `--write` is one.
 */
import { argumentsFor, headerOf, refuse, wholeNumber } from '../scripts/arguments.mjs';
import { installPeers, prepare } from './parts.mjs';
import { keep, writePages } from './results.mjs';

/** @typedef {import('../scripts/arguments.mjs').Options} Options */
/** @typedef {import('./results.mjs').Result} Result */

/**
 * What a case is given.
 *
 * @typedef {object} Asked
 * @property {Readonly<Record<string, string | boolean | undefined>>} values of its options
 * @property {(flag: string, range: { otherwise: number, from: number, to: number }) => number} number
 * @property {(flag: string, names: readonly string[]) => readonly string[] | undefined} chosen of a list of names; undefined: not given
 * @property {(why: string) => never} refuse
 * @property {string} binary of redis-server
 * @property {boolean} writes
 */

const text = /** @type {const} */ ({ type: 'string' });
const flag = /** @type {const} */ ({ type: 'boolean', default: false });

/** The file of each is `bench/<name>.mjs`; its options. @type {Readonly<Record<string, Options>>} */
const CASES = {
  peers: { quick: flag, rounds: text, only: text, systems: text, against: text, keep: text, log: text },
  stages: { rounds: text, only: text, against: text },
  frozen: { package: text, jobs: text, rounds: text },
  idle: { seconds: text, profiles: text, partitions: text },
  lateness: { jobs: text, rounds: text },
  limits: { seconds: text, waiting: text, only: text, partitions: text },
  schedules: { only: text, rounds: text, schedules: text },
  ends: { only: text, rounds: text, ends: text },
  million: { jobs: text },
  simulate: { jobs: text },
  batch: { jobs: text, rounds: text },
  viewers: { rounds: text, jobs: text },
  ways: { rounds: text, seconds: text, rates: text },
  import: { rounds: text },
  pages: {},
  sharing: { seconds: text, rounds: text },
  hosts: { seconds: text, rounds: text },
  buckets: { hours: text },
  traces: { processes: text },
  remote: { polls: text, jobs: text, seconds: text, rounds: text },
  kept: { only: text, systems: text, seed: text },
};
const WITH_PEERS = ['peers', 'import', 'kept'];

const words = process.argv.slice(2);
const isNamed = words[0] !== undefined && !words[0].startsWith('-');
const name = (isNamed ? words[0] : undefined) ?? 'peers';
const own = CASES[name];
if (own === undefined) refuse(import.meta.filename, `${name}; allowed: ${Object.keys(CASES).join(', ')}`);
if (!isNamed && (words.includes('--help') || words.includes('-h'))) {
  const firsts = Object.keys(CASES).map((one) => `    ${one.padEnd(10)} ${firstOf(one)}`);
  process.stdout.write(`${headerOf(import.meta.filename)}\n\n${firsts.join('\n')}\n`);
  process.exit();
}
const file = fileOf(name);
const all = { ...own, write: flag };
/** @type {Readonly<Record<string, any>>} */
const { write, ...values } = argumentsFor(file, all, isNamed ? words.slice(1) : words);
const isWhole = Object.values(values).every((value) => value === undefined || value === false);
if (WITH_PEERS.includes(name)) await installPeers();
/** @type {Asked} */
const asked = {
  values,
  number: (which, range) => wholeNumber(file, which, { given: textOf(which), ...range }),
  chosen(which, names) {
    const given = textOf(which)?.split(',');
    for (const one of given ?? []) {
      if (!names.includes(one)) refuse(file, `--${which} ${one}; allowed: ${names.join(', ')}`);
    }
    return given;
  },
  refuse: (why) => refuse(file, why),
  binary: await prepare(),
  writes: isWhole || write === true,
};
// Only now: it imports what was built.
const { run } = await import(file);
/** @type {readonly Result[]} */
const results = await run(asked);
for (const { rows } of results) console.table(rows);
if (asked.writes) {
  for (const result of results) await keep(asked.binary, result);
  writePages(name);
}
// What measured may have left a connection open.
process.exit();

/** @param {string} which */
function textOf(which) {
  const value = values[which];
  return typeof value === 'string' ? value : undefined;
}

/** @param {string} which */
function fileOf(which) {
  return `${import.meta.dirname}/${which}.mjs`;
}

/** What a case measures, up to the command in its first sentence. @param {string} which */
function firstOf(which) {
  const [first = ''] = headerOf(fileOf(which)).split(/: `npm run|\.(?:\s|$)/);
  return first.replaceAll('\n', ' ').trim();
}
