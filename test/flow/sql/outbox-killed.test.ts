/**
 * Thousands of rows, written in transactions that commit or do not, while relays are killed at random, claims run out under
 * relays that live, and replies of Redis are lost: each committed row becomes exactly one job, and the rows of one id are
 * carried out in their order. `OUTBOX_ROWS` says how many rows, `OUTBOX_SEED` which run.
 */
import { describe, expect, onTestFinished, test } from 'vitest';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import { createWorker } from '../../../src/daemon/embedded-worker.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import type { Relay, Run } from '../../../src/sql/index.ts';
import { databases } from '../../support/databases.ts';
import { openLossyLine } from '../../support/lossy-line.ts';
import { useOutbox } from '../../support/outbox.ts';
import { isSlice } from '../../tiers.mjs';

const ROWS = Number(process.env.OUTBOX_ROWS ?? (isSlice ? 300 : 10_000));
const SEED = Number(process.env.OUTBOX_SEED ?? 1);
const RELAYS = 3;
const work = defineQueue<{ nth: number }>('work', { partitions: 2 });
const later = defineQueue<{ nth: number }>('later');

/** Random numbers that a seed repeats: mulberry32. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

const placesIn = (text: string): number => text.split('?').length - 1;

/** What has to be there in the end. */
interface Wanted {
  /** Ids of jobs that run once. */
  readonly once: Set<string>;
  /** Ids whose job waits, with the data of the last row. */
  readonly waiting: Map<string, number>;
  readonly cancelled: Set<string>;
  rows: number;
}

describe.each(databases)('in $name', (database) => {
  const { outbox, db, client, relay, server } = useOutbox(database);

  /** The rows of one transaction, and what they are to come to. */
  function rowsOf(nth: number, random: (below: number) => number, wanted: Wanted) {
    const data = { nth };
    const kind = random(10);
    if (kind === 1) {
      const id = `gone${nth}`;
      const steps = [
        (run: Run) => outbox.schedule(run, later, data, { id, delay: '1h' }),
        (run: Run) => outbox.cancel(run, later, id),
      ];
      return { steps, done: () => wanted.cancelled.add(id) };
    }
    if (kind === 2) {
      const id = `again${random(20)}`;
      const options = { id, delay: '1h', ifExists: 'replace' } as const;
      const steps = [(run: Run) => outbox.schedule(run, later, data, options)];
      return { steps, done: () => wanted.waiting.set(id, nth) };
    }
    const id = `job${nth}`;
    return { steps: [(run: Run) => outbox.schedule(run, work, data, { id })], done: () => wanted.once.add(id) };
  }

  async function write(nth: number, random: (below: number) => number, wanted: Wanted): Promise<void> {
    const { steps, done } = rowsOf(nth, random, wanted);
    const isUndone = random(10) === 0;
    const written = db().transaction(async (run) => {
      for (const step of steps) await step(run);
      if (isUndone) throw new Error('undone');
    });
    await written.catch(() => undefined);
    if (isUndone) return;
    wanted.rows += steps.length;
    done();
  }

  /** Claims of many rows end, in whatever order a database takes them; of two that wait for each other, PostgreSQL ends one. */
  async function endClaims(text: string): Promise<void> {
    try {
      await db().run(text, []);
    } catch (error) {
      if (!(error instanceof Error && error.message === 'deadlock detected')) throw error;
      await endClaims(text);
    }
  }
  /** The 30 s of a relay that is dead have passed. */
  const expire = (names: readonly string[]) =>
    endClaims(`UPDATE duestream_outbox SET claimed_until = 0 WHERE claimed_by IN ('${names.join("', '")}')`);
  /**
   * They have passed also under relays that live. A relay sends nothing behind its time, so it cannot carry out an older row of an
   * id that is replaced, or that is cancelled by the next row: those rows are left out.
   */
  const expireAll = () =>
    endClaims("UPDATE duestream_outbox SET claimed_until = 0 WHERE key NOT LIKE 'again%' AND key NOT LIKE 'gone%'");
  const retry = () => endClaims('UPDATE duestream_outbox SET claimed_until = 0 WHERE claimed_by IS NULL');

  /** Lives until a statement in whose middle it is killed, or until nothing is left. @returns whether it was killed */
  async function live(carrier: { readonly relay: Relay; readonly died: Promise<true> }, isOver: () => boolean) {
    const passes = async () => {
      while (!isOver()) {
        const { claimed } = await carrier.relay.pass().catch(() => ({ claimed: 0 }));
        if (claimed === 0) await new Promise((resolve) => setTimeout(resolve, 20));
      }
      return false;
    };
    return Promise.race([carrier.died, passes()]);
  }

  function mortal(url: string, random: (below: number) => number) {
    let left = 1 + random(12);
    let name = '';
    const isBefore = random(2) === 0;
    let die = () => {};
    const died = new Promise<true>((resolve) => {
      die = () => resolve(true);
    });
    const run: Run = async (text, params) => {
      left -= 1;
      // A claim says who claims.
      const claims = /claimed_by = (?:\$(\d+)|\?), attempts/.exec(text);
      if (claims)
        name = String(params[claims[1] === undefined ? placesIn(text.slice(0, claims.index)) : Number(claims[1]) - 1]);
      if (left < 0 || (left === 0 && isBefore)) {
        die();
        return new Promise<never>(() => undefined);
      }
      const rows = await db().run(text, params);
      if (left > 0) return rows;
      die();
      return new Promise<never>(() => undefined);
    };
    return { relay: relay({ run, redis: url, queues: [work], batch: 50 }), died, name: () => name };
  }

  test(`${ROWS} rows with relays that are killed are one job each`, async () => {
    const random = randomOf(SEED);
    const starts = new Map<string, number>();
    const daemon = createDaemon({ redis: { url: server().url }, roles: ['mover'], http: { port: 0 } });
    await daemon.start();
    const worker = createWorker(work, ({ id }) => void starts.set(id, (starts.get(id) ?? 0) + 1), {
      redis: server().url,
    });
    await worker.start();
    onTestFinished(async () => {
      await worker.stop();
      await daemon.stop();
    });
    const wanted: Wanted = { once: new Set(), waiting: new Map(), cancelled: new Set(), rows: 0 };
    let isOver = false;
    let killed = 0;
    let lost = 0;
    const dead: string[] = [];
    const keepAlive = async () => {
      while (!isOver) {
        const line = await openLossyLine(server());
        if (random(4) === 0) line.lose({ after: random(30) });
        const carrier = mortal(line.url, random);
        if (await live(carrier, () => isOver)) killed += 1;
        // Who is killed has no connection any more, and repeats no call whose reply was lost.
        await line.close();
        lost += line.lost();
        void carrier.relay.stop();
        await expire([carrier.name()]);
        dead.push(carrier.name());
        if (random(3) === 0) await expireAll();
      }
    };
    const relays = Array.from({ length: RELAYS }, keepAlive);
    for (let nth = 0; wanted.rows < ROWS; nth += 1) await write(nth, random, wanted);
    for (let left = 1; left > 0; left = (await outbox.state(db().run)).rows) {
      await retry();
      // A claim that was on its way was made by a relay that was dead by then.
      await expire(dead);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    isOver = true;
    await Promise.all(relays);
    await expect.poll(() => starts.size).toBe(wanted.once.size);
    const twice = [...starts].filter(([, times]) => times !== 1);
    expect(twice).toEqual([]);
    expect([...starts.keys()].filter((id) => !wanted.once.has(id))).toEqual([]);
    for (const [id, nth] of wanted.waiting) {
      expect(await client().get(later, id)).toMatchObject({ state: 'scheduled', data: { nth } });
    }
    const found = [...wanted.cancelled].map(async (id) => (await client().get(later, id))?.state);
    expect(new Set(await Promise.all(found))).toEqual(new Set(['cancelled']));
    console.log(`${database.name}: ${wanted.rows} rows, ${killed} relays killed, ${lost} replies lost`);
    expect(killed).toBeGreaterThan(ROWS / 500);
  }, 580_000);
});
