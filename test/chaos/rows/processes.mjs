/** Faults of our own processes. Times are shortened: a lease is 1.5 s, a dead worker is known after 2 s and its jobs are
 * taken over after 3 s without a sign of life. */

import { muteReplies } from '../faults/spoilers.mjs';
import { keyOf, PARTITIONS } from '../judge/dump.mjs';
import { atLeast, atMost, exactly, failures, lateBy } from '../judge/predicates.mjs';
import { PRODUCERS, SLOTS, WORKERS } from '../stage/workload.mjs';

/** @typedef {import('../stage/run.mjs').Row} Row */

const LEASE_MS = 1500;
/** Where starts are counted or timed, no job ends its worker on its own. */
const HARMLESS = { crashes: 0, poison: 0 };

/** @type {readonly Row[]} */
export const processRows = [
  {
    id: 'F1',
    title: 'the leader is killed, five times',
    how: 'SIGKILL to a leader, 5 times, each when all partitions are led again',
    wanted: 'late <= lease + 1 s',
    workload: HARMLESS,
    watch: true,
    async inject({ cast, leaderOf, sleep, random }) {
      for (let time = 0; time < 5; time += 1) {
        for (const partition of PARTITIONS) await leaderOf(partition);
        cast.send(await leaderOf(time % PARTITIONS.length), 'SIGKILL');
        await sleep(random() * 800);
      }
    },
    pass: (outcome) => lateBy(outcome, LEASE_MS + 1000),
  },
  {
    id: 'F2',
    title: 'a worker is killed in the middle of its jobs, twice',
    how: 'SIGKILL to a worker that runs something, twice',
    wanted: 'starts again <= 8 per kill',
    workload: HARMLESS,
    async inject({ cast, anyWorker, runningOn, until, sleep }) {
      for (let time = 0; time < 2; time += 1) {
        const worker = await anyWorker();
        await until(async () => (await runningOn(worker)) > 0, 'a worker that runs something');
        cast.send(worker, 'SIGKILL');
        await sleep(900);
      }
    },
    pass: ({ report, effects }) => [
      ...atMost('starts again besides failures', report.counts.again - failures(effects), 2 * SLOTS),
    ],
  },
  {
    id: 'F3',
    title: 'a producer is killed between a call and its reply',
    how: 'SIGKILL to a producer whose call never arrives, and to one whose call was carried out and not answered',
    wanted: 'jobs of such a call: none or all of them; effects of each <= 1; half a record 0',
    line: true,
    whole: true,
    async inject({ cast, theLine, redis, sleep }) {
      const callers = cast.living('producer');
      const killCallerOf = (/** @type {readonly string[]} */ ids) => {
        const caller = callers[Number(ids[0]?.split('-')[1]) % PRODUCERS];
        if (!caller || caller.isGone()) throw new Error(`whose call is this: ${ids}`);
        cast.send(caller, 'SIGKILL');
      };
      const existing = async (/** @type {readonly string[]} */ ids) => {
        const all = ids.flatMap((id) => PARTITIONS.map((at) => redis.hexists(keyOf(at, 'jobs'), `j:${id}`)));
        return (await Promise.all(all)).reduce((total, count) => total + count, 0);
      };
      const unsent = jobsIn((await theLine().hold('schedule')).request);
      killCallerOf(unsent);
      // What it had sent before is on its way through the line, and has no caller any more.
      await sleep(300);
      const muted = muteReplies({ marks: theLine().marksOf('schedule') });
      theLine().spoil(muted);
      const unanswered = jobsIn(await muted.caught);
      await sleep(300);
      killCallerOf(unanswered);
      theLine().spoil();
      await sleep(300);
      const [arrived, carriedOut] = [await existing(unsent), await existing(unanswered)];
      return { unsent: unsent.length, arrived, unanswered: unanswered.length, missing: unanswered.length - carriedOut };
    },
    pass({ noted, calls, effects }) {
      const settled = new Set(calls.filter(({ ev }) => /ok|fail|unknown/.test(ev)).map(({ id }) => id));
      const open = new Set(calls.flatMap(({ ev, id = '' }) => (ev === 'enq.call' && !settled.has(id) ? [id] : [])));
      const of = effects.filter(({ ev, id = '' }) => ev === 'effect' && open.has(id)).map(({ id }) => id);
      return [
        ...atLeast('jobs of a call that never arrived', noted.unsent ?? 0, 1),
        ...exactly('jobs of it that Redis has', noted.arrived ?? -1, 0),
        ...atLeast('jobs of a call that was carried out', noted.unanswered ?? 0, 1),
        ...exactly('jobs of it that Redis does not have', noted.missing ?? -1, 0),
        ...atLeast('jobs that were never answered for', open.size, (noted.unsent ?? 0) + (noted.unanswered ?? 0)),
        ...exactly('second effects of one of them', of.length - new Set(of).size, 0),
      ];
    },
  },
  {
    id: 'F4',
    title: 'the leader freezes for three leases, and its last promote arrives late',
    how: 'SIGSTOP to the leader while its promote is on the way, SIGCONT after 3 leases',
    wanted: 'promotions of the old term 0; late <= lease + 1.5 s',
    workload: HARMLESS,
    line: true,
    watch: true,
    async inject({ cast, theLine, pidOf, leaderOf, redis, until, sleep, asked }) {
      const { request, release } = await theLine().hold('promote');
      // A busy daemon writes calls for several partitions at once: the first promote among them counts.
      const begins = theLine()
        .marksOf('promote')
        .map((mark) => request.indexOf(mark));
      const call = request.slice(Math.min(...begins.filter((at) => at >= 0)));
      const [, id = '', term = ''] = /(d-[\w-]+):(\d+):\d+/.exec(call) ?? [];
      const pid = await pidOf(id);
      const leader = cast.living('daemon').find((actor) => actor.pid === pid);
      const partition = Number(/:(\d+)\}:leader/.exec(call)?.[1]);
      if (!leader) throw new Error('whose promote is this?');
      const frozenMs = Date.now();
      cast.send(leader, 'SIGSTOP');
      const promoted = async () => Number(await redis.hget(keyOf(partition, 'meta'), 'n.promoted'));
      await until(async () => {
        const epoch = (await redis.get(keyOf(partition, 'leader')))?.split(':')[1];
        return epoch !== undefined && epoch !== term;
      }, 'another leader');
      const before = await promoted();
      await until(async () => (await promoted()) > before, 'a promotion of the new leader');
      // Bare jobs nudge nobody, so the old term finds something to promote if it is let through.
      const late = ['late-1', 'late-2', 'late-3'];
      for (const id of late) asked(id);
      // The new leader looks many times a second: it stands still until the old promote has had its chance.
      const next = await leaderOf(partition);
      cast.send(next, 'SIGSTOP');
      await redis.zadd(keyOf(partition, 'scheduled'), ...late.flatMap((id) => [Date.now(), id]));
      void release();
      await sleep(LEASE_MS / 5);
      cast.send(next, 'SIGCONT');
      await sleep(Math.max(0, 3 * LEASE_MS - (Date.now() - frozenMs)));
      cast.send(leader, 'SIGCONT');
    },
    pass: (outcome) => lateBy(outcome, LEASE_MS + 1500),
  },
  {
    id: 'F5',
    title: 'a worker freezes until its jobs are taken over, and wakes up',
    how: 'SIGSTOP to a worker that runs something, SIGCONT after 7 s',
    wanted: 'starts again <= 8',
    workload: HARMLESS,
    async inject({ cast, anyWorker, runningOn, until, sleep }) {
      const worker = await anyWorker();
      await until(async () => (await runningOn(worker)) > 0, 'a worker that runs something');
      cast.send(worker, 'SIGSTOP');
      await sleep(7000);
      cast.send(worker, 'SIGCONT');
    },
    pass: ({ report, effects }) => atMost('starts again', report.counts.again - failures(effects), SLOTS),
  },
  {
    id: 'F6',
    title: 'all workers freeze for 6 seconds and wake up together',
    how: 'SIGSTOP to all workers, SIGCONT after 6 s',
    wanted: 'starts again <= slots of all workers',
    workload: HARMLESS,
    async inject({ cast, sleep }) {
      const workers = cast.living('worker');
      for (const worker of workers) cast.send(worker, 'SIGSTOP');
      await sleep(6000);
      for (const worker of workers) cast.send(worker, 'SIGCONT');
    },
    pass: ({ report, effects }) => atMost('starts again', report.counts.again - failures(effects), WORKERS * SLOTS),
  },
  {
    id: 'F10',
    title: 'handlers throw undefined, texts, circular and frozen things, getters that throw and 10 MB',
    how: '3 handlers in 10 throw such a thing',
    wanted: 'one start again per failure; no worker ends',
    workload: { ...HARMLESS, jobs: 600, odd: 0.3 },
    inject: async () => {},
    pass: ({ report, effects, actors }) => [
      ...exactly('starts again', report.counts.again, failures(effects)),
      ...exactly('processes', actors.filter(({ role }) => role === 'worker').length, WORKERS),
    ],
  },
  {
    id: 'F12',
    title: 'jobs that take their worker with them, once or always',
    how: 'handlers that SIGKILL their own process: 1 % once, 0.5 % always',
    wanted: 'starts of a killer <= 3, then dead; other jobs dead 0',
    workload: { jobs: 600, crashes: 0.01, poison: 0.005 },
    drainMs: 20_000,
    inject: async () => {},
    pass({ deadLetters, effects, report }) {
      const crashed = new Set(effects.filter(({ ev }) => ev === 'crash').map(({ id }) => id));
      const starts = [...crashed].map(
        (id) => effects.filter((event) => event.id === id && event.ev === 'start').length,
      );
      const dead = Object.values(deadLetters).reduce((total, count) => total + count, 0);
      return [
        ...atMost('starts of a job that kills', Math.max(0, ...starts), 3),
        ...(crashed.size === 0 ? ['nothing crashed: another seed'] : []),
        ...(dead === 0 ? ['no poison became a dead letter'] : []),
        ...exactly('other jobs that became dead letters', report.counts.bystanders, 0),
      ];
    },
  },
  {
    id: 'F13',
    title: 'a worker is asked to end while it works, and another takes its place',
    how: 'SIGTERM to a busy worker that may take 400 ms',
    wanted: 'gone <= 1.6 s with status 0; crashes counted 0',
    workload: { ...HARMLESS, jobs: 250, workMs: [50, 900] },
    env: { DUESTREAM_WORKER__SHUTDOWN: '400' },
    async inject({ cast, anyWorker, runningOn, until }) {
      const worker = await anyWorker();
      await until(async () => (await runningOn(worker)) > 2, 'a busy worker');
      const askedMs = Date.now();
      const { code } = await cast.dismiss(worker);
      cast.worker();
      return { exitMs: Date.now() - askedMs, code: code ?? -1 };
    },
    pass: ({ noted, crashed }) => [
      ...atMost('ms until it ended', noted.exitMs ?? 0, 1600),
      ...exactly('exit code', noted.code ?? -1, 0),
      ...exactly('crashes', crashed, 0),
    ],
  },
  {
    id: 'F14',
    title: 'the leader is asked to end',
    how: 'SIGTERM to the leader',
    wanted: 'late <= 500 ms',
    workload: HARMLESS,
    watch: true,
    async inject({ cast, leaderOf }) {
      await cast.dismiss(await leaderOf(0));
      cast.daemon();
    },
    pass: (outcome) => lateBy(outcome, 500),
  },
];

/** The jobs of the workload that a request names. @param {string} request */
function jobsIn(request) {
  return [...new Set([...request.matchAll(/j:(job-\d+)/g)].map(([, id = '']) => id))];
}
