/** Faults of what Redis holds: somebody else deletes, trims or plants. */
import { counted, keyOf, PARTITIONS } from '../judge/dump.mjs';
import { atLeast, atMost, calm, exactly, flow, foundAgain, notLater, resumed } from '../judge/predicates.mjs';
import { SLOTS, WORKERS } from '../stage/workload.mjs';

/** @typedef {import('../stage/run.mjs').Row} Row */

/** Jobs that can run at once. */
const IN_FLIGHT = WORKERS * SLOTS;
/** The matrix asks for this until jobs whose entries are gone are found again. */
const HEALED_MS = 30_000;

const EVERYTHING = {
  always: Number.POSITIVE_INFINITY,
  everysec: Number.POSITIVE_INFINITY,
  none: Number.POSITIVE_INFINITY,
};

/** @type {readonly Row[]} */
export const dataRows = [
  {
    id: 'F35',
    title: 'FLUSHALL while everything runs',
    how: 'FLUSHALL under load',
    wanted: 'new jobs run <= 5 s; a log <= 42 lines in 10 s; the loss is declared',
    declaredLossMs: EVERYTHING,
    async inject({ redis }) {
      await redis.flushall();
    },
    pass: (outcome) => [...flow(outcome), ...calm(outcome)],
  },
  {
    id: 'F36',
    title: 'the ready stream is deleted, and then its group',
    how: 'DEL of the ready streams, XGROUP DESTROY 1.5 s later',
    wanted: 'each partition goes on <= 5 s; found again <= 30 s',
    async inject({ redis, sleep }) {
      for (const partition of PARTITIONS) await redis.del(keyOf(partition, 'ready'));
      await sleep(1500);
      for (const partition of PARTITIONS) {
        await redis.call('XGROUP', 'DESTROY', keyOf(partition, 'ready'), 'workers').catch(() => {});
      }
    },
    // A worker learns from its next extension that its entry is gone, and stops.
    severs: true,
    drainMs: HEALED_MS,
    // The group is made anew at 0, so that nothing is left out, and hands out again what was running at that moment.
    allow: { 'DUP-START': IN_FLIGHT, REPAIRED: 1 },
    pass: (outcome) => [...resumed(outcome, 5000), ...foundAgain(outcome, HEALED_MS)],
  },
  {
    id: 'F37',
    title: 'somebody trims the ready stream to nothing',
    how: 'XTRIM MAXLEN 0 on streams with pending entries',
    wanted: 'each partition goes on <= 5 s; found again <= 30 s',
    workload: { workMs: [20, 400] },
    async inject({ redis, until }) {
      await until(async () => (await redis.xlen(keyOf(0, 'ready'))) > 0, 'an entry');
      for (const partition of PARTITIONS) await redis.xtrim(keyOf(partition, 'ready'), 'MAXLEN', 0);
    },
    // A worker learns from its next extension that its entry is gone, and stops.
    severs: true,
    drainMs: HEALED_MS,
    allow: { REPAIRED: 1 },
    pass: (outcome) => [...resumed(outcome, 5000), ...foundAgain(outcome, HEALED_MS)],
  },
  {
    id: 'F38',
    title: 'somebody removes the consumer of a busy worker',
    how: 'XGROUP DELCONSUMER of a busy worker in every partition',
    wanted: 'each partition goes on <= 5 s; found again <= 30 s',
    workload: { workMs: [20, 400] },
    async inject({ redis, note, pidOf }) {
      let struck = 0;
      for (const partition of PARTITIONS) {
        const key = keyOf(partition, 'ready');
        const pending = await redis.xpending(key, 'workers', '-', '+', 1);
        const entry = pending[0];
        if (!Array.isArray(entry)) continue;
        const victim = String(entry[1]);
        // It learns from its next extension that its entry is gone, and stops.
        const child = await pidOf(victim);
        note('cut', { child });
        struck += Number(await redis.xgroup('DELCONSUMER', key, 'workers', victim));
        note('repair', { child });
      }
      return { struck };
    },
    async after({ redis }) {
      return { repaired: await counted(redis, 'mended') };
    },
    drainMs: HEALED_MS,
    // A worker that lives completes what it runs all the same, or puts it back. Nobody can do that for what it had read and
    // not started yet, nor for what a dead worker held: no consumer holds it, so it is not reclaimed but repaired.
    allow: { REPAIRED: 1 },
    pass: (outcome) => [
      ...resumed(outcome, 5000),
      ...foundAgain(outcome, HEALED_MS),
      ...atMost('jobs that had to be found again', outcome.noted.repaired ?? -1, outcome.noted.struck ?? -1),
    ],
  },
  {
    id: 'F69',
    title: 'foreign members and records that nobody can read',
    how: 'ZADD of 6 bad members, 3 odd records and a good bare job',
    wanted: 'a dead letter with a reason for each bad one; late <= 3 s',
    workload: { crashes: 0, poison: 0 },
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
    pass({ deadLetters, report }) {
      const dead = Object.values(deadLetters).reduce((total, count) => total + count, 0);
      return [
        ...exactly('dead letters about members', (deadLetters['bad-member'] ?? 0) + (deadLetters['bad-due'] ?? 0), 5),
        ...exactly('dead letters about missing records', deadLetters['record-missing'] ?? 0, 1),
        ...atLeast('dead letters', dead, 7),
        ...notLater(report.counts.lateMaxMs, 3000),
      ];
    },
  },
];
