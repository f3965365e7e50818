/**
 * A model of redis-server 7.0 in memory: connections that speak RESP 2, scripts, blocking reads and sharded messages.
 * It does one command at a time, at once; how long things take, what gets lost and what time it is, is decided outside.
 */
import { Keyspace } from './keyspace.mjs';
import { plain } from './plain.mjs';
import { createParser, encode, NO_LIST, NO_LIST_BYTES, OK, Refusal, Status } from './replies.mjs';
import { load } from './scripting.mjs';
import { read, readingOf, streams } from './streams.mjs';

/** @typedef {import('./replies.mjs').Reply} Reply */
/** @typedef {import('./scripting.mjs').Loaded} Loaded */
/** @typedef {{ send: (bytes: string) => void, cut: () => void }} Wire */
/**
 * @typedef {object} Line a connection without bytes
 * @property {(reply: Reply | typeof NO_LIST) => void} say answers the oldest command that has no answer
 * @property {(channel: string, message: string) => void} push a message of a channel
 * @property {() => void} cut
 */
/**
 * @typedef {object} Connection
 * @property {number} id
 * @property {(bytes: string) => void} feed
 * @property {() => void} close the other side is gone
 */
/**
 * @typedef {object} Around
 * @property {() => number} nowUs wall clock of the server
 * @property {(ms: number, act: () => void) => () => void} timer
 * @property {(verb: string, keys: readonly string[], args: readonly string[], reply: Reply) => void} [ran] a script did
 * @property {(words: readonly string[]) => void} [writes] a command is about to be carried out, by whomever
 */
/** @typedef {ReturnType<typeof createServer>} Server */
/** @typedef {{ line: Line, id: number, channels: Set<string>, waiting: string[][], blocked: Blocked | undefined, open: boolean }} Client */
/** @typedef {{ reading: import('./streams.mjs').Reading, calledOff: () => void }} Blocked */

/** The reply is sent later, or was sent already. */
const NOTHING_YET = Symbol('nothing yet');

/** @param {Around} around */
export function createServer({ nowUs, timer, ran = () => undefined, writes }) {
  const nowMs = () => Math.floor(nowUs() / 1000);
  const db = new Keyspace(nowMs);
  /** @type {Map<string, Loaded>} */
  const scripts = new Map();
  /** Text → script: what has been put together once is not hashed again. @type {Map<string, Loaded>} */
  const known = new Map();
  /** @type {Set<Client>} */
  const clients = new Set();
  /** @type {Set<Client>} in the order in which they began to wait */
  const blocked = new Set();
  let born = 0;
  let loading = false;
  let signalled = false;

  /** A command that needs no connection: what a script may call. @param {readonly string[]} words @returns {Reply} */
  function execute(words) {
    const [name = '', ...args] = words;
    const verb = name.toUpperCase();
    const command = plain[verb] ?? streams[verb] ?? common[verb];
    if (!command) throw new Refusal(`ERR unknown command '${name}', with args beginning with: `);
    if (verb === 'XADD' || verb === 'XGROUP') signalled = true;
    writes?.(words);
    return command(db, ...args);
  }

  /** @type {Readonly<Record<string, import('./plain.mjs').Command>>} */
  const common = {
    PING: () => new Status('PONG'),
    TIME: () => [String(Math.floor(nowUs() / 1e6)), String(Math.floor(nowUs() % 1e6))],
    SPUBLISH(_, channel, message) {
      const listening = [...clients].filter(({ channels }) => channels.has(channel));
      for (const { line } of listening) line.push(channel, message);
      return listening.length;
    },
    INFO: () =>
      ['redis_version:7.0.15', `loading:${loading ? 1 : 0}`, 'role:master', 'maxmemory_policy:noeviction'].join('\r\n'),
    /** In a script it never waits. */
    XREADGROUP(_, ...words) {
      const found = read(db, readingOf(words));
      return found.length > 0 ? found : null;
    },
    CONFIG: () => [],
    COMMAND: () => [],
    SCRIPT: (_, verb, ...rest) => script(verb.toUpperCase(), rest),
    EVAL: (_, source, ...rest) => run(loaded(source), rest),
    EVAL_RO: (_, source, ...rest) => run(loaded(source), rest),
    EVALSHA(_, sha, ...rest) {
      const found = scripts.get(sha.toLowerCase());
      if (!found) throw new Refusal('NOSCRIPT No matching script. Please use EVAL.');
      return run(found, rest);
    },
  };

  /** @param {string} verb @param {readonly string[]} rest @returns {Reply} */
  function script(verb, rest) {
    if (verb === 'LOAD') return loaded(rest[0] ?? '').sha;
    if (verb === 'EXISTS') return rest.map((sha) => (scripts.has(sha) ? 1 : 0));
    scripts.clear();
    return OK;
  }

  /** @param {string} source */
  function loaded(source) {
    const made = known.get(source) ?? load(source, execute);
    known.set(source, made);
    scripts.set(made.sha, made);
    return made;
  }

  /** @param {Loaded} script1 @param {readonly string[]} rest @returns {Reply} */
  function run(script1, [count = '0', ...rest]) {
    const keys = rest.slice(0, Number(count));
    const args = rest.slice(Number(count));
    const reply = script1.run(keys, args);
    ran(script1.verb, keys, args, reply);
    return reply;
  }

  /** Commands of one connection. @type {Readonly<Record<string, (client: Client, args: readonly string[]) => Reply | typeof NOTHING_YET>>} */
  const own = {
    CLIENT(client, [verb = '', id]) {
      if (/^id$/i.test(verb)) return client.id;
      if (/^setname$/i.test(verb)) return OK;
      if (/^unblock$/i.test(verb)) return unblock(Number(id)) ? 1 : 0;
      throw new Refusal(`ERR unknown subcommand '${verb}'. Try CLIENT HELP.`);
    },
    SSUBSCRIBE(client, channels) {
      for (const channel of channels) {
        client.channels.add(channel);
        client.line.say(['ssubscribe', channel, client.channels.size]);
      }
      return NOTHING_YET;
    },
    SUNSUBSCRIBE(client, channels) {
      for (const channel of channels) {
        client.channels.delete(channel);
        client.line.say(['sunsubscribe', channel, client.channels.size]);
      }
      return NOTHING_YET;
    },
    PING: (client) => (client.channels.size > 0 ? ['pong', ''] : new Status('PONG')),
    XREADGROUP(client, words) {
      const reading = readingOf(words);
      const found = read(db, reading);
      if (found.length > 0) return found;
      if (reading.blockMs !== undefined) block(client, reading);
      else client.line.say(NO_LIST);
      return NOTHING_YET;
    },
  };

  /** @param {Client} client @param {import('./streams.mjs').Reading} reading */
  function block(client, reading) {
    const calledOff = timer(reading.blockMs ?? 0, () => release(client, NO_LIST));
    client.blocked = { reading, calledOff };
    blocked.add(client);
  }

  /** @param {Client} client @param {Reply | typeof NO_LIST} reply */
  function release(client, reply) {
    client.blocked?.calledOff();
    client.blocked = undefined;
    blocked.delete(client);
    client.line.say(reply);
    for (let next = client.waiting.shift(); next; next = client.blocked ? undefined : client.waiting.shift()) {
      answer(client, next);
    }
  }

  /** @param {number} id */
  function unblock(id) {
    const client = [...blocked].find((one) => one.id === id);
    if (client) release(client, NO_LIST);
    return client !== undefined;
  }

  function serveBlocked() {
    signalled = false;
    for (const client of [...blocked]) {
      if (!client.blocked) continue;
      const found = attempt(() => read(db, /** @type {Blocked} */ (client.blocked).reading));
      if (!Array.isArray(found) || found.length > 0) release(client, found);
    }
  }

  /** @template T @param {() => T} act @returns {T | Refusal} */
  function attempt(act) {
    try {
      return act();
    } catch (error) {
      if (error instanceof Refusal) return error;
      throw error;
    }
  }

  /** @param {Client} client @param {readonly string[]} words */
  function answer(client, words) {
    const reply = attempt(() => obey(client, words));
    if (reply !== NOTHING_YET) client.line.say(reply);
    if (signalled) serveBlocked();
  }

  /** @param {Client} client @param {readonly string[]} words @returns {Reply | typeof NOTHING_YET} */
  function obey(client, words) {
    const name = (words[0] ?? '').toUpperCase();
    if (loading && name !== 'INFO' && name !== 'CLIENT') {
      throw new Refusal('LOADING Redis is loading the dataset in memory');
    }
    const mine = own[name];
    return mine ? mine(client, words.slice(1)) : execute(words);
  }

  return {
    db,
    /** As a client without a connection. @param {readonly string[]} words @returns {Reply} */
    ask: (words) => execute(words),
    /** @param {boolean} is */
    setLoading(is) {
      loading = is;
    },
    /** Its process ends: connections and scripts are gone, what is stored is not. */
    crash() {
      for (const { line } of [...clients]) line.cut();
      scripts.clear();
    },
    attach,
    /** @param {Wire} wire @returns {Connection} */
    accept(wire) {
      const parser = createParser();
      const { id, tell, close } = attach({
        say: (reply) => wire.send(reply === NO_LIST ? NO_LIST_BYTES : encode(reply)),
        push: (channel, message) => wire.send(encode(['smessage', channel, message])),
        cut: wire.cut,
      });
      return {
        id,
        feed(bytes) {
          for (const words of parser.feed(bytes)) tell(words);
        },
        close,
      };
    },
  };

  /** @param {Line} line */
  function attach(line) {
    born += 1;
    /** @type {Client} */
    const client = { line, id: born, channels: new Set(), waiting: [], blocked: undefined, open: true };
    clients.add(client);
    return {
      id: born,
      /** A command of this connection. @param {string[]} words */
      tell(words) {
        if (!client.open) return;
        if (client.blocked) client.waiting.push(words);
        else answer(client, words);
      },
      /** The other side is gone. */
      close() {
        client.open = false;
        client.blocked?.calledOff();
        clients.delete(client);
        blocked.delete(client);
      },
    };
  }
}
