/** Runs Lua scripts on the model: values cross the border between Redis and Lua as the real one has them cross. */
import { createHash } from 'node:crypto';
import { general } from '../lua/numbers.mjs';
import { named, scriptOf } from '../lua/runtime.mjs';
import { LuaError, LuaTable } from '../lua/table.mjs';
import { Refusal, Status } from './replies.mjs';

/** @typedef {import('../lua/table.mjs').Value} Value */
/** @typedef {import('../lua/table.mjs').LuaFunction} LuaFunction */
/** @typedef {import('./replies.mjs').Reply} Reply */
/** @typedef {{ sha: string, verb: string, run: (keys: readonly string[], args: readonly string[]) => Reply }} Loaded */

/** Compiled once, however many servers there are: text → script. */
/** @type {Map<string, import('../lua/runtime.mjs').Script>} */
const compiled = new Map();

/** @param {string} text one character per byte */
export const sha1 = (text) => createHash('sha1').update(Buffer.from(text, 'latin1')).digest('hex');

/**
 * @param {string} source
 * @param {(words: readonly string[]) => Reply} execute carries out one command. @throws Refusal
 * @returns {Loaded}
 */
export function load(source, execute) {
  const script = compiled.get(source) ?? scriptOf(source);
  compiled.set(source, script);
  const sha = sha1(source);

  /** @type {LuaFunction} */
  const plainly = (...words) => [toLua(execute(words.map(word)))];
  /** @type {LuaFunction} */
  const call = (...words) => {
    try {
      return plainly(...words);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      throw new Refusal(`${error.message} script: ${sha}, on @user_script:1.`);
    }
  };
  /** @type {LuaFunction} */
  const pcall = (...words) => {
    try {
      return plainly(...words);
    } catch (error) {
      if (error instanceof Refusal) return [named({ err: error.message })];
      throw error;
    }
  };
  const redis = named({
    call,
    pcall,
    sha1hex: (text) => [sha1(word(text))],
    error_reply: (text) => [named({ err: text })],
    status_reply: (text) => [named({ ok: text })],
  });
  return {
    sha,
    verb: /^-- (\w+):/m.exec(source)?.[1] ?? '',
    run(keys, args) {
      try {
        return fromLua(script({ redis, KEYS: new LuaTable(keys), ARGV: new LuaTable(args) }));
      } catch (error) {
        const raised =
          error instanceof LuaError && error.value instanceof LuaTable ? error.value.get('err') : undefined;
        if (typeof raised === 'string') throw new Refusal(`${raised} script: ${sha}, on @user_script:1.`);
        if (error instanceof LuaError) throw new Refusal(`ERR user_script:1: ${error.message} script: ${sha}`);
        throw error;
      }
    },
  };
}

/** An argument of redis.call. @param {Value} value */
function word(value) {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return general(value, 17);
  throw new LuaError('Lua redis lib command arguments must be strings or integers');
}

/** @param {Reply} reply @returns {Value} */
function toLua(reply) {
  if (reply === null) return false;
  if (reply instanceof Status) return named({ ok: reply.text });
  if (reply instanceof Refusal) return named({ err: reply.message });
  return Array.isArray(reply) ? new LuaTable(reply.map(toLua)) : reply;
}

/** @param {Value} value @returns {Reply} */
function fromLua(value) {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return Math.trunc(value);
  if (value === true) return 1;
  if (!(value instanceof LuaTable)) return null;
  const [error, status] = [value.get('err'), value.get('ok')];
  if (typeof error === 'string') throw new Refusal(error);
  if (typeof status === 'string') return new Status(status);
  return value.items.map(fromLua);
}
