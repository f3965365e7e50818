/**
 * The Redis of BullMQ: what an import reads there, and how it takes jobs. A job is taken out of its place by a script, so that a
 * worker of BullMQ either has it or never gets it; its hash and what its call here will say stay until duestream has confirmed it.
 *
 *   place ──take──▶ taken ──(duestream has it)──▶ settle: hash, logs and deduplication key are removed
 *
 * An import that is killed in between leaves the job in `taken`, and the next one goes on with it.
 */
import { membersOf } from '../../redis/connection/cluster/members.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { Flaw } from '../flaw.ts';
import {
  type BullJob,
  type BullQueue,
  type BullScheduler,
  JOB_FIELDS,
  keyOf,
  type Place,
  places,
  readJob,
  readScheduler,
  SCHEDULER_FIELDS,
  schedulerJobId,
  TAKEN,
  TAKEN_SCHEDULERS,
  waitingPlaces,
} from './layout.ts';

/** An id in its place; the score is empty in a list. */
export interface Placed {
  readonly id: string;
  readonly score: string;
}

/** A job that is to be taken, and what is kept of its call here. */
export interface Taking extends Placed {
  readonly kept: Kept;
}

/** What the call of a taken job says, so that it is the same call when it is made again. */
export interface Kept {
  readonly dueMs: number;
  readonly takenMs: number;
  /** Whether the queue here had limits. */
  readonly isGated: boolean;
  /** The id here. */
  readonly id: string;
}

/** A scheduler, and when its next job is due. */
export interface FoundScheduler {
  readonly id: string;
  readonly nextMs: number;
  /** An import has taken it before, and was cut short. */
  readonly isTaken: boolean;
  readonly scheduler: BullScheduler | Flaw;
}

/** A queue as a whole. */
export interface QueueFacts {
  /** The version that wrote it last, as it says it: `bullmq:5.81.5`. */
  readonly version: string | undefined;
  readonly isPaused: boolean;
  readonly concurrency: string | undefined;
  readonly rate: string | undefined;
  /** What is not imported: jobs that run, jobs that are over, and parents of flows. */
  readonly active: number;
  readonly completed: number;
  readonly parents: number;
}

const SCAN_COUNT = 500;

/** The names of the queues of a prefix, sorted. */
export async function bullQueues(redis: Redis, prefix: string): Promise<readonly string[]> {
  const [begin, end] = [`${prefix}:`, ':meta'];
  const pattern = `${prefix.replace(/[*?[\]\\]/g, '\\$&')}:*${end}`;
  const names = new Set<string>();
  for (const node of membersOf(redis)) {
    let cursor = '0';
    do {
      const [next, keys] = await node.scan(cursor, 'MATCH', pattern, 'COUNT', SCAN_COUNT);
      for (const key of keys) names.add(key.slice(begin.length, -end.length));
      cursor = next;
    } while (cursor !== '0');
  }
  // An empty name is that of keys which belong to no queue.
  return [...names].filter((name) => name !== '' && !name.startsWith(':')).sort();
}

export class BullSource {
  readonly queue: BullQueue;
  readonly #redis: Redis;

  constructor(redis: Redis, queue: BullQueue) {
    this.#redis = redis;
    this.queue = queue;
  }

  async exists(): Promise<boolean> {
    return (await this.#redis.exists(this.#key('meta'))) > 0;
  }

  async facts(): Promise<QueueFacts> {
    const [meta, active, completed, parents] = await Promise.all([
      this.#redis.hmget(this.#key('meta'), 'version', 'paused', 'concurrency', 'max', 'duration'),
      this.#redis.llen(this.#key('active')),
      this.#redis.zcard(this.#key('completed')),
      this.#redis.zcard(this.#key('waiting-children')),
    ]);
    const [version, paused, concurrency, max, duration] = meta;
    return {
      version: version ?? undefined,
      isPaused: paused !== null && paused !== undefined,
      concurrency: concurrency ?? undefined,
      rate: max && duration ? `${max} per ${duration} ms` : undefined,
      active,
      completed,
      parents,
    };
  }

  size(place: Place): Promise<number> {
    const key = this.#key(place);
    return places[place] === 'list' ? this.#redis.llen(key) : this.#redis.zcard(key);
  }

  /** Some ids of a place in the order of their turn, from the nth on. */
  async page(place: Place, from: number, count: number): Promise<readonly Placed[]> {
    const key = this.#key(place);
    if (places[place] === 'list') {
      const ids = await this.#redis.lrange(key, -(from + count), -(from + 1));
      return ids.reverse().map((id) => ({ id, score: '' }));
    }
    const found = await this.#redis.zrange(key, String(from), String(from + count - 1), 'WITHSCORES');
    return Array.from({ length: found.length / 2 }, (_, at) => ({
      id: found[2 * at] ?? '',
      score: found[2 * at + 1] ?? '',
    }));
  }

  jobs(ids: readonly string[]): Promise<readonly (BullJob | Flaw)[]> {
    return Promise.all(ids.map((id) => this.job(id)));
  }

  async job(id: string): Promise<BullJob | Flaw> {
    return readJob(id, await this.#redis.hmget(this.#key(id), ...JOB_FIELDS));
  }

  /** The id of the job that holds a deduplication id. */
  async holderOf(deduplication: string): Promise<string | undefined> {
    return (await this.#redis.get(this.#key(`de:${deduplication}`))) ?? undefined;
  }

  /** Every scheduler, and those that an import has taken and not settled. */
  async schedulers(): Promise<readonly FoundScheduler[]> {
    const [found, taken] = await Promise.all([
      this.#redis.zrange(this.#key('repeat'), '0', '-1', 'WITHSCORES'),
      this.#redis.hgetall(this.#key(TAKEN_SCHEDULERS)),
    ]);
    const all = new Map(Object.entries(taken).map(([id, ms]) => [id, { nextMs: Number(ms), isTaken: true }]));
    for (let at = 0; at < found.length; at += 2) {
      all.set(found[at] ?? '', { nextMs: Number(found[at + 1]), isTaken: false });
    }
    return Promise.all(
      [...all].map(async ([id, one]) => ({ id, ...one, scheduler: await this.#scheduler(id, one.nextMs) })),
    );
  }

  async #scheduler(id: string, nextMs: number): Promise<BullScheduler | Flaw> {
    const fields = await this.#redis.hmget(this.#key(`repeat:${id}`), ...SCHEDULER_FIELDS);
    return readScheduler({ id, nextMs }, fields, await this.job(schedulerJobId(id, nextMs)));
  }

  /** @returns the ids that were there as they were seen, and are taken now */
  async take(place: Place, all: readonly Taking[]): Promise<ReadonlySet<string>> {
    if (all.length === 0) return new Set();
    const each = all.flatMap(({ id, score, kept }) => [id, score, textOfKept(kept)]);
    return namesIn(await this.#redis.eval(TAKE, 2, this.#key(place), this.#key(TAKEN), places[place], ...each));
  }

  /** From now on BullMQ makes no job of it. @returns whether it was there as it was seen */
  async takeScheduler(id: string, nextMs: number): Promise<boolean> {
    const keys = [this.#key('repeat'), this.#key(TAKEN_SCHEDULERS)];
    return namesIn(await this.#redis.eval(TAKE, 2, ...keys, 'zset', id, nextMs, nextMs)).has(id);
  }

  /** Jobs that an import has taken and not settled, a page at a time. */
  async *taken(): AsyncGenerator<readonly { readonly id: string; readonly kept: Kept }[]> {
    let cursor = '0';
    do {
      const [next, found] = await this.#redis.hscan(this.#key(TAKEN), cursor, 'COUNT', SCAN_COUNT);
      const page = Array.from({ length: found.length / 2 }, (_, at) => ({
        id: found[2 * at] ?? '',
        kept: keptIn(found[2 * at + 1] ?? ''),
      }));
      if (page.length > 0) yield page;
      cursor = next;
    } while (cursor !== '0');
  }

  takenCount(): Promise<number> {
    return this.#redis.hlen(this.#key(TAKEN));
  }

  /** duestream has them: what BullMQ has of them goes. */
  async settle(all: readonly { readonly id: string; readonly deduplication?: string | undefined }[]): Promise<void> {
    if (all.length === 0) return;
    const each = all.flatMap(({ id, deduplication = '' }) => [id, deduplication]);
    await this.#redis.eval(SETTLE, 1, this.#key(TAKEN), this.#key(''), ...each);
  }

  async settleScheduler(id: string): Promise<void> {
    await this.#redis.eval(SETTLE, 1, this.#key(TAKEN_SCHEDULERS), this.#key('repeat:'), id, '');
  }

  /** Removes the next job of a scheduler from wherever it waits. @returns whether it waited */
  async drop(id: string): Promise<boolean> {
    const keys = [...waitingPlaces, id].map((part) => this.#key(part));
    return (
      (await this.#redis.eval(DROP, keys.length, ...keys, id, ...waitingPlaces.map((place) => places[place]))) === 1
    );
  }

  #key(part: string): string {
    return keyOf(this.queue, part);
  }
}

const textOfKept = ({ dueMs, takenMs, isGated, id }: Kept): string => `${dueMs} ${takenMs} ${Number(isGated)} ${id}`;

function keptIn(text: string): Kept {
  const [dueMs, takenMs, isGated, id = ''] = text.split(' ');
  return { dueMs: Number(dueMs), takenMs: Number(takenMs), isGated: isGated === '1', id };
}

const namesIn = (reply: unknown): ReadonlySet<string> => new Set(Array.isArray(reply) ? reply.map(String) : []);

// Scripts of another product's keys: they are sent as they are, and are none of ours. In a cluster BullMQ puts all keys of a
// queue into one slot.

/** KEYS: place, taken. ARGV: kind of the place; then id, score as it was seen or nothing, and what is kept. */
const TAKE = `
local names = {}
for at = 2, #ARGV, 3 do
  local id, score = ARGV[at], ARGV[at + 1]
  local isThere
  if ARGV[1] == 'list' then
    isThere = redis.call('LREM', KEYS[1], -1, id) > 0
  elseif score == '' or redis.call('ZSCORE', KEYS[1], id) == score then
    isThere = redis.call('ZREM', KEYS[1], id) > 0
  end
  if isThere then
    redis.call('HSET', KEYS[2], id, ARGV[at + 2])
    names[#names + 1] = id
  end
end
return names
`;

/** KEYS: taken. ARGV: what the keys begin with; then id, and its deduplication id or nothing. */
const SETTLE = `
for at = 2, #ARGV, 2 do
  local id, deduplication = ARGV[at], ARGV[at + 1]
  local lock = ARGV[1] .. 'de:' .. deduplication
  if deduplication ~= '' and redis.call('GET', lock) == id then
    redis.call('DEL', lock)
  end
  redis.call('DEL', ARGV[1] .. id, ARGV[1] .. id .. ':logs')
  redis.call('HDEL', KEYS[1], id)
end
`;

/** KEYS: places, and the job. ARGV: id, and the kinds of the places. */
const DROP = `
local isThere = 0
for at = 1, #KEYS - 1 do
  if ARGV[at + 1] == 'list' then
    isThere = math.max(isThere, redis.call('LREM', KEYS[at], 1, ARGV[1]))
  else
    isThere = math.max(isThere, redis.call('ZREM', KEYS[at], ARGV[1]))
  end
end
if isThere == 1 then
  redis.call('DEL', KEYS[#KEYS])
end
return isThere
`;
