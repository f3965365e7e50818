/**
 * The whole keyspace of a test server, seen three ways: `snapshot` with every byte, to prove that a refusal wrote
 * nothing; `picture` with the members and where they are, to state what a transition left behind; and
 * `brokenInvariants`, the sentences of the design that must hold whatever was called.
 */
import { decodeRun, decodeTombstone, isTombstone } from '../../src/job/codec.ts';
import type { Redis } from '../../src/redis/connection/connect.ts';
import type { PartitionKeys } from '../../src/redis/keys.ts';
import { list, type Reply, score, text } from '../../src/redis/scripts/scripts.ts';
import { tagEntries } from './invariants.ts';

/** Where every member of a partition is. Parts that are empty are left out, so `{}` is an empty partition. */
export interface Picture {
  readonly scheduled?: Readonly<Record<string, number>>;
  /** `record`, or `tombstone` and the outcome. */
  readonly jobs?: Readonly<Record<string, string>>;
  /** `running`, `orphaned` (reclaimed, not started again) or `waiting` (in scheduled after a start). */
  readonly runs?: Readonly<Record<string, string>>;
  /** Members of all entries, in their order. */
  readonly ready?: readonly string[];
  /** Consumer → members of the entries it holds. */
  readonly pending?: Readonly<Record<string, readonly string[]>>;
  /** Member and reason of each dead letter. */
  readonly dead?: readonly string[];
  readonly done?: Readonly<Record<string, number>>;
}

/** Everything in the database, and how many writes the server has counted. Equal snapshots: nothing was written. */
export async function snapshot(redis: Redis): Promise<Readonly<Record<string, unknown>>> {
  const keys = (await redis.keys('*')).sort();
  const values = await Promise.all(keys.map(async (key) => [key, await contentOf(redis, key)] as const));
  const writes = /rdb_changes_since_last_save:(\d+)/.exec(await redis.info('persistence'))?.[1];
  return { ...Object.fromEntries(values), writes };
}

export async function picture(redis: Redis, keys: PartitionKeys): Promise<Picture> {
  const { scheduled, done, jobs, runs, ready, pending, dead } = await readAtOnce(redis, keys);
  const memberOf = new Map(ready.map(({ entry, fields }) => [entry, fields.member ?? '']));
  const held: Record<string, string[]> = {};
  for (const { entry, consumer } of pending) {
    held[consumer] = [...(held[consumer] ?? []), memberOf.get(entry) ?? `${entry} is gone`];
  }
  const parts: Picture = {
    scheduled,
    jobs: mapped(jobs, (value) => (isTombstone(value) ? `tombstone ${decodeTombstone(value)?.outcome}` : 'record')),
    runs: mapped(runs, whatRun),
    ready: [...memberOf.values()],
    pending: held,
    dead: dead.map(({ fields }) => `${fields.member}: ${fields.reason}`),
    done,
  };
  return Object.fromEntries(Object.entries(parts).filter(([, part]) => Object.keys(part).length > 0));
}

/** Sentences that do not hold in this partition. A worker may still end its jobs meanwhile. */
export async function brokenInvariants(redis: Redis, keys: PartitionKeys): Promise<readonly string[]> {
  const { ready: entries, pending, tags, ...found } = await readAtOnce(redis, keys);
  const scheduled = new Set(Object.keys(found.scheduled));
  const done = new Set(Object.keys(found.done));
  const jobs = Object.entries(found.jobs);
  const ready = new Set(entries.map(({ fields }) => fields.member ?? ''));
  const ids = new Set(entries.map(({ entry }) => entry));
  const records = new Set(jobs.filter(([, value]) => !isTombstone(value)).map(([member]) => member));
  // What begins with a zero byte is a set.
  const tombstones = jobs.filter(([name, value]) => isTombstone(value) && name[0] !== '\0').map(([member]) => member);
  const runs = Object.keys(found.runs);
  const wanted = tagEntries(jobs);
  const indexed = (member: string) => scheduled.has(member) || ready.has(member);
  return [
    ...[...records].filter((member) => !indexed(member)).map((member) => `I2 ${member} is lost`),
    ...tombstones
      .filter((member) => !done.has(member) && !ready.has(member))
      .map((member) => `I2 the tombstone of ${member} never expires`),
    ...[...scheduled]
      .filter((member) => member.startsWith('j:') && !records.has(member))
      .map((member) => `I3 ${member} is scheduled without a record`),
    ...pending.filter(({ entry }) => !ids.has(entry)).map(({ entry }) => `I4 ${entry} is pending but not in ready`),
    ...runs.filter((member) => !records.has(member)).map((member) => `I12 the run of ${member} has no record`),
    ...[...new Set([...tags, ...wanted])]
      .filter((entry) => !tags.includes(entry) || !wanted.includes(entry))
      .map((entry) => `I15 the index of tags and the records disagree about ${entry}`),
  ];
}

/** I11: what came in is what is live and what went out. Says both sides when they differ. */
export async function brokenBalance(redis: Redis, keys: PartitionKeys): Promise<readonly string[]> {
  const meta = await redis.hgetall(keys.meta);
  const sum = (...names: string[]) => names.reduce((total, name) => total + Number(meta[`n.${name}`] ?? 0), 0);
  const live = Object.values(await redis.hgetall(keys.jobs)).filter((value) => !isTombstone(value)).length;
  const into = sum('scheduled', 'replayed', 'adopted');
  const out = sum('done', 'dead', 'cancelled', 'expired');
  return into === live + out ? [] : [`I11 ${into} came in, ${live} are live and ${out} went out`];
}

/** All of a partition in one transaction: what is read one after the other contradicts itself where a job moves between. */
async function readAtOnce(redis: Redis, keys: PartitionKeys) {
  const reading = redis.multi();
  reading.zrange(keys.scheduled, '0', '-1', 'WITHSCORES').zrange(keys.done, '0', '-1', 'WITHSCORES');
  reading.hgetall(keys.jobs).hgetall(keys.runs).zrange(keys.tags, '0', '-1');
  reading.xrange(keys.ready, '-', '+').xrange(keys.dead, '-', '+');
  reading.exists(keys.ready).xpending(keys.ready, 'workers', '-', '+', 1000);
  const replies = (await reading.exec()) ?? [];
  const reply = <Kind>(at: number): Kind => {
    const [error, value] = replies[at] ?? [new Error(`there is no reply ${at}`)];
    if (error) throw error;
    return value as Kind;
  };
  return {
    scheduled: scores(reply(0)),
    done: scores(reply(1)),
    jobs: reply<Record<string, string>>(2),
    runs: reply<Record<string, string>>(3),
    tags: reply<readonly string[]>(4),
    ready: reply<readonly FlatEntry[]>(5).map(entryOf),
    dead: reply<readonly FlatEntry[]>(6).map(entryOf),
    // A stream that is not there has no group.
    pending: reply(7) === 0 ? [] : reply<Reply[]>(8).map(pendingOf),
  };
}

type FlatEntry = readonly [id: string, flat: readonly string[]];

interface StreamEntry {
  readonly entry: string;
  readonly fields: Readonly<Record<string, string>>;
}

export async function streamOf(redis: Redis, key: string): Promise<readonly StreamEntry[]> {
  return (await redis.xrange(key, '-', '+')).map(entryOf);
}

const entryOf = ([entry, flat]: FlatEntry): StreamEntry => ({
  entry,
  fields: Object.fromEntries(flat.flatMap((name, at) => (at % 2 === 0 ? [[name, flat[at + 1] ?? '']] : []))),
});

const pendingOf = (item: Reply) => ({ entry: text(list(item)[0]), consumer: text(list(item)[1]) });

function whatRun(value: string): string {
  const run = decodeRun(value);
  if (run === undefined) return `unreadable: ${value}`;
  if (run.owner !== undefined) return 'running';
  return run.entry === undefined ? 'waiting' : 'orphaned';
}

function scores(flat: readonly string[]): Record<string, number> {
  return Object.fromEntries(flat.flatMap((member, at) => (at % 2 === 0 ? [[member, score(flat[at + 1] ?? '')]] : [])));
}

function mapped<T>(of: Readonly<Record<string, string>>, change: (value: string) => T): Record<string, T> {
  return Object.fromEntries(Object.entries(of).map(([name, value]) => [name, change(value)]));
}

/** Times to live are not compared to the millisecond: only whether there is one. */
async function contentOf(redis: Redis, key: string): Promise<unknown> {
  const type = await redis.type(key);
  const expires = (await redis.pttl(key)) >= 0;
  if (type === 'zset') return { expires, value: await redis.zrange(key, '0', '-1', 'WITHSCORES') };
  if (type === 'hash') return { expires, value: await redis.hgetall(key) };
  if (type === 'stream') return { expires, value: await redis.call('XINFO', 'STREAM', key, 'FULL', 'COUNT', 0) };
  if (type === 'set') return { expires, value: (await redis.smembers(key)).sort() };
  return { expires, value: await redis.get(key) };
}
