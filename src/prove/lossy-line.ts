/**
 * A line to Redis that loses replies. It takes what a client sends to the server, and when the reply has come it drops the reply and
 * closes the connection: Redis has carried the call out, and the caller does not know.
 *
 *  client ──▶ loopback port ──▶ server
 *         ◀──✂── reply ◀──────
 *
 * It passes on bytes, so it stands in the way of TLS too. The certificate is checked as always but for its name, which is not that
 * of the loopback address: it must be the very certificate that the server showed to the direct connection.
 */
import { once } from 'node:events';
import { connect, createServer, isIP, type Server, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { systemClock } from '../kernel/clock.ts';
import { parseAddress } from '../redis/connection/address.ts';
import { isCluster, membersOf } from '../redis/connection/cluster/members.ts';
import type { Redis, RedisInput } from '../redis/connection/connect.ts';

/** Where a client finds the server now, and what certificates it must show. A process can be told of it. */
export interface LossyAddress {
  readonly redis: Exclude<RedisInput, string>;
  /** Empty without TLS. */
  readonly fingerprints: readonly string[];
}

type Place = { readonly path: string } | { readonly host: string; readonly port: number };

/** So many replies of a connection arrive in any case: its handshake. */
const HANDSHAKE = 6;
/** Between two losses the others may connect again. */
const GAP_MS = 100;

export class LossyLine {
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #lossesMax: number;
  #isArmed = false;
  #lastMs = Number.NEGATIVE_INFINITY;
  /** How many replies were lost so far. */
  lost = 0;

  constructor(lossesMax: number) {
    this.#lossesMax = lossesMax;
  }

  /** From now on replies are lost. */
  arm(): void {
    this.#isArmed = true;
  }

  /** Stands in the way to every server behind this connection. */
  async open(redis: Redis, address: RedisInput): Promise<LossyAddress> {
    const nodes = membersOf(redis);
    const fingerprints = [...new Set(nodes.flatMap(fingerprintOf))];
    const { options } = parseAddress(address);
    if (!isCluster(redis)) {
      const port = await this.#listen(placeOf(redis));
      return { redis: { ...onePrimary(options), ...timesOf(address), host: '127.0.0.1', port }, fingerprints };
    }
    const natMap: Record<string, { host: string; port: number }> = {};
    for (const node of nodes) {
      const { host = '', port = 0 } = node.options;
      const here = { host: '127.0.0.1', port: await this.#listen({ host, port }) };
      for (const name of namesOf({ host, port }, options.natMap)) natMap[name] = here;
    }
    const given = typeof address === 'string' ? { url: address } : address;
    return { redis: { ...given, natMap }, fingerprints };
  }

  async #listen(place: Place): Promise<number> {
    const server = createServer((client) => this.#carry(client, connect(place)));
    this.#servers.push(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const bound = server.address();
    if (typeof bound !== 'object' || bound === null) throw new Error('the line listens nowhere');
    return bound.port;
  }

  #carry(client: Socket, upstream: Socket): void {
    for (const socket of [client, upstream]) {
      this.#sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        this.#sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    let replies = 0;
    client.on('data', (request) => upstream.write(request));
    upstream.on('data', (reply) => {
      replies += 1;
      if (replies > HANDSHAKE && this.#loses()) client.destroy();
      else client.write(reply);
    });
  }

  #loses(): boolean {
    const nowMs = systemClock.monotonicMs();
    if (!this.#isArmed || this.lost >= this.#lossesMax || nowMs - this.#lastMs < GAP_MS) return false;
    this.#lastMs = nowMs;
    this.lost += 1;
    return true;
  }

  close(): void {
    for (const server of this.#servers) server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** The same address for a client of this process. */
export function withIdentity({
  redis,
  fingerprints,
}: {
  readonly redis: RedisInput;
  readonly fingerprints: readonly string[];
}): RedisInput {
  if (fingerprints.length === 0 || typeof redis === 'string') return redis;
  const checkServerIdentity = (_host: string, { fingerprint256 }: { readonly fingerprint256: string }) =>
    fingerprints.includes(fingerprint256)
      ? undefined
      : new Error('another server answers than the one that was asked before');
  return { ...redis, tls: { ...redis.tls, checkServerIdentity } };
}

/** Where one primary is: behind Sentinels, where the connection leads to. */
function placeOf({ options, stream }: Redis): Place {
  if (options.path) return { path: options.path };
  const { host = 'localhost', port = 6379, sentinels } = options;
  if (!sentinels) return { host, port };
  const { remoteAddress = host, remotePort = port } = stream as Socket;
  return { host: remoteAddress, port: remotePort };
}

type Options = ReturnType<typeof parseAddress>['options'];

/** The user, the database and TLS, without what says where. The name that the certificate is for is said to the server, as before. */
function onePrimary({ username, password, db, tls, host, family, sentinels }: Options): Options {
  const name = host !== undefined && isIP(host) === 0 && !sentinels ? { servername: host } : {};
  return {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(db === undefined ? {} : { db }),
    ...(family === undefined ? {} : { family }),
    ...(tls === undefined ? {} : { tls: { ...name, ...tls } }),
  };
}

const timesOf = (address: RedisInput) =>
  typeof address === 'string'
    ? {}
    : {
        ...(address.commandTimeout === undefined ? {} : { commandTimeout: address.commandTimeout }),
        ...(address.connectTimeout === undefined ? {} : { connectTimeout: address.connectTimeout }),
      };

/** What the nodes of a cluster call the one that is found here. */
function namesOf(
  { host, port }: { readonly host: string; readonly port: number },
  natMap: Options['natMap'],
): readonly string[] {
  const mapped = typeof natMap === 'object' && natMap !== null ? Object.entries(natMap) : [];
  const names = mapped.flatMap(([name, place]) => (place.host === host && place.port === port ? [name] : []));
  return names.length > 0 ? names : [`${host}:${port}`];
}

function fingerprintOf({ stream }: Redis): readonly string[] {
  return stream instanceof TLSSocket ? [stream.getPeerCertificate().fingerprint256] : [];
}
