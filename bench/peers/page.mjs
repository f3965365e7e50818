/** Results → rows with medians and ratios, and rows → the page in the docs. */
import { chartOf } from './chart.mjs';
import { targetsIn } from './targets.mjs';

/** @typedef {import('../peers.mjs').Result} Result */

/**
 * @typedef {object} Row
 * @property {string} workload
 * @property {string} title
 * @property {string} figure
 * @property {string} system
 * @property {number} rounds in which it was measured
 * @property {number} median
 * @property {number} least
 * @property {number} most
 * @property {number | undefined} ratio to BullMQ of the same round, median over rounds
 */

/** What the ratios are to. */
export const PEER = 'BullMQ';

/** @param {{ results: readonly Result[], workloads: readonly { name: string, title: string }[] }} run @returns {readonly Row[]} */
export function report({ results, workloads }) {
  return workloads.flatMap(({ name: workload, title }) => {
    const own = results.filter((one) => one.workload === workload);
    const systems = [...new Set(own.map(({ system }) => system))].sort();
    // In the order of FIGURES: a system leaves out what it does not have.
    const figures = [...FIGURES.keys()].filter((figure) => own.some(({ figures: all }) => figure in all));
    return figures.flatMap((figure) =>
      systems.flatMap((system) => {
        const some = own.filter((one) => one.system === system && figure in one.figures);
        if (some.length === 0) return [];
        const values = some.map(({ figures: all }) => all[figure] ?? 0);
        const ratios = some.flatMap(({ round, figures: all }) => {
          const peer = own.find((one) => one.system === PEER && one.round === round)?.figures[figure];
          return peer ? [(all[figure] ?? 0) / peer] : [];
        });
        return [
          {
            workload,
            title,
            figure,
            system,
            rounds: values.length,
            median: rounded(median(values)),
            least: rounded(Math.min(...values)),
            most: rounded(Math.max(...values)),
            ratio: ratios.length > 0 ? rounded(median(ratios)) : undefined,
          },
        ];
      }),
    );
  });
}

/** How each figure is called, and in what it is counted. */
const FIGURES = new Map([
  ['allMicros', 'CPU of all processes per job, µs'],
  ['jobsPerSecond', 'jobs/s'],
  ['lateP50Ms', 'start lateness p50, ms'],
  ['lateP99Ms', 'start lateness p99, ms'],
  ['lateP999Ms', 'start lateness p99.9, ms'],
  ['lateMaxMs', 'start lateness, longest, ms'],
  ['serverMicros', 'CPU of the server per job, µs'],
  ['workerMicros', 'CPU of all worker processes per job, µs'],
  ['daemonMicros', 'CPU of all daemons per job, µs'],
  ['producerMicros', 'CPU of the producer per job, µs'],
  ['coldMicros', 'CPU of the producer per job in its first 15,000 calls, µs'],
  ['commands', 'Redis commands per job'],
  ['scripts', 'scripts per job'],
  ['commandsPerSecond', 'Redis commands per second'],
  ['serverMsPerSecond', 'CPU of the server, ms per second'],
  ['workerMsPerSecond', 'CPU of the worker process, ms per second'],
  ['daemonMsPerSecond', 'CPU of the daemon, ms per second'],
  ['bytesPerJob', 'bytes per job'],
]);

/** @typedef {Pick<import('./system.mjs').System, 'name' | 'title' | 'settings' | 'counts' | 'lingerMs'>} Described */

/**
 * @typedef {object} Run
 * @property {readonly Row[]} rows
 * @property {string} host
 * @property {string} node
 * @property {string} redis
 * @property {string} date
 * @property {number} rounds
 * @property {boolean} quick a fifth of the jobs
 * @property {readonly Described[]} systems
 * @property {readonly string[]} absent why a peer is not there
 */

/** @param {Run} run */
export function pageOf({ rows, host, node, redis, date, rounds, quick, systems: all, absent }) {
  const systems = all.filter(atOnce);
  const workloads = [...new Map(rows.map(({ workload, title }) => [workload, title]))];
  const linger = lingerTable({ rows, systems: all });
  const isShown = (/** @type {Row} */ { system }) => systems.some(({ name }) => name === system);
  return `${[
    '# Benchmarks',
    '<!-- Made by `npm run bench`. Edit bench/peers/page.mjs instead. -->',
    `Measured on ${host}, Node ${node}, ${redis}, on ${date}: ${measuredIn({ rounds, quick })}, with the least and the most in
brackets; idle and memory hardly move and are measured once. In each round every system does each workload in turn, with real processes and a Redis of its own, 200 bytes of
data, a handler that does nothing and a concurrency of 100. The ratio (×) is to BullMQ of the same round. A job that was
lost, started twice or started early would have ended the run. Jobs are scheduled before a burst or a steady minute begins,
so those figures hold from promotion to settlement.`,
    `Absolute figures move from machine to machine; ratios hold. Again: \`npm run bench\`. Whether a change made anything worse:
\`npm run bench -- --quick --against bench/baseline.json\`, which compares commands, scripts and bytes per job, and Redis CPU
per job in relation to the floor.`,
    '## Which processes a CPU figure counts',
    `duestream comes first as people deploy it: one daemon that promotes, and workers in processes of their own. Beside it is
the shape of one process, where the mover and the handlers share the process and its CPU figure. A peer without a daemon
promotes in its workers or in its server. So compare the sum of server, workers and daemon, or read each with this table.`,
    [
      '| system | server | all worker processes | daemon |',
      '|---|---|---|---|',
      ...systems.map(
        ({ title, counts }) => `| ${title} | ${counts.server} | ${counts.worker} | ${counts.daemon ?? 'none'} |`,
      ),
    ].join('\n'),
    ['| system | settings |', '|---|---|', ...systems.map(({ title, settings }) => `| ${title} | ${settings} |`)].join(
      '\n',
    ),
    ...absent.map((why) => `Not here: ${why}.`),
    '![How late jobs start](charts/lateness.svg)\n\n![Jobs per second](charts/rates.svg)\n\n![Memory](charts/memory.svg)',
    '## What we want, and what this run shows',
    `The same is wanted of both shapes, of duestream as people deploy it and of one process. A ratio (×) is to BullMQ. Schedules
and scripts are measured by \`npm run bench -- schedules\` and \`npm run bench -- stages\`.`,
    ...targetsIn(rows, FIGURES),
    '[Decision 12](decisions/0012-one-call-per-batch.md) has the profiles, and what else was tried.',
    ...(linger === undefined ? [] : ['## Linger', `${LINGER} ${linger}`]),
    ...workloads
      .filter(([workload]) => workload !== LINGER_ONLY)
      .map(([workload, title]) =>
        section(
          rows.filter((row) => row.workload === workload && isShown(row)),
          { title, systems },
        ),
      ),
  ].join('\n\n')}\n`;
}

/** Of a system of which due jobs do not wait for company. @param {Described} system */
const atOnce = ({ lingerMs = 0 }) => lingerMs === 0;

const LINGER_ONLY = 'steady50';
/** Workload → jobs per second. */
const LINGER_RATES = new Map([
  [LINGER_ONLY, '50'],
  ['steady500', '500'],
  ['steady2000', '2,000'],
]);
const LINGER = `[\`linger\`](explanation/lateness.md#linger-fewer-calls-per-job) says how long due jobs may wait for company, so that one call carries several. This table alone:
\`npm run bench -- --only linger\`.`;
const LINGER_FIGURES = ['serverMicros', 'workerMicros', 'daemonMicros', 'allMicros', 'commands'];

/** What it brings to let due jobs wait; undefined: not measured. @param {Pick<Run, 'rows' | 'systems'>} run */
function lingerTable({ rows, systems }) {
  const shown = systems.filter(({ name, lingerMs }) => lingerMs !== undefined || name === PEER);
  const lines = [...LINGER_RATES].flatMap(([workload, perSecond]) =>
    shown.flatMap(({ name, title }) => {
      const own = rows.filter((row) => row.workload === workload && row.system === name);
      const of = (/** @type {string} */ figure) => own.find((row) => row.figure === figure);
      const late = ['lateP50Ms', 'lateP99Ms', 'lateP999Ms', 'lateMaxMs'].map((figure) => of(figure)?.median ?? '–');
      const cost = LINGER_FIGURES.map((figure) => {
        const row = of(figure);
        if (!row) return '–';
        return `${number(row.median)}${row.ratio === undefined || name === PEER ? '' : `, ×${row.ratio}`}`;
      });
      if (own.length === 0) return [];
      return [`| ${perSecond} | ${title} | ${late.join(' / ')} | ${cost.join(' | ')} | ${own[0]?.rounds} |`];
    }),
  );
  if (lines.length === 0) return undefined;
  return `Lateness is p50 / p99 / p99.9 / longest in ms, CPU is in µs per job and is that of all processes of a kind, and the ratio (×) is to
BullMQ of the same round; medians of so many rounds:

${[
  '| jobs/s | | start lateness | server | workers | daemon | all of them | commands per job | rounds |',
  '|---:|---|---:|---:|---:|---:|---:|---:|---:|',
  ...lines,
].join('\n')}`;
}

/** @param {readonly Row[]} rows @param {{ title: string, systems: readonly Described[] }} options */
function section(rows, { title, systems: all }) {
  const systems = all.filter(({ name }) => rows.some(({ system }) => system === name));
  const figures = [...new Set(rows.map(({ figure }) => figure))];
  const cell = (/** @type {string} */ figure, /** @type {string} */ system) => {
    const row = rows.find((one) => one.figure === figure && one.system === system);
    if (!row) return '–';
    const ratio = row.ratio === undefined || system === PEER ? '' : `, ×${row.ratio}`;
    return `${number(row.median)} (${number(row.least)}–${number(row.most)})${ratio}`;
  };
  return [
    `## ${title.charAt(0).toUpperCase()}${title.slice(1)}`,
    '',
    `| | ${systems.map((system) => system.title).join(' | ')} |`,
    `|---|${systems.map(() => '---:').join('|')}|`,
    ...figures.map(
      (figure) => `| ${FIGURES.get(figure) ?? figure} | ${systems.map(({ name }) => cell(figure, name)).join(' | ')} |`,
    ),
  ].join('\n');
}

/** File in `docs/charts` → its picture. @param {{ rows: readonly Row[], systems: readonly Described[] }} made @returns {ReadonlyMap<string, string>} */
export function chartsOf({ rows, systems: all }) {
  const systems = all.filter(atOnce);
  const bars = (
    /** @type {string} */ workload,
    /** @type {string} */ figure,
    /** @type {'median' | 'ratio'} */ field,
  ) =>
    systems.flatMap(({ name, title }) => {
      const row = rows.find((one) => one.workload === workload && one.figure === figure && one.system === name);
      const value = row?.[field];
      return value === undefined ? [] : [{ name: title, value }];
    });
  const group = (/** @type {string} */ name, /** @type {string} */ workload, /** @type {string} */ figure) => ({
    name,
    bars: bars(workload, figure, 'median'),
  });
  const rates = ['burst', 'burst2', 'drain', 'bulk', 'one'].map((workload) => ({
    name: rows.find((row) => row.workload === workload)?.title ?? workload,
    bars: bars(workload, 'jobsPerSecond', 'ratio'),
  }));
  const lateness = [
    group('2,000 jobs/s, half of the jobs start within', 'steady2000', 'lateP50Ms'),
    group('2,000 jobs/s, 99 of 100 jobs start within', 'steady2000', 'lateP99Ms'),
    group('500 jobs/s, half of the jobs start within', 'steady500', 'lateP50Ms'),
    group('500 jobs/s, 99 of 100 jobs start within', 'steady500', 'lateP99Ms'),
  ];
  return new Map([
    ['lateness.svg', chartOf({ title: 'How late jobs start', unit: 'ms', groups: lateness })],
    ['rates.svg', chartOf({ title: 'Jobs per second, BullMQ = 1', unit: '×', groups: rates })],
    [
      'memory.svg',
      chartOf({
        title: 'Memory',
        unit: 'bytes',
        groups: [group('per pending job of 200 bytes', 'memory', 'bytesPerJob')],
      }),
    ],
  ]);
}

/** @param {{ rounds: number, quick: boolean }} run */
export const measuredIn = ({ rounds, quick }) =>
  `${rounds === 1 ? 'one round' : `medians of ${rounds} rounds`}${quick ? ' with a fifth of the jobs' : ''}`;

/** @param {number} value */
export const number = (value) => (value >= 100 ? Math.round(value).toLocaleString('en-US') : String(value));

/** @param {readonly number[]} values */
const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;

/** @param {number} value */
const rounded = (value) => Math.round(value * 100) / 100;
