/**
 * Random steps of all who have to do with debounced jobs: producers whose clocks differ and whose requests and replies are
 * lost, a leader, two workers that fail, put aside, die and settle late, people who cancel, close tags and replay; calls that
 * are cut off. After each step the promises are looked at. The world sees what Redis has done, also where a caller does not.
 */
import { decodeRecord, isTombstone, memberOf } from '../../src/job/codec.ts';
import { markOf } from '../../src/job/record-header.ts';
import type { Claim, Delivery, ScheduleReply } from '../../src/redis/scripts/replies.ts';
import { begun, type Call, type debounceDesk, MAX } from './debounce-desk.ts';
import { randomFrom } from './gates-world.ts';
import { cutOff, luaOf } from './model-cut.ts';
import { T0, type usePartition } from './partition.ts';

/** What has become of the calls for one id. */
class Book {
  /** The highest order of a call that Redis has accepted, and when. */
  accepted = 0;
  acceptedAt = 0;
  /** The highest order that was started. */
  started = 0;
  /** When somebody cancelled it, or a closed tag ended it. */
  cancelledAt = 0;
  /** When the first call was made since it was made, or last started. */
  firstMs: number | undefined;
  /** Its worker was asked to stop, and has not been told of another start since. */
  token = '';
  isToStop = false;
  /** Orders whose run has ended well. */
  readonly done = new Set<number>();
  isReplayed = false;
  /** A call was cut off: it may have been carried out in part. */
  isCut = false;
}

type Started = ReturnType<typeof begun>;
interface Held {
  readonly worker: string;
  readonly delivery: Delivery;
}
interface Running extends Started {
  readonly worker: string;
}

const IDS = ['a', 'b'];
const WORKERS = ['w1', 'w2'];
const SKEWS = [-3, 0, 3];

export class DebounceWorld {
  readonly #p: ReturnType<typeof usePartition>;
  readonly #desk: ReturnType<typeof debounceDesk>;
  readonly #random: () => number;
  readonly #cuts: boolean;
  readonly #books = new Map(IDS.map((id) => [id, new Book()]));
  readonly #orders = SKEWS.map(() => 0);
  readonly #lost: Call[] = [];
  readonly #held: Held[] = [];
  readonly #running: Running[] = [];
  #nowMs = T0;
  #step = 0;
  #isClosed = false;
  readonly told: string[] = [];

  constructor(
    p: ReturnType<typeof usePartition>,
    desk: ReturnType<typeof debounceDesk>,
    { seed, cuts }: { readonly seed: number; readonly cuts: boolean },
  ) {
    this.#p = p;
    this.#desk = desk;
    this.#random = randomFrom(seed);
    this.#cuts = cuts;
  }

  /** What was wrong, if anything was. */
  async walk(steps: number): Promise<string | undefined> {
    try {
      for (this.#step = 1; this.#step <= steps; this.#step += 1) {
        await this.#act();
        for (const id of IDS) await this.#look(id);
      }
      await this.#drain();
      for (const id of IDS) await this.#look(id, true);
      return undefined;
    } catch (error) {
      return `step ${this.#step}: ${String(error)}\n${this.told.slice(-25).join('\n')}`;
    }
  }

  #pick<T>(list: readonly T[]): T {
    const found = list[Math.floor(this.#random() * list.length)];
    if (found === undefined) throw new Error('nothing to pick from');
    return found;
  }

  #take<T>(list: T[]): T | undefined {
    return list.splice(Math.floor(this.#random() * list.length), 1)[0];
  }

  #book(id: string): Book {
    const book = this.#books.get(id);
    if (!book) throw new Error(`no book of ${id}`);
    return book;
  }

  #act(): Promise<unknown> {
    const at = this.#random();
    if (at < 0.3) return this.#send();
    if (at < 0.38) return this.#repeat();
    if (at < 0.55) return this.#pass();
    if (at < 0.63) return this.#startHeld();
    if (at < 0.85) return this.#end();
    if (at < 0.89) return this.#cancel();
    if (at < 0.93) return this.#crash();
    if (at < 0.95) return this.#extend();
    if (at < 0.97) return this.#replay();
    return this.#turnTag();
  }

  /** Time goes on, seldom back, as a clock that is set. */
  #tick(): void {
    this.#nowMs += this.#random() < 0.03 ? -2000 : Math.floor(this.#random() * 700);
  }

  async #send(): Promise<void> {
    this.#tick();
    const [id, producer] = [this.#pick(IDS), Math.floor(this.#random() * SKEWS.length)];
    const atMs = this.#nowMs + (SKEWS[producer] ?? 0);
    const order = Math.max(atMs, (this.#orders[producer] ?? 0) + 1);
    this.#orders[producer] = order;
    await this.#carry({ id, atMs, order, ...(this.#random() < 0.3 ? { late: { tags: ['x'] } } : {}) }, false);
  }

  async #repeat(): Promise<void> {
    const call = this.#take(this.#lost);
    if (call) await this.#carry(call, true);
  }

  async #carry(call: Call, isRepeat: boolean): Promise<void> {
    const { id = '', order = 0, atMs = 0 } = call;
    const book = this.#book(id);
    const fate = this.#random();
    if (fate < 0.08) {
      this.#lost.push(call);
      return;
    }
    const member = memberOf(id);
    const before = await this.#desk.scoreOf(member);
    const reply = await this.#sent(call, this.#cuts && fate < 0.16);
    if (!reply) return;
    this.told.push(`${this.#nowMs} ${id} ${order} ${reply.kind}${isRepeat ? ' again' : ''}`);
    if (reply.kind === 'overtaken' && !isRepeat)
      return this.#carry({ ...call, order: reply.order + 1, data: reply.order + 1 }, true);
    if (reply.kind === 'kept' && before > 0 && before !== (await this.#desk.scoreOf(member)))
      throw new Error('a kept job was moved');
    if (reply.kind === 'merged' && before > 0 && before <= this.#nowMs) throw new Error('a job that is due was moved');
    if (['ok', 'merged', 'kept', 'behind'].includes(reply.kind))
      this.#accept(book, { order, atMs, isNew: reply.kind === 'ok' });
    if (fate > 0.85) this.#lost.push(call);
  }

  /** The reply; nothing where the call was cut off. */
  async #sent(call: Call, isCutOff: boolean): Promise<ScheduleReply | undefined> {
    const { id = '', order = 0 } = call;
    let reply: ScheduleReply | undefined;
    const send = async () => {
      reply = await this.#desk.send(call, this.#nowMs);
    };
    if (!isCutOff) {
      await send();
      return reply;
    }
    const allowed = Math.floor(this.#random() * 5);
    const cut = await cutOff(this.#p.redis, { verb: 'schedule', lua: luaOf('schedule'), allowed, call: send });
    if (cut === undefined) return reply;
    this.told.push(`${this.#nowMs} ${id} ${order} is cut off`);
    this.#book(id).isCut = true;
    this.#lost.push(call);
    return undefined;
  }

  #accept(book: Book, { order, atMs, isNew }: { order: number; atMs: number; isNew: boolean }): void {
    if (order <= book.accepted) throw new Error(`a call of order ${order} was carried out after ${book.accepted}`);
    book.accepted = order;
    book.acceptedAt = this.#step;
    book.firstMs = isNew ? atMs : (book.firstMs ?? atMs);
    if (isNew) book.isReplayed = false;
  }

  async #pass(): Promise<void> {
    this.#tick();
    await this.#p.promote({ nowMs: this.#nowMs });
    const worker = this.#pick(WORKERS);
    for (const delivery of await this.#p.read(worker)) this.#held.push({ worker, delivery });
    await this.#startHeld();
  }

  async #startHeld(): Promise<void> {
    const held = this.#take(this.#held);
    if (!held) return;
    const { worker, delivery } = held;
    const [reply] = await this.#p.start([delivery], { consumer: worker, nowMs: this.#nowMs });
    const id = delivery.member.slice(2);
    const book = this.#book(id);
    this.told.push(`${this.#nowMs} ${id} start ${delivery.entry} ${worker} ${reply?.kind}`);
    if (reply?.kind === 'cancelled' && this.#isClosed) book.cancelledAt = this.#step;
    if (!reply || !('record' in reply)) return;
    const run = { ...begun(delivery, reply), worker };
    this.#onStart(book, run, reply.record);
    // A reply that is lost: the same call is made again later.
    if (this.#random() < 0.15) this.#held.push(held);
    else this.#running.push(run);
  }

  #onStart(book: Book, { data, token }: Running, record: string): void {
    const order = Number.parseInt(markOf(record), 36);
    this.told.push(`    of ${String(data)}`);
    if (Number(data) < book.accepted && !book.isReplayed)
      throw new Error(`${String(data)} was started after ${book.accepted} was accepted`);
    if (Number(data) !== order && !book.isReplayed) throw new Error(`${String(data)} is known by the order ${order}`);
    book.started = Math.max(book.started, Number(data));
    book.firstMs = undefined;
    if (token !== book.token) book.isToStop = false;
    book.token = token;
  }

  async #end(): Promise<void> {
    const run = this.#take(this.#running);
    if (!run) return;
    this.#tick();
    const id = run.member.slice(2);
    const book = this.#book(id);
    const verb = this.#pick(['complete', 'complete', 'complete', 'commit', 'bury', 'retry', 'defer']);
    const isLate = book.cancelledAt > book.acceptedAt;
    const call = () => this.#settle(verb, run);
    await this.#cutEnd(verb, { book, call });
    const wasToStop = book.isToStop && run.token === book.token;
    const reply = await call();
    this.told.push(`${this.#nowMs} ${id} ${verb} ${String(run.data)} ${reply}`);
    if (this.#random() < 0.15) await call();
    const isOver = reply === 'cancelled' || (reply === 'ok' && verb !== 'retry' && verb !== 'defer');
    if (!isOver) return;
    if (reply === 'ok' && verb !== 'bury') this.#onDone(book, Number(run.data));
    const record = await this.#p.redis.hget(this.#p.keys.jobs, run.member);
    const lives = record !== null && !isTombstone(record);
    if (isLate && wasToStop && !book.isCut && lives) throw new Error('a job lives after its cancel');
    book.isToStop = false;
  }

  async #cutEnd(
    verb: string,
    { book, call }: { readonly book: Book; readonly call: () => Promise<unknown> },
  ): Promise<void> {
    if (!this.#cuts || this.#random() >= 0.1) return;
    const allowed = Math.floor(this.#random() * 6);
    if ((await cutOff(this.#p.redis, { verb, lua: luaOf(verb), allowed, call })) === undefined) return;
    book.isCut = true;
    this.told.push(`${this.#nowMs} ${verb} is cut off`);
  }

  #onDone(book: Book, order: number): void {
    if (book.done.has(order) && !book.isCut && !book.isReplayed) throw new Error(`${order} was carried out twice`);
    book.done.add(order);
  }

  async #settle(verb: string, run: Claim & { readonly mark: string }): Promise<string> {
    const p = this.#p;
    const nowMs = this.#nowMs;
    if (verb === 'commit') return p.commit(run, [], { nowMs });
    if (verb === 'bury') return p.bury(run, { nowMs });
    if (verb === 'retry') return this.#word(await p.retry(run, { nowMs, delayMs: 500 }));
    if (verb === 'defer') return this.#word(await p.defer(run, { nowMs, delayMs: 500 }));
    const [reply = ''] = await p.complete([run], { nowMs });
    return reply;
  }

  #word(reply: unknown): string {
    return typeof reply === 'object' ? 'back' : String(reply);
  }

  async #cancel(): Promise<void> {
    const id = this.#pick(IDS);
    const { kind } = await this.#p.cancel(memberOf(id), { nowMs: this.#nowMs });
    this.told.push(`${this.#nowMs} ${id} cancel ${kind}`);
    const book = this.#book(id);
    if (kind === 'cancelled' || kind === 'requested') book.cancelledAt = this.#step;
    if (kind !== 'requested') return;
    book.isToStop = true;
    // It ends the newer data that had come: the next call is the first of another life.
    book.firstMs = undefined;
  }

  /** A worker is taken for dead. What it runs goes on, and ends late. */
  async #crash(): Promise<void> {
    const [owner = '', consumer = ''] = this.#random() < 0.5 ? WORKERS : WORKERS.toReversed();
    const taken = await this.#reclaim(owner, consumer);
    this.told.push(`${this.#nowMs} ${owner} is lost`);
    for (const [at, one] of [...this.#held.entries()].toReversed()) if (one.worker === owner) this.#held.splice(at, 1);
    for (const delivery of taken) this.#held.push({ worker: consumer, delivery });
    for (const { member } of taken) this.#book(member.slice(2)).isToStop = false;
  }

  /** Before anything was ready there is no group. */
  async #reclaim(owner: string, consumer: string): Promise<readonly Delivery[]> {
    if ((await this.#p.redis.exists(this.#p.keys.ready)) === 0) return [];
    return (await this.#p.reclaim(owner, { consumer })).deliveries;
  }

  async #extend(): Promise<void> {
    if (this.#running.length === 0) return;
    const run = this.#pick(this.#running);
    const [reply] = await this.#p.extend([run], run.worker);
    const { isToStop, token } = this.#book(run.member.slice(2));
    if (reply === 'ok' && isToStop && token === run.token) throw new Error('nobody is told to stop');
  }

  async #replay(): Promise<void> {
    const letters = await this.#p.redis.xrange(this.#p.keys.dead, '-', '+');
    if (letters.length === 0) return;
    const [entry] = this.#pick(letters);
    const reply = await this.#p.replay(entry, { nowMs: this.#nowMs });
    this.told.push(`${this.#nowMs} replay ${entry} ${reply.kind}`);
    if (reply.kind !== 'ok') return;
    const book = this.#book(reply.member.slice(2));
    book.isReplayed = true;
    book.firstMs = undefined;
  }

  async #turnTag(): Promise<void> {
    const change = { mode: 'close', untilMs: this.#nowMs + 9e9, text: '{}', most: 10 } as const;
    await this.#p.jobs.closeTags(this.#p.ref, ['x'], this.#isClosed ? { mode: 'open' } : change);
    this.#isClosed = !this.#isClosed;
  }

  async #look(id: string, isLast = false): Promise<void> {
    const member = memberOf(id);
    const book = this.#book(id);
    const value = await this.#p.redis.hget(this.#p.keys.jobs, member);
    if (value === null) return;
    const isOver = isTombstone(value);
    if (isLast && !isOver) throw new Error(`${id} never ends`);
    if (isOver && book.accepted > book.started && book.cancelledAt < book.acceptedAt) {
      throw new Error(`${id} has ended, and its data of ${book.accepted} were never started`);
    }
    const run = await this.#p.redis.hget(this.#p.keys.runs, member);
    const isNew = run === null || run.split(' ')[2] === '0';
    const score = await this.#p.redis.zscore(this.#p.keys.scheduled, member);
    if (isOver || !isNew || score === null || book.firstMs === undefined || book.isCut) return;
    if (Number(score) > book.firstMs + MAX)
      throw new Error(`${id} is due ${Number(score) - book.firstMs} ms after its first call`);
    if (!book.isReplayed) decodeRecord(value);
  }

  /** Whoever is lost is lost, and all that is there runs to its end. */
  async #drain(): Promise<void> {
    const p = this.#p;
    if (this.#isClosed) await this.#turnTag();
    this.#held.length = 0;
    for (let round = 0; round < 12; round += 1) {
      this.#nowMs += 60_000;
      await p.promote({ nowMs: this.#nowMs });
      const nowMs = this.#nowMs;
      const taken: Delivery[] = [...(await p.read('w9'))];
      for (const owner of WORKERS) taken.push(...(await this.#reclaim(owner, 'w9')));
      for (const delivery of taken) {
        const [reply] = await p.start([delivery], { consumer: 'w9', nowMs });
        if (!reply || !('record' in reply)) continue;
        const run = { ...begun(delivery, reply), worker: 'w9' };
        this.#onStart(this.#book(run.member.slice(2)), run, reply.record);
        const [done] = await p.complete([run], { nowMs });
        if (done === 'ok') this.#onDone(this.#book(run.member.slice(2)), Number(run.data));
      }
    }
  }
}
