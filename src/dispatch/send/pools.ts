/**
 * Sockets that are used again, for a few seconds: a handshake of TLS costs more than a request. Each pool is of one scheme, name,
 * port, address and certificate, so no request leaves on a socket that was opened for another host, and a name that leads
 * elsewhere since has another pool. A server closes an idle socket when it likes, and a request that crosses that closing is lost
 * without an answer: so a socket is kept for less time than servers keep theirs, and less than what the server says.
 */
import { Agent } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../kernel/clock.ts';
import { type Dialled, type DialParts, dial } from './dial.ts';

/** Most servers keep an idle socket for five seconds or more. */
const IDLE_MS = 4000;
const AGE_MAX_MS = 300_000;
const IDLE_SOCKETS_MAX = 4;
/** With so many pools, those without a socket are dropped. */
const POOLS_MAX = 1000;

export interface Pools {
  readonly agentFor: (to: Dialled) => Agent;
  readonly close: () => void;
}

export function createPools(parts: DialParts & { readonly clock: Pick<Clock, 'timer' | 'monotonicMs'> }): Pools {
  const agents = new Map<string, Agent>();
  return {
    agentFor(to) {
      const key = keyOf(to);
      const known = agents.get(key);
      if (known) return known;
      if (agents.size >= POOLS_MAX) dropEmpty(agents);
      const agent = agentOf(to, parts);
      agents.set(key, agent);
      return agent;
    },
    close() {
      for (const agent of agents.values()) agent.destroy();
      agents.clear();
    },
  };
}

const keyOf = ({ url, address, certificate }: Dialled): string =>
  JSON.stringify([url.isTls, url.host, url.port, address, certificate?.cert ?? '']);

function dropEmpty(agents: Map<string, Agent>): void {
  for (const [key, { sockets, freeSockets, requests }] of agents) {
    const isEmpty = [sockets, freeSockets, requests].every((all) => Object.keys(all).length === 0);
    if (isEmpty) agents.delete(key);
  }
}

function agentOf(to: Dialled, parts: DialParts & { readonly clock: Pick<Clock, 'monotonicMs'> }): Agent {
  const { clock } = parts;
  const born = new WeakMap<Duplex, number>();
  const agent = new Agent({ keepAlive: true, maxFreeSockets: IDLE_SOCKETS_MAX, timeout: IDLE_MS });
  const keep = agent.keepSocketAlive.bind(agent);
  return Object.assign(agent, {
    createConnection(_options: unknown, done: (error: Error | null, socket?: Socket) => void) {
      dial(to, parts).then(
        (socket) => {
          born.set(socket, clock.monotonicMs());
          done(null, socket);
        },
        (error: Error) => done(error),
      );
    },
    // Node keeps it for less than the server says, and answers whether it keeps it at all.
    keepSocketAlive(socket: Duplex): boolean {
      const ageMs = clock.monotonicMs() - (born.get(socket) ?? Number.NEGATIVE_INFINITY);
      const kept: unknown = keep(socket);
      return ageMs < AGE_MAX_MS && kept !== false;
    },
  });
}
