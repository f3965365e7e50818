/**
 * A day of an installation, as pictures show it: mails all day long, reminders that come due together at nine, a tenant that sends
 * more than all others, and a deploy at half past two that fails. The services of the product play it in virtual time over the
 * model of Redis, so that charts, accounts, diary, history and audit are their own; then every key is copied into a real Redis,
 * from which a real daemon goes on. The day ends now, so no time has to be shifted. Everything follows from a seed.
 *
 *  model of Redis ◀── leaders, workers, clients, in virtual time: 25 hours up to now ──▶ copied ──▶ a real Redis
 */
import { createClientOf } from '../../src/client/client.ts';
import { noting } from '../../src/client/operations.ts';
import { randomFrom } from '../../src/inspect/simulate/usual.ts';
import { createEmitter } from '../../src/job/events.ts';
import type { Job } from '../../src/job/job.ts';
import { defineQueue, type Queue } from '../../src/job/queue.ts';
import { type Clock, clearImmediate, setImmediate } from '../../src/kernel/clock.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { RHYTHMS } from '../../src/kernel/rhythm.ts';
import { version } from '../../src/kernel/version.ts';
import { LeaderPool } from '../../src/mover/leader-pool.ts';
import { audit } from '../../src/redis/audit.ts';
import {
  openCommands,
  openSubscriber,
  type Redis,
  type RedisAddress,
  serveHere,
} from '../../src/redis/connection/connect.ts';
import { claimNamespace, declarationOf, declareQueue } from '../../src/redis/scripts/queues.ts';
import { openLine } from '../../src/testing/line.ts';
import { createServer } from '../../src/testing/redis/server.mjs';
import { SortedSet } from '../../src/testing/redis/sorted-set.mjs';
import { Stream } from '../../src/testing/redis/stream.mjs';
import { VirtualTime } from '../../src/testing/time.ts';
import { DEFAULT_DST, instantsOf, parseZone } from '../../src/time/zone.ts';
import { createWorker, type WatchedWorker } from '../../src/worker/worker.ts';

const NAMESPACE = 'duestream';
/** Of the clock by which people live here. */
const ZONE = 'Europe/Berlin';
const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** A chart of a day begins with a whole hour. */
const HOURS = 25;

const QUEUES = {
  mails: defineQueue('mails', { history: { keep: '7d' }, lateness: { within: '10s', of: 0.99, over: '30d' } }),
  reminders: defineQueue('reminders', { rate: '60/s', lateness: { within: '5s', of: 0.99, over: '30d' } }),
  webhooks: defineQueue('webhooks', { fair: true, perGroup: 2, history: { keep: '1d' } }),
  invoices: defineQueue('invoices', { attempts: 2, history: { keep: '7d' } }),
  reports: defineQueue('reports', { concurrency: 2 }),
} as const;
type Name = keyof typeof QUEUES;

/** How many mails there are in each hour of the clock. */
const MAILS = [14, 9, 8, 8, 10, 20, 42, 70, 110, 120, 104, 96, 88, 92, 100, 98, 94, 90, 84, 70, 52, 40, 30, 20];
const TENANTS = ['acme', 'bolt', 'cargo', 'delta'];

interface Day {
  readonly time: VirtualTime;
  readonly clock: Clock;
  readonly address: RedisAddress;
  readonly server: ReturnType<typeof createServer>;
  readonly random: () => number;
  /** The deploy that failed is out. */
  isBad: boolean;
}

/** Something that happens at a moment of the day. */
interface Act {
  readonly atMs: number;
  readonly act: () => Promise<unknown>;
}

/**
 * @param hours fewer for a look at a part of it
 * @returns a moment at which the deploy fails
 */
export async function playDay(redis: Redis, { seed = 7, hours = HOURS } = {}): Promise<{ readonly failedMs: number }> {
  const nowMs = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
  const day = beginDay(nowMs - hours * HOUR_MS, randomFrom(seed));
  const leaders = await startLeaders(day);
  const workers = {
    front: await startWorker(day, { mails: 30, reminders: 40 }),
    side: await startWorker(day, { webhooks: 12, reports: 2 }),
    back: await startWorker(day, { invoices: 4 }),
  };
  const acts = actsOf(day, workers, nowMs).filter(({ atMs }) => atMs >= day.time.nowMs && atMs < nowMs);
  for (const { atMs, act } of acts.toSorted((one, other) => one.atMs - other.atMs)) {
    await day.time.advanceTo(atMs);
    await act();
  }
  // So much of the real day has passed meanwhile.
  while (day.time.nowMs < Date.now()) await day.time.advanceTo(Date.now());
  await whilePassing(day, Promise.all(Object.values(workers).map((one) => one.stop())));
  await whilePassing(day, leaders.stop());
  await copyInto(redis, day.server.db);
  return { failedMs: lastAt(2 * 60 + 36, nowMs) };
}

function beginDay(startMs: number, random: () => number): Day {
  const time = new VirtualTime(startMs, () => undefined);
  const server = createServer({
    nowUs: () => Math.floor(time.nowMs * 1000),
    timer: (ms, act) => time.at(time.nowMs + ms, act),
  });
  const address: RedisAddress = { host: 'in-this-process' };
  serveHere(address, (name) => openLine(server, time, { isService: !/^client/.test(name), isReady: true }));
  return { time, clock: clockOf(time), address, server, random, isBad: false };
}

/** Looks closer than this see nothing else in a picture. */
const LOOK_MS = 400;

/** Every loop turns, as in production: in the kit those that look after something do so when time stops. */
function clockOf(time: VirtualTime): Clock {
  return {
    ...time.clock,
    rest(who, ms, act) {
      if (ms > 0) return time.clock.timer(/^surveyor of /.test(who) ? Math.max(ms, LOOK_MS) : ms, act);
      time.stir();
      const immediate = setImmediate(act);
      return () => clearImmediate(immediate);
    },
  };
}

async function startLeaders({ address, clock, time }: Day): Promise<LeaderPool> {
  const rhythm = RHYTHMS.quiet;
  const commands = openCommands({ redis: address, name: 'daemon' });
  await claimNamespace(commands, NAMESPACE, 0);
  for (const queue of Object.values<Queue>(QUEUES)) await declareQueue(commands, declarationOf(NAMESPACE, queue));
  const identity = { id: 'd-day', role: 'daemon' as const, host: 'mill', pid: 1, version, startedMs: time.nowMs };
  const pool = new LeaderPool({
    redis: commands,
    subscriber: openSubscriber({ redis: address, name: 'nudges' }),
    namespace: NAMESPACE,
    identity: { ...identity, queues: [] },
    beatTtlMs: rhythm.daemonBeatTtlMs,
    options: { leaseMs: rhythm.leaseMs, batchMax: 300, readyMax: 10_000, safetyTickMs: rhythm.safetyTickMs },
    limits: {
      batch: 500,
      windowMs: DAY_MS,
      tombstonesMax: 1_000_000,
      floorMs: HOUR_MS,
      retentionMs: 30 * DAY_MS,
      deadLettersMax: 10_000,
    },
    minutes: true,
    rhythm,
    clock,
    events: createEmitter(),
  });
  await time.open();
  await pool.start();
  return pool;
}

/** @param slots how many handlers run at once, of each queue that it serves */
async function startWorker(day: Day, slots: Partial<Record<Name, number>>): Promise<WatchedWorker> {
  const { address, clock, time } = day;
  const worker = createWorker({
    redis: address,
    clock,
    profile: 'quiet',
    log: silentLog,
    queues: Object.entries(slots).map(([name, concurrency]) => ({
      queue: QUEUES[name as Name] as Queue,
      handler: (job: Job) => played(day, name as Name, job),
      concurrency,
    })),
  });
  await time.open();
  await worker.start();
  return worker;
}

/** Time goes on until it is done. */
async function whilePassing({ time }: Day, work: Promise<unknown>): Promise<void> {
  let isOver = false;
  const over = work.finally(() => {
    isOver = true;
  });
  over.catch(() => undefined);
  while (!isOver) await time.advanceTo(time.nowMs + SECOND_MS);
  await over;
}

// What handlers do.

/** For how long, in ms. */
const LASTS: Readonly<Record<Name, (random: number) => number>> = {
  mails: (random) => 80 + 700 * random ** 3,
  reminders: (random) => 20 + 60 * random,
  webhooks: (random) => 300 + 1200 * random,
  invoices: (random) => 200 + 900 * random,
  reports: (random) => 20_000 + 40_000 * random,
};

async function played(day: Day, name: Name, { id }: Job): Promise<void> {
  const { time, random } = day;
  await new Promise<void>((resolve) => void time.at(time.nowMs + LASTS[name](random()), resolve));
  if (id.startsWith('bounce')) throw new Error('connect ECONNREFUSED 10.0.0.25:25');
  if (id.startsWith('receipt:1003')) throw new Error('421 the mailbox is busy, try again later');
  if (name === 'mails' && random() < 0.01) throw new Error('421 the mailbox is busy, try again later');
  if (name === 'invoices' && day.isBad) throw vatError();
}

function vatError(): Error {
  const error = new TypeError("Cannot read properties of undefined (reading 'vat')");
  error.stack = `${error}\n    at vatOf (/app/invoices.mjs:42:31)\n    at invoices (/app/invoices.mjs:18:20)`;
  return error;
}

// What happens.

type Workers = Record<'front' | 'side' | 'back', WatchedWorker>;

function actsOf(day: Day, workers: Workers, nowMs: number): readonly Act[] {
  const { address, clock } = day;
  const by = (who: string, way: 'page' | 'cli') => {
    const place = { redis: openCommands({ redis: address, name: 'client-audit' }), namespace: NAMESPACE };
    const client = createClientOf({ redis: address, clock });
    return noting(client, { note: (change) => audit(place, { ...change, who, way }) });
  };
  const [ada, ops] = [by('ada', 'page'), by('ops', 'cli')];
  const at = (hour: number, minute = 0) => lastAt(hour * 60 + minute, nowMs);
  const beginMs = day.time.nowMs;
  return [
    { atMs: beginMs, act: () => beginning(ada, nowMs) },
    ...traffic(day, ada, { beginMs, nowMs }),
    ...deploys(day, workers, { failsMs: at(2, 30), backMs: at(2, 52) }),
    { atMs: at(9) - HOUR_MS, act: () => ada.scheduleMany(QUEUES.reminders, herd(day, at(9), 1500)) },
    { atMs: at(14, 5), act: () => ada.scheduleMany(QUEUES.webhooks, flood(day, at(14, 5))) },
    {
      atMs: at(14, 12),
      act: () => ops.queues.set('webhooks', { perGroup: 1 }, { reason: 'acme sends more than all others', by: 'ops' }),
    },
    {
      atMs: at(15, 10),
      act: () => ops.queues.unset('webhooks', 'perGroup', { reason: 'acme is done', by: 'ops' }),
    },
    { atMs: at(11), act: () => ada.queues.pause('reports', { reason: 'the warehouse moves', by: 'ada' }) },
    { atMs: at(11, 25), act: () => ada.queues.resume('reports', { by: 'ada' }) },
    { atMs: at(16, 20), act: () => ada.tags.close('mails', 'customer:39', { for: '30d', reason: 'paid' }) },
    { atMs: at(16, 31), act: () => ada.cancel('reminders', { tag: 'customer:42' }) },
    { atMs: at(8, 2), act: () => ops.schedules.pause('cleanup', 'the disks are exchanged') },
    {
      atMs: nowMs - 12 * MINUTE_MS,
      // Tried at once and twice more, five minutes apart; the next try is still to come.
      act: () =>
        ada.schedule(
          QUEUES.mails,
          { to: 'user3@example.org', template: 'receipt', order: { id: 1003, items: ['book', 'pen'] } },
          {
            id: 'receipt:1003',
            attempts: 5,
            backoff: { kind: 'fixed', delayMs: 5 * MINUTE_MS, jitter: 'none' },
            tags: ['customer:3'],
          },
        ),
    },
  ];
}

type Person = ReturnType<typeof createClientOf>;

/** Schedules, and what lies in the days to come. */
async function beginning(client: Person, nowMs: number): Promise<void> {
  await client.schedules.put('nightly', { queue: 'reports', cron: '30 2 * * *', zone: ZONE });
  await client.schedules.put('digest', { queue: 'mails', cron: '0 7 * * 1-5', zone: ZONE });
  await client.schedules.put('cleanup', { queue: 'reports', every: '6h' });
  const nextNine = lastAt(9 * 60, nowMs) + DAY_MS;
  await client.scheduleMany(
    QUEUES.reminders,
    Array.from({ length: 1400 }, (_, n) => ({
      id: `reminder:next:${n}`,
      data: { customer: n },
      at: new Date(nextNine),
      tags: [`customer:${n % 90}`],
    })),
  );
  await client.scheduleMany(
    QUEUES.invoices,
    Array.from({ length: 12 }, (_, n) => ({
      id: `statement:${n + 1}`,
      data: { month: n + 1 },
      at: new Date(nowMs + (n + 1) * 2 * HOUR_MS),
      tags: ['tenant:acme'],
    })),
  );
}

/** Hour by hour what producers send, also for some hours to come. */
function traffic(day: Day, client: Person, { beginMs, nowMs }: { readonly beginMs: number; readonly nowMs: number }) {
  const acts: Act[] = [];
  for (let fromMs = beginMs; fromMs < nowMs; fromMs += HOUR_MS) {
    acts.push({ atMs: fromMs, act: () => sendHour(day, client, fromMs) });
  }
  return acts;
}

async function sendHour(day: Day, client: Person, fromMs: number): Promise<void> {
  const { random } = day;
  const within = () => new Date(fromMs + random() * HOUR_MS);
  const hour = hourOf(fromMs);
  const stamp = Math.floor(fromMs / HOUR_MS);
  await client.scheduleMany(
    QUEUES.mails,
    Array.from({ length: MAILS[hour] ?? 0 }, (_, n) => ({
      id: `${n === 0 && hour % 4 === 0 ? 'bounce' : n % 3 === 0 ? 'receipt' : 'welcome'}:${stamp}-${n}`,
      data: { to: `user${n}@example.org`, template: n % 3 === 0 ? 'receipt' : 'welcome' },
      at: within(),
      tags: [`customer:${n}`],
      ...(n === 0 && hour % 4 === 0 && { attempts: 1 }),
    })),
  );
  await client.scheduleMany(
    QUEUES.webhooks,
    TENANTS.flatMap((group) =>
      Array.from({ length: 12 }, (_, n) => ({ id: `${stamp}-${n}`, group, data: { n }, at: within() })),
    ),
  );
  if (hour < 2 || hour > 4) return;
  await client.scheduleMany(
    QUEUES.invoices,
    Array.from({ length: 120 }, (_, n) => ({
      id: `invoice:${stamp}-${n}`,
      data: { invoice: 7000 + n },
      at: within(),
      backoff: { kind: 'fixed', delayMs: 20 * SECOND_MS, jitter: 'none' } as const,
    })),
  );
}

const herd = ({ random }: Day, atMs: number, count: number) =>
  Array.from({ length: count }, (_, n) => ({
    id: `reminder:${n}`,
    data: { customer: n },
    at: new Date(atMs + Math.floor(random() * 3) * SECOND_MS),
    tags: [`customer:${n % 90}`],
  }));

/** What one tenant sends within a minute. */
const flood = ({ random }: Day, atMs: number) =>
  Array.from({ length: 700 }, (_, n) => ({
    id: `export-${n}`,
    group: 'acme',
    data: { n },
    at: new Date(atMs + random() * MINUTE_MS),
  }));

/** A version that fails goes out, and the one before comes back. For a moment nobody works. */
function deploys(
  day: Day,
  workers: Workers,
  { failsMs, backMs }: { readonly failsMs: number; readonly backMs: number },
): readonly Act[] {
  const deploy = (isBad: boolean) => async () => {
    await whilePassing(day, workers.back.stop());
    day.isBad = isBad;
    workers.back = await startWorker(day, { invoices: 4 });
  };
  return [
    { atMs: failsMs, act: deploy(true) },
    { atMs: backMs, act: deploy(false) },
  ];
}

const zone = parseZone(ZONE);

/** The last time it was so late by the clock. */
function lastAt(minutes: number, nowMs: number): number {
  const today = Math.floor((nowMs + zone.offsetMs(nowMs)) / DAY_MS) * DAY_MS;
  const wallMs = today + minutes * MINUTE_MS;
  const all = [wallMs - DAY_MS, wallMs].flatMap((ms) => instantsOf(zone, ms, DEFAULT_DST));
  return all.findLast((ms) => ms <= nowMs) ?? nowMs;
}

const hourOf = (ms: number): number => Math.floor(((((ms + zone.offsetMs(ms)) % DAY_MS) + DAY_MS) % DAY_MS) / HOUR_MS);

// From the model into a real Redis: every key, with its type, its bytes and the moment at which it expires.

/** So many items go with one command. */
const ITEMS_MAX = 500;

/** What processes say of themselves ends with them. */
const OF_PROCESSES = /:(leader|alive|beat:.*|session:.*|idempotency:.*)$/;

export async function copyInto(redis: Redis, db: ReturnType<typeof createServer>['db']): Promise<void> {
  for (const key of db.keys().filter((one) => !OF_PROCESSES.test(one))) {
    const { content, expiresMs } = db.all.get(key) ?? {};
    const at = bytes(key);
    if (content instanceof Stream) await copyStream(redis, at, content);
    else if (typeof content === 'string') await redis.call('SET', at, bytes(content));
    else if (content instanceof Map) await inParts('HSET', [...content]);
    else if (content instanceof SortedSet) {
      await inParts(
        'ZADD',
        content.sorted.map(({ member, score }) => [String(score), member] as const),
      );
    } else if (content instanceof Set) {
      await inParts(
        'SADD',
        [...content].map((one) => [one] as const),
      );
    }
    if (expiresMs !== undefined) await redis.call('PEXPIREAT', at, String(Math.ceil(expiresMs)));

    async function inParts(command: string, items: readonly (readonly string[])[]): Promise<void> {
      for (let from = 0; from < items.length; from += ITEMS_MAX) {
        await redis.call(command, at, ...items.slice(from, from + ITEMS_MAX).flatMap((one) => one.map(bytes)));
      }
    }
  }
}

async function copyStream(redis: Redis, key: Buffer, { entries, groups }: Stream): Promise<void> {
  for (const { id, fields } of entries) await redis.call('XADD', key, id, ...fields.map(bytes));
  for (const [name, { last, pending }] of groups) {
    if (pending.size > 0) throw new Error(`${key} has entries that a consumer holds; stop the workers first`);
    await redis.call('XGROUP', 'CREATE', key, name, last.join('-'), 'MKSTREAM');
  }
}

/** The model has one character per byte. */
const bytes = (text: string): Buffer => Buffer.from(text, 'latin1');
