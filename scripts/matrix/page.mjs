/**
 * What the matrix found → `docs/servers.json`, and from that alone the tables of `docs/reference/servers.md`. A server that
 * could not be had is "not run", with the reason.
 */
import { nameOf, TIERS, TOPOLOGIES, tiersOn } from './cells.mjs';

/** @typedef {import('./cells.mjs').Cell} Cell */
/** @typedef {{ readonly id: string, readonly why: string }} Missing */
/** @typedef {{ readonly duestream: string, readonly node: string, readonly system: string }} Made */
/** @typedef {{ made: Made, cells: readonly Cell[], missing: readonly Missing[] }} Findings */

const BEGIN = '<!-- made from docs/servers.json by npm run matrix -->';
const END = '<!-- end of what npm run matrix made -->';

/**
 * New cells take the place of old ones. What a server of another version did is no news of this one.
 *
 * @param {Findings} before
 * @param {Findings} now
 * @returns {Findings}
 */
export function merged(before, now) {
  const versions = new Map(now.cells.map(({ server, version }) => [server, version]));
  const places = new Set(now.cells.map(placeOf));
  const kept = before.cells.filter(
    (cell) => !places.has(placeOf(cell)) && (versions.get(cell.server) ?? cell.version) === cell.version,
  );
  const cells = [...kept, ...now.cells].sort((a, b) => order(a).localeCompare(order(b), 'en', { numeric: true }));
  return { ...now, cells };
}

/** @param {Cell} cell */
const placeOf = ({ server, topology, tier }) => `${server} ${topology} ${tier}`;

/** @param {Cell} cell */
function order({ server, topology, tier }) {
  const at = (/** @type {object} */ names, /** @type {string} */ name) => Object.keys(names).indexOf(name);
  return `${server} ${at(TOPOLOGIES, topology)} ${at(TIERS, tier)}`;
}

/**
 * @param {string} page
 * @param {Findings} findings
 */
export function withTables(page, findings) {
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (from < 0 || to < from) throw new Error(`docs/reference/servers.md has no "${BEGIN}" … "${END}"`);
  return `${page.slice(0, from)}${BEGIN}\n${tablesOf(findings)}\n${page.slice(to)}`;
}

/** @param {Findings} findings */
export function tablesOf({ made, cells, missing }) {
  const tables = Object.keys(TOPOLOGIES).flatMap((name) => tableOf(name, cells, missing));
  const failures = cells.flatMap((cell) => cell.failures.map((text) => `* ${nameOf(cell)}: ${text}`));
  return [
    `Made with duestream ${made.duestream} and Node.js ${made.node} on ${made.system}.`,
    '',
    ...tables,
    ...(failures.length === 0 ? [] : ['What failed:', '', ...failures, '']),
  ].join('\n');
}

/**
 * @param {string} topology
 * @param {readonly Cell[]} all
 * @param {readonly Missing[]} missing
 */
function tableOf(topology, all, missing) {
  const cells = all.filter((cell) => cell.topology === topology);
  const tiers = Object.entries(TIERS).filter(([name]) => tiersOn(topology).includes(name));
  const servers = [...new Map(all.map((cell) => [cell.server, cell])).values()];
  const row = (/** @type {readonly string[]} */ columns) => `| ${columns.join(' | ')} |`;
  return [
    `**On ${TOPOLOGIES[topology]?.title}**`,
    '',
    row(['server', 'from', ...tiers.map(([, { title }]) => title)]),
    row(['---', '---', ...tiers.map(() => '---')]),
    ...servers.map(({ server, version, from }) => {
      const of = (/** @type {string} */ tier) => cells.find((cell) => cell.server === server && cell.tier === tier);
      return row([`${titleOf(server)} ${version}`, from, ...tiers.map(([tier]) => saidOf(of(tier)))]);
    }),
    ...missing.map(({ id, why }) => row([titleOf(id), `not run: ${why}`, ...tiers.map(() => 'not run')])),
    '',
  ];
}

/** @param {Cell} [cell] */
function saidOf(cell) {
  if (cell === undefined) return 'not run';
  const { passed, failed, files, few, date } = cell;
  const count = failed === 0 ? `${passed} passed` : `**${failed} failed**, ${passed} passed`;
  return `${count}${few ? ` (${files} files of them)` : ''}, ${date}`;
}

/** `valkey-9.1` → `Valkey`. @param {string} id */
function titleOf(id) {
  const product = id.replace(/-\d[\d.]*$/, '');
  return product === id ? id : `${product.slice(0, 1).toUpperCase()}${product.slice(1)}`;
}
