/**
 * A connection to the model of Redis in this process. To the rest of duestream it is a connection as any other; there is no
 * socket behind it: a command is carried out when it is sent, and its answer comes with the next microtask.
 */
import { EventEmitter } from 'node:events';
import type { Redis } from '../redis/connection/connect.ts';
import { keepTime } from '../redis/connection/server-clock.ts';
import { scriptOptions } from '../redis/scripts/scripts.ts';
import { NO_LIST, Refusal, Status } from './redis/replies.mjs';
import type { createServer } from './redis/server.mjs';
import type { VirtualTime } from './time.ts';

type Server = ReturnType<typeof createServer>;
type Answer = Parameters<Parameters<Server['attach']>[0]['say']>[0];
type Word = string | number | Buffer;

interface Asked {
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly shape: (reply: unknown) => unknown;
  readonly isBytes: boolean;
  left: number;
}

const COMMANDS = [
  ...[
    'get',
    'getex',
    'mget',
    'set',
    'del',
    'exists',
    'type',
    'pttl',
    'pexpire',
    'ping',
    'time',
    'info',
    'config',
    'spublish',
  ],
  ...['hget', 'hmget', 'hgetall', 'hkeys', 'hlen', 'hset', 'hdel', 'hscan', 'hincrby', 'hexists', 'hstrlen'],
  ...['smembers', 'srem', 'sadd', 'srandmember', 'zadd', 'zrem', 'zcard', 'zcount', 'zlexcount', 'zscore', 'zmscore'],
  ...['zrange', 'zrangebyscore', 'zrevrange', 'zscan', 'xadd', 'xlen', 'xrange', 'xrevrange', 'xack', 'xdel', 'xinfo'],
  ...['xgroup', 'xpending', 'xreadgroup', 'xclaim', 'ssubscribe', 'sunsubscribe', 'scan', 'wait', 'waitaof'],
] as const;

/** An error as Redis answers one. */
class ReplyError extends Error {
  override readonly name = 'ReplyError';
}

/** @param isService what it hears while time stands still waits until time passes */
export function openLine(
  server: Server,
  time: VirtualTime,
  manner: { readonly isService: boolean; readonly isReady: boolean },
): Redis & { begin: () => void } {
  const line = new Line(server, time, manner);
  const redis = line as unknown as Redis & { begin: () => void };
  keepTime(redis, time.clock);
  return redis;
}

class Line extends EventEmitter {
  status: string;
  readonly options = {};
  readonly #time: VirtualTime;
  readonly #asked: Asked[] = [];
  /** A command is being carried out: its answer is no news. */
  #isTelling = false;
  readonly #connection: ReturnType<Server['attach']>;

  constructor(server: Server, time: VirtualTime, { isService, isReady }: { isService: boolean; isReady: boolean }) {
    super();
    this.setMaxListeners(0);
    this.#time = time;
    this.status = isReady ? 'ready' : 'connect';
    const through = (act: () => void) => (isService ? time.hear(act) : act());
    this.#connection = server.attach({
      say: (reply) => {
        const asked = this.#asked[0];
        if (!asked) return;
        asked.left -= 1;
        if (asked.left > 0) return;
        this.#asked.shift();
        if (this.#isTelling) settle(asked, reply);
        else through(() => settle(asked, reply));
      },
      push: (channel, message) =>
        through(() => {
          time.stir();
          queueMicrotask(() => this.emit('smessage', textOf(channel), textOf(message)));
        }),
      cut: () => undefined,
    });
  }

  begin(): void {
    this.status = 'ready';
    this.emit('ready');
  }

  call(name: string, ...words: readonly (Word | readonly Word[])[]): Promise<unknown> {
    return this.#ask([name, ...words.flat()], false);
  }

  callBuffer(name: string, ...words: readonly (Word | readonly Word[])[]): Promise<unknown> {
    return this.#ask([name, ...words.flat()], true);
  }

  sendCommand(): void {
    throw new Error('nobody sends a command so here');
  }

  disconnect(): void {
    this.status = 'end';
    this.#connection.close();
    for (const { reject } of this.#asked.splice(0)) reject(new Error('Connection is closed.'));
    this.emit('end');
  }

  async quit(): Promise<string> {
    this.disconnect();
    return 'OK';
  }

  /** A script by its name; what has no fixed number of keys says it first. */
  script(source: string, numberOfKeys: number | undefined, words: readonly Word[], isBytes: boolean): Promise<unknown> {
    const counted = numberOfKeys === undefined ? words : [numberOfKeys, ...words];
    return this.#ask(['EVAL', source, ...counted], isBytes);
  }

  #ask(words: readonly Word[], isBytes: boolean): Promise<unknown> {
    this.#time.stir();
    if (this.status === 'end') return Promise.reject(new Error('Connection is closed.'));
    const name = String(words[0]).toLowerCase();
    const left = /^s(un)?subscribe$/.test(name) ? words.length - 1 : 1;
    return new Promise((resolve, reject) => {
      this.#asked.push({ resolve, reject, isBytes, left, shape: name === 'hgetall' ? objectOf : asIs });
      this.#isTelling = true;
      try {
        this.#connection.tell(words.map(bytesOf));
      } catch (error) {
        // The model does not know what was asked.
        this.#asked.pop();
        throw error;
      } finally {
        this.#isTelling = false;
      }
    });
  }
}

const asIs = (reply: unknown) => reply;

function objectOf(reply: unknown): unknown {
  const flat = reply as string[];
  const made: Record<string, string> = {};
  for (let at = 0; at < flat.length; at += 2) made[flat[at] ?? ''] = flat[at + 1] ?? '';
  return made;
}

function settle({ resolve, reject, shape, isBytes }: Asked, reply: Answer): void {
  if (reply instanceof Refusal) reject(new ReplyError(reply.message));
  else resolve(shape(read(reply, isBytes ? (text) => Buffer.from(text, 'latin1') : textOf)));
}

function read(reply: Answer, text: (bytes: string) => unknown): unknown {
  if (reply === NO_LIST || reply === null) return null;
  if (typeof reply === 'number') return reply;
  if (typeof reply === 'string') return text(reply);
  if (reply instanceof Status) return reply.text;
  if (reply instanceof Refusal) return new ReplyError(reply.message);
  return (reply as Answer[]).map((one) => read(one, text));
}

const WIDE = /[\u0080-\uffff]/;
/** The model has one character per byte. */
function bytesOf(word: Word): string {
  if (Buffer.isBuffer(word)) return word.toString('latin1');
  const text = String(word);
  return WIDE.test(text) ? Buffer.from(text).toString('latin1') : text;
}

export const textOf = (bytes: string): string => (WIDE.test(bytes) ? Buffer.from(bytes, 'latin1').toString() : bytes);

const methods = Line.prototype as unknown as Record<
  string,
  (this: Line, ...words: (Word | Word[])[]) => Promise<unknown>
>;
for (const name of COMMANDS) {
  methods[name] = function (...words) {
    return this.call(name, ...words);
  };
  methods[`${name}Buffer`] = function (...words) {
    return this.callBuffer(name, ...words);
  };
}
for (const [name, { lua, numberOfKeys }] of Object.entries(scriptOptions())) {
  methods[name] = function (...words) {
    return this.script(lua, numberOfKeys, words.flat() as Word[], false);
  };
  methods[`${name}Buffer`] = function (...words) {
    return this.script(lua, numberOfKeys, words.flat() as Word[], true);
  };
}
