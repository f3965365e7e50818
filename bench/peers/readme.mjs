/** The comparison in the README: a few rows of the results, the best of each in bold, whoever has it. */

import { measuredIn, number } from './page.mjs';

/** @typedef {import('./page.mjs').Row} Row */
/** @typedef {import('./page.mjs').Described} Described */

const SYSTEMS = ['duestream', 'duestream-20', 'BullMQ', 'bee-queue', 'bunqueue'];

/** Workload, its figures, whether most is best, and what the row is called. */
const ROWS = /** @type {const} */ ([
  ['steady500', ['allMicros'], false, '500 jobs/s: CPU of all three per job, µs'],
  ['steady500', ['serverMicros'], false, '500 jobs/s: CPU of the server per job, µs'],
  ['steady500', ['lateP50Ms', 'lateP99Ms', 'lateP999Ms'], false, '500 jobs/s: start lateness, p50 · p99 · p99.9, ms'],
  ['steady2000', ['allMicros'], false, '2,000 jobs/s: CPU of all three per job, µs'],
  [
    'steady2000',
    ['lateP50Ms', 'lateP99Ms', 'lateP999Ms'],
    false,
    '2,000 jobs/s: start lateness, p50 · p99 · p99.9, ms',
  ],
  ['burst', ['jobsPerSecond'], true, 'run what is due at once, 1 worker process, jobs/s'],
  ['burst2', ['jobsPerSecond'], true, 'run what is due at once, 2 worker processes, jobs/s'],
  ['one', ['jobsPerSecond'], true, 'schedule one by one, jobs/s'],
  ['bulk', ['jobsPerSecond'], true, 'schedule in bulk, jobs/s'],
  ['memory', ['bytesPerJob'], false, 'bytes per pending job'],
  ['idle', ['commandsPerSecond'], false, 'Redis commands per second, idle'],
]);

/** @param {import('./page.mjs').Run} run */
export function besideOthers({ rows, systems, rounds, quick }) {
  const shown = SYSTEMS.flatMap((name) => systems.find((system) => system.name === name) ?? []);
  const lines = ROWS.map(([workload, figures, mostIsBest, title]) => {
    const cells = shown.map(({ name: system }) =>
      figures.flatMap((figure) => rows.find((row) => isOf(row, { workload, figure, system }))?.median ?? []),
    );
    // Of several figures, p50 to p99.9, the last says who is punctual.
    const lasts = cells.flatMap((cell) => cell.at(-1) ?? []);
    const best = mostIsBest ? Math.max(...lasts) : Math.min(...lasts);
    const texts = cells.map((cell) => {
      const text = cell.length === 0 ? '–' : cell.map(number).join(' · ');
      return cell.at(-1) === best && lasts.length > 1 ? `**${text}**` : text;
    });
    return `| ${title} | ${texts.join(' | ')} |`;
  });
  return [
    `One machine of 2 cores, ${measuredIn({ rounds, quick })}, 200 bytes of data, handlers that do nothing, the best of each row in bold
([all figures, settings and misses](docs/benchmarks.md); \`npm run bench\`):`,
    '',
    `| | ${shown.map(titled).join(' | ')} |`,
    `|---|${shown.map(() => '---:').join('|')}|`,
    ...lines,
    '',
    `All three are server, workers and daemon: duestream has the daemon in a process of its own, as people deploy it. BullMQ and bee-queue promote in their
workers, and bunqueue in its server, which takes the place of Redis. So compare the sum.`,
  ].join('\n');
}

/** With the version of a peer, which its settings begin with. @param {Described} system */
function titled({ title, settings }) {
  const [, version] = /^\S+ (\d+\.\d+)\.\d/.exec(settings) ?? [];
  return version === undefined ? title : `${title.replace(/,.*/, '')} ${version}${/,.*/.exec(title)?.[0] ?? ''}`;
}

/** @param {Row} row @param {{ workload: string, figure: string, system: string }} wanted */
const isOf = (row, { workload, figure, system }) =>
  row.workload === workload && row.figure === figure && row.system === system;
