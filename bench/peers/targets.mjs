/** What we want of a run, beside what it shows: met or missed, so that a miss cannot hide among many figures. */

/** @typedef {import('./page.mjs').Row} Row */

/** Of a ratio to the peer, or of the figure itself; at least so much, or at most. */
const TARGETS = /** @type {const} */ ([
  ['one', 'jobsPerSecond', 'ratio', 'least', 2.2],
  ['bulk', 'jobsPerSecond', 'ratio', 'least', 5],
  ['burst', 'jobsPerSecond', 'ratio', 'least', 3],
  ['burst2', 'jobsPerSecond', 'ratio', 'least', 3.5],
  ['drain', 'jobsPerSecond', 'ratio', 'least', 3],
  ['burst', 'redisMicros', 'ratio', 'most', 0.35],
  ['steady500', 'redisMicros', 'ratio', 'most', 1],
  ['steady2000', 'redisMicros', 'ratio', 'most', 0.7],
  ['burst', 'workerMicros', 'ratio', 'most', 0.35],
  ['steady500', 'workerMicros', 'ratio', 'most', 1.2],
  ['steady2000', 'workerMicros', 'ratio', 'most', 0.8],
  ['steady500', 'lateP50Ms', 'median', 'most', 1],
  ['steady500', 'lateP99Ms', 'median', 'most', 5],
  ['steady2000', 'lateP50Ms', 'median', 'most', 1],
  ['steady2000', 'lateP99Ms', 'median', 'most', 5],
  ['idle', 'commandsPerSecond', 'median', 'most', 15],
  ['memory', 'bytesPerJob', 'median', 'most', 430],
]);

/**
 * One row per target of those that the run has figures for.
 *
 * @param {readonly Row[]} rows @param {ReadonlyMap<string, string>} names of figures
 */
export function targetsIn(rows, names) {
  return TARGETS.flatMap(([workload, figure, of, bound, wanted]) => {
    const row = rows.find((one) => one.workload === workload && one.figure === figure && one.system === 'duestream');
    const is = row?.[of];
    if (!row || is === undefined) return [];
    const isMet = bound === 'least' ? is >= wanted : is <= wanted;
    const sign = of === 'ratio' ? '×' : '';
    const want = `${bound === 'least' ? '≥' : '≤'} ${sign}${wanted}`;
    return [
      `| ${row.title} | ${names.get(figure) ?? figure} | ${want} | ${sign}${is} | ${isMet ? 'met' : '**missed**'} |`,
    ];
  });
}
