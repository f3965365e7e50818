/**
 * One row of the matrix, from an empty Redis to a verdict: start everything, let the work begin, break something at a
 * moment that the seed decides, repair it, wait until nothing is left to do, and judge.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { createClocks } from '../faults/clocks.mjs';
import { openLine } from '../faults/line.mjs';
import { check } from '../judge/checker.mjs';
import { flawsOf } from '../judge/damage.mjs';
import { leftIn, membersOf, motionIn, PARTITIONS } from '../judge/dump.mjs';
import { look } from '../judge/look.mjs';
import { watchTerms } from '../judge/terms.mjs';
import { vitalsAtRest, vitalsNow, vitalsSince } from '../judge/vitals.mjs';
import { watchLeases, watchPromotes } from '../judge/watch.mjs';
import { createCast } from './cast.mjs';
import { createRecorder } from './history.mjs';
import { openRemote } from './remote.mjs';
import { createScene } from './scene.mjs';
import { startServer } from './server.mjs';
import { startTopology } from './topology.mjs';
import { DAEMONS, FULL, PRODUCERS, planOf, QUICK, seeded, WORKERS } from './workload.mjs';

/** @typedef {import('./scene.mjs').Scene} Scene */
/** @typedef {Awaited<ReturnType<typeof runRow>>} Verdict */
/**
 * @typedef {object} Outcome what a row's own predicate looks at
 * @property {ReturnType<typeof check>} report
 * @property {import('./server.mjs').Mode} mode
 * @property {readonly import('./history.mjs').Event[]} calls
 * @property {readonly import('./history.mjs').Event[]} effects
 * @property {readonly import('./cast.mjs').Actor[]} actors
 * @property {Readonly<Record<string, number>>} deadLetters
 * @property {number} crashed the durable counter
 * @property {number} fromMs wall clock of the fault
 * @property {number} toMs of its end
 * @property {Readonly<Record<string, number>>} noted what the fault itself measured
 * @property {number} [slackMs] bounds of lateness are so much wider than with the settings that daemons have by themselves
 */
/**
 * @typedef {object} Row
 * @property {string} id of the fault matrix
 * @property {string} title
 * @property {string} [how] in the report: how it is injected, as `SIGKILL to the leader, 3 times`
 * @property {string} [wanted] in the report: the numbers of `pass`, as `late <= lease + 1 s`
 * @property {(scene: Scene) => Promise<Readonly<Record<string, number>> | void>} inject breaks and repairs
 * @property {import('./server.mjs').Mode} [mode] the only one that makes sense
 * @property {readonly import('./server.mjs').Mode[]} [variants] modes in each of which it is to be run
 * @property {import('./server.mjs').Special} [server] what it needs of its server
 * @property {import('./topology.mjs').Topology} [topology] several servers instead of one, with nothing on disk
 * @property {number} [daemons] how many there are
 * @property {number} [workers]
 * @property {number} [partitions] fewer than usual
 * @property {Partial<import('./workload.mjs').Workload>} [workload]
 * @property {Readonly<Record<string, string>>} [env]
 * @property {import('../judge/gates.mjs').Limits & { inOrder?: boolean }} [gates] limits of the queue, which are judged; inOrder
 *   false: the order in a lane is not
 * @property {number} [aheadMs] so long before they are due jobs are handed to workers
 * @property {boolean} [remote] its workers claim over HTTP, from daemons that take them
 * @property {(minutes: number) => Row} [lasting] the same, with faults for so long: `--minutes`
 * @property {boolean} [line] the actors reach Redis over a line that can be bad
 * @property {import('../faults/clocks.mjs').WrongClocks} [clocks] whose clocks are wrong
 * @property {boolean} [watch] who promotes is watched
 * @property {boolean} [severs] while its fault is on, workers lose what they hold: they cannot reach Redis for longer than
 *   a lease, or it forgets who holds what. Only then may a handler be told to stop because of it
 * @property {RegExp} [outcry] the only line about an uncaught error that this fault may cause
 * @property {Readonly<Record<string, number>>} [allow] anomaly → how many
 * @property {Partial<Record<import('./server.mjs').Mode, number>>} [declaredLossMs] in these modes: so long before the
 *   loss begins, what Redis acknowledged may be lost with it; the loss is the fault, or what lies between the notes
 *   `loss.begin` and `loss.end`. In the mode `replicated` no job may be: only that it was started and how it ended
 * @property {(folder: string) => Promise<import('./server.mjs').Special>} [prepare] what its server needs and must be made
 * @property {(folder: string, binary: string) => string | undefined} [impossible] why it cannot be run on this host, or with
 *   this redis-server
 * @property {boolean} [whole] in the end the product's own check of the invariants finds nothing
 * @property {number} [drainMs]
 * @property {number} [limitMs] it gives up then, if not when the others do
 * @property {(scene: Scene) => Promise<Readonly<Record<string, number>>>} [after] measures when all is done, before the
 *   processes end
 * @property {(outcome: Outcome) => readonly string[]} [pass] what is wrong besides anomalies
 */
/**
 * @typedef {object} Settings
 * @property {string} binary of redis-server
 * @property {string} product the folder whose `dist` and `lua` run
 * @property {number} seed
 * @property {import('./server.mjs').Mode} mode
 * @property {boolean} [quick] a smaller workload
 * @property {boolean} [keep] the folder with all histories
 * @property {number} [minutes] for so long faults go on, in rows that can
 * @property {number} [lingerMs] `mover.linger` of all daemons
 * @property {'default' | 'quiet'} [profile] of all daemons and workers. Leases and heartbeats stay as short as they are here
 */

/** Where daemons say how long jobs linger. */
const REGISTRY = 'duestream:v1:{control}:queues';
/** Least time for what is left after the last due. */
const DRAIN_MS = 12_000;
/** What has not moved for so long, while every process is up, is stuck; as long as it moves, the machine is slow. */
const STILL_MS = 10_000;
/**
 * With the profile `quiet` a sign that got lost is made up for by a look that comes after a minute, and by one after two
 * minutes where entries were given to a worker that never saw them. `src/kernel/rhythm.ts` has these times.
 */
const QUIET = { lateMs: 61_000, stillMs: 125_000 };
/** A row gives up then, and says that it ran out of time. */
const ROW_LIMIT_MS = 300_000;
/** Left of it for the end: the judge, and the checks of a row's own. */
const ENDING_MS = 60_000;

/**
 * One verdict, whatever happens: a row that throws or does not end in time is red. One that this host cannot run says
 * why, in `notRun`, and did not pass.
 *
 * @param {Row} usual
 * @param {Settings} settings
 */
export async function runRow(usual, settings) {
  const row = lastingOf(usual, settings);
  const startedMs = performance.now();
  const folder = mkdtempSync(join(tmpdir(), 'due-chaos-'));
  mkdirSync(join(folder, 'history'));
  const mode = row.mode ?? settings.mode;
  /** @type {(() => unknown)[]} */
  const endings = [];
  const limit = new AbortController();
  const { limitMs = ROW_LIMIT_MS } = row;
  const overtime = sleep(limitMs, undefined, { signal: limit.signal }).then(() => {
    throw new Error(`it ran out of time: it was not over after ${limitMs / 1000} s`);
  });
  let seen = NOTHING_SEEN;
  const notRun = row.impossible?.(folder, settings.binary);
  try {
    if (notRun === undefined)
      seen = await Promise.race([play({ row, settings: { ...settings, mode }, folder, endings }), overtime]);
  } catch (error) {
    seen = { ...NOTHING_SEEN, complaints: [`the run failed: ${error instanceof Error ? error.message : error}`] };
  } finally {
    limit.abort();
    await overtime.catch(() => {});
    for (const end of endings.reverse()) await end();
  }
  const isFaulty = seen.complaints.length > 0;
  const verdict = notRun === undefined ? (isFaulty ? 'failed' : 'passed') : 'not run';
  const kept = settings.keep || isFaulty ? folder : undefined;
  if (kept === undefined) rmSync(folder, { recursive: true, force: true });
  return {
    id: row.id,
    title: row.title,
    how: row.how ?? '',
    wanted: row.wanted ?? '',
    mode,
    seed: settings.seed,
    verdict,
    passed: verdict === 'passed',
    notRun,
    ...seen,
    seconds: Math.round((performance.now() - startedMs) / 100) / 10,
    kept,
  };
}

/** @param {Row} row @param {Settings} settings @returns {Row} */
const lastingOf = (row, { minutes }) => (minutes && row.lasting ? row.lasting(minutes) : row);

/** What a row that broke down has to say. */
export const NOTHING_SEEN = {
  /** @type {readonly string[]} */
  complaints: [],
  /** @type {Readonly<Record<string, number>>} */
  anomalies: {},
  /** Jobs, and calls about them, that the judge from outside looked at, and jobs that it left out. */
  outside: 0,
  outsideCalls: 0,
  outsideLeftOut: 0,
  ...check({ kinds: new Map(), calls: [], effects: [], exits: [], pauses: [], passes: [], members: [], left: {} })
    .counts,
  /** @type {Readonly<Record<string, number>>} */
  noted: {},
  /** @type {Readonly<Record<string, number>>} */
  deadLetters: {},
};

/**
 * @param {object} parts
 * @param {Row} parts.row
 * @param {Settings} parts.settings
 * @param {string} parts.folder
 * @param {(() => unknown)[]} parts.endings what is to be done afterwards, in any case, the last first
 * @returns {Promise<typeof NOTHING_SEEN>}
 */
async function play({ row, settings, folder, endings }) {
  const { binary, product, seed, mode } = settings;
  const clocks = row.clocks ? await createClocks(folder, row.clocks, row.aheadMs) : undefined;
  endings.push(() => clocks?.close());
  const special = { ...row.server, ...(await row.prepare?.(folder)) };
  endings.push(() => special.release?.());
  const { urls = {} } = special;
  const ground = row.topology
    ? await startTopology(row.topology, { binary, folder, endings })
    : await startAlone({ binary, folder, mode, special, clocks, endings });
  const { server, redis, cluster, sentinels, parting } = ground;
  const line = row.line ? await openLine({ socketPath: server.socketPath, folder, product }) : undefined;
  if (line) endings.push(() => line.close());
  const note = createRecorder(join(folder, 'nemesis.jsonl'), 'nemesis');
  const { lingerMs, slackMs, stillMs, env: pace } = paceOf(settings);
  const env = { ...pace, ...row.env, ...special.actorEnv, ...envOf(row, mode) };
  const remote = await remoteOf(row, folder);
  const cast = createCast({ product, folder, url: line?.url ?? ground.url, urls, note, env, clocks, remote });
  endings.push(() => cast.close());
  const watch = row.watch ? await watchPromotes(redis, product) : undefined;
  endings.push(() => watch?.stop());
  const leases = row.gates ? watchLeases(redis, row.partitions ?? PARTITIONS.length) : undefined;
  endings.push(() => leases?.stop());
  const random = seeded(seed);
  const workload = { ...(settings.quick ? QUICK : FULL), ...row.workload };
  const plans = planOf(workload, { random, producers: PRODUCERS });
  const parts = { product, binary, folder, mode, redis, server, cluster, sentinels, parting, cast, line, clocks };
  const scene = createScene({ ...parts, random, note });
  const watchedTerms = watchTerms(redis);
  endings.push(() => watchedTerms.stop());
  const forMs = (row.limitMs ?? ROW_LIMIT_MS) + stillMs - ENDING_MS;
  const limitMs = Date.now() + forMs;
  const { noted, vitals, ranOut } = await act({ row, cast, scene, plans, note, redis, limitMs, stillMs });
  const gathered = {
    vitals,
    ranOut,
    terms: watchedTerms.terms,
    passes: watch?.passes ?? [],
    actors: cast.actors,
    looks: leases?.looks ?? [],
  };
  const flaws = row.whole ? await flawsOf({ product, url: ground.url }) : [];
  const { report, ...seen } = await look({ row, mode, folder, plans, redis, scene, clocks, ...gathered });
  const outcome = { report, ...seen, mode, actors: cast.actors, noted, slackMs };
  const complaints = [
    ...(ranOut ? [`it ran out of time: work went on, and was not over after ${forMs / 1000} s`] : []),
    ...seen.troubles,
    ...flaws,
    ...(await notLingering(redis, lingerMs)),
    ...excess(report.anomalies, row.allow),
    ...(row.pass?.(outcome) ?? []),
  ];
  return { complaints, anomalies: countBy(report.anomalies), ...report.counts, noted, deadLetters: seen.deadLetters };
}

/**
 * What is said to daemons and workers of how often they look, and how much later that makes things.
 *
 * @param {Settings} settings
 */
function paceOf({ lingerMs = 0, profile = 'default' }) {
  const { lateMs, stillMs } = profile === 'quiet' ? QUIET : { lateMs: 0, stillMs: 0 };
  const env = { DUESTREAM_MOVER__LINGER: String(lingerMs), DUESTREAM_PROFILE: profile };
  return { lingerMs, slackMs: lingerMs + lateMs, stillMs, env };
}

/** Without it a row would say nothing of jobs that linger. @param {Redis | import('ioredis').Cluster} redis @param {number} ms */
async function notLingering(redis, ms) {
  const said = Number((await redis.hget(REGISTRY, ':lingerMs')) ?? 0);
  return said === ms ? [] : [`daemons say that jobs linger for ${said} ms; wanted: ${ms}`];
}

/**
 * What actors are told of their queue.
 *
 * @param {Row} row
 * @param {import('./server.mjs').Mode} mode
 */
function envOf({ partitions, gates, aheadMs }, mode) {
  const settings = { ...(gates && settingsOf(gates)), ...(aheadMs !== undefined && { ahead: aheadMs }) };
  return {
    ...(mode === 'replicated' ? { CHAOS_DURABILITY: mode } : {}),
    ...(partitions ? { CHAOS_PARTITIONS: String(partitions) } : {}),
    ...(gates || aheadMs !== undefined ? { CHAOS_GATES: JSON.stringify(settings) } : {}),
  };
}

/** @param {Row} row @param {string} folder */
async function remoteOf({ remote, partitions = PARTITIONS.length, gates, daemons = DAEMONS }, folder) {
  if (!remote) return undefined;
  return openRemote({ folder, daemons, settings: { partitions, ...(gates && settingsOf(gates)) } });
}

/** As a queue is defined with them. @param {import('../judge/gates.mjs').Limits} limits */
const settingsOf = ({ concurrency, perGroup, rate }) => ({ concurrency, perGroup, rate: `${rate}/s` });

/**
 * @param {object} parts
 * @param {string} parts.binary
 * @param {string} parts.folder
 * @param {import('./server.mjs').Mode} parts.mode
 * @param {import('./server.mjs').Special} parts.special
 * @param {import('../faults/clocks.mjs').Clocks | undefined} parts.clocks
 * @param {(() => unknown)[]} parts.endings
 * @returns {Promise<import('./topology.mjs').Ground>}
 */
async function startAlone({ binary, folder, mode, special, clocks, endings }) {
  const { login, settings = {} } = special;
  const env = { ...clocks?.envFor('redis', 'redis'), ...special.env };
  const server = await startServer({ binary, folder, mode, settings, env, ...(login ? { login } : {}) });
  endings.push(() => server.stop());
  const redis = new Redis({ path: server.socketPath, ...login, maxRetriesPerRequest: null, retryStrategy: () => 50 });
  redis.on('error', () => {});
  endings.push(() => redis.disconnect());
  return { url: server.url, server, redis, cluster: undefined, sentinels: undefined, parting: undefined };
}

/**
 * @param {object} parts
 * @param {Row} parts.row
 * @param {import('./cast.mjs').Cast} parts.cast
 * @param {Scene} parts.scene
 * @param {readonly (readonly import('./workload.mjs').PlannedJob[])[]} parts.plans
 * @param {ReturnType<typeof createRecorder>} parts.note
 * @param {Redis} parts.redis
 * @param {number} parts.limitMs when it runs out of time
 * @param {number} parts.stillMs nothing is stuck before it stood still for so much longer than usual
 */
async function act({ row, cast, scene, plans, note, redis, limitMs, stillMs }) {
  const daemons = Array.from({ length: row.daemons ?? DAEMONS }, () => cast.daemon());
  const workers = Array.from({ length: row.workers ?? WORKERS }, () => cast.worker());
  const producers = plans.map((plan) => cast.producer(plan));
  await Promise.all([...daemons, ...workers, ...producers].map(({ started }) => started));
  let baseline = vitalsNow(cast);
  const stalls = watchStalls(note);
  note('go');
  cast.go();
  const begunMs = Date.now();
  await sleep(1000 + scene.random() * 1200);
  if (row.topology) baseline = await vitalsAtRest(cast);
  note('fault.begin');
  /** @type {Readonly<Record<string, number>>} */
  let noted = {};
  try {
    noted = (await row.inject(scene)) ?? {};
  } catch (error) {
    note('fault.failed', { code: error instanceof Error ? error.message : String(error) });
  }
  note('fault.end');
  await Promise.all(producers.map(({ exited }) => exited));
  const lastDueMs = begunMs + Math.max(...plans.flat().map(({ callMs, delayMs }) => callMs + delayMs));
  const untilMs = Math.max(lastDueMs, Date.now()) + (row.drainMs ?? DRAIN_MS);
  const ranOut = (await drained({ redis, cast, untilMs, limitMs, stillMs })) === 'out of time';
  stalls.stop();
  note('over');
  noted = { ...noted, ...(await row.after?.(scene)) };
  return { noted, vitals: vitalsSince(baseline), ranOut };
}

/**
 * Waits until all is over, or until nothing moves any more although every process is up and it was given its time.
 *
 * @param {object} parts
 * @param {Redis} parts.redis
 * @param {import('./cast.mjs').Cast} parts.cast
 * @param {number} parts.untilMs before which nothing is stuck
 * @param {number} parts.limitMs when it runs out of time
 * @param {number} parts.stillMs
 * @returns {Promise<'over' | 'still' | 'out of time'>}
 */
async function drained({ redis, cast, untilMs, limitMs, stillMs }) {
  let [seen, movedMs] = ['', Date.now()];
  for (;;) {
    if (await isOver(redis)) return 'over';
    const now = await motionIn(redis);
    if (now !== seen || !cast.isUp()) [seen, movedMs] = [now, Date.now()];
    if (Date.now() > untilMs && Date.now() - movedMs > STILL_MS + stillMs) return 'still';
    if (Date.now() > limitMs) return 'out of time';
    await sleep(100);
  }
}

/** A job may live without being in any index: until the repairer finds it, it is only in the hash. @param {Redis} redis */
async function isOver(redis) {
  if (Object.values(await leftIn(redis)).some((count) => count > 0)) return false;
  return (await membersOf(redis)).every(({ live }) => !live);
}

const STALL_EVERY_MS = 50;
/** A leader that is kept waiting for so long may lose its lease of 1.5 s. */
const STALL_MS = 500;

/**
 * Notes when the machine did not even run our own timer: what is lost meanwhile is no fault of the product.
 *
 * @param {ReturnType<typeof createRecorder>} note
 */
function watchStalls(note) {
  let lastMs = performance.now();
  const timer = setInterval(() => {
    const tookMs = performance.now() - lastMs;
    lastMs += tookMs;
    if (tookMs > STALL_MS) note('stall', { tookMs: Math.round(tookMs) });
  }, STALL_EVERY_MS).unref();
  return { stop: () => clearInterval(timer) };
}

/**
 * @param {readonly import('../judge/checker.mjs').Anomaly[]} anomalies
 * @param {Readonly<Record<string, number>>} [allow]
 */
function excess(anomalies, allow = {}) {
  return Object.entries(countBy(anomalies))
    .filter(([kind, count]) => count > (allow[kind] ?? 0))
    .map(([kind, count]) => {
      const first = anomalies.find((anomaly) => anomaly.kind === kind);
      return `${count} ${kind}, allowed ${allow[kind] ?? 0}; the first: ${first?.id}: ${first?.detail}`;
    });
}

/** @param {readonly import('../judge/checker.mjs').Anomaly[]} anomalies */
function countBy(anomalies) {
  /** @type {Record<string, number>} */
  const counts = {};
  for (const { kind } of anomalies) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}
