/** The report as lines of plain ASCII. Pure. */

/** @typedef {import('./report.mjs').Report} Report */
/** @typedef {import('./report.mjs').Lateness} Lateness */

const BUCKETS_MS = [2, 5, 10, 20, 50, 100, 250, 500, 1000, 2000, 4000, 8000];
const BAR_MAX = 36;

/**
 * @param {Report} report
 * @returns {readonly string[]}
 */
export function reportLines({ ok, counts, checks, lateness }) {
  const { scheduled, sent, cancelled, retried, dead, conflicts, duplicates, runningAtKill, early, lost } = counts;
  return [
    'What the mail server says',
    '',
    `  scheduled ${pad(scheduled)}    sent ${pad(sent)}    cancelled ${pad(cancelled)}    dead letters ${pad(dead)}`,
    `  retried   ${pad(retried)}    lost ${pad(lost)}    early     ${pad(early)}    duplicates   ${pad(duplicates)}   (${runningAtKill} jobs ran at the kill)`,
    `  locked accounts met ${conflicts} times: those jobs were put aside without using an attempt`,
    '',
    'How late the mails were (last byte at the mail server, minus due time)',
    '',
    '                               mails      p50      p99      max',
    latenessLine('all is well', lateness.healthy),
    latenessLine('due while there was no leader', lateness.failover),
    latenessLine('held by the killed worker', lateness.takenOver),
    '',
    ...histogram([...lateness.healthy.all], [...lateness.failover.all, ...lateness.takenOver.all]),
    '',
    'Checks',
    '',
    ...checks.map((check) => `  ${check.ok ? '[ok]' : '[XX]'} ${check.name.padEnd(40)} ${check.detail}`),
    '',
    ok ? 'All checks passed.' : `${checks.filter((check) => !check.ok).length} of ${checks.length} checks FAILED.`,
  ];
}

/**
 * @param {string} label
 * @param {Lateness} lateness
 */
function latenessLine(label, { count, p50, p99, max }) {
  if (count === 0) return `  ${label.padEnd(29)}${'0'.padStart(5)}        -        -        -`;
  const cells = [p50, p99, max].map((value) => milliseconds(value).padStart(9)).join('');
  return `  ${label.padEnd(29)}${String(count).padStart(5)}${cells}`;
}

/**
 * `#` for the healthy ones, `x` for those of the fail-over; each mark stands for the same number of mails.
 *
 * @param {readonly number[]} healthy
 * @param {readonly number[]} failover
 */
function histogram(healthy, failover) {
  const edges = [...BUCKETS_MS, Number.POSITIVE_INFINITY];
  /** @param {readonly number[]} values */
  const tally = (values) =>
    edges.map(
      (edge, at) => values.filter((value) => value <= edge && (at === 0 || value > (edges[at - 1] ?? 0))).length,
    );
  const [well, ill] = [tally(healthy), tally(failover)];
  const rows = edges.map((edge, at) => ({ edge, well: well[at] ?? 0, ill: ill[at] ?? 0 }));
  const last = rows.findLastIndex((row) => row.well + row.ill > 0);
  const unit = Math.max(1, Math.ceil(Math.max(...rows.map((row) => row.well + row.ill)) / BAR_MAX));
  const bars = rows.slice(0, last + 1).map((row) => {
    const label = Number.isFinite(row.edge) ? `<= ${milliseconds(row.edge)}` : 'later';
    const bar = '#'.repeat(Math.ceil(row.well / unit)) + 'x'.repeat(Math.ceil(row.ill / unit));
    return `  ${label.padStart(10)} ${String(row.well + row.ill).padStart(5)} ${bar}`;
  });
  return [
    ...bars,
    `             # as usual, x around the kill; one mark is up to ${unit} ${unit === 1 ? 'mail' : 'mails'}`,
    '             a mail that needs a new SMTP connection waits 100 ms for its greeting',
  ];
}

/** @param {number} ms */
export function milliseconds(ms) {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(ms % 1000 === 0 ? 0 : 1)} s`;
}

/** @param {number} [count] */
const pad = (count = 0) => String(count).padStart(4);
