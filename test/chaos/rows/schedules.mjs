/** Faults under schedules that fire every second. What must run follows from the clock, not from the product. */
import { createClient } from 'duestream';
import { atLeast, atMost, exactly } from '../judge/predicates.mjs';
import * as load from '../stage/load.mjs';

/** @typedef {import('../stage/run.mjs').Row} Row */
/** @typedef {import('../stage/scene.mjs').Scene} Scene */

const LEASE_MS = 1500;
const SCHEDULES = 20;
const SECONDS = 20;
const LEADERS_LOST = 6;
/** Until they are put, and Redis knows all of them. */
const AHEAD_MS = 3000;
/** Nothing of theirs comes due while it is seen how long it takes to put them. */
const REHEARSAL_MS = 600_000;

/** @type {readonly Row[]} */
export const scheduleRows = [
  {
    id: 'F67',
    title: 'who fires the schedules dies, or freezes and wakes up when another one fires them',
    how: `SIGKILL to the leader 3 times; 3 times SIGSTOP while a fire is on the way, which arrives after the next leader's; ${SCHEDULES} schedules fire every second`,
    wanted: 'runs per instant 1, none missing, none besides; late <= lease + 1 s',
    workload: { crashes: 0, poison: 0, jobs: 400 },
    line: true,
    whole: true,
    async inject(scene) {
      const { cast, redis, sleep, until, random } = scene;
      await load.declareLoad(redis);
      load.loadWorker(cast);
      const { fromMs, untilMs } = await putInTime(cast.url);
      await sleep(fromMs - Date.now());
      for (let time = 0; time < LEADERS_LOST; time += 1) {
        const leader = await leaderOfLoad(scene);
        await until(async () => (await overdue(redis)) === 0, 'nothing is overdue');
        if (time % 2 === 0) cast.send(leader, 'SIGKILL');
        else await freezeFiring(scene);
        await sleep(300 + random() * 1500);
      }
      await sleep(untilMs - Date.now());
      const wanted = new Set();
      for (let nth = 0; nth < SCHEDULES; nth += 1)
        for (let ms = fromMs; ms < untilMs; ms += 1000) wanted.add(`tick-${nth} ${ms}`);
      await load.waitFor(() => load.loadRuns(cast).length >= wanted.size, `${wanted.size} runs`, 60_000);
      // One that is too many would have come by now.
      await sleep(2000);
      const runs = load.loadRuns(cast).map(({ id, ms = 0 }) => ({ ...instantOf(id), ranMs: ms }));
      const ran = new Set(runs.map(({ name, atMs }) => `${name} ${atMs}`));
      return {
        instants: wanted.size,
        missing: [...wanted].filter((id) => !ran.has(id)).length,
        unasked: [...ran].filter((id) => !wanted.has(id)).length,
        twice: runs.length - ran.size,
        runLateMs: Math.max(...runs.map(({ ranMs, atMs }) => ranMs - atMs)),
        runEarly: runs.filter(({ ranMs, atMs }) => ranMs < atMs).length,
      };
    },
    pass: ({ noted }) => [
      ...atLeast('instants', noted.instants ?? 0, SCHEDULES * SECONDS),
      ...exactly('instants without a run', noted.missing ?? 1, 0),
      ...exactly('runs nobody asked for', noted.unasked ?? 1, 0),
      ...exactly('second runs of an instant', noted.twice ?? 1, 0),
      ...exactly('runs before their instant', noted.runEarly ?? 1, 0),
      ...atMost('ms late', noted.runLateMs ?? 1e9, LEASE_MS + 1000),
    ],
  },
];

/**
 * A schedule that is put after its start leaves out the instants before it. How long putting takes depends on what else the
 * machine does, so it is tried first.
 *
 * @param {string} url
 */
async function putInTime(url) {
  const triedMs = Date.now();
  await putAll(url, boundsFrom(triedMs + REHEARSAL_MS));
  const tookMs = Date.now() - triedMs;
  const bounds = boundsFrom(Date.now() + AHEAD_MS + 5 * tookMs);
  await putAll(url, bounds);
  if (Date.now() > bounds.fromMs) throw new Error('ran out of time: the schedules were put after their start');
  return bounds;
}

/** @param {number} ms */
function boundsFrom(ms) {
  const fromMs = Math.ceil(ms / 1000) * 1000;
  return { fromMs, untilMs: fromMs + SECONDS * 1000 };
}

/** Half of them intervals, half expressions in a zone; all catch up whatever passed. @param {string} url @param {{ fromMs: number, untilMs: number }} bounds */
async function putAll(url, { fromMs, untilMs }) {
  const client = createClient({ redis: url });
  const schedules = client.schedules;
  try {
    const bounds = { start: isoOf(fromMs), end: isoOf(untilMs) };
    for (let nth = 0; nth < SCHEDULES; nth += 1) {
      const rule = nth % 2 === 0 ? { every: '1s' } : { cron: '* * * * * *', zone: 'America/New_York' };
      await schedules.put(`tick-${nth}`, { queue: 'load', job: 'count', ...rule, ...bounds, catchUp: 'all' });
    }
  } finally {
    await client.close();
  }
}

/** What an id says: `{schedule:name}2026-11-21T19:08:19Z`. @param {string} id */
function instantOf(id) {
  const [, name = '', at = ''] = /^\{schedule:(.+)\}(.+)$/.exec(id) ?? [];
  return { name, atMs: Date.parse(at) };
}

/** Schedules whose instant has passed, and that nobody has fired. @param {import('ioredis').Redis} redis */
const overdue = (redis) => redis.zcount(load.loadKey('fires'), 0, Date.now() - 100);

/** @param {number} ms */
const isoOf = (ms) => new Date(ms).toISOString();

/** The process that leads the queue `load`. @param {Scene} scene */
async function leaderOfLoad({ redis, cast, pidOf, until }) {
  /** @type {import('../stage/cast.mjs').Actor | undefined} */
  let found;
  await until(async () => {
    const term = (await redis.get(load.loadKey('leader'))) ?? '';
    const pid = await pidOf(term.split(':')[0] ?? '');
    found = cast.living('daemon').find((actor) => actor.pid === pid);
    return found !== undefined;
  }, 'a leader of load');
  if (!found) throw new Error('nobody leads load');
  return found;
}

/**
 * Stops the leader while what it fires is on the way, which arrives when another one leads and has fired the same.
 *
 * @param {Scene} scene
 */
async function freezeFiring({ theLine, pidOf, redis, cast, until, sleep }) {
  const { request, release } = await theLine().hold('fire');
  const pid = await pidOf(/d-[\w-]+(?=:\d+:\d+)/.exec(request)?.[0] ?? '');
  const leader = cast.living('daemon').find((actor) => actor.pid === pid);
  if (!leader) throw new Error('who fires this?');
  const term = await redis.get(load.loadKey('leader'));
  cast.send(leader, 'SIGSTOP');
  try {
    await until(async () => ![null, term].includes(await redis.get(load.loadKey('leader'))), 'another leader of load');
    await until(async () => (await overdue(redis)) === 0, 'the other leader has fired');
    void release();
    await sleep(200);
  } finally {
    cast.send(leader, 'SIGCONT');
  }
}
