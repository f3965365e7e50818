/**
 * Redis servers that are reached by TLS, or should be: one for each thing that can be wrong, behind a wire on which we
 * listen to what clients send. Whatever stands in a URL must never be heard there, and no command must reach a server.
 */
import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { ask } from '../../../src/embedded/ask.mjs';
import { startServer } from '../stage/server.mjs';
import { freePort, passwordOf, urlOf } from './users.mjs';

/** @typedef {import('./certificates.mjs').Certificate} Certificate */
/**
 * @typedef {object} Wrong
 * @property {string} name
 * @property {Certificate} certificate
 * @property {string} [authority] that the clients trust
 * @property {'rediss' | 'redis'} [scheme] of their URL
 * @property {boolean} [plain] they come to the port without TLS
 * @property {RegExp} saw what they must say is wrong
 * @property {RegExp} remedy and what to do
 */

const TIMEOUT_MS = 120_000;
/** Exit status of whoever cannot reach Redis. */
const UNREACHABLE = 69;
const PASSWORD = passwordOf('duestream');

/**
 * A server names the first setting that it does not know, and ends.
 *
 * @param {string} _folder
 * @param {string} binary of redis-server
 */
export function whyNoTls(_folder, binary) {
  const { stdout, stderr } = spawnSync(binary, ['--tls-port', '0', '--no-such-setting', '1'], { encoding: 'utf8' });
  return `${stdout}${stderr}`.includes("'tls-port") ? 'this redis-server was built without TLS' : undefined;
}

/** Settings of a server. @param {Certificate} certificate @param {string} authority @param {number} port */
export const tlsSettings = ({ cert, key }, authority, port) => ({
  'tls-port': String(port),
  'tls-cert-file': cert,
  'tls-key-file': key,
  'tls-ca-cert-file': authority,
  'tls-auth-clients': 'no',
  bind: '127.0.0.1',
});

/**
 * Lets `start`, `worker` and `doctor` try one, and tells what was not as it must be.
 *
 * @param {Wrong} wrong
 * @param {object} by
 * @param {string} by.folder
 * @param {string} by.binary
 * @param {string} by.main
 * @param {string} by.handlers
 * @param {string} by.authority of the server
 * @returns {Promise<{ complaints: readonly string[], commands: number }>}
 */
export async function tryWrong(wrong, { folder, binary, main, handlers, authority }) {
  const dir = join(folder, wrong.name);
  mkdirSync(dir);
  const [tlsPort, plainPort] = [await freePort(), await freePort()];
  const logfile = join(dir, 'redis.log');
  const settings = { ...tlsSettings(wrong.certificate, authority, tlsPort), port: String(plainPort), logfile };
  const server = await startServer({ binary, folder: dir, mode: 'none', settings });
  const wire = await listenIn(wrong.plain ? plainPort : tlsPort);
  const before = await commandsOf(server.socketPath);
  try {
    const url = urlOf('duestream', wire.port, wrong.scheme ?? 'rediss');
    const env = wrong.authority === undefined ? {} : { NODE_EXTRA_CA_CERTS: wrong.authority };
    const verbs = [['start', '--roles', 'mover'], ['worker', handlers, '--queue', 'chaos'], ['doctor']];
    const said = await Promise.all(verbs.map((args) => launch([main, ...args], { url, env })));
    const texts = said.map(({ text }) => text);
    const complaints = said.flatMap(({ code, text }, at) => {
      const fine = code === UNREACHABLE && wrong.saw.test(text) && wrong.remedy.test(text);
      return fine ? [] : [`${wrong.name}: ${verbs[at]?.[0]} ended with ${code}: ${text.slice(0, 400)}`];
    });
    // Who writes redis:// sends the password as it is; nobody else may ever.
    const heard = [...(wrong.scheme === 'redis' ? [] : [wire.heard()]), ...texts, readFileSync(logfile, 'latin1')];
    const told = heard.some((text) => text.includes(PASSWORD)) ? [`${wrong.name}: the password was seen`] : [];
    // The question before and the one now are ours.
    const commands = (await commandsOf(server.socketPath)) - before - 1;
    return {
      complaints: [...complaints, ...told, ...(wire.heard() === '' ? [`${wrong.name}: nobody came`] : [])],
      commands,
    };
  } finally {
    wire.close();
    await server.stop();
  }
}

/** @param {string} socketPath */
async function commandsOf(socketPath) {
  const info = String(await ask({ socketPath }, ['INFO', 'stats']));
  return Number(/^total_commands_processed:(\d+)/m.exec(info)?.[1]);
}

/**
 * A relay that keeps what clients send.
 *
 * @param {number} to
 * @returns {Promise<{ port: number, heard: () => string, close: () => void }>}
 */
async function listenIn(to) {
  const port = await freePort();
  let heard = '';
  /** @type {Set<import('node:net').Socket>} */
  const sockets = new Set();
  const relay = createServer((client) => {
    const upstream = connect(to, '127.0.0.1');
    client.on('data', (chunk) => {
      heard += chunk.toString('latin1');
    });
    client.pipe(upstream).pipe(client);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        client.destroy();
        upstream.destroy();
      });
    }
  });
  await new Promise((resolve) => relay.listen(port, '127.0.0.1', () => resolve(undefined)));
  return {
    port,
    heard: () => heard,
    close() {
      relay.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/**
 * @param {readonly string[]} args
 * @param {{ url: string, env: Readonly<Record<string, string>> }} of
 * @returns {Promise<{ code: number, text: string }>}
 */
function launch(args, { url, env }) {
  const all = { PATH: process.env.PATH ?? '', NO_COLOR: '1', DUESTREAM_REDIS_URL: url, ...env };
  return new Promise((resolve) => {
    const options = { env: all, timeout: TIMEOUT_MS, killSignal: /** @type {const} */ ('SIGKILL') };
    execFile(process.execPath, [...args], options, (error, out, err) => {
      resolve({ code: error ? Number(error.code) || 1 : 0, text: `${out}${err}` });
    });
  });
}
