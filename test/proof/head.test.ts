/**
 * Many entries that are done with are trimmed off ready if they are all that it holds up to the last of them. Here streams
 * come from random lists of what duestream does with them, and of what people do by hand. Whatever the state, exactly the
 * given entries go; where nothing was done by hand and they are the head, they are trimmed; and a part that is broken on
 * purpose is noticed.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { assembled } from '../../lua/assemble.mjs';
import { close, openCommands, type Redis, whenReady } from '../../src/redis/connection/connect.ts';
import { brokenTexts } from '../support/mutants.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { read } from '../support/repository.ts';
import { isSlice } from '../tiers.mjs';

const READY = 'ready';
const FIRST_MS = 1_763_719_000_000;
const SEED = Number(process.env.PROOF_SEED ?? 1);
const LISTS = isSlice ? 80 : 200;

let server: TestRedis;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
  redis = openCommands({ redis: { path: server.socketPath }, name: 'proof' });
  await whenReady(redis);
});
afterAll(async () => {
  close(redis);
  await server.stop();
});

/** `add` and `read` are ours; the others are done by hand. */
type Op = readonly [verb: 'add' | 'read' | 'over' | 'forget' | 'delete' | 'acknowledge' | 'set-back', a: number];
type List = readonly Op[];
const OURS = ['add', 'add', 'read', 'read', 'read', 'over'] as const;
const BY_HAND = [...OURS, ...OURS, 'forget', 'delete', 'acknowledge', 'set-back'] as const;
const listOf = (verbs: readonly Op[0][]) =>
  fc.array(fc.tuple(fc.constantFrom(...verbs), fc.nat(23)), { minLength: 6, maxLength: 14 });

interface State {
  readonly entries: readonly string[];
  readonly held: readonly string[];
  readonly delivered: string;
  readonly waiting: number | null;
}

async function state(): Promise<State> {
  const [info = []] = (await redis.xinfo('GROUPS', READY)) as unknown[][];
  const held = (await redis.xpending(READY, 'workers', '-', '+', 1000)) as [string][];
  return {
    entries: (await redis.xrange(READY, '-', '+')).map(([entry]) => entry),
    held: held.map(([entry]) => entry),
    delivered: String(info[7]),
    waiting: info[11] as number | null,
  };
}

const numbersOf = (entry: string) => entry.split('-').map(Number);
function compare(a: string, b: string): number {
  const [[ms = 0, seq = 0], [otherMs = 0, otherSeq = 0]] = [numbersOf(a), numbersOf(b)];
  return ms - otherMs || seq - otherSeq;
}
const latest = (entries: readonly string[]) => entries.toSorted(compare).at(-1) ?? '';

interface Play {
  next: readonly [ms: number, seq: number];
}

/** An entry that somebody holds; one that is not there, where nobody holds any. */
const heldAt = async (a: number) => {
  const { held } = await state();
  return held[a % Math.max(1, held.length)] ?? '0-1';
};
const consumerAt = (a: number) => (a % 3 === 0 ? 'w2' : 'w1');

const STEPS: Readonly<Record<Op[0], (a: number, play: Play) => Promise<unknown>>> = {
  async add(a, play) {
    const [ms, seq] = play.next;
    for (let more = 0; more <= a % 6; more += 1) await redis.xadd(READY, `${ms}-${seq + more}`, 'member', 'j:a');
    // Sequences of one, two and three digits.
    play.next = a % 5 === 0 ? [ms + 1, a % 2 === 0 ? 7 : 96] : [ms, seq + 6];
  },
  read: (a) => redis.xreadgroup('GROUP', 'workers', consumerAt(a), 'COUNT', 1 + (a % 7), 'STREAMS', READY, '>'),
  async over(a) {
    const entry = await heldAt(a);
    await redis.xdel(READY, entry);
    await redis.xack(READY, 'workers', entry);
  },
  forget: (a) => redis.xgroup('DELCONSUMER', READY, 'workers', consumerAt(a)),
  delete: async (a) => redis.xdel(READY, await heldAt(a)),
  acknowledge: async (a) => redis.xack(READY, 'workers', await heldAt(a)),
  async 'set-back'(a) {
    const { entries } = await state();
    await redis.xgroup('SETID', READY, 'workers', entries[a % Math.max(1, entries.length)] ?? '0');
  },
};

/** Plays a list, and returns what is to go: some of what is held, in any order. */
async function played(list: List): Promise<readonly string[]> {
  await redis.flushall();
  await redis.xgroup('CREATE', READY, 'workers', '0', 'MKSTREAM');
  const play: Play = { next: [FIRST_MS, 7] };
  for (const [verb, a] of list) await STEPS[verb](a, play);
  const { held } = await state();
  const [[, some] = ['', 0], [, gap] = ['', 0]] = list;
  const wanted = list.length % 3 === 0 ? held : held.slice(0, 1 + (some % Math.max(1, held.length)));
  return gap % 4 === 0 ? wanted.filter((_, at) => at !== 1).toReversed() : wanted;
}

const HEAD = '#!lua flags=no-writes\n-- USES  head\nlocal ready = KEYS[1]\n\nreturn headOf(ready, ARGV) or false';
const LET_GO = '#!lua\n-- USES  head, let-go\nlocal ready = KEYS[1]\n\nletGo(ready, unpack(ARGV))';
/** Ends with an error before one more write than is allowed. */
const counting = (lua: string, allowed: number) =>
  lua.replace(
    '\n',
    `\nlocal real, left, writes = redis, ${allowed}, { XTRIM = 1, XDEL = 1, XACK = 1 } local function cut(how) return ` +
      `function(name, ...) if writes[name] then if left == 0 then error('cut off') end left = left - 1 end ` +
      `return how(name, ...) end end local redis = { call = cut(real.call), pcall = cut(real.pcall) }\n`,
  );
const partOf = (name: string) => read(`lua/lib/${name}.lua`);
const scriptsWith = (part: (name: string) => string) => ({
  head: assembled(HEAD, part),
  // Small enough for small lists.
  letGo: assembled(LET_GO, part).replace('>= 8 then', '>= 1 then'),
});
const asIs = scriptsWith(partOf);

/** What the part should say. */
function headIn({ entries, held, delivered, waiting }: State, given: readonly string[]): string | null {
  const last = latest(given);
  const isOurs = held.every((entry) => given.includes(entry) || compare(entry, last) > 0);
  const isWhole = waiting !== null && entries.length === held.length + waiting;
  return isOurs && isWhole && compare(last, delivered) <= 0 ? last : null;
}

/** Sentences about what went wrong. */
async function wrong(list: List, { head, letGo }: typeof asIs): Promise<readonly string[]> {
  const given = await played(list);
  if (given.length === 0) return [];
  const before = await state();
  const said = await redis.eval(head, 1, READY, ...given).catch(String);
  const should = headIn(before, given);
  await redis.config('RESETSTAT');
  const failed = await redis.eval(letGo, 1, READY, ...given).then(() => undefined, String);
  const after = await state();
  const stay = (entries: readonly string[]) => entries.filter((entry) => !given.includes(entry)).join();
  // Where somebody left entries to nobody and deleted as many that are held, numbers agree and say nothing.
  const [lost, torn] = [
    before.entries.filter((entry) => compare(entry, before.delivered) <= 0 && !before.held.includes(entry)).length,
    before.held.filter((entry) => !before.entries.includes(entry)).length,
  ];
  const stats = await redis.info('commandstats');
  return [
    failed,
    said === should ? undefined : `the head is said to end with ${said} instead of ${should}`,
    after.held.join() === stay(before.held) ? undefined : 'others are held than before',
    after.entries.join() === stay(before.entries) || (lost > 0 && torn > 0)
      ? undefined
      : 'others are there than before',
    stats.includes('cmdstat_xtrim') === (should !== null)
      ? undefined
      : 'trimmed where it should not, or not where it should',
  ].filter((sentence) => sentence !== undefined);
}

const listsOf = (seed: number, runs: number, verbs: readonly Op[0][]) =>
  fc.sample(listOf(verbs), { seed, numRuns: runs });

test('exactly what is given goes, whatever the state', async () => {
  let heads = 0;
  for (const list of [...listsOf(SEED, LISTS, OURS), ...listsOf(SEED, 1.5 * LISTS, BY_HAND)]) {
    const found = await wrong(list, asIs);
    expect(found, JSON.stringify(list)).toEqual([]);
    heads += (await redis.info('commandstats')).includes('cmdstat_xtrim') ? 1 : 0;
  }
  // The lists reach both ways.
  expect(heads).toBeGreaterThan(LISTS / 4);
  expect(heads).toBeLessThan(2.25 * LISTS);
});

test('cut off before a write, and made again, the call ends as it would have', async () => {
  for (const list of listsOf(SEED, LISTS / 2, OURS)) {
    const given = await played(list);
    if (given.length === 0) continue;
    const before = await state();
    for (const allowed of [0, 1]) {
      await redis.eval(counting(asIs.letGo, allowed), 1, READY, ...given).catch(() => undefined);
      const cut = await state();
      // Deleted first: what is held without being there is cleared away by a reclaim.
      expect(cut.held).toEqual(before.held);
    }
    await redis.eval(asIs.letGo, 1, READY, ...given);
    const after = await state();
    expect(after.entries).toEqual(before.entries.filter((entry) => !given.includes(entry)));
    expect(after.held).toEqual(before.held.filter((entry) => !given.includes(entry)));
  }
});

/** What is compared there differs. */
const EQUIVALENT = ['return #entry > #other end', 'return ms > otherMs'];
const isEquivalent = (name: string) => name.includes('turned >') && EQUIVALENT.some((end) => name.endsWith(end));

test('a part that is broken on purpose is noticed', async () => {
  const broken = brokenTexts('head').filter(({ name }) => !isEquivalent(name));
  expect(broken.length).toBeGreaterThan(5);
  const survivors: string[] = [];
  for (const { name, lua } of broken) {
    const scripts = scriptsWith((part) => (part === 'head' ? lua : partOf(part)));
    let isNoticed = false;
    for (const list of listsOf(SEED, 400, BY_HAND)) {
      isNoticed = (await wrong(list, scripts)).length > 0;
      if (isNoticed) break;
    }
    if (!isNoticed) survivors.push(name);
  }
  expect(survivors).toEqual([]);
});
