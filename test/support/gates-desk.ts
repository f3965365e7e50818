/**
 * A gated partition, driven verb by verb in a time that stands still unless it is told, and what it holds in words: so that
 * what happens in one reads like a story. `test/redis/gates.test.ts` tells them, and `test/proof/gates.test.ts` to scripts that
 * are broken on purpose.
 */
import { encodeRecord } from '../../src/job/codec.ts';
import { debounceLetter } from '../../src/job/debounce.ts';
import { gateShare, type PartitionGates } from '../../src/job/gate.ts';
import type { GateSettings } from '../../src/job/queue-settings.ts';
import { digestOf } from '../../src/job/record-header.ts';
import type { Redis } from '../../src/redis/connection/connect.ts';
import type { PartitionRef } from '../../src/redis/keys.ts';
import {
  checkGates,
  close,
  GATE_PARTS,
  type GateFlaw,
  type GatePart,
  limit,
  mendGates,
} from '../../src/redis/scripts/gates.ts';
import { createJobs, type Jobs } from '../../src/redis/scripts/jobs.ts';
import { elect } from '../../src/redis/scripts/lease.ts';
import { ownPending, readEntries, readNew, reclaim } from '../../src/redis/scripts/ready.ts';
import type { Claim, Delivery, Taken } from '../../src/redis/scripts/replies.ts';
import { scripts } from '../../src/redis/scripts/script-table.ts';
import { run, text } from '../../src/redis/scripts/scripts.ts';
import { pause, remove, resume } from '../../src/redis/scripts/upkeep.ts';
import { takeSnapshot } from './invariants.ts';
import { watched } from './model-moves.ts';

export const WAITS = 2 ** 52;
/** The moment at which every story begins. */
export const NOW = 1_764_000_000_000;
export const WINDOW_MS = 600_000;

/** `{acme}a` is of the group acme; `high {acme}a` has a priority as well. */
const parsed = (word: string) => {
  const [, priority, id = ''] = /^(?:(high|low) )?(.+)$/.exec(word) ?? [];
  return { id, member: `j:${id}`, tags: priority === undefined ? '' : `;t= ${priority}` };
};
const idOf = (member: string) => member.replace(/^j:/, '');

/** As the scripts have them, without limits of single groups, or as a queue with one partition has them. */
type Limits = string | GateSettings;

function shareOf(limits: Limits): PartitionGates {
  const share =
    typeof limits === 'string' ? { share: limits, groups: [] } : gateShare(limits, { partition: 0, partitions: 1 });
  if (!share) throw new Error('it is gated');
  return share;
}

/** What happens at a desk, with what must be true of it. */
export interface Story {
  readonly title: string;
  readonly tell: (desk: Desk) => Promise<void>;
}

export class Desk {
  readonly redis: Redis;
  readonly ref: PartitionRef;
  readonly jobs: Jobs;
  readonly #gates;
  nowMs = NOW;
  term = '';
  /** What runs, by id. */
  readonly claims = new Map<string, Claim & { readonly worker: string; readonly dueMs: number }>();

  /** What groups have of their own, in the place of a rate of the queue: as the end of a share. */
  own = '';

  /** @param moves rows of the table of transitions that were seen; a move by no row of it fails */
  constructor(redis: Redis, ref: PartitionRef, moves?: Set<string>) {
    const look = () => takeSnapshot(redis, ref.keys);
    const watch = <T extends object>(calls: T) => (moves ? watched(calls, look, moves) : calls);
    this.redis = redis;
    this.ref = ref;
    this.jobs = watch(createJobs(redis));
    this.#gates = watch({
      limit: (share: PartitionGates, slice: number | undefined, term?: string) =>
        limit(redis, ref, { share, term, nowMs: this.nowMs, ...(slice && { slice }) }),
      'mend-gates': (flaws: readonly GateFlaw[]) => mendGates(redis, ref, flaws, this.nowMs),
      remove: () => remove(redis, ref, { force: true }),
    });
  }

  /** A leader, and a queue with these limits; in words: µs per job, burst, concurrency, limit per group. */
  async begin(limits: Limits = '0 1 0 0'): Promise<this> {
    const elected = await elect(this.redis, this.ref, { processId: 'p1', leaseMs: 100_000_000, nowMs: this.nowMs });
    this.term = elected.term;
    const { share } = shareOf(limits);
    const [, , concurrency = '', perGroup = ''] = share.split(' ');
    const [letters = ''] = /(?: sh?)?(?: l\S+)?(?: c)?$/.exec(share) ?? [];
    await this.limit(this.own === '' ? limits : `0 1 ${concurrency} ${perGroup}${this.own}${letters}`);
    return this;
  }

  limit(limits: Limits, { term, slice }: { term?: string; slice?: number } = {}) {
    return this.#gates.limit(shareOf(limits), slice, term);
  }

  /** One call of the script, with what it replied. */
  async limitOnce(limits: Limits, slice: number, term = ''): Promise<string> {
    const { share, groups } = shareOf(limits);
    const args = { now: this.nowMs, term, share, limit: slice };
    return text(await run(this.redis, scripts.limit, { keys: this.ref.keys, args, each: groups.flat() }));
  }

  /** Nobody of a group, or of the queue, which is '', is let through for so long. */
  close(group: string, forMs: number, why?: string) {
    const until = { forMs };
    return close(this.redis, this.ref, { group, until, nowMs: this.nowMs, ...(why !== undefined && { why }) });
  }

  open(group: string) {
    return close(this.redis, this.ref, { group, until: 0, nowMs: this.nowMs });
  }

  /** Schedules them for this moment, or so many ms later; each is due a millisecond after the one before. */
  async put(words: readonly string[], { inMs = -words.length, header = '' } = {}): Promise<void> {
    const items = words.map((word, nth) => {
      const { member, tags } = parsed(word);
      const dueMs = this.nowMs + inMs + nth;
      return { member, dueMs, record: encodeRecord(dueMs, '{}', {}).replace('|', `${header}${tags}|`) };
    });
    const settings = { mode: 'keep', horizonMs: 1e12, bytesMax: 10_000, nowMs: this.nowMs } as const;
    await this.jobs.schedule(this.ref, items, settings);
  }

  /** A new life of the same id. */
  replace(word: string, inMs = 1000) {
    const { member, tags } = parsed(word);
    const dueMs = this.nowMs + inMs;
    const record = encodeRecord(dueMs, '{"d":"new"}', {}).replace('|', `${tags}|`);
    const settings = { mode: 'replace', horizonMs: 1e12, bytesMax: 10_000, nowMs: this.nowMs } as const;
    return this.jobs.schedule(this.ref, [{ member, record, dueMs }], settings);
  }

  /** A debounce call: its order is its moment. */
  async debounce(word: string, { waitMs = 10 } = {}) {
    const { member, tags } = parsed(word);
    const dueMs = this.nowMs + waitMs;
    const letter = debounceLetter(this.nowMs, { waitMs, maxMs: 1000 });
    const record = encodeRecord(dueMs, `{"d":${this.nowMs}}`, {}, letter).replace('|', `${tags}|`);
    const settings = { mode: 'debounce', horizonMs: 1e12, bytesMax: 10_000, nowMs: this.nowMs } as const;
    return this.jobs.schedule(this.ref, [{ member, record, dueMs }], settings);
  }

  async promote({ limit: most = 500, lineMax = 1_000_000 } = {}) {
    const pass = { term: this.term, leaseMs: undefined, limit: most, cap: 1000, lineMax, nowMs: this.nowMs };
    const reply = await this.jobs.promote(this.ref, pass);
    if (reply.kind === 'fenced') throw new Error('nobody else leads');
    return { ...reply, nextMs: reply.nextMs === undefined ? undefined : reply.nextMs - this.nowMs };
  }

  /** Schedules them without a time: in strict order the partition gives each one. How much after now they are due, as it says. */
  async putNow(words: readonly string[]): Promise<(number | undefined)[]> {
    const items = words.map((word) => {
      const { member, tags } = parsed(word);
      return { member, dueMs: 0, record: encodeRecord(this.nowMs, '{}', {}).replace('|', `${tags}|`) };
    });
    const settings = { mode: 'keep', horizonMs: 1e12, bytesMax: 10_000, nowMs: this.nowMs } as const;
    const replies = await this.jobs.schedule(this.ref, items, settings);
    if ('kind' in replies) throw new Error('nobody moves it');
    return replies.map((reply) => {
      const dueMs = 'dueMs' in reply ? reply.dueMs : undefined;
      return dueMs === undefined ? undefined : dueMs - this.nowMs;
    });
  }

  /** They are due and lined up, as far as there is no room. */
  async line(...words: readonly string[]): Promise<void> {
    await this.put(words);
    await this.promote();
  }

  /** A turn of a worker: these are over, and it takes so many more. The ids of what it runs now. */
  async serve(take: number, { over = [], worker = 'w1', given = [] }: Turn = {}): Promise<string[]> {
    const ended = over.map((id) => ({ ...this.claim(id), mark: '' }));
    for (const id of over) this.claims.delete(id);
    const served = await this.jobs.serve(this.ref, { ended, given, take }, this.settings(worker));
    this.last = served;
    return this.#took(served.taken, worker);
  }

  async relay(take: number, { over = [], worker = 'w1' }: Turn = {}): Promise<string[]> {
    const ended = over.map((id) => ({ ...this.claim(id), mark: '' }));
    for (const id of over) this.claims.delete(id);
    const pass = { term: this.term, leaseMs: undefined, limit: 500, cap: 1000 };
    const { promoted, ...served } = await this.jobs.relay(this.ref, { ended, take, pass }, this.settings(worker));
    this.last = served;
    return this.#took(served.taken, worker);
  }

  /** What was read and not started, what was found wrong, and a dead letter: for calls that are made twice. */
  given: readonly Delivery[] = [];
  letter = '';
  found: readonly GateFlaw[] = [];
  /** What the last turn was told besides. */
  last: { readonly waiting?: number; readonly taken: readonly Taken[] } = { taken: [] };

  settings(consumer: string) {
    return { consumer, bytesMax: 655_360, windowMs: WINDOW_MS, nowMs: this.nowMs };
  }

  /** What a blocked read would bring. */
  async read(worker = 'w1', count = 10): Promise<Delivery[]> {
    const batches = await readNew(this.redis, [this.ref], { consumer: worker, count, blockMs: 0 });
    return batches.flatMap(({ deliveries }) => [...deliveries]);
  }

  claim(id: string): Claim {
    const claim = this.claims.get(id);
    if (!claim) throw new Error(`${id} does not run; what does: ${[...this.claims.keys()]}`);
    return { entry: claim.entry, member: claim.member, token: claim.token };
  }

  /** Another worker gets the entries of everything that runs; whoever ran it may still end it. */
  async takeOver(): Promise<readonly Delivery[]> {
    const entries = [...this.claims.values()].map(({ entry }) => entry);
    const take = { owner: 'w1', consumer: 'w2', idleMs: 0, limit: 100, entries, nowMs: this.nowMs };
    return (await reclaim(this.redis, this.ref, take)).deliveries;
  }

  /** One end of what runs; a retry and a defer after a second, or so many ms. */
  async settle(
    how: 'retry' | 'defer' | 'bury' | 'commit' | 'complete',
    id: string,
    { delayMs = 1000 } = {},
  ): Promise<void> {
    const [claim, when] = [this.claim(id), { windowMs: WINDOW_MS, nowMs: this.nowMs }];
    this.claims.delete(id);
    const error = '{"m":"x"}';
    const calls = {
      retry: () => this.jobs.retry(this.ref, claim, { ...when, delayMs, error }),
      defer: () => this.jobs.defer(this.ref, claim, { ...when, delayMs, why: error }),
      bury: () => this.jobs.bury(this.ref, claim, { ...when, reason: 'because', error }),
      commit: () => this.jobs.commit(this.ref, claim, { ...when, effects: [] }),
      complete: () => this.jobs.complete(this.ref, [claim], when),
    };
    await calls[how]();
  }

  /** What its start says of the turns that it has used. */
  spend(id: string, turns: number, nth = 1) {
    return this.jobs.spend(this.ref, { ...this.claim(id), nth, turns }, this.nowMs);
  }

  cancel(id: string, windowMs = WINDOW_MS) {
    return this.jobs.cancel(this.ref, [`j:${id}`], { windowMs, nowMs: this.nowMs });
  }

  async reschedule(id: string, inMs: number, mode: 'any' | 'earlier' | 'later' = 'any') {
    const dueMs = this.nowMs + inMs;
    const wishes = [{ member: `j:${id}`, dueMs, mode, seen: '' }] as const;
    return this.jobs.reschedule(this.ref, wishes, { horizonMs: 1e12, nowMs: this.nowMs });
  }

  /** Its priority becomes another one, or its data. */
  async edit(id: string, { priority, data }: { readonly priority?: string; readonly data?: string }) {
    const before = (await this.redis.hget(this.ref.keys.jobs, `j:${id}`)) ?? '';
    const marked = /;m=/.test(before) ? before : before.replace(/^(1\w+)/, `$1;m=${markOf(before)}`);
    const tagged = priority === undefined ? marked : marked.replace(/;t=[^;|]*/, '').replace('|', `;t= ${priority}|`);
    const record = data === undefined ? tagged : `${tagged.slice(0, tagged.indexOf('|'))}|{"d":"${data}"}`;
    return this.jobs.edit(this.ref, [{ member: `j:${id}`, before: digestOf(before), record }], { bytesMax: 10_000 });
  }

  /** By the scripts, which leave the mark of strict order where it is. */
  pauseWell = () => pause(this.redis, this.ref, { reason: 'x', nowMs: this.nowMs });
  resumeWell = () => resume(this.redis, this.ref);

  pause = () => this.redis.hset(this.ref.keys.meta, 'paused', `${this.nowMs} x`);
  resume = () => this.redis.hdel(this.ref.keys.meta, 'paused');

  /** Jobs that wait, by due time. */
  async waiting(): Promise<string[]> {
    return (await this.redis.zrangebyscore(this.ref.keys.scheduled, WAITS, '+inf')).map(idOf);
  }

  /** Jobs that have an entry. */
  async ready(): Promise<string[]> {
    return (await this.redis.xrange(this.ref.keys.ready, '-', '+')).map(([, fields]) => idOf(fields[1] ?? ''));
  }

  /** How many entries nobody has read. */
  async unread(): Promise<number> {
    const { ready } = this.ref.keys;
    const summary = await this.redis.call('XPENDING', ready, 'workers');
    return (await this.redis.xlen(ready)) - Number(Array.isArray(summary) ? summary[0] : 0);
  }

  /** Lanes that are open, in the order of their turns. */
  lanes(): Promise<string[]> {
    return this.redis.zrange(this.ref.keys.lanes, '0', '-1');
  }

  /** Groups with a hold, one for each. */
  async holds(): Promise<string[]> {
    return (await this.redis.zrange(this.ref.keys.holds, '0', '-1')).map((hold) => hold.split('\0')[0] ?? '');
  }

  /** Who has each group in strict order; a dead letter that holds one begins with a mark. */
  async keepers(): Promise<Readonly<Record<string, string>>> {
    const all = Object.entries(await this.redis.hgetall(this.ref.keys.order));
    const kept = all.filter(([group]) => !group.startsWith(' '));
    return Object.fromEntries(kept.map(([group, value]) => [group, value.startsWith('!') ? '!' : idOf(value)]));
  }

  /** The newest dead letter. */
  async deadLetter(): Promise<string> {
    const [newest] = await this.redis.xrevrange(this.ref.keys.dead, '+', '-', 'COUNT', 1);
    return newest?.[0] ?? '';
  }

  replay(deadLetter: string) {
    return this.jobs.replay(this.ref, deadLetter, { nowMs: this.nowMs });
  }

  /** Places in line: group, class, due time after now, member. */
  async places(): Promise<string[]> {
    return (await this.redis.zrange(this.ref.keys.line, '0', '-1')).map((place) => {
      const [group = '', rest = ''] = place.split('\0');
      const late = Number.parseInt(rest.slice(1, 10), 36) - NOW;
      return `${group} ${rest.slice(0, 1)} ${late} ${idOf(rest.slice(10))}`;
    });
  }

  meta(field: string): Promise<string | null> {
    return this.redis.hget(this.ref.keys.meta, field);
  }

  /** How far ahead of now the rate is used, in µs. */
  async ahead(): Promise<number> {
    return Number(/^[\d.]+/.exec((await this.meta('gate')) ?? '0')?.[0]) - this.nowMs * 1000;
  }

  /** Everything that is stored of gates. */
  async picture() {
    const { line, lanes, holds } = this.ref.keys;
    const all = (key: string) => this.redis.zrange(key, '0', '-1', 'WITHSCORES');
    return {
      line: await all(line),
      lanes: await all(lanes),
      holds: await all(holds),
      order: await this.redis.hgetall(this.ref.keys.order),
      scheduled: await all(this.ref.keys.scheduled),
      ready: await this.redis.xrange(this.ref.keys.ready, '-', '+'),
      gates: await this.meta('gates'),
      gate: await this.meta('gate'),
      paused: await this.meta('paused'),
    };
  }

  /** What is wrong, in slices. */
  async flaws(slice = 200, parts: readonly GatePart[] = GATE_PARTS): Promise<GateFlaw[]> {
    const flaws: GateFlaw[] = [];
    for (const part of parts) {
      for (let cursor: string | undefined = ''; cursor !== undefined; ) {
        const page: Awaited<ReturnType<typeof checkGates>> = await checkGates(this.redis, this.ref, {
          part,
          cursor,
          slice,
        });
        if (page.cursor === cursor) throw new Error(`${part} begin again at ${cursor}`);
        flaws.push(...page.flaws);
        cursor = page.cursor;
      }
    }
    return flaws;
  }

  remove() {
    return this.#gates.remove();
  }

  mend(flaws: readonly GateFlaw[]) {
    return this.#gates['mend-gates'](flaws);
  }

  /** A walk of the janitor: each slice is mended before the next. How many flaws there were. */
  async walk(slice: number): Promise<number> {
    let count = 0;
    for (const part of GATE_PARTS) {
      for (let cursor: string | undefined = ''; cursor !== undefined; ) {
        const page: Awaited<ReturnType<typeof checkGates>> = await checkGates(this.redis, this.ref, {
          part,
          cursor,
          slice,
        });
        if (page.flaws.length > 0) await this.mend(page.flaws);
        count += page.flaws.length;
        cursor = page.cursor;
      }
    }
    return count;
  }

  /** How many workers were called meanwhile. */
  async calls(act: () => Promise<unknown>): Promise<number> {
    const listener = this.redis.duplicate({ enableOfflineQueue: true });
    let heard = 0;
    const { work } = this.ref.keys;
    listener.on('smessage', (_channel: string, message: string) => {
      heard += message === 'end' ? 0 : 1;
    });
    const done = new Promise<void>((resolve) => {
      listener.on('smessage', (_channel: string, message: string) => message === 'end' && resolve());
    });
    try {
      await listener.ssubscribe(work);
      await act();
      await this.redis.spublish(work, 'end');
      await done;
    } finally {
      listener.disconnect();
    }
    return heard;
  }

  /** Everything ends, with time going on and a janitor. What was wrong meanwhile, or is left. */
  async finish(concurrency = 0, perGroup = 0): Promise<string[]> {
    const wrong: string[] = [];
    const { scheduled, ready, line, holds, jobs } = this.ref.keys;
    for (let turn = 0; turn < 80; turn += 1) {
      this.nowMs += turn === 0 ? 5000 : 100;
      await this.promote();
      const mine = new Set([...this.claims.values()].map(({ entry }) => entry as string));
      const pending = await ownPending(this.redis, this.ref.keys, { consumer: 'w1', idleMs: 0, limit: 200 });
      const given = await readEntries(
        this.redis,
        this.ref.keys,
        pending.filter((entry) => !mine.has(entry)),
      );
      await this.serve(0, { given });
      wrong.push(...this.#overs(concurrency, perGroup));
      await this.serve(3, { over: [...this.claims.keys()] });
      wrong.push(...this.#overs(concurrency, perGroup));
      const flaws = await this.flaws(200, [...GATE_PARTS, 'order']);
      if (flaws.length > 0) await this.mend(flaws);
      const held = Object.entries(await this.keepers()).filter(([, keeper]) => keeper === '!');
      for (const [group] of held) await this.open(group);
      const left = (await this.redis.zcard(scheduled)) + (await this.redis.xlen(ready));
      if (left + this.claims.size === 0) break;
    }
    for (const [name, size] of [
      ['scheduled', await this.redis.zcard(scheduled)],
      ['ready', await this.redis.xlen(ready)],
      ['line', await this.redis.zcard(line)],
      ['holds', await this.redis.zcard(holds)],
    ] as const) {
      if (size > 0) wrong.push(`${size} are left in ${name}`);
    }
    const live = Object.entries(await this.redis.hgetall(jobs)).filter(([, content]) => !content.startsWith('.'));
    return [...wrong, ...live.map(([member]) => `${member} is live`)];
  }

  #overs(concurrency: number, perGroup: number): string[] {
    const groups = [...this.claims.keys()].map((id) => /^\{(.+?)\}/.exec(id)?.[1] ?? '');
    const most = Math.max(0, ...groups.map((one) => (one === '' ? 0 : groups.filter((other) => other === one).length)));
    return [
      ...(concurrency > 0 && this.claims.size > concurrency ? [`${this.claims.size} run`] : []),
      ...(perGroup > 0 && most > perGroup ? [`${most} of a group run`] : []),
    ];
  }

  #took(taken: readonly Taken[], worker: string): string[] {
    return taken.flatMap((one) => {
      if (one.kind !== 'run' && one.kind !== 'again') return [];
      this.claims.set(idOf(one.member), { ...one, worker });
      return [idOf(one.member)];
    });
  }
}

interface Turn {
  readonly over?: readonly string[];
  readonly worker?: string;
  readonly given?: readonly Delivery[];
}

/** What an edit has to keep: the asked due time and the digest of the first record. */
const markOf = (record: string) => `${/^1(\w+)/.exec(record)?.[1]}.${digestOf(record)}`;
