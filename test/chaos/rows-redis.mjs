/** Faults of Redis, of its data, and of the way to it. */
import { ask } from '../../src/embedded/ask.mjs';
import { keyOf, PARTITIONS } from './dump.mjs';
import { atLeast, atMost, exactly } from './rows-processes.mjs';
import { linesWithin } from './said.mjs';

/** @typedef {import('./run.mjs').Row} Row */
/** @typedef {import('./run.mjs').Outcome} Outcome */

const SLOTS = 3 * 8;
/** The retry budget of a producer and one command more. */
const SETTLE_MS = 15_000;
const VERBS = ['schedule', 'promote', 'start', 'complete', 'retry', 'extend', 'renew'];

/** @type {readonly Row[]} */
export const redisRows = [
  {
    id: 'F21',
    title: 'Redis is killed three times, appendfsync always',
    mode: 'always',
    async inject({ server, sleep, random }) {
      for (let time = 0; time < 3; time += 1) {
        server.signal('SIGKILL');
        await server.ended();
        await server.start();
        await sleep(1000 + random() * 500);
      }
    },
    allow: { 'DUP-START': SLOTS },
    pass: settled,
  },
  {
    id: 'F22',
    title: 'Redis is killed, appendfsync everysec, on a healthy disk',
    mode: 'everysec',
    async inject({ server }) {
      server.signal('SIGKILL');
      await server.ended();
      await server.start();
    },
    allow: { 'DUP-START': SLOTS },
    pass: settled,
  },
  {
    id: 'F24',
    title: 'SHUTDOWN NOSAVE and a new start, with an append-only file',
    mode: 'everysec',
    async inject({ server }) {
      // Not over a client that would send it again to the new server.
      await ask({ socketPath: server.socketPath }, ['SHUTDOWN', 'NOSAVE']).catch(() => {});
      await server.ended();
      await server.start();
    },
    allow: { 'DUP-START': SLOTS },
    pass: settled,
  },
  {
    id: 'F26',
    title: 'CLIENT KILL TYPE normal every 500 ms',
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
    line: true,
    async inject({ theLine, repeatedly }) {
      let next = 0;
      await repeatedly(7000, 150, async () => {
        theLine().loseReplyTo(VERBS[next % VERBS.length] ?? 'schedule');
        next += 1;
      });
      return { lost: theLine().lost() };
    },
    drainMs: 20_000,
    pass: (outcome) => [...settled(outcome), ...atLeast('lost replies', outcome.noted.lost ?? 0, 20)],
  },
  {
    id: 'F28',
    title: 'replies to XREADGROUP get lost with the jobs in them',
    line: true,
    workload: { farMs: 7000 },
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
    line: true,
    async inject({ theLine, sleep }) {
      theLine().setDeaf(true);
      await sleep(6000);
      theLine().setDeaf(false);
      // What was swallowed never comes back on these connections.
      theLine().cut();
    },
    drainMs: 20_000,
    allow: { 'DUP-START': SLOTS },
    pass: (outcome) => [...settled(outcome), ...resumed(outcome, 5000)],
  },
  {
    id: 'F33',
    title: 'SCRIPT FLUSH ten times a second',
    async inject({ repeatedly, redis }) {
      return { flushes: await repeatedly(4000, 100, () => redis.script('FLUSH')) };
    },
    pass: ({ calls }) => exactly('calls that failed', calls.filter(({ ev }) => /fail|unknown/.test(ev)).length, 0),
  },
  {
    id: 'F35',
    title: 'FLUSHALL while everything runs',
    declaredLoss: true,
    async inject({ redis }) {
      await redis.flushall();
    },
    pass: (outcome) => [...flow(outcome), ...calm(outcome)],
  },
  {
    id: 'F36',
    title: 'the ready stream is deleted, and then its group',
    async inject({ redis, sleep }) {
      for (const partition of PARTITIONS) await redis.del(keyOf(partition, 'ready'));
      await sleep(1500);
      for (const partition of PARTITIONS) {
        await redis.call('XGROUP', 'DESTROY', keyOf(partition, 'ready'), 'workers').catch(() => {});
      }
    },
    drainMs: 30_000,
    allow: { 'DUP-START': SLOTS, MENDED: 1 },
    pass: (outcome) => resumed(outcome, 5000),
  },
  {
    id: 'F39',
    title: 'Redis is full for 6 seconds while producers push',
    workload: { padBytes: 2000 },
    async inject({ redis, sleep }) {
      const used = Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
      await redis.config('SET', 'maxmemory', String(used + 20_000));
      await sleep(6000);
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
  {
    id: 'F69',
    title: 'foreign members and records that nobody can read',
    async inject({ redis, asked }) {
      const now = Date.now();
      const scheduled = keyOf(0, 'scheduled');
      const bad = [Buffer.alloc(0), Buffer.alloc(1_000_000, 'm'), Buffer.from([0, 255, 254]), 'has space', 'j:ghost'];
      for (const member of bad) await redis.zadd(scheduled, now, member);
      await redis.zadd(scheduled, 1_700_000_000, 'in-seconds');
      const records = ['{bad json', `{"d":${'['.repeat(1200)}${']'.repeat(1200)}}`, '{"d":{"__proto__":{"x":1}}}'];
      for (const [at, record] of records.entries()) {
        asked(`odd-${at}`);
        await redis.hset(keyOf(0, 'jobs'), `j:odd-${at}`, `1${now.toString(36)}|${record}`);
        await redis.zadd(scheduled, now, `j:odd-${at}`);
      }
      asked('order-1042');
      await redis.zadd(scheduled, now, 'order-1042');
    },
    pass({ letters, report }) {
      const dead = Object.values(letters).reduce((total, count) => total + count, 0);
      return [
        ...exactly('letters about members', (letters['bad-member'] ?? 0) + (letters['bad-due'] ?? 0), 5),
        ...exactly('letters about missing records', letters['record-missing'] ?? 0, 1),
        ...atLeast('dead letters', dead, 7),
        ...atMost('ms late at most', report.counts.lateMaxMs, 3000),
      ];
    },
  },
];

/** Every promise of a producer settled, in time. @param {Outcome} outcome */
function settled({ calls }) {
  /** @type {Map<string, number>} */
  const open = new Map();
  let longest = 0;
  for (const { ev, id = '', us } of calls) {
    if (ev === 'enq.call') open.set(id, us);
    else if (ev.startsWith('enq.')) {
      longest = Math.max(longest, us - (open.get(id) ?? us));
      open.delete(id);
    }
  }
  return [
    ...exactly('calls that never settled', open.size, 0),
    ...atMost('ms until a call settled', longest / 1000, SETTLE_MS),
  ];
}

/** Work goes on soon after the end of the fault. @param {Outcome} outcome @param {number} ms */
function resumed({ effects, toMs }, ms) {
  const first = effects.find((event) => event.ev === 'effect' && event.ms > toMs);
  return first ? atMost('ms until work went on', first.ms - toMs, ms) : ['work never went on'];
}

/** Jobs that were asked for after the loss run. @param {Outcome} outcome */
function flow({ calls, effects, toMs }) {
  const after = new Set(calls.filter(({ ev, ms }) => ev === 'enq.ok' && ms > toMs).map(({ id }) => id));
  const first = effects.find(({ ev, id, ms }) => ev === 'effect' && ms > toMs && after.has(id));
  return first ? atMost('ms until a new job ran', first.ms - toMs, 5000) : ['no new job ran'];
}

/** Nobody floods a log. @param {Outcome} outcome */
function calm({ actors, fromMs }) {
  const most = Math.max(0, ...actors.map(({ log }) => linesWithin(log, fromMs, fromMs + 10_000)));
  return atMost('lines of one log within 10 s', most, 10 + SLOTS);
}
