/**
 * Limits with a name, which several queues share: one provider allows 10 calls a second, whatever queue they come from. They
 * stand in the registry; docs/decisions/0039 says how they hold in every partition.
 */
import {
  type DefinedLimit,
  isSame,
  parseLimitName,
  parseShared,
  SHARED_MAX,
  type Shared,
  type SharedLimit,
  type SharedLimitOptions,
  type SharedLimits,
  sharedInput,
  sharedText,
} from '../../job/shared-limit.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { limitKeys } from '../../redis/keys.ts';
import { type LedgerRow, ledgerRows, tellLedger } from '../../redis/scripts/lending.ts';
import type { Overriding } from '../../redis/scripts/overrides.ts';
import { changeSharedLimits, listQueues, sharedLimitsIn } from '../../redis/scripts/queues.ts';
import type { Calls } from '../calls/calls.ts';
import { createRepeating, type Repeating } from '../calls/retry.ts';
import type { ClientSettings } from '../calls/settings.ts';
import type { Namespaced } from '../queues/refs.ts';
import { overridingOf, type SettingReason } from '../queues/settings.ts';
import { freeStrays, type LimitStray } from './check.ts';

/** A limit that several queues share, and who has how much of it. */
export interface LimitView extends SharedLimitOptions {
  readonly name: string;
  /** `10/s`, `3 at once`. */
  readonly text: string;
  /** Of a rate: how many jobs may start in a second. */
  readonly perSecond?: number | undefined;
  /** Who said it, and when. */
  readonly by: string;
  readonly atMs: number;
  /** The queues that name it. */
  readonly queues: readonly string[];
  /** Of a concurrency: how many places are lent to partitions. */
  readonly lent: number;
  /** Partitions that have places, or asked for some or for turns within the last minute. */
  readonly partitions: readonly LimitUse[];
}

/** What one partition has of a limit. */
export interface LimitUse {
  readonly queue: string;
  readonly partition: number;
  /** Of a concurrency: places that it has, and places that it needs. */
  readonly share: number;
  readonly need: number;
  /** When its leader asked last, and when it was last given a turn of a rate; epoch ms, 0: never. */
  readonly askedMs: number;
  readonly servedMs: number;
}

/** What became of a call that changes a limit. */
export interface LimitChange {
  /** `same`: it was so already. */
  readonly status: 'changed' | 'same';
  readonly before?: SharedLimitOptions | undefined;
  readonly after?: SharedLimitOptions | undefined;
}

/** Limits that several queues share. A queue names them: `defineQueue('mails', { limits: ['provider'] })`. */
export interface Limits {
  /**
   * Defines a limit or changes it: a rate or a concurrency of all queues together that name it. It holds at once; the later of two
   * calls counts, whoever made it.
   *
   * @throws DuestreamError `bad-input`, also for more than 100 names
   * @example await client.limits.set('provider', { rate: '10/s' });
   */
  set(name: string, limit: SharedLimitOptions, options?: SettingReason): Promise<LimitChange>;
  /**
   * Takes a limit away that no queue names.
   *
   * @throws DuestreamError `bad-input`, also for a limit that a queue names
   */
  remove(name: string, options?: SettingReason): Promise<LimitChange>;
  /** All of them by name, with who has how much. */
  list(): Promise<readonly LimitView[]>;
  /**
   * Takes back places of a concurrency that partitions have which do not name the limit any more, as far as nobody uses them. Their
   * leaders do it by themselves, unless they changed just then.
   *
   * @param name of one limit; left out: of all
   * @throws DuestreamError `bad-input` for what is no name · `not-found`
   */
  check(name?: string): Promise<readonly LimitStray[]>;
}

interface LimitsParts {
  readonly place: () => Promise<Namespaced>;
}

/** What a call is made on. */
interface At extends Namespaced {
  readonly steps: Repeating;
}
type AtNow = At & { readonly nowMs: number };

export function limitsOver(
  { clock, budgetMs }: Pick<ClientSettings, 'clock' | 'budgetMs'>,
  { runChecked }: Pick<Calls<LimitsParts>, 'runChecked'>,
): Limits {
  const call = <Ask, T>(what: string, read: () => Ask, work: (at: AtNow, ask: Ask) => Promise<T>) =>
    runChecked(read, async ({ place }, ask) => {
      const steps = createRepeating(what, { clock, budgetMs });
      return work({ ...(await place()), steps, nowMs: clock.wallMs() }, ask);
    });
  return {
    set: (name, limit, options = {}) =>
      call(
        'set a limit',
        () => ({
          name: parseLimitName(name),
          shared: parseShared(name, limit),
          by: overridingOf(options, 'limits.set'),
        }),
        setLimit,
      ),
    remove: (name, options = {}) =>
      call(
        'remove a limit',
        () => ({ name: parseLimitName(name), by: overridingOf(options, 'limits.remove') }),
        removeLimit,
      ),
    list: () => call('list limits', () => undefined, listLimits),
    check: (name) =>
      call(
        'check limits',
        () => (name === undefined ? undefined : parseLimitName(name)),
        ({ steps, ...at }, only) => steps.write(() => freeStrays(at, only)),
      ),
  };
}

/** What is said of one limit. */
interface Said {
  readonly name: string;
  readonly shared: Shared;
  readonly by: Overriding;
}

/** Defines a limit, unless it is so already, and tells its ledger. */
export async function setLimit({ redis, namespace, steps }: At, { name, shared, by }: Said): Promise<LimitChange> {
  let before: DefinedLimit | undefined;
  const now = await steps.write(() =>
    changeSharedLimits(redis, namespace, (limits) => {
      before = limits.all.find((one) => one.name === name);
      return before && isSame(before, shared) ? limits : withLimit(limits, { name, shared, by });
    }),
  );
  const after = now.all.find((one) => one.name === name);
  // Also what is so already: the call before may have died between the registry and the ledger.
  if (after) await steps.write(() => tellLedger(redis, limitKeys(namespace, name), after));
  const status = before && isSame(before, shared) ? 'same' : 'changed';
  return { status, ...(before && { before: sharedInput(before) }), after: sharedInput(shared) };
}

function withLimit({ revision, all }: SharedLimits, { name, shared, by }: Said): SharedLimits {
  const others = all.filter((one) => one.name !== name);
  if (others.length >= SHARED_MAX) {
    throw new DuestreamError(
      'bad-input',
      `limit ${name} would be one of ${others.length + 1}; allowed: at most ${SHARED_MAX}. "duestream limits rm" takes one away that no queue names`,
    );
  }
  const made: DefinedLimit = { ...shared, name, revision: revision + 1, by: by.by, atMs: by.atMs };
  return { revision: revision + 1, all: [...others, made].sort((a, b) => (a.name < b.name ? -1 : 1)) };
}

async function removeLimit({ redis, namespace, steps }: At, { name }: { readonly name: string }): Promise<LimitChange> {
  const naming = await steps.read(async () =>
    (await listQueues(redis, namespace)).flatMap(({ queue, limits = [] }) => (limits.includes(name) ? [queue] : [])),
  );
  if (naming.length > 0) {
    throw new DuestreamError(
      'bad-input',
      `limit ${name} is named by ${naming.join(', ')}; nothing was changed. "duestream queues set ${naming[0]} --limits none" takes it from a queue`,
    );
  }
  let before: DefinedLimit | undefined;
  await steps.write(() =>
    changeSharedLimits(redis, namespace, (limits) => {
      before = limits.all.find((one) => one.name === name) ?? before;
      const all = limits.all.filter((one) => one.name !== name);
      return all.length === limits.all.length ? limits : { ...limits, all };
    }),
  );
  await steps.write(() => redis.unlink(limitKeys(namespace, name).ledger));
  return { status: before ? 'changed' : 'same', ...(before && { before: sharedInput(before) }) };
}

async function listLimits({ redis, namespace, steps }: At): Promise<readonly LimitView[]> {
  return steps.read(async () => {
    const [{ all }, queues] = await Promise.all([sharedLimitsIn(redis, namespace), listQueues(redis, namespace)]);
    const naming = (limit: SharedLimit) =>
      queues.flatMap(({ queue, limits = [] }) => (limits.includes(limit.name) ? [queue] : []));
    return Promise.all(all.map((limit) => viewOf({ redis, namespace }, limit, naming(limit))));
  });
}

async function viewOf(
  { redis, namespace }: { readonly redis: Redis; readonly namespace: string },
  limit: DefinedLimit,
  queues: readonly string[],
): Promise<LimitView> {
  const rows = await ledgerRows(redis, limitKeys(namespace, limit.name));
  const { name, by, atMs } = limit;
  return {
    ...{ name, text: sharedText(limit), ...sharedInput(limit), by, atMs, queues },
    ...(limit.rate && { perSecond: (limit.rate.limit * 1000) / limit.rate.perMs }),
    lent: rows.reduce((sum, { share }) => sum + share, 0),
    partitions: rows.map(useOf),
  };
}

function useOf({ row, share, need, beatMs, servedMs }: LedgerRow): LimitUse {
  const [queue = '', partition = ''] = row.split(':');
  return { queue, partition: Number(partition), share, need, askedMs: beatMs, servedMs };
}
