/**
 * A folder for the data of servers that live only as long as we do. It is removed when it is closed, and by a shell that
 * waits for our end when we are killed. That shell reads from a pipe that only we hold open, as the watcher of a server
 * does (`guard.mjs`), and outlives the servers by a moment: what they write while they go is removed too.
 */
import { spawn } from 'node:child_process';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const SWEEP = `
trap '' INT TERM HUP
cat >/dev/null
tries=0
while [ -e "$1" ] && [ $tries -lt 100 ]; do
  rm -rf -- "$1"
  tries=$((tries + 1))
  sleep 0.1
done
`;

/**
 * @typedef {object} Ground
 * @property {string} dir short, because the path of a socket in it may have 103 bytes
 * @property {() => Promise<void>} close twice is fine
 */

/** @returns {Promise<Ground>} */
export async function openGround() {
  const dir = await realpath(await mkdtemp(join(tmpdir(), 'due-')));
  const sweeper = spawn('/bin/sh', ['-c', SWEEP, 'sweeper', dir], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  sweeper.on('error', () => {});
  sweeper.stdin.on('error', () => {});
  sweeper.unref();
  return {
    dir,
    async close() {
      await rm(dir, { recursive: true, force: true, maxRetries: 10 });
      sweeper.stdin.destroy();
    },
  };
}
