/**
 * Every Lua script with the names of its keys and arguments, so that callers pass names and never positions. The table
 * is compared with the headers in `lua/verbs/` by the house test; what is loaded is `lua/<verb>.lua`, with the parts that
 * a script names (`lua/assemble.mjs`). Loading, EVALSHA and the fall-back to EVAL are ioredis's.
 *
 * One of the two borders where unknown data gets a type: replies leave here as texts and numbers; `jobs.ts`,
 * `ready.ts`, `lease.ts` and `inspect.ts` give them meaning.
 */
import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import { redial } from '../connection/dialing.ts';
import { naming } from '../connection/wrong-type.ts';
import type { ControlKeys, PartitionKeys, SlotKeys } from '../keys.ts';

/** Keys of a partition, and those of the control slot. */
type KeyName = keyof PartitionKeys | keyof ControlKeys;

export interface Script {
  readonly keys: readonly KeyName[];
  readonly args: readonly string[];
  /** Names of the arguments that repeat for each item of a bulk call. */
  readonly each?: readonly string[];
  /** What it answers, if that is to be checked. `per item`: a list with one reply for each item of the call. */
  readonly reply?: 'text' | 'list' | 'per item';
  /** The call brings keys of its own after the named ones. */
  readonly moreKeys?: boolean;
}

const define = <const S extends Script>(script: S): S => script;

/** One entry per file in `lua/verbs/`, in the order a job meets them. */
export const scripts = {
  schedule: define({
    keys: ['scheduled', 'jobs', 'runs', 'done', 'meta', 'wake', 'stale'],
    args: ['now', 'generation', 'mode', 'horizon', 'bytes'],
    reply: 'per item',
    each: ['member', 'record', 'due'],
  }),
  promote: define({
    keys: ['leader', 'scheduled', 'ready', 'jobs', 'runs', 'dead', 'done', 'meta', 'stale'],
    args: ['now', 'term', 'lease', 'limit', 'cap'],
    reply: 'list',
  }),
  start: define({
    keys: ['scheduled', 'jobs', 'runs', 'ready', 'dead', 'done', 'meta', 'stale'],
    args: ['now', 'consumer', 'bytes', 'window', 'suspects'],
    reply: 'per item',
    each: ['entry', 'member', 'due'],
  }),
  expire: define({
    keys: ['scheduled', 'jobs', 'runs', 'ready', 'dead', 'done', 'meta'],
    args: ['now', 'consumer', 'window', 'bytes'],
    reply: 'per item',
    each: ['entry', 'member', 'due', 'compensation', 'compensationRecord'],
  }),
  release: define({
    keys: ['scheduled', 'jobs', 'runs', 'ready', 'done', 'meta', 'wake'],
    args: ['now', 'consumer'],
    reply: 'per item',
    each: ['entry', 'member', 'due'],
  }),
  extend: define({
    keys: ['runs', 'ready'],
    args: ['consumer'],
    reply: 'per item',
    each: ['entry', 'member', 'token'],
  }),
  complete: define({
    keys: ['scheduled', 'jobs', 'runs', 'ready', 'done', 'meta'],
    args: ['now', 'window', 'hold'],
    reply: 'per item',
    each: ['entry', 'member', 'token'],
  }),
  commit: define({
    keys: ['scheduled', 'jobs', 'runs', 'ready', 'dead', 'done', 'meta'],
    args: ['now', 'window', 'entry', 'member', 'token'],
    each: ['size', 'name', 'words'],
    reply: 'text',
    moreKeys: true,
  }),
  retry: define({
    keys: ['scheduled', 'jobs', 'runs', 'ready', 'done', 'meta', 'wake'],
    args: ['now', 'window', 'entry', 'member', 'token', 'delay', 'error'],
    reply: 'list',
  }),
  defer: define({
    keys: ['scheduled', 'jobs', 'runs', 'ready', 'done', 'meta', 'wake'],
    args: ['now', 'window', 'entry', 'member', 'token', 'delay'],
    reply: 'list',
  }),
  bury: define({
    keys: ['scheduled', 'jobs', 'runs', 'ready', 'dead', 'done', 'meta', 'wake'],
    args: ['now', 'window', 'entry', 'member', 'token', 'reason', 'error', 'compensation', 'compensationRecord'],
    reply: 'list',
  }),
  cancel: define({
    keys: ['scheduled', 'jobs', 'runs', 'done', 'meta', 'stale'],
    args: ['now', 'generation', 'window'],
    reply: 'per item',
    each: ['member'],
  }),
  replay: define({
    keys: ['scheduled', 'jobs', 'runs', 'dead', 'done', 'meta', 'wake'],
    args: ['now', 'generation', 'deadLetter', 'due'],
    reply: 'list',
  }),
  arm: define({ keys: ['fires', 'fired', 'meta', 'wake'], args: ['generation', 'name'] }),
  disarm: define({ keys: ['fires', 'fired'], args: ['name', 'state'] }),
  fire: define({
    keys: ['leader', 'fires', 'fired', 'scheduled', 'jobs', 'meta', 'wake'],
    args: ['now', 'term', 'name', 'state', 'reached', 'look', 'overlap', 'most'],
    each: ['member', 'record', 'due'],
  }),
  elect: define({ keys: ['leader', 'meta'], args: ['now', 'process', 'lease', 'schema'], reply: 'list' }),
  renew: define({ keys: ['leader'], args: ['term', 'lease'], reply: 'text' }),
  resign: define({ keys: ['leader', 'wake'], args: ['term'], reply: 'text' }),
  reclaim: define({
    keys: ['ready', 'runs', 'meta'],
    args: ['now', 'owner', 'consumer', 'idle'],
    reply: 'list',
    each: ['entry'],
  }),
  enrol: define({ keys: ['ready'], args: ['consumer'] }),
  retire: define({ keys: ['ready'], args: ['consumer'], reply: 'text' }),
  watch: define({ keys: ['meta'], args: ['now', 'consumer', 'wish', 'seats', 'term'], reply: 'text' }),
  beat: define({ keys: ['beat', 'alive', 'wake'], args: ['process', 'identity', 'ttl'] }),
  declare: define({ keys: ['queues', 'wake'], args: ['queue', 'layout', 'schema'], reply: 'list' }),
  identify: define({ keys: ['id'], args: ['candidate'], reply: 'text' }),
  define: define({ keys: ['schedules'], args: ['name', 'before', 'after'] }),
  sweep: define({
    keys: ['leader', 'jobs', 'done', 'dead', 'meta', 'ready', 'stale'],
    args: ['now', 'term', 'limit', 'window', 'tombstones', 'floor', 'retention', 'deadLetters'],
    reply: 'list',
  }),
  'check-members': define({
    keys: ['scheduled', 'jobs', 'runs', 'ready', 'done', 'meta'],
    args: ['part', 'cursor', 'limit'],
  }),
  'check-entries': define({ keys: ['ready'], args: ['part', 'after', 'limit'] }),
  repair: define({
    keys: ['scheduled', 'jobs', 'runs', 'ready', 'done', 'meta', 'wake'],
    args: ['now', 'seen', 'bytes'],
    reply: 'per item',
    each: ['kind', 'name'],
  }),
  pause: define({ keys: ['meta'], args: ['now', 'reason'] }),
  resume: define({ keys: ['meta', 'wake'], args: [] }),
  purge: define({ keys: ['dead', 'meta'], args: ['now', 'age', 'reason', 'after', 'limit', 'mode'] }),
  remove: define({
    keys: ['scheduled', 'jobs', 'runs', 'ready', 'dead', 'done', 'leader', 'meta', 'fires', 'fired', 'stale'],
    args: ['force'],
  }),
  peek: define({ keys: ['scheduled', 'jobs', 'runs', 'done', 'meta'], args: ['generation', 'member'] }),
  stats: define({ keys: ['scheduled', 'jobs', 'runs', 'ready', 'dead', 'done', 'leader', 'meta'], args: [] }),
  oldest: define({ keys: ['scheduled', 'jobs', 'runs', 'ready'], args: ['after', 'limit'], reply: 'list' }),
} as const satisfies Record<string, Script>;

export type Verb = keyof typeof scripts;
type KeysOf<V extends Verb> = { readonly [name in (typeof scripts)[V]['keys'][number]]: string };
type ArgsOf<V extends Verb> = { readonly [name in (typeof scripts)[V]['args'][number]]: string | number };

/** What `new Redis({ scripts })` takes: ioredis loads each on first use and falls back to EVAL after a flush. */
export const scriptOptions: Readonly<Record<string, { lua: string; numberOfKeys?: number }>> = Object.fromEntries(
  Object.entries(scripts).map(([verb, script]: [string, Script]) => {
    const lua = readFileSync(new URL(`../../../lua/${verb}.lua`, import.meta.url), 'utf8');
    return [command(verb), script.moreKeys ? { lua } : { lua, numberOfKeys: script.keys.length }];
  }),
);

/** A reply of a script before it has a meaning: texts, integers and lists of them. */
export type Reply = string | number | null | readonly Reply[];

/**
 * Runs one script on one slot. `each` is the flat list of repeated arguments of a bulk call. A reply of another
 * shape than the script has is another command's: this connection has lost count, so it is dropped, and the outcome of
 * the call is as unknown as that of a lost reply.
 * Tests pass `now`; production passes '' and the server's clock decides.
 */
export async function run<V extends Verb>(
  redis: Redis,
  verb: V,
  call: {
    readonly keys: KeysOf<V> & SlotKeys;
    readonly args: ArgsOf<V>;
    readonly each?: readonly (string | number | Buffer)[];
    readonly moreKeys?: readonly string[];
    /** The reply as bytes, one character from 0 to 255 each: a foreign member need not be text. */
    readonly bytes?: boolean;
  },
): Promise<Reply> {
  const script: Script = scripts[verb];
  const held = call.keys as Readonly<Record<string, string>>;
  const named = call.args as Readonly<Record<string, string | number>>;
  const commands = redis as unknown as Record<string, (...parts: (string | number | Buffer)[]) => Promise<Reply>>;
  const send = commands[call.bytes ? `${command(verb)}Buffer` : command(verb)];
  if (!send) throw new Error(`connection was made without the script ${verb}`);
  const keys = [...script.keys.map((key) => held[key] ?? ''), ...(call.moreKeys ?? [])];
  const args = script.args.map((name) => named[name] ?? '');
  const each = call.each ?? [];
  const sent = send.call(redis, ...(script.moreKeys ? [keys.length] : []), ...keys, ...args, ...each);
  const reply = await naming(redis, [call.keys], call.bytes ? sent.then(bytesOf) : sent);
  if (isReplyOf(script, reply, each.length)) return reply;
  redial(redis);
  throw new Error(`connection lost count: ${verb} was answered with the reply of another command`);
}

function isReplyOf({ reply: shape, each = [] }: Script, reply: Reply, parts: number): boolean {
  if (shape === undefined) return true;
  if (shape === 'text') return typeof reply === 'string';
  if (!Array.isArray(reply)) return false;
  return shape === 'list' || reply[0] === 'moved' || reply.length === parts / each.length;
}

/** A reply of buffers as texts of bytes. */
export function bytesOf(reply: unknown): Reply {
  if (Buffer.isBuffer(reply)) return reply.toString('latin1');
  return Array.isArray(reply) ? reply.map(bytesOf) : (reply as Reply);
}

/** A list reply, or a bug. */
export function list(reply: Reply | undefined): readonly Reply[] {
  if (Array.isArray(reply)) return reply as readonly Reply[];
  throw new Error(`expected a list from a script, got ${JSON.stringify(reply)}`);
}

/** A text reply (numbers become text), or a bug. */
export function text(reply: Reply | undefined): string {
  if (typeof reply === 'string') return reply;
  if (typeof reply === 'number') return String(reply);
  throw new Error(`expected a text from a script, got ${JSON.stringify(reply)}`);
}

/** A flat list of names and values by name. A value may well be the name of another field: a job called `due`. */
export function fieldsOf(reply: Reply | undefined): ReadonlyMap<string, string> {
  const flat = list(reply).map(text);
  return new Map(flat.flatMap((name, at) => (at % 2 === 0 ? [[name, flat[at + 1] ?? ''] as const] : [])));
}

/** A score as Redis prints it; it says `inf` where JavaScript says `Infinity`. */
export function score(printed: string): number {
  return Number(printed.replace('inf', 'Infinity'));
}

/** The name under which ioredis knows a script: no built-in command has this prefix. */
function command(verb: string): string {
  return `duestream_${verb}`;
}
