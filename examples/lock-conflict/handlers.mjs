/**
 * The worker: books entries, one at a time per account. A booking that finds its account locked does not wait in the
 * worker, where it would hold a slot; it goes back to Redis for a moment, without using up an attempt.
 *
 *     npx duestream worker examples/lock-conflict/handlers.mjs
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Defer, defineHandlers, defineQueue } from 'duestream';
import { Redis } from 'ioredis';

const url = process.env.DUESTREAM_REDIS_URL ?? 'redis://127.0.0.1:6379';
const redis = new Redis(url.replace(/^unix:\/\//, ''));
redis.on('error', (error) => console.error(`the lock's connection: ${error.message}`));

/** Much longer than a booking takes; so long does a worker that is killed keep an account locked. */
const LOCK_MS = 10_000;
/** How long to stay out of the way: about as long as a booking takes. Up to a quarter is added at random. */
const ASIDE_MS = 150;
const UNLOCK = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

/** @typedef {{ account: string, amount: number }} Entry */

/** Two attempts are enough: only failures use them up, conflicts do not. */
/** @type {import('duestream').Queue<Entry>} */
const bookings = defineQueue('bookings', { attempts: 2, timeout: LOCK_MS / 2 });

/** @type {import('duestream').Handler<Entry>} */
const book = async ({ data: { account, amount } }, { log, signal }) => {
  const key = `lock:${account}`;
  const mine = randomUUID();
  if ((await redis.set(key, mine, 'PX', LOCK_MS, 'NX')) !== 'OK')
    throw new Defer(ASIDE_MS, { reason: `${account} is locked`, jitter: 'equal' });
  try {
    const fromMs = Date.now();
    await sleep(100, undefined, { signal }); // the booking
    log.info({ account, amount, fromMs, toMs: Date.now() }, 'booked');
  } finally {
    await redis.eval(UNLOCK, 1, key, mine);
  }
};

export default defineHandlers({ bookings: book }, { queues: [bookings] });
