/**
 * Writes the state of a led partition at the beginning of each minute, for charts: `job/minutes.ts` says what that is. One
 * write per partition and minute, and none while this process does not lead.
 *
 *     elected ──▶ what is the state? ──▶ minute begins ──▶ state ──▶ written if it differs from the last, and `at` ──▶ …
 *
 * Many jobs are due when a minute begins. So the look is a moment before, each partition at its own: those jobs belong to the
 * minute that begins, and nothing of ours stands in their way.
 *
 * A state that did not change is not written; when the next differs, it is written beside that, as it was one minute
 * before. A leader that dies takes the lateness of a minute with it, and nothing else. The recorder does not tell of a
 * failure: the chart has a gap, and the services that need Redis for jobs tell of the outage.
 */

import type { EventSource } from '../../job/events.ts';
import {
  addTime,
  clear,
  type Fine,
  longestIn,
  MINUTE_MS,
  type MinuteMark,
  type MinuteState,
  NO_FINE,
  noTally,
  SPREADS,
  stateText,
  type Tally,
} from '../../job/minutes.ts';
import { isNewPromise } from '../../job/promise.ts';
import type { LatenessPromise } from '../../job/queue-settings.ts';
import { createLoop, type Idle, idle } from '../../kernel/loop.ts';
import { spreadMs } from '../../kernel/spread.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import {
  addTimes,
  type FineTotals,
  fineNow,
  notedOf,
  notePromise,
  stateNow,
  type WrittenState,
  writeStates,
  writtenState,
} from '../../redis/read/minutes.ts';
import { findQueue, partitionsOf } from '../../redis/scripts/queues.ts';
import type { Chore, Duty } from '../partition-loop.ts';
import { createHourKeeper } from './hour-keeper.ts';

export interface RecorderParts extends Duty {
  readonly namespace: string;
  /** The partition with the settings of now. */
  readonly current: () => PartitionRef;
  /** Whether it is kept also of a queue that promises nothing about its lateness. */
  readonly always: boolean;
  /** Epoch ms by the clock of Redis. */
  readonly serverMs: () => number;
}

/** The last state that was seen, at the beginning of a minute, or when this process began to lead. */
interface Seen extends WrittenState {
  readonly isWritten: boolean;
  /** All times by octaves, from which what came since is told. */
  readonly fine: FineTotals;
}

/** How often a process that does not lead looks whether it leads by now. */
const IDLE_MS = 5000;
/** The state of a minute is taken at least so long before it begins, */
const AHEAD_MIN_MS = 100;
/** and at most so much earlier: each partition has its own moment. */
const AHEAD_SPREAD_MS = 900;
/** A clock that is a little behind has come so far when the timer fires. */
const SLACK_MS = 20;

export function createRecorder(parts: RecorderParts): Chore {
  const { ref, leading, serverMs, clock, events } = parts;
  const late = noTally();
  const keepHours = createHourKeeper(parts);
  const aheadMs = AHEAD_MIN_MS + spreadMs(`${ref.queue}:${ref.partition}`, AHEAD_SPREAD_MS);
  let seen: Seen | undefined;
  /** A promise may be noted that was taken back since. */
  let isUnsure = true;
  let stopListening: (() => void) | undefined;

  /** Nothing is kept, by this process or at all. */
  async function rest(): Promise<Idle> {
    seen = undefined;
    clear(late);
    if (leading() === undefined) isUnsure = true;
    else if (isUnsure) isUnsure = !(await hasTakenBack(parts));
    return idle(IDLE_MS);
  }

  /** Looks, and writes where a minute has begun. Returns milliseconds until the next. */
  async function pass(): Promise<number | Idle> {
    if (!leading() || !(parts.always || parts.current().lateness)) return rest();
    isUnsure = true;
    const minute = Math.floor((serverMs() + aheadMs) / MINUTE_MS);
    try {
      if (!seen || seen.minute > minute) seen = await firstSeen(parts, minute);
      else if (seen.minute < minute) seen = await looked(parts, { seen, minute, late });
      await keepHours(minute);
    } catch {
      // The next minute is another one.
    }
    return idle(Math.max(0, (minute + 1) * MINUTE_MS - serverMs() - aheadMs) + SLACK_MS);
  }

  const loop = createLoop({ who: `recorder of ${ref.queue}:${ref.partition}`, pass, clock, events });
  return {
    start() {
      stopListening ??= listen(events, ref, late);
      loop.start();
    },
    stop() {
      stopListening?.();
      return loop.stop();
    },
    pass,
  };
}

/** One listener for all partitions of a process, because each of their passes is told to every listener. */
const heard = new WeakMap<EventSource, Map<string, Tally>>();

function listen(events: EventSource, { queue, partition }: PartitionRef, late: Tally): () => void {
  const lists = heard.get(events) ?? hear(events);
  const key = `${queue}:${partition}`;
  lists.set(key, late);
  return () => {
    if (lists.get(key) === late) lists.delete(key);
  };
}

function hear(events: EventSource): Map<string, Tally> {
  const lists = new Map<string, Tally>();
  heard.set(events, lists);
  events.on('jobs.promoted', ({ queue, partition, lateness }) => {
    const late = lists.get(`${queue}:${partition}`);
    if (!late) return;
    for (const [lateMs, count] of lateness) addTime(late, lateMs, count);
  });
  return lists;
}

/** The state with which the leader before has begun this minute, or that of now. */
async function firstSeen({ redis, ref }: RecorderParts, minute: number): Promise<Seen> {
  const [known, fine] = await Promise.all([writtenState(redis, ref, minute), fineNow(redis, ref, minute)]);
  if (known) return { ...known, since: minute, isWritten: true, fine };
  const { noted: _, ...state } = await stateNow(redis, ref);
  return { minute, since: minute, text: stateText(state), isWritten: false, fine };
}

interface Look {
  readonly seen: Seen;
  readonly minute: number;
  readonly late: Tally;
}

async function looked(parts: RecorderParts, { seen, minute, late }: Look): Promise<Seen> {
  const { redis, ref, current } = parts;
  // What is refused, by a Redis that is full, waits for the next minute.
  await addTimes(redis, ref, { name: 'promotion', tally: late, minute });
  const state = await stateUnder(parts, { asked: current().lateness, minute });
  const text = stateText(state);
  const isSame = text === seen.text;
  const at: MinuteMark = { minute, since: minute === seen.minute + 1 ? seen.since : minute };
  if (isSame) {
    await writeStates(redis, ref, { at, states: [] });
    return { ...at, text, isWritten: false, fine: seen.fine };
  }
  const fine = await fineNow(redis, ref, minute);
  const states = [
    ...(seen.isWritten ? [] : [seen]),
    { ...at, text: withFine(state, { before: seen.fine, now: fine }) },
  ];
  await writeStates(redis, ref, { at, states });
  return { ...at, text, isWritten: true, fine };
}

/** The first partition has what is promised of its queue; a promise that is new begins with this state. */
async function stateUnder(
  { redis, namespace, ref }: RecorderParts,
  { asked, minute }: { readonly asked: LatenessPromise | undefined; readonly minute: number },
): Promise<MinuteState> {
  const { noted, ...state } = await stateNow(redis, ref);
  const layout = ref.partition === 0 && isNewPromise(noted, asked) && (await findQueue(redis, namespace, ref.queue));
  if (!layout) return state;
  await notePromise(redis, partitionsOf(namespace, layout), { asked, minute });
  const { noted: _, ...under } = await stateNow(redis, ref);
  return under;
}

/**
 * A promise that was taken back is not noted any more, or the same one, made again after days, would count from when it was first
 * made. @returns whether that is so; false: Redis did not answer
 */
async function hasTakenBack({ redis, namespace, ref, serverMs }: RecorderParts): Promise<boolean> {
  try {
    if (ref.partition !== 0 || !(await notedOf(redis, ref))) return true;
    const layout = await findQueue(redis, namespace, ref.queue);
    const minute = Math.floor(serverMs() / MINUTE_MS);
    // The settings that this process knows may be older than the promise.
    if (layout && !layout.lateness?.isOn) await notePromise(redis, [ref], { asked: undefined, minute });
    return true;
  } catch {
    return false;
  }
}

/** With what came since the state before. A total that fell has been lost: then nothing is told. */
function withFine(
  state: MinuteState,
  { before, now }: { readonly before: FineTotals; readonly now: FineTotals },
): string {
  const grown = (one: Fine, other: Fine): Fine => {
    const counts = [...other.counts].map(([at, times]) => [at, times - (one.counts.get(at) ?? 0)] as const);
    const grew = new Map(counts.filter(([, times]) => times > 0));
    return { counts: grew, maxMs: longestIn(grew, other.maxMs) };
  };
  const fine = SPREADS.map((name) => [name, grown(before[name], now[name])] as const);
  return stateText({
    ...state,
    fine: { promotion: NO_FINE, start: NO_FINE, run: NO_FINE, ...Object.fromEntries(fine) },
  });
}
