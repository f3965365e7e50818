/**
 * How a page learns what happens now, whatever stands between it and the daemon:
 *
 *     stream ──▶ each second an event                          a stream that is refused, or is silent for too long
 *       ▲                                                                        │
 *       └──── every so often it is tried again ◀──── one look each 3 s ◀─────────┘
 *
 * A proxy that holds back what it could send in larger pieces lets no event through, but it does pass on an answer that ends.
 * Looks have numbers, and the name of the daemon's run in front: a number that is missing from a stream is a gap, and so is
 * another run, or a look that failed.
 */

import { words } from './words/words.ts';

export type WatchState = 'connecting' | 'live' | 'polling' | 'paused' | 'away' | 'ended';

export interface Watched<Now> {
  readonly now: Now | undefined;
  readonly state: WatchState;
  /** Looks were missed, or another daemon answers: what the page had asked for before may be old. */
  readonly hasGap: boolean;
  /** Why it is away, has ended or polls, in words. */
  readonly why: string;
}

/** What a stream says. */
export interface StreamListener<Now> {
  readonly now: (id: string, now: Now) => void;
  /** Redis does not answer; it says nothing more until that has changed. */
  readonly away: () => void;
  readonly bye: (code: string) => void;
  /** It dials again by itself. */
  readonly broken: () => void;
  /** It does not dial again. */
  readonly refused: () => void;
}

export type Polled<Now> = { readonly kind: 'now'; readonly id: string; readonly now: Now } | { readonly kind: 'away' };

export interface WatchingParts<Now> {
  /** @returns what closes it */
  readonly openStream: (listener: StreamListener<Now>) => () => void;
  /** One look, by a request that ends. */
  readonly poll: () => Promise<Polled<Now>>;
  /** @returns what calls it off */
  readonly after: (ms: number, act: () => void) => () => void;
  readonly tell: (change: Partial<Watched<Now>>) => void;
  /** A failed look, in words. */
  readonly wordsFor: (problem: unknown) => string;
}

export interface Watching {
  readonly open: () => void;
  readonly close: () => void;
  /** What comes next is no gap. */
  readonly forget: () => void;
}

/** An event comes each second: after so long without one, none gets through. */
export const SILENT_MS = 10_000;
/** After which time a stream that has ended is asked for again. */
export const AGAIN_MS = 3000;
export const POLL_MS = 3000;
/** After so many looks the stream is tried again: five minutes. */
export const POLLS_MAX = 100;

const POLLING = words.frame.polling(POLL_MS / 1000);
const { away: AWAY, farewells: FAREWELLS } = words.frame;

interface Seen {
  readonly id: string;
  readonly way: 'live' | 'polling';
}

interface Going<Now> extends WatchingParts<Now> {
  last: Seen | undefined;
  /** The look before this one. */
  hasFailed: boolean;
  closeStream: () => void;
  callOff: (() => void) | undefined;
  /** What was asked in an earlier round is not wanted any more. */
  round: number;
}

export function createWatching<Now>(parts: WatchingParts<Now>): Watching {
  const going: Going<Now> = {
    ...parts,
    last: undefined,
    hasFailed: false,
    closeStream: () => undefined,
    callOff: undefined,
    round: 0,
  };
  return {
    open: () => open(going),
    close: () => close(going),
    forget() {
      going.last = undefined;
      going.hasFailed = false;
    },
  };
}

function close<Now>(going: Going<Now>): void {
  going.round += 1;
  rest(going);
  going.closeStream();
  going.closeStream = () => undefined;
}

/** Waits for nothing. */
function rest<Now>(going: Going<Now>): void {
  going.callOff?.();
  going.callOff = undefined;
}

function next<Now>(going: Going<Now>, ms: number, act: () => void): void {
  rest(going);
  going.callOff = going.after(ms, act);
}

function open<Now>(going: Going<Now>): void {
  const { tell } = going;
  close(going);
  const isHeard = () => next(going, SILENT_MS, () => fallBack(going));
  isHeard();
  going.closeStream = going.openStream({
    now(id, now) {
      isHeard();
      saw(going, { id, way: 'live' }, now);
    },
    away() {
      rest(going);
      tell({ state: 'away', why: AWAY });
    },
    bye(code) {
      if (code === 'renew') {
        open(going);
        return;
      }
      close(going);
      tell({ state: 'ended', why: FAREWELLS[code] ?? '' });
      next(going, AGAIN_MS, () => open(going));
    },
    broken() {
      tell({ state: 'connecting' });
      if (going.callOff === undefined) isHeard();
    },
    refused: () => fallBack(going),
  });
}

function saw<Now>(going: Going<Now>, seen: Seen, now: Now): void {
  const isGap = going.hasFailed || (going.last !== undefined && isGapBetween(going.last, seen));
  going.last = seen;
  going.hasFailed = false;
  going.tell({ now, state: seen.way, why: seen.way === 'live' ? '' : POLLING, ...(isGap ? { hasGap: true } : {}) });
}

function fallBack<Now>(going: Going<Now>): void {
  close(going);
  void look(going, 1);
}

async function look<Now>(going: Going<Now>, nth: number): Promise<void> {
  const { round, tell } = going;
  try {
    const polled = await going.poll();
    if (round !== going.round) return;
    if (polled.kind === 'now') saw(going, { id: polled.id, way: 'polling' }, polled.now);
    else tell({ state: 'away', why: AWAY });
    next(going, POLL_MS, () => (nth < POLLS_MAX ? void look(going, nth + 1) : open(going)));
  } catch (problem) {
    if (round !== going.round) return;
    going.hasFailed = going.last !== undefined;
    tell({ state: 'away', why: going.wordsFor(problem) });
    next(going, AGAIN_MS, () => open(going));
  }
}

/** Ids are `<name of the daemon's run>-<number>`. Looks in between are no gap for who polls. */
function isGapBetween(before: Seen, now: Seen): boolean {
  const [run, number] = split(before.id);
  const [runNow, numberNow] = split(now.id);
  if (run !== runNow) return true;
  return before.way === 'live' && now.way === 'live' && numberNow !== number + 1;
}

function split(id: string): readonly [run: string, number: number] {
  const at = id.lastIndexOf('-');
  return [id.slice(0, at), Number(id.slice(at + 1))];
}

/** What a stream that has ended said first: a look, or that Redis is away. @throws Error where it said neither */
export function polledOf<Now>(text: string): Polled<Now> {
  for (const event of text.split('\n\n')) {
    const fields = new Map(event.split('\n').map((row) => fieldOf(row)));
    const [name, id = '', data = ''] = [fields.get('event'), fields.get('id'), fields.get('data')];
    if (name === 'now') return { kind: 'now', id, now: JSON.parse(data) };
    if (name === 'away') return { kind: 'away' };
  }
  throw new Error('The daemon answered without a look.');
}

function fieldOf(row: string): readonly [name: string, value: string] {
  const at = row.indexOf(': ');
  return at < 0 ? [row, ''] : [row.slice(0, at), row.slice(at + 2)];
}
