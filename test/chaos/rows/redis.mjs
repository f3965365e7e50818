/** Faults of Redis and of the way to it. */
import { ask } from '../../../src/embedded/ask.mjs';
import { atLeast, exactly, resumed, settled } from '../judge/predicates.mjs';
import { GRACE_TO_DIAL, SLOTS, WORKERS } from '../stage/workload.mjs';

/** @typedef {import('../stage/run.mjs').Row} Row */

/** Jobs that can run at once. */
const IN_FLIGHT = WORKERS * SLOTS;
/** The matrix: late by 2 s more than it slept. */
const AFTER_SLEEP_MS = 2000;
const LOST_EACH = 10;
const LOSING_MAX_MS = 20_000;
const VERBS = ['schedule', 'promote', 'serve', 'complete', 'retry', 'extend'];

/** What a worker takes in earnest; the pauses between its dials, up to 2.5 s, are never shortened. */
const EARNEST_TIMES = {
  DUESTREAM_WORKER__JOB_LEASE: '15000',
  DUESTREAM_WORKER__BEAT_TTL: '10000',
  DUESTREAM_WORKER__GRACE: '5000',
};

/** @type {readonly Row[]} */
export const redisRows = [
  {
    id: 'F21',
    title: 'Redis is killed three times, appendfsync always',
    how: 'SIGKILL to redis-server and a new start, 3 times',
    wanted: 'every call settles <= 15 s',
    mode: 'always',
    env: GRACE_TO_DIAL,
    async inject({ server, sleep, random }) {
      for (let time = 0; time < 3; time += 1) {
        server.signal('SIGKILL');
        await server.ended();
        await server.start();
        await sleep(1000 + random() * 500);
      }
    },
    pass: settled,
  },
  {
    id: 'F22',
    title: 'Redis is killed, appendfsync everysec, on a healthy disk',
    how: 'SIGKILL to redis-server and a new start',
    wanted: 'every call settles <= 15 s',
    mode: 'everysec',
    env: GRACE_TO_DIAL,
    async inject({ server }) {
      server.signal('SIGKILL');
      await server.ended();
      await server.start();
    },
    pass: settled,
  },
  {
    id: 'F24',
    title: 'SHUTDOWN NOSAVE and a new start, with an append-only file',
    how: 'SHUTDOWN NOSAVE and a new start',
    wanted: 'every call settles <= 15 s',
    mode: 'everysec',
    env: GRACE_TO_DIAL,
    async inject({ server }) {
      // Not over a client that would send it again to the new server.
      await ask({ socketPath: server.socketPath }, ['SHUTDOWN', 'NOSAVE']).catch(() => {});
      await server.ended();
      await server.start();
    },
    pass: settled,
  },
  {
    id: 'F26',
    title: 'CLIENT KILL TYPE normal every 500 ms',
    how: 'CLIENT KILL TYPE normal every 500 ms for 5 s',
    wanted: 'double starts 0; every call settles <= 15 s',
    // Nobody dies here, so nothing waits for a lease; a lease shorter than some pauses between dials would run out.
    workload: { crashes: 0, poison: 0 },
    env: EARNEST_TIMES,
    drainMs: 20_000,
    async inject({ repeatedly, redis }) {
      return {
        kills: await repeatedly(5000, 500, () => redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')),
      };
    },
    pass: settled,
  },
  {
    id: 'F27',
    title: 'replies get lost after Redis has carried out the script',
    how: 'a proxy cuts the connection instead of handing on the reply, 10 times for each of 7 scripts',
    wanted: 'every call settles <= 15 s; lost replies >= 10 per script',
    line: true,
    // A connection that is cut again and again is away for longer than a shortened lease.
    env: { ...EARNEST_TIMES, DUESTREAM_WORKER__JOB_LEASE: '6000' },
    workload: { jobs: 800, callsMs: 12_000, farMs: 4000, throws: 0.15, workMs: [5, 600], crashes: 0, poison: 0 },
    inject: ({ theLine, sleep }) => loseReplies(theLine(), { verbs: VERBS, each: LOST_EACH, sleep }),
    drainMs: 20_000,
    pass: (outcome) => [
      ...settled(outcome),
      ...VERBS.flatMap((verb) => atLeast(`lost replies to ${verb}`, outcome.noted[verb] ?? 0, LOST_EACH)),
    ],
  },
  {
    id: 'F28',
    title: 'replies to XREADGROUP get lost with the jobs in them',
    how: 'a proxy cuts the connection instead of handing on the reply, 10 times',
    wanted: 'double starts 0; lost replies >= 3',
    line: true,
    workload: { jobs: 600, callsMs: 3500, farMs: 7000 },
    async inject({ theLine, repeatedly }) {
      await repeatedly(2500, 250, async () => theLine().loseNextRead());
      return { lost: theLine().lost() };
    },
    drainMs: 22_000,
    pass: (outcome) => atLeast('lost replies', outcome.noted.lost ?? 0, 3),
  },
  {
    id: 'F29',
    title: 'Redis freezes for 6 seconds',
    how: 'SIGSTOP to redis-server, SIGCONT after 6 s',
    wanted: 'every call settles <= 15 s; each partition goes on <= 5 s',
    severs: true,
    async inject({ server, sleep }) {
      server.signal('SIGSTOP');
      await sleep(6000);
      server.signal('SIGCONT');
    },
    pass: (outcome) => [...settled(outcome), ...resumed(outcome, 5000)],
  },
  {
    id: 'F30',
    title: 'the line goes deaf for 6 seconds and closes nothing',
    how: 'a proxy swallows both directions for 6 s and closes nothing',
    wanted: 'every call settles <= 15 s; each partition goes on <= 5 s',
    line: true,
    severs: true,
    async inject({ theLine, sleep }) {
      theLine().setDeaf(true);
      await sleep(6000);
      theLine().setDeaf(false);
      // What was swallowed never comes back on these connections.
      theLine().cut();
    },
    drainMs: 20_000,
    allow: { 'DUP-START': IN_FLIGHT },
    pass: (outcome) => [...settled(outcome), ...resumed(outcome, 5000)],
  },
  {
    id: 'F31',
    title: 'Redis is busy for 4 seconds, longer than any lease',
    how: 'DEBUG SLEEP 4',
    wanted: 'workers believed dead 0; each partition goes on <= 2 s',
    workload: { crashes: 0, poison: 0 },
    severs: true,
    async inject({ redis }) {
      await redis.call('DEBUG', 'SLEEP', '4');
    },
    pass: (outcome) => [
      ...settled(outcome),
      ...resumed(outcome, AFTER_SLEEP_MS),
      ...exactly('crashes', outcome.crashed, 0),
    ],
  },
  {
    id: 'F32',
    title: 'CLIENT PAUSE of all commands for 5 seconds',
    how: 'CLIENT PAUSE 5000 ALL',
    wanted: 'workers believed dead 0; each partition goes on <= 2 s',
    workload: { crashes: 0, poison: 0 },
    severs: true,
    async inject({ redis, sleep }) {
      await redis.call('CLIENT', 'PAUSE', '5000', 'ALL');
      await sleep(5000);
    },
    pass: (outcome) => [
      ...settled(outcome),
      ...resumed(outcome, AFTER_SLEEP_MS),
      ...exactly('crashes', outcome.crashed, 0),
    ],
  },
  {
    id: 'F33',
    title: 'SCRIPT FLUSH ten times a second',
    how: 'SCRIPT FLUSH every 100 ms for 4 s',
    wanted: 'calls that fail 0',
    async inject({ repeatedly, redis }) {
      return { flushes: await repeatedly(4000, 100, () => redis.script('FLUSH')) };
    },
    pass: (outcome) => [
      ...settled(outcome),
      ...exactly('calls that failed', outcome.calls.filter(({ ev }) => /fail|unknown/.test(ev)).length, 0),
    ],
  },
  {
    id: 'F39',
    title: 'Redis is full for 10 seconds while producers push',
    how: 'maxmemory just above what is used, for 10 s',
    wanted: 'jobs end meanwhile; calls are refused; workers believed dead 0',
    workload: { padBytes: 2000, crashes: 0, poison: 0 },
    async inject({ redis, repeatedly }) {
      let least = Number.POSITIVE_INFINITY;
      // Jobs that end make room, so the limit follows what is used.
      await repeatedly(10_000, 500, async () => {
        least = Math.min(least, Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]));
        await redis.config('SET', 'maxmemory', String(least + 20_000));
      });
      await redis.config('SET', 'maxmemory', '0');
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
];

/**
 * Replies to each of these scripts are lost until there were enough of all, one at a time.
 *
 * @param {import('../faults/line.mjs').Line} line
 * @param {{ verbs: readonly string[], each: number, sleep: (ms: number) => Promise<unknown> }} what
 */
export async function loseReplies(line, { verbs, each, sleep }) {
  const untilMs = Date.now() + LOSING_MAX_MS;
  const rest = () => verbs.filter((verb) => line.lostTo(verb) < each);
  while (Date.now() < untilMs && rest().length > 0) {
    line.loseReplyTo(...rest());
    await sleep(120);
  }
  return Object.fromEntries(verbs.map((verb) => [verb, line.lostTo(verb)]));
}
