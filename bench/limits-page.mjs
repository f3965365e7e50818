/** What `bench:limits` writes into `docs/reference/measured.md`. */

/** @typedef {Readonly<Record<string, string | number>>} Row as `bench/limits.mjs` makes them, with its name in `row` */
/** @typedef {{ host: string, node: string, date: string, rows: readonly Row[] }} Measured */

/**
 * @param {Measured | undefined} one with one partition
 * @param {Measured | undefined} cluster with six, on a Redis Cluster
 * @returns {string} the section
 */
export function sectionOf(one, cluster) {
  /** @param {string} name @param {(row: Row) => string} cell */
  const cells = (name, cell) =>
    [one, cluster].map((measured) => {
      const row = measured?.rows.find((some) => some.row === name);
      return row ? cell(row) : '–';
    });
  /** @param {string} what @param {string} name @param {(row: Row) => string} cell */
  const line = (what, name, cell) => `| ${[what, ...cells(name, cell)].join(' | ')} |`;
  const rate = (/** @type {string} */ what, /** @type {string} */ name) =>
    line(what, name, ({ perSecond, aheadMs }) => `${perSecond} / ${aheadMs} ms`);
  const lock = (/** @type {string} */ what, /** @type {string} */ name) =>
    line(what, name, ({ starts, allMs }) => `${starts} / ${(Number(allMs) / 1000).toFixed(2)} s`);
  const tenants = (/** @type {number} */ count) =>
    line(`${count.toLocaleString('en')} tenants`, `tenants-${count}`, ({ last }) => String(last));
  const cost = (/** @type {string} */ what, /** @type {string} */ name) => {
    const [plain, inCluster] = [one, cluster].map((of) => microsOf(of, 'cost-none'));
    const [here, there] = cells(name, ({ redisMicrosPerJob }) => String(redisMicrosPerJob));
    return `| ${what} | ${timesOf(here, plain)} | ${timesOf(there, inCluster)} |`;
  };
  return `## What limits do and cost

One queue, a daemon that leads and two workers, all on one machine. ${whereOf('One partition', one)} ${whereOf('Six partitions on a Redis Cluster of three primaries', cluster)}
[The results](../../bench/results/limits.json). Absolute figures move from host to host; ratios hold. A dash: not measured yet.

### Rates

Starts per second without the first second / by how many milliseconds a job came before the rate and the burst alone would let
it, in the stretch of time that had the most: 50 are promised, and the id of an entry, by which this is counted, is as late as
its script is long.

${HEAD}
${[
  rate('200/s', 'rate-200'),
  rate('200/s among 100,000 jobs of another day, 5 % fail once', 'rate-200-among-many'),
  rate('7/s', 'rate-7'),
  rate('7/s, burst 20', 'rate-7-burst-20'),
  rate('2000/s', 'rate-2000'),
].join('\n')}

Each partition keeps its share of the rate.

### One at a time

Starts / time until 60 jobs of 20 ms of one account were done.

${HEAD}
${[lock('`perGroup: 1`', 'lock'), lock('a lock, and `Defer` of 100 ms', 'lock-by-hand')].join('\n')}

From the end of a job to the start of the next, p50 / p99, in a row of 1,000:

${HEAD}
${line('`perGroup: 1`', 'handover', (row) => `${row.endToNextStartP50Ms} / ${row.endToNextStartP99Ms} ms`)}

### Turns

One tenant has 100,000 jobs in line when each of the others gets one. So many jobs started until each of the others had
started:

${HEAD}
${[3, 100, 10_000].map(tenants).join('\n')}

Of 2,100 starts while all three priorities wait, high : normal : low had (16 : 4 : 1 is 1600 : 400 : 100):

${HEAD}
${line('`fair: true`', 'priorities', ({ high, normal, low }) => `${high} : ${normal} : ${low}`)}

Of 3,500 starts while three groups of weight 1, 2 and 4 wait, they had (that is 500 : 1000 : 2000):

${HEAD}
${line('`groups`', 'weights', ({ one, two, four }) => `${one} : ${two} : ${four}`)}

### Full groups

10,000 groups of one run a job each, and others wait behind them.

${HEAD}
${[
  line('jobs that wait', 'full', ({ waiting }) => Number(waiting).toLocaleString('en')),
  line('commands of Redis in a minute of rest', 'full', ({ idleCommandsPerMinute }) => String(idleCommandsPerMinute)),
  line('the same before they were there', 'full', ({ withoutThem }) => String(withoutThem)),
  line('p99.9 of scripts while they are lined up', 'full', (row) => `${row.linedUpScriptP999Ms} ms`),
  line('the longest of them', 'full', ({ linedUpSlowest }) => String(linedUpSlowest)),
  line('p99.9 of scripts while 1,000 groups a second hand over', 'full', (row) => `${row.handingOverScriptP999Ms} ms`),
  line('the longest of them', 'full', ({ handingOverSlowest }) => String(handingOverSlowest)),
].join('\n')}

### What a line costs

CPU time of Redis per job of a burst of 20,000 in microseconds, all of it, from the promotion to the end; and the ratio to a
queue that is not gated.

${HEAD}
${[
  cost('not gated', 'cost-none'),
  cost('`concurrency`, one line', 'cost-concurrency'),
  cost('`fair`, 1,000 groups', 'cost-fair'),
  cost('`perGroup: 1`, 1,000 groups', 'cost-per-group'),
].join('\n')}
`;
}

const HEAD = '| | one partition | six, on a Cluster |\n|---|---|---|';

/** @param {string} what @param {Measured | undefined} measured */
function whereOf(what, measured) {
  return measured
    ? `${what}: Node.js ${measured.node.slice(1)}, ${measured.host}, ${measured.date}.`
    : `${what}: not measured.`;
}

/** @param {Measured | undefined} measured @param {string} name */
function microsOf(measured, name) {
  return measured?.rows.find(({ row }) => row === name)?.redisMicrosPerJob;
}

/** @param {string | undefined} micros @param {string | number | undefined} plain */
function timesOf(micros = '–', plain = undefined) {
  return plain === undefined || micros === '–' ? micros : `${micros}, × ${(Number(micros) / Number(plain)).toFixed(2)}`;
}
