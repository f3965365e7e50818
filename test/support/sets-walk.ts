/**
 * Random walks through two sets whose names begin alike: members come, run, end in every way, bring others, die, are erased by
 * hand, and are replayed or removed by filters; a set is sealed early or late, removed, and its name begun again; calls are
 * repeated and cut off, and the leader looks after what was left. After each step the model says whether each callback may be
 * there and what it says, who is a member and which dead letters there are. The scripts and the filters may be broken ones, to
 * see whether that is noticed.
 */

import { type DeadLetterFilter, parseFilter } from '../../src/client/dead/filter.ts';
import { createLetters } from '../../src/client/dead/letters.ts';
import { begin, type LetterStore, lettersIn } from '../../src/client/dead/walk.ts';
import { encodeAttempted, encodeBody, encodeRecord } from '../../src/job/codec.ts';
import { queueOf } from '../../src/job/queue.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import type { DeadLetter } from '../../src/redis/read/inspect.ts';
import { setsOf } from '../../src/redis/read/sets.ts';
import type { Claim } from '../../src/redis/scripts/replies.ts';
import { effectsOf } from '../../src/worker/run/commit-jobs.ts';
import { cutOff } from './model-cut.ts';
import { NOW, SET, type SetDesk } from './sets-stories.ts';

type Outcome = 'done' | 'dead' | 'cancelled';
const OUTCOMES: readonly Outcome[] = ['done', 'dead', 'cancelled'];

/** What a job is found by. Each begins as the other of its kind does. */
interface Marks {
  readonly tag: string;
  readonly name: string;
  readonly error: string;
}
const NEIGHBOUR = `${SET}0`;
const KINDS = {
  tag: ['paid', 'paid:eu'],
  name: ['row', 'row:eu'],
  error: ['no answer', 'no answer of it'],
} as const;

/** Whoever has a name: a set, or none any more. */
class Named {
  readonly desk: SetDesk;
  /** Who has its tag and is not over. */
  readonly open = new Set<string>();
  /** Whose entries in the index are left of jobs that somebody erased by hand. */
  readonly strays = new Set<string>();
  ends: Record<Outcome, number> = { done: 0, dead: 0, cancelled: 0 };
  state: 'none' | 'begun' | 'sealed' | 'over' = 'none';
  /** How often the name was begun. */
  life = 0;
  /** How many members came since. */
  came = 0;

  constructor(desk: SetDesk) {
    this.desk = desk;
  }

  get isThere(): boolean {
    return this.state === 'begun' || this.state === 'sealed';
  }

  end(id: string, outcome: Outcome): void {
    if (this.open.delete(id) && this.isThere) this.ends[outcome] += 1;
    this.settle();
  }

  settle(): void {
    if (this.state === 'sealed' && this.open.size === 0) this.state = 'over';
  }
}

interface Letter {
  readonly id: string;
  readonly of: Named;
  /** The set that it died in; undefined: it was a member of none any more. */
  readonly life: number | undefined;
}

/** What should be true by now. */
class World {
  readonly sets: readonly Named[];
  readonly marks = new Map<string, Marks>();
  /** By dead letter. */
  readonly dead = new Map<string, Letter>();
  /** So many calls were cut off: as many ends may be counted once more. */
  cuts = 0;
  /** Ids that were asked for, and jobs that came into being. */
  made = 0;
  born = 0;

  constructor(sets: readonly Named[]) {
    this.sets = sets;
  }

  ofMember(member: string): { readonly of: Named; readonly id: string } | undefined {
    const of = this.sets.find(({ desk }) => member.startsWith(desk.member('')));
    return of && { of, id: member.slice(of.desk.member('').length) };
  }
}

export interface Walk {
  readonly seed: number;
  readonly steps: number;
  readonly lua: (verb: string) => string;
  /** Whether calls are cut off. */
  readonly cuts: boolean;
  /** How a filter sees a dead letter, where it sees it wrongly. */
  readonly seen?: ((letter: DeadLetter) => DeadLetter) | undefined;
}

/** What was wrong first; undefined: nothing. */
export async function walkSets(desk: SetDesk, { seed, steps, ...walk }: Walk): Promise<string | undefined> {
  const random = numbers(seed);
  const pick = <T>(list: readonly T[]): T | undefined => list[Math.floor(random() * list.length)];
  await desk.begin();
  const one = new Named(desk.beside(SET));
  const other = new Named(desk.beside(NEIGHBOUR));
  const world = new World([one, other]);
  await gather({ ...walk, desk, world, of: one, pick, random });
  for (let nth = 0; nth < steps; nth += 1) {
    desk.clock.nowMs += 1;
    const [word = '', step] = pick(Object.entries(STEPS)) ?? [];
    // One of them is meant more often, so that much happens to it.
    const of = random() < 0.75 ? one : other;
    if (step) await step({ ...walk, desk, world, of, pick, random });
    // Whoever was cut off has called again; the leader comes within a minute.
    if (world.cuts > 0 || world.sets.some(({ strays }) => strays.size > 0)) await desk.tend();
    if (world.cuts > 0) await desk.mendGates();
    const wrong = await wrongIn(desk, world);
    if (wrong !== undefined) return `seed ${seed}, step ${nth} (${word} ${of.desk.set}): ${wrong}`;
  }
  const stuck = desk.gates && (await drain(desk, world));
  return stuck && `seed ${seed}, at the end: ${stuck}`;
}

/** Where only some jobs may run at a time: each comes to its turn, the callbacks too, and no slot stays taken. */
async function drain(desk: SetDesk, { sets }: World): Promise<string | undefined> {
  const { scheduled, ready, holds, jobs } = desk.ref.keys;
  for (const { desk: one } of sets) await one.seal();
  for (let turn = 0; turn < 100; turn += 1) {
    for (const start of [desk.run, desk.adopt]) {
      await start.call(desk);
      await desk.complete(...desk.claims);
    }
    await desk.tend();
    await desk.mendGates();
    if ((await desk.redis.zcard(scheduled)) + (await desk.redis.xlen(ready)) > 0) continue;
    const held = await desk.redis.zcard(holds);
    if (held > 0) return `${held} jobs have a slot, and none runs`;
    for (const { desk: one, state } of sets) {
      const isDone = (await desk.redis.hget(jobs, one.end.member))?.startsWith('.d') ?? false;
      if (isDone !== (state !== 'none')) return `${one.set} is ${state}, and a callback ran: ${isDone}`;
    }
    return undefined;
  }
  return `stuck: ${await desk.redis.zrange(scheduled, '0', '-1')}`;
}

interface Step extends Omit<Walk, 'seed' | 'steps'> {
  readonly desk: SetDesk;
  readonly world: World;
  /** The set that the step is about. */
  readonly of: Named;
  readonly pick: <T>(list: readonly T[]) => T | undefined;
  readonly random: () => number;
}

const STEPS: Readonly<Record<string, (step: Step) => Promise<void>>> = {
  gather,
  put,
  another: put,
  async again({ of, pick, world }) {
    const id = pick([...of.open].filter((one) => !one.includes('!')));
    if (id !== undefined && of.isThere) await of.desk.put([id], asMarked(world.marks.get(id)));
  },
  run,
  go: run,
  async cancel(step) {
    const { of, pick } = step;
    const id = pick([...of.open]);
    if (id === undefined) return;
    await maybeCut(step, 'cancel', () => of.desk.cancel(id));
    of.end(id, 'cancelled');
  },
  async chain(step) {
    const { world, random, desk } = step;
    let isFirst = true;
    for (const claim of await begun(step)) {
      const found = world.ofMember(claim.member);
      if (!found) continue;
      const { of, id } = found;
      const isMember = of.open.has(id);
      if (isFirst && isMember && of.isThere) {
        const next = `${id.replace(/!.*/, '')}!then:${Math.floor(random() * 1e9)}.00`;
        const marks = marksOf(step);
        const plan = { id: next, ...jobOf(of, next, marks), bytes: 0, mode: 'keep' as const, strict: false };
        await desk.jobs.commit(desk.ref, claim, { ...desk.when, effects: effectsOf(desk.ref.keys, [plan]) });
        came(step, of, next, marks);
      } else await desk.complete(claim);
      of.end(id, 'done');
      isFirst = false;
    }
  },
  async replay({ desk, world, pick }) {
    const [entry, letter] = pick([...world.dead]) ?? [];
    if (entry === undefined || letter === undefined) return;
    const { kind } = await desk.jobs.replay(desk.ref, entry, { nowMs: desk.nowMs });
    if (kind === 'ok') liveAgain(world, entry, letter);
  },
  async replayAll(step) {
    const { world } = step;
    const { filter, meant } = someLetters(step);
    const search = begin(asked(filter), { means: 'replay', nowMs: NOW });
    const plan = { dueMs: NOW, overMs: 0, dryRun: false, onProgress: undefined };
    const { changed } = await letters(step).replayAll(queueOf('q'), search, plan);
    told(changed, meant.length, `replay of ${JSON.stringify(filter)}`);
    for (const [entry, letter] of meant) liveAgain(world, entry, letter);
  },
  async removeAll(step) {
    const { world } = step;
    const { filter, meant } = someLetters(step);
    const search = begin(asked(filter), { means: 'remove', nowMs: NOW });
    const { changed } = await letters(step).removeAll(queueOf('q'), search, { dryRun: false, onProgress: undefined });
    told(changed, meant.length, `removal of ${JSON.stringify(filter)}`);
    for (const [entry] of meant) world.dead.delete(entry);
  },
  /** All that has a tag goes, as `erase` does it: who waits, and who died. */
  async erase(step) {
    const { desk, world, pick } = step;
    const tag = pick(KINDS.tag) ?? '';
    const found = await entriesOf(desk, tag);
    if (found.length > 0) await desk.jobs.cancel(desk.ref, found, desk.when);
    for (const member of found) {
      const job = world.ofMember(member);
      job?.of.end(job.id, 'cancelled');
    }
    const search = begin(asked({ tag }), { means: 'erase', nowMs: NOW });
    await letters(step).removeAll(queueOf('q'), search, { dryRun: false, onProgress: undefined });
    for (const [entry, { id }] of world.dead) if (world.marks.get(id)?.tag === tag) world.dead.delete(entry);
  },
  /** Somebody takes one out of Redis by hand, who knows of no index. */
  async lose({ desk, of, pick }) {
    const id = pick([...of.open]);
    if (id === undefined || desk.gates) return;
    const { scheduled, jobs, runs } = desk.ref.keys;
    await desk.redis.zrem(scheduled, of.desk.member(id));
    await desk.redis.hdel(jobs, of.desk.member(id));
    await desk.redis.hdel(runs, of.desk.member(id));
    of.open.delete(id);
    of.strays.add(id);
    of.settle();
  },
  async seal(step) {
    const { of } = step;
    if (!of.isThere || of.came < 2) return;
    await maybeCut(step, 'seal', of.desk.seal);
    of.state = 'sealed';
    of.settle();
  },
  /** As `removeSet`: then its members are cancelled, unless its process dies between the two. */
  async disband(step) {
    const { of, random, world, cuts } = step;
    if (random() < 0.5) return;
    const { kind } = (await maybeCut(step, 'disband', of.desk.disband)) as { readonly kind: string };
    if (!cuts) told(kind, of.isThere ? 'ok' : 'unknown', 'disband');
    if (of.isThere) of.state = 'none';
    const left = random() < 0.6 && of.state === 'none' ? await entriesOf(of.desk, `=set:${of.desk.set}`) : [];
    if (left.length > 0) await of.desk.jobs.cancel(of.desk.ref, left, of.desk.when);
    for (const member of left) {
      const job = world.ofMember(member);
      job?.of.end(job.id, 'cancelled');
    }
    if (random() < 0.6) await gather(step);
  },
  tend: async ({ desk }) => void (await desk.tend()),
};

async function gather(step: Step): Promise<void> {
  const { of, cuts } = step;
  const { kind } = (await maybeCut(step, 'gather', () => of.desk.gather())) as { readonly kind: string };
  const isFree = of.state === 'none' && of.open.size === 0;
  const expected = { none: isFree ? 'ok' : 'lives', begun: 'already', sealed: 'already', over: 'over' }[of.state];
  // A call that was made before has begun it.
  told(kind === 'already' && isFree ? 'ok' : kind, expected, 'gather');
  if (!isFree) return;
  if (!cuts) of.strays.clear();
  Object.assign(of, { state: 'begun', life: of.life + 1, came: 0, ends: { done: 0, dead: 0, cancelled: 0 } });
}

async function put(step: Step): Promise<void> {
  const { of, world } = step;
  const [id, marks] = [`row-${world.made}`, marksOf(step)];
  const [reply] = await of.desk.put([id], asMarked(marks));
  told(reply, of.isThere ? 'ok' : 'no-set', 'put');
  if (reply === 'ok') came(step, of, id, marks);
}

function came({ world }: Step, of: Named, id: string, marks: Marks): void {
  world.made += 1;
  world.born += 1;
  world.marks.set(id, marks);
  of.came += 1;
  of.open.add(id);
}

/** Everybody who has a turn is started; a callback is over at once. */
async function begun({ desk, world }: Step): Promise<readonly Claim[]> {
  await desk.run();
  const ends = desk.claims.filter(({ member }) => world.sets.some((one) => one.desk.end.member === member));
  if (ends.length > 0) await desk.complete(...ends);
  return desk.claims.filter((claim) => !ends.includes(claim));
}

async function run(step: Step): Promise<void> {
  const { desk, world, pick } = step;
  for (const claim of await begun(step)) {
    const found = world.ofMember(claim.member);
    if (!found) continue;
    const outcome = pick(OUTCOMES) ?? 'done';
    const verb = outcome === 'done' ? 'complete' : outcome === 'dead' ? 'bury' : 'retry';
    const { error = '' } = world.marks.get(found.id) ?? {};
    await maybeCut(step, verb, () => settle(desk, claim, { outcome, error }));
    if (outcome === 'dead') await noteLetter(desk, world, found);
    found.of.end(found.id, outcome);
  }
}

async function settle(desk: SetDesk, claim: Claim, { outcome, error }: { outcome: Outcome; error: string }) {
  const history = encodeAttempted({ atMs: desk.nowMs, attempt: 1, kind: 'failure', message: error });
  if (outcome === 'done') return desk.complete(claim);
  if (outcome === 'dead') return desk.jobs.bury(desk.ref, claim, { ...desk.when, reason: 'broken', error: history });
  await desk.jobs.cancel(desk.ref, [claim.member], desk.when);
  return desk.jobs.retry(desk.ref, claim, { ...desk.when, delayMs: 1, error: '{}' });
}

interface Job {
  readonly of: Named;
  readonly id: string;
}

async function noteLetter(desk: SetDesk, world: World, { of, id }: Job): Promise<void> {
  const [entry] = await desk.redis.xrevrange(desk.ref.keys.dead, '+', '-', 'COUNT', 1);
  const life = of.open.has(id) ? of.life : undefined;
  if (entry) world.dead.set(entry[0], { id, of, life });
}

/** A member of the set that has the name is one again; one of an earlier set of it is a job of no set. */
function liveAgain(world: World, entry: string, { id, of, life }: Letter): void {
  world.dead.delete(entry);
  if (life === undefined || (of.isThere && life < of.life)) return;
  of.open.add(id);
  if (of.isThere) of.ends.dead -= 1;
}

/** A filter by one of the marks, and the dead letters that it means. */
function someLetters({ world, of, pick }: Step) {
  const kind = pick(['set', 'tag', 'name', 'error'] as const) ?? 'set';
  const value = kind === 'set' ? of.desk.set : (pick(KINDS[kind]) ?? '');
  const filter: DeadLetterFilter = { [kind]: value };
  const meant = [...world.dead].filter(([, letter]) =>
    kind === 'set' ? letter.of === of && letter.life !== undefined : world.marks.get(letter.id)?.[kind] === value,
  );
  return { filter, meant };
}

const asked = (filter: DeadLetterFilter) => ({
  filter: parseFilter(filter, 'walk'),
  cursor: undefined,
  limit: 1000,
  scanMax: 1000,
});

/** As a client acts on them, at the moment of the walk. */
function letters({ desk, seen = (letter) => letter }: Step) {
  const { redis, ref, jobs } = desk;
  const all = lettersIn(redis, jobs);
  const store: LetterStore = {
    ...all,
    newest: async (...of) => (await all.newest(...of)).map(seen),
    oldest: async (...of) => (await all.oldest(...of)).map(seen),
    replay: (of, entry, when) => jobs.replay(of, entry, { ...when, nowMs: desk.nowMs }),
  };
  return createLetters({
    store,
    async callPartitions(_, call) {
      const reply = await call([ref], { clock: systemClock, budgetMs: 5000 });
      if (typeof reply === 'object' && reply !== null && 'kind' in reply && reply.kind === 'moved')
        throw new Error('moved');
      return reply as Exclude<typeof reply, { readonly kind: 'moved' }>;
    },
  });
}

/** Of three calls one is cut off at any write, and made again; of two others one is made twice. The first reply of one that was made. */
async function maybeCut({ desk, world, cuts, lua, random }: Step, verb: string, call: () => Promise<unknown>) {
  const isCut = cuts && random() < 0.3;
  if (isCut) {
    const allowed = Math.floor(random() * 14);
    const site = await cutOff(desk.redis, { verb, lua: lua(verb), allowed, call });
    if (site !== undefined) world.cuts += 1;
  }
  const reply = await call();
  if (random() < 0.3) await call();
  return reply;
}

async function wrongIn(desk: SetDesk, world: World): Promise<string | undefined> {
  const { redis, ref } = desk;
  const looks = world.sets.flatMap((of) => [wrongCallback, wrongIndex, wrongText].map((look) => look(of, world.cuts)));
  const found = (await Promise.all(looks)).find((wrong) => wrong !== undefined);
  if (found !== undefined) return found;
  const letters = (await redis.xrange(ref.keys.dead, '-', '+')).map(([entry]) => entry);
  const known = [...world.dead.keys()].toSorted();
  if (letters.toSorted().join() !== known.join()) return `dead letters are ${letters.join()}, and were ${known.join()}`;
  const made = Number(await redis.hget(ref.keys.meta, 'n.scheduled'));
  const flaws = desk.gates ? await desk.gateFlaws() : [];
  if (flaws.length > 0) return `with limits: ${JSON.stringify(flaws)}`;
  const over = world.sets.filter(({ state }) => state === 'over').length;
  return world.cuts > 0 || made === world.born + over ? undefined : `${made} jobs came into being`;
}

const endsOf = ({ ends }: Named) => [ends.done, ends.dead, ends.cancelled, 0];

async function wrongCallback(of: Named, cuts: number): Promise<string | undefined> {
  const { desk, open, state } = of;
  const [said, was] = [await desk.callback(), endsOf(of)];
  if (said && state !== 'over') return `the callback came: it is ${state}, and ${[...open].join(' ')} are open`;
  const isMade = state !== 'over' || (await desk.redis.hexists(desk.ref.keys.jobs, desk.end.member)) > 0;
  if (!isMade) return 'there is no callback';
  return said && !isNear(said, was, cuts) ? `the callback says ${said.join()}, and it was ${was.join()}` : undefined;
}

/** Who is open. A call that was cut off may leave more. */
async function wrongIndex({ desk, open, strays }: Named, cuts: number): Promise<string | undefined> {
  const index = (await entriesOf(desk, `=set:${desk.set}`)).map((member) => member.slice(desk.member('').length));
  const lost = [...open].filter((id) => !index.includes(id));
  if (lost.length > 0) return `open and not in the index: ${lost.join(' ')}`;
  const more = cuts > 0 ? [] : index.filter((id) => !open.has(id) && !strays.has(id));
  return more.length > 0 ? `in the index and not open: ${more.join(' ')}` : undefined;
}

/** What is written of it. A member whose end was cut off is counted when the set is sealed. */
async function wrongText(of: Named, cuts: number): Promise<string | undefined> {
  const { desk, state, isThere } = of;
  const { redis, ref } = desk;
  const fields = (await redis.hkeys(ref.keys.jobs)).filter((name) => name.endsWith(`\0${desk.set}`));
  if (fields.length !== (isThere ? 2 : 0)) return `it is ${state}, and written: ${fields.join()}`;
  if (cuts > 0) return undefined;
  const isListed = (await redis.zscore(ref.keys.tags, `=sets\0${desk.set}`)) !== null;
  if (isListed !== isThere) return `it is ${state}, and listed: ${isListed}`;
  const [seen] = (await setsOf(redis, ref, { named: [desk.set] })).sets;
  const told = seen && [seen.done, seen.dead, seen.cancelled, seen.expired];
  return told && told.join() !== endsOf(of).join()
    ? `it says ${told.join()}, and it was ${endsOf(of).join()}`
    : undefined;
}

/** What a call has counted that was cut off, it counts again. */
const isNear = (said: readonly number[], was: readonly number[], more: number): boolean =>
  was.every((count, at) => (said[at] ?? -1) >= count && (said[at] ?? -1) <= count + more);

/** The members that the index has for a tag. */
async function entriesOf({ redis, ref }: SetDesk, tag: string): Promise<readonly string[]> {
  const entries = await redis.zrange(ref.keys.tags, `[${tag}\0`, `(${tag}\u0001`, 'BYLEX');
  return entries.map((entry) => entry.slice(tag.length + 1));
}

function told(given: unknown, expected: unknown, what: string): void {
  if (given !== expected) throw new Error(`${what} said ${String(given)}, and not ${String(expected)}`);
}

const marksOf = ({ pick }: Step): Marks => ({
  tag: pick(KINDS.tag) ?? '',
  name: pick(KINDS.name) ?? '',
  error: pick(KINDS.error) ?? '',
});

const asMarked = (marks: Marks | undefined) => ({ header: { tags: [marks?.tag ?? ''] }, name: marks?.name ?? '' });

function jobOf({ desk }: Named, id: string, marks: Marks) {
  const { header, name } = asMarked(marks);
  const record = encodeRecord(NOW, encodeBody({ name, data: 1 }), { set: desk.set, ...header });
  return { member: desk.member(id), record, dueMs: NOW };
}

function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d_2b_79_f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
