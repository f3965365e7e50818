/**
 * Faults under limits: a queue that may run 8 jobs at a time, one of each group, and start so many in a second. While they
 * wait in line something breaks; `judge/gates.mjs` judges that no limit is exceeded and that a lane keeps its order, and the
 * end that nobody is stuck.
 */
import { deposed, replaced, shardOf, shuffled, takenOver } from '../faults/failover.mjs';
import { keyOf } from '../judge/dump.mjs';
import { atLeast, atMost, exactly, failures, settled } from '../judge/predicates.mjs';
import { effectsSoFar, within } from '../stage/extras.mjs';
import { commandLine } from '../stage/load.mjs';
import { GRACE_TO_DIAL, SLOTS } from '../stage/workload.mjs';

/** @typedef {import('../stage/run.mjs').Row} Row */
/** @typedef {import('../stage/run.mjs').Outcome} Outcome */
/** @typedef {import('../stage/scene.mjs').Scene} Scene */
/** @typedef {import('../judge/gates.mjs').Limits} Limits */

const CONTROL = 'duestream:v1:{control}';
const HOUR_MS = 3_600_000;
/** So many jobs are lined up with 2^52 in front of their due time. */
const WAITS = 2 ** 52;
const AWAY_MS = 10_000;
/** So many starts show that it goes on; a quiet machine makes ten times as many. */
const GOES_ON = 100;
const MANY = 100_000;
/** A walk of the janitor begins once a minute. */
const WALK_MS = 75_000;
const LAG_MS = 1000;
/** Jobs of a tenth of a second in all groups but one, more of them than may run. */
const LIMITS = { concurrency: 8, perGroup: 1, rate: 400 };
/** Here the rate is what they wait for. */
const SLOW = { concurrency: 8, perGroup: 1, rate: 120 };
/** Seconds of work are due within the first seconds. */
const BACKLOG = { jobs: 3000, callsMs: 3000, nearMs: 800, farMs: 2000, groups: 60, crashes: 0, poison: 0 };
const SHORT = /** @type {const} */ ([5, 40]);
const WANTED = 'never more than 8 leases, nor one more of a group; a lane in its order';

/** @type {Pick<Row, 'gates' | 'partitions' | 'workload' | 'whole'>} */
const GATED = { gates: LIMITS, partitions: 1, workload: { ...BACKLOG, workMs: SHORT }, whole: true };
/** Nothing is on disk: what a failover forgets is gone for good. */
const ASYNCHRONOUS = /** @type {const} */ ({
  mode: 'none',
  env: GRACE_TO_DIAL,
  severs: true,
  declaredLossMs: { none: LAG_MS },
});

/** @type {readonly Row[]} */
export const gateRows = [
  {
    ...GATED,
    id: 'F100',
    title: 'limits: workers are killed in the middle of their jobs',
    how: 'SIGKILL to a worker that runs something, 3 times; 8 at a time, one of each group',
    wanted: `${WANTED}; starts again <= 8 per kill`,
    workload: { ...GATED.workload, jobs: 1500 },
    async inject(scene) {
      for (let time = 0; time < 3; time += 1) {
        await killBusy(scene);
        await scene.sleep(900);
      }
    },
    pass: ({ report, effects }) => [
      ...atMost('starts again besides failures', report.counts.again - failures(effects), 3 * SLOTS),
    ],
  },
  {
    ...GATED,
    id: 'F111',
    title: 'limits: handlers pay no heed to their time-outs, and workers are killed meanwhile',
    how: 'every eighth handler goes on for a second after its time-out; SIGKILL to a worker that runs something, 3 times',
    wanted: `${WANTED}; starts again <= 8 per kill; time-outs`,
    workload: { ...GATED.workload, jobs: 400, deaf: 0.125, throws: 0 },
    async inject(scene) {
      for (let time = 0; time < 3; time += 1) {
        await killBusy(scene);
        await scene.sleep(2500);
      }
    },
    pass: ({ report, effects }) => [
      ...atMost('starts again besides failures', report.counts.again - failures(effects), 3 * SLOTS),
      ...atLeast('handlers that went on after their time-out', failures(effects), 20),
    ],
  },
  {
    ...GATED,
    id: 'F101',
    title: 'limits: leaders are killed, and then nobody leads for 10 seconds',
    how: 'SIGKILL to the leader, twice; SIGSTOP to all daemons for 10 s when all is lined up',
    wanted: `${WANTED}; starts while nobody led >= ${GOES_ON}, or all that was lined up`,
    async inject(scene) {
      const { cast, leaderOf, redis, sleep } = scene;
      for (let time = 0; time < 2; time += 1) {
        cast.send(await leaderOf(0), 'SIGKILL');
        await sleep(300);
      }
      await linedUp(scene);
      const daemons = cast.living('daemon');
      for (const daemon of daemons) cast.send(daemon, 'SIGSTOP');
      await within(
        10_000,
        async () => (await redis.exists(keyOf(0, 'leader'))) === 0,
        'the lease of the leader is over',
      );
      const [lined, before] = [await redis.zcard(keyOf(0, 'line')), startsSoFar(scene)];
      await sleep(AWAY_MS);
      const [left, after] = [await redis.zcard(keyOf(0, 'line')), startsSoFar(scene)];
      for (const daemon of daemons) cast.send(daemon, 'SIGCONT');
      return { lined, left, went: after - before };
    },
    pass: ({ noted: { lined = 0, left = 1, went = 0 } }) => [
      ...atLeast('jobs lined up when nobody led', lined, GOES_ON),
      ...(left === 0 ? [] : atLeast('starts while nobody led', went, GOES_ON)),
    ],
  },
  {
    ...GATED,
    id: 'F102',
    title: 'limits: the last calls of a deposed leader arrive late',
    how: 'its limit, of 40 at a time, and its promote are held up; SIGSTOP to it; another leads and has set 4; then they arrive',
    wanted: 'never more than 4 leases from then on; promotions of the old term 0',
    line: true,
    watch: true,
    inject: lateCalls,
    pass: ({ noted: { late = 1 } }) => exactly('limits that a deposed leader set', late, 0),
  },
  {
    ...GATED,
    id: 'F103',
    title: 'limits: somebody removes holds, lanes and the line',
    how: 'DEL of the holds, until all that runs has one again; then DEL of lanes and line together',
    wanted:
      'never more than 8 leases; one of a group but for while holds were missing; nobody is stuck 75 s later; without order',
    gates: { ...LIMITS, inOrder: false },
    drainMs: WALK_MS,
    async inject(scene) {
      const { redis, note, until, sleep } = scene;
      await linedUp(scene);
      note('holds.gone');
      await redis.del(keyOf(0, 'holds'));
      await until(() => areHeld(scene), 'all that is ready has its hold');
      note('holds.back');
      await sleep(1000);
      const lanes = await redis.zcard(keyOf(0, 'lanes'));
      await redis.del(keyOf(0, 'lanes'), keyOf(0, 'line'));
      return { lanes };
    },
    pass: ({ noted: { lanes = 0 } }) => atLeast('lanes that were removed', lanes, 1),
  },
  {
    ...GATED,
    id: 'F104',
    title: 'limits: the clock of Redis steps back and forth',
    how: 'a clock shim under redis-server: -1 h for 3 s, true for 2 s, +1 h for 2 s, and true again; 120 starts per second',
    wanted:
      'never more than 8 leases, nor one more of a group; 120 starts per second and one burst per step; without order',
    gates: { ...SLOW, inOrder: false },
    // A retry of the hour that is to come would have to wait for it.
    workload: { ...GATED.workload, workMs: [1, 10], jobs: 1800, throws: 0 },
    clocks: (role) => (role === 'redis' ? {} : undefined),
    async inject({ clockOf, note, sleep }) {
      const steps = /** @type {const} */ ([
        [-HOUR_MS, 3000],
        [0, 2000],
        [HOUR_MS, 2000],
        [0, 0],
      ]);
      for (const [offsetMs, forMs] of steps) {
        note('step');
        clockOf('redis').jump(offsetMs);
        await sleep(forMs);
      }
    },
  },
  {
    ...GATED,
    id: 'F105',
    title: 'limits: Redis is full for 8 seconds while jobs wait',
    how: 'maxmemory just above what is used, for 8 s',
    wanted: `${WANTED}; jobs end meanwhile; calls are refused; workers believed dead 0`,
    workload: { ...GATED.workload, callsMs: 9000, padBytes: 2000 },
    async inject(scene) {
      const { redis, repeatedly } = scene;
      let least = Number.POSITIVE_INFINITY;
      // Jobs that end make room, so the limit follows what is used.
      await repeatedly(8000, 500, async () => {
        least = Math.min(least, Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]));
        await redis.config('SET', 'maxmemory', String(least + 20_000));
      });
      const lined = await redis.zcard(keyOf(0, 'line'));
      await redis.config('SET', 'maxmemory', '0');
      return { lined };
    },
    pass({ effects, calls, crashed, fromMs, toMs }) {
      const ended = effects.filter(({ ev, ms }) => ev === 'effect' && ms > fromMs + 500 && ms < toMs);
      const refused = calls.filter(({ ev, code }) => ev === 'enq.fail' && code === 'out-of-memory');
      return [
        ...atLeast('effects while it was full', ended.length, 1),
        ...atLeast('calls that were refused', refused.length, 1),
        ...exactly('workers believed dead', crashed, 0),
      ];
    },
  },
  {
    ...GATED,
    id: 'F106',
    title: 'limits change under load, up and down',
    how: '`queues set`: 3 at a time, 16, no limit per group, 2 of each, 1 of each, 100 starts per second, 8 at a time',
    wanted: 'each holds when its call has ended; what ran before counts; without order',
    gates: { ...LIMITS, inOrder: false },
    async inject(scene) {
      let limits = /** @type {Limits} */ (LIMITS);
      const steps = [
        { concurrency: 3 },
        { concurrency: 16 },
        { perGroup: 0 },
        { perGroup: 2 },
        { perGroup: 1 },
        { rate: 100 },
        { concurrency: 8 },
      ];
      for (const step of steps) {
        limits = { ...limits, ...step };
        await set(scene, limits);
        await scene.sleep(700);
      }
    },
  },
  {
    ...GATED,
    ...ASYNCHRONOUS,
    id: 'F107',
    title: 'limits: Sentinel, the master is killed',
    how: 'SIGKILL to the master; started again when the Sentinels have named another one',
    wanted: `${WANTED}, but for leases of the 1.0 s before, which Redis forgot; starts after that >= ${GOES_ON}`,
    topology: { kind: 'sentinel', downAfterMs: 3000 },
    async inject(scene) {
      const master = await scene.theSentinels().master();
      scene.note('loss.begin');
      await master.kill();
      scene.note('loss.end');
      await replaced(scene, master);
      const before = startsSoFar(scene);
      await master.restart();
      await deposed(scene, master);
      return { before };
    },
    pass: wentOn,
  },
  {
    ...GATED,
    ...ASYNCHRONOUS,
    id: 'F108',
    title: 'limits: Cluster, a master is killed',
    how: 'the 8 at a time divided among 4 partitions; SIGKILL to the master of one; started again when its replica has taken over',
    wanted: `${WANTED}, but for leases of the 1.0 s before, which Redis forgot; starts after that >= ${GOES_ON}`,
    partitions: 4,
    topology: { kind: 'cluster' },
    async inject(scene) {
      const partition = shuffled(scene).find((one) => one < 4) ?? 0;
      const shard = await shardOf(scene, partition);
      scene.note('loss.begin');
      await shard.master.kill();
      scene.note('loss.end');
      await takenOver(scene, shard);
      const before = startsSoFar(scene);
      await shard.master.restart();
      await deposed(scene, shard.master);
      return { before };
    },
    pass: wentOn,
  },
  {
    ...GATED,
    ...ASYNCHRONOUS,
    id: 'F109',
    title: 'limits: 100,000 jobs, while workers, leaders and a master are killed',
    how: 'SIGKILL to a worker that runs something, 6 times, to the leader, 3 times, and to the master of Sentinels, once, in the first 40 s; 16 at a time, one of each of 1,000 groups, 1,000 starts per second',
    wanted: `never more than 16 leases, nor one more of a group; a lane in its order, but for leases of the 1.0 s before, which Redis forgot; starts >= 100,000`,
    gates: { concurrency: 16, perGroup: 1, rate: 1000 },
    topology: { kind: 'sentinel', downAfterMs: 3000 },
    workload: { ...BACKLOG, jobs: MANY, callsMs: 60_000, groups: 1000, workMs: [0, 3], throws: 0.005 },
    limitMs: 600_000,
    async inject(scene) {
      const { cast, leaderOf, note, sleep, theSentinels } = scene;
      for (const hasLeader of [true, false, true]) {
        await killBusy(scene);
        await sleep(3000);
        if (hasLeader) cast.send(await leaderOf(0), 'SIGKILL');
        await sleep(3000);
      }
      const master = await theSentinels().master();
      note('loss.begin');
      await master.kill();
      note('loss.end');
      await replaced(scene, master);
      await master.restart();
      await deposed(scene, master);
      for (const hasLeader of [false, true, false]) {
        await killBusy(scene);
        await sleep(3000);
        if (hasLeader) cast.send(await leaderOf(0), 'SIGKILL');
        await sleep(1000);
      }
    },
    pass: (outcome) => [
      ...settled(outcome),
      ...atLeast('starts', outcome.effects.filter(({ ev }) => ev === 'start').length, MANY),
    ],
  },
];

/** Eight of 32 slots are in use, so a worker that is picked at random may be idle. @param {Scene} scene */
async function killBusy({ cast, runningOn, until }) {
  await until(async () => {
    const workers = cast.living('worker');
    const running = await Promise.all(workers.map(runningOn));
    const busy = workers.find((_, at) => (running[at] ?? 0) > 0);
    if (busy) cast.send(busy, 'SIGKILL');
    return busy !== undefined;
  }, 'a worker that runs something');
}

/** @param {Outcome} outcome */
function wentOn(outcome) {
  const { effects, noted } = outcome;
  const all = effects.filter(({ ev }) => ev === 'start').length;
  return [...settled(outcome), ...atLeast('starts after the failover', all - (noted.before ?? all), GOES_ON)];
}

/** @param {Scene} scene */
const startsSoFar = (scene) => effectsSoFar(scene).filter(({ ev }) => ev === 'start').length;

/** Waits until everything was asked for and is due, and has its place in line. @param {Scene} scene */
async function linedUp({ cast, redis }) {
  const areGone = () => cast.living('producer').length === 0;
  await within(60_000, areGone, 'the producers ended');
  const early = () => redis.zcount(keyOf(0, 'scheduled'), '-inf', `(${WAITS}`);
  // One that failed comes back for a moment.
  await within(60_000, async () => (await early()) < 20, 'all is lined up');
}

/** Each entry of ready has its hold; an entry that went meanwhile has none, and counts at the next look. @param {Scene} scene */
async function areHeld({ redis }) {
  const entries = await redis.xrange(keyOf(0, 'ready'), '-', '+');
  const holds = new Set(await redis.zrange(keyOf(0, 'holds'), '0', '-1'));
  return entries.every(([entry, fields]) => {
    const group = /^j:\{([^{}]+)\}/.exec(fields[1] ?? '')?.[1];
    return group === undefined || holds.has(`${group}\0${entry}`);
  });
}

/** Sets limits as a person does, and writes down when the call began and ended. @param {Scene} scene @param {Limits} limits */
async function set({ cast, note }, { concurrency, perGroup, rate }) {
  const flags = { concurrency: concurrency || 'none', 'per-group': perGroup || 'none', rate: `${rate}/s` };
  const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)]);
  note('limits.begin');
  const { err } = await commandLine(cast, ['queues', 'set', 'chaos', ...args]);
  note('limits', { concurrency, perGroup, rate });
  if (err !== '') throw new Error(`queues set: ${err}`);
}

/** @param {Scene} scene */
async function lateCalls(scene) {
  const { cast, theLine, leaderOf, redis, note, until, sleep } = scene;
  const say = async (/** @type {number} */ concurrency) => {
    await redis.hset(`${CONTROL}:queues`, 'chaos:concurrency', String(concurrency));
    await redis.spublish(`${CONTROL}:wake`, 'queue chaos');
  };
  const isFour = async () => / 4 1$/.test((await redis.hget(keyOf(0, 'meta'), 'gates')) ?? '');
  const leader = await leaderOf(0);
  // Somebody said 40, ended before the partition had its share, and somebody else said 4.
  const caught = theLine().hold('limit');
  await say(40);
  const { release } = await caught;
  cast.send(leader, 'SIGSTOP');
  note('limits.begin');
  await say(4);
  await until(isFour, 'another leader has set the limits');
  note('limits', { ...LIMITS, concurrency: 4 });
  void release();
  await sleep(500);
  const late = (await isFour()) ? 0 : 1;
  cast.send(leader, 'SIGCONT');
  await latePromote(scene);
  return { late };
}

/** The leader freezes while its promote is on the way, which arrives when another one leads. @param {Scene} scene */
async function latePromote({ cast, theLine, pidOf, leaderOf, redis, until, sleep, asked }) {
  const { request, release } = await theLine().hold('promote');
  const [, id = '', epoch = ''] = /(d-[\w-]+):(\d+):\d+/.exec(request) ?? [];
  const pid = await pidOf(id);
  const leader = cast.living('daemon').find((actor) => actor.pid === pid);
  if (!leader) throw new Error('whose promote is this?');
  cast.send(leader, 'SIGSTOP');
  await until(async () => {
    const term = await redis.get(keyOf(0, 'leader'));
    return term !== null && term.split(':')[1] !== epoch;
  }, 'another leader');
  // It looks many times a second: it stands still until the old promote has had its chance.
  const next = await leaderOf(0);
  await sleep(200);
  cast.send(next, 'SIGSTOP');
  const late = ['late-1', 'late-2', 'late-3'];
  for (const id of late) asked(id);
  await redis.zadd(keyOf(0, 'scheduled'), ...late.flatMap((id) => [Date.now(), id]));
  void release();
  await sleep(300);
  for (const daemon of [next, leader]) cast.send(daemon, 'SIGCONT');
}
