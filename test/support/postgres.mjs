/** A server of PostgreSQL, where this machine has one installed: on a socket in a folder of its own, gone with its test file. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { spawnGuarded } from '../../src/embedded/guard.mjs';

/** Where Debian puts them. */
const HOME = '/usr/lib/postgresql';
const START_MS = 30_000;
const STOP_MS = 5000;

/** The folder of its programs, of the newest version. @returns {string | undefined} */
function programs() {
  if (!existsSync(HOME)) return undefined;
  const versions = readdirSync(HOME).sort((one, other) => Number(other) - Number(one));
  return versions.map((version) => join(HOME, version, 'bin')).find((bin) => existsSync(join(bin, 'initdb')));
}

const isRoot = process.getuid?.() === 0;

/** Root cannot run a server itself; its package brings a user who can. */
export function hasPostgres() {
  if (programs() === undefined) return false;
  if (!isRoot) return true;
  try {
    execFileSync('setpriv', [...AS_USER, 'true'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

const AS_USER = ['--reuid', 'postgres', '--regid', 'postgres', '--clear-groups'];

/** A program of PostgreSQL, as a user who may run it. @param {string} name @param {readonly string[]} args */
function called(name, args) {
  const path = join(programs() ?? '', name);
  return isRoot ? { path: '/usr/bin/setpriv', args: [...AS_USER, path, ...args] } : { path, args: [...args] };
}

/**
 * @param {Readonly<Record<string, string>>} [settings] of postgres, besides those for a server that lives as long as a test; they win
 */
export async function startPostgres(settings = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'due-pg-'));
  // The user of the server makes its folder in it.
  chmodSync(dir, 0o777);
  const data = join(dir, 'data');
  const init = called('initdb', ['-D', data, '-A', 'trust', '-U', 'postgres', '-N', '--no-instructions']);
  execFileSync(init.path, init.args, { stdio: 'ignore' });
  const all = { listen_addresses: '', fsync: 'off', shared_buffers: '16MB', port: '5432', ...settings };
  const words = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const pool = () => new pg.Pool({ host: dir, port: Number(all.port), user: 'postgres', database: 'postgres' });
  let child = launch();
  await whenReady(pool());

  function launch() {
    const started = spawnGuarded(called('postgres', ['-D', data, '-k', dir, ...words]));
    started.stdout.resume();
    started.stderr.resume();
    return started;
  }

  async function gone() {
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }

  return {
    pool,
    /** Where its socket is. */
    dir,
    pid: child.pid ?? 0,
    /** SIGKILL to all its processes at once, as when the machine goes; its data stay. */
    async crash() {
      const backends = childrenOf(child.pid ?? 0);
      child.kill('SIGKILL');
      for (const pid of backends) endAt(pid);
      await gone();
    },
    /** With the same data. */
    async start() {
      child = launch();
      await whenReady(pool());
    },
    async stop() {
      // It waits for its connections, which are about to end; what a test that failed has left is cut off.
      child.kill('SIGTERM');
      await Promise.race([gone(), sleep(STOP_MS)]);
      child.kill('SIGQUIT');
      await gone();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/**
 * Commits when `work` resolves, and rolls back when it rejects.
 *
 * @param {pg.Pool} pool
 * @param {(run: (text: string, params: readonly unknown[]) => Promise<unknown[]>) => unknown} work
 */
export async function transactionIn(pool, work) {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    await work(async (text, params) => (await client.query(text, [...params])).rows);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  } finally {
    client.release();
  }
}

/** @param {number} parent */
function childrenOf(parent) {
  const names = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return names.filter((name) => parentOf(name) === parent).map(Number);
}

/** It may have ended meanwhile. @param {string} name of a process in /proc */
function parentOf(name) {
  try {
    const [, fields = ''] = readFileSync(`/proc/${name}/stat`, 'utf8').split(') ');
    return Number(fields.split(' ')[1]);
  } catch {
    return undefined;
  }
}

/** It may have gone with its parent. @param {number} pid */
function endAt(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has.
  }
}

/** @param {pg.Pool} pool @returns {Promise<void>} */
async function whenReady(pool) {
  for (const endMs = Date.now() + START_MS; Date.now() < endMs; ) {
    const isThere = await pool.query('SELECT 1').then(
      () => true,
      () => false,
    );
    if (isThere) return pool.end();
    await sleep(20);
  }
  throw new Error('PostgreSQL did not start');
}
