/** What a bad line does to the replies that pass it. Whatever it does, the bytes of one connection keep their order. */

/** @typedef {import('./line.mjs').Spoiler} Spoiler */
/** @typedef {import('node:net').Socket} Socket */

/** No reply of Redis begins with one of these, so a parser that meets them knows that it has lost its place. */
const GARBAGE = Buffer.from('\x00\xff\xfe<html>502 Bad Gateway</html>\r\n', 'latin1');

/**
 * Every reply takes its time, and now and then its connection is gone instead.
 *
 * @param {{ random: () => number, leastMs: number, mostMs: number, cutPart: number }} how
 */
export function slow({ random, leastMs, mostMs, cutPart }) {
  const delayed = createDelays();
  let cuts = 0;
  let over = false;
  /** @type {Spoiler['reply']} */
  const reply = (bytes, client) => {
    const isCut = !over && random() < cutPart;
    if (isCut) cuts += 1;
    const ms = over ? 0 : leastMs + random() * (mostMs - leastMs);
    delayed(client, ms, () => (isCut ? client.destroy() : client.write(bytes)));
  };
  return {
    reply,
    cuts: () => cuts,
    /** From now on nothing is late; but nothing overtakes what still is, so the line has to keep its spoiler. */
    end() {
      over = true;
    },
  };
}

/**
 * Whoever next asks for one of these gets no reply any more, to this or to anything else; Redis carries out what it is
 * asked for.
 *
 * @param {{ marks: readonly string[] }} of
 */
export function muteReplies({ marks }) {
  /** @type {Socket | undefined} */
  let muted;
  /** @type {(request: string) => void} */
  let tell = () => {};
  /** @type {Promise<string>} */
  const caught = new Promise((resolve) => {
    tell = resolve;
  });
  return {
    /** The request. */
    caught,
    /** @type {NonNullable<Spoiler['hear']>} */
    hear(request, client) {
      if (muted || !marks.some((mark) => request.includes(mark))) return;
      muted = client;
      tell(request.toString('latin1'));
    },
    /** @type {NonNullable<Spoiler['reply']>} */
    reply(bytes, client) {
      if (client !== muted) client.write(bytes);
    },
  };
}

/** Every connection gets so many bytes per second. @param {number} bytesPerSecond @returns {Spoiler} */
export function drip(bytesPerSecond) {
  const delayed = createDelays();
  return {
    reply(bytes, client) {
      // More than a minute's worth comes after everybody has hung up.
      for (const byte of bytes.subarray(0, 60 * bytesPerSecond)) {
        delayed(client, 1000 / bytesPerSecond, () => client.write(Buffer.of(byte)), true);
      }
    },
  };
}

/**
 * Some replies come with bytes that are none, before them or in their middle; some end in their middle, with their
 * connection.
 *
 * @param {{ random: () => number, part: number }} how
 */
export function garble({ random, part }) {
  const done = { garbage: 0, torn: 0 };
  /** @type {Spoiler['reply']} */
  const reply = (bytes, client) => {
    if (client.destroyed || client.writableEnded) return;
    const what = random() / part;
    const middle = Math.floor(bytes.length / 2);
    if (what < 0.4) {
      done.garbage += 1;
      client.write(Buffer.concat([GARBAGE, bytes]));
    } else if (what < 1) {
      done.torn += 1;
      client.end(bytes.subarray(0, middle));
    } else client.write(bytes);
  };
  return { reply, done };
}

/**
 * Holds all replies of one connection back, from its next call of a script on.
 *
 * @param {{ marks: readonly string[], forMs: number }} what
 */
export function holdReplies({ marks, forMs }) {
  /** @type {{ client: Socket, request: string, atMs: number, kept: Buffer[] | undefined } | undefined} */
  let held;
  /** @type {(moment: { request: string, atMs: number }) => void} */
  let tell = () => {};
  /** @type {Promise<{ request: string, atMs: number }>} */
  const caught = new Promise((resolve) => {
    tell = resolve;
  });
  /** @type {{ request: string, atMs: number }[]} */
  const heard = [];
  return {
    caught,
    /** All that was asked since, with its time. */
    heard,
    /** @type {NonNullable<Spoiler['hear']>} */
    hear(request, client) {
      const moment = { request: request.toString('latin1'), atMs: performance.now() };
      if (held) heard.push(moment);
      else if (marks.some((mark) => request.includes(mark))) {
        held = { client, ...moment, kept: [] };
        setTimeout(release, forMs);
        tell(moment);
      }
    },
    /** @type {NonNullable<Spoiler['reply']>} */
    reply(bytes, client) {
      if (held?.client === client && held.kept) held.kept.push(bytes);
      else client.write(bytes);
    },
  };

  function release() {
    if (!held?.kept) return;
    for (const bytes of held.kept) if (!held.client.destroyed) held.client.write(bytes);
    held.kept = undefined;
  }
}

/**
 * Runs what it is given later, for one connection in the order in which it was given: timers of their own would overtake
 * each other, and replies that change places are a fault of its own, which TCP rules out.
 */
function createDelays() {
  /** @type {WeakMap<Socket, { atMs: number, act: () => void }[]>} */
  const queues = new WeakMap();

  /** @param {Socket} client @param {{ atMs: number, act: () => void }[]} queue */
  function pump(client, queue) {
    while (queue[0] && queue[0].atMs <= performance.now()) queue.shift()?.act();
    // What would drip from a closed connection for hours must not keep this process.
    if (client.destroyed || client.writableEnded) return;
    if (queue[0]) setTimeout(pump, queue[0].atMs - performance.now(), client, queue);
  }

  /** @param {Socket} client @param {number} ms @param {() => void} act @param {boolean} [apart] ms after the last one */
  return (client, ms, act, apart = false) => {
    const queue = queues.get(client) ?? [];
    queues.set(client, queue);
    const nowMs = performance.now();
    const before = queue.at(-1)?.atMs ?? nowMs;
    queue.push({ atMs: apart ? before + ms : Math.max(before, nowMs + ms), act });
    if (queue.length === 1) setTimeout(pump, ms, client, queue);
  };
}
