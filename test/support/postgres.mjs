/** A server of PostgreSQL, where this machine has one installed: on a socket in a folder of its own, gone with its test file. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
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

export async function startPostgres() {
  const dir = mkdtempSync(join(tmpdir(), 'due-pg-'));
  // The user of the server makes its folder in it.
  chmodSync(dir, 0o777);
  const data = join(dir, 'data');
  const init = called('initdb', ['-D', data, '-A', 'trust', '-U', 'postgres', '-N', '--no-instructions']);
  execFileSync(init.path, init.args, { stdio: 'ignore' });
  const settings = ['listen_addresses=', 'fsync=off', 'shared_buffers=16MB'].flatMap((one) => ['-c', one]);
  const child = spawnGuarded(called('postgres', ['-D', data, '-k', dir, ...settings]));
  child.stdout.resume();
  child.stderr.resume();
  const gone = once(child, 'exit');
  const pool = () => new pg.Pool({ host: dir, user: 'postgres', database: 'postgres' });
  await whenReady(pool());
  return {
    pool,
    /** Where its socket is. */
    dir,
    pid: child.pid ?? 0,
    async stop() {
      // It waits for its connections, which are about to end; what a test that failed has left is cut off.
      child.kill('SIGTERM');
      await Promise.race([gone, sleep(STOP_MS)]);
      child.kill('SIGQUIT');
      await gone;
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
