/**
 * 64 partitions on 3 primaries, 4 daemons, and 20 workers in 4 processes: who leads and who is called for how many
 * partitions, what that costs while nothing is due, and how many connections each process has.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { median, rounded } from '../parts.mjs';
import { countOf, keyOf, onStage, spentByAll, total, unevenness, until } from './stage.mjs';

/** @typedef {import('./stage.mjs').Stage} Stage */
/** @typedef {import('./stage.mjs').Child} Child */
/** @typedef {Readonly<Record<string, number>>} Figures */

const PARTITIONS = 64;
const DAEMONS = 4;
const PROCESSES = 4;
const PER_PROCESS = 5;
const YEAR_MS = 365 * 86_400_000;
/** Of the far future, so that there is something to look after. */
const PENDING = 640;
/** They come due while somebody counts who runs them. */
const JOBS = 6400;
const JOBS_WITHIN_MS = 4000;

/** @type {typeof import('../../src/redis/connection/connect.ts')} */
const connect = await import(new URL('../../dist/redis/connection/connect.js', import.meta.url).href);
/** @type {typeof import('../../src/redis/keys.ts')} */
const { partitionRef } = await import(new URL('../../dist/redis/keys.js', import.meta.url).href);
/** @type {typeof import('../../src/worker/fetch/assignment.ts')} */
const { createAssignment } = await import(new URL('../../dist/worker/fetch/assignment.js', import.meta.url).href);
/** @type {typeof import('../../src/kernel/clock.ts')} */
const { systemClock } = await import(new URL('../../dist/kernel/clock.js', import.meta.url).href);

/** @param {{ binary: string, quick: boolean, rounds: number }} given */
export async function spread({ binary, quick, rounds }) {
  /** @type {Figures[]} */
  const all = [];
  for (let round = 1; round <= rounds; round += 1) {
    process.stderr.write(`spread: round ${round} of ${rounds}, about ${quick ? 45 : 130} s\n`);
    const wanted = { binary, partitions: PARTITIONS, shape: { replicas: 0 } };
    all.push(await onStage(wanted, (stage) => measure(stage, quick ? 10_000 : 60_000, quick ? 10_000 : 30_000)));
  }
  const names = Object.keys(all[0] ?? {});
  /** @type {Figures} */
  const figures = Object.fromEntries(
    names.map((name) => [name, rounded(median(all.map((figuresOfOne) => figuresOfOne[name] ?? 0)))]),
  );
  const shape = { primaries: 3, partitions: PARTITIONS, daemons: DAEMONS, workers: PROCESSES * PER_PROCESS };
  return [{ ...shape, processes: PROCESSES, ...figures }];
}

/**
 * @param {Stage} stage
 * @param {number} restMs
 * @param {number} warmMs
 * @returns {Promise<Figures>}
 */
async function measure(stage, restMs, warmMs) {
  const producer = await stage.start('producer');
  // Ids of their own: the numbers of these jobs are those of others later.
  await producer.ask('load', { jobs: PENDING, bytes: 100, generated: true, dueMs: Date.now() + YEAR_MS });
  const daemons = await several(DAEMONS, () => stage.start('daemon'));
  const workers = await several(PROCESSES, () => stage.start('workers', { workers: PER_PROCESS, concurrency: 10 }));
  await until(async () => (await leadersOf(stage)).length === PARTITIONS, 'every partition has a leader');
  await sleep(warmMs);
  const led = tally(await leadersOf(stage), DAEMONS);
  const heard = await readersOf(stage, workers);
  const idle = await idleCost(stage, { daemons, workers, restMs });
  const sockets = (/** @type {readonly Child[]} */ of) => Promise.all(of.map((child) => child.number('sockets')));
  const [ofDaemons, ofWorkers] = [await sockets(daemons), await sockets(workers)];
  const ran = await ranBy(producer, workers);
  return {
    leadMost: Math.max(...led),
    leadLeast: Math.min(...led),
    leadUnevenness: unevenness(led),
    ...heard,
    ranMost: Math.max(...ran),
    ranLeast: Math.min(...ran),
    ranUnevenness: unevenness(ran),
    ...idle,
    daemonSockets: Math.max(...ofDaemons),
    workerProcessSockets: Math.max(...ofWorkers),
  };
}

/** The process that leads each partition that has a leader. @param {Stage} stage */
async function leadersOf(stage) {
  const terms = await Promise.all(
    Array.from({ length: PARTITIONS }, (_, partition) => anyOf(stage, ['GET', keyOf(partition, 'leader')])),
  );
  return terms.flatMap((term) => (typeof term === 'string' ? [term.split(':')[0] ?? ''] : []));
}

/** What the one primary says that has the key. @param {Stage} stage @param {[string, ...string[]]} command */
async function anyOf({ masters }, [name, ...args]) {
  const replies = await Promise.all(masters.map((redis) => redis.call(name, ...args).catch(() => null)));
  return replies.find((reply) => reply !== null);
}

/** How often each of them is there; those that are not there count as well. @param {readonly string[]} names @param {number} of */
function tally(names, of) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts.values(), ...Array.from({ length: Math.max(0, of - counts.size) }, () => 0)];
}

/**
 * For how many partitions each worker is called. Everybody comes to the same from the same heartbeats, so it can be asked
 * from outside; what Redis says of the subscribers of each partition must agree with it.
 *
 * @param {Stage} stage
 * @param {readonly Child[]} workers
 */
async function readersOf(stage, workers) {
  const commands = connect.openCommands({ redis: stage.url, name: 'looks' });
  try {
    await connect.whenReady(commands, 60_000);
    const refs = Array.from({ length: PARTITIONS }, (_, partition) =>
      partitionRef('duestream', { queue: 'beyond', partition, layoutGeneration: 0 }),
    );
    const told = await Promise.all(workers.map((child) => child.ask('names')));
    const names = /** @type {readonly (readonly string[])[]} */ (told).flat();
    const shares = await Promise.all(
      names.map(async (consumer) => {
        const of = { commands, namespace: 'duestream', queue: 'beyond', consumer, refs };
        const assignment = createAssignment({ ...of, everyMs: 0, clock: systemClock });
        await assignment.refresh();
        return refs.filter(assignment.isMine);
      }),
    );
    const expected = refs.map((ref) => shares.filter((share) => share.includes(ref)).length);
    const agree = async () => {
      const heard = await Promise.all(refs.map(({ keys }) => subscribersOf(stage, keys.work)));
      return heard.join() === expected.join();
    };
    await until(agree, 'Redis has the subscribers that the heartbeats call for', 60_000);
    const counts = shares.map(({ length }) => length);
    return {
      readMost: Math.max(...counts),
      readLeast: Math.min(...counts),
      readUnevenness: unevenness(counts),
      callersLeast: Math.min(...expected),
    };
  } finally {
    connect.close(commands);
  }
}

/** @param {Stage} stage @param {string} channel */
async function subscribersOf({ masters }, channel) {
  const replies = await Promise.all(
    masters.map((redis) => redis.call('PUBSUB', 'SHARDNUMSUB', channel).catch(() => [])),
  );
  return total(replies.map((reply) => Number(String(reply).split(',').at(-1) ?? 0)));
}

/**
 * The commands that processes send while nothing is due, and those that Redis carries out, with those of scripts.
 *
 * @param {Stage} stage
 * @param {{ daemons: readonly Child[], workers: readonly Child[], restMs: number }} of
 */
async function idleCost(stage, { daemons, workers, restMs }) {
  const countsOf = async (/** @type {readonly Child[]} */ some) => {
    const sum = async (/** @type {'requests' | 'trips'} */ what) =>
      total(await Promise.all(some.map((child) => child.number(what))));
    return { requests: await sum('requests'), trips: await sum('trips') };
  };
  const before = { daemons: await countsOf(daemons), workers: await countsOf(workers), spent: await spentByAll(stage) };
  const fromMs = performance.now();
  await sleep(restMs);
  const seconds = (performance.now() - fromMs) / 1000;
  const after = { daemons: await countsOf(daemons), workers: await countsOf(workers), spent: await spentByAll(stage) };
  const perSecond = (/** @type {'daemons' | 'workers'} */ who, /** @type {'requests' | 'trips'} */ what) =>
    (after[who][what] - before[who][what]) / seconds;
  if (perSecond('daemons', 'requests') === 0) throw new Error('the commands of the daemons were not counted');
  return {
    daemonTripsPerPartition: perSecond('daemons', 'trips') / PARTITIONS,
    daemonCommandsPerPartition: perSecond('daemons', 'requests') / PARTITIONS,
    tripsPerWorker: perSecond('workers', 'trips') / (PROCESSES * PER_PROCESS),
    commandsPerWorker: perSecond('workers', 'requests') / (PROCESSES * PER_PROCESS),
    commandsPerSecond: (after.spent.commands - before.spent.commands) / seconds,
    redisPercent: (after.spent.cpuMs - before.spent.cpuMs) / seconds / 10,
  };
}

/** How many jobs each worker runs, of those that come one after the other. @param {Child} producer @param {readonly Child[]} workers */
async function ranBy(producer, workers) {
  await producer.ask('load', { jobs: JOBS, bytes: 100, dueMs: Date.now() + 5000, forMs: JOBS_WITHIN_MS });
  await until(async () => (await countOf(workers)) >= JOBS, `${JOBS} jobs run`);
  const each = await Promise.all(workers.map((child) => child.ask('each')));
  return /** @type {readonly (readonly number[])[]} */ (each).flat();
}

/** One after the other. @template T @param {number} count @param {() => Promise<T>} make */
async function several(count, make) {
  const made = [];
  for (let nth = 0; nth < count; nth += 1) made.push(await make());
  return made;
}
