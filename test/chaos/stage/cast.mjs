/**
 * The processes of a run: real daemons, workers and producers. A worker or daemon that ends without being asked to is
 * started again, as a supervisor would, and every beginning, end and freeze is written down. A process is ended by the
 * pid we were given and by nothing else.
 */
import { createWriteStream, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { spawnGuarded } from '../../../src/embedded/guard.mjs';
import { SLOTS } from './workload.mjs';

/** @typedef {'daemon' | 'worker' | 'producer' | 'fleet'} Role a fleet is one process with many workers */
/**
 * @typedef {object} Actor
 * @property {string} name
 * @property {Role} role
 * @property {number} pid
 * @property {string} log
 * @property {Promise<void>} started
 * @property {Promise<{ code: number | null, signal: NodeJS.Signals | null }>} exited
 * @property {() => boolean} isGone
 * @property {() => boolean} isUp it has said that it started
 */
/** @typedef {ReturnType<typeof createCast>} Cast */

/**
 * @typedef {object} Special one actor that is not like the others
 * @property {string} [product] another folder whose `dist` and `lua` it runs
 * @property {Readonly<Record<string, string>>} [env]
 * @property {string} [url] its way to Redis
 * @property {readonly string[]} [within] the command that runs it somewhere else, as in a network of its own
 * @property {string} [program] another one than Node.js
 */

const HANDLERS = fileURLToPath(new URL('./handlers.mjs', import.meta.url));
const FLEET = fileURLToPath(new URL('./fleet.mjs', import.meta.url));
const PRODUCER = fileURLToPath(new URL('./producer.mjs', import.meta.url));
const RESTARTS_MAX = 300;

/** Shortened, so that what takes a quarter of a minute in earnest takes seconds here. */
const SHORT_TIMES = {
  DUESTREAM_MOVER__LEASE: '1500',
  DUESTREAM_WORKER__CONCURRENCY: String(SLOTS),
  DUESTREAM_WORKER__JOB_LEASE: '3000',
  DUESTREAM_WORKER__BEAT_TTL: '1500',
  DUESTREAM_WORKER__GRACE: '500',
};

/**
 * @param {object} settings
 * @param {string} settings.product the folder whose `dist` and `lua` run
 * @param {string} settings.folder of the run
 * @param {string} settings.url of Redis
 * @param {ReturnType<typeof import('./history.mjs').createRecorder>} settings.note
 * @param {Readonly<Record<string, string>>} [settings.env]
 * @param {import('../faults/clocks.mjs').Clocks | undefined} [settings.clocks]
 * @param {Readonly<Partial<Record<Role, string>>>} [settings.urls] for the roles that reach it in another way
 * @param {import('./remote.mjs').Remote | undefined} [settings.remote] where workers reach daemons, and not Redis
 */
export function createCast({ product, folder, url, note, env = {}, clocks, urls = {}, remote }) {
  const go = join(folder, 'go');
  /** @type {Actor[]} */
  const actors = [];
  /** @type {Set<number>} */
  const dismissed = new Set();
  let born = 0;
  let closing = false;
  mkdirSync(join(folder, 'history'), { recursive: true });

  /**
   * @param {Role} role
   * @param {readonly string[]} args
   * @param {Special} [special]
   * @returns {Actor}
   */
  function launch(role, args, special = {}) {
    born += 1;
    const name = `${role}-${born}`;
    const effects = join(folder, 'effects.jsonl');
    const settings = { PATH: process.env.PATH ?? '', HOME: folder, ...SHORT_TIMES, ...env, ...special.env };
    const clock = clocks?.envFor(role, name);
    const files = { CHAOS_EFFECTS: effects, CHAOS_ACTOR: name, CHAOS_GO: go };
    const all = { ...settings, ...clock, DUESTREAM_REDIS_URL: special.url ?? urls[role] ?? url, ...files };
    const assigned = Object.entries(all).map(([key, value]) => `${key}=${value}`);
    const history = `CHAOS_HISTORY=${join(folder, 'history', `${name}.jsonl`)}`;
    const command = [
      ...(special.within ?? []),
      'env',
      '-i',
      ...assigned,
      history,
      special.program ?? process.execPath,
      ...args,
    ];
    const child = spawnGuarded({ path: '/bin/sh', args: ['-c', 'cd "$0" && exec "$@"', folder, ...command] });
    const { pid } = child;
    if (pid === undefined) throw new Error(`${name} never started`);
    const log = join(folder, `${name}.log`);
    const file = createWriteStream(log);
    child.stdout.pipe(file, { end: false });
    child.stderr.pipe(file, { end: false });
    let gone = false;
    let up = false;
    /** @type {Actor['exited']} */
    const exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        gone = true;
        note('exit', { actor: name, child: pid, code, signal });
        resolve({ code, signal });
        if ((role === 'daemon' || role === 'worker') && !closing && !dismissed.has(pid) && born < RESTARTS_MAX)
          launch(role, args, special);
      });
    });
    /** @type {Promise<void>} */
    const started = new Promise((resolve, reject) => {
      const look = (/** @type {Buffer} */ chunk) => {
        if (!chunk.includes('"msg":"started"')) return;
        child.stdout.off('data', look);
        up = true;
        resolve();
      };
      child.stdout.on('data', look);
      child.once('exit', () => reject(new Error(`${name} ended before it had started: see ${log}`)));
    });
    started.catch(() => {});
    note('spawn', { actor: name, child: pid });
    const actor = { name, role, pid, log, started, exited, isGone: () => gone, isUp: () => up };
    actors.push(actor);
    return actor;
  }

  const mainOf = (/** @type {Special | undefined} */ special) => join(special?.product ?? product, 'dist', 'main.js');
  const living = (/** @type {Role} */ role) => actors.filter((actor) => actor.role === role && !actor.isGone());

  /**
   * @param {Actor} actor
   * @param {NodeJS.Signals} signal
   */
  function send({ name, pid, isGone }, signal) {
    if (isGone()) return;
    if (signal === 'SIGSTOP' || signal === 'SIGCONT') note(signal === 'SIGSTOP' ? 'pause' : 'resume', { child: pid });
    else note('signal', { actor: name, child: pid, signal });
    process.kill(pid, signal);
  }

  return {
    product,
    actors,
    folder,
    url,
    main: mainOf(undefined),
    lua: join(product, 'lua'),
    living,
    /** Nobody is still on the way up: who is started again after a crash takes seconds on a busy machine. */
    isUp: () => [...living('daemon'), ...living('worker')].every((actor) => actor.isUp()),
    send,
    /** @param {Special} [special] */
    daemon(special) {
      if (!remote) return launch('daemon', [mainOf(special), 'start', '--roles', 'mover'], special);
      const port = { DUESTREAM_HTTP__PORT: String(remote.nextPort()) };
      return launch('daemon', [mainOf(special), ...remote.daemonArgs], { env: { ...remote.daemonEnv, ...port } });
    },
    /** @param {Special} [special] */
    worker(special) {
      if (remote) {
        const { path, args, env: own } = remote.nextWorker();
        return launch('worker', args, { program: path, env: own });
      }
      const handlers = ofCopy(special?.product ?? product, HANDLERS);
      return launch('worker', [mainOf(special), 'worker', handlers, '--queue', 'chaos'], special);
    },
    /** One that runs other handlers than those of the workload. @param {string} module @param {string} queue @param {Readonly<Record<string, string>>} [env] */
    otherWorker: (module, queue, env = {}) =>
      launch('worker', [mainOf(undefined), 'worker', module, '--queue', queue], { env }),
    /** @param {readonly import('./workload.mjs').PlannedJob[]} plan */
    producer(plan) {
      const file = join(folder, `plan-${born}.json`);
      writeFileSync(file, JSON.stringify(plan));
      return launch('producer', [ofCopy(product, PRODUCER)], { env: { CHAOS_PLAN: file } });
    },
    /** @param {number} size */
    fleet: (size) => launch('fleet', [ofCopy(product, FLEET)], { env: { CHAOS_FLEET: String(size) } }),
    /** The text of a script. @param {string} verb @param {string} [of] another folder than the product's */
    textOf: (verb, of = product) => readFileSync(join(of, 'lua', `${verb}.lua`), 'utf8'),
    /** The producers may begin. */
    go: () => writeFileSync(go, ''),
    /** Asks one to end in order; nobody replaces it. @param {Actor} actor */
    dismiss(actor) {
      dismissed.add(actor.pid);
      send(actor, 'SIGTERM');
      return actor.exited;
    },
    /** Ends all. */
    async close() {
      closing = true;
      const rest = actors.filter((actor) => !actor.isGone());
      for (const actor of rest) process.kill(actor.pid, 'SIGKILL');
      await Promise.all(rest.map(({ exited }) => exited));
    },
  };
}

/**
 * A script of ours as a copy of the product has it, so that what it imports is that copy; else this one.
 *
 * @param {string} product
 * @param {string} path
 */
function ofCopy(product, path) {
  const own = join(product, 'test', 'chaos', 'stage', basename(path));
  return existsSync(own) ? own : path;
}
