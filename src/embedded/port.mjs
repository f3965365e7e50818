/** Ports to listen on, always of 127.0.0.1: the one wanted, else the next that nobody has, or any. */
import { createServer } from 'node:net';
import { EmbeddedRedisError } from './error.mjs';

const PORTS_TRIED_MAX = 100;

/** As many others may take a port that we saw free. */
const STARTS_MAX = 20;
/** How a server of Redis or Valkey says that its port, or its bus, is in use. */
const TAKEN = /Address already in use|Failed listening on port/i;

/** A node of a cluster talks to the others at its port plus this. */
export const BUS_OFFSET = 10_000;

/** Below 32768, where most systems begin to give ports to whoever connects, and the bus of the highest one as well. */
const ANY = { from: 12_000, to: 22_700 };

/**
 * @param {number} wanted
 * @returns {Promise<number>}
 */
export async function freePort(wanted) {
  const last = Math.min(wanted + PORTS_TRIED_MAX - 1, 65_535);
  for (let port = wanted; port <= last; port += 1) {
    if (await isFree(port)) return port;
  }
  throw new EmbeddedRedisError('unavailable', `no port of 127.0.0.1 from ${wanted} to ${last} is free`);
}

/**
 * Starts a server on a free port. Somebody may take the port between our look and its start; then another one is tried.
 *
 * @template T
 * @param {() => Promise<number>} nextPort one that is free now
 * @param {(port: number) => Promise<T>} start rejects with what the server said when it did not start
 * @returns {Promise<{ port: number, started: T }>}
 */
export async function onFreePort(nextPort, start) {
  for (let tries = 1; ; tries += 1) {
    const port = await nextPort();
    try {
      return { port, started: await start(port) };
    } catch (error) {
      if (tries === STARTS_MAX || !TAKEN.test(String(error))) throw error;
    }
  }
}

/**
 * A source of ports for servers of one topology: each call gives another one that is free now, and whose bus is free.
 * Somebody may take it before a server listens: see `onFreePort`.
 *
 * @param {number} [first] the lowest one wanted; default: any
 * @returns {() => Promise<number>}
 */
export function portSource(first) {
  /** @type {Set<number>} */
  const seen = new Set();
  let at = 0;
  return async () => {
    for (let tries = 0; tries < PORTS_TRIED_MAX; tries += 1) {
      const port = first === undefined ? anyPort() : first + at;
      at += 1;
      // Noted before it is looked at: others ask at the same time.
      if (seen.has(port) || port + BUS_OFFSET > 65_535) continue;
      seen.add(port);
      if ((await isFree(port)) && (await isFree(port + BUS_OFFSET))) return port;
    }
    const where = first === undefined ? `from ${ANY.from} to ${ANY.to}` : `from ${first} on`;
    const message = `found no port of 127.0.0.1 ${where} that is free together with the one ${BUS_OFFSET} above it`;
    throw new EmbeddedRedisError('unavailable', message);
  };
}

function anyPort() {
  return ANY.from + Math.floor(Math.random() * (ANY.to - ANY.from));
}

/**
 * @param {number} port
 * @returns {Promise<boolean>}
 */
function isFree(port) {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
  });
}
