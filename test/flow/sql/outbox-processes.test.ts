/**
 * `duestream outbox relay` as processes that are killed by SIGKILL, before a statement, behind one whose reply they never see, or
 * while they ask Redis: each row that was committed becomes one job.
 *
 *     OUTBOX_ROWS=10000 OUTBOX_KILLS=60 OUTBOX_SEED=7 npx vitest run test/flow/sql/outbox-processes.test.ts
 */
import { copyFileSync, mkdirSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { text as bodyOf } from 'node:stream/consumers';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import { createWorker } from '../../../src/daemon/embedded-worker.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { partitionKeys } from '../../../src/redis/keys.ts';
import type { Dialect, SqlValue } from '../../../src/sql/index.ts';
import { databases, type TestDatabase } from '../../support/databases.ts';
import { numbers } from '../../support/killed.ts';
import { useOutbox } from '../../support/outbox.ts';
import { type Running, useProcesses } from '../../support/processes.ts';
import { root } from '../../support/repository.ts';

const ROWS = Number(process.env.OUTBOX_ROWS ?? 2000);
const KILLS = Number(process.env.OUTBOX_KILLS ?? 12);
const SEED = Number(process.env.OUTBOX_SEED ?? 1);
const RELAYS = 3;
/** So many statements a relay lives at most. */
const LIFE_MAX = 5;
const patience = { timeout: 120_000, interval: 50 };
const work = defineQueue<{ nth: number }>('work', { partitions: 2 });
const processes = useProcesses();

beforeAll(() => {
  const modules = join(processes.folder, 'node_modules');
  mkdirSync(modules);
  symlinkSync(root, join(modules, 'duestream'));
  copyFileSync(join(root, 'test/fixtures/outbox-over-socket.mjs'), join(processes.folder, 'outbox.mjs'));
});

/** A process with a relay, and when it is to be killed. */
interface Mortal {
  readonly process: Running;
  /** Statements until then. */
  left: number;
  readonly how: 'before' | 'behind' | 'between';
  /** By which its claims are known. */
  name: string;
  readonly died: Promise<boolean>;
  readonly kill: () => Promise<void>;
}

/** The database behind a socket. Who sends a statement is known by its pid, and may be killed for it. */
async function serve(db: TestDatabase, path: string, relays: ReadonlyMap<number, Mortal>) {
  async function answer(pid: number, said: string): Promise<unknown> {
    const { text, params }: { text: string; params: SqlValue[] } = JSON.parse(said);
    const relay = relays.get(pid);
    if (!relay) throw new Error(`nobody started ${pid}`);
    if (/claimed_by = (\$\d+|\?), attempts/.test(text)) relay.name = String(params.at(-1));
    relay.left -= 1;
    if (relay.left === 0 && relay.how === 'before') return relay.kill();
    const rows = await db.run(text, params);
    if (relay.left === 0 && relay.how === 'behind') await relay.kill();
    // What it has claimed is on its way to Redis by then.
    if (relay.left === 0) setTimeout(() => void relay.kill(), 2);
    return rows;
  }
  const server = createServer((request, response) => {
    const whole = bodyOf(request).then((said) => answer(Number(request.url?.slice(1)), said));
    const bigAsText = (_: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value);
    whole.then(
      (rows) => response.end(JSON.stringify(rows ?? [], bigAsText)),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => void server.close());
}

describe.each(databases.filter(({ name }) => name !== 'PGlite'))('in $name', (database) => {
  const { outbox, db, redis, server } = useOutbox(database);

  function startRelay(nth: number, socket: string, random: () => number): Mortal {
    const process = processes.launch({
      name: `relay ${nth}`,
      args: ['outbox', 'relay', 'outbox.mjs', '--redis', server().url],
      env: { OUTBOX_SOCKET: socket, OUTBOX_DIALECT: database.dialect satisfies Dialect },
    });
    const { promise: died, resolve } = withResolvers();
    return {
      process,
      left: 1 + Math.floor(random() * LIFE_MAX),
      how: (['before', 'behind', 'between'] as const)[Math.floor(random() * 3)] ?? 'before',
      name: '',
      died,
      async kill() {
        await process.end('SIGKILL');
        resolve(true);
      },
    };
  }

  /** Some rows in a transaction of their own. One of ten is rolled back. */
  async function write(ids: readonly string[], random: () => number, wanted: Set<string>): Promise<void> {
    const isUndone = random() < 0.1;
    const written = db().transaction(async (run) => {
      await outbox.scheduleMany(
        run,
        work,
        ids.map((id) => ({ id, data: { nth: wanted.size } })),
      );
      if (isUndone) throw new Error('undone');
    });
    await written.catch(() => undefined);
    if (!isUndone) for (const id of ids) wanted.add(id);
  }

  test(`${ROWS} rows are one job each, while relays are killed ${KILLS} times`, async () => {
    const random = numbers(SEED);
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
    const relays = new Map<number, Mortal>();
    const socket = join(processes.folder, `${database.name}.sock`);
    await serve(db(), socket, relays);

    const wanted = new Set<string>();
    const { promise: over, resolve: end } = withResolvers();
    let killed = 0;
    let launched = 0;
    const writeSome = async () => {
      for (const until = Math.min(ROWS, (ROWS * (killed + 1)) / (KILLS + 1)); wanted.size < until; )
        await write(
          Array.from({ length: 20 }, () => `job${Math.floor(random() * 1e12)}`),
          random,
          wanted,
        );
    };
    const keepAlive = async () => {
      for (;;) {
        launched += 1;
        const relay = startRelay(launched, socket, random);
        relays.set(relay.process.pid, relay);
        if (killed >= KILLS) relay.left = Number.POSITIVE_INFINITY;
        if (!(await Promise.race([relay.died, over]))) return;
        killed += 1;
        // As when the 30 s of its claims have passed.
        await db().run(`UPDATE duestream_outbox SET claimed_until = 0 WHERE claimed_by = '${relay.name}'`, []);
        await writeSome();
      }
    };
    await writeSome();
    const alive = Array.from({ length: RELAYS }, keepAlive);
    await expect.poll(() => killed, patience).toBeGreaterThanOrEqual(KILLS);
    await expect.poll(async () => (await outbox.state(db().run)).rows, patience).toBe(0);
    end(false);
    await Promise.all(alive);

    await expect.poll(() => starts.size, patience).toBe(wanted.size);
    expect([...starts].filter(([id, times]) => times !== 1 || !wanted.has(id))).toEqual([]);
    // Nor did one begin a second life that nobody ran.
    const made = [0, 1].map((partition) => {
      const { meta } = partitionKeys({ namespace: 'duestream', queue: 'work', partition });
      return redis().hget(meta, 'n.scheduled');
    });
    expect((await Promise.all(made)).reduce((sum, count) => sum + Number(count), 0)).toBe(wanted.size);
    console.log(`${database.name}: ${wanted.size} rows, ${killed} of ${launched} relays killed`);
  }, 300_000);
});

/** As `Promise.withResolvers` of newer versions of Node. */
function withResolvers() {
  let resolve: (value: boolean) => void = () => {};
  const promise = new Promise<boolean>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
