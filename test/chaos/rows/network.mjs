/** Faults of the network between us and Redis. Times are shortened as in the rows of our processes. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { openIsland } from '../faults/island.mjs';
import { drip, garble, holdReplies, slow } from '../faults/spoilers.mjs';
import { keyOf, PARTITIONS } from '../judge/dump.mjs';
import { atLeast, atMost, exactly, flow, lateBy, resumed, settled } from '../judge/predicates.mjs';
import { startServer } from '../stage/server.mjs';
import { SLOTS, WORKERS } from '../stage/workload.mjs';

/** @typedef {import('../stage/run.mjs').Row} Row */
/** @typedef {import('../stage/scene.mjs').Scene} Scene */

const LEASE_MS = 1500;
const JOB_LEASE_MS = 3000;
const IN_FLIGHT = WORKERS * SLOTS;
const OTHER = 'another Redis server answers';
const HARMLESS = { crashes: 0, poison: 0 };

/** @type {readonly Row[]} */
export const networkRows = [
  {
    id: 'F15',
    title: 'the reply to a renewal comes long after the lease has ended',
    how: 'the line holds all replies of a daemon for 3 s, from its next renew on',
    wanted: 'promotions asked for under a lease that has ended 0, another leads <= lease + 1 s',
    // Only a partition that rests renews its lease; one that is busy keeps it by promoting.
    workload: { ...HARMLESS, jobs: 400 },
    line: true,
    watch: true,
    async inject({ theLine, redis, until, sleep }) {
      const line = theLine();
      const hold = holdReplies({ marks: ['getex', 'GETEX'], forMs: 2 * LEASE_MS });
      line.spoil(hold);
      const { request, atMs } = await hold.caught;
      const [key = ''] = /duestream:v1:\S+:leader/.exec(request) ?? [];
      // The renewal was carried out: what stands there is what it prolonged.
      const term = key && (await redis.get(key));
      if (!term) throw new Error('whose renewal is this?');
      await until(async () => ![null, term].includes(await redis.get(key)), 'another leader');
      const vacantMs = Math.round(performance.now() - atMs);
      await sleep(2 * LEASE_MS - vacantMs + 1500);
      line.spoil();
      const acts = hold.heard.filter(
        (heard) => heard.atMs > atMs + LEASE_MS && heard.request.includes(term) && isActing(heard.request, line),
      );
      return { vacantMs, actsPastLease: acts.length };
    },
    pass: (outcome) => [
      ...exactly('acts past the lease', outcome.noted.actsPastLease ?? -1, 0),
      ...atMost('ms until another led', outcome.noted.vacantMs ?? 0, LEASE_MS + 1000),
      ...lateBy(outcome, LEASE_MS + 1000),
    ],
  },
  {
    id: 'F55',
    title: 'one worker is cut off from Redis for 10 seconds and goes on running',
    how: 'iptables DROP in a network namespace of that worker',
    wanted: `its handlers end within the job lease (${JOB_LEASE_MS} ms), accepted effects per token 1`,
    workload: { ...HARMLESS, jobs: 150, workMs: [1500, 5000], callsMs: 3000, nearMs: 2000, farMs: 4000 },
    allow: { 'DUP-START': SLOTS },
    drainMs: 25_000,
    async inject({ cast, server, runningOn, until, sleep, note }) {
      const island = await openIsland(server.socketPath);
      try {
        const worker = cast.worker({ url: island.url, within: island.within });
        await worker.started;
        await until(async () => (await runningOn(worker)) > 2, 'a busy worker on the island');
        await island.cut();
        note('cut', { child: worker.pid });
        const cutUs = Number(process.hrtime.bigint() / 1000n);
        await sleep(10_000);
        await island.repair();
        note('repair', { child: worker.pid });
        await sleep(3000);
        await cast.dismiss(worker);
        return { cutUs, islander: worker.pid };
      } finally {
        island.close();
      }
    },
    pass({ noted, effects }) {
      const { cutUs = 0, islander = 0 } = noted;
      const begun = effects.filter(({ ev, pid, us }) => ev === 'start' && pid === islander && us < cutUs);
      const ends = begun.map(({ id, token }) =>
        effects.find((event) => event.ev === 'finish' && event.id === id && event.token === token),
      );
      const ranOn = ends.map((end) => ((end?.us ?? Number.POSITIVE_INFINITY) - cutUs) / 1000);
      const aborted = ends.filter((end) => end?.how === 'aborted' && end.us > cutUs);
      return [
        ...atMost('ms that a handler ran on', Math.max(0, ...ranOn), JOB_LEASE_MS),
        ...atLeast('handlers told to stop', aborted.length, 1),
      ];
    },
  },
  {
    id: 'F56',
    title: 'every reply takes 100 to 300 ms, and one in 50 is lost with its connection',
    how: 'the line delays replies by 200 ms +- 100 and cuts 2 % of them off, for 8 s',
    wanted: 'changes of leader <= 1, every call settled',
    line: true,
    watch: true,
    workload: { ...HARMLESS, jobs: 1000 },
    // The delays are those of the matrix, so the lease is the default too.
    env: { DUESTREAM_MOVER__LEASE: '5000' },
    drainMs: 25_000,
    async inject({ theLine, random, sleep, redis }) {
      const how = slow({ random, leastMs: 100, mostMs: 300, cutPart: 0.02 });
      const before = await termsOf(redis);
      theLine().spoil(how);
      await sleep(8000);
      how.end();
      const after = await termsOf(redis);
      return { cuts: how.cuts(), changes: after.filter((term, at) => term !== before[at]).length };
    },
    pass: (outcome) => [
      ...settled(outcome),
      ...atLeast('connections cut', outcome.noted.cuts ?? 0, 5),
      ...atMost('changes of leader', outcome.noted.changes ?? 0, 1),
      ...resumed(outcome, 5000),
    ],
  },
  {
    id: 'F57',
    title: 'garbage between replies, replies torn in their middle, and one byte per second',
    how: 'the line adds bytes that are no reply to 2 % of the replies, tears 3 % in two, then lets drip 1 byte/s for 5 s',
    wanted: 'replies that belong to another command 0, every call settled',
    line: true,
    workload: { ...HARMLESS, jobs: 1000 },
    allow: { 'DUP-START': IN_FLIGHT },
    drainMs: 25_000,
    severs: true,
    async inject(scene) {
      const { theLine, random, sleep } = scene;
      const line = theLine();
      const probe = await pairing(scene);
      const bad = garble({ random, part: 0.05 });
      line.spoil(bad);
      await sleep(6000);
      line.spoil(drip(1));
      await sleep(5000);
      line.spoil();
      // What still drips would keep its order, and take hours.
      line.cut();
      await sleep(1500);
      return { ...(await probe.stop()), ...bad.done };
    },
    pass: (outcome) => [
      ...exactly('replies that belong to another command', outcome.noted.strays ?? -1, 0),
      ...atLeast('replies looked at', outcome.noted.paired ?? 0, 500),
      ...atLeast('garbage', outcome.noted.garbage ?? 0, 10),
      ...atLeast('torn replies', outcome.noted.torn ?? 0, 10),
      ...settled(outcome),
      ...resumed(outcome, 5000),
    ],
  },
  {
    id: 'F58',
    title: 'the address leads to another, empty Redis for 4 seconds, and then to the right one again',
    how: 'the line leads new connections to a second redis-server, then back; all connections are cut both times',
    wanted: 'lost 0 of what the right one took, and every process says that it met another server',
    line: true,
    // Calls go on after the fault: what was asked for meanwhile was taken by the other one, and says nothing.
    workload: { ...HARMLESS, callsMs: 12_000 },
    // What was asked for meanwhile was taken by a server that is not ours.
    declaredLossMs: { always: 0, everysec: 0, none: 0 },
    drainMs: 30_000,
    severs: true,
    async inject({ theLine, binary, folder, sleep }) {
      const other = await startServer({ binary, folder: join(folder, 'other'), mode: 'none' });
      try {
        theLine().leadTo(other.socketPath);
        theLine().cut();
        await sleep(4000);
        theLine().leadTo();
        theLine().cut();
        await sleep(1000);
        return {};
      } finally {
        await other.stop();
      }
    },
    pass: (outcome) => [
      ...flow(outcome),
      ...outcome.actors
        .filter(({ role, log }) => role !== 'producer' && !readFileSync(log, 'utf8').includes(OTHER))
        .map(({ name }) => `${name} did not notice`),
    ],
  },
  {
    id: 'F59',
    title: 'Redis takes no more connections for 6 seconds',
    how: 'CONFIG SET maxclients to what there is, then CLIENT KILL; lifted after 6 s',
    wanted: 'each partition goes on <= 5 s after, connects <= 50/s of a process',
    workload: HARMLESS,
    // What was running when the connections went is taken over before its worker can tell its end.
    allow: { 'DUP-START': IN_FLIGHT },
    drainMs: 25_000,
    severs: true,
    async inject({ redis, cast, sleep }) {
      const most = Number((await redis.config('GET', 'maxclients'))[1]);
      const processes = ['daemon', 'worker', 'producer'].flatMap((role) =>
        cast.living(/** @type {import('../stage/cast.mjs').Role} */ (role)),
      ).length;
      await redis.config('SET', 'maxclients', '3');
      const before = await connectsOf(redis);
      await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
      await sleep(6000);
      const connects = (await connectsOf(redis)) - before;
      await redis.config('SET', 'maxclients', String(most));
      return { connects, perProcessAndSecond: Math.round((10 * connects) / processes / 6) / 10 };
    },
    pass: (outcome) => [
      ...settled(outcome),
      ...resumed(outcome, 5000),
      ...atMost('connects of a process per second', outcome.noted.perProcessAndSecond ?? 1000, 50),
      ...atLeast('connects', outcome.noted.connects ?? 0, 20),
    ],
  },
];

/** @param {string} request @param {import('../faults/line.mjs').Line} line */
function isActing(request, line) {
  return line.marksOf('promote').some((mark) => request.includes(mark));
}

/** @param {import('ioredis').Redis} redis */
function termsOf(redis) {
  return redis.mget(PARTITIONS.map((partition) => keyOf(partition, 'leader')));
}

/** Those that were refused as well. @param {import('ioredis').Redis} redis */
async function connectsOf(redis) {
  const info = await redis.info('stats');
  const counts = [/total_connections_received:(\d+)/, /rejected_connections:(\d+)/].map((one) => one.exec(info)?.[1]);
  return counts.reduce((total, count) => total + Number(count), 0);
}

/**
 * Asks for echoes over a connection as the product opens it, many at once, and counts those that are another's.
 *
 * @param {Scene} scene
 */
async function pairing({ product, theLine, sleep }) {
  /** @type {typeof import('../../../src/redis/connection/connect.ts')} */
  const { openCommands, close } = await import(
    pathToFileURL(join(product, 'dist', 'redis', 'connection', 'connect.js')).href
  );
  const redis = openCommands({ redis: theLine().url, name: 'probe', commandTimeoutMs: 1500 });
  const seen = { paired: 0, strays: 0 };
  let running = true;
  let next = 0;

  async function ask() {
    next += 1;
    const said = `echo-${next}`;
    const heard = await redis.echo(said).catch(() => undefined);
    if (heard === said) seen.paired += 1;
    else if (heard !== undefined) seen.strays += 1;
  }

  const asking = (async () => {
    while (running) {
      await Promise.all(Array.from({ length: 20 }, ask));
      await sleep(10);
    }
  })();
  return {
    async stop() {
      running = false;
      await asking;
      close(redis);
      return seen;
    },
  };
}
