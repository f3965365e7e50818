/** Calls of producers, leaders and people, on Redis and on the model: see `model-commands.ts`. */
import { encodeBody, encodeRecord, memberOf } from '../../src/job/codec.ts';
import { debounceLetter } from '../../src/job/debounce.ts';
import type { HeaderOptions } from '../../src/job/fields.ts';
import { decodeHeader } from '../../src/job/record-header.ts';
import type { TagsChange } from '../../src/redis/scripts/jobs.ts';
import * as lease from '../../src/redis/scripts/lease.ts';
import type { ScheduleItem } from '../../src/redis/scripts/replies.ts';
import * as upkeep from '../../src/redis/scripts/upkeep.ts';
import { seenOf } from './model.ts';
import * as closing from './model-closing.ts';
import type { Resolve } from './model-commands.ts';
import { debounce, lastOrder } from './model-debounce.ts';
import type { Mode } from './model-verbs.ts';
import * as verbs from './model-verbs.ts';
import type { Call, World } from './model-world.ts';

const { horizonMs, bytesMax, leaseMs } = verbs.LIMITS;
const DUES = [0, 0, 0, 40, 100, -100, 2000, horizonMs + 1, horizonMs];
export const MEMBERS = ['j:a', 'j:b', 'j:c', 'bare', 'j:a', 'bare2', 'j:ghost', 'j:compensation'] as const;

/** Those of some jobs. */
export const TAGS = [['x'], ['x', 'y=z'], ['y=z']];
const WRONG = ['nothing', 'nothing', 'digest', 'token', 'place'] as const;

/** Nothing, or what was seen of a job: as it is, or as it was. */
export function seenFor({ model }: World, member: string, kind: number): string | undefined {
  return kind > 8 && kind % 3 === 2 ? seenOf(model, member, pick(WRONG, kind) ?? 'nothing') : undefined;
}

/** An element of a list, whatever the number. */
export function pick<T>(list: readonly T[], at: number): T | undefined {
  return list.length === 0 ? undefined : list[at % list.length];
}

/** Bytes for all records, for the first, for two of them and not a byte more, or a byte less. */
export function roomFor({ model }: World, members: readonly string[], kind: number): number {
  const [one = 0, other = 0] = members.map((member) => model.jobs.get(member)?.record?.length ?? 0);
  return pick([1_000_000, 1_000_000, 1_000_000, 1, one + other, one + other - 1], kind % 6) ?? 1;
}

function lateness(due: number, kind: number): HeaderOptions {
  const kinds: readonly HeaderOptions[] = [
    ...[{}, {}, {}, {}, { expiresAtMs: due + 50 }, { maxLatenessMs: 50, onLate: 'dead' as const }],
    ...[
      { expiresAtMs: due + 50, onLate: 'dead' as const },
      { maxLatenessMs: 0 },
      { expiresAtMs: due, onLate: 'run' as const },
    ],
  ];
  const tags = kind < 18 ? {} : { tags: pick(TAGS, kind) ?? [] };
  return { ...kinds[kind % kinds.length], ...tags };
}

/** `n` also decides how large the data is: every eighth is too large, by one byte. */
function itemOf(
  world: World,
  { id, off, kind, n }: { id: string; off: number; kind: number; n: number },
): ScheduleItem {
  const dueMs = n === 7 ? 99_999_999_999 : n === 15 ? 1e11 : n === 3 ? 0 : world.model.nowMs + off;
  const late = lateness(dueMs, kind);
  const empty = encodeRecord(dueMs, encodeBody({ name: 'default', data: '' }), late).length;
  const text = n % 8 === 6 ? 'x'.repeat(bytesMax - empty + Math.floor(n / 8)) : String(n % 4);
  const record = encodeRecord(dueMs, encodeBody({ name: 'default', data: text }), late);
  const [prefix, header] = [n === 11 ? 'no ' : '', n === 19 ? '2' : ''];
  // As long as a member may be, and longer.
  const suffix = n === 12 ? 'y'.repeat(197) : n === 13 ? 'y'.repeat(198) : '';
  return { member: `${prefix}${memberOf(id)}${suffix}`, record: `${header}${record}`, dueMs };
}

const schedule: Resolve = (world, [a, b, c]) => {
  const off = pick(DUES, b) ?? 0;
  const one = itemOf(world, { id: pick(['a', 'b', 'c'], a) ?? 'a', off, kind: c, n: a });
  const items = b > 17 ? [one, itemOf(world, { id: pick(['a', 'b', 'c'], c) ?? 'a', off: 0, kind: a, n: c })] : [one];
  world.items = items;
  const mode = c > 8 && c < 14 ? 'update' : c % 3 === 2 ? 'replace' : 'keep';
  return scheduleCall(world, { items, mode, generation: a === 23 ? 1 : 0 });
};

/** The same id, due and content, by whoever asks again; with a layout that was read some time ago, or just now. */
const again: Resolve = (world, [a, b]) => {
  if (world.items.length === 0) return undefined;
  const layoutAge = b > 22 ? 'fresh' : b > 20 ? 'remembered' : undefined;
  const items = a < 16 ? world.items : world.items.map((item) => ({ ...item, record: withHeader(item.record) }));
  return scheduleCall(world, { items, mode: a % 2 === 0 ? 'keep' : 'replace', generation: 0, layoutAge });
};

/** As the same job is encoded with a header. */
function withHeader(record: string): string {
  const { askedDueMs = 0, bare: _, ...header } = decodeHeader(record) ?? {};
  return encodeRecord(askedDueMs, record.slice(record.indexOf('|') + 1), { ...header, headers: { again: '1' } });
}

interface Scheduling {
  readonly items: readonly ScheduleItem[];
  readonly mode: Mode;
  readonly generation: number;
  readonly layoutAge?: 'remembered' | 'fresh' | undefined;
}
const MOVED = { kind: 'moved', layoutGeneration: 0 };

function scheduleCall(world: World, { items, mode, generation, layoutAge }: Scheduling): Call {
  const { jobs, ref, model } = world;
  const settings = { mode, horizonMs, bytesMax, ...(layoutAge ? { layoutAge } : {}) };
  return {
    verb: 'schedule',
    real: () => jobs.schedule({ ...ref, layoutGeneration: generation }, items, { ...settings, nowMs: model.nowMs }),
    model: () => {
      if (generation !== 0 || (layoutAge === 'remembered' && !model.declared)) return MOVED;
      if (layoutAge === 'fresh') model.declared = true;
      return verbs.schedule(model, items, mode);
    },
  };
}

const WAITS = [1, 40, 100, 2000];
/** Producers whose clocks differ: a call may be older than one that came before. */
const debounced: Resolve = (world, [a, b, c]) => {
  const { jobs, ref, model } = world;
  const waitMs = pick(WAITS, b) ?? 1;
  const maxMs = waitMs + (pick([0, 100, 5000], c) ?? 0);
  const member = memberOf(pick(['a', 'b', 'c'], a) ?? 'a');
  const last = lastOrder(model, member) ?? model.nowMs;
  const letter = debounceLetter(Math.max(1, last + (pick([1, 2, 1, 0, 50, -1], b + c) ?? 0)), { waitMs, maxMs });
  const dueMs = model.nowMs + waitMs;
  const body = encodeBody({ name: 'default', data: String(c % 3) });
  const record = encodeRecord(dueMs, body, lateness(dueMs, b > 15 ? c : 0), letter);
  const item = { member, record, dueMs };
  return {
    verb: 'schedule',
    real: () => jobs.schedule(ref, [item], { mode: 'debounce', horizonMs, bytesMax, nowMs: model.nowMs }),
    model: () => [debounce(model, item)],
  };
};

/** The term of the leader, or one that was deposed. */
export const termOf = ({ terms }: World, isStale: boolean): string =>
  isStale ? (terms[1] ?? 'm0:1:1000') : (terms[0] ?? 'none');

/** Of a pass. */
export const limitsOf = (b: number, c: number) => ({
  limit: b % 5 === 4 ? 1 : 500,
  cap: pick([10_000, 10_000, 1, 2, 10_000, 3], c) ?? 10_000,
  prolongs: b % 5 !== 3,
});

const promote: Resolve = (world, [a, b, c]) => {
  const { jobs, ref, model } = world;
  const term = termOf(world, a % 6 === 5);
  const { limit, cap, prolongs } = limitsOf(b, c);
  return {
    verb: 'promote',
    real: async () => {
      const prolongedMs = prolongs ? leaseMs : undefined;
      const reply = await jobs.promote(ref, { term, leaseMs: prolongedMs, limit, cap, nowMs: model.nowMs });
      return reply.kind === 'fenced' ? reply : { ...reply, lateness: merged(reply.lateness) };
    },
    model: () => verbs.promote(model, { term, limit, cap, prolongs }),
    promotes: limit === 500 && cap === 10_000 && [...model.jobs.keys()].every(({ length }) => length < 500_000),
  };
};

/** By lateness; the same one may be told twice. */
export function merged(pairs: readonly (readonly [number, number])[]): readonly (readonly [number, number])[] {
  const counts = new Map<number, number>();
  for (const [lateMs, count] of pairs) counts.set(lateMs, (counts.get(lateMs) ?? 0) + count);
  return [...counts].sort(([x], [y]) => x - y);
}

const cancel: Resolve = (world, [a, b, c]) => {
  const { jobs, ref, model } = world;
  const words = [pick(MEMBERS, a) ?? 'j:a', ...(c > 18 ? ['j:b'] : [])];
  const seen = words.map((member) => seenFor(world, member, c));
  const members = words.map((member, at) => (seen[at] === undefined ? member : `${member}\0${seen[at]}`));
  const windowMs = b % 4 === 3 ? 0 : 600_000;
  const generation = b === 23 ? 1 : 0;
  return {
    verb: 'cancel',
    real: () => jobs.cancel({ ...ref, layoutGeneration: generation }, members, { windowMs, nowMs: model.nowMs }),
    model: () => (generation === 0 ? verbs.cancel(model, members, windowMs) : MOVED),
  };
};

const awaitEnds: Resolve = ({ jobs, ref, model }, [a, b]) => {
  const members = [pick(MEMBERS, a) ?? 'j:a', ...(b > 18 ? ['j:b'] : [])];
  const generation = b === 23 ? 1 : 0;
  return {
    verb: 'await',
    real: () => jobs.await({ ...ref, layoutGeneration: generation }, members),
    model: () => (generation === 0 ? verbs.awaitEnds(model, members) : MOVED),
  };
};

const replay: Resolve = (world, [a, b, c]) => {
  const { jobs, ref, model } = world;
  const deadLetter = a === 23 ? '1-1' : pick(model.deadLetters, a)?.id;
  const when = b % 3 === 0 ? { dueMs: model.nowMs + 100 } : {};
  const generation = c === 23 ? 1 : 0;
  if (deadLetter === undefined) return undefined;
  return {
    verb: 'replay',
    real: () => jobs.replay({ ...ref, layoutGeneration: generation }, deadLetter, { ...when, nowMs: model.nowMs }),
    model: () => (generation === 0 ? verbs.replay(model, deadLetter, when.dueMs) : MOVED),
  };
};

const CLOSED = [['x'], ['y=z'], ['x', 'y=z'], ['other'], ['x', 'x'], ['other', 'more', 'y=z']];
/** Two of three calls close, for shorter and longer; some have an end that has come. */
const closeTags: Resolve = ({ jobs, ref, model }, [a, b, c]) => {
  const tags = pick(CLOSED, a) ?? [];
  const untilMs = model.nowMs + (pick([100, 100, 40, 2000, -10, 100], b % 6) ?? 0);
  const layoutAge = c > 21 ? 'fresh' : c > 18 ? 'remembered' : undefined;
  const aged = layoutAge ? ({ layoutAge } as const) : {};
  const change: TagsChange =
    b > 15
      ? { mode: 'open', ...aged }
      : { mode: 'close', untilMs, text: `why ${b}`, most: pick([100, 100, 1, 2], c) ?? 100, ...aged };
  const layoutGeneration = a === 23 ? 1 : 0;
  return {
    verb: 'close-tags',
    real: () => jobs.closeTags({ ...ref, layoutGeneration }, tags, change),
    model: () => {
      if (layoutGeneration !== 0 || (layoutAge === 'remembered' && !model.declared)) return MOVED;
      if (layoutAge === 'fresh' && change.mode === 'close') model.declared = true;
      return closing.closeTags(model, tags, change);
    },
  };
};

const sweep: Resolve = (world, [a, b, c]) => {
  const { model } = world;
  const term = termOf(world, a === 23);
  const age = pick(model.deadLetters, b)?.id;
  const limits: lease.SweepLimits = {
    batch: a % 4 === 3 ? 1 : 100,
    // A tombstone that is exactly as old as the window stays for one more millisecond.
    windowMs: pick([0, 40, 100, 600_000], b) ?? 0,
    tombstonesMax: pick([0, 1, 2, 100], a) ?? 100,
    floorMs: pick([0, 40, 100, 600_000], c) ?? 0,
    retentionMs: c % 3 === 0 ? 1e15 : model.nowMs - verbs.deadLetterMs(age ?? '0-0'),
    deadLettersMax: pick([100, 1, 100, 2], c) ?? 100,
  };
  return {
    verb: 'sweep',
    real: () => lease.sweep(world.redis, world.ref, { term, limits, nowMs: model.nowMs }),
    model: () => verbs.sweep(model, term, limits),
  };
};

const purge: Resolve = (world, [a, b, c]) => {
  const { model } = world;
  const which = {
    mode: a % 4 === 3 ? ('count' as const) : ('remove' as const),
    ageMs: model.nowMs - verbs.deadLetterMs(pick(model.deadLetters, b)?.id ?? '0-0'),
    limit: c % 3 === 2 ? 1 : 100,
    reason: pick(['', '', 'attempts', 'expired'], c) ?? '',
    after: a > 18 ? model.deadLetters[0]?.id : undefined,
  };
  return {
    verb: 'purge',
    real: () => upkeep.purge(world.redis, world.ref, { ...which, nowMs: model.nowMs }),
    model: () => verbs.purge(model, which),
  };
};

const elect: Resolve = (world, [a]) => {
  const processId = a % 4 === 3 ? 'm2' : 'm1';
  const { model } = world;
  return {
    verb: 'elect',
    real: async () => {
      const reply = await lease.elect(world.redis, world.ref, { processId, leaseMs, nowMs: model.nowMs });
      return reply.kind === 'held' ? { kind: 'held', term: reply.term } : reply;
    },
    model: () => verbs.elect(model, processId),
    learn: () => {
      const term = model.leader?.term;
      if (term !== undefined && world.terms[0] !== term) world.terms = [term, ...world.terms];
    },
  };
};

const renew: Resolve = (world, [a]) => {
  const term = termOf(world, a % 3 === 2);
  return {
    verb: 'renew',
    real: () => lease.renew(world.redis, world.ref, { term, leaseMs }),
    model: () => verbs.renew(world.model, term),
  };
};

const resign: Resolve = (world, [a]) => {
  const term = termOf(world, a % 3 === 2);
  return {
    verb: 'resign',
    real: () => lease.resign(world.redis, world.ref, term),
    model: () => verbs.resign(world.model, term),
  };
};

const pause: Resolve = ({ redis, ref, model }) => ({
  verb: 'pause',
  real: async () => (await upkeep.pause(redis, ref, { reason: 'proof', nowMs: model.nowMs })).kind,
  model: () => {
    if (model.paused !== undefined) return 'already';
    model.paused = `${model.nowMs} proof`;
    return 'ok';
  },
});

const resume: Resolve = ({ redis, ref, model }) => ({
  verb: 'resume',
  real: async () => (await upkeep.resume(redis, ref)).kind,
  model: () => {
    if (model.paused === undefined) return 'already';
    model.paused = undefined;
    model.nudges.push('0');
    return 'ok';
  },
});

const remove: Resolve = ({ redis, ref, model }, [a]) => ({
  verb: 'remove',
  real: () => upkeep.remove(redis, ref, { force: a === 0 }),
  model: () => verbs.remove(model, a === 0),
  wipes: true,
});

export const producing = {
  schedule,
  debounced,
  again,
  promote,
  cancel,
  await: awaitEnds,
  replay,
  closeTags,
  sweep,
  purge,
  elect,
  renew,
  resign,
  pause,
  resume,
  remove,
};
