/**
 * One row of the matrix, from an empty Redis to a verdict: start everything, let the work begin, break something at a
 * moment that the seed decides, mend it, wait until nothing is left to do, and judge.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { createCast } from './cast.mjs';
import { check } from './checker.mjs';
import { createClocks } from './clocks.mjs';
import { counted, leftIn, lettersIn, membersOf } from './dump.mjs';
import { createRecorder, readAll, readEvents } from './history.mjs';
import { openLine } from './line.mjs';
import { createScene } from './scene.mjs';
import { startServer } from './server.mjs';
import { watchPromotes } from './watch.mjs';
import { FULL, planOf, QUICK, seeded } from './workload.mjs';

/** @typedef {import('./scene.mjs').Scene} Scene */
/** @typedef {Awaited<ReturnType<typeof runRow>>} Verdict */
/**
 * @typedef {object} Outcome what a row's own predicate looks at
 * @property {ReturnType<typeof check>} report
 * @property {readonly import('./history.mjs').Event[]} calls
 * @property {readonly import('./history.mjs').Event[]} effects
 * @property {readonly import('./cast.mjs').Actor[]} actors
 * @property {Readonly<Record<string, number>>} letters
 * @property {number} crashed the durable counter
 * @property {number} fromMs wall clock of the fault
 * @property {number} toMs of its end
 * @property {Readonly<Record<string, number>>} noted what the fault itself measured
 */
/**
 * @typedef {object} Row
 * @property {string} id of the fault matrix
 * @property {string} title
 * @property {(scene: Scene) => Promise<Readonly<Record<string, number>> | void>} inject breaks and mends
 * @property {string} [how] how the fault is injected, for the report
 * @property {string} [wanted] what else must hold, for the report
 * @property {import('./server.mjs').Mode} [mode] the only one that makes sense
 * @property {Partial<import('./workload.mjs').Workload>} [workload]
 * @property {Readonly<Record<string, string>>} [env]
 * @property {boolean} [line] the actors reach Redis over a line that can be bad
 * @property {import('./clocks.mjs').WrongClocks} [clocks] whose clocks are wrong
 * @property {boolean} [watch] who promotes is watched
 * @property {Readonly<Record<string, number>>} [allow] anomaly → how many
 * @property {boolean} [declaredLoss] what was asked for before the end of the fault may be lost
 * @property {number} [drainMs]
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
 */

const DRAIN_MS = 12_000;
const DAEMONS = 2;
const WORKERS = 3;
const PRODUCERS = 2;

/**
 * @param {Row} row
 * @param {Settings} settings
 */
export async function runRow(row, settings) {
  const startedMs = performance.now();
  const folder = mkdtempSync(join(tmpdir(), 'due-chaos-'));
  mkdirSync(join(folder, 'history'));
  const { binary, product, seed } = settings;
  const mode = row.mode ?? settings.mode;
  const clocks = row.clocks ? await createClocks(folder, row.clocks) : undefined;
  const server = await startServer({ binary, folder, mode, env: clocks?.envFor('redis', 'redis') ?? {} });
  const line = row.line ? await openLine({ socketPath: server.socketPath, folder, product }) : undefined;
  const redis = new Redis({ path: server.socketPath, maxRetriesPerRequest: null, retryStrategy: () => 50 });
  redis.on('error', () => {});
  const note = createRecorder(join(folder, 'nemesis.jsonl'), 'nemesis');
  const url = line?.url ?? server.url;
  const cast = createCast({ product, folder, url, note, clocks, ...(row.env ? { env: row.env } : {}) });
  let failed = true;
  try {
    const watch = row.watch ? await watchPromotes(redis, product) : undefined;
    const random = seeded(seed);
    const workload = { ...(settings.quick ? QUICK : FULL), ...row.workload };
    const plans = planOf(workload, { random, producers: PRODUCERS });
    const scene = createScene({ redis, server, cast, line, clocks, random, note });
    const noted = await act({ row, cast, scene, plans, note, redis });
    const { report, ...seen } = await look({ row, folder, plans, redis, scene, clocks, passes: watch?.passes ?? [] });
    watch?.stop();
    const outcome = { report, ...seen, actors: cast.actors, noted };
    const complaints = [...seen.troubles, ...excess(report.anomalies, row.allow), ...(row.pass?.(outcome) ?? [])];
    failed = complaints.length > 0;
    return {
      ...{ id: row.id, title: row.title, mode, seed, passed: !failed, complaints },
      ...{ anomalies: countBy(report.anomalies), ...report.counts, noted, letters: seen.letters },
      seconds: Math.round((performance.now() - startedMs) / 100) / 10,
      kept: settings.keep || failed ? folder : undefined,
    };
  } finally {
    await cast.close();
    redis.disconnect();
    await line?.close();
    await server.stop();
    clocks?.close();
    if (!settings.keep && !failed) rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * @param {object} parts
 * @param {Row} parts.row
 * @param {import('./cast.mjs').Cast} parts.cast
 * @param {Scene} parts.scene
 * @param {readonly (readonly import('./workload.mjs').PlannedJob[])[]} parts.plans
 * @param {ReturnType<typeof createRecorder>} parts.note
 * @param {Redis} parts.redis
 */
async function act({ row, cast, scene, plans, note, redis }) {
  const standing = [...Array.from({ length: DAEMONS }, cast.daemon), ...Array.from({ length: WORKERS }, cast.worker)];
  await Promise.all(standing.map(({ started }) => started));
  const producers = plans.map((plan) => cast.producer(plan));
  await Promise.all(producers.map(({ started }) => started));
  const begunMs = Date.now();
  await sleep(1000 + scene.random() * 1200);
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
  while (Date.now() < untilMs && !(await isOver(redis))) await sleep(100);
  return noted;
}

/** A job may live without being in any index: until the healer finds it, it is only in the hash. @param {Redis} redis */
async function isOver(redis) {
  if (Object.values(await leftIn(redis)).some((count) => count > 0)) return false;
  return (await membersOf(redis)).every(({ live }) => !live);
}

/**
 * What everybody wrote down and what Redis holds, with the judge's report.
 *
 * @param {object} parts
 * @param {Row} parts.row
 * @param {string} parts.folder
 * @param {readonly (readonly import('./workload.mjs').PlannedJob[])[]} parts.plans
 * @param {Redis} parts.redis
 * @param {Scene} parts.scene
 * @param {import('./clocks.mjs').Clocks | undefined} parts.clocks
 * @param {readonly import('./watch.mjs').Pass[]} parts.passes
 */
async function look({ row, folder, plans, redis, scene, clocks, passes }) {
  const calls = [...readAll(join(folder, 'history'), '.jsonl'), ...scene.foreign()].sort((a, b) => a.us - b.us);
  // A due is a moment of the clock of Redis, so what handlers did is judged by that clock, however wrong it was.
  const effects = readEvents(join(folder, 'effects.jsonl')).map((event) => ({
    ...event,
    ms: event.ms + (clocks?.redisOffsetMs(event.us) ?? 0),
  }));
  const nemesis = readEvents(join(folder, 'nemesis.jsonl'));
  const begun = nemesis.find(({ ev }) => ev === 'fault.begin');
  const ended = nemesis.find(({ ev }) => ev === 'fault.end');
  const report = check({
    kinds: new Map(plans.flat().map(({ id, kind }) => [id, kind])),
    ...{ calls, effects, ...livesOf(nemesis), passes },
    members: await membersOf(redis),
    left: await leftIn(redis),
    mended: await counted(redis, 'mended'),
    ...(row.declaredLoss && ended ? { lossUntilUs: ended.us } : {}),
  });
  const letters = await lettersIn(redis);
  const crashed = await counted(redis, 'crashed');
  const troubles = nemesis.filter(({ ev }) => ev === 'fault.failed').map(({ code }) => `the fault failed: ${code}`);
  return { report, troubles, calls, effects, letters, crashed, fromMs: begun?.ms ?? 0, toMs: ended?.ms ?? 0 };
}

/**
 * Ends and freezes of processes.
 *
 * @param {readonly import('./history.mjs').Event[]} nemesis
 */
function livesOf(nemesis) {
  /** @param {import('./history.mjs').Event} event */
  const childOf = (event) => Number(Object.entries(event).find(([name]) => name === 'child')?.[1]);
  const of = (/** @type {string} */ what) => nemesis.filter(({ ev }) => ev === what);
  const pauses = of('pause').map((pause) => {
    const resumed = of('resume').find((event) => childOf(event) === childOf(pause) && event.us > pause.us);
    return { pid: childOf(pause), fromUs: pause.us, toUs: resumed?.us ?? Number.POSITIVE_INFINITY };
  });
  return { exits: of('exit').map((event) => ({ pid: childOf(event), us: event.us })), pauses };
}

/**
 * @param {readonly import('./checker.mjs').Anomaly[]} anomalies
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

/** @param {readonly import('./checker.mjs').Anomaly[]} anomalies */
function countBy(anomalies) {
  /** @type {Record<string, number>} */
  const counts = {};
  for (const { kind } of anomalies) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}
