/**
 * A network of its own for one process, which can be cut from Redis as a firewall would cut it: packets vanish, nothing
 * is closed, and what was under way arrives when the cut is repaired. It is a network namespace with nothing but its
 * loopback, on which a relay leads to the socket of Redis; no packet ever leaves it. It ends with its relay.
 */
import { execFile } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { fetchDebianPackages } from '../../../scripts/debian.mjs';
import { findOnPath } from '../../../src/embedded/binary.mjs';
import { spawnGuarded } from '../../../src/embedded/guard.mjs';

const run = promisify(execFile);
const CACHE = fileURLToPath(new URL('../../../.cache/network', import.meta.url));
const PORT = '6379';
const START_TIMEOUT_MS = 60_000;

const RELAY = `
const { connect, createServer } = require('node:net');
createServer((client) => {
  const upstream = connect(process.argv[1]);
  client.pipe(upstream).pipe(client);
  for (const socket of [client, upstream]) socket.on('error', () => {}).on('close', () => { client.destroy(); upstream.destroy(); });
}).listen(${PORT}, '127.0.0.1', () => console.log('listening'));
`;

/** @param {string} socketPath of Redis */
export async function openIsland(socketPath) {
  const { ip, iptables, env } = await tools();
  const isRoot = process.getuid?.() === 0;
  const script = `"$0" link set lo up && exec "$@"`;
  const relay = spawnGuarded({
    path: 'unshare',
    args: [...(isRoot ? [] : ['-r']), '-n', '/bin/sh', '-c', script, ip, process.execPath, '-e', RELAY, socketPath],
  });
  await listening(relay);
  const within = ['nsenter', ...(isRoot ? [] : ['-U', '--preserve-credentials']), '-t', String(relay.pid), '-n'];
  /** @param {readonly string[]} rule */
  const firewall = async (rule) => {
    const [command = '', ...args] = [...within, iptables, ...rule];
    await run(command, args, { env });
  };
  return {
    url: `redis://127.0.0.1:${PORT}`,
    /** Runs a command in there. */
    within,
    cut: () => firewall(['-A', 'INPUT', '-i', 'lo', '-p', 'tcp', '-j', 'DROP']),
    repair: () => firewall(['-F', 'INPUT']),
    close() {
      if (relay.pid !== undefined && relay.exitCode === null) process.kill(relay.pid, 'SIGKILL');
    },
  };
}

/** @param {ReturnType<typeof spawnGuarded>} relay @returns {Promise<void>} */
function listening(relay) {
  let said = '';
  return new Promise((resolve, reject) => {
    const fail = () => reject(new Error(`there is no network namespace to be had here: ${said.trim()}`));
    const timer = setTimeout(fail, START_TIMEOUT_MS);
    relay.once('exit', fail);
    for (const stream of [relay.stdout, relay.stderr]) {
      stream.on('data', (/** @type {Buffer} */ chunk) => {
        said += chunk;
        if (!said.includes('listening')) return;
        clearTimeout(timer);
        relay.off('exit', fail);
        resolve();
      });
    }
  });
}

/** The system's own tools, or such as are unpacked into the cache; nothing is installed. */
async function tools() {
  const search = `${process.env.PATH ?? ''}:/usr/sbin:/sbin`;
  const [ip, iptables] = (await Promise.all(['ip', 'iptables'].map((name) => findOnPath(name, search)))).map(
    (found) => found[0],
  );
  if (ip && iptables) return { ip, iptables, env: process.env };
  const { dir } = await fetchDebianPackages({ names: ['iproute2', 'iptables'], dir: CACHE });
  const lib = join(dir, 'usr', 'lib');
  const libraries = join(lib, readdirSync(lib).find((name) => name.includes('-linux-')) ?? '');
  const unpacked = ['usr/sbin/ip', 'sbin/ip', 'bin/ip'].map((path) => join(dir, path)).find(existsSync);
  return {
    ip: ip ?? unpacked ?? 'ip',
    iptables: join(dir, 'usr', 'sbin', 'iptables-nft'),
    env: { ...process.env, LD_LIBRARY_PATH: libraries, XTABLES_LIBDIR: join(libraries, 'xtables') },
  };
}
