/** Others use the same Redis: they block it, make it a replica, change its settings, plant keys, and ask too much. */
import { pathToFileURL } from 'node:url';
import { ask } from '../../../src/embedded/ask.mjs';
import { hollowNodes } from '../../support/streams.mjs';
import { flawsOf } from '../judge/damage.mjs';
import { keyOf, PARTITIONS } from '../judge/dump.mjs';
import { atLeast, atMost, calm, exactly, resumed, settled } from '../judge/predicates.mjs';
import { said } from '../judge/said.mjs';
import { ask as askFor, doneOf, idsOf, within } from '../stage/extras.mjs';
import { GRACE_TO_DIAL } from '../stage/workload.mjs';

/** @typedef {import('../stage/run.mjs').Row} Row */

/** Where deaths and lines of logs are counted, no job ends its worker and none throws. */
const HARMLESS = { crashes: 0, poison: 0, throws: 0 };
/** ARGV  1 seconds. */
const SPIN = `
local function seconds() local t = redis.call('TIME') return t[1] + t[2] / 1000000 end
local ends = seconds() + tonumber(ARGV[1])
repeat until seconds() > ends
return 1`;
const OURS = ['leader', 'scheduled', 'jobs', 'runs', 'ready', 'dead', 'done', 'meta'];
const CONTROL = ['queues', 'alive'];
/** KEYS  1 one of ours  2 where it is put aside. Only the leader's is a string. */
const PLANT = `
if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('RENAME', KEYS[1], KEYS[2]) end
if KEYS[1]:find(':leader$') then return redis.call('RPUSH', KEYS[1], 'x') end
return redis.call('SET', KEYS[1], 'x')`;
const UPROOT = `
redis.call('DEL', KEYS[1])
if redis.call('EXISTS', KEYS[2]) == 1 then redis.call('RENAME', KEYS[2], KEYS[1]) end
return 1`;
const MIB = 2 ** 20;

/** @type {readonly Row[]} */
export const foreignRows = [
  {
    id: 'F34',
    title: 'a foreign script blocks Redis, and then another that must be killed',
    how: 'EVAL of 6 s, then one without an end and SCRIPT KILL after 3 s',
    wanted: 'no double effect; each partition goes on within 5 s',
    workload: { ...HARMLESS, callsMs: 16_000 },
    env: GRACE_TO_DIAL,
    whole: true,
    severs: true,
    async inject({ redis, server, sleep }) {
      const to = { socketPath: server.socketPath };
      await redis.config('SET', 'busy-reply-threshold', '200');
      await ask(to, ['EVAL', SPIN, '0', '6'], 30_000);
      await sleep(1000);
      const endless = ask(to, ['EVAL', SPIN, '0', '1000'], 30_000).catch(() => undefined);
      await sleep(3000);
      await ask(to, ['SCRIPT', 'KILL']);
      await endless;
    },
    drainMs: 20_000,
    pass: (outcome) => [
      ...settled(outcome),
      ...resumed(outcome, 5000),
      ...calm(outcome),
      ...exactly('workers believed dead', outcome.crashed, 0),
    ],
  },
  {
    id: 'F40',
    title: 'somebody lets Redis evict keys',
    how: 'CONFIG SET maxmemory-policy allkeys-lru, for 12 s',
    wanted: 'a daemon says so within 10 s; new jobs are refused; after the repair they are taken',
    workload: { ...HARMLESS, callsMs: 16_000 },
    whole: true,
    async inject({ redis, cast, sleep }) {
      const begunMs = Date.now();
      await redis.config('SET', 'maxmemory', '1gb');
      await redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
      await sleep(12_000);
      const told = cast
        .living('daemon')
        .flatMap(({ log }) => said(log, 'may evict'))
        .map(({ ms }) => ms - begunMs);
      await redis.config('SET', 'maxmemory-policy', 'noeviction');
      await redis.config('SET', 'maxmemory', '0');
      return { alarmMs: Math.min(...told, 99_999), alarms: told.length };
    },
    drainMs: 25_000,
    pass(outcome) {
      const refused = outcome.calls.filter(({ ev, code }) => ev === 'enq.fail' && code === 'refused');
      const taken = outcome.calls.find(({ ev, ms }) => ev === 'enq.ok' && ms > outcome.toMs);
      return [
        ...atMost('ms until the alarm', outcome.noted.alarmMs ?? 0, 10_000),
        ...atLeast('calls that were refused', refused.length, 1),
        ...atMost('ms until a job was taken', (taken?.ms ?? Number.POSITIVE_INFINITY) - outcome.toMs, 12_000),
        ...calm(outcome),
      ];
    },
  },
  {
    id: 'F42',
    title: 'Redis becomes a replica for 4 seconds',
    how: 'REPLICAOF a host that does not answer, then NO ONE',
    wanted: 'writes go on within 3 s after it is a primary again',
    workload: HARMLESS,
    env: GRACE_TO_DIAL,
    whole: true,
    severs: true,
    async inject({ redis, sleep }) {
      await redis.call('REPLICAOF', '127.0.0.1', '1');
      await sleep(4000);
      await redis.call('REPLICAOF', 'NO', 'ONE');
    },
    pass(outcome) {
      const taken = outcome.calls.find(({ ev, ms }) => ev === 'enq.ok' && ms > outcome.toMs);
      return [
        ...settled(outcome),
        ...resumed(outcome, 3000),
        ...atMost('ms until a job was taken', (taken?.ms ?? Number.POSITIVE_INFINITY) - outcome.toMs, 3000),
        ...calm(outcome),
        ...exactly('workers believed dead', outcome.crashed, 0),
      ];
    },
  },
  {
    id: 'F44',
    title: 'each of our keys is of a wrong type for a second',
    how: 'the key put aside and another type in its place, one key after the other',
    wanted: 'half effects 0; doctor names the key',
    workload: { ...HARMLESS, callsMs: 12_000 },
    whole: true,
    async inject(scene) {
      const { redis, cast, product, server, sleep } = scene;
      const ours = [...OURS.map((name) => keyOf(0, name)), ...CONTROL.map((name) => `duestream:v1:{control}:${name}`)];
      let unnamed = 0;
      for (const key of ours) {
        const aside = `${key.slice(0, key.indexOf('}') + 1)}:aside`;
        await redis.eval(PLANT, 2, key, aside);
        const [flaws] = await Promise.all([flawsOf({ product, url: server.url }), sleep(1000)]);
        await redis.eval(UPROOT, 2, key, aside);
        if (!flaws.some((flaw) => flaw.includes(key))) unnamed += 1;
        await sleep(200);
      }
      const logs = cast.actors.flatMap(({ log }) => said(log, 'WRONGTYPE'));
      const silent = logs.filter(({ line }) => !ours.some((key) => line.includes(key)));
      // On a busy machine all jobs of the workload may be over by now.
      const after = idsOf('after', PARTITIONS.length);
      await askFor(
        scene,
        after.map((id) => ({ id })),
      );
      const resumedMs = await within(15_000, () => doneOf(scene, after) === after.length, 'jobs after the last key');
      return { unnamed, silent: silent.length, logs: logs.length, resumedMs };
    },
    drainMs: 25_000,
    pass: (outcome) => [
      ...exactly('keys that nobody named', outcome.noted.unnamed ?? 0, 0),
      ...exactly('alarms without a name', outcome.noted.silent ?? 0, 0),
      ...atLeast('alarms', outcome.noted.logs ?? 0, 1),
      ...exactly('workers believed dead', outcome.crashed, 0),
      ...calm(outcome),
      ...atMost('ms until new jobs ran', outcome.noted.resumedMs ?? 15_000, 5000),
    ],
  },
  {
    id: 'F45',
    title: 'our own work leaves no stream that newer versions refuse to load',
    how: 'DUMP of every stream again and again while they run empty',
    wanted: 'none with a node that has no live entry',
    workload: { ...HARMLESS, throws: 0.2 },
    async inject({ redis, repeatedly }) {
      let hollow = 0;
      let empty = 0;
      const looks = await repeatedly(14_000, 20, async () => {
        for (const key of PARTITIONS.flatMap((at) => [keyOf(at, 'ready'), keyOf(at, 'dead')])) {
          if ((await redis.xlen(key)) === 0) empty += 1;
          hollow += await hollowNodes(redis, key);
        }
      });
      return { looks, empty, hollow };
    },
    pass: ({ noted }) => [
      ...exactly('streams that would not load', noted.hollow ?? 0, 0),
      ...atLeast('streams that were seen empty', noted.empty ?? 0, 100),
    ],
  },
  {
    id: 'F46',
    title: 'a payload of 10 MB, and a Redis that takes no large requests',
    how: 'client-query-buffer-limit and proto-max-bulk-len of 1 MiB; jobs of up to 200 kB',
    wanted: 'refused before it is sent; disconnects 0',
    workload: { ...HARMLESS, jobs: 300, callsMs: 9000, padBytes: 200_000 },
    async inject({ redis, product, server, sleep }) {
      await redis.config('SET', 'client-query-buffer-limit', String(MIB), 'proto-max-bulk-len', String(MIB));
      const before = await clientsOf(redis);
      const { createClient } = await import(pathToFileURL(`${product}/dist/index.js`).href);
      const producer = createClient({ redis: server.url });
      const receivedBytes = async () => Number(/total_net_input_bytes:(\d+)/.exec(await redis.info('stats'))?.[1]);
      let refused = 0;
      let sent = 0;
      for (let time = 0; time < 3; time += 1) {
        const fromBytes = await receivedBytes();
        await producer
          .schedule('chaos', { pad: 'x'.repeat(10 * MIB) })
          .catch((/** @type {{ code: string }} */ { code }) => {
            if (code === 'bad-input') refused += 1;
          });
        if ((await receivedBytes()) - fromBytes > 10 * MIB) sent += 1;
      }
      await producer.close();
      // All producers are still at it: one that has ended looks as if it had been disconnected.
      await sleep(4000);
      const after = await clientsOf(redis);
      return { refused, sent, disconnects: [...before].filter((id) => !after.has(id)).length };
    },
    drainMs: 20_000,
    pass: ({ noted, calls }) => [
      ...exactly('large jobs that were refused', noted.refused ?? 0, 3),
      ...exactly('large jobs that were sent', noted.sent ?? 0, 0),
      ...exactly('disconnects', noted.disconnects ?? 0, 0),
      ...exactly('calls that failed', calls.filter(({ ev }) => /fail|unknown/.test(ev)).length, 0),
    ],
  },
];

/** Ids of connections; one that came back has another. @param {import('ioredis').Redis} redis */
async function clientsOf(redis) {
  const list = String(await redis.client('LIST', 'TYPE', 'NORMAL'));
  const ours = list.split('\n').filter((line) => line.includes('name=duestream:'));
  return new Set(ours.map((line) => /^id=(\d+)/.exec(line)?.[1]));
}
