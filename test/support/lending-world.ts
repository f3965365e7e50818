/**
 * Queues that share a rate and a concurrency, in virtual time on the real scripts: two ledgers and up to four partitions, each
 * with a clock of its own, up to 500 ms off; leaders that die, and former ones that do not know yet; calls that are lost, whose replies are
 * lost, or that arrive 3 s late. An observer outside of all clocks counts starts and what runs.
 *
 * The product asks and brings (`Borrowing`); what is here is the network, the workers and the producers.
 */

import type { SharedLimit } from '../../src/job/shared-limit.ts';
import { Borrowing, TURN_MS } from '../../src/mover/chores/borrower.ts';
import type { Redis } from '../../src/redis/connection/connect.ts';
import { limitKeys, partitionRef } from '../../src/redis/keys.ts';
import { elect } from '../../src/redis/scripts/lease.ts';
import { borrow, type Gift, lend } from '../../src/redis/scripts/lending.ts';
import { Desk, NOW } from './gates-desk.ts';
import { randomFrom } from './gates-world.ts';
import { createTimes, type Times } from './lending-times.ts';

/** The delay that a ledger allows. */
const DELAY_MS = 100;
/** A leader that died is replaced after this time. */
const TERM_MS = 1000;
/** A reply that has not come by then counts as lost, and the same call is made again. */
const LOST_MS = 300;
const TRIES = 20;

interface Options {
  readonly seed: number;
  /** How long it lives, ms of virtual time. */
  readonly lifeMs: number;
  /** Gifts as they are brought: a test breaks them. */
  readonly bend?: (gift: Gift) => Gift;
}

/** What a walk has seen. */
export interface Seen {
  readonly wrong: string | undefined;
  readonly starts: number;
  /** Of each partition. */
  readonly each: readonly number[];
  /** How near the starts came to what the rate promises: below 0 it holds. */
  readonly nearest: number;
  readonly isCalm: boolean;
  readonly isAlone: boolean;
  readonly perSecond: number;
}

interface Leader {
  isDead: boolean;
  readonly wake: () => void;
}

interface Part {
  readonly nth: number;
  readonly desk: Desk;
  readonly offMs: number;
  leader: Leader | undefined;
  elections: number;
  ended: number;
  started: number;
  jobs: number;
  isBusy: boolean;
  /** Jobs that were put and not started. */
  waiting: number;
}

export class LendingWorld {
  readonly #redis: Redis;
  readonly #options: Options;
  readonly #random: () => number;
  readonly #times: Times = createTimes();
  readonly #parts: readonly Part[];
  readonly #rate: SharedLimit & { readonly rate: object };
  readonly #concurrency: SharedLimit & { readonly concurrency: number };
  readonly #limits: readonly SharedLimit[];
  readonly #offs = new Map<string, number>();
  readonly #starts: number[] = [];
  readonly #isCalm: boolean;
  readonly #isAlone: boolean;
  #wrong: string | undefined;
  /** A script ran since the observer looked. */
  #isSeen = false;

  constructor(redis: Redis, options: Options) {
    this.#redis = redis;
    this.#options = options;
    this.#random = randomFrom(options.seed);
    const limit = this.#pick([10, 50, 100]);
    const burst = this.#pick([1, 5]);
    this.#rate = { name: 'pace', revision: 1, rate: { limit, perMs: 1000, burst } };
    this.#concurrency = { name: 'places', revision: 1, concurrency: this.#pick([1, 3, 8]) };
    this.#limits = this.#pick([[this.#rate, this.#concurrency], [this.#rate], [this.#concurrency]]);
    this.#isCalm = this.#random() < 0.25;
    this.#isAlone = this.#random() < 0.3;
    for (const { name } of [this.#rate, this.#concurrency]) this.#offs.set(name, this.#off());
    const many = this.#isAlone ? 1 : 2 + this.#below(3);
    this.#parts = Array.from({ length: many }, (_, nth) => this.#made(nth));
  }

  #made(nth: number): Part {
    const ref = partitionRef('t', { queue: `q${nth}`, partition: 0, layoutGeneration: 0 });
    const desk = new Desk(this.#redis, ref);
    const counts = { elections: 0, ended: 0, started: 0, jobs: 0, waiting: 0 };
    return { nth, desk, offMs: this.#off(), leader: undefined, isBusy: true, ...counts };
  }

  async walk(): Promise<Seen> {
    const { lifeMs } = this.#options;
    await this.#redis.flushall();
    for (const part of this.#parts) await this.#begin(part);
    while (this.#wrong === undefined && this.#times.nowMs < lifeMs && (await this.#times.next())) await this.#look();
    for (const part of this.#parts) if (part.leader) part.leader.isDead = true;
    await this.#times.end();
    const nearest = this.#nearest();
    return {
      wrong: this.#wrong ?? (nearest > 1e-6 ? `${nearest.toFixed(2)} starts too many for the rate` : undefined),
      starts: this.#starts.length,
      each: this.#parts.map(({ started }) => started),
      nearest,
      isCalm: this.#isCalm,
      isAlone: this.#isAlone,
      perSecond: (this.#rate.rate as { readonly limit: number }).limit,
    };
  }

  async #begin(part: Part): Promise<void> {
    this.#tell(part);
    await part.desk.begin(`0 1 0 0 l${this.#limits.map(({ name }) => name).join(',')}`);
    await this.#elect(part);
    this.#times.at(0, () => this.#feed(part));
    if (!this.#isCalm) this.#times.at(this.#below(4000), () => this.#trouble(part));
  }

  // The people: jobs come, workers run them.

  async #feed(part: Part): Promise<void> {
    const { limit } = this.#rate.rate as { readonly limit: number };
    const room = 300 - part.waiting;
    if ((part.isBusy || this.#random() < 0.1) && room > 0) {
      const many = Math.min(room, Math.ceil(limit / 5) + this.#below(5));
      const words = Array.from({ length: many }, (_, at) => `${part.nth}-${part.jobs + at}`);
      part.jobs += many;
      part.waiting += many;
      this.#tell(part);
      await part.desk.line(...words);
      await this.#serve(part, []);
      part.leader?.wake();
    }
    if (!this.#isAlone && this.#random() < 0.02) part.isBusy = !part.isBusy;
    this.#times.at(100, () => this.#feed(part));
  }

  /** Workers take what they may. */
  async #serve(part: Part, over: readonly string[]): Promise<void> {
    this.#tell(part);
    this.#isSeen = true;
    part.ended += over.length;
    for (const id of await part.desk.serve(20, { over })) {
      const takes = 1 + Math.ceil(this.#random() * (this.#random() < 0.05 ? 4000 : 80));
      this.#times.at(takes, () => this.#serve(part, [id]));
    }
    await this.#count(part);
  }

  /** An entry of ready is a start, whoever has read it. */
  async #count(part: Part): Promise<void> {
    const started = part.ended + (await this.#redis.xlen(part.desk.ref.keys.ready));
    for (; part.started < started; part.started += 1) {
      part.waiting -= 1;
      this.#starts.push(this.#times.nowMs);
    }
  }

  // The leaders.

  async #elect(part: Part): Promise<void> {
    part.elections += 1;
    this.#tell(part);
    await this.#redis.del(part.desk.ref.keys.leader);
    const wanted = { processId: `p${part.elections}`, leaseMs: 100_000_000, nowMs: part.desk.nowMs };
    const { term } = await elect(this.#redis, part.desk.ref, wanted);
    part.desk.term = term;
    this.#lead(part, { term, epoch: Number(/:(\d+):\d+$/.exec(term)?.[1]) });
  }

  #lead(part: Part, leadership: { readonly term: string; readonly epoch: number }): void {
    let cut: () => void = () => undefined;
    const leader: Leader = { isDead: false, wake: () => cut() };
    part.leader = leader;
    const { ref } = part.desk;
    const alive = () => !leader.isDead;
    const { bend = (gift: Gift) => gift } = this.#options;
    const borrowing = new Borrowing({
      row: `${ref.queue}:0`,
      leading: () => (alive() ? leadership : undefined),
      limits: () => this.#limits,
      clock: { monotonicMs: () => this.#times.nowMs },
      calls: {
        lend: (limit, ask) =>
          this.#call(alive, () => {
            const nowMs = this.#clockOf(this.#offs.get(limit.name));
            return lend(this.#redis, limitKeys('t', limit.name), { limit, ask, nowMs });
          }),
        borrow: (term, gifts) =>
          this.#call(alive, async () => {
            this.#tell(part);
            const { nowMs } = part.desk;
            const reply = await borrow(this.#redis, ref, { term, gifts: gifts.map(bend), nowMs });
            if (reply.kind === 'ok') await this.#serve(part, []);
            return reply;
          }).then((reply) => {
            if (reply.kind === 'fenced') leader.isDead = true;
            return reply;
          }),
      },
    });
    const turn = async (): Promise<void> => {
      while (alive()) {
        const said = await borrowing.pass().catch(() => 50);
        const restMs = typeof said === 'number' ? said : said.idleMs;
        await new Promise<void>((resolve) => {
          cut = resolve;
          this.#times.at(restMs, resolve);
        });
      }
    };
    this.#times.at(0, () => void turn());
  }

  async #trouble(part: Part): Promise<void> {
    if (this.#random() < 0.5) {
      if (part.leader) part.leader.isDead = true;
      this.#times.at(TERM_MS, () => this.#elect(part));
    } else {
      // The former one does not know yet.
      await this.#elect(part);
    }
    this.#times.at(500 + this.#below(6000), () => this.#trouble(part));
  }

  // The network: a call may be lost, or its reply; it may come seconds late; the same call is made again.

  #call<T>(alive: () => boolean, send: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      let isAnswered = false;
      const isLost = () => !this.#isCalm && this.#random() < 0.03;
      const attempt = (tries: number): void => {
        if (!isLost()) {
          this.#times.at(this.#delay(), async () => {
            const reply = await send();
            this.#isSeen = true;
            if (isLost()) return;
            this.#times.at(this.#delay(), () => {
              if (isAnswered || !alive()) return;
              isAnswered = true;
              resolve(reply);
            });
          });
        }
        this.#times.at(LOST_MS, () => {
          if (isAnswered || !alive()) return;
          if (tries < TRIES) attempt(tries + 1);
          else reject(new Error('no reply'));
        });
      };
      attempt(0);
    });
  }

  #delay(): number {
    return this.#isCalm || this.#random() < 0.95 ? this.#below(3) : this.#below(3000);
  }

  // The observer.

  /** After each event in which a script ran: nobody has more than the ledger says, and the ledger no more than the limit. */
  async #look(): Promise<void> {
    if (!this.#isSeen) return;
    this.#isSeen = false;
    const { name, concurrency } = this.#concurrency;
    if (!this.#limits.includes(this.#concurrency)) return;
    const asked = this.#redis.pipeline().hgetall(limitKeys('t', name).ledger);
    for (const { desk } of this.#parts) asked.xlen(desk.ref.keys.ready).hget(desk.ref.keys.meta, 'lent');
    const [rows, ...said] = ((await asked.exec()) ?? []).map(([, reply]) => reply);
    const lent = new Map(
      Object.entries(rows as Readonly<Record<string, string>>).flatMap(([row, text]) =>
        row.includes(':') ? [[row, Number(text.split(' ')[2])] as const] : [],
      ),
    );
    const all = [...lent.values()].reduce((sum, share) => sum + share, 0);
    if (all > concurrency) this.#fail(`the ledger has lent ${all} of ${concurrency}`);
    const running = this.#parts.reduce((sum, _, nth) => sum + Number(said[2 * nth]), 0);
    if (running > concurrency) this.#fail(`${running} run, and ${concurrency} may`);
    for (const [nth, { desk }] of this.#parts.entries()) {
      const share = Number(/places=c,\d+:\d+,\d+,(\d+)/.exec(String(said[2 * nth + 1]))?.[1] ?? 0);
      const has = lent.get(`${desk.ref.queue}:0`) ?? 0;
      if (share > has) this.#fail(`${desk.ref.queue} has ${share} places, and the ledger says ${has}`);
    }
  }

  #fail(what: string): void {
    this.#wrong ??= `${what}, after ${this.#times.nowMs} ms`;
  }

  /** The most by which any time t had more starts than rate · (t + 350 ms) + burst. */
  #nearest(): number {
    const { limit, burst } = this.#rate.rate as { readonly limit: number; readonly burst: number };
    const perMs = limit / 1000;
    const allowed = (TURN_MS + DELAY_MS) * perMs + burst;
    if (!this.#limits.includes(this.#rate)) return Number.NEGATIVE_INFINITY;
    let least = Number.POSITIVE_INFINITY;
    let most = Number.NEGATIVE_INFINITY;
    for (const [nth, atMs] of this.#starts.entries()) {
      least = Math.min(least, nth - atMs * perMs);
      most = Math.max(most, nth - atMs * perMs - least + 1);
    }
    return most - allowed;
  }

  #tell(part: Part): void {
    part.desk.nowMs = this.#clockOf(part.offMs);
  }

  #clockOf(offMs = 0): number {
    return NOW + this.#times.nowMs + offMs;
  }

  /** A clock is up to half a second off. */
  #off(): number {
    return this.#below(1001) - 500;
  }

  #below(count: number): number {
    return Math.floor(this.#random() * count);
  }

  #pick<T>(of: readonly T[]): T {
    const found = of[this.#below(of.length)];
    if (found === undefined) throw new Error('nothing to pick from');
    return found;
  }
}
