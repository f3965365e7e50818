/**
 * Settings → one frozen configuration. Loaded once, at start; nothing reads the environment later.
 *
 *     flags > environment > file > defaults
 *
 * A value outside its range stops the start: the error names the option, the value, where it was set and what is
 * allowed. Values of secrets appear in no message.
 */

import { parseName } from '../job/job.ts';
import type { QueueOptions } from '../job/queue.ts';
import { durationText, show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { asConfig } from '../kernel/option-names.ts';
import { doneLimits } from './done.ts';
import { type Config, type ConfigInput, options, schema } from './options.ts';
import { shown } from './secret.ts';
import {
  type Environment,
  envSettings,
  fileSettings,
  flagSettings,
  type Origin,
  type Setting,
  treeSettings,
} from './settings.ts';
import type { Option } from './table.ts';

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
  const { timeoutMs, ...rest } = settings;
  return timeoutMs === undefined ? rest : { ...rest, timeout: timeoutMs };
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
  const config = withUnits(schema.parse(tree), origins);
  checkTogether(config);
  freeze(config);
  return { config, origins: Object.freeze(origins) };
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

/** Text is read alike wherever it comes from. What cannot be read stays text, and is then refused by the option. */
function fromText({ kind }: Option, text: string): unknown {
  if (kind === 'list') return text.split(',').map((part) => part.trim());
  return kind === 'number' && /^-?\d+$/.test(text) ? Number(text) : text;
}

/** Options that are objects themselves: what they are given to reads them. */
const WHOLE: readonly string[] = ['queues.*.backoff', 'queues.*.history', 'queues.*.broadcast'];

/** Durations get their unit into their names: `mover.lease` → `mover.leaseMs`. */
function withUnits(parsed: unknown, origins: Readonly<Record<string, Origin>>): Config {
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
  const config = renamed(parsed, '') as Config;
  const isSaid = origins['worker.extendEvery']?.from !== 'default';
  const { worker } = config;
  return isSaid ? config : { ...config, worker: { ...worker, extendEveryMs: Math.round(worker.jobLeaseMs / 3) } };
}

/** Rules that bind two options. */
function checkTogether(config: Config): void {
  checkDone(config);
  const { http, worker, roles, done, queues } = config;
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
  if (worker.extendEveryMs * 2 > worker.jobLeaseMs) {
    throw new DuestreamError(
      'bad-config',
      `worker.extendEvery is ${durationText(worker.extendEveryMs)}; allowed: at most half of worker.jobLease, which is ${durationText(worker.jobLeaseMs)}`,
    );
  }
}

/** A repeated call must still be recognised: what is remembered at all is remembered for at least that long. */
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
