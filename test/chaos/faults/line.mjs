/**
 * A line between the actors and Redis that can be bad: it loses replies after Redis has carried out what was asked,
 * holds a request back until much later, goes deaf, is cut, or does whatever a spoiler does to what passes.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';

/** @typedef {Awaited<ReturnType<typeof openLine>>} Line */
/**
 * @typedef {object} Spoiler
 * @property {(request: Buffer, client: import('node:net').Socket) => void} [hear] what a client asks
 * @property {(reply: Buffer, client: import('node:net').Socket) => void} [reply] writes it to the client itself, or not
 */

/** @param {{ socketPath: string, folder: string, product: string }} to */
export async function openLine({ socketPath, folder, product }) {
  const path = join(folder, 'line.sock');
  /** @type {Set<import('node:net').Socket>} */
  const sockets = new Set();
  /** @type {readonly { name: string, marks: readonly string[] }[]} */
  let unanswered = [];
  /** @type {Map<string, number>} */
  const lostTo = new Map();
  /** @type {((reply: Buffer) => boolean) | undefined} */
  let worth;
  /** @type {{ marks: readonly string[], isIt: (request: string) => boolean, caught: (request: string, release: () => Promise<void>) => void }[]} */
  let traps = [];
  let deaf = false;
  let lost = 0;
  let target = socketPath;
  /** @type {Spoiler} */
  let spoiler = {};

  const server = createServer((client) => {
    const upstream = connect(target);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        // What is held arrives after its client has gone.
        if (held === undefined) upstream.destroy();
      });
    }
    let doomed = '';
    /** What follows on the way is behind it. @type {Buffer[] | undefined} */
    let held;
    const isHeld = (/** @type {Buffer} */ request) => {
      if (held === undefined) {
        const text = traps.length > 0 ? request.toString('latin1') : '';
        const trap = traps.find(({ marks, isIt }) => marks.some((mark) => text.includes(mark)) && isIt(text));
        if (trap === undefined) return false;
        traps = traps.filter((one) => one !== trap);
        trap.caught(text, release);
      }
      held = [...(held ?? []), request];
      return true;
    };
    async function release() {
      const answered = new Promise((resolve) => {
        upstream.once('data', resolve).once('close', resolve);
      });
      for (const part of held ?? []) upstream.write(part);
      held = undefined;
      await answered;
      if (client.destroyed) upstream.end();
    }
    client.on('data', (request) => {
      if (deaf) return;
      spoiler.hear?.(request, client);
      if (isHeld(request)) return;
      const asked = unanswered.find(({ marks }) => marks.some((mark) => request.includes(mark)));
      if (asked) {
        doomed = asked.name;
        if (worth === undefined) unanswered = [];
      }
      upstream.write(request);
    });
    upstream.on('data', (reply) => {
      if (deaf) return;
      if (doomed === '' || (worth !== undefined && !worth(reply))) {
        if (spoiler.reply) spoiler.reply(reply, client);
        else client.write(reply);
        return;
      }
      lostTo.set(doomed, (lostTo.get(doomed) ?? 0) + 1);
      doomed = '';
      unanswered = [];
      worth = undefined;
      lost += 1;
      client.destroy();
    });
  });
  server.listen(path);
  await once(server, 'listening');

  /** @param {string} verb */
  const marksOf = (verb) => {
    const lua = readFileSync(join(product, 'lua', `${verb}.lua`), 'utf8');
    return [createHash('sha1').update(lua).digest('hex'), `-- ${verb}: `];
  };

  return {
    url: `unix://${path}`,
    /** The reply to the next call of one of these scripts is lost with its connection. @param {string[]} verbs */
    loseReplyTo(...verbs) {
      worth = undefined;
      unanswered = verbs.map((verb) => ({ name: verb, marks: marksOf(verb) }));
    },
    /** The next reply to a blocking read that brings jobs is lost with its connection. */
    loseNextRead() {
      unanswered = [{ name: 'read', marks: ['xreadgroup', 'XREADGROUP'] }];
      worth = (reply) => reply.includes('member');
    },
    /**
     * The next call of a script does not arrive before it is released, whatever became of its caller. What the same
     * connection sends meanwhile stays behind it.
     *
     * @param {string} verb
     * @param {(request: string) => boolean} [isIt] where others call the script as well
     * @returns {Promise<{ request: string, release: () => Promise<void> }>} released, it resolves when Redis has answered
     */
    hold: (verb, isIt = () => true) =>
      new Promise((resolve) => {
        traps.push({ marks: marksOf(verb), isIt, caught: (request, release) => resolve({ request, release }) });
      }),
    /** While deaf, nothing passes and nothing is closed. @param {boolean} now */
    setDeaf(now) {
      deaf = now;
    },
    /** @param {Spoiler} [next] none: all is well again */
    spoil(next = {}) {
      spoiler = next;
    },
    /** New connections lead to another server. @param {string} [path] none: to the right one */
    leadTo(path = socketPath) {
      target = path;
    },
    marksOf,
    cut() {
      for (const socket of sockets) socket.destroy();
    },
    lost: () => lost,
    /** How many replies to a script were lost. @param {string} verb */
    lostTo: (verb) => lostTo.get(verb) ?? 0,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
