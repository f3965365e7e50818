/**
 * A queue with limits in two worlds: the jobs of the test kit, and the scripts of a real Redis, which are told what time it is.
 * Both take the same calls, and a start lasts as long and ends in the same way in both; so each call must have the same reply,
 * and the jobs must start in the same order at the same moments.
 */
import { fixed } from '../../src/job/backoff.ts';
import { memberOf } from '../../src/job/codec.ts';
import { gateShare } from '../../src/job/gate.ts';
import { type CloseScope, Defer, Unrecoverable } from '../../src/job/outcome.ts';
import { defineQueue } from '../../src/job/queue.ts';
import type { GateSettings } from '../../src/job/queue-settings.ts';
import type { Redis } from '../../src/redis/connection/connect.ts';
import type { PartitionRef } from '../../src/redis/keys.ts';
import { peek } from '../../src/redis/read/inspect.ts';
import type { EditItem, RescheduleItem } from '../../src/redis/scripts/edits.ts';
import { close, limit } from '../../src/redis/scripts/gates.ts';
import { createJobs, type Jobs } from '../../src/redis/scripts/jobs.ts';
import { elect } from '../../src/redis/scripts/lease.ts';
import { ensureGroup } from '../../src/redis/scripts/ready.ts';
import type { Claim, ScheduleItem } from '../../src/redis/scripts/replies.ts';
import { pause, resume } from '../../src/redis/scripts/upkeep.ts';
import { createAgenda, virtualClock } from '../../src/testing/agenda.ts';
import { cancel, reschedule, rewrite } from '../../src/testing/changes.ts';
import { createJobBook } from '../../src/testing/jobs.ts';
import { dueOf } from '../../src/testing/kept.ts';
import { servedBy } from '../../src/testing/served.ts';
import { defineHandlers } from '../../src/worker/run/handlers.ts';

const WINDOW_MS = 600_000;
const HORIZON_MS = 1e11;
const BYTES_MAX = 10_000;
/** Retries are due at moments that end with 7, deferred jobs at those that end with 0: see `Fates`. */
const RETRY_MS = 44;
const DEFER_MS = 27;
/** Of each start. */
const TIMEOUT_MS = 70;
/** Lanes that wait for a time have this and the time as their score. */
const TIMED = 3 * 2 ** 50;

/** What becomes of a start. */
export interface Fate {
  /** At least. */
  readonly lastsMs: number;
  readonly outcome: 'done' | 'retry' | 'defer' | 'dead';
  /** Of a start that is deferred. */
  readonly closes?: CloseScope | undefined;
}

/** What the calls of a test need; replies are those of the scripts. */
export interface World {
  readonly schedule: (item: ScheduleItem, mode: 'keep' | 'replace') => Promise<unknown>;
  readonly cancel: (id: string) => Promise<unknown>;
  readonly reschedule: (id: string, to: Pick<RescheduleItem, 'dueMs' | 'mode'>) => Promise<unknown>;
  readonly edit: (id: string, change: Pick<EditItem, 'before' | 'record'>) => Promise<unknown>;
  readonly limit: (settings: GateSettings) => Promise<unknown>;
  /** @param forMs 0: it opens */
  readonly close: (group: string, forMs: number) => Promise<unknown>;
  readonly setPaused: (isPaused: boolean) => Promise<unknown>;
  readonly advanceTo: (ms: number) => Promise<void>;
  /** Where a job is, and when it is due. */
  readonly place: (id: string) => Promise<string>;
  /** `moment id` of each start. */
  readonly starts: readonly string[];
}

/** No two starts end at the same moment, and none when a job becomes due: what is first then is nobody's promise. */
class Fates {
  readonly #of: (id: string, attempt: number) => Fate;
  readonly #ends = new Set<number>();
  readonly #attempts = new Map<string, number>();

  constructor(of: (id: string, attempt: number) => Fate) {
    this.#of = of;
  }

  start(id: string, nowMs: number): Fate & { readonly endMs: number } {
    const attempt = (this.#attempts.get(id) ?? 0) + 1;
    this.#attempts.set(id, attempt);
    const fate = this.#of(id, attempt);
    let endMs = nowMs + fate.lastsMs;
    while (endMs % 10 !== 3 || this.#ends.has(endMs)) endMs += 1;
    this.#ends.add(endMs);
    // Handlers here look at no signal: what takes longer keeps its place until it ends, and has failed then.
    return endMs - nowMs > TIMEOUT_MS ? { ...fate, outcome: 'retry', endMs } : { ...fate, endMs };
  }
}

interface Stage {
  readonly nowMs: number;
  readonly fateOf: (id: string, attempt: number) => Fate;
}

export function kitWorld({ nowMs, fateOf }: Stage): World {
  const starts: string[] = [];
  const fates = new Fates(fateOf);
  const last = new Map<string, Fate>();
  const q = defineQueue('q', { attempts: 1000, backoff: fixed(RETRY_MS), timeout: TIMEOUT_MS });
  const handler = ({ id }: { readonly id: string }) => {
    const outcome = last.get(id)?.outcome;
    if (outcome === 'retry') throw new Error('again');
    if (outcome === 'defer') throw new Defer(DEFER_MS, { close: last.get(id)?.closes });
    if (outcome === 'dead') throw new Unrecoverable('never');
  };
  const agenda = createAgenda(nowMs);
  const book = createJobBook({
    agenda,
    runs: [],
    clock: virtualClock(agenda.nowMs),
    servedBy: servedBy(defineHandlers({ q: handler }, { queues: [q] })),
    queueOf: () => q,
    lastsMs({ id }) {
      const fate = fates.start(id, agenda.nowMs());
      last.set(id, fate);
      starts.push(`${agenda.nowMs()} ${id}`);
      return fate.endMs - agenda.nowMs();
    },
    random: () => 0.5,
    inline: false,
    calls: () => {
      throw new Error('no calls here');
    },
    subscribersOf: () => [],
  });
  return {
    starts,
    schedule: ({ member, record, dueMs }, mode) =>
      book.place(q, { id: member.slice(2), record, dueMs: dueMs || agenda.nowMs(), mode, strict: false }),
    cancel: async (id) => cancel(book, 'q', { id, seen: undefined }),
    reschedule: (id, to) => reschedule(book, 'q', { id, ...to }),
    edit: (id, change) => rewrite(book, 'q', { id, ...change, bytesMax: BYTES_MAX }),
    limit: async (settings) => book.gates.set(q, settings),
    close: async (group, forMs) => book.gates.close(q, { group, until: untilOf(forMs) }),
    async setPaused(isPaused) {
      if (isPaused) return !book.gates.pause(q);
      return book.gates.resume(q);
    },
    advanceTo: (ms) => agenda.advanceTo(ms),
    async place(id) {
      const job = book.find('q', id);
      return job ? `${job.state} ${dueOf(job) ?? ''}` : 'unknown';
    },
  };
}

const untilOf = (forMs: number) => (forMs === 0 ? 0 : { forMs });

interface Started extends Pick<Fate, 'outcome' | 'closes'> {
  readonly claim: Claim;
  readonly endMs: number;
}

/** The scripts, called by a leader and a worker that are never late. */
export class RedisWorld implements World {
  readonly starts: string[] = [];
  readonly #redis: Redis;
  readonly #ref: PartitionRef;
  readonly #jobs: Jobs;
  readonly #fates: Fates;
  readonly #running: Started[] = [];
  #settings: GateSettings = {};
  #term = '';
  #nowMs: number;
  #isPaused = false;

  constructor(redis: Redis, ref: PartitionRef, { nowMs, fateOf }: Stage) {
    this.#redis = redis;
    this.#ref = ref;
    this.#jobs = createJobs(redis);
    this.#fates = new Fates(fateOf);
    this.#nowMs = nowMs;
  }

  async begin(): Promise<this> {
    await ensureGroup(this.#redis, this.#ref.keys);
    this.#term = (await elect(this.#redis, this.#ref, { processId: 'm', leaseMs: 3_600_000 })).term;
    return this;
  }

  async schedule(item: ScheduleItem, mode: 'keep' | 'replace') {
    const settings = { mode, horizonMs: HORIZON_MS, bytesMax: BYTES_MAX, nowMs: this.#nowMs } as const;
    return first(await this.#jobs.schedule(this.#ref, [item], settings));
  }

  async cancel(id: string) {
    return first(await this.#jobs.cancel(this.#ref, [memberOf(id)], { windowMs: WINDOW_MS, nowMs: this.#nowMs }));
  }

  async reschedule(id: string, to: Pick<RescheduleItem, 'dueMs' | 'mode'>) {
    const settings = { horizonMs: HORIZON_MS, nowMs: this.#nowMs };
    return first(await this.#jobs.reschedule(this.#ref, [{ member: memberOf(id), ...to }], settings));
  }

  async edit(id: string, change: Pick<EditItem, 'before' | 'record'>) {
    return first(await this.#jobs.edit(this.#ref, [{ member: memberOf(id), ...change }], { bytesMax: BYTES_MAX }));
  }

  async limit(settings: GateSettings): Promise<void> {
    this.#settings = { ...this.#settings, ...settings };
    const share = gateShare(this.#settings, { partition: 0, partitions: 1 });
    if (share) await limit(this.#redis, this.#ref, { share, nowMs: this.#nowMs });
  }

  async close(group: string, forMs: number) {
    return close(this.#redis, this.#ref, { group, until: untilOf(forMs), nowMs: this.#nowMs });
  }

  async setPaused(isPaused: boolean): Promise<boolean> {
    const before = this.#isPaused;
    this.#isPaused = isPaused;
    if (isPaused) await pause(this.#redis, this.#ref, { reason: '', nowMs: this.#nowMs });
    else await resume(this.#redis, this.#ref);
    return before;
  }

  async advanceTo(ms: number): Promise<void> {
    for (let nextMs = this.#nowMs; nextMs <= ms; ) {
      this.#nowMs = Math.max(this.#nowMs, nextMs);
      const lookMs = await this.#moment();
      nextMs = Math.min(lookMs, ...this.#running.map(({ endMs }) => endMs));
    }
    this.#nowMs = ms;
  }

  async place(id: string): Promise<string> {
    const seen = await peek(this.#redis, this.#ref, memberOf(id));
    return seen && 'state' in seen ? `${seen.state} ${seen.dueMs ?? ''}` : 'unknown';
  }

  /** All that happens now. @returns when the leader looks again */
  async #moment(): Promise<number> {
    for (const one of this.#running.filter(({ endMs }) => endMs <= this.#nowMs)) {
      this.#running.splice(this.#running.indexOf(one), 1);
      await this.#end(one);
    }
    await this.#promote();
    while (await this.#startOne());
    const { nextMs = Number.POSITIVE_INFINITY } = await this.#promote();
    const opensMs = await this.#opensMs();
    return this.#isPaused ? opensMs : Math.min(nextMs, opensMs);
  }

  /** When the next lane opens that waits for a time, also while its queue is closed or rests: as the kit does it. */
  async #opensMs(): Promise<number> {
    const { lanes } = this.#ref.keys;
    const [, score] = await this.#redis.zrangebyscore(lanes, TIMED, '+inf', 'WITHSCORES', 'LIMIT', 0, 1);
    return score === undefined ? Number.POSITIVE_INFINITY : Number(score) - TIMED;
  }

  async #promote() {
    const pass = { term: this.#term, leaseMs: undefined, limit: 500, cap: 10_000, nowMs: this.#nowMs };
    const reply = await this.#jobs.promote(this.#ref, pass);
    if (reply.kind === 'fenced') throw new Error('this leader was deposed');
    return reply;
  }

  async #startOne(): Promise<boolean> {
    const settings = { consumer: 'w', bytesMax: 655_360, windowMs: WINDOW_MS, nowMs: this.#nowMs };
    const { taken } = await this.#jobs.serve(this.#ref, { ended: [], given: [], take: 1 }, settings);
    const [one] = taken;
    if (one?.kind === 'run') {
      const id = one.member.slice(2);
      const { endMs, outcome, closes } = this.#fates.start(id, this.#nowMs);
      this.starts.push(`${this.#nowMs} ${id}`);
      const { entry, member, token } = one;
      this.#running.push({ claim: { entry, member, token }, endMs, outcome, closes });
    } else if (one?.kind === 'late') {
      await this.#jobs.expire(this.#ref, [one], settings);
    }
    return one !== undefined;
  }

  async #end({ claim, outcome, closes }: Started): Promise<void> {
    const when = { windowMs: WINDOW_MS, nowMs: this.#nowMs };
    const error = '{"m":"x"}';
    if (outcome === 'done') await this.#jobs.complete(this.#ref, [claim], when);
    if (outcome === 'retry') await this.#jobs.retry(this.#ref, claim, { ...when, delayMs: RETRY_MS, error });
    const closing = closes && { scope: closes, forMs: DEFER_MS, reason: 'deferred' };
    if (outcome === 'defer') await this.#jobs.defer(this.#ref, claim, { ...when, delayMs: DEFER_MS, closing });
    if (outcome === 'dead') await this.#jobs.bury(this.#ref, claim, { ...when, reason: 'because', error });
  }
}

function first<Reply>(replies: readonly Reply[] | { readonly kind: 'moved' }): Reply | undefined {
  if ('kind' in replies) throw new Error('the queue has moved');
  return replies[0];
}
