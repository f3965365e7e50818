/** Where a system is tried: a server of its own that can be killed, a way to it that loses replies, and its processes. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../src/embedded/port.mjs';
import { createRecorder } from '../../test/chaos/stage/history.mjs';
import { startServer } from '../../test/chaos/stage/server.mjs';
import { startPostgres } from '../../test/support/postgres.mjs';
import { openProxy } from './proxy.mjs';

const ACTOR = fileURLToPath(new URL('./actor.mjs', import.meta.url));
const FIRST_PORT = 27_900;
const RESTARTS_MAX = 100;
const DAEMONS = 2;
const WORKERS = 3;

/** @typedef {Awaited<ReturnType<typeof openStage>>} Stage */
/** @typedef {{ crash: () => Promise<void>, start: () => Promise<void>, stop: () => Promise<void> }} Store */
/** @typedef {{ readonly pid: number, readonly isGone: () => boolean, readonly exited: Promise<void> }} Actor */

/**
 * @param {{ system: import('./system.mjs').System, binary: string, plan: readonly import('./system.mjs').Planned[] }} parts
 */
export async function openStage({ system, binary, plan }) {
  const folder = mkdtempSync(join(tmpdir(), 'due-kept-'));
  const port = await freePort(FIRST_PORT);
  const store = system.store === 'redis' ? await redisOn(port, { binary, folder }) : await postgresOn(port);
  const proxy = await openProxy(port);
  const url =
    system.store === 'redis'
      ? `redis://127.0.0.1:${proxy.port}`
      : `postgres://postgres@127.0.0.1:${proxy.port}/postgres`;
  const note = createRecorder(join(folder, 'nemesis.jsonl'), 'nemesis');
  writeFileSync(join(folder, 'plan.json'), JSON.stringify(plan));
  /** @type {Actor[]} */
  const workers = [];
  /** @type {Set<import('node:child_process').ChildProcess>} */
  const children = new Set();
  let born = 0;
  let isClosing = false;

  /** @param {'producer' | 'worker' | 'daemon'} role @returns {Promise<Actor>} when it is up */
  async function launch(role) {
    born += 1;
    const { execPath = process.execPath } = system;
    const child = fork(ACTOR, [role, system.name, url, folder], {
      execPath,
      execArgv: [],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    children.add(child);
    let isGone = false;
    const { pid = 0 } = child;
    /** @type {Promise<void>} */
    const exited = new Promise((resolve) => {
      child.once('exit', () => {
        isGone = true;
        children.delete(child);
        note('exit', { actor: role, child: pid });
        resolve();
        if (role !== 'producer' && !isClosing && born < RESTARTS_MAX) void launch(role);
      });
    });
    const actor = { pid, isGone: () => isGone, exited };
    if (role === 'worker') workers.push(actor);
    note('spawn', { actor: role, child: pid });
    await Promise.race([new Promise((resolve) => child.once('message', resolve)), exited]);
    return actor;
  }

  // One after the other: the first one makes the tables.
  const producer = await launch('producer');
  const daemons = Array.from({ length: system.daemon ? DAEMONS : 0 }, () => launch('daemon'));
  await Promise.all([...daemons, ...Array.from({ length: WORKERS }, () => launch('worker'))]);
  return {
    folder,
    store,
    proxy,
    note,
    producer,
    living: () => workers.filter(({ isGone }) => !isGone()),
    go: () => writeFileSync(join(folder, 'go'), ''),
    async close() {
      isClosing = true;
      // Each exit is written down, so the folder goes after the last one.
      const exits = [...children].map((child) => once(child, 'exit'));
      for (const child of children) {
        // Who is frozen would not end.
        child.kill('SIGCONT');
        child.kill('SIGKILL');
      }
      await Promise.all(exits);
      await proxy.close();
      await store.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** With an append-only file, as `everysec` has it. @param {number} port @param {{ binary: string, folder: string }} where @returns {Promise<Store>} */
async function redisOn(port, { binary, folder }) {
  const settings = { port: String(port), bind: '127.0.0.1' };
  const server = await startServer({ binary, folder, mode: 'everysec', settings });
  return {
    async crash() {
      server.signal('SIGKILL');
      await server.ended();
    },
    start: () => server.start(),
    stop: () => server.stop(),
  };
}

/** @param {number} port @returns {Promise<Store>} */
const postgresOn = (port) => startPostgres({ port: String(port), listen_addresses: '127.0.0.1', fsync: 'on' });
