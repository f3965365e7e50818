/**
 * Random walks through a set: members come, run, end in every way, bring others, die and are replayed; the set is sealed early or
 * late, calls are repeated and cut off, and the leader looks after what was left. After each step the model says whether the
 * callback may be there and what it says. The scripts may be broken ones, to see whether that is noticed.
 */
import { encodeBody, encodeRecord, memberOf } from '../../src/job/codec.ts';
import type { Claim } from '../../src/redis/scripts/replies.ts';
import { effectsOf } from '../../src/worker/run/commit-jobs.ts';
import { cutOff } from './model-cut.ts';
import { CALLBACK, NOW, SET, type SetDesk } from './sets-stories.ts';

type Outcome = 'done' | 'dead' | 'cancelled';
const OUTCOMES: readonly Outcome[] = ['done', 'dead', 'cancelled'];

/** What should be true by now. */
class World {
  readonly open = new Set<string>();
  readonly ends: Record<Outcome, number> = { done: 0, dead: 0, cancelled: 0 };
  /** Id → its dead letter. */
  readonly dead = new Map<string, string>();
  isSealed = false;
  isOver = false;
  /** So many calls were cut off: as many ends may be counted once more. */
  cuts = 0;
  /** Ids that were asked for, and jobs that came into being. */
  made = 0;
  born = 0;

  end(id: string, outcome: Outcome): void {
    if (!this.open.delete(id)) return;
    this.ends[outcome] += 1;
    this.settle();
  }

  settle(): void {
    this.isOver ||= this.isSealed && this.open.size === 0;
  }
}

export interface Walk {
  readonly seed: number;
  readonly steps: number;
  readonly lua: (verb: string) => string;
  /** Whether calls are cut off. */
  readonly cuts: boolean;
}

/** What was wrong first; undefined: nothing. */
export async function walkSets(desk: SetDesk, { seed, steps, lua, cuts }: Walk): Promise<string | undefined> {
  const random = numbers(seed);
  const world = new World();
  const pick = <T>(list: readonly T[]): T | undefined => list[Math.floor(random() * list.length)];
  await desk.begin();
  await desk.gather();
  for (let nth = 0; nth < steps; nth += 1) {
    const [word = '', step] = pick(Object.entries(STEPS)) ?? [];
    if (step) await step({ desk, world, pick, random, lua, cuts });
    // Whoever was cut off has called again; the leader comes within a minute.
    if (cuts && world.cuts > 0) {
      await desk.tend();
      await desk.mendGates();
    }
    const wrong = await wrongIn(desk, world);
    if (wrong !== undefined) return `seed ${seed}, step ${nth} (${word}): ${wrong}`;
    if (world.isOver && random() < 0.3) break;
  }
  const stuck = desk.gates && (await drain(desk));
  return stuck && `seed ${seed}, at the end: ${stuck}`;
}

/** Where only some jobs may run at a time: each comes to its turn, the callback too, and no slot stays taken. */
async function drain(desk: SetDesk): Promise<string | undefined> {
  const { scheduled, ready, holds } = desk.ref.keys;
  await desk.seal();
  for (let turn = 0; turn < 100; turn += 1) {
    for (const begin of [desk.run, desk.adopt]) {
      await begin.call(desk);
      await desk.complete(...desk.claims);
    }
    await desk.tend();
    await desk.mendGates();
    if ((await desk.redis.zcard(scheduled)) + (await desk.redis.xlen(ready)) > 0) continue;
    const held = await desk.redis.zcard(holds);
    if (held > 0) return `${held} jobs have a slot, and none runs`;
    return (await desk.redis.hget(desk.ref.keys.jobs, CALLBACK.member))?.startsWith('.d')
      ? undefined
      : 'no callback ran';
  }
  return `stuck: ${await desk.redis.zrange(scheduled, '0', '-1')}`;
}

interface Step {
  readonly desk: SetDesk;
  readonly world: World;
  readonly pick: <T>(list: readonly T[]) => T | undefined;
  readonly random: () => number;
  readonly lua: Walk['lua'];
  readonly cuts: boolean;
}

const STEPS: Readonly<Record<string, (step: Step) => Promise<void>>> = {
  put,
  another: put,
  async again({ desk, world, pick }) {
    const id = pick([...world.open].filter((one) => !one.includes('!')));
    if (id !== undefined) await desk.put([id]);
  },
  async run({ desk, world, pick, cuts, lua, random }) {
    await desk.run();
    const claims = desk.claims.filter(({ member }) => member.startsWith(memberOf(`{set:${SET}}`)));
    for (const claim of claims) {
      const outcome = pick(OUTCOMES) ?? 'done';
      if (claim.member === CALLBACK.member && desk.gates) await desk.complete(claim);
      if (claim.member === CALLBACK.member) continue;
      const call = () => settle({ desk, world, claim, outcome, random });
      const verb = outcome === 'done' ? 'complete' : outcome === 'dead' ? 'bury' : 'retry';
      await maybeCut({ desk, world, cuts, lua, random, verb, call });
      await noteEnd({ desk, world, claim, outcome });
    }
  },
  async cancel({ desk, world, pick, cuts, lua, random }) {
    const id = pick([...world.open]);
    if (id === undefined) return;
    await maybeCut({ desk, world, cuts, lua, random, verb: 'cancel', call: () => cancel(desk, id) });
    world.end(id, 'cancelled');
  },
  async chain({ desk, world, random }) {
    await desk.run();
    const claim = desk.claims.find(({ member }) => member !== CALLBACK.member);
    for (const one of desk.claims) {
      const id = idOf(one.member);
      if (one.member === CALLBACK.member && desk.gates) await desk.complete(one);
      if (one.member === CALLBACK.member) continue;
      if (one !== claim) {
        await desk.complete(one);
        world.end(id, 'done');
        continue;
      }
      const next = `${id}!then:${Math.floor(random() * 1e9)}.00`;
      const plan = { id: next, ...jobOf(next), bytes: 0, mode: 'keep' as const, strict: false };
      await desk.jobs.commit(desk.ref, one, { ...desk.when, effects: effectsOf(desk.ref.keys, [plan]) });
      world.open.add(next);
      world.made += 1;
      world.born += 1;
      world.end(id, 'done');
    }
  },
  async replay({ desk, world, pick }) {
    const [id, letter] = pick([...world.dead]) ?? [];
    if (id === undefined || letter === undefined || world.isOver) return;
    const reply = await desk.jobs.replay(desk.ref, letter, { nowMs: NOW });
    world.dead.delete(id);
    if (reply.kind !== 'ok') return;
    world.open.add(id);
    world.ends.dead -= 1;
  },
  async seal({ desk, world, cuts, lua, random }) {
    if (world.made < 3) return;
    await maybeCut({ desk, world, cuts, lua, random, verb: 'seal', call: desk.seal });
    world.isSealed = true;
    world.settle();
  },
  tend: async ({ desk }) => void (await desk.tend()),
};

async function put({ desk, world }: Step): Promise<void> {
  const id = `row-${world.made}`;
  const [reply] = await desk.put([id]);
  if ((reply === 'ok') === world.isOver) throw new Error(`a member was answered ${reply}`);
  world.made += 1;
  if (reply !== 'ok') return;
  world.born += 1;
  world.open.add(id);
}

interface Settle {
  readonly desk: SetDesk;
  readonly world: World;
  readonly claim: Claim;
  readonly outcome: Outcome;
}

async function settle({ desk, claim, outcome }: Settle & { readonly random: () => number }): Promise<unknown> {
  if (outcome === 'done') return desk.complete(claim);
  if (outcome === 'dead') return desk.jobs.bury(desk.ref, claim, { ...desk.when, reason: 'broken', error: '' });
  await cancel(desk, idOf(claim.member));
  return desk.jobs.retry(desk.ref, claim, { ...desk.when, delayMs: 1, error: '{}' });
}

async function noteEnd({ desk, world, claim, outcome }: Settle): Promise<void> {
  const id = idOf(claim.member);
  if (outcome === 'dead' && world.open.has(id)) {
    const [entry] = await desk.redis.xrevrange(desk.ref.keys.dead, '+', '-', 'COUNT', 1);
    if (entry) world.dead.set(id, entry[0]);
  }
  world.end(id, outcome);
}

interface Cut {
  readonly desk: SetDesk;
  readonly world: World;
  readonly cuts: boolean;
  readonly lua: Walk['lua'];
  readonly random: () => number;
  readonly verb: string;
  readonly call: () => Promise<unknown>;
}

/** Of three calls one is cut off at any write, and made again; of two others one is made twice. */
async function maybeCut({ desk, world, cuts, lua, random, verb, call }: Cut): Promise<void> {
  const isCut = cuts && random() < 0.3;
  if (isCut) {
    const allowed = Math.floor(random() * 14);
    const site = await cutOff(desk.redis, { verb, lua: lua(verb), allowed, call });
    if (site !== undefined) world.cuts += 1;
  }
  await call();
  if (random() < 0.3) await call();
}

async function wrongIn(desk: SetDesk, world: World): Promise<string | undefined> {
  const { redis, ref } = desk;
  const said = await desk.callback();
  if (said && !world.isOver) return `the callback came early: ${[...world.open].join(' ')} are open`;
  if (world.isOver && (await redis.hexists(ref.keys.jobs, CALLBACK.member)) === 0) return 'there is no callback';
  const { done, dead, cancelled } = world.ends;
  if (said && !isNear(said, [done, dead, cancelled, 0], world.cuts)) {
    return `the callback says ${String(said)}, and it was ${[done, dead, cancelled].join()}`;
  }
  const entries = await redis.zrange(ref.keys.tags, `[=set:${SET}\0`, `(=set:${SET}\u0001`, 'BYLEX');
  const open = entries.map((entry) => idOf(entry.slice(entry.indexOf('\0') + 1)));
  const lost = [...world.open].filter((id) => !open.includes(id));
  if (lost.length > 0) return `open and not in the index: ${lost.join(' ')}`;
  const fields = (await redis.hkeys(ref.keys.jobs)).filter((name) => name.startsWith('\0'));
  if (world.isOver && fields.length > 0) return `left of the set: ${fields.join(' ')}`;
  const made = Number(await redis.hget(ref.keys.meta, 'n.scheduled'));
  const flaws = desk.gates ? await desk.gateFlaws() : [];
  if (flaws.length > 0) return `with limits: ${JSON.stringify(flaws)}`;
  const isCounted = world.cuts > 0 || made === world.born + (world.isOver ? 1 : 0);
  return isCounted ? undefined : `${made} jobs came into being`;
}

const isNear = (said: readonly number[], was: readonly number[], more: number): boolean =>
  was.every((count, at) => (said[at] ?? -1) >= count && (said[at] ?? -1) <= count + more);

const idOf = (member: string): string => member.slice(memberOf(`{set:${SET}}`).length);
const cancel = (desk: SetDesk, id: string) => desk.jobs.cancel(desk.ref, [memberOf(`{set:${SET}}${id}`)], desk.when);

function jobOf(id: string) {
  const record = encodeRecord(NOW, encodeBody({ name: 'row', data: 1 }), { set: SET });
  return { member: memberOf(`{set:${SET}}${id}`), record, dueMs: NOW };
}

function numbers(seed: number): () => number {
  let state = seed * 7919 + 1;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}
