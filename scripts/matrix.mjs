/**
 * The tests on other servers than the one that `npm test` runs: `npm run matrix [-- --server valkey-9.1 --tier scripts]`.
 * The servers come from the suites of this system's Debian mirror, into the cache of the repository; nothing is installed.
 *
 *     --server valkey-9.1,redis-8.0  only these servers (--only is the same)
 *     --tier scripts,flow            only these tests
 *     --topology cluster,sentinel    only put together like this
 *     --few    a handful of files of the longest tier          --json   one line of JSON per cell
 *     --fresh  nothing from a run that was interrupted         --list   what there is
 *     --amend  what was run takes its place in docs/servers.json and docs/reference/servers.md
 *
 * A run of everything writes these two without being told. Ends with 0 when no test failed, 1 when one did, 64 for wrong
 * arguments, 69 when there was nothing to run.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EmbeddedRedisError } from '../src/embedded/error.mjs';
import { argumentsFor } from './arguments.mjs';
import { nameOf, openKept, runCell, TIERS, TOPOLOGIES, tiersOn } from './matrix/cells.mjs';
import { merged, withTables } from './matrix/page.mjs';
import { serversHere } from './matrix/servers.mjs';
import { Failed } from './run.mjs';
import { build, dependencies, root } from './steps.mjs';

/** @typedef {import('./matrix/cells.mjs').Cell} Cell */
/** @typedef {import('./matrix/page.mjs').Missing} Missing */

const DATA = join(root, 'docs', 'servers.json');
const PAGE = join(root, 'docs', 'reference', 'servers.md');

process.exitCode = await main().catch((error) => {
  if (!(error instanceof Failed || error instanceof EmbeddedRedisError)) throw error;
  process.stderr.write(`${error.message}\n`);
  return error.exitCode;
});

async function main() {
  const options = argumentsOf();
  if (typeof options === 'string') return wrong(options);
  await dependencies();
  const { servers, missing } = await serversHere({ env: process.env, say });
  const unknown = options.only.filter((id) => !servers.some((server) => server.id === id));
  if (unknown.length > 0) return wrong(`no ${unknown.join(', ')}; there are ${servers.map(({ id }) => id).join(', ')}`);
  if (options.list) {
    for (const { id, version, from } of servers) process.stdout.write(`${id.padEnd(12)} ${version}, ${from}\n`);
    for (const { id, why } of missing) process.stdout.write(`${id.padEnd(12)} not run: ${why}\n`);
    return 0;
  }
  await build();
  const wanted = servers.filter(({ id }) => options.only.length === 0 || options.only.includes(id));
  const found = await runAll(wanted, options);
  if (options.amend) write({ cells: found.cells, missing: [...missing, ...found.missing] });
  return sum(found.cells, [...missing, ...found.missing]);
}

/**
 * @param {readonly import('./matrix/servers.mjs').Server[]} servers
 * @param {Exclude<ReturnType<typeof argumentsOf>, string>} options
 */
async function runAll(servers, { tiers, topologies, few, fresh, json }) {
  const { fingerprintOf } = await import('../test/chaos/stage/campaign.mjs');
  const code = fingerprintOf(root, ['src', 'lua', 'test']);
  const kept = openKept(join(root, '.cache', 'matrix', 'cells.jsonl'), { code, fresh });
  const places = servers.flatMap((server) =>
    chosenOf(topologies).flatMap((topology) =>
      tiers.filter((tier) => tiersOn(topology).includes(tier)).map((tier) => ({ server, topology, tier })),
    ),
  );
  const before = secondsBefore();
  /** @type {Cell[]} */
  const cells = [];
  /** @type {Map<string, Missing>} */
  const missing = new Map();
  for (const [at, { server, topology, tier }] of places.entries()) {
    if (missing.has(server.id)) continue;
    const binary = await server.obtain().catch((/** @type {unknown} */ error) => {
      missing.set(server.id, { id: server.id, why: error instanceof Error ? error.message : String(error) });
    });
    if (binary === undefined) continue;
    const { id, version, from } = server;
    const isFew = few && TIERS[tier]?.few !== undefined && !TOPOLOGIES[topology]?.flow;
    const task = { server: id, version, from, topology, tier, few: isFew, binary };
    const old = kept.get(task);
    const took = before.get(placeOf(task));
    const note = old ? ', done before' : took === undefined ? '' : `, up to ${took} s when it was run before`;
    say(`${at + 1} of ${places.length}: ${nameOf(task)}${note}`);
    const cell = old ?? (await runCell(task));
    if (!old) kept.keep(cell);
    cells.push(cell);
    tell(cell, json);
  }
  return { cells, missing: [...missing.values()] };
}

/** @param {Pick<Cell, 'topology' | 'tier' | 'few'>} cell */
function placeOf({ topology, tier, few }) {
  return `${topology} ${tier} ${few}`;
}

/** The longest that such a cell took on any server, as the committed results say. */
function secondsBefore() {
  /** @type {{ cells: readonly Cell[] }} */
  const { cells } = JSON.parse(readFileSync(DATA, 'utf8'));
  /** @type {Map<string, number>} */
  const longest = new Map();
  for (const cell of cells) longest.set(placeOf(cell), Math.max(cell.seconds, longest.get(placeOf(cell)) ?? 0));
  return longest;
}

/** @param {readonly string[]} named */
function chosenOf(named) {
  return Object.keys(TOPOLOGIES).filter((name) => named.length === 0 || named.includes(name));
}

/** @param {Cell} cell @param {boolean} json */
function tell(cell, json) {
  if (json) {
    process.stdout.write(`${JSON.stringify(cell)}\n`);
    return;
  }
  const { passed, failed, files, seconds, failures } = cell;
  const counts = `${passed} passed, ${failed} failed in ${files} files, ${seconds} s`;
  process.stdout.write(`${failed === 0 ? 'pass' : 'FAIL'} ${nameOf(cell)}: ${counts}\n`);
  for (const text of failures) process.stdout.write(`     ✗ ${text}\n`);
}

/** @param {Pick<import('./matrix/page.mjs').Findings, 'cells' | 'missing'>} found */
function write({ cells, missing }) {
  const made = {
    duestream: JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version,
    node: process.versions.node,
    system: `${process.platform} ${process.arch}`,
  };
  const findings = merged(JSON.parse(readFileSync(DATA, 'utf8')), { made, cells, missing });
  writeFileSync(DATA, `${JSON.stringify(findings, null, 2)}\n`);
  writeFileSync(PAGE, withTables(readFileSync(PAGE, 'utf8'), findings));
  say('docs/reference/servers.md says what docs/servers.json says');
}

/** @param {readonly Cell[]} cells @param {readonly Missing[]} missing */
function sum(cells, missing) {
  const red = cells.filter(({ failed }) => failed > 0);
  for (const { id, why } of missing) say(`${id} not run: ${why}`);
  say(`${cells.length - red.length} of ${cells.length} cells passed, ${missing.length} servers not run`);
  if (cells.length === 0) return 69;
  return red.length === 0 ? 0 : 1;
}

/** @param {string} text */
function wrong(text) {
  process.stderr.write(`matrix: ${text}\n`);
  return 64;
}

/** @param {string} line */
function say(line) {
  process.stderr.write(`matrix: ${line}\n`);
}

function argumentsOf() {
  const text = /** @type {const} */ ({ type: 'string', default: '' });
  const flag = /** @type {const} */ ({ type: 'boolean', default: false });
  const options = {
    server: text,
    only: text,
    tier: text,
    topology: text,
    few: flag,
    json: flag,
    list: flag,
    fresh: flag,
    amend: flag,
  };
  const { server, only, tier, topology, ...flags } = argumentsFor(import.meta.filename, options);
  const namesIn = (/** @type {string} */ list) => list.split(',').flatMap((name) => name.trim() || []);
  const tiers = namesIn(tier);
  const strange = tiers.filter((name) => !Object.hasOwn(TIERS, name));
  if (strange.length > 0) return `--tier ${strange.join(', ')}; allowed: ${Object.keys(TIERS).join(', ')}`;
  const topologies = namesIn(topology);
  const unknown = topologies.filter((name) => !Object.hasOwn(TOPOLOGIES, name));
  if (unknown.length > 0) return `--topology ${unknown.join(', ')}; allowed: ${Object.keys(TOPOLOGIES).join(', ')}`;
  const servers = [...new Set([...namesIn(server), ...namesIn(only)])];
  const whole = servers.length === 0 && tier === '' && topology === '' && !flags.few;
  const chosen = Object.keys(TIERS).filter((name) => tiers.length === 0 || tiers.includes(name));
  return { ...flags, only: servers, tiers: chosen, topologies, amend: flags.amend || whole };
}
