/**
 * One server of several that belong together: a member of a cluster, a primary, a replica or a Sentinel. It listens on a
 * port of 127.0.0.1, with TLS if that is wanted, and on a socket in its folder, at which we ask it things without TLS. It
 * can be killed, frozen and started again with the same port and folder, and it cannot outlive us.
 */
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { answersPing, ask } from './ask.mjs';
import { EmbeddedRedisError } from './error.mjs';
import { spawnGuarded } from './guard.mjs';
import { onFreePort } from './port.mjs';
import { waitUntil } from './running.mjs';

/** Far above need; a server is up in 20 ms on an idle machine. */
const READY_TIMEOUT_MS = 60_000;
const OUTPUT_CHARS_MAX = 4000;

/** @typedef {import('./ask.mjs').Login} Login */
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
