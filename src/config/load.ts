/**
 * Settings → one frozen configuration. Loaded once, at start; nothing reads the environment later.
 *
 *     flags > environment > file > defaults
 *
 * A value outside its range stops the start: the error names the option, the value, where it was set and what is
 * allowed. Values of secrets appear in no message.
 */

import { statSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { parseName } from '../job/job.ts';
import type { QueueOptions } from '../job/queue.ts';
import { asConfig, hintOf } from '../kernel/checks.ts';
import { durationText, show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { isProfile, RHYTHMS } from '../kernel/rhythm.ts';
import { parseYaml, readText } from './file.ts';
import { type Config, type ConfigInput, doneLimits, options, PROFILED, schema } from './options.ts';
import { envName, type Option, shown } from './table.ts';

export interface Loaded {
  readonly config: Config;
  /** Key of each option, such as `mover.lease` → where its value was set. */
  readonly origins: Readonly<Record<string, Origin>>;
}

export interface ConfigSources {
  /** Parsed flags in camelCase: `config`, `redis`, `namespace`, `roles`, `httpPort`, … */
  readonly flags?: Readonly<Record<string, unknown>>;
  readonly env?: Environment;
  readonly cwd?: string;
}

/**
 * The configuration of this process.
 *
 * @throws DuestreamError `bad-config` for an unknown name, a value outside its range, or a file that cannot be read.
 * @example const { config } = loadConfig({ flags: { redis: 'redis://10.0.0.5:6379' } });
 */
export function loadConfig({ flags = {}, env = process.env, cwd = process.cwd() }: ConfigSources = {}): Loaded {
  return resolve([...fileSettings({ flag: flags.config, env, cwd }), ...envSettings(env), ...flagSettings(flags)]);
}

/**
 * A complete configuration from code: what is not given takes its default. Reads neither files nor the environment.
 *
 * @throws DuestreamError `bad-config` as `loadConfig`.
 * @example const config = defineConfig({ redis: { url }, roles: ['mover'], mover: { lease: '3s' } });
 */
export function defineConfig(input: ConfigInput): Config {
  return resolve(treeSettings(input, { from: 'code', name: 'the code' })).config;
}

/** What the configuration says about a queue, in the words of `defineQueue`; it wins over the definition in code. */
export function queueOptions(config: Config, name: string): QueueOptions {
  // A queue may be called "constructor": only own keys count.
  const settings = Object.hasOwn(config.queues, name) ? config.queues[name] : undefined;
  if (settings === undefined) return {};
  const { timeoutMs: timeout, lingerMs: linger, aheadMs: ahead, ...rest } = settings;
  return {
    ...rest,
    ...(timeout !== undefined && { timeout }),
    ...(linger !== undefined && { linger }),
    ...(ahead !== undefined && { ahead }),
  };
}

/** Later settings win. */
function resolve(settings: readonly Setting[]): Loaded {
  const origins: Record<string, Origin> = {};
  for (const { key } of options) if (!key.includes('*')) origins[key] = { from: 'default', name: 'default' };
  const tree: Tree = {};
  for (const setting of settings) {
    plant(tree, setting.path, accepted(setting));
    if (setting.option !== undefined) origins[setting.path.join('.')] = setting.origin;
  }
  applyProfile(tree, origins);
  const config = withUnits(schema.parse(tree));
  checkTogether(config);
  freeze(config);
  return { config, origins: Object.freeze(origins) };
}

/** What nobody has set is as the profile says. */
function applyProfile(tree: Tree, origins: Record<string, Origin>): void {
  const { profile } = tree;
  if (!isProfile(profile) || profile === 'default') return;
  for (const [key, name] of Object.entries(PROFILED)) {
    if (origins[key]?.from !== 'default') continue;
    plant(tree, key.split('.'), RHYTHMS[profile][name]);
    origins[key] = { from: 'default', name: `the profile ${profile}` };
  }
}

/** The value of a setting if its option allows it. */
function accepted({ path, value, origin, option }: Setting): unknown {
  if (path[0] === 'queues') asConfig(() => parseName(path[1], 'queue'));
  if (option === undefined) return value;
  const parsed = typeof value === 'string' ? fromText(option, value.trim()) : value;
  if (option.schema.safeParse(parsed).success) return parsed;
  const given = option.secret === 'value' ? 'hidden here' : show(shown(option, value));
  throw new DuestreamError('bad-config', `${path.join('.')} is ${given} (${origin.name}); allowed: ${option.allowed}`);
}

/** Reads a text alike wherever it comes from. A text that cannot be read stays a text, and its option refuses it. */
function fromText({ kind }: Option, text: string): unknown {
  if (kind === 'list') return text.split(',').map((part) => part.trim());
  return kind === 'number' && /^-?\d+$/.test(text) ? Number(text) : text;
}

/** Options whose value is an object: the code that uses the option reads the object. */
const WHOLE: readonly string[] = ['queues.*.backoff', 'queues.*.history', 'queues.*.broadcast'];

/** Durations get their unit into their names: `mover.lease` → `mover.leaseMs`. */
function withUnits(parsed: unknown): Config {
  const durations = new Set(options.filter(({ kind }) => kind === 'duration').map(({ key }) => key));
  const renamed = (node: unknown, key: string): unknown => {
    if (!isTree(node) || Array.isArray(node) || WHOLE.includes(key)) {
      return node;
    }
    return Object.fromEntries(
      Object.entries(node).map(([name, child]) => {
        const path = key === '' ? name : key === 'queues' ? 'queues.*' : `${key}.${name}`;
        return [durations.has(path) ? `${name}Ms` : name, renamed(child, path)];
      }),
    );
  };
  return renamed(parsed, '') as Config;
}

/** Rules that bind two options. */
function checkTogether(config: Config): void {
  checkDone(config);
  checkUsers(config);
  const { http, roles, done, queues } = config;
  if (roles.includes('http') && http.token === '' && !isLoopback(http.host)) {
    throw new DuestreamError(
      'bad-config',
      `http.host is ${show(http.host)} and http.token is empty; allowed: a loopback address, or a token of 16 or more characters`,
    );
  }
  const forgets = done.windowMs === 0 ? 'window' : done.max === 0 ? 'max' : undefined;
  const effective = Object.keys(queues).find((name) => queues[name]?.delivery === 'effectively-once');
  if (effective !== undefined && forgets !== undefined) {
    throw new DuestreamError(
      'bad-config',
      `queues.${effective}.delivery is effectively-once and done.${forgets} is 0, which remembers nothing; allowed: more than 0`,
    );
  }
}

/**
 * A header is believed only from addresses that are named. And where a name of a stranger may lead to this server, a page of
 * his could send the header through the browser of somebody who sits at such an address.
 */
function checkUsers({ http: { host, userHeader, trustProxy, allowedHosts } }: Config): void {
  if (userHeader === '') return;
  const lacks = trustProxy.length === 0 ? 'trustProxy' : undefined;
  const open = !isLoopback(host) && allowedHosts.length === 0 ? 'allowedHosts' : undefined;
  const missing = lacks ?? open;
  if (missing === undefined) return;
  const allowed = missing === 'trustProxy' ? 'the addresses of the proxies that set it' : 'the names of this server';
  throw new DuestreamError(
    'bad-config',
    `http.userHeader is ${show(userHeader)} and http.${missing} is empty; allowed: ${allowed}`,
  );
}

/** A repeated call must find the end of its job: if Redis keeps ends at all, it keeps them for at least the retry budget. */
function checkDone(config: Config): void {
  const { windowMs, floorMs } = doneLimits(config);
  if (windowMs >= floorMs) return;
  throw new DuestreamError(
    'bad-config',
    `done.window is ${durationText(windowMs)}; allowed: 0, or at least ${durationText(floorMs)}: a minute, and twice the sum of done.retryBudget and redis.commandTimeout, which are ${durationText(config.done.retryBudgetMs)} and ${durationText(config.redis.commandTimeoutMs)}`,
  );
}

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);

interface Tree {
  [key: string]: unknown;
}

function plant(tree: Tree, [key = '', ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) {
    tree[key] = value;
    return;
  }
  const below: Tree = Object.hasOwn(tree, key) && isTree(tree[key]) ? tree[key] : {};
  tree[key] = below;
  plant(below, rest, value);
}

const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null;

function freeze(value: unknown): void {
  if (!isTree(value)) return;
  for (const child of Object.values(value)) freeze(child);
  Object.freeze(value);
}

/*
 * The command line, the environment, a file and code give settings: one flat list of (path, value, origin). Their reader
 * judges names only. It refuses a name that no option has and gives the nearest name, because nobody notices a misspelt
 * setting that is ignored.
 */

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

/** Variables of ours that are read before there is a configuration, and the token of the command `mcp`, which is none of it. */
const BOOTSTRAP = [
  ...['DUESTREAM_CONFIG', 'DUESTREAM_REDIS_SERVER_BIN', 'DUESTREAM_REDIS_SOURCE'],
  'DUESTREAM_API_TOKEN',
];

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
  if (!isSection(tree))
    throw bad(`${origin.name} holds ${show(tree)}; allowed: sections such as "redis:" and "mover:"`);
  return Object.entries(tree).flatMap(([key, value]) => branch([key], value, origin));
}

function branch(path: readonly string[], value: unknown, origin: Origin): readonly Setting[] {
  const option = optionAt(path);
  // An option with nothing behind it, such as a line whose value was deleted, is not set.
  if (value === null || value === undefined)
    return path[0] === 'queues' && path.length === 2 ? [queueAlone(path, origin)] : [];
  if (option !== undefined) {
    return [{ path, value, origin, option }];
  }
  const inside = isSection(value) ? Object.entries(value) : undefined;
  if (inside === undefined) throw unknownKey(path, origin);
  const nested = inside.flatMap(([key, child]) => branch([...path, key], child, origin));
  return path[0] === 'queues' && path.length === 2 ? [queueAlone(path, origin), ...nested] : nested;
}

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
  return bad(`${key} in ${origin.name} is not an option${hintOf(key, known)}`);
}

function unknownVariable(name: string, known: readonly (string | undefined)[]): DuestreamError {
  if (name.startsWith('DUESTREAM_QUEUES_'))
    return bad(`${name} is set; allowed: queues are configured in the file only`);
  const names = [...known.filter((one) => one !== undefined), ...BOOTSTRAP];
  return bad(`${name} is not a variable of duestream${hintOf(name, names)}`);
}

const isSection = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const camelCase = (flag: string): string => flag.replace(/-([a-z])/g, (_, small: string) => small.toUpperCase());

const bad = (message: string): DuestreamError => new DuestreamError('bad-config', message);
