/**
 * What a campaign found → `docs/reliability.json`, and from that alone `docs/reliability.md` and the table of durability
 * in the README. Nothing in those is typed by hand that a run decides.
 */
import { FAULTS, notHere } from '../rows/not-here.mjs';

/** @typedef {import('../stage/run.mjs').Verdict} Verdict */
/** @typedef {Readonly<Record<string, string | number>>} Made when, with what and how it was made */
/**
 * @typedef {object} Result of one row
 * @property {string} id
 * @property {string} title
 * @property {string} how
 * @property {string} wanted
 * @property {string} mode
 * @property {boolean} passed
 * @property {number} jobs
 * @property {number} lost
 * @property {number} excused gone as well, but a declared loss covers them
 * @property {number} starts
 * @property {number} duplicates
 * @property {number} unexplained duplicates that only the row's own allowance covers
 * @property {number} extraLateMs
 * @property {number} seconds
 * @property {string} anomalies
 * @property {string} complaints
 * @property {string} notRun why this host cannot run it; empty: it was run
 */
/** @typedef {{ made: Made, rows: readonly Result[], controls: readonly Result[] }} Findings */

const BEGIN = '<!-- durability: made from docs/reliability.json by npm run chaos -- --report -->';
const END = '<!-- end of durability -->';

/** @param {Verdict} verdict @returns {Result} */
export function resultOf(verdict) {
  const { id, title, how, wanted, mode, passed, asked, excused, starts, duplicates, seconds } = verdict;
  const pathless = (/** @type {string} */ text) => text.replaceAll(/(?<=^|[\s'"(])\/[\w./-]+/g, 'its folder');
  return {
    id,
    title,
    how,
    wanted,
    mode,
    passed,
    jobs: asked,
    starts,
    duplicates,
    lost: verdict.anomalies.LOST ?? 0,
    excused,
    unexplained: verdict.anomalies['DUP-START'] ?? 0,
    extraLateMs: Math.max(0, verdict.lateSinceMs - verdict.lateBeforeMs),
    seconds,
    anomalies: Object.entries(verdict.anomalies)
      .map(([kind, count]) => `${count} ${kind}`)
      .join(', '),
    complaints: verdict.complaints.map(pathless).join('; '),
    notRun: verdict.notRun ?? '',
  };
}

/** @param {Findings} findings */
export function markdownOf({ made, rows: all, controls }) {
  const rows = all.filter(({ notRun }) => notRun === '');
  const broken = rows.filter(({ passed }) => !passed);
  const missed = controls.filter(({ passed }) => !passed);
  const open = openFaults(all);
  const notRun = all.length - rows.length;
  const missing = notRun === 0 ? '' : `, ${notRun} could not be run,`;
  return `${[
    '# What breaks, and what becomes of the jobs',
    '',
    '<!-- Made by `npm run chaos -- --all`. Edit test/chaos/judge/report.mjs instead. -->',
    '',
    'Real processes work on a private Redis; then something breaks, is repaired, and a judge that shares no code with the',
    'product compares what producers got as an answer, what handlers did and what Redis holds.',
    '',
    `**${rows.length - broken.length} of ${rows.length} rows held**${missing} and ${controls.length - missed.length} of ${controls.length} builds that are broken on purpose were caught.`,
    '',
    `* Made ${made.date} with duestream ${made.duestream}, Node.js ${made.node}, Redis ${made.redis}, on ${made.cores} cores.`,
    `* Again: \`npm run chaos -- --all --seed ${made.seed} --mode ${made.mode}\`; one row alone: \`npm run chaos -- --fault F2 --seed ${made.seed}\`.`,
    `* The work: ${made.producers} producers × ${Number(made.jobs) / Number(made.producers)} jobs, ${made.daemons} daemons, ${made.workers} workers × ${made.slots} slots, ${made.partitions} partitions, unless a`,
    `  row says otherwise. One job in ten is due at once, six in ten within ${seconds(made.nearMs)}, the rest within ${seconds(made.farMs)}; ${percent(made.throws)} throw`,
    `  once, ${percent(made.crashes)} end their worker once and ${percent(made.poison)} always.`,
    ...(made.again
      ? [`* Run once more on their own, after the row, the judge or the product had changed: ${made.again}.`]
      : []),
    '* The times of the product are shortened: a lease is 1.5 s, and the jobs of a dead worker are taken over after 3 s.',
    '',
    'How to read the table:',
    '',
    '* *lost*: jobs whose `schedule` call resolved, and that neither ended nor can ever run. The number in brackets counts jobs',
    '  that are gone as the row declares.',
    '* *again*: starts beyond one for each job and each failure. Their worker died or froze under them. The number in brackets',
    '  counts those that only the allowance of the row covers.',
    '* *later*: by how much the latest first start grew after the fault.',
    '',
    'A row holds when no job is lost, no job runs that nobody asked for, none is early, of two starts only one counts, nothing',
    'is stuck or left over, no process hoards files or memory, no error is uncaught, and what the row asks for besides is true.',
    '',
    '## Faults',
    '',
    '| | fault | how | asked for besides | mode | jobs | lost | again | later | verdict |',
    '|---|---|---|---|---|--:|--:|--:|--:|---|',
    ...rows.map(rowOf),
    '',
    '## Builds that are broken on purpose',
    '',
    'These builds have a known bug. A judge that does not catch them is worth nothing.',
    '',
    '| | broken how | found | verdict |',
    '|---|---|---|---|',
    ...controls.map(
      ({ id, title, anomalies, passed }) =>
        `| ${id} | ${cell(title)} | ${cell(anomalies)} | ${passed ? 'caught' : '**not caught**'} |`,
    ),
    '',
    '## Not here',
    '',
    '| | fault | why |',
    '|---|---|---|',
    ...all
      .filter(({ notRun }) => notRun !== '')
      .map(({ id, title, notRun }) => `| ${id} | ${cell(title)} | ${cell(notRun)} |`),
    ...notHere.map(({ id, title, reason }) => `| ${id} | ${cell(title)} | ${cell(reason)} |`),
    '',
    open.length === 0 ? 'Every other fault of the matrix is above.' : `Not in this run: ${open.join(', ')}.`,
  ].join('\n')}\n`;
}

/** @param {Result} result */
function rowOf({ id, title, how, wanted, mode, jobs, ...result }) {
  const { lost, excused, duplicates, unexplained, extraLateMs, passed, complaints } = result;
  const gone = excused > 0 ? `${lost} (${excused})` : `${lost}`;
  const again = unexplained > 0 ? `${duplicates} (${unexplained})` : `${duplicates}`;
  const verdict = passed ? 'held' : `**broken**: ${complaints}`;
  const cells = [id, title, how, wanted, mode, jobs, gone, again, duration(extraLateMs), verdict];
  return `| ${cells.map((value) => cell(String(value))).join(' | ')} |`;
}

/** Faults that are neither in a run nor out of it for a reason. @param {readonly Result[]} rows */
export function openFaults(rows) {
  const named = new Set([...rows, ...notHere].map(({ id }) => id));
  return Array.from({ length: FAULTS }, (_, at) => `F${at + 1}`).filter((id) => !named.has(id));
}

const everything = 'keeps everything';
const snapshot = 'keeps what the last snapshot has';
const lagging = 'may lose what the replica had not yet';
/** Nothing takes the place of one primary, and a replica has no disk in these rows. @param {string} text */
const said = (text) => ({ promise: text, ids: undefined });

/**
 * What a resolved `schedule()` survives: fault → the promise that its row checks. `within` says of jobs that are gone as
 * declared why the promise holds all the same.
 */
const DURABILITY = [
  {
    deployment: 'append-only file, `appendfsync always`',
    mode: 'always',
    cells: [
      { promise: everything, ids: ['F21'] },
      { promise: everything, ids: ['F23'] },
      { promise: everything, ids: ['F41'] },
      said('no replica'),
    ],
  },
  {
    deployment: 'append-only file, `appendfsync everysec`',
    mode: 'everysec',
    cells: [
      { promise: everything, ids: ['F22', 'F24'] },
      { promise: 'may lose the last 2 s', within: 'all within that window', ids: ['F23'] },
      { promise: 'may lose one call per connection', within: 'no more than that', ids: ['F41'] },
      said('no replica'),
    ],
  },
  {
    deployment: 'snapshots only',
    mode: 'none',
    cells: [
      { promise: snapshot, within: 'all newer than the snapshot', ids: ['F25'] },
      { promise: snapshot, ids: [] },
      { promise: snapshot, ids: [] },
      said('no replica'),
    ],
  },
  {
    deployment: "replicas (Sentinel, Cluster), `durability: 'memory'`",
    mode: 'none',
    cells: [
      { promise: lagging, within: 'all within that', ids: ['F91', 'F96', 'F47', 'F95'] },
      said('the same, while a replica lives'),
      said('as its primary'),
      { promise: lagging, within: 'all within that', ids: ['F49', 'F93', 'F50', 'F92'] },
    ],
  },
  {
    deployment: "replicas (Sentinel, Cluster), `durability: 'replicated'`",
    mode: 'replicated',
    cells: [
      { promise: everything, ids: ['F91', 'F96', 'F47', 'F95'] },
      said('the same, while a replica lives'),
      said('as its primary'),
      { promise: everything, ids: ['F49', 'F93', 'F50', 'F92'] },
    ],
  },
];

/** @param {Findings} findings */
export function durabilityOf({ rows }) {
  const head =
    '| Redis with … | its process is killed | the power fails | its disk is full | a replica takes its place |';
  const lines = DURABILITY.map(({ deployment, mode, cells }) => {
    const texts = cells.map(({ ids, ...cell }) => {
      if (ids === undefined) return cell.promise;
      const results = ids.map((id) => find(rows, id, mode));
      return durabilityCell(cell, results);
    });
    return `| ${[deployment, ...texts].join(' | ')} |`;
  });
  return [BEGIN, head, '|---|---|---|---|---|', ...lines, END].join('\n');
}

/** @param {readonly Result[]} rows @param {string} id @param {string} mode */
function find(rows, id, mode) {
  return rows.find((row) => row.id === id && row.mode === mode && row.notRun === '');
}

/**
 * @param {{ promise: string, within?: string }} cell
 * @param {readonly (Result | undefined)[]} results
 */
function durabilityCell({ promise, within = 'as declared' }, results) {
  const found = results.flatMap((result) => result ?? []);
  if (found.length === 0 || found.length < results.length) return `${promise} *(not measured)*`;
  // What a row declares as lost is lost as well: no such row shows that everything survives.
  const isShort = promise === everything && found.some(({ excused }) => excused > 0);
  const isBroken = isShort || found.some(({ lost }) => lost > 0);
  const evidence = found.map(({ id, lost, excused, jobs, passed }) => {
    const gone = `${id}: ${grouped(lost + excused)} of ${grouped(jobs)} lost`;
    const covered = excused > 0 && !isBroken ? `, ${within}` : '';
    return `${gone}${covered}${passed || isBroken ? '' : `, and ${id} broke otherwise`}`;
  });
  return [isBroken ? `**broken**: it should have been "${promise}"` : promise, ...evidence].join('; ');
}

/**
 * The README with its table of durability made anew.
 *
 * @param {string} readme
 * @param {Findings} findings
 */
export function withDurability(readme, findings) {
  const from = readme.indexOf(BEGIN);
  const to = readme.indexOf(END);
  if (from < 0 || to < from) throw new Error('the README has no place for the table of durability');
  return `${readme.slice(0, from)}${durabilityOf(findings)}${readme.slice(to + END.length)}`;
}

/** @param {number} ms */
function duration(ms) {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** @param {string | number | undefined} ms */
const seconds = (ms) => `${Number(ms) / 1000} s`;

/** @param {string | number | undefined} part */
const percent = (part) => `${Number((Number(part) * 100).toFixed(3))} %`;

/** @param {number} count */
const grouped = (count) => count.toLocaleString('en-US');

/** @param {string} text */
function cell(text) {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}
