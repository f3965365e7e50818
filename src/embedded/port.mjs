/** The port to listen on: the one wanted, else the next that nobody has, always on 127.0.0.1. */
import { createServer } from 'node:net';
import { EmbeddedRedisError } from './error.mjs';

const PORTS_TRIED_MAX = 100;

/** @param {number} wanted */
export async function freePort(wanted) {
  const last = Math.min(wanted + PORTS_TRIED_MAX - 1, 65_535);
  for (let port = wanted; port <= last; port += 1) {
    if (await isFree(port)) return port;
  }
  throw new EmbeddedRedisError('unavailable', `no port of 127.0.0.1 from ${wanted} to ${last} is free`);
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
