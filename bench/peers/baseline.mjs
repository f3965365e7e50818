/**
 * What must not get worse from one version to the next. Rates move with the machine and are only reported; what is stable
 * is how many commands and scripts a job takes, and what it costs Redis in relation to the floor of the same run.
 */

/** @typedef {import('./page.mjs').Row} Row */

const OURS = ['duestream', 'embedded'];
const WORSE_BY = 1.1;
/** Below this a count is noise: heartbeats and looks of a quiet second. */
const LEAST = 0.02;

/** @param {{ now: readonly Row[], before: readonly Row[] }} runs @returns {readonly string[]} */
export function worse({ now, before }) {
  return now.flatMap((row) => {
    const old = before.find((one) => isSame(one, row));
    if (!OURS.includes(row.system) || !old) return [];
    const [left, right] = stableOf(row, now, old, before);
    if (left === undefined || right === undefined || left <= Math.max(right * WORSE_BY, right + LEAST)) return [];
    return [`${row.system}, ${row.workload}, ${row.figure}: ${rounded(left)} where it was ${rounded(right)}`];
  });
}

/** @param {Row} row @param {readonly Row[]} now @param {Row} old @param {readonly Row[]} before */
function stableOf(row, now, old, before) {
  if (row.figure === 'commands' || row.figure === 'scripts' || row.figure === 'bytesPerJob')
    return [row.median, old.median];
  if (row.figure !== 'serverMicros') return [];
  return [toFloor(row, now), toFloor(old, before)];
}

/** @param {Row} row @param {readonly Row[]} all */
function toFloor(row, all) {
  const floor = all.find((one) => one.system === 'floor' && one.workload === row.workload && one.figure === row.figure);
  return floor && floor.median > 0 ? row.median / floor.median : undefined;
}

/** @param {Row} a @param {Row} b */
const isSame = (a, b) => a.workload === b.workload && a.figure === b.figure && a.system === b.system;

/** @param {number} value */
const rounded = (value) => Math.round(value * 100) / 100;
