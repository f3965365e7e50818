/**
 * How many bytes a script reads: its own text runs with a `redis` that counts what every command replies and every text
 * that is hashed. That is what Redis spends its time on, and it is the same on a slow machine.
 */
import type { Redis } from '../../src/redis/connection/connect.ts';
import type { NamedScript } from '../../src/redis/scripts/script-table.ts';
import { bytesOf, list, type Reply } from '../../src/redis/scripts/scripts.ts';
import { read } from './repository.ts';

export interface Weighed {
  readonly bytes: number;
  readonly reply: Reply;
}

const BEFORE = `
local real, weight = redis, 0
local function weigh(reply)
  if type(reply) == 'string' then weight = weight + #reply end
  if type(reply) == 'table' then for _, part in ipairs(reply) do weigh(part) end end
  return reply
end
local redis = setmetatable({
  call = function(...) return weigh(real.call(...)) end,
  sha1hex = function(text) weight = weight + #text return real.sha1hex(text) end,
}, { __index = real })
local function body()
`;
const AFTER = `
end
local reply = body()
return { weight, reply }
`;

/** Runs one script as `run` does. */
export async function weighed(
  redis: Redis,
  { verb, keys, args }: NamedScript,
  call: {
    readonly keys: object;
    readonly args: Readonly<Record<string, string | number>>;
    readonly each?: readonly (string | number)[];
  },
): Promise<Weighed> {
  const lua = read(`lua/${verb}.lua`);
  const flags = /^#!lua[^\n]*\n/.exec(lua)?.[0] ?? '';
  const held: Readonly<Record<string, string>> = { ...call.keys };
  const words = [...keys.map((key) => held[key] ?? ''), ...args.map((name) => call.args[name] ?? '')];
  const text = `${flags}${BEFORE}${lua.slice(flags.length)}${AFTER}`;
  const [bytes, reply = ''] = list(
    bytesOf(await redis.callBuffer('EVAL', text, keys.length, ...words, ...(call.each ?? []))),
  );
  return { bytes: Number(bytes), reply };
}
