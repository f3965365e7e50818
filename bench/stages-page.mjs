/** What `bench:stages` writes into `docs/reference/measured.md`. */

/** @typedef {import('./stages-round.mjs').Row} Row */

const SIZES = [
  [200, '200 B'],
  [4096, '4 KiB'],
  [262_144, '256 KiB'],
];

/**
 * @param {{ host: string, node: string, redis: string, date: string, rounds: number, rows: readonly Row[] }} measured
 * @returns {string} the section
 */
export function sectionOf({ host, node, redis, date, rounds, rows }) {
  return `## What each script costs

Redis runs one script at a time, so the longest script is the longest that any other client waits for us. Measured on
Redis ${redis}, Node.js ${node.slice(1)}, ${host}, ${date}: medians of ${rounds} ${rounds === 1 ? 'round' : 'rounds'} of \`npm run bench:stages\`,
which measures one script at a time. Absolute figures move from host to host, and where the machine does other work as well the p99 and p99.9 are those of Redis
waiting for a processor.

### The longest call

The p50 / p99 / p99.9 of one call inside Redis in milliseconds (\`INFO latencystats\` after \`CONFIG RESETSTAT\`), at the
largest batch that our own callers send at default settings: 1,000 calls each, of 256 KiB as many as 256 jobs make. A script
that meets large records stops after it has read 640 KiB (256 KiB of dead letters) and answers \`later\` for the rest; the caller asks again.

| script | batch | ${SIZES.map(([, name]) => name).join(' | ')} |
|---|--:|${SIZES.map(() => '--:').join('|')}|
${longest(rows).join('\n')}

\`check-members-all\` is the check of a whole small partition by \`fsck\`. \`expire\`: all become dead letters. \`fire\`: a schedule that
has to catch up. \`xreadgroup\` is the command of Redis that gives a worker its entries. What one job costs at each batch size, in
Redis and in Node.js, also with tags, with 1,000 closed tags, and for \`debounce\`, is in [the results](../../bench/results/stages.json).
`;
}

/** @param {readonly Row[]} rows */
function longest(rows) {
  return lines(
    rows.filter(({ byDefault }) => byDefault),
    ({ medianMs, p99Ms, longestMs }) => [medianMs, p99Ms, longestMs].map(shown).join(' / '),
  );
}

/** @param {number} ms */
const shown = (ms) => ms.toFixed(ms < 10 ? 2 : 0);

/**
 * One line per script and batch.
 *
 * @param {readonly Row[]} rows
 * @param {(row: Row) => string} cell
 */
function lines(rows, cell) {
  const scripts = [...new Set(rows.map(({ script }) => script))];
  const inOrder = rows.toSorted((a, b) => scripts.indexOf(a.script) - scripts.indexOf(b.script) || a.batch - b.batch);
  const keys = [...new Set(inOrder.map(({ script, batch }) => `${script} ${batch}`))];
  return keys.map((key) => {
    const [script, batch] = key.split(' ');
    const cells = SIZES.map(([bytes]) => {
      const row = rows.find((one) => one.script === script && String(one.batch) === batch && one.bytes === bytes);
      return row ? cell(row) : '–';
    });
    return `| \`${script}\` | ${batch} | ${cells.join(' | ')} |`;
  });
}
