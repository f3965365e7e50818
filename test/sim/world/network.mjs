/**
 * The network between simulated processes and the simulated server: sockets whose bytes take time, in order, and can
 * be held up, lost with their connection, or refused. ioredis gets them because `net.createConnection` is replaced.
 */
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import { Duplex } from 'node:stream';

/** @typedef {import('./time.mjs').Time} Time */
/** @typedef {import('./time.mjs').Process} Process */
/** @typedef {import('../../../src/testing/redis/server.mjs').Connection} Connection */
/** @typedef {ReturnType<typeof createNetwork>} Network */
/** @typedef {{ process: Process, server: Connection | undefined, socket: Socket, busyUs: { up: number, down: number }, open: boolean, reset: boolean, ambush: boolean, mute: boolean }} Link */

class Socket extends Duplex {
  /** @param {Network} network @param {Process} of */
  constructor(network, of) {
    super();
    this.connecting = true;
    this.link = network.dial(of, this);
    this.network = network;
    /** @type {(() => void) | undefined} */
    this.calledOff = undefined;
  }
  setNoDelay() {
    return this;
  }
  setKeepAlive() {
    return this;
  }
  /** Idle time counts from now; only used while connecting. @param {number} ms @param {() => void} [act] */
  setTimeout(ms, act) {
    this.calledOff?.();
    const timer = ms > 0 && act ? setTimeout(act, ms) : undefined;
    this.calledOff = () => clearTimeout(timer);
    return this;
  }
  ref() {
    return this;
  }
  unref() {
    return this;
  }
  /** @override */
  _read() {}
  /** @override @param {Buffer} chunk @param {string} _encoding @param {() => void} done */
  _write(chunk, _encoding, done) {
    this.network.up(this.link, chunk.toString('latin1'));
    done();
  }
  /** @override @param {() => void} done */
  _final(done) {
    this.network.hangUp(this.link);
    done();
  }
  /** @override @param {Error | null} error @param {(error: Error | null) => void} done */
  _destroy(error, done) {
    this.calledOff?.();
    this.network.hangUp(this.link);
    done(error);
  }
}

const FRESH = { open: true, reset: false, ambush: false, mute: false };

/** @param {string} code */
const failed = (code) => Object.assign(new Error(`connect ${code}`), { code });

/**
 * @param {object} world
 * @param {Time} world.time
 * @param {() => number} world.random
 * @param {Process} world.host of the server
 */
export function createNetwork({ time, random, host }) {
  /** @type {Set<Link>} */
  const links = new Set();
  /** Process → when its line is free again. */
  /** @type {Map<number, number>} */
  const heldUs = new Map();
  let refusing = false;
  /** @type {(wire: import('../../../src/testing/redis/server.mjs').Wire) => Connection} */
  let accept = () => {
    throw new Error('there is no server');
  };

  /** Mostly a fifth of a millisecond, seldom much more. */
  const tripUs = () => 60 + random() ** 8 * 30_000 + random() * 200;

  /** Bytes arrive in order, and not while the line is held. @param {Link} link @param {'up' | 'down'} way @param {() => void} act */
  function travel(link, way, act) {
    const freeUs = Math.max(time.nowUs(), heldUs.get(link.process.pid) ?? 0);
    const atUs = Math.max(freeUs + tripUs(), link.busyUs[way] + 1);
    link.busyUs[way] = atUs;
    const event = time.schedule(way === 'up' ? host : link.process, atUs - time.nowUs(), () => {
      const untilUs = heldUs.get(link.process.pid) ?? 0;
      if (untilUs > time.nowUs()) again(untilUs);
      else act();
    });
    /** Held up under way: what was on the line arrives when it is free, in its order. @param {number} untilUs */
    function again(untilUs) {
      const waitUs = untilUs - time.nowUs();
      time.schedule(event.of, waitUs, act, event.order);
    }
  }

  /** @param {Link} link */
  function welcome(link) {
    link.socket.connecting = false;
    link.server = accept({ send: (bytes) => down(link, bytes), cut: () => cut(link) });
    link.socket.emit('connect');
  }

  /** @param {Link} link @param {string} bytes */
  function down(link, bytes) {
    if (!link.open || link.mute) return;
    if (link.ambush) {
      cut(link);
      return;
    }
    travel(link, 'down', () => {
      if (link.open && !link.mute && !link.socket.destroyed) link.socket.push(Buffer.from(bytes, 'latin1'));
    });
  }

  /** Both ends see a reset; what was on the line is lost. @param {Link} link */
  function cut(link) {
    if (!link.open) return;
    link.open = false;
    link.reset = true;
    links.delete(link);
    const { server } = link;
    if (server) time.schedule(host, tripUs(), () => server.close());
    time.schedule(link.process, tripUs(), () => link.socket.destroy(failed('ECONNRESET')));
  }

  return {
    links,
    /** @param {typeof accept} by */
    serve(by) {
      accept = by;
    },
    /** @param {boolean} is */
    refuse(is) {
      refusing = is;
    },
    /** No byte of this process moves for a while; none is lost. @param {Process} process @param {number} ms */
    hold(process, ms) {
      heldUs.set(process.pid, Math.max(heldUs.get(process.pid) ?? 0, time.nowUs() + ms * 1000));
    },
    cut,
    /** @param {Process} process */
    linksOf: (process) => [...links].filter((link) => link.process === process),
    /** @param {Process} of @param {Socket} socket @returns {Link} */
    dial(of, socket) {
      /** @type {Link} */
      const link = { process: of, server: undefined, socket, busyUs: { up: 0, down: 0 }, ...FRESH };
      links.add(link);
      travel(link, 'down', () => {
        if (socket.destroyed) return;
        if (refusing) socket.destroy(failed('ECONNREFUSED'));
        else welcome(link);
      });
      return link;
    },
    /** @param {Link} link @param {string} bytes */
    up(link, bytes) {
      if (!link.open) return;
      travel(link, 'up', () => {
        if (!link.reset) link.server?.feed(bytes);
      });
    },
    /** The client closes: the server learns it after what was sent before. @param {Link} link */
    hangUp(link) {
      if (!link.open) return;
      link.open = false;
      links.delete(link);
      travel(link, 'up', () => link.server?.close());
      time.schedule(link.process, 1, () => {
        if (!link.socket.destroyed) link.socket.destroy();
      });
    },
  };
}

/** From now on every new connection of this program is one to the simulated server. @param {Network} network @param {Time} time */
export function takeOver(network, time) {
  net.createConnection = /** @type {never} */ (() => new Socket(network, time.current()));
  syncBuiltinESMExports();
}
