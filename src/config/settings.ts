/**
 * Where settings come from: the command line, the environment, a file or code → one flat list of (path, value, origin).
 * Nothing is judged here except names: a name that no option has is refused with the nearest one that exists, because a
 * misspelt setting that is silently ignored is found out at night.
 */
import { statSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { hintOf } from '../kernel/did-you-mean.ts';
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { nameNow } from '../kernel/option-names.ts';
import { parseYaml, readText } from './file.ts';
import { options } from './options.ts';
import { envName, type Option } from './table.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Where a value was set: `name` is the flag, the variable or the file. */
export interface Origin {
  readonly from: 'flag' | 'environment' | 'file' | 'code' | 'default';
  readonly name: string;
}

/** `option` is missing where only the existence of a queue is said. */
export interface Setting {
  readonly path: readonly string[];
  readonly value: unknown;
  readonly origin: Origin;
  readonly option: Option | undefined;
}

/** Variables of ours that are read before there is a configuration. */
const BOOTSTRAP = ['DUESTREAM_CONFIG', 'DUESTREAM_REDIS_SERVER_BIN', 'DUESTREAM_REDIS_SOURCE'];

/** Flags as a command-line parser hands them over, in camelCase. It has refused unknown ones; those not ours are skipped. */
export function flagSettings(flags: Readonly<Record<string, unknown>>): readonly Setting[] {
  return options.flatMap((option) => {
    const value = option.flag === undefined ? undefined : flags[camelCase(option.flag)];
    return value === undefined ? [] : [setting(option, value, { from: 'flag', name: `--${option.flag}` })];
  });
}

/** Variables that begin with `DUESTREAM_`; an empty one counts as not set. A secret may come from a file: `…_FILE`. */
export function envSettings(env: Environment): readonly Setting[] {
  const byName = new Map(options.map((option) => [envName(option), option]));
  const found: Setting[] = [];
  for (const [name, text = ''] of Object.entries(env)) {
    if (!name.startsWith('DUESTREAM_') || BOOTSTRAP.includes(name) || isServiceLink(name, text) || text === '')
      continue;
    const option = byName.get(name);
    if (option !== undefined) {
      found.push(setting(option, text, { from: 'environment', name }));
      continue;
    }
    const secret = name.endsWith('_FILE') ? byName.get(name.slice(0, -'_FILE'.length)) : undefined;
    if (secret?.secret === undefined) throw unknownVariable(name, [...byName.keys()]);
    if (env[name.slice(0, -'_FILE'.length)])
      throw bad(`${name.slice(0, -5)} and ${name} are both set; allowed: one of them`);
    found.push(setting(secret, readText(text, name).trimEnd(), { from: 'environment', name }));
  }
  return found;
}

/** The settings of `--config`, else `DUESTREAM_CONFIG`, else `./duestream.yaml`, which alone may be missing. */
export function fileSettings(place: {
  readonly flag: unknown;
  readonly env: Environment;
  readonly cwd: string;
}): readonly Setting[] {
  const named = place.flag ?? (place.env.DUESTREAM_CONFIG || undefined);
  if (named !== undefined && typeof named !== 'string')
    throw bad(`--config is ${show(named)}; allowed: the path of a file`);
  const name = named ?? 'duestream.yaml';
  const path = isAbsolute(name) ? name : join(place.cwd, name);
  if (named === undefined && statSync(path, { throwIfNoEntry: false }) === undefined) return [];
  const source = place.flag !== undefined ? '--config' : named !== undefined ? 'DUESTREAM_CONFIG' : 'the default';
  return treeSettings(parseYaml(readText(path, source), name) ?? {}, { from: 'file', name });
}

/** The settings in a tree of sections. */
export function treeSettings(tree: unknown, origin: Origin): readonly Setting[] {
  if (!isTree(tree)) throw bad(`${origin.name} holds ${show(tree)}; allowed: sections such as "redis:" and "mover:"`);
  return Object.entries(tree).flatMap(([key, value]) => branch([key], value, origin));
}

function branch(path: readonly string[], value: unknown, origin: Origin): readonly Setting[] {
  const option = optionAt(path);
  // An option with nothing behind it, such as a line whose value was deleted, is not set.
  if (value === null || value === undefined)
    return path[0] === 'queues' && path.length === 2 ? [queueAlone(path, origin)] : [];
  if (option !== undefined) {
    if (option.kind === 'backoff' && origin.from === 'file') checkBackoff(path, value, origin);
    return [{ path, value, origin, option }];
  }
  const inside = isTree(value) ? Object.entries(value) : undefined;
  if (inside === undefined) throw unknownKey(path, origin);
  const nested = inside.flatMap(([key, child]) => branch([...path, key], child, origin));
  return path[0] === 'queues' && path.length === 2 ? [queueAlone(path, origin), ...nested] : nested;
}

/** What a library's function makes has units in its names, and may come from code; in a file nobody writes it so any more. */
function checkBackoff(path: readonly string[], value: unknown, origin: Origin): void {
  const fields = ['delay', 'max', 'steps'];
  for (const name of isTree(value) ? Object.keys(value) : []) {
    const now = nameNow(name, fields);
    if (now !== undefined) throw renamed([...path, name].join('.'), [...path, now].join('.'), origin);
  }
}

const renamed = (key: string, now: string, origin: Origin): DuestreamError =>
  bad(`${key} in ${origin.name} is now ${now}`);

const queueAlone = (path: readonly string[], origin: Origin): Setting => ({
  path,
  value: {},
  origin,
  option: undefined,
});

function optionAt([first = '', second = '', ...rest]: readonly string[]): Option | undefined {
  const key =
    first === 'queues' ? ['queues', '*', ...rest].join('.') : [first, second, ...rest].filter(Boolean).join('.');
  return options.find((option) => option.key === key);
}

const setting = (option: Option, value: unknown, origin: Origin): Setting => ({
  path: option.key.split('.'),
  value,
  origin,
  option,
});

/**
 * Kubernetes gives every pod variables for every service of its namespace. A service called duestream must not keep
 * duestream from starting, so `DUESTREAM_SERVICE_HOST`, `DUESTREAM_PORT=tcp://…` and their kin are passed over.
 */
function isServiceLink(name: string, text: string): boolean {
  if (/_SERVICE_(HOST|PORT(_\w+)?)$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$/.test(name)) return true;
  return name.endsWith('_PORT') && /^(tcp|udp|sctp):\/\//.test(text);
}

function unknownKey(path: readonly string[], origin: Origin): DuestreamError {
  const key = path.join('.');
  const known = options.map((option) => option.key.replace('*', path[1] ?? '*'));
  const inside = known.filter((name) => name.startsWith(`${key}.`));
  if (inside.length > 0) return bad(`${key} in ${origin.name} is a section; allowed in it: ${inside.join(', ')}`);
  const now = nameNow(key, known);
  if (now !== undefined) return renamed(key, now, origin);
  return bad(`${key} in ${origin.name} is not an option${hintOf(key, known)}`);
}

function unknownVariable(name: string, known: readonly (string | undefined)[]): DuestreamError {
  if (name.startsWith('DUESTREAM_QUEUES_'))
    return bad(`${name} is set; allowed: queues are configured in the file only`);
  const names = [...known.filter((one) => one !== undefined), ...BOOTSTRAP];
  const now = nameNow(name, names);
  return bad(
    now === undefined ? `${name} is not a variable of duestream${hintOf(name, names)}` : `${name} is now ${now}`,
  );
}

const isTree = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const camelCase = (flag: string): string => flag.replace(/-([a-z])/g, (_, small: string) => small.toUpperCase());

const bad = (message: string): DuestreamError => new DuestreamError('bad-config', message);
