/**
 * Several servers that belong together, on this machine and for as long as we live: what a cluster (`cluster.mjs`) and a
 * primary with Sentinels (`sentinels.mjs`) have in common. Their data lie in a folder for temporary files and go with them.
 *
 * With access rules, the lines that are given are the users there are. One more, with a password of its own and every
 * right, is for the servers among each other and for us; `default` is off.
 */
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { EmbeddedRedisError } from './error.mjs';
import { openGround } from './ground.mjs';
import { startNode } from './node.mjs';
import { portSource } from './port.mjs';
import { waitUntil } from './running.mjs';

const FORMED_TIMEOUT_MS = 60_000;

/** @typedef {import('./node.mjs').Node} Node */
/** @typedef {import('./node.mjs').Settings} Settings */
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
  const ground = await openGround();
  const nextPort = portSource(firstPort);
  const login = acl && {
    username: `topology-${randomBytes(4).toString('hex')}`,
    password: randomBytes(12).toString('hex'),
  };
  const aclfile = join(ground.dir, 'users.acl');
  if (acl && login) {
    const ours = `user ${login.username} reset on >${login.password} ~* &* +@all`;
    await writeFile(aclfile, `${[...acl.lines, ours, 'user default reset off'].join('\n')}\n`, { mode: 0o600 });
  }
  const members = login ? { aclfile, masteruser: login.username, masterauth: login.password } : {};
  /** @type {Promise<Node>[]} */
  const started = [];

  /** @type {Control} */
  const control = {
    dir: ground.dir,
    login,
    kill: (node) => node.kill(),
    pause: (node) => node.signal('SIGSTOP'),
    resume: (node) => node.signal('SIGCONT'),
    restart: (node) => node.restart(),
    async close() {
      // One that is still starting would come up after we are through.
      const ends = await Promise.allSettled(started);
      await Promise.all(ends.flatMap((one) => (one.status === 'fulfilled' ? [one.value.kill()] : [])));
      await ground.close();
    },
  };
  const keep = (/** @type {Promise<Node>} */ starting) => {
    started.push(starting);
    return starting;
  };
  const place = { binary, dir: ground.dir, nextPort };
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
