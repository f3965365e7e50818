/**
 * Faults of load: herds, hordes that wait, a tenant that floods, dead letters without end. What is timed here is timed on a
 * host that does other things as well, so a bound is what the matrix asks for and what the same probe needed while
 * nothing was the matter.
 */
import { join } from 'node:path';
import { keyOf, PARTITIONS } from '../judge/dump.mjs';
import { atLeast, atMost, exactly } from '../judge/predicates.mjs';
import { routed } from '../stage/foreign.mjs';
import { readEvents } from '../stage/history.mjs';
import * as load from '../stage/load.mjs';

/** @typedef {import('../stage/run.mjs').Row} Row */

const HERD = 100_000;
/** Planting it takes 2 s, and several times as long on a host that does other things as well. */
const AHEAD_MS = 15_000;
const HORDE = 1_000_000;
const HARMLESS = { crashes: 0, poison: 0 };
/** A workload that is over before the row begins to measure. */
const BRIEF = { ...HARMLESS, jobs: 40, callsMs: 500, nearMs: 500, farMs: 800 };
const FLOOD_MS = 6000;
/** Of other commands at rest. On a host that does other things as well it is longer, and then tells nothing of Redis. */
const QUIET_P99_MS = 3;
const DEAD_LETTERS_MAX = 200;

/** @type {readonly Row[]} */
export const loadRows = [
  {
    id: 'F72',
    title: '100,000 jobs are due in the same millisecond',
    whole: true,
    how: '100,000 records planted 15 s ahead; a probe times other commands meanwhile; then 1 worker of 200 slots',
    wanted:
      'scripts <= 5 ms; other commands p99 <= 13 ms on a quiet host; 50,000 promoted per s of Redis; mover <= +50 MB; each runs once',
    workload: { ...HARMLESS, jobs: 400 },
    // All of them become ready before anybody reads: the drain of the mover alone, with nothing to wait for.
    env: { DUESTREAM_MOVER__READY_MAX: '1000000' },
    async inject({ redis, cast, sleep }) {
      await load.declareLoad(redis);
      const movers = cast.living('daemon');
      const rest = await probed(redis, () => sleep(1500));
      const beforeMb = load.residentMb(movers);
      const dueMs = Date.now() + AHEAD_MS;
      await load.plant(redis, { count: HERD, dueMs, prefix: 'herd-', name: 'count' });
      const plantedMs = Date.now();
      await sleep(dueMs - plantedMs);
      let peakMb = beforeMb;
      const promoted = async () => {
        peakMb = Math.max(peakMb, load.residentMb(movers));
        return Number(await redis.hget(load.loadKey('meta'), 'n.promoted')) >= HERD;
      };
      const drain = await probed(redis, () => load.waitFor(promoted, 'the herd is ready', 20_000));
      load.loadWorker(cast, { DUESTREAM_WORKER__CONCURRENCY: '200' });
      const done = async () => Number(await redis.hget(load.loadKey('meta'), 'n.done')) >= HERD;
      const run = await probed(redis, () => load.waitFor(done, 'the herd is done', 40_000));
      const ids = new Set(load.loadRuns(cast).map(({ id }) => id));
      return {
        herd: HERD,
        spareMs: dueMs - plantedMs,
        restP99Ms: rest.p99Ms,
        drainMs: drain.value,
        drainP99Ms: drain.p99Ms,
        drainMaxMs: drain.maxMs,
        drainRedisS: drain.redisS,
        drainScriptMs: drain.scriptMs,
        runMs: run.value,
        runP99Ms: run.p99Ms,
        runScriptMs: run.scriptMs,
        grownMb: load.tenth(peakMb - beforeMb),
        ran: load.loadRuns(cast).length,
        ranOnce: ids.size,
        early: load.loadRuns(cast).filter(({ ms = 0, due = 0 }) => ms < due).length,
      };
    },
    pass: ({ noted }) => [
      ...atLeast('ms left before the herd was due', noted.spareMs ?? -1, 0),
      // What others wait for is a script. How long they do is judged where a host has the time to say so.
      ...atMost('mean ms of Redis for a script while the herd is promoted', noted.drainScriptMs ?? 1e9, 5),
      ...atMost('mean ms of Redis for a script while the herd runs', noted.runScriptMs ?? 1e9, 5),
      ...((noted.restP99Ms ?? 0) > QUIET_P99_MS
        ? []
        : [
            ...atMost('p99 of other commands while the herd is promoted', noted.drainP99Ms ?? 1e9, 10 + QUIET_P99_MS),
            ...atMost('p99 of other commands while the herd runs', noted.runP99Ms ?? 1e9, 10 + QUIET_P99_MS),
          ]),
      ...atLeast('jobs promoted per second of Redis', HERD / (noted.drainRedisS ?? 1e9), 50_000),
      ...atMost('MB that a mover grew by', noted.grownMb ?? 1e9, 50),
      ...exactly('runs of the herd', noted.ran ?? 0, HERD),
      ...exactly('jobs of the herd that ran', noted.ranOnce ?? 0, HERD),
      ...exactly('early', noted.early ?? 1, 0),
    ],
  },
  {
    id: 'F73',
    title: '1,000,000 jobs wait for next year',
    how: '1,000,000 records planted a year ahead; processor time and commands of the daemons before and after',
    wanted: 'idle daemon < 2 % of a core, no more commands than without them',
    // What is measured is a daemon at rest and not a disk that writes a million records.
    mode: 'none',
    workload: BRIEF,
    async inject({ redis, cast, sleep }) {
      await load.declareLoad(redis);
      await load.waitFor(() => cast.living('producer').length === 0, 'the producers ended', 60_000);
      await sleep(1500);
      await Promise.all(cast.living('worker').map(cast.dismiss));
      const before = await atRest({ redis, cast, sleep });
      const fromMs = performance.now();
      await load.plant(redis, { count: HORDE, dueMs: Date.now() + 365 * 86_400_000, prefix: 'far-' });
      const plantedS = load.tenth((performance.now() - fromMs) / 1000);
      await sleep(2000);
      const after = await atRest({ redis, cast, sleep });
      return {
        plantedS,
        cpuBefore: before.percent,
        cpuAfter: after.percent,
        scriptsBefore: before.scripts,
        scriptsAfter: after.scripts,
        headsBefore: before.heads,
        headsAfter: after.heads,
        waiting: await redis.zcard(load.loadKey('scheduled')),
        residentMb: load.residentMb(cast.living('daemon')),
      };
    },
    pass: ({ noted }) => [
      ...exactly('jobs that wait', noted.waiting ?? 0, HORDE),
      ...atMost(
        'percent of a core that the busiest daemon uses',
        noted.cpuAfter ?? 100,
        Math.max(2, 1 + (noted.cpuBefore ?? 0)),
      ),
      ...atMost('scripts per second', noted.scriptsAfter ?? 1e9, 1.25 * (noted.scriptsBefore ?? 0) + 2),
      // A mover that finds nothing due looks at the head of a zset in place of a pass: together they are its looks.
      ...atMost(
        'scripts and looks at the head of a zset per second',
        (noted.scriptsAfter ?? 1e9) + (noted.headsAfter ?? 1e9),
        1.25 * ((noted.scriptsBefore ?? 0) + (noted.headsBefore ?? 0)) + 2,
      ),
    ],
  },
  {
    id: 'F74',
    title: 'one tenant floods one partition',
    how: 'ZADD of 400 due jobs into partition 0, every 100 ms for 6 s: more than all workers can run',
    wanted: 'promotion and start p99 of the other partitions unchanged',
    workload: { ...HARMLESS, throws: 0, jobs: 1200, callsMs: 10_000, nearMs: 1500, farMs: 4000 },
    drainMs: 30_000,
    async inject({ redis, cast, asked, repeatedly, sleep }) {
      await sleep(3000);
      const fromMs = Date.now();
      let next = 0;
      let waitingMax = 0;
      await repeatedly(FLOOD_MS, 100, async () => {
        const ids = Array.from({ length: 400 }, (_, at) => `hot-${next + at}`);
        next += ids.length;
        for (const id of ids) asked(id);
        await redis.zadd(keyOf(0, 'scheduled'), ...ids.flatMap((id) => [Date.now(), id]));
        waitingMax = Math.max(waitingMax, await redis.xlen(keyOf(0, 'ready')));
      });
      const others = readEvents(join(cast.folder, 'effects.jsonl')).filter(
        ({ ev, id = '', attempt }) =>
          ev === 'start' && attempt === 1 && !id.startsWith('hot-') && routed(id, PARTITIONS.length) !== 0,
      );
      const [calm, during] = [others.filter(({ ms }) => ms < fromMs), others.filter(({ ms }) => ms >= fromMs)];
      const p99 = (/** @type {typeof others} */ starts) =>
        load.percentile(
          starts.map(({ ms, due = 0 }) => ms - due),
          0.99,
        );
      // The flood goes on all the time, a host that stands still does not: so of each third, and the middle one of these.
      const thirds = [0, 1, 2].map((third) =>
        p99(during.filter(({ ms }) => Math.min(2, Math.floor((3 * (ms - fromMs)) / FLOOD_MS)) === third)),
      );
      const floodP99Ms = load.percentile(thirds, 0.5);
      return { flood: next, waitingMax, others: during.length, calmP99Ms: p99(calm), floodP99Ms };
    },
    pass: ({ noted }) => [
      ...atLeast('jobs of others during the flood', noted.others ?? 0, 50),
      ...atLeast('jobs of the flood that waited at once', noted.waitingMax ?? 0, 500),
      // Every slot is taken, so a job of another tenant waits until a handler ends and for the turn of its partition.
      // On a host that does other things as well those 60 ms are longer, and so is what calm is.
      ...atMost(
        'p99 of others during the flood',
        noted.floodP99Ms ?? 1e9,
        Math.max(1.2 * (noted.calmP99Ms ?? 0) + 60, 3 * (noted.calmP99Ms ?? 0)),
      ),
    ],
  },
  {
    id: 'F76',
    title: 'dead letters beyond their cap',
    how: `6,000 members nobody can run within 6 s, at most ${DEAD_LETTERS_MAX} dead letters kept per partition`,
    wanted: 'trimmed to the cap within 8 s, counted; calls of producers p99 unchanged',
    workload: { ...HARMLESS, callsMs: 9000 },
    env: { DUESTREAM_DEAD__MAX: String(DEAD_LETTERS_MAX) },
    async inject({ redis, repeatedly, sleep }) {
      await sleep(2500);
      const fromMs = Date.now();
      let next = 0;
      await repeatedly(FLOOD_MS, 50, async () => {
        const partition = PARTITIONS[(next / 50) % PARTITIONS.length] ?? 0;
        const pairs = Array.from({ length: 50 }, (_, at) => [Date.now(), `nobody can run ${next + at}`]);
        next += pairs.length;
        await redis.zadd(keyOf(partition, 'scheduled'), ...pairs.flat());
      });
      const toMs = Date.now();
      const deadLetters = () => Promise.all(PARTITIONS.map((partition) => redis.xlen(keyOf(partition, 'dead'))));
      const sum = async (/** @type {string} */ name) => {
        const metas = PARTITIONS.map((partition) => redis.hget(keyOf(partition, 'meta'), `n.${name}`));
        return (await Promise.all(metas)).reduce((total, value) => total + Number(value ?? 0), 0);
      };
      const trimmed = async () => (await deadLetters()).every((count) => count <= DEAD_LETTERS_MAX);
      const trimmedMs = await load.waitFor(trimmed, 'dead letters are trimmed', 20_000);
      const kept = (await deadLetters()).reduce((total, count) => total + count, 0);
      return {
        fromMs,
        toMs,
        trimmedMs,
        kept,
        written: (await sum('refused')) + (await sum('dead')),
        forgotten: await sum('forgotten'),
      };
    },
    pass({ calls, noted }) {
      const { fromMs = 0, toMs = 0, kept = 0, written = 0, forgotten = 0 } = noted;
      const took = callTimes(calls);
      const p99 = (/** @type {(ms: number) => boolean} */ within) =>
        load.percentile(
          took.filter(({ ms }) => within(ms)).map(({ tookMs }) => tookMs),
          0.99,
        );
      return [
        ...atLeast('deadLetters', written, 3000),
        ...atMost('ms until they were trimmed', noted.trimmedMs ?? 1e9, 8000),
        ...exactly('dead letters counted as forgotten', forgotten, written - kept),
        ...atMost(
          'p99 of calls meanwhile',
          p99((ms) => ms >= fromMs && ms < toMs),
          1.1 * p99((ms) => ms < fromMs) + 15,
        ),
      ];
    },
  },
];

/**
 * Does something while the probe runs.
 *
 * @template V
 * @param {import('ioredis').Redis} redis
 * @param {() => Promise<V>} act
 */
async function probed(redis, act) {
  const stop = load.startProbe(redis);
  const before = await load.workOf(redis);
  const value = await act();
  const after = await load.workOf(redis);
  const seconds = after.seconds - before.seconds;
  const scriptMs = load.tenth((1000 * seconds) / Math.max(1, after.scripts - before.scripts));
  return { value, redisS: Math.round(seconds * 100) / 100, scriptMs, ...(await stop()) };
}

/**
 * What the daemons do while there is nothing to do: percent of a core of the busiest, scripts per second of all.
 *
 * @param {Pick<import('../stage/scene.mjs').Scene, 'redis' | 'cast' | 'sleep'>} scene
 */
async function atRest({ redis, cast, sleep }) {
  const forS = 8;
  const daemons = cast.living('daemon');
  const [cpu, calls] = [load.processorSeconds(daemons), await load.commandCalls(redis)];
  await sleep(forS * 1000);
  const [cpuThen, callsThen] = [load.processorSeconds(daemons), await load.commandCalls(redis)];
  const rate = (/** @type {string} */ name) => load.tenth(((callsThen.get(name) ?? 0) - (calls.get(name) ?? 0)) / forS);
  const percents = cpuThen.map((seconds, at) => (100 * (seconds - (cpu[at] ?? 0))) / forS);
  return { percent: load.tenth(Math.max(...percents)), scripts: rate('evalsha'), heads: rate('zrange') };
}

/** How long each call of a producer took, and when it was made. @param {import('../stage/run.mjs').Outcome['calls']} calls */
function callTimes(calls) {
  /** @type {Map<string, { ms: number, us: number }>} */
  const open = new Map();
  /** @type {{ ms: number, tookMs: number }[]} */
  const took = [];
  for (const { ev, id = '', ms, us } of calls) {
    const call = open.get(id);
    if (ev === 'enq.call') open.set(id, { ms, us });
    else if (ev === 'enq.ok' && call) took.push({ ms: call.ms, tookMs: (us - call.us) / 1000 });
  }
  return took;
}
