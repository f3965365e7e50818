/**
 * The test kit lets jobs of a gated queue through as the scripts do: random calls are made to both, and each reply, the place
 * of each job and the order of all starts must be the same. `KIT_GATES_SEED` makes other walks.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { encodeRecord } from '../../src/job/codec.ts';
import { countsGroups } from '../../src/job/gate.ts';
import type { GateSettings } from '../../src/job/queue-settings.ts';
import { countedRecord, digestOf, markOf } from '../../src/job/record-header.ts';
import { close, openCommands, type Redis, whenReady } from '../../src/redis/connection/connect.ts';
import { partitionRef } from '../../src/redis/keys.ts';
import { randomFrom } from '../support/gates-world.ts';
import { type Fate, kitWorld, RedisWorld, type World } from '../support/kit-gates.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { isSlice } from '../tiers.mjs';

const SEED = Number(process.env.KIT_GATES_SEED ?? 1);
const WALKS = isSlice ? 2 : 8;
const STEPS = 120;
const START_MS = Date.UTC(2026, 0) + 5;
const HEADERS = [';t= high', '', ';t= low'] as const;
const COUNTED: Readonly<Record<(typeof HEADERS)[number], string>> = {
  ';t= high': ';t= high, group',
  '': ';t= group',
  ';t= low': ';t= low, group',
};
const OVER = /^(?:done|dead|cancelled|expired) /;
const CLOSES = ['group', 'queue', undefined, undefined] as const;
const OUTCOMES = ['done', 'done', 'done', 'retry', 'defer', 'dead'] as const;

let server: TestRedis;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
  redis = openCommands({ redis: { path: server.socketPath }, name: 'kit' });
  await whenReady(redis);
});
afterAll(async () => {
  close(redis);
  await server.stop();
});

/** Makes each call in both worlds. */
class Walk {
  readonly #random: () => number;
  readonly #worlds: readonly [World, World];
  /** The records of jobs, by their ids. */
  readonly #records = new Map<string, string>();
  /** Those that may not be over yet. */
  readonly #live = new Set<string>();
  readonly #groups: readonly string[];
  #settings: GateSettings = {};
  #nowMs = START_MS;
  #serial = 0;

  constructor(worlds: readonly [World, World], random: () => number) {
    this.#worlds = worlds;
    this.#random = random;
    this.#groups = ['', ...['a', 'ab', 'abc', 'd', 'e', 'f'].slice(0, 1 + this.#below(6))];
  }

  async step(): Promise<void> {
    const verbs = [
      'schedule',
      'schedule',
      'schedule',
      'time',
      'time',
      'time',
      'change',
      'change',
      'limits',
      'rest',
      'close',
    ] as const;
    await this.#steps[this.#pick(verbs)]();
    for (const id of this.#live) {
      const [kit, real] = await this.#both((world) => world.place(id));
      expect(`${id} ${kit}`).toBe(`${id} ${real}`);
      if (OVER.test(kit)) this.#live.delete(id);
    }
    const [kit, real] = this.#worlds.map(({ starts }) => starts);
    expect(kit).toEqual(real);
  }

  readonly #steps = {
    schedule: async () => {
      for (let left = 1 + this.#below(4); left > 0; left -= 1) {
        const group = this.#pick(this.#groups);
        const isAgain = this.#records.size > 0 && this.#below(6) === 0;
        this.#serial += 1;
        const id = isAgain ? this.#id() : `${group && `{${group}}`}n${String(this.#serial).padStart(4, '0')}`;
        const dueMs = Math.ceil(this.#nowMs / 10) * 10 + 10 * (this.#below(20) - 8);
        // Who expires at a start leaves a room for which the scripts may have let another one through already.
        const isLate = !id.startsWith('{') && this.#below(5) === 0;
        const header = HEADERS[this.#below(3)] ?? '';
        const record = encodeRecord(
          dueMs,
          `{"d":${this.#serial}}`,
          isLate ? { maxLatenessMs: 60, onLate: 'drop' } : {},
        );
        const isCounted = countsGroups(this.#settings) && id.startsWith('{');
        const plain = record.replace('|', `${header}|`);
        const item = { member: `j:${id}`, record: isCounted ? countedRecord(plain) : plain, dueMs };
        const mode = this.#pick(['keep', 'replace'] as const);
        const reply = await this.#same((world) => world.schedule(item, mode));
        if (!['ok', 'replaced'].includes((reply as { readonly kind: string }).kind)) continue;
        this.#records.set(id, item.record);
        this.#live.add(id);
      }
    },
    time: async () => {
      this.#nowMs += 10 * (1 + this.#below(12));
      await this.#same((world) => world.advanceTo(this.#nowMs));
    },
    change: async () => {
      if (this.#records.size === 0) return;
      const id = this.#id();
      const kind = this.#below(3);
      if (kind === 0) await this.#same((world) => world.cancel(id));
      if (kind === 1) {
        const dueMs = this.#below(3) === 0 ? 0 : Math.ceil(this.#nowMs / 10) * 10 + 10 * (this.#below(12) - 5);
        const mode = this.#pick(['any', 'earlier', 'later'] as const);
        await this.#same((world) => world.reschedule(id, { dueMs, mode }));
      }
      if (kind === 2) {
        const old = this.#records.get(id) ?? '';
        // As an edit does: the record keeps the mark of the call that made the job.
        const mark = markOf(old).replace(' ', '.');
        const header = HEADERS[this.#below(3)] ?? '';
        const tags = / group[;|]/.test(old) ? COUNTED[header] : header;
        const record = old.replace(/(;t=[ a-z,]+)?(;m=[\w.]+)?\|/, `${tags};m=${mark}|`);
        const reply = await this.#same((world) => world.edit(id, { before: digestOf(old), record }));
        if ((reply as { readonly kind: string }).kind === 'ok') this.#records.set(id, record);
      }
    },
    limits: async () => {
      const settings: GateSettings = this.#pick([
        { rate: 0, concurrency: this.#below(4), perGroup: this.#below(3) },
        { rate: { limit: 1 + this.#below(70), perMs: 1000, burst: 1 + this.#below(4) }, perGroup: this.#below(3) },
        { concurrency: this.#below(5) },
        { perGroup: this.#below(4) },
        { groupRate: this.#below(3) === 0 ? 0 : this.#groupRate() },
        { groupPending: this.#below(6) },
        { groups: this.#own() },
        { groups: this.#own() },
      ] as const);
      this.#settings = { ...this.#settings, ...settings };
      await this.#same((world) => world.limit(settings));
    },
    close: async () => {
      const group = this.#pick(this.#groups);
      const forMs = this.#below(3) === 0 ? 0 : 10 * (1 + this.#below(30)) + 4;
      await this.#same((world) => world.close(group, forMs));
    },
    rest: async () => {
      const isPaused = this.#below(3) === 0;
      await this.#same((world) => world.setPaused(isPaused));
    },
  } as const;

  /** Its turns seldom come at a moment at which a start ends: these all end with 3. */
  #groupRate() {
    return { limit: 1, perMs: 10 * (1 + this.#below(20)) + 64, burst: 1 + this.#below(3) };
  }

  /** Of a group, of all whose names begin so, or of none. */
  #own(): NonNullable<GateSettings['groups']> {
    const names = this.#groups.filter((group) => group !== '' && this.#below(2) === 0);
    const limits = () => ({
      ...(this.#below(3) === 0 && { concurrency: this.#below(4) }),
      ...(this.#below(3) === 0 && { rate: this.#below(3) === 0 ? (0 as const) : this.#groupRate() }),
      ...(this.#below(2) === 0 && { weight: 1 + this.#below(4) }),
      ...(this.#below(3) === 0 && { maxPending: this.#below(5) }),
    });
    const beginnings = this.#below(3) === 0 ? ['a*', 'ab*'] : [];
    return Object.fromEntries([...names, ...beginnings].map((name) => [name, limits()]));
  }

  /** Without limits all of it ends. */
  async drain(): Promise<readonly string[]> {
    await this.#same((world) => world.setPaused(false));
    for (const group of this.#groups) await this.#same((world) => world.close(group, 0));
    const open = { rate: 0, concurrency: 2, perGroup: 1, groupRate: 0, groupPending: 0, groups: {} } as const;
    await this.#same((world) => world.limit(open));
    await this.#same((world) => world.advanceTo(this.#nowMs + 600_000));
    const places = await Promise.all([...this.#records.keys()].map((id) => this.#worlds[0].place(id)));
    expect(places.filter((place) => !OVER.test(place))).toEqual([]);
    const [kit, real] = this.#worlds.map(({ starts }) => starts);
    expect(kit).toEqual(real);
    return kit ?? [];
  }

  async #same(call: (world: World) => Promise<unknown>): Promise<unknown> {
    const [kit, real] = await this.#both(call);
    expect(kit).toEqual(real);
    return real;
  }

  async #both<Reply>(call: (world: World) => Promise<Reply>): Promise<readonly [Reply, Reply]> {
    const [kit, real] = this.#worlds;
    return [await call(kit), await call(real)];
  }

  #id(): string {
    return this.#pick([...this.#records.keys()]);
  }

  #below(count: number): number {
    return Math.floor(this.#random() * count);
  }

  #pick<One>(list: readonly One[]): One {
    const one = list[this.#below(list.length)];
    if (one === undefined) throw new Error('nothing to pick from');
    return one;
  }
}

test.each(Array.from({ length: WALKS }, (_, nth) => nth))(
  'random calls have the same replies, and starts the same order: walk %i',
  async (nth) => {
    await redis.flushall();
    const random = randomFrom(SEED * 1000 + nth);
    const salt = Math.floor(random() * 1e9);
    const fateOf = (id: string, attempt: number): Fate => {
      const own = randomFrom(salt + attempt * 7919 + [...id].reduce((sum, char) => sum * 31 + char.charCodeAt(0), 0));
      const lastsMs = 10 + Math.floor(own() * 90);
      const outcome = OUTCOMES[Math.floor(own() * OUTCOMES.length)] ?? 'done';
      return { lastsMs, outcome, closes: CLOSES[Math.floor(own() * CLOSES.length)] };
    };
    const stage = { nowMs: START_MS, fateOf };
    const ref = partitionRef('duestream', { queue: 'q', partition: 0, layoutGeneration: 0 });
    const [kit, real] = [kitWorld(stage), await new RedisWorld(redis, ref, stage).begin()];
    for (const world of [kit, real]) await world.limit({ fair: true });
    const walk = new Walk([kit, real], random);
    for (let step = 0; step < STEPS; step += 1) await walk.step();
    expect((await walk.drain()).length).toBeGreaterThan(20);
  },
  60_000,
);
