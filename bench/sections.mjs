/** The parts of pages that show figures, made from `bench/results`. A test compares the committed pages with them. */
import { chartsOf, pageOf } from './peers/page.mjs';
import { besideOthers } from './peers/readme.mjs';

/** @typedef {import('./results.mjs').Kept} Kept */
/** @typedef {import('./results.mjs').Row} Row */
/** `mark`: the part of the page between two comments; left out: the whole file. @typedef {{ page: string, mark?: string, body: string }} Section */

/** By the case that measured. @type {Readonly<Record<string, (of: (name: string) => Kept | undefined) => readonly Section[]>>} */
export const sections = {
  peers(of) {
    const run = /** @type {import('./peers/page.mjs').Run | undefined} */ (of('peers'));
    if (!run) return [];
    return [
      { page: 'docs/benchmarks.md', body: pageOf(run) },
      { page: 'README.md', mark: 'bench: peers', body: besideOthers(run) },
      ...[...chartsOf(run)].map(([name, body]) => ({ page: `docs/charts/${name}`, body })),
    ];
  },
  lateness: (of) => measured('lateness', of('lateness'), latenessOf),
  stages: (of) => measured('stages', of('stages'), stagesOf),
  limits: (of) => measured('limits', of('limits'), (one) => limitsOf(one, of('limits-cluster'))),
  million: (of) => measured('million', of('million'), millionOf),
  simulate: (of) => measured('simulate', of('simulate'), simulateOf),
  batch: (of) => measured('batch', of('batch'), batchOf),
  sharing: (of) => measured('sharing', of('sharing'), sharingOf),
  hosts: (of) => measured('hosts', of('hosts'), hostsOf),
  viewers: (of) => measured('viewers', of('viewers'), viewersOf),
  pages: (of) => measured('pages', of('pages'), pagesOf),
  buckets: (of) => measured('buckets', of('buckets'), bucketsOf),
  traces: (of) => measured('traces', of('traces'), tracesOf),
  remote: (of) => measured('remote', of('remote'), remoteOf),
  kept: (of) => inPage('docs/comparison.md', 'kept', of('kept'), keptOf),
  schedules: (of) => [
    ...inPage('docs/explanation/schedules.md', 'schedules', of('schedules'), costOf),
    ...inPage('docs/explanation/schedules.md', 'schedules-minute', of('schedules-minute'), minuteOf),
  ],
};

/** @param {string} name @param {Kept | undefined} kept @param {(kept: Kept) => string} make */
const measured = (name, kept, make) => inPage('docs/reference/measured.md', name, kept, make);

/** @param {string} page @param {string} name @param {Kept | undefined} kept @param {(kept: Kept) => string} make @returns {readonly Section[]} */
const inPage = (page, name, kept, make) =>
  kept === undefined ? [] : [{ page, mark: `bench: ${name}`, body: `\n${make(kept).trim()}\n` }];

/** What is counted stands to the right. @param {readonly string[]} heads @param {readonly (readonly unknown[])[]} lines */
const table = (heads, lines) => [line(heads), `|---|${'--:|'.repeat(heads.length - 1)}`, ...lines.map(line)].join('\n');

/** @param {readonly unknown[]} cells */
const line = (cells) => `| ${cells.join(' | ')} |`;

/** @param {number} value */
const count = (value) => value.toLocaleString('en');

/** @param {Kept} kept */
const where = ({ host, node, date }) => `${host}, Node.js ${node.slice(1)}, ${date}`;

/** @param {Kept} kept */
function latenessOf({ what, rows, ...kept }) {
  const titles = { together: 'Mover and worker in one daemon', apart: 'Mover and worker apart' };
  const tables = Object.entries(titles).map(([way, title]) =>
    table(
      [title, 'p50 ms', 'p90 ms', 'p99 ms'],
      rows.filter((row) => row.way === way).map((row) => [row.title, row.p50Ms, row.p90Ms, row.p99Ms]),
    ),
  );
  const said = `Measured by \`npm run bench -- lateness\`: ${what}. ${where({ rows, ...kept })}.`;
  return ['## From the due time to the handler', said, ...tables].join('\n\n');
}

/** @param {Kept} kept */
function keptOf({ what, rows, systems, absent, seed, redis, ...kept }) {
  const shown = rows.map((row) => [
    ...[row.fault, row.system, count(row.taken), count(row.lost), count(row.again), count(row.twice), count(row.early)],
    `${(row.lateMaxMs / 1000).toFixed(1)} s`,
  ]);
  const hows = [...new Map(rows.map((row) => [row.fault, row.how]))];
  return [
    `Tried by \`npm run chaos -- --peers --seed ${seed}\`: ${what}. ${where({ rows, ...kept })}, ${redis}.`,
    table(
      ['what breaks', 'system', 'taken', 'lost', 'started again', 'effects twice', 'early', 'latest first start'],
      shown,
    ),
    hows.map(([fault, how]) => `* *${fault}*: ${how}.`).join('\n'),
    systems.map((/** @type {Row} */ one) => `* **${one.title}**: ${one.settings}.`).join('\n'),
    ...absent.map((/** @type {string} */ why) => `Not here: ${why}.`),
  ].join('\n\n');
}

/** @param {Kept} kept */
function bucketsOf({ what, rows, ...kept }) {
  const queues = rows.filter(({ hoursKb }) => hoursKb !== undefined);
  const errors = rows.filter(({ p99 }) => p99 !== undefined);
  const cost = rows.find(({ nsPerTime }) => nsPerTime !== undefined);
  return [
    '## What the history of a queue takes',
    `Measured by \`npm run bench -- buckets\`: ${what}. ${where({ rows, ...kept })}. Bytes are those of \`MEMORY USAGE\` for
\`K:hours\` (90 days) and \`K:days\` (13 months), of a whole queue.`,
    table(
      ['queue', 'hours, kB', 'days, kB', 'both, kB'],
      queues.map(({ spread, hoursKb, daysKb }) => [spread, hoursKb, daysKb, Number(hoursKb) + Number(daysKb)]),
    ),
    `A percentile of a month, told from its hours, is wrong by at most so much. Counting a time costs a worker ${cost?.nsPerTime ?? '?'} ns and no
command: counts are added once a minute.`,
    table(
      ['times', 'p50, %', 'p99, %', 'p99.9, %'],
      errors.map(({ spread, p50, p99, p999 }) => [spread, p50, p99, p999]),
    ),
  ].join('\n\n');
}

/** @param {Kept} kept */
function tracesOf({ what, lookNs, rows, ...kept }) {
  const percent = (/** @type {number} */ value) => `${value > 0 ? '+' : ''}${value} %`;
  const lines = rows.map((row) => [
    ...[row.way, `${row.commandsWithout} → ${row.commands}`, `${row.bytesWithout} → ${row.bytes}`],
    ...[`${row.microsWithout} → ${row.micros}`, `${row.lookPercent} %`],
    ...[`${percent(row.morePercent)} (${percent(row.moreFrom)} to ${percent(row.moreTo)})`, percent(row.noisePercent)],
    ...[row.bytesTraced, row.microsTraced],
  ]);
  return `## What traces cost a producer

Without an SDK of OpenTelemetry a call [looks for one](../how-to/trace.md), in ${lookNs} ns, and makes nothing. Measured by \`npm run bench -- traces\` beside the
same build without that look (without → as it is): ${what}. Commands are those of Redis, with those of scripts. A look is too little to be seen
in the CPU time of a call, so it is measured alone as well. Of the difference in CPU time the table has the median, and the two figures between which it is with 95 %
certainty; beside it stands the median of two builds that are equal, which shows how far chance goes. ${where({ rows, ...kept })}.

${table(
  [
    ...['', 'commands per job', 'bytes sent per job', 'CPU per job, µs', 'the look, of that CPU'],
    ...['difference in CPU', 'of equal builds', 'with an SDK: bytes', 'CPU, µs'],
  ],
  lines,
)}`;
}

/** @param {Kept} kept */
function remoteOf({ what, rows, ...kept }) {
  const full = rows.filter(({ kind }) => kind === 'full');
  const polls = rows.filter(({ kind }) => kind === 'polls');
  const most = (/** @type {unknown} */ value, /** @type {unknown} */ budget) =>
    value === undefined ? '–' : budget === undefined ? value : `${value} (${budget})`;
  const node = polls.map(({ nodeScripts }) => nodeScripts).join(' and ');
  return `## What workers over HTTP cost

[Workers in any language](../how-to/work-over-http.md): ${what}. ${where({ rows, ...kept })}. Counts hold anywhere; of the times only those of one line
compare with each other.

A full queue, emptied by one worker without limits of its own. In brackets: what it may take by design.

${table(
  ['a claim takes', 'requests per job', 'scripts per job', 'Redis per job, µs'],
  full.map((row) => [row.way, most(row.requests, row.requestsMax), most(row.scripts, row.scriptsMax), row.micros]),
)}

Claims that wait, each of a worker of its own. A job that comes alone is promoted, claimed, and settled with the next claim; the same job of a worker of
Node takes ${node} scripts. Lateness is from the due time to the answer, or to the handler of Node: medians of turns, and of the ratios of turns that
follow each other. On a busy machine a p99 says how busy it was. Scripts at rest are those of the daemon and its leader together, and by design at most 2 with 200 claims.

${table(
  [
    ...['claims that wait', 'scripts per second at rest', 'scripts per job, one by one', 'of 100 at once'],
    ...['p50, ms', 'Node, p50', 'ratio', 'p99, ms', 'Node, p99', 'ratio'],
  ],
  polls.map((row) => [
    ...[count(row.polls), row.restScriptsPerSecond, row.scripts, row.atOnceScripts],
    ...[row.p50Ms, row.nodeP50Ms, row.p50Times, row.p99Ms, row.nodeP99Ms, row.p99Times],
  ]),
)}`;
}

/** @param {Kept} kept */
function millionOf({ what, rows, ...kept }) {
  const lines = rows.map((row) => [
    ...[row.work, count(row.items), count(row.doneWhenKilled), row.seconds, count(row.perSecond), row.scriptsMs],
    `\`${row.longestCommand}\` ${row.longestMs}`,
  ]);
  return `## Work on a million jobs

Each command is killed with SIGKILL half-way and run again. After that, no item is left. Redis serves everybody else
between two calls, so the longest call is the longest that others wait.

${table(
  [
    ...['work', 'items', 'done when it was killed', 'seconds in all', 'per second', 'scripts, p99.9 ms'],
    'longest command, p99.9 ms',
  ],
  lines,
)}

${what}. ${where({ rows, ...kept })}.`;
}

/** @param {Kept} kept */
function simulateOf({ what, rows, ...kept }) {
  const lines = rows.map((row) => [row.kind, count(row.jobs), row.seconds, row.peakMiB]);
  return `## What a simulation takes

[\`duestream simulate\`](../how-to/what-if.md): ${what}. Seconds are those of the whole command. ${where({ rows, ...kept })}.

${table(['', 'jobs', 'seconds in all', 'memory of the command, MiB'], lines)}`;
}

/** @param {Kept} kept */
function batchOf({ what, rows, ...kept }) {
  const lines = rows.map((row) => [row.how, row.seconds, count(row.perSecond)]);
  return `## What batches save

[Batches](../how-to/batches.md) into a table of PostgreSQL: ${what}. ${where({ rows, ...kept })}.

${table(['', 'seconds', 'jobs per second'], lines)}`;
}

/** @param {Kept} kept */
function sharingOf({ what, rows, ...kept }) {
  const lines = rows.map((row) => [row.load, count(row.node), count(row.http), `${row.httpPercent} %`]);
  return `## Who gets the jobs: Node or HTTP

One worker of Node and one [over HTTP](../how-to/work-over-http.md), the client in Python, serve one queue: ${what}. ${where({ rows, ...kept })}.

${table(['jobs that come', 'started by Node', 'over HTTP', 'share over HTTP'], lines)}`;
}

/** @param {Kept} kept */
function hostsOf({ what, rows, ...kept }) {
  const lines = rows.map((row) => [row.hosts, row.p50, row.p99, row.p99s.join(', ')]);
  return `## What a silent host costs the others

A [target](../how-to/call-a-url.md#a-target-of-one-job), and jobs whose group is their host: ${what}. How late the requests of the others arrive, in ms. ${where({ rows, ...kept })}.

${table(['hosts', 'p50', 'p99', 'p99 of each round'], lines)}`;
}

/** @param {Kept} kept */
function viewersOf({ what, rows, ...kept }) {
  const lines = rows.map((row) => [
    ...[
      row.viewers,
      row.commandsPerSecond,
      `${row.daemonPercent} %`,
      `${row.redisPercent} %`,
      count(row.jobsPerSecond),
    ],
  ]);
  return `## What watching costs

A daemon with a worker in its process; viewers of the [dashboard](../how-to/dashboard.md) read \`/v1/live\`. Commands are those that Redis carries
out at rest, with those of scripts. ${what}. ${where({ rows, ...kept })}.

${table(['', 'Redis commands per second', 'CPU of the daemon', 'CPU of Redis', 'burst, jobs per second'], lines)}`;
}

/** @param {unknown} bytes */
const kilobytes = (bytes) => `${Math.round(Number(bytes) / 1000)} kB`;

/** @param {Kept} kept */
function pagesOf({ what, firstPaintMs, firstPageBytes, rows, slowestCommandsP999Us }) {
  const slowest = /** @type {Readonly<Record<string, number>>} */ (slowestCommandsP999Us);
  return `## How fast the pages are

In Chromium on the same machine as Redis and the daemon (two cores): ${what}. A list counts from the click to the
filled table.

${table(['page', 'time'], [['first paint', `${firstPaintMs} ms`], ...rows.map(({ page, ms }) => [page, `${ms} ms`])])}
${firstPageBytes === undefined ? '' : `\nThe page that is shown first takes ${kilobytes(firstPageBytes)} over the wire: compressed, with its first answers.\n`}
What took Redis longest meanwhile, by its own \`latencystats\` (p99.9):

${table(
  ['command', 'µs'],
  Object.entries(slowest).map(([command, micros]) => [command.replace('|', ' '), Math.round(micros)]),
)}`;
}

/** @param {Kept} kept */
function costOf(kept) {
  return plain(kept, [
    ...['schedules', 'at rest: commands/s', 'CPU of Redis, %', 'CPU of the daemon, %', 'one fire: Redis, µs'],
    ...['daemon, µs', 'bytes per schedule'],
  ]);
}

/** @param {Kept} kept */
function minuteOf(kept) {
  return plain(kept, [
    ...['schedules', 'worker processes', 'rounds', 'start of the handler: p50, ms', 'p99, ms', 'last, ms'],
    ...['p99 of the best round, ms', 'of the worst, ms', 'all fired, ms', 'Redis per job, µs', 'daemon per job, µs'],
  ]);
}

/** All columns as they were measured. @param {Kept} kept @param {readonly string[]} heads */
const plain = ({ what, rows, ...kept }, heads) =>
  `${what}, ${where({ rows, ...kept })}.\n\n${table(
    heads,
    rows.map((row) => Object.values(row).map(count)),
  )}`;

const SIZES = [
  [200, '200 B'],
  [4096, '4 KiB'],
  [262_144, '256 KiB'],
];

/** @param {Kept} kept */
function stagesOf({ redis, rounds, rows, ...kept }) {
  return `## What each script costs

Redis runs one script at a time, so the longest script is the longest that any other client waits for us. Measured on
${redis}, ${where({ rows, ...kept })}: medians of ${rounds} ${rounds === 1 ? 'round' : 'rounds'} of \`npm run bench -- stages\`,
which measures one script at a time. Absolute figures move from host to host, and where the machine does other work as well the p99 and p99.9 are those of Redis
waiting for a processor.

### The longest call

The p50 / p99 / p99.9 of one call inside Redis in milliseconds (\`INFO latencystats\` after \`CONFIG RESETSTAT\`), at the
largest batch that our own callers send at default settings: 1,000 calls each, of 256 KiB as many as 256 jobs make. A script
that meets large records stops after it has read 640 KiB (256 KiB of dead letters) and answers \`later\` for the rest; the caller asks again.

${table(['script', 'batch', ...SIZES.map(([, name]) => String(name))], longest(rows))}

\`check-members-all\` is the check of a whole small partition by \`doctor --keys\`. \`expire\`: all become dead letters. \`fire\`: a schedule that
has to catch up. \`xreadgroup\` is the command of Redis that gives a worker its entries. What one job costs at each batch size, in
Redis and in Node.js, also with tags, with 1,000 closed tags, and for \`debounce\`, is in [the results](../../bench/results/stages.json).
`;
}

/** One line per script: p50, p99 and p99.9 at its default batch. @param {readonly Row[]} rows */
function longest(rows) {
  const all = rows.filter(({ byDefault }) => byDefault);
  const shown = (/** @type {number} */ ms) => ms.toFixed(ms < 10 ? 2 : 0);
  return [...new Set(all.map(({ script }) => script))].map((script) => {
    const cells = SIZES.map(([bytes]) => {
      const row = all.find((one) => one.script === script && one.bytes === bytes);
      return row ? [row.medianMs, row.p99Ms, row.longestMs].map(shown).join(' / ') : '–';
    });
    return [`\`${script}\``, all.find((one) => one.script === script)?.batch, ...cells];
  });
}

/** @param {Kept} one with one partition @param {Kept | undefined} cluster with six, on a Redis Cluster */
function limitsOf(one, cluster) {
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

/** @param {string} what @param {Kept | undefined} measured */
function whereOf(what, measured) {
  return measured ? `${what}: ${where(measured)}.` : `${what}: not measured.`;
}

/** @param {Kept | undefined} measured @param {string} name */
function microsOf(measured, name) {
  return measured?.rows.find(({ row }) => row === name)?.redisMicrosPerJob;
}

/** @param {string | undefined} micros @param {string | number | undefined} plain */
function timesOf(micros = '–', plain = undefined) {
  return plain === undefined || micros === '–' ? micros : `${micros}, × ${(Number(micros) / Number(plain)).toFixed(2)}`;
}
