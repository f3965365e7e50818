/**
 * The queues of an outbox beside each other: each has a lane, in which one turn follows the other.
 *
 *   a turn   claim (one queue, one statement) ──▶ Redis ──▶ delete what this relay has still claimed
 *
 * What must always hold: a queue that Redis does not take holds up no other queue. A turn that waits for Redis keeps only its own
 * lane; a queue whose turn got nothing through has a pause that grows, and is told once; and of the turns at one moment some are
 * always left for queues that go on.
 */
import type { Clock } from '../kernel/clock.ts';
import { DuestreamError } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import { reasonOf } from '../kernel/reason.ts';
import { type Carried, carry, type RelayCalls } from './carrying.ts';
import { CLAIM_MS, type Claims, QUEUES_AT_ONCE } from './claims.ts';

/** What became of the rows of one pass. */
export interface Relayed {
  readonly claimed: number;
  /** Their calls were made, and they are gone. */
  readonly done: number;
  /** They are to be tried again: no room in the queue, or no Redis. */
  readonly putOff: number;
  /** They wait for a person, and later rows of their keys behind them. */
  readonly refused: number;
}

/** A queue whose calls cannot be made now. */
export interface StalledQueue {
  readonly queue: string;
  /** What was said the last time. */
  readonly why: string;
  /** For how long this relay has tried. */
  readonly forMs: number;
}

/** What a turn came to. */
export interface Turn extends Relayed {
  /** Why nothing got through, where nothing did. */
  readonly stalled: { readonly why: unknown } | undefined;
  /** Another look may find rows, now or behind a pause. */
  readonly hasMore: boolean;
}

export interface LaneParts {
  readonly claims: Claims;
  readonly calls: RelayCalls;
  readonly clock: Clock;
  readonly batch: number;
  readonly log: Log;
  readonly random?: () => number;
}

/** Turns at one moment, and of those the ones of queues that got nothing through the last time. */
const TURNS_MAX = 16;
const STALLED_MAX = 8;
/** A relay that was frozen for so long after its claim asks Redis for nothing. */
export const STALE_MS = CLAIM_MS - 10_000;
const PAUSE_MIN_MS = 250;
const PAUSE_MAX_MS = 15_000;
/** Behind a look that found only rows which nobody may claim. */
const NOTHING_FREE_MS = 100;

interface Lane {
  readonly queue: string;
  /** The key with which the next look begins. */
  from: string;
  /** Turns in a row that got nothing through, and what the last one was told. */
  failures: number;
  why: string;
  sinceMs: number;
  notBeforeMs: number;
  /** The number of its last turn: who has waited longest comes first. */
  nth: number;
  turn: Promise<Turn> | undefined;
}

/** What a look at the queues began. */
export interface Look {
  readonly turns: readonly Promise<Turn>[];
  /** More queues than there is room for have rows. */
  readonly isShort: boolean;
  /** How long until the next look is of use: 0 if there are more queues, at most `mostMs`. */
  readonly nextMs: (mostMs: number) => number;
}

export interface Lanes {
  /** Begins a turn in each lane that has rows, no turn under way and no pause. */
  readonly look: () => Promise<Look>;
  readonly stalled: () => readonly StalledQueue[];
  /** No turn asks Redis any more; resolves when those under way are over. */
  readonly stop: () => Promise<void>;
}

export function createLanes(parts: LaneParts): Lanes {
  const { claims, clock } = parts;
  const lanes = new Map<string, Lane>();
  let from = '';
  let nth = 0;
  let isStopped = false;
  const all = () => [...lanes.values()];

  function begin(lane: Lane): Promise<Turn> {
    nth += 1;
    lane.nth = nth;
    const turn = takeTurn(lane, parts, () => isStopped).finally(() => {
      lane.turn = undefined;
    });
    lane.turn = turn;
    return turn;
  }

  async function look(): Promise<Look> {
    const first = from;
    const names = await claims.queues(first);
    from = names.length < QUEUES_AT_ONCE ? '' : (names.at(-1) ?? '');
    if (first === '' && from === '') dropOthers(names);
    const nowMs = clock.monotonicMs();
    const ready = names
      .map(laneOf)
      .filter((lane) => !lane.turn && lane.notBeforeMs <= nowMs)
      .sort((one, other) => one.nth - other.nth);
    const turns = isStopped ? [] : ready.flatMap((lane) => (hasRoom(all(), lane) ? [begin(lane)] : []));
    const isShort = from !== '' || turns.length < ready.length;
    return { turns, isShort, nextMs: (mostMs) => (from === '' ? soonestMs(all(), clock.monotonicMs(), mostMs) : 0) };
  }

  function laneOf(queue: string): Lane {
    const known = lanes.get(queue);
    if (known) return known;
    const lane = newLane(queue);
    lanes.set(queue, lane);
    return lane;
  }

  /** A person may have removed the rows of a queue that was down. */
  function dropOthers(names: readonly string[]): void {
    for (const lane of all()) {
      if (lane.turn || names.includes(lane.queue)) continue;
      lanes.delete(lane.queue);
      goesOn(lane, parts);
    }
  }

  return {
    look,
    stalled: () => all().flatMap((lane) => (lane.failures > 0 ? [stalledOf(lane, clock)] : [])),
    async stop() {
      isStopped = true;
      await Promise.allSettled(all().flatMap(({ turn }) => turn ?? []));
    },
  };
}

const newLane = (queue: string): Lane => ({
  queue,
  from: '',
  failures: 0,
  why: '',
  sinceMs: 0,
  notBeforeMs: Number.NEGATIVE_INFINITY,
  nth: 0,
  turn: undefined,
});

function hasRoom(lanes: readonly Lane[], lane: Lane): boolean {
  const under = lanes.filter(({ turn }) => turn !== undefined);
  const stalled = under.filter(({ failures }) => failures > 0).length;
  return under.length < TURNS_MAX && (lane.failures === 0 || stalled < STALLED_MAX);
}

function soonestMs(lanes: readonly Lane[], nowMs: number, mostMs: number): number {
  const waits = lanes.flatMap(({ turn, notBeforeMs }) => (turn || notBeforeMs <= nowMs ? [] : [notBeforeMs - nowMs]));
  return Math.ceil(Math.min(mostMs, ...waits));
}

const stalledOf = ({ queue, why, sinceMs }: Lane, clock: Clock): StalledQueue => ({
  queue,
  why,
  forMs: Math.round(clock.monotonicMs() - sinceMs),
});

/** It rejects when the database does. */
async function takeTurn(lane: Lane, parts: LaneParts, isStopped: () => boolean): Promise<Turn> {
  const { clock } = parts;
  try {
    const turn = await carryOut(lane, parts, isStopped);
    if (turn.stalled) pauses(lane, turn.stalled.why, parts);
    // Without a row nothing was tried: it is known as before.
    else if (turn.claimed > 0) goesOn(lane, parts);
    else lane.notBeforeMs = clock.monotonicMs() + (turn.hasMore ? NOTHING_FREE_MS : 0);
    return turn;
  } catch (error) {
    pauses(lane, error, parts);
    throw error;
  }
}

async function carryOut(lane: Lane, parts: LaneParts, isStopped: () => boolean): Promise<Turn> {
  const { claims, calls, clock, batch, log } = parts;
  const askedMs = clock.monotonicMs();
  const { rows, next } = await claims.claim({ queue: lane.queue, from: lane.from, limit: batch });
  lane.from = next;
  // Whoever waited for it has gone: the time of the claim runs out.
  if (isStopped()) return { claimed: rows.length, done: 0, putOff: 0, refused: 0, stalled: undefined, hasMore: false };
  const tookMs = clock.monotonicMs() - askedMs;
  // What another relay may have claimed meanwhile is left to it.
  const carried = tookMs > STALE_MS ? rows.map((row) => ({ row, end: staleEnd(tookMs) })) : await carry(rows, calls);
  await settle(carried, claims, log);
  const ended = (kind: Carried['end']['kind']) => carried.filter(({ end }) => end.kind === kind).length;
  const [done, putOff, refused] = [ended('done'), ended('later'), ended('refused')];
  const [away] = carried.flatMap(({ end }) => (end.kind === 'later' && end.isAway ? [{ why: end.why }] : []));
  // Some rows may be for a partition that is away, and others for one that is there.
  const stalled = done + refused === 0 ? away : undefined;
  return { claimed: rows.length, done, putOff, refused, stalled, hasMore: rows.length > 0 || next !== '' };
}

const staleEnd = (tookMs: number): Carried['end'] => ({
  kind: 'later',
  why: new DuestreamError('unavailable', `rows were claimed ${Math.round(tookMs)} ms ago; nothing was sent`),
  isAway: true,
});

/** What this does not come to is done by the next claim of the same rows: their calls are recognised. */
async function settle(carried: readonly Carried[], claims: Claims, log: Log): Promise<void> {
  const seqsOf = (which: (end: Carried['end']) => boolean) =>
    carried.filter(({ end }) => which(end)).map(({ row }) => row.seq);
  await claims.done(seqsOf(({ kind }) => kind === 'done'));
  for (const { row, end } of carried) {
    if (end.kind !== 'refused') continue;
    const { seq, verb, queue, key } = row;
    await claims.refuse(seq, end.why);
    log.error({ seq, verb, queue, key, why: end.why }, 'a row of the outbox was refused');
  }
  for (const isAway of [false, true]) {
    const seqs = seqsOf((end) => end.kind === 'later' && end.isAway === isAway);
    await claims.putOff(seqs, { isAway });
  }
}

function pauses(lane: Lane, why: unknown, { clock, log, random = Math.random }: LaneParts): void {
  const nowMs = clock.monotonicMs();
  lane.failures += 1;
  lane.why = reasonOf(why);
  const pauseMs = Math.min(PAUSE_MAX_MS, PAUSE_MIN_MS * 2 ** Math.min(lane.failures, 10)) * (0.5 + random() / 2);
  lane.notBeforeMs = nowMs + pauseMs;
  if (lane.failures > 1) return;
  lane.sinceMs = nowMs;
  const { queue } = lane;
  log.warn(
    { queue, why: lane.why },
    'rows of the outbox for this queue cannot be carried out; the relay goes on trying',
  );
}

function goesOn(lane: Lane, { clock, log }: LaneParts): void {
  if (lane.failures === 0) return;
  lane.failures = 0;
  const awayMs = Math.round(clock.monotonicMs() - lane.sinceMs);
  log.info({ queue: lane.queue, awayMs }, 'rows of the outbox for this queue are carried out again');
}
