/**
 * Dead letters of all queues by what they died of: one look says which kinds of trouble there are, since when, and what their jobs
 * have in common. The dead letters of all partitions are looked at newest first, so many at most.
 */
import { groupOf } from '../../job/labels.ts';
import { tagsOfRecord } from '../../job/record-header.ts';
import type { Clock } from '../../kernel/clock.ts';
import { reasonOf } from '../../kernel/reason.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { queuesIn, type UnreadQueue } from '../../redis/read/each-queue.ts';
import { partitionsOf } from '../../redis/scripts/queues.ts';
import { withReadRetry } from '../calls/retry.ts';
import { type ProcessesById, processesOf } from '../queues/processes.ts';
import { alike, errorOf, type Filter, matches, nameOf } from './filter.ts';
import { type LetterStore, newest, type Placed } from './walk.ts';

/** A value that dead letters have, and how many have it. */
export interface DeadLetterShare {
  readonly value: string;
  readonly count: number;
}

/** Dead letters of all queues that died of the same. */
export interface DeadLetterKind {
  /** Without numbers and ids too, where a handler gave it: the text of an `Unrecoverable`. */
  readonly reason: string;
  /** The last error, without numbers and ids. */
  readonly error: string;
  readonly count: number;
  /** When the first and the last of them died, in epoch ms. */
  readonly firstMs: number;
  readonly lastMs: number;
  /** How many died in each step of `stepMs`, from `atMs` on; steps in which none died are left out. */
  readonly times: readonly { readonly atMs: number; readonly count: number }[];
  /** What they share, the most frequent values first, at most 10 of each. */
  readonly shares: DeadLetterShares;
  /** The newest of them. */
  readonly example: {
    readonly queue: string;
    readonly deadLetter: string;
    readonly partition: number;
    readonly id: string;
  };
}

/** What dead letters that died of the same have in common. */
export interface DeadLetterShares {
  readonly queue: readonly DeadLetterShare[];
  /** Names of their jobs. */
  readonly name: readonly DeadLetterShare[];
  /** The hosts of the workers that ran them last; of a worker that is gone, its id. */
  readonly host: readonly DeadLetterShare[];
  /** The versions of these workers, as far as they live. */
  readonly version: readonly DeadLetterShare[];
  readonly group: readonly DeadLetterShare[];
  readonly tag: readonly DeadLetterShare[];
}

/** Dead letters of all queues by what they died of. */
export interface DeadLetterOverview {
  /** The kind that died last comes first; at most 200. */
  readonly kinds: readonly DeadLetterKind[];
  /** Dead letters that are in none of the kinds. */
  readonly others: number;
  /** How long a step of `times` is. */
  readonly stepMs: number;
  readonly scanned: number;
  /** Older dead letters than this, in epoch ms, were not looked at; undefined: all were. */
  readonly untilMs: number | undefined;
  /** Queues that could not be looked through, and why. */
  readonly unread: readonly UnreadQueue[];
}

export interface OverviewAsk {
  readonly filter: Filter;
  /** The names of the queues; undefined: all. */
  readonly wanted: readonly string[] | undefined;
  readonly scanMax: number;
  readonly nowMs: number;
}

export interface OverviewParts {
  readonly redis: Redis;
  readonly namespace: string;
  readonly clock: Clock;
  readonly budgetMs: number;
}

const KINDS_MAX = 200;
const SHARES_MAX = 10;
/** Values that are told apart in one kind. */
const VALUES_MAX = 1000;
const STEPS_MAX = 48;
const MINUTE_MS = 60_000;
const STEPS_MS = [1, 5, 15, 60, 360, 1440, 10_080].map((minutes) => minutes * MINUTE_MS);
/** How long one queue may keep the others waiting: its node may be down. */
const QUEUE_BUDGET_MS = 1000;

export async function overviewIn(
  store: LetterStore,
  { redis, namespace, clock, budgetMs }: OverviewParts,
  { filter, wanted, scanMax, nowMs }: OverviewAsk,
): Promise<DeadLetterOverview> {
  const isWanted = (queue: string) => wanted === undefined || wanted.includes(queue);
  const look = () => Promise.all([queuesIn(redis, namespace, isWanted), processesOf(redis, namespace)]);
  const [listed, processes] = await withReadRetry('overview', look, { clock, budgetMs });
  const refs = listed.all.flatMap((layout) => partitionsOf(namespace, layout));
  const policy = { clock, budgetMs: Math.min(budgetMs, QUEUE_BUDGET_MS) };
  const failed = new Map<string, unknown>();
  const note = ({ queue }: PartitionRef, error: unknown) => failed.set(queue, error);
  const source = newest({ store, policy }, refs, { failed: note });
  const kinds = new Map<string, Kind>();
  let [scanned, others, untilMs]: [number, number, number | undefined] = [0, 0, undefined];
  for await (const { ref, letter } of source) {
    const diedMs = Number.parseInt(letter.entry, 10);
    if (filter.newerMs !== undefined && nowMs - diedMs > filter.newerMs) break;
    scanned += 1;
    if (matches(letter, filter, nowMs) && !count(kinds, { ref, letter }, processes)) others += 1;
    if (scanned < scanMax) continue;
    untilMs = diedMs;
    break;
  }
  const [first] = failed.values();
  if (failed.size > 0 && failed.size === listed.all.length) throw first;
  const unread = [...failed].map(([queue, error]) => ({ queue, why: reasonOf(error) }));
  const stepMs = stepOf([...kinds.values()]);
  const told = [...kinds.values()]
    .toSorted((one, other) => other.lastMs - one.lastMs)
    .map((kind) => toldOf(kind, stepMs));
  return { kinds: told, others, stepMs, scanned, untilMs, unread: [...listed.unread, ...unread] };
}

/** A kind that is being counted. */
interface Kind extends Omit<DeadLetterKind, 'times' | 'shares' | 'count' | 'firstMs'> {
  count: number;
  firstMs: number;
  /** Minute → how many. */
  readonly minutes: Map<number, number>;
  readonly shares: Readonly<Record<keyof DeadLetterShares, Map<string, number>>>;
}

/** Newest first: the first of a kind is its newest. @returns false where there are too many kinds */
function count(kinds: Map<string, Kind>, { ref, letter }: Placed, processes: ProcessesById): boolean {
  const { atMs, entry, id, record, history } = letter;
  const [reason, error] = [alike(letter.reason), errorOf(letter)];
  const key = JSON.stringify([reason, error]);
  const known = kinds.get(key);
  if (!known && kinds.size >= KINDS_MAX) return false;
  const example = { queue: ref.queue, deadLetter: entry, partition: ref.partition, id };
  const kind = known ?? {
    reason,
    error,
    count: 0,
    firstMs: atMs,
    lastMs: atMs,
    minutes: new Map(),
    shares: noShares(),
    example,
  };
  kinds.set(key, kind);
  kind.count += 1;
  kind.firstMs = Math.min(kind.firstMs, atMs);
  add(kind.minutes, Math.floor(atMs / MINUTE_MS));
  const worker = history.at(-1)?.worker;
  const process = worker === undefined ? undefined : processes.get(worker);
  const values: Readonly<Record<keyof DeadLetterShares, readonly (string | undefined)[]>> = {
    queue: [ref.queue],
    name: [nameOf(record)],
    host: [process?.host ?? worker],
    version: [process?.version],
    group: [groupOf(id)],
    tag: tagsOfRecord(record),
  };
  for (const [name, all] of Object.entries(values)) {
    for (const value of all) if (value !== undefined) add(kind.shares[name as keyof DeadLetterShares], value);
  }
  return true;
}

const noShares = (): Kind['shares'] => ({
  queue: new Map(),
  name: new Map(),
  host: new Map(),
  version: new Map(),
  group: new Map(),
  tag: new Map(),
});

function add<Key>(counts: Map<Key, number>, key: Key): void {
  const known = counts.get(key);
  if (known !== undefined || counts.size < VALUES_MAX) counts.set(key, (known ?? 0) + 1);
}

/** The shortest step of which few enough reach from the first to the last. */
function stepOf(kinds: readonly Kind[]): number {
  const spanMs = Math.max(...kinds.map(({ lastMs }) => lastMs)) - Math.min(...kinds.map(({ firstMs }) => firstMs));
  return STEPS_MS.find((stepMs) => spanMs / stepMs <= STEPS_MAX) ?? STEPS_MS.at(-1) ?? MINUTE_MS;
}

function toldOf({ minutes, shares, ...kind }: Kind, stepMs: number): DeadLetterKind {
  const steps = new Map<number, number>();
  for (const [minute, many] of minutes) {
    const atMs = Math.floor((minute * MINUTE_MS) / stepMs) * stepMs;
    steps.set(atMs, (steps.get(atMs) ?? 0) + many);
  }
  const times = [...steps].map(([atMs, many]) => ({ atMs, count: many })).sort((one, other) => one.atMs - other.atMs);
  const most = (counts: ReadonlyMap<string, number>) =>
    mostOf([...counts].map(([value, many]) => ({ value, count: many })));
  const { queue, name, host, version, group, tag } = shares;
  return {
    ...kind,
    times,
    shares: {
      queue: most(queue),
      name: most(name),
      host: most(host),
      version: most(version),
      group: most(group),
      tag: most(tag),
    },
  };
}

const mostOf = (shares: readonly DeadLetterShare[]): readonly DeadLetterShare[] =>
  shares.toSorted((one, other) => other.count - one.count || (one.value < other.value ? -1 : 1)).slice(0, SHARES_MAX);

/** The same where reason and error are said in other words: kinds that nobody can tell apart then are one. */
export function retold<Words extends { readonly reason: string | undefined; readonly error: string | undefined }>(
  kinds: readonly DeadLetterKind[],
  wordsOf: (kind: DeadLetterKind) => Words,
): readonly (Omit<DeadLetterKind, 'reason' | 'error'> & Words)[] {
  const all = new Map<string, Omit<DeadLetterKind, 'reason' | 'error'> & Words>();
  for (const kind of kinds) {
    const words = wordsOf(kind);
    const key = JSON.stringify([words.reason, words.error]);
    const known = all.get(key);
    all.set(key, { ...(known ? together(known, kind) : kind), ...words });
  }
  return [...all.values()];
}

type Counted = Omit<DeadLetterKind, 'reason' | 'error'>;

/** Two kinds, of which the first died last. */
function together(one: Counted, other: Counted): Counted {
  const times = new Map(one.times.map(({ atMs, count: many }) => [atMs, many]));
  for (const { atMs, count: many } of other.times) times.set(atMs, (times.get(atMs) ?? 0) + many);
  const both = (name: keyof DeadLetterShares) => {
    const counts = new Map(one.shares[name].map(({ value, count: many }) => [value, many]));
    for (const { value, count: many } of other.shares[name]) counts.set(value, (counts.get(value) ?? 0) + many);
    return mostOf([...counts].map(([value, many]) => ({ value, count: many })));
  };
  return {
    ...one,
    count: one.count + other.count,
    firstMs: Math.min(one.firstMs, other.firstMs),
    times: [...times].map(([atMs, many]) => ({ atMs, count: many })).sort((a, b) => a.atMs - b.atMs),
    shares: {
      queue: both('queue'),
      name: both('name'),
      host: both('host'),
      version: both('version'),
      group: both('group'),
      tag: both('tag'),
    },
  };
}
