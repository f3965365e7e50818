/**
 * A Redis of one run: on a unix socket in the run's folder, with the durability that the run asks for. It can be killed,
 * frozen and started again with the same data, and cannot outlive us.
 */
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { answersPing, ask } from '../../../src/embedded/ask.mjs';
import { spawnGuarded } from '../../../src/embedded/guard.mjs';

/** @typedef {'always' | 'everysec' | 'none' | 'replicated'} Mode of the append-only file; none and `durability: 'replicated'` */
/** @typedef {Awaited<ReturnType<typeof startServer>>} Server */

const START_TIMEOUT_MS = 60_000;

/**
 * @typedef {object} Special what a row needs of its server besides the usual
 * @property {Readonly<Record<string, string>>} [settings] of redis-server; they win
 * @property {Readonly<Record<string, string>>} [env] `LD_PRELOAD` …
 * @property {Readonly<Partial<Record<import('./cast.mjs').Role, string>>>} [urls] the way to it of some roles
 * @property {Readonly<Record<string, string>>} [actorEnv] of all others, as what they trust
 * @property {{ readonly username: string, readonly password: string }} [login] of who looks on; others have their own
 * @property {() => void} [release] what was taken for it, in the end
 */

/** @param {{ binary: string, folder: string, mode: Mode } & Special} settings */
export async function startServer({ binary, folder, mode, settings: special = {}, env = {}, login }) {
  const dir = join(folder, 'redis');
  mkdirSync(dir, { recursive: true });
  const socketPath = join(folder, 'r.sock');
  const settings = {
    port: '0',
    unixsocket: socketPath,
    unixsocketperm: '700',
    dir,
    save: '',
    daemonize: 'no',
    appendonly: mode === 'none' ? 'no' : 'yes',
    appendfsync: mode === 'none' ? 'no' : mode,
    'maxmemory-policy': 'noeviction',
    'enable-debug-command': 'local',
    ...special,
  };
  const assigned = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  let child = launch();
  await answering();

  /** @param {Readonly<Record<string, string>>} [once] settings of this start alone */
  function launch(once = {}) {
    const all = Object.entries({ ...settings, ...once });
    const args = [...assigned, binary, ...all.flatMap(([name, value]) => [`--${name}`, value])];
    const started = spawnGuarded({ path: '/usr/bin/env', args });
    started.stdout.resume();
    started.stderr.resume();
    return started;
  }

  async function answering() {
    const deadlineMs = Date.now() + START_TIMEOUT_MS;
    while (!(await answers())) {
      if (isGone() || Date.now() > deadlineMs) throw new Error('redis-server did not start');
      await sleep(5);
    }
  }

  /** A server that wants a password before anything else is up, too. */
  async function answers() {
    if (!login) return answersPing({ socketPath });
    const said = await ask({ socketPath }, ['AUTH', login.username, login.password]).catch(() => '');
    return said === 'OK';
  }

  function isGone() {
    return child.exitCode !== null || child.signalCode !== null;
  }

  return {
    socketPath,
    /** Where its files are. */
    dir,
    /** Of the running one; another after `start`. */
    pid: () => child.pid,
    url: `unix://${socketPath}`,
    /** @param {NodeJS.Signals} signal */
    signal(signal) {
      if (child.pid !== undefined && !isGone()) process.kill(child.pid, signal);
    },
    /** Resolves when it has ended, by whatever was done to it before. */
    async ended() {
      if (!isGone()) await once(child, 'exit');
    },
    async start() {
      child = launch();
      await answering();
    },
    /** Starts it and does not wait until it has loaded its data. @param {Readonly<Record<string, string>>} once */
    begin(once) {
      child = launch(once);
    },
    answering,
    isGone,
    async stop() {
      if (isGone()) return;
      const exited = once(child, 'exit');
      if (child.pid !== undefined) process.kill(child.pid, 'SIGKILL');
      await exited;
    },
  };
}
