/**
 * What `bench:beyond` measured → its section of `docs/reference/measured.md`, and what was wanted of it. Each part says when and how it was
 * made, for they can be measured one by one; a quick run says so.
 */

/** @typedef {{ date: string, host: string, node: string, redis: string, rounds: number, quick: boolean }} Made */
/** @typedef {Readonly<Record<string, string | number | boolean>>} Row */
/** @typedef {{ made: Made, rows: readonly Row[] }} Part */
/** @typedef {Readonly<Partial<Record<Name, Part>>>} Parts */
/** @typedef {'spread' | 'burst' | 'failing' | 'resharding'} Name */

/** The greatest share beside an equal one. */
const EVEN = 1.5;
/** Round trips of all daemons per second for each partition, while nothing is due. */
const IDLE = 2;

const TITLES = /** @type {const} */ ({
  spread: 'Shares, and what waiting costs',
  burst: 'A burst on three primaries',
  failing: 'While one of three primaries fails',
  resharding: 'While a primary comes and one goes',
});
/** @type {readonly Name[]} */
export const NAMES = ['spread', 'burst', 'failing', 'resharding'];

/**
 * What was wanted and is not so, in words.
 *
 * @param {Parts} parts
 * @returns {readonly string[]}
 */
export function missed({ spread, failing, resharding }) {
  const [shares] = spread?.rows ?? [];
  const [all] = (resharding?.rows ?? []).filter(({ phase }) => phase === 'all');
  return [
    ...(shares ? checksOf(shares).flatMap(({ what, met }) => (met ? [] : [`spread: ${what}`])) : []),
    ...(failing?.rows ?? []).flatMap((row) =>
      isFast(row) && isCalm(row)
        ? []
        : [`failing: ${titleOf(row)}: ${isFast(row) ? 'others were later' : 'too long away'}`],
    ),
    ...(all && number(all, 'lost') + number(all, 'again') + number(all, 'failed') > 0
      ? ['resharding: jobs were lost or ran twice, or calls failed']
      : []),
  ];
}

/** @param {Parts} parts */
export function sectionOf(parts) {
  const sections = NAMES.map((name) => {
    const part = parts[name];
    return [
      `### ${TITLES[name]}`,
      '',
      ...(part ? [saidOf(part.made, name), '', ...BODIES[name](part)] : ['Not measured yet.']),
    ];
  });
  return `${[
    '## Beyond one Redis',
    '',
    'What duestream does on a [Redis Cluster](../how-to/cluster.md) of three primaries. All servers and all processes are on one',
    'machine, so the rates say little about yours: they share its cores. The ratios and the counts do. Each process has its default settings.',
    '',
    ...sections.flatMap((lines) => [...lines, '']),
  ]
    .join('\n')
    .trimEnd()}\n`;
}

/** @param {Made} made @param {Name} name */
function saidOf({ date, host, node, redis, rounds, quick }, name) {
  const again = `npm run bench:beyond -- --only ${name}`;
  const by = `Measured on ${date} with \`${again}${quick ? ' --quick' : ''}\`: ${host}, Node.js ${node}, ${redis}, ${rounds} ${rounds === 1 ? 'round' : 'rounds'}.`;
  return quick
    ? `${by} **This was a quick run: fewer jobs, shorter times, on a machine that did other work as well. It shows that the measurement works, not how fast anything is.**`
    : by;
}

/** @type {Readonly<Record<Name, (part: Part) => readonly string[]>>} */
const BODIES = { spread: spreadOf, burst: burstOf, failing: failingOf, resharding: reshardingOf };

/** @param {Row} row */
function checksOf(row) {
  const ratio = (/** @type {string} */ name) => number(row, name);
  return [
    { what: 'partitions led by a daemon', met: ratio('leadUnevenness') <= EVEN },
    { what: 'partitions that a worker is called for', met: ratio('readUnevenness') <= EVEN },
    { what: 'round trips of idle daemons', met: ratio('daemonTripsPerPartition') <= IDLE },
  ];
}

/** @param {Part} part */
function spreadOf({ rows }) {
  const [row] = rows;
  if (!row) return [];
  const of = (/** @type {string} */ name) => shown(number(row, name));
  const share = (/** @type {string} */ name) =>
    `${of(`${name}Least`)} to ${of(`${name}Most`)} | ${of(`${name}Unevenness`)}`;
  return [
    `${of('partitions')} partitions of one queue on ${of('primaries')} primaries, ${of('daemons')} daemons, and ${of('workers')} workers in ${of('processes')} processes.`,
    '',
    '| | each has | most, beside an equal share | wanted |',
    '|---|---|--:|--:|',
    `| partitions that a daemon leads | ${share('lead')} | <= ${EVEN} |`,
    `| partitions that a worker is called for | ${share('read')} | <= ${EVEN} |`,
    `| jobs that a worker ran, of 6,400 | ${share('ran')} | |`,
    '',
    `Every partition calls at least ${of('callersLeast')} workers.`,
    '',
    '| while nothing is due | | wanted |',
    '|---|--:|--:|',
    `| round trips of all daemons, per second and led partition | ${of('daemonTripsPerPartition')} | <= ${IDLE} |`,
    `| commands in them | ${of('daemonCommandsPerPartition')} | |`,
    `| round trips of a worker, per second | ${of('tripsPerWorker')} | |`,
    `| commands in them | ${of('commandsPerWorker')} | |`,
    `| commands that Redis carries out, with those of scripts, per second | ${of('commandsPerSecond')} | |`,
    `| CPU of all primaries | ${of('redisPercent')} % of a core | |`,
    `| connections of a daemon | ${of('daemonSockets')} | |`,
    `| connections of a process with five workers | ${of('workerProcessSockets')} | |`,
    '',
    'A round trip is what a process writes to one connection in one turn of its event loop; it is answered together.',
  ];
}

/** @param {Part} part */
function burstOf({ rows }) {
  return [
    `${shown(number(rows[0] ?? {}, 'jobs'))} jobs of 200 bytes that are due at one instant, and one process with mover and worker. The settings take turns; a`,
    'ratio compares rates of one round. Medians, with the least and the most.',
    '',
    '| | jobs/s | beside the first | Redis CPU per job | Redis commands per job |',
    '|---|--:|--:|--:|--:|',
    ...rows.map((row) => {
      const of = (/** @type {string} */ name) => shown(number(row, name));
      const rate = `${of('jobsPerSecond')} (${of('least')}–${of('most')})`;
      const ratio = `${of('ratio')} (${of('ratioLeast')}–${of('ratioMost')})`;
      return `| ${row.title} | ${rate} | ${ratio} | ${of('redisMicros')} µs | ${of('commands')} |`;
    }),
  ];
}

/** @param {Part} part */
function failingOf({ rows }) {
  return [
    'Three primaries with a replica each, `cluster-node-timeout` 2 s, `cluster-require-full-coverage no`, two daemons, four workers in two',
    'processes, and jobs of 12 partitions that come due all the time. One primary is killed or frozen. *Others*: jobs of the',
    'partitions on the other two. *Meanwhile*: due until the last partition of the failed one went on.',
    '',
    '| what failed | others, p50 before | meanwhile | in all after | allowed | p99 before | meanwhile | its own went on after | allowed |',
    '|---|--:|--:|--:|--:|--:|--:|--:|--:|',
    ...rows.map((row) => {
      const ms = (/** @type {string} */ name) => `${shown(number(row, name))} ms`;
      const late = ['beforeP50Ms', 'duringP50Ms', 'minuteP50Ms', 'allowedP50Ms', 'beforeP99Ms', 'duringP99Ms'].map(ms);
      return `| ${[titleOf(row), ...late, ms('resumedMs'), ms('allowedMs')].join(' | ')} |`;
    }),
    '',
    'Allowed are a p50 that is a fifth or 5 ms higher, whichever is more, and the node timeout and 3 s until the partitions of the',
    'failed primary go on. With `cluster-require-full-coverage yes`, the default of Redis, the other primaries refuse work as well until a',
    'replica has taken over.',
  ];
}

/** @param {Part} part */
function reshardingOf({ rows }) {
  const all = rows.find(({ phase }) => phase === 'all') ?? {};
  const of = (/** @type {string} */ name) => shown(number(all, name));
  return [
    `${of('perSecond')} jobs per second are scheduled and run, of 24 partitions. A fourth primary gets a quarter of all slots; then the one with`,
    'the control keys gives all of its slots away and ends.',
    '',
    `**${of('jobs')} jobs in ${of('calls')} calls: ${of('lost')} lost, ${of('again')} started more than once, ${of('failed')} calls failed.**`,
    '',
    '| | seconds | slots | keys | jobs due | late, p50 | p99 | most |',
    '|---|--:|--:|--:|--:|--:|--:|--:|',
    ...rows.map((row) => {
      const cells = ['seconds', 'slots', 'keys', 'jobs'].map((name) => shown(number(row, name)));
      const late = ['p50Ms', 'p99Ms', 'maxMs'].map((name) => `${shown(number(row, name))} ms`);
      return `| ${[row.phase, ...cells, ...late].join(' | ')} |`;
    }),
  ];
}

/** @param {Row} row */
const titleOf = ({ signal, control }) => `a primary, by ${signal}${control ? ', with the control keys' : ''}`;

/** @param {Row} row */
const isFast = (row) => number(row, 'resumedMs') <= number(row, 'allowedMs');

/** @param {Row} row */
const isCalm = (row) => number(row, 'duringP50Ms') <= number(row, 'allowedP50Ms');

/** @param {Row} row @param {string} name */
const number = (row, name) => Number(row[name] ?? 0);

/** @param {number} value */
function shown(value) {
  if (Number.isInteger(value) || Math.abs(value) >= 100) return Math.round(value).toLocaleString('en-US');
  return String(Math.round(value * 100) / 100);
}
