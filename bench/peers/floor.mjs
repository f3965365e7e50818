/**
 * The floor: the least code of duestream's shape, without retries, tokens, recovery or any guard. It is no product. It
 * says what TypeScript and Redis could do at best, so that a ratio to it means the same on every machine.
 *
 *     ZADD + HSET → every 3 ms a script: ZRANGEBYSCORE + XADD + ZREM → XREADGROUP + HMGET → handler → XACK + XDEL + HDEL
 */
import { Redis } from 'ioredis';
import { dataOf } from './system.mjs';

const TICK_MS = 3;
const DUE = '{floor}:due';
const JOBS = '{floor}:jobs';
const READY = '{floor}:ready';

const SCHEDULE = `
local scores = {}
local fields = {}
for at = 1, #ARGV, 3 do
  scores[#scores + 1] = ARGV[at + 2]
  scores[#scores + 1] = ARGV[at]
  fields[#fields + 1] = ARGV[at]
  fields[#fields + 1] = ARGV[at + 1]
end
redis.call('ZADD', KEYS[1], unpack(scores))
redis.call('HSET', KEYS[2], unpack(fields))
return 1`;

const MOVE = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 500)
for _, id in ipairs(ids) do redis.call('XADD', KEYS[2], '*', 'id', id) end
if #ids > 0 then redis.call('ZREM', KEYS[1], unpack(ids)) end
return #ids`;

const SETTLE = `
local ids = {}
local entries = {}
for at = 1, #ARGV, 2 do
  entries[#entries + 1] = ARGV[at]
  ids[#ids + 1] = ARGV[at + 1]
end
redis.call('XACK', KEYS[1], 'workers', unpack(entries))
redis.call('XDEL', KEYS[1], unpack(entries))
redis.call('HDEL', KEYS[2], unpack(ids))
return #ids`;

const scripts = {
  floorSchedule: { lua: SCHEDULE, numberOfKeys: 2 },
  floorMove: { lua: MOVE, numberOfKeys: 2 },
  floorSettle: { lua: SETTLE, numberOfKeys: 2 },
};

/** @typedef {Redis & Record<'floorSchedule' | 'floorMove' | 'floorSettle', (...words: (string | number)[]) => Promise<number>>} Floor */

/** @param {string} url @param {boolean} [pipelined] */
const connect = (url, pipelined = false) =>
  /** @type {Floor} */ (new Redis(url, { scripts, enableAutoPipelining: pipelined }));

/** @param {import('./system.mjs').Planned} job */
const wordsOf = (job) => [job.id ?? String(job.at), JSON.stringify(dataOf(job)), job.dueMs];

/** @type {import('./system.mjs').System} */
export const floor = {
  name: 'floor',
  title: 'floor',
  settings: `the least code of this shape: no retry, no token, no recovery, no result; a tick of ${TICK_MS} ms`,
  counts: {
    server: 'redis-server',
    worker: 'the processes that run handlers; they promote nothing',
    daemon: 'one process that promotes',
  },
  async producer(url) {
    const redis = connect(url, true);
    return {
      one: (job) => redis.floorSchedule(DUE, JOBS, ...wordsOf(job)),
      async many(jobs) {
        /** @type {Promise<number>[]} */
        const calls = [];
        for (let from = 0; from < jobs.length; from += 500) {
          calls.push(redis.floorSchedule(DUE, JOBS, ...jobs.slice(from, from + 500).flatMap(wordsOf)));
        }
        await Promise.all(calls);
      },
      close: async () => redis.disconnect(),
    };
  },
  async worker(url, { concurrency, started }) {
    const blocking = connect(url);
    const redis = connect(url);
    const consumer = `w-${process.pid}`;
    await redis.xgroup('CREATE', READY, 'workers', '0', 'MKSTREAM').catch(() => undefined);
    let open = true;
    const reading = (async () => {
      while (open) {
        const reply = /** @type {[string, [string, string[]][]][] | null} */ (
          await blocking
            .xreadgroup('GROUP', 'workers', consumer, 'COUNT', concurrency, 'BLOCK', 1000, 'STREAMS', READY, '>')
            .catch(() => null)
        );
        const entries = reply?.[0]?.[1] ?? [];
        if (entries.length === 0) continue;
        const ids = entries.map(([, fields]) => fields[1] ?? '');
        const texts = await redis.hmget(JOBS, ...ids);
        for (const text of texts) started(JSON.parse(text ?? 'null').at);
        void redis
          .floorSettle(READY, JOBS, ...entries.flatMap(([entry], at) => [entry, ids[at] ?? '']))
          .catch(() => {});
      }
    })();
    return {
      async close() {
        open = false;
        blocking.disconnect();
        await reading;
        redis.disconnect();
      },
    };
  },
  async daemon(url) {
    const redis = connect(url);
    let open = true;
    const moving = (async () => {
      while (open) {
        const moved = await redis.floorMove(DUE, READY).catch(() => 0);
        if (moved < 500) await new Promise((resolve) => setTimeout(resolve, TICK_MS));
      }
    })();
    return {
      async close() {
        open = false;
        await moving;
        redis.disconnect();
      },
    };
  },
  async pending(redis) {
    const [due, ready] = await Promise.all([redis.zcard(DUE), redis.xlen(READY)]);
    return due + ready;
  },
};
