/**
 * Runs the scripts of `script-table.ts`. What is loaded is `lua/<verb>.lua`, with the parts that a script names
 * (`lua/assemble.mjs`). Loading, EVALSHA and the fall-back to EVAL are ioredis's, but for a script that is sent by its text (`byText`).
 *
 * One of the two borders where unknown data gets a type: replies leave here as texts and numbers; `jobs.ts`,
 * `ready.ts`, `lease.ts` and `inspect.ts` give them meaning.
 */
import type { Redis } from 'ioredis';
import { texts } from '../../../lua/scripts.mjs';
import { endsAt } from '../connection/call-end.ts';
import { redial } from '../connection/dialing.ts';
import { naming } from '../connection/wrong-type.ts';
import type { SlotKeys } from '../keys.ts';
import { type NamedScript, type Script, scriptsByVerb } from './script-table.ts';

type Part = string | number | Buffer;

type KeysOf<S extends Script> = { readonly [name in S['keys'][number]]: string };
type ArgsOf<S extends Script> = {
  readonly [name in Exclude<S['args'][number], 'now'>]: string | number;
} & { readonly now?: string | number };

/** What `new Redis({ scripts })` takes: ioredis loads each on first use and falls back to EVAL after a flush. */
export type ScriptOptions = Readonly<Record<string, { lua: string; numberOfKeys?: number }>>;

/** Put together for the first connection: half a megabyte of text that a process without one never needs. */
export function scriptOptions(): ScriptOptions {
  made ??= Object.fromEntries(
    [...scriptsByVerb].map(([verb, script]) => {
      const lua = texts[verb];
      if (lua === undefined) throw new Error(`lua/scripts.mjs has no ${verb}: node lua/assemble.mjs makes it anew`);
      const numberOfKeys = script.keys.length;
      return [command(verb), script.moreKeys || script.mayKeep ? { lua } : { lua, numberOfKeys }];
    }),
  );
  return made;
}

let made: ScriptOptions | undefined;

/** Those that the client library makes methods of: all but the scripts that are sent by their text. */
export function loadedScripts(): ScriptOptions {
  const byText = new Set([...scriptsByVerb].flatMap(([verb, script]) => (script.byText ? [command(verb)] : [])));
  return Object.fromEntries(Object.entries(scriptOptions()).filter(([name]) => !byText.has(name)));
}

/** A reply of a script before it has a meaning: texts, integers and lists of them. */
export type Reply = string | number | null | readonly Reply[];

/**
 * Runs one script on one slot. `each` is the flat list of repeated arguments of a bulk call. A reply of another
 * shape than the script has is another command's: this connection has lost count, so it is dropped, and the outcome of
 * the call is as unknown as that of a lost reply.
 * Tests pass `now`; production passes '' and the server's clock decides. Then a call that may not come late carries its end
 * (`connection/call-end.ts`).
 */
export async function run<S extends NamedScript>(redis: Redis, script: S, call: Call<S>): Promise<Reply> {
  const { late, keys }: Script = script;
  const isBounded = late === 'refused' && !/^\d/.test(String(call.args.now ?? ''));
  const held = call.keys as Readonly<Record<string, string>>;
  const ends = isBounded ? endsAt(redis, held[keys[0] ?? ''] ?? '') : undefined;
  if (ends === undefined) return send(redis, script, call);
  const end = ends.next();
  if (end === undefined) await ends.known();
  try {
    return await send(redis, script, call, end ?? ends.next());
  } catch (error) {
    if (!ends.isLate(error)) throw error;
    return send(redis, script, call, ends.next());
  }
}

interface Call<S extends Script> {
  readonly keys: KeysOf<S> & SlotKeys;
  readonly args: ArgsOf<S>;
  readonly each?: readonly Part[];
  readonly moreKeys?: readonly string[];
  /** The queue keeps a history. */
  readonly keeps?: boolean;
  /** The reply as bytes, one character from 0 to 255 each: a foreign member need not be text. */
  readonly bytes?: boolean;
}

/** Sends it before it returns. `end`: comes before what else `now` says. */
async function send<S extends NamedScript>(redis: Redis, script: S, call: Call<S>, end?: string): Promise<Reply> {
  const held = call.keys as Readonly<Record<string, string>>;
  const named = call.args as Readonly<Record<string, string | number>>;
  const commands = redis as unknown as Record<
    string,
    ((...parts: (Part | readonly Part[])[]) => Promise<Reply>) | undefined
  >;
  // A method that the client library makes from `loadedScripts`; its text is `lua/verbs/<verb>.lua`.
  const method = commands[names.get(script.verb)?.[call.bytes ? 'ofBytes' : 'ofText'] ?? ''];
  if (!method && !script.byText) throw new Error(`connection was made without the script ${script.verb}`);
  const parts = keysOf(script, held, call);
  for (const name of script.args)
    parts.push(name === 'now' && end !== undefined ? `${end}${named[name] ?? ''}` : (named[name] ?? ''));
  const each = call.each ?? [];
  // The client library takes a list for its parts, and a long one is cheaper whole.
  parts.push(each);
  const sent = method ? method.apply(redis, parts) : sendText(redis, script, parts.flat());
  const reply = await naming(redis, [call.keys], call.bytes ? sent.then(bytesOf) : sent);
  if (isReplyOf(script, reply, each.length)) return reply;
  return lostCount(redis, script);
}

function sendText(redis: Redis, { verb, keys }: NamedScript, parts: readonly Part[]): Promise<Reply> {
  return redis.call('eval', [texts[verb] ?? '', keys.length, ...parts]) as Promise<Reply>;
}

/** The keys of a call, and before them their number where it differs. One list, filled in place: at low rates every list of a call shows. */
function keysOf(
  script: Script,
  held: Readonly<Record<string, string>>,
  { moreKeys = NO_KEYS, keeps = false }: { readonly moreKeys?: readonly string[]; readonly keeps?: boolean },
): (Part | readonly Part[])[] {
  const count = script.keys.length - (script.mayKeep && !keeps ? 2 : 0);
  const parts: (Part | readonly Part[])[] = script.moreKeys || script.mayKeep ? [count + moreKeys.length] : [];
  for (let at = 0; at < count; at += 1) parts.push(held[script.keys[at] ?? ''] ?? '');
  for (const key of moreKeys) parts.push(key);
  return parts;
}

const NO_KEYS: readonly string[] = [];

/** A reply of another shape than the call has: that of another command. */
export function lostCount(redis: Redis, { verb }: NamedScript): never {
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

/**
 * Empties a long reply that has been read. In the client library a settled command stays reachable, with its promise and
 * so with the reply: one of its functions is in V8's old space from the start, and what such garbage refers to outlives
 * every minor collection. In a burst a fifth of what the worker allocates was copied twice for nothing.
 */
export function spent(reply: readonly Reply[]): void {
  (reply as Reply[]).length = 0;
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

/** Scores of scheduled between these two are those of jobs in line, so much above their due times: `lua/lib/line.lua`. */
const WAITS = 2 ** 52;
const WAITS_END = 2 ** 52 + 2 ** 50;

/** Scores of scheduled, from one to before another. */
export interface Scores {
  readonly from: number | '-inf';
  readonly to: number;
}

/**
 * Where the jobs stand in scheduled that wait for a due time of a range, or that are in line with one. All windows ask here:
 * nobody else knows how the two are told apart. What is above those in line is nonsense of others, such as nanoseconds.
 */
export function scoresOf(
  kind: 'scheduled' | 'waiting',
  { fromMs, toMs }: { readonly fromMs?: number | undefined; readonly toMs?: number | undefined } = {},
): Scores {
  if (kind === 'scheduled') return { from: fromMs ?? '-inf', to: Math.min(toMs ?? WAITS, WAITS) };
  return { from: WAITS + (fromMs ?? 0), to: Math.min(WAITS + (toMs ?? WAITS_END - WAITS), WAITS_END) };
}

/** The scores that never come due: later than a time and not in line, each as ZCOUNT takes it. */
export const beyond = (ms: number): readonly (readonly [from: string, to: string])[] => [
  [`(${ms}`, `(${WAITS}`],
  [String(WAITS_END), '+inf'],
];

/** The due time that a score of scheduled stands for, and whether its job is in line. */
export function dueOf(printed: string): { readonly dueMs: number; readonly isWaiting: boolean } {
  const number = score(printed);
  const isWaiting = number >= WAITS && number < WAITS_END;
  return { dueMs: isWaiting ? number - WAITS : number, isWaiting };
}

/** The name under which ioredis knows a script: no built-in command has this prefix. */
function command(verb: string): string {
  return `duestream_${verb}`;
}

/** The methods of a connection that call a script, by how they give its reply. */
const names: ReadonlyMap<string, { readonly ofText: string; readonly ofBytes: string }> = new Map(
  [...scriptsByVerb.keys()].map((verb) => [verb, { ofText: command(verb), ofBytes: `${command(verb)}Buffer` }]),
);
