/**
 * Faults of clocks. Only the clock of Redis decides when a job is due; what handlers did is written down in true time and
 * judged by what the clock of Redis had reached, however wrong it was.
 */
import { readFileSync } from 'node:fs';
import { keyOf, PARTITIONS } from '../judge/dump.mjs';
import { atMost, exactly, failures, lateBy } from '../judge/predicates.mjs';

/** @typedef {import('../stage/run.mjs').Row} Row */
/** @typedef {import('../stage/scene.mjs').Scene} Scene */

const LEASE_MS = 1500;
const HARMLESS = { crashes: 0, poison: 0 };
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** One per process: none is right, and no two of a role agree. */
const OFFSETS_MS = [HOUR_MS, -HOUR_MS, 30 * DAY_MS, -30 * DAY_MS];
/** Beyond 2^31 ms, which is what a timer of Node takes; the horizon is 10 years. */
const FAR_MS = [25 * DAY_MS, 365 * DAY_MS, 3640 * DAY_MS];
/** Windows in which the CPU of a daemon is looked at; the one in the middle counts. */
const [WINDOWS, WINDOW_MS] = [5, 3000];
/** 0.2 s of one window, and what waiting costs besides. */
const CLEANING_PERCENT = 10;
/** Leadership is spread anew once after a start: a leader that is outranked gives way after 10 s. */
const SPREAD_MS = 12_000;

/** @type {readonly Row[]} */
export const timeRows = [
  {
    id: 'F60',
    title: 'the clock of Redis jumps an hour ahead',
    how: 'a clock shim under redis-server: +1 h, for good',
    wanted: `early by the clock of Redis 0, false deaths 0, nobody leads <= ${LEASE_MS} + 1000 ms`,
    workload: { ...HARMLESS, workMs: [20, 120] },
    clocks: (role) => (role === 'redis' ? {} : undefined),
    watch: true,
    async inject(scene) {
      scene.clockOf('redis').jump(HOUR_MS);
      return { vacantMs: await untilLed(scene) };
    },
    pass: ({ noted, crashed, report, effects }) => [
      ...atMost('ms until all partitions were led', noted.vacantMs ?? 0, LEASE_MS + 1000),
      ...exactly('workers believed dead', crashed, 0),
      ...exactly('starts again', report.counts.again, failures(effects)),
    ],
  },
  {
    id: 'F61',
    title: 'the clock of Redis jumps an hour back while a leader is frozen, and later to the true time',
    how: 'a clock shim under redis-server: -1 h and back after 5 s; SIGSTOP to the leader',
    wanted: `nobody leads <= ${LEASE_MS} + 1000 ms, false deaths 0`,
    workload: HARMLESS,
    clocks: (role) => (role === 'redis' ? {} : undefined),
    watch: true,
    async inject(scene) {
      const { cast, clockOf, leaderOf, redis, until, sleep, asked } = scene;
      const leader = await leaderOf(0);
      cast.send(leader, 'SIGSTOP');
      const before = await termsOf(scene);
      const [holder] = before[0]?.split(':') ?? [];
      clockOf('redis').jump(-HOUR_MS);
      const jumpedMs = Date.now();
      await until(
        async () => (await termsOf(scene)).every((term) => term && !term.startsWith(`${holder}:`)),
        'a leader',
      );
      const vacantMs = Date.now() - jumpedMs;
      // Promotion goes by the clock of Redis: what is due by it runs, an hour before its true time.
      for (const partition of PARTITIONS) {
        asked(`behind-${partition}`);
        await redis.zadd(keyOf(partition, 'scheduled'), Date.now() - HOUR_MS + 300, `behind-${partition}`);
      }
      const isBehind = (/** @type {string} */ name) => name.startsWith('behind-');
      await until(async () => !(await scheduledIn(scene)).some(isBehind), 'the bare jobs are promoted');
      const promotedMs = Date.now() - jumpedMs - vacantMs;
      await sleep(Math.max(0, 5000 - (Date.now() - jumpedMs)));
      clockOf('redis').jump(0);
      cast.send(leader, 'SIGCONT');
      return { vacantMs, promotedMs };
    },
    pass: ({ noted, crashed, report, effects, slackMs = 0 }) => [
      ...atMost('ms until another led', noted.vacantMs ?? 0, LEASE_MS + 1000),
      ...atMost('ms until bare jobs were promoted', noted.promotedMs ?? 0, 2500 + slackMs),
      ...exactly('workers believed dead', crashed, 0),
      ...exactly('starts again', report.counts.again, failures(effects)),
    ],
  },
  {
    id: 'F62',
    title: 'the clocks of daemons and workers are wrong by an hour or by 30 days, either way',
    how: 'a clock shim under every daemon and worker: +1 h, -1 h, +30 d, -30 d',
    wanted: 'late <= 1 s, false deaths 0',
    workload: HARMLESS,
    clocks: (role, nth) =>
      role === 'daemon' || role === 'worker' ? { offsetMs: OFFSETS_MS[nth % OFFSETS_MS.length] ?? 0 } : undefined,
    watch: true,
    inject: async ({ sleep }) => sleep(5000),
    pass: (outcome) => [...lateBy(outcome, 1000), ...exactly('crashes', outcome.crashed, 0)],
  },
  {
    id: 'F63',
    title: 'the clocks of daemons and workers run 5 % too fast or too slow',
    how: 'a clock shim under every daemon and worker, in turn 5 % fast and 5 % slow, monotonic clocks and timers too',
    wanted: 'changes of leader 0 within 12 s, late <= 1 s',
    workload: { ...HARMLESS, callsMs: 12_000 + SPREAD_MS },
    clocks: (role, nth) =>
      role === 'daemon' || role === 'worker' ? { ratePpm: nth % 2 === 0 ? 50_000 : -50_000 } : undefined,
    watch: true,
    async inject(scene) {
      await scene.sleep(SPREAD_MS);
      const before = await termsOf(scene);
      await scene.sleep(12_000);
      const after = await termsOf(scene);
      return { changes: after.filter((term, at) => term !== before[at]).length };
    },
    pass: (outcome) => [
      ...exactly('changes of leader', outcome.noted.changes ?? -1, 0),
      ...lateBy(outcome, 1000),
      ...exactly('crashes', outcome.crashed, 0),
    ],
  },
  {
    id: 'F64',
    title: 'jobs are due in 25 days, in a year and in ten years',
    how: 'delays beyond 2^31 ms; a clock shim under redis-server jumps to just before each due',
    wanted: `CPU of an idle daemon <= 2 % in the median of ${WINDOWS} windows, late <= 1 s`,
    workload: { ...HARMLESS, jobs: 300, callsMs: 800, nearMs: 1500, farMs: 3000 },
    clocks: (role) => (role === 'redis' ? {} : undefined),
    async inject(scene) {
      const { cast, clockOf, sleep, until } = scene;
      const far = FAR_MS.flatMap((delayMs, at) => [0, 1, 2].map((nth) => farJob(`far-${at}-${nth}`, delayMs)));
      const sentMs = Date.now();
      await cast.producer(far).exited;
      await until(async () => (await scheduledIn(scene)).length === far.length, 'only far jobs are left');
      const [leader] = cast.living('daemon');
      const windows = await cpuWindows(leader?.pid, sleep);
      for (const [at, delayMs] of FAR_MS.entries()) {
        clockOf('redis').jump(sentMs + delayMs - Date.now() - 1500);
        await until(
          async () => (await scheduledIn(scene)).length === far.length - 3 * (at + 1),
          `due ${at} is reached`,
        );
        await sleep(1000);
      }
      return { cpuPercent: windows[WINDOWS >> 1] ?? 100, cpuPercentMax: windows.at(-1) ?? 100 };
    },
    pass: ({ noted, report, crashed }) => [
      ...atMost('% CPU of an idle daemon', noted.cpuPercent ?? 100, 2),
      ...atMost('% CPU in its busiest window', noted.cpuPercentMax ?? 100, CLEANING_PERCENT),
      ...atMost('ms late', report.counts.lateMaxMs, 1000),
      ...exactly('crashes', crashed, 0),
    ],
  },
];

/**
 * What a process used in each of some seconds, in percent of a core, least first. Once, some seconds after it had work
 * to do, the engine cleans up its memory for up to 0.2 s, which says nothing about how a daemon waits; a loop that does
 * not wait uses all windows.
 *
 * @param {number | undefined} pid
 * @param {Scene['sleep']} sleep
 */
async function cpuWindows(pid, sleep) {
  const percents = [];
  for (let nth = 0; nth < WINDOWS; nth += 1) {
    const usedMs = cpuMs(pid);
    await sleep(WINDOW_MS);
    percents.push(Math.round(((cpuMs(pid) - usedMs) / WINDOW_MS) * 10_000) / 100);
  }
  return percents.sort((a, b) => a - b);
}

/** @param {string} id @param {number} delayMs @returns {import('../stage/workload.mjs').PlannedJob} */
function farJob(id, delayMs) {
  return { id, callMs: 0, delayMs, kind: 'plain', workMs: 5, padBytes: 0 };
}

/** @param {Scene} scene */
async function scheduledIn({ redis }) {
  const all = await Promise.all(PARTITIONS.map((partition) => redis.zrange(keyOf(partition, 'scheduled'), '0', '-1')));
  return all.flat();
}

/** The terms of all partitions. @param {Scene} scene @returns {Promise<readonly string[]>} */
async function termsOf({ redis }) {
  const terms = await redis.mget(PARTITIONS.map((partition) => keyOf(partition, 'leader')));
  return terms.map((term) => term ?? '');
}

/** How long until somebody leads every partition. @param {Scene} scene */
async function untilLed(scene) {
  const fromMs = Date.now();
  await scene.until(async () => (await termsOf(scene)).every((term) => term !== ''), 'leaders of all partitions');
  return Date.now() - fromMs;
}

/** Processor time of a process so far; the kernel counts it in hundredths of a second. @param {number | undefined} pid */
function cpuMs(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const [user, system] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number);
  return ((user ?? 0) + (system ?? 0)) * 10;
}
