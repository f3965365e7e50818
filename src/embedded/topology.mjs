/**
 * Several servers that belong together, on this machine and for as long as we live: what a cluster (`cluster.mjs`) and a
 * primary with Sentinels (`sentinels.mjs`) have in common. Their data lie in a folder for temporary files and go with them.
 *
 * With access rules, the lines that are given are the users there are. One more, with a password of its own and every
 * right, is for the servers among each other and for us; `default` is off.
 */

import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { answersPing, ask } from './ask.mjs';
import { EmbeddedRedisError } from './error.mjs';
import { spawnGuarded } from './guard.mjs';
import { onFreePort, portSource } from './port.mjs';
import { waitUntil } from './running.mjs';

const FORMED_TIMEOUT_MS = 60_000;

/** @typedef {import('./ask.mjs').Login} Login */
/** @typedef {{ readonly cert: string, readonly key: string, readonly authority: string }} Tls paths of PEM files */
/**
 * @typedef {object} Acl
 * @property {readonly string[]} lines as an ACL file has them: `user shop on >secret ~* &* +@all`
 * @property {Login} [client] the user of the address that is handed out
 */
/**
 * @typedef {object} TopologySettings
 * @property {string} binary the path of a redis-server
 * @property {number} [firstPort] the lowest port; default: any that are free
 * @property {Tls} [tls] clients, replication and the bus speak TLS, and nothing listens on a port without it
 * @property {Acl} [acl] default: everybody may do everything
 * @property {Settings} [settings] of every server that holds data; they win
 */
/**
 * @typedef {object} Control what both kinds can do
 * @property {string} dir goes with `close`
 * @property {Login | undefined} login of the user with every right, where there are access rules
 * @property {(node: Node) => Promise<void>} kill by SIGKILL; resolves when it is gone
 * @property {(node: Node) => void} pause it answers nobody, and keeps its connections and its data
 * @property {(node: Node) => void} resume
 * @property {(node: Node) => Promise<void>} restart with the same port and folder, after `kill` or instead of it
 * @property {() => Promise<void>} close ends every server and removes all data; twice is fine
 */

/** @param {TopologySettings} wanted */
export async function openTopology({ binary, firstPort, tls, acl, settings = {} }) {
  const folder = await openDataFolder();
  const nextPort = portSource(firstPort);
  const login = acl && {
    username: `topology-${randomBytes(4).toString('hex')}`,
    password: randomBytes(12).toString('hex'),
  };
  const aclfile = join(folder.dir, 'users.acl');
  if (acl && login) {
    const ours = `user ${login.username} reset on >${login.password} ~* &* +@all`;
    await writeFile(aclfile, `${[...acl.lines, ours, 'user default reset off'].join('\n')}\n`, { mode: 0o600 });
  }
  const members = login ? { aclfile, masteruser: login.username, masterauth: login.password } : {};
  /** @type {Promise<Node>[]} */
  const started = [];

  /** @type {Control} */
  const control = {
    dir: folder.dir,
    login,
    kill: (node) => node.kill(),
    pause: (node) => node.signal('SIGSTOP'),
    resume: (node) => node.signal('SIGCONT'),
    restart: (node) => node.restart(),
    async close() {
      // One that is still starting would come up after we are through.
      const ends = await Promise.allSettled(started);
      await Promise.all(ends.flatMap((one) => (one.status === 'fulfilled' ? [one.value.kill()] : [])));
      await folder.close();
    },
  };
  const keep = (/** @type {Promise<Node>} */ starting) => {
    started.push(starting);
    return starting;
  };
  const place = { binary, dir: folder.dir, nextPort };
  return {
    control,
    /** @param {string} name @param {Settings} own */
    server(name, own) {
      const of = (/** @type {number} */ port) => ({ ...dataSettings(port, tls), ...members, ...own, ...settings });
      return keep(startNode({ ...place, name, settings: of, ...(login ? { login } : {}) }));
    },
    /** @param {string} name @param {readonly string[]} lines @param {Login} [sentinelLogin] */
    sentinel(name, lines, sentinelLogin) {
      const of = (/** @type {number} */ port) => listenSettings(port, tls);
      const who = sentinelLogin ? { login: sentinelLogin } : {};
      return keep(startNode({ ...place, name, settings: of, lines, args: ['--sentinel'], ...who }));
    },
    /** `host:port,host:port`, with the user before it. @param {readonly Node[]} of */
    hosts: (of) => `${credentialsOf(acl?.client)}${of.map(({ host, port }) => `${host}:${port}`).join(',')}`,
  };
}

/**
 * Closes everything when a step of the start fails.
 *
 * @template T
 * @param {Control} control
 * @param {() => Promise<T>} start
 */
export async function orClose(control, start) {
  try {
    return await start();
  } catch (error) {
    await control.close();
    throw error;
  }
}

/**
 * @param {string} what it should become true
 * @param {() => Promise<boolean>} holds
 */
export async function until(what, holds) {
  // A server that is busy, or not yet told, answers a moment later.
  if (await waitUntil(() => holds().catch(() => false), FORMED_TIMEOUT_MS)) return;
  throw new EmbeddedRedisError('unavailable', `${what}: not within ${FORMED_TIMEOUT_MS / 1000} s`);
}

/**
 * @template T
 * @param {readonly T[]} items
 * @param {(item: T) => Promise<boolean>} holds
 */
export async function all(items, holds) {
  return (await Promise.all(items.map(holds))).every(Boolean);
}

/** `master-1`, `master-2`, … @param {string} kind @param {number} count */
export const named = (kind, count) => Array.from({ length: count }, (_, at) => `${kind}-${at + 1}`);

/** Of a replica. @param {Node} node */
export async function isInStep(node) {
  return (await node.info('master_link_status')) === 'up';
}

/**
 * @param {number} port
 * @param {Tls} [tls]
 * @returns {Settings}
 */
function listenSettings(port, tls) {
  const common = { bind: '127.0.0.1', unixsocketperm: '700', daemonize: 'no' };
  if (!tls) return { ...common, port: String(port) };
  return {
    ...common,
    port: '0',
    'tls-port': String(port),
    'tls-replication': 'yes',
    'tls-cert-file': tls.cert,
    'tls-key-file': tls.key,
    'tls-ca-cert-file': tls.authority,
    'tls-auth-clients': 'no',
  };
}

/**
 * @param {number} port
 * @param {Tls} [tls]
 * @returns {Settings}
 */
function dataSettings(port, tls) {
  return {
    ...listenSettings(port, tls),
    save: '',
    appendonly: 'no',
    'maxmemory-policy': 'noeviction',
    'enable-debug-command': 'local',
    // A replica is in step at once, and a server that must go does not wait for its replicas.
    'repl-diskless-sync-delay': '0',
    'repl-ping-replica-period': '1',
    'shutdown-timeout': '0',
  };
}

/** @param {Login} [login] */
function credentialsOf(login) {
  return login ? `${encodeURIComponent(login.username)}:${encodeURIComponent(login.password)}@` : '';
}

/*
 * The data folder of servers that live only as long as this process. `close` removes it. If the process is killed, a shell
 * removes it: the shell reads from a pipe that only this process holds open, as the watcher of a server does
 * (`guard.mjs`). The shell outlives the servers by a moment, so it removes what they write at their end too.
 */

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
 * @typedef {object} DataFolder
 * @property {string} dir short, because the path of a socket in it may have 103 bytes
 * @property {() => Promise<void>} close twice is fine
 */

/** @returns {Promise<DataFolder>} */
async function openDataFolder() {
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

/*
 * One server of a topology: a member of a cluster, a primary, a replica or a Sentinel. It listens on a port of 127.0.0.1,
 * with or without TLS, and on a socket in its folder, where this process sends its commands without TLS. The server can be
 * killed, frozen and started again with the same port and folder, and it cannot outlive this process.
 */

/** Far above need; a server is up in 20 ms on an idle machine. */
const READY_TIMEOUT_MS = 60_000;
const OUTPUT_CHARS_MAX = 4000;

/** @typedef {Readonly<Record<string, string>>} Settings names and values as in redis.conf */
/**
 * @typedef {object} Node
 * @property {string} name `master-1`, `replica-2`, `sentinel-3`: what it was at the start
 * @property {string} host
 * @property {number} port with TLS where that was asked for
 * @property {string} socketPath without TLS
 * @property {string} dir
 * @property {number} pid of the running one; another one after `restart`
 * @property {boolean} isGone
 * @property {(...command: string[]) => Promise<import('./ask.mjs').Reply>} ask rejects with the server's error text, or
 *   when it does not answer within a second
 * @property {(name: string, section?: string) => Promise<string>} info a field of INFO; '' when there is none
 * @property {() => Promise<'master' | 'replica' | 'sentinel'>} role what it says that it is
 * @property {(signal: NodeJS.Signals) => void} signal
 * @property {() => Promise<void>} kill by SIGKILL; resolves when it is gone, and twice is fine
 * @property {() => Promise<void>} restart ends it if it runs, and resolves when it answers again
 */
/**
 * @typedef {object} NodePlan
 * @property {string} binary
 * @property {string} dir for all; the node makes a folder of its name in it
 * @property {string} name
 * @property {() => Promise<number>} nextPort
 * @property {(port: number) => Settings} settings
 * @property {Login} [login] whom it lets in
 * @property {readonly string[]} [lines] more lines of its configuration file
 * @property {readonly string[]} [args]
 */

/**
 * @param {NodePlan} plan
 * @returns {Promise<Node>} when it answers
 */
export async function startNode(plan) {
  const { name, login } = plan;
  const dir = join(plan.dir, name);
  const socketPath = join(plan.dir, `${name}.sock`);
  const address = { socketPath, ...(login ? { login } : {}) };
  const config = join(dir, 'server.conf');
  await mkdir(dir);
  const launch = () => launchServer({ path: plan.binary, args: [config, ...(plan.args ?? [])] }, address);

  const { port, started: first } = await onFreePort(plan.nextPort, async (candidate) => {
    const places = { dir: JSON.stringify(dir), unixsocket: JSON.stringify(socketPath) };
    await writeFile(config, textOf({ ...places, ...plan.settings(candidate) }, plan.lines));
    return launch();
  });
  let child = first;
  const isGone = () => child.exitCode !== null || child.signalCode !== null;
  const kill = async () => {
    if (isGone()) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  };
  const info = async (/** @type {string} */ field, section = 'everything') => {
    const text = String(await ask(address, ['INFO', section]));
    return new RegExp(`^${field}:(.*?)\\r?$`, 'm').exec(text)?.[1] ?? '';
  };
  return {
    name,
    host: '127.0.0.1',
    port,
    socketPath,
    dir,
    kill,
    info,
    get pid() {
      return child.pid ?? 0;
    },
    get isGone() {
      return isGone();
    },
    ask: (...command) => ask(address, command),
    async role() {
      const reply = await ask(address, ['ROLE']);
      const said = Array.isArray(reply) ? reply[0] : undefined;
      return said === 'slave' ? 'replica' : said === 'sentinel' ? 'sentinel' : 'master';
    },
    signal(signal) {
      if (!isGone()) child.kill(signal);
    },
    async restart() {
      await kill();
      child = await launch();
    },
  };
}

/**
 * @param {import('./guard.mjs').GuardedCommand} command
 * @param {import('./ask.mjs').Address} address
 */
async function launchServer(command, address) {
  const child = spawnGuarded(command);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk) => {
      output = (output + chunk).slice(-OUTPUT_CHARS_MAX);
    });
  }
  const closed = once(child, 'close').catch(() => {});
  let ended = false;
  child.once('exit', () => {
    ended = true;
  });
  child.once('error', () => {
    ended = true;
  });
  await waitUntil(async () => ended || (await answersPing(address)), READY_TIMEOUT_MS);
  if (!ended && (await answersPing(address))) return child;
  child.kill('SIGKILL');
  // What it said last may still be on its way.
  await closed;
  throw new EmbeddedRedisError('unavailable', `${command.path} did not start:\n${output.trim()}`);
}

/**
 * @param {Settings} settings
 * @param {readonly string[]} [lines]
 */
function textOf(settings, lines = []) {
  const own = Object.entries(settings).map(([name, value]) => `${name} ${value === '' ? '""' : value}`);
  return `${[...own, ...lines].join('\n')}\n`;
}
