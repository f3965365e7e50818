/**
 * What a call did to jobs, as rows of the table in `transitions.ts`: the state of each member that it changed, before
 * and after. A state is where a member is, so it is read off a snapshot by place.
 */
import { decodeRun, decodeTombstone, type Run } from '../../src/job/codec.ts';
import { messageOf } from '../../src/kernel/errors.ts';
import type { Snapshot } from './invariants.ts';
import { type Transition, transitions } from './transitions.ts';

/** `from verb to`, as in `ready complete done`. */
export const rowsOf = ({ verb, moves }: Transition): readonly string[] =>
  Object.entries(moves).flatMap(([from, states]) => states.map((to) => `${from} ${verb} ${to}`));

/** Every row of the table. */
export const rows: ReadonlySet<string> = new Set(transitions.flatMap(rowsOf));

interface Between {
  readonly before: Snapshot;
  readonly after: Snapshot;
  /** Members that the reply says were moved, although a snapshot does not show it: an idle time begins anew. */
  readonly touched?: readonly string[];
}

/** The rows that a call was. Who is as before, to the byte, was not moved. */
export function movesOf(verb: string, { before, after, touched = [] }: Between): readonly string[] {
  const [was, is] = [placesOf(before), placesOf(after)];
  const moves = [...new Set([...was.keys(), ...is.keys()])].filter(isWatched).flatMap((member) => {
    const [from, to] = [was.get(member) ?? NOWHERE, is.get(member) ?? NOWHERE];
    // A dead letter is all that is left of a job without a tombstone: the one that this call wrote, or took away.
    const [written, taken] = [to.deadLetters > from.deadLetters, to.deadLetters < from.deadLetters];
    const [left, reached] = [from.state, from.stored && !to.stored && to.state === 'ready' ? 'none' : to.state];
    if (from.all === to.all && !touched.includes(member) && (left !== 'none' || written === taken)) return [];
    return [named(left === 'none' && taken ? 'dead' : left, verb, reached === 'none' && written ? 'dead' : reached)];
  });
  return [...new Set(moves)].sort();
}

/** Not a set, which is no job; nor its callback, which any end of a job may make. */
const isWatched = (member: string): boolean => !member.startsWith('\0') && !member.endsWith('{then}');

/** Verbs without rows of their own: what they do to a job is one of these after the other, each at most once. */
const MADE_OF: Readonly<Record<string, readonly string[]>> = {
  serve: ['complete', 'start'],
  relay: ['complete', 'promote', 'start'],
  hand: ['complete', 'start'],
};

function named(from: string, verb: string, to: string): string {
  return wayOf(MADE_OF[verb] ?? [verb], from, to) ?? `${from} ${verb} ${to}`;
}

/** The first row of the shortest way from a state to another. */
function wayOf([verb, ...more]: readonly string[], from: string, to: string): string | undefined {
  if (verb === undefined) return undefined;
  const row = `${from} ${verb} ${to}`;
  const alone = rows.has(row) ? row : wayOf(more, from, to);
  if (alone !== undefined) return alone;
  const first = [...rows].filter((one) => one.startsWith(`${from} ${verb} `));
  return first.find((one) => wayOf(more, one.split(' ')[2] ?? '', to) !== undefined);
}

/**
 * The same calls; one that moves a job by no row of the table fails. Let through unseen are calls that overlap, and those
 * on a key of another type, of which there is no picture. The rows that were seen are added to `seen`.
 */
export function watched<T extends object>(jobs: T, look: () => Promise<Snapshot>, seen = new Set<string>()): T {
  let open = 0;
  return new Proxy(jobs, {
    get(target, verb) {
      const call: unknown = Reflect.get(target, verb);
      if (typeof call !== 'function' || typeof verb !== 'string') return call;
      return async (...args: unknown[]) => {
        open += 1;
        const isAlone = open === 1;
        try {
          const before = await look().catch(unlessWrongType);
          const reply = await call.apply(target, args);
          const moves = before && isAlone && open === 1 ? movesOf(verb, { before, after: await look() }) : [];
          const unknown = moves.filter((move) => !rows.has(move));
          if (unknown.length > 0) throw new Error(`no row of the table of transitions: ${unknown.join('; ')}`);
          for (const move of moves) seen.add(move);
          return reply;
        } finally {
          open -= 1;
        }
      };
    },
  });
}

function unlessWrongType(error: unknown): undefined {
  if (!/WRONGTYPE/.test(messageOf(error))) throw error;
}

interface Place {
  readonly state: string;
  /** There is a record or a tombstone. Else an entry may be left of a life that was forgotten. */
  readonly stored: boolean;
  readonly deadLetters: number;
  /** What makes up its place; of what is over, its tombstone alone. */
  readonly all: string;
}

/** In line: so much above the due time. */
const [WAITS, WAITS_END] = [2 ** 52, 2 ** 52 + 2 ** 50];
const OVER = { done: 1, cancelled: 1, expired: 1, dead: 1 };
const NOWHERE: Place = { state: 'none', stored: false, deadLetters: 0, all: '' };

function placesOf(snapshot: Snapshot): ReadonlyMap<string, Place> {
  const { scheduled, jobs, runs, ready, dead } = snapshot;
  const deadLettersOf = new Map<string, number>();
  for (const { fields } of dead) {
    const member = fields.get('member') ?? '';
    deadLettersOf.set(member, (deadLettersOf.get(member) ?? 0) + 1);
  }
  const entries = new Set(ready.map(({ member }) => member));
  const members = [scheduled, jobs, runs, entries, deadLettersOf].flatMap((part) => [...part.keys()]);
  return new Map(
    members.map((member) => {
      const [content, run] = [jobs.get(member), decodeRun(runs.get(member) ?? '')];
      const state = stateOf({ content, run, score: scheduled.get(member), hasEntry: entries.has(member) });
      const live = [scheduled.get(member), runs.get(member), state === 'ready' && holdersOf(snapshot, member)];
      const all = state === 'none' ? '' : JSON.stringify([state, content, !(state in OVER) && live]);
      return [
        member,
        { state, stored: content !== undefined, deadLetters: deadLettersOf.get(member) ?? 0, all },
      ] as const;
    }),
  );
}

/** An entry more or less is no move, because start lets one through; but who holds it may change. */
function holdersOf({ ready, pending }: Snapshot, member: string): readonly string[] {
  const held = ready.filter((entry) => entry.member === member).map(({ entry }) => pending.get(entry) ?? '-');
  return [...new Set(held)].sort();
}

interface Found {
  readonly content: string | undefined;
  readonly run: Run | undefined;
  readonly score: number | undefined;
  readonly hasEntry: boolean;
}

/** A foreign producer may put once more what runs or is over: what runs is running, what is over is scheduled again. */
function stateOf({ content, run, score, hasEntry }: Found): string {
  if (run?.owner !== undefined) return 'running';
  if (score !== undefined) return score >= WAITS && score < WAITS_END ? 'waiting' : 'scheduled';
  return decodeTombstone(content ?? '')?.outcome ?? (content !== undefined || hasEntry ? 'ready' : 'none');
}
