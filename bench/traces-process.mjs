/**
 * A process of `npm run bench -- traces`: builds of the client make the same calls in turns. Each process has them elsewhere in its memory
 * and compiles them anew, which makes one build or the other faster by 1 % for as long as it lives; so many processes are asked. Prints the
 * medians of what each build took.
 *
 *     node bench/traces-process.mjs '{ "folder": "…", "builds": ["now", "without"], "socketPath": "…", "isTraced": false }'
 */
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { registerSdk } from '../test/support/sdk.mjs';
import { median } from './parts.mjs';

/** @typedef {import('../src/index.ts').Client} Client */
/** @typedef {{ readonly commands: number, readonly bytes: number, readonly micros: number }} Cost per job */
/** `ratio`: of its CPU time to that of the build `without` in the same round. @typedef {Cost & { readonly ratio: number }} Taken */
/** @typedef {{ readonly lookNs: number, readonly ways: Readonly<Record<string, Readonly<Record<string, Taken>>>> }} Told */
/** @typedef {{ readonly count: number, readonly act: (client: Client, jobs: { from: number, count: number }) => Promise<void> }} Way */
/** @typedef {readonly (readonly [string, Client])[]} Opened */

const ROUNDS = 60;
/** Rounds in which the code gets warm. */
const WARM_UP = 20;
const AT_ONCE = 100;
const DATA = { text: 'x'.repeat(189) };
const AT = new Date(Date.now() + 86_400_000);
/** What the bench asks itself. */
const OWN = ['info', 'config|resetstat'];
const LOOKS = 1_000_000;

const optionsOf = (/** @type {number} */ nth) => ({ id: `job-${String(nth).padStart(8, '0')}`, at: AT });

/** A turn is short, so that what else goes on at the machine meets all builds alike. @type {Readonly<Record<string, Way>>} */
const WAYS = {
  'one call after the other': {
    count: 100,
    async act(client, { from, count }) {
      for (let nth = 0; nth < count; nth += 1) await client.schedule('bench', DATA, optionsOf(from + nth));
    },
  },
  '100 calls at once': {
    count: 300,
    async act(client, { from, count }) {
      for (const list of listsOf(from, count)) {
        await Promise.all(list.map((options) => client.schedule('bench', DATA, options)));
      }
    },
  },
  'lists of 100 jobs': {
    count: 500,
    async act(client, { from, count }) {
      for (const list of listsOf(from, count)) {
        await client.scheduleMany(
          'bench',
          list.map((options) => ({ data: DATA, ...options })),
        );
      }
    },
  },
};

/** @param {number} from @param {number} count */
function listsOf(from, count) {
  const options = Array.from({ length: count }, (_, at) => optionsOf(from + at));
  return Array.from({ length: count / AT_ONCE }, (_, nth) => options.slice(nth * AT_ONCE, (nth + 1) * AT_ONCE));
}

/** @type {{ folder: string, builds: readonly string[], socketPath: string, isTraced: boolean }} */
const { folder, builds, socketPath, isTraced } = JSON.parse(process.argv[2] ?? '');
if (isTraced) registerSdk({});
const redis = new Redis({ path: socketPath });
const clients = await opened();
/** @type {Told} */
const told = { lookNs: await lookNs(), ways: await taken() };
process.stdout.write(JSON.stringify(told));
process.exit();

/** @returns {Promise<Opened>} */
async function opened() {
  /** @type {(readonly [string, Client])[]} */
  const all = [];
  for (const build of builds) {
    const { createClient } = await import(join(folder, build, 'dist/index.js'));
    all.push([build, createClient({ redis: { path: socketPath } })]);
  }
  return all;
}

/** Nanoseconds of CPU that a look for an SDK takes; 0 where there is one. */
async function lookNs() {
  if (isTraced) return 0;
  const { beginSend } = await import(join(folder, 'now/dist/telemetry/spans.js'));
  let found = 0;
  const before = process.cpuUsage();
  for (let nth = 0; nth < LOOKS; nth += 1) if (beginSend('bench')) found += 1;
  const { user, system } = process.cpuUsage(before);
  if (found > 0) throw new Error('an SDK is registered');
  return ((user + system) * 1000) / LOOKS;
}

async function taken() {
  /** @type {Record<string, Readonly<Record<string, Taken>>>} */
  const ways = {};
  for (const [title, way] of Object.entries(WAYS)) ways[title] = takenOf(await roundsOf(way));
  return ways;
}

/** On an empty Redis; in each round every build has its turn. @param {Way} way */
async function roundsOf({ count, act }) {
  await redis.flushall();
  let next = 0;
  const turn = async (/** @type {Client} */ client) => {
    next += count;
    await act(client, { from: next, count });
  };
  // It connects, and learns how the queue is laid out.
  for (const [, client] of clients) await turn(client);
  /** @type {Readonly<Record<string, Cost>>[]} */
  const rounds = [];
  for (let round = 0; round < WARM_UP + ROUNDS; round += 1) {
    /** @type {Record<string, Cost>} */
    const costs = {};
    for (const [build, client] of inTurn(clients, round)) costs[build] = await measured(() => turn(client), count);
    if (round >= WARM_UP) rounds.push(costs);
  }
  return rounds;
}

/** Each is as often first as last, and as often behind each of the others. @template T @param {readonly T[]} all @param {number} round @returns {readonly T[]} */
function inTurn(all, round) {
  const order = round % 2 === 0 ? all : all.toReversed();
  const first = Math.floor(round / 2) % all.length;
  return [...order.slice(first), ...order.slice(0, first)];
}

/** @param {() => Promise<void>} act @param {number} count of its jobs @returns {Promise<Cost>} */
async function measured(act, count) {
  const own = await asked();
  const idle = await asked();
  const before = process.cpuUsage();
  await act();
  const { user, system } = process.cpuUsage(before);
  const after = await asked();
  const bytes = after.bytes - idle.bytes - (idle.bytes - own.bytes);
  return { commands: (after.commands - idle.commands) / count, bytes: bytes / count, micros: (user + system) / count };
}

/** What Redis carried out, with what scripts did, and what it was sent. */
async function asked() {
  const stats = await redis.info('commandstats');
  const calls = [...stats.matchAll(/cmdstat_([^:]+):calls=(\d+)/g)];
  const commands = calls.reduce((sum, [, name = '', some]) => (OWN.includes(name) ? sum : sum + Number(some)), 0);
  return { commands, bytes: Number(/total_net_input_bytes:(\d+)/.exec(await redis.info('stats'))?.[1]) };
}

/** @param {readonly Readonly<Record<string, Cost>>[]} rounds */
function takenOf(rounds) {
  /** @type {Record<string, Taken>} */
  const all = {};
  for (const build of builds) {
    const of = (/** @type {(round: Readonly<Record<string, Cost>>) => number | undefined} */ value) =>
      median(rounds.map((round) => value(round) ?? Number.NaN));
    all[build] = {
      commands: of((round) => round[build]?.commands),
      bytes: of((round) => round[build]?.bytes),
      micros: of((round) => round[build]?.micros),
      ratio: of((round) => Number(round[build]?.micros) / Number(round.without?.micros)),
    };
  }
  return all;
}
