/**
 * A job under which workers died may be what killed them, or harmless. One whose next crash would be its last is a
 * suspect, and is started alone: if its worker dies again, it was the only job that a crash can be counted for. So
 * nobody dies of another's poison, and the jobs of a worker that died once are taken over at full speed.
 *
 *  suspect arrives ──▶ nothing more is started ──▶ what runs has ended, or is old ──▶ start it
 *        ▲                                                                              │ it has ended, or is old
 *        └──────── others have as long as they waited ◀── no suspect left, or 2 s over ◀┘
 *
 * Old is what has run for `ALONE_MS`: a job that kills its worker mostly does so at once, and a long one must not hold
 * up a worker with many slots. So others wait for twice that at most, and an old job may share a crash with a suspect.
 * One that was started last before a crash goes first: then an old job beside it has not begun again.
 *
 * Redis is waited for besides. Until the start of a suspect is answered or given up nothing else is started: its answer
 * may come at any moment, and it must not find others running. A start is given up when the time is over in which it is
 * repeated, and one more time-out of a command. So long a silent Redis can hold up all workers of the process, also those
 * of another Redis.
 *
 * All workers of a process take part in one quarantine, because they die together. So whatever fails in here, it is
 * open again afterwards: closed for ever, no worker of the process would start anything.
 */

import type { Token } from '../../job/job.ts';
import { createAbort } from '../../kernel/abort.ts';
import type { Clock } from '../../kernel/clock.ts';
import { reasonOf } from '../../kernel/reason.ts';
import { type InFlight, type InFlightEntry, isCompletedEarly } from './in-flight.ts';

/** How long a suspect has its process for itself. */
export const ALONE_MS = 2000;

export interface Member {
  readonly inFlight: InFlight;
  readonly clock: Clock;
  /**
   * Starts a suspect. Resolves when its handler runs or the entry has left the in-flight map, as it also does when no
   * reply comes; never rejects.
   */
  readonly start: (held: InFlightEntry) => Promise<void>;
}

/** What a worker has of the quarantine that it joined. */
export interface Membership {
  /** Takes in an entry of this worker that is in its in-flight map; the token is that of its last start. */
  readonly admit: (held: InFlightEntry, token: Token) => void;
  /**
   * Leaves the quarantine: from this call on it starts nothing of this worker, and nothing may be admitted any more.
   * Returns the suspects that were not started; they have left the in-flight map.
   */
  readonly leave: () => readonly InFlightEntry[];
}

interface Suspect {
  readonly held: InFlightEntry;
  readonly token: Token;
  readonly member: Member;
}

export interface Quarantine {
  readonly join: (member: Member) => Membership;
}

interface Line {
  readonly members: Set<Member>;
  /** Who waits, the next one first. */
  suspects: Suspect[];
  /** Undefined while nobody waits; otherwise turns are taken, and it ends a recess before its time. */
  recess: AbortController | undefined;
}

export function createQuarantine(): Quarantine {
  const line: Line = { members: new Set(), suspects: [], recess: undefined };
  return {
    join(member) {
      line.members.add(member);
      if (line.recess) member.inFlight.setOpen(false);
      return {
        admit: (held, token) => admit(line, { held, token, member }),
        leave: () => leave(line, member),
      };
    },
  };
}

function admit(line: Line, suspect: Suspect): void {
  suspect.member.inFlight.suspected(suspect.held);
  line.suspects.push(suspect);
  line.suspects.sort((one, other) => newestFirst(one.token, other.token));
  if (!line.recess) takeTurns(line).catch((error: unknown) => letGo(undefined, error));
}

function leave(line: Line, member: Member): readonly InFlightEntry[] {
  line.members.delete(member);
  const mine = line.suspects.filter((suspect) => suspect.member === member).map(({ held }) => held);
  line.suspects = line.suspects.filter((suspect) => suspect.member !== member);
  for (const held of mine) member.inFlight.forgotten(held);
  line.recess?.abort();
  return mine;
}

async function takeTurns(line: Line): Promise<void> {
  line.recess = createAbort();
  try {
    while (line.suspects.length > 0) await takeRound(line);
  } finally {
    line.recess = undefined;
    setOpen(line, true);
  }
}

/** Suspects for 2 s at most, then a recess as long as the others waited. */
async function takeRound(line: Line): Promise<void> {
  const { clock } = line.suspects[0]?.member ?? {};
  if (!clock) return;
  const closedMs = clock.monotonicMs();
  const closedForMs = () => clock.monotonicMs() - closedMs;
  setOpen(line, false);
  do await takeTurn(line);
  while (line.suspects.length > 0 && closedForMs() < ALONE_MS);
  setOpen(line, true);
  line.recess = createAbort();
  if (line.suspects.length > 0) await clock.sleep(closedForMs(), line.recess.signal);
}

async function takeTurn(line: Line): Promise<void> {
  const { clock } = line.suspects[0]?.member ?? {};
  if (!clock) return;
  let suspect: Suspect | undefined;
  try {
    await within(clock, (signal) => Promise.all([...line.members].map((member) => quiet(member, signal))));
    suspect = line.suspects.shift();
    if (suspect) await startAlone(suspect);
  } catch (error) {
    // Whatever failed, one suspect less waits: a turn that fails each time must not be taken for ever.
    letGo(suspect ?? line.suspects.shift(), error);
  }
}

async function startAlone({ held, member }: Suspect): Promise<void> {
  const { inFlight, clock } = member;
  inFlight.startsAlone(held);
  await member.start(held);
  await within(clock, (signal) => inFlight.until(() => isOver(held), signal));
}

/** Its entry stays pending in Redis under its worker's name. There adoption finds it. */
function letGo(suspect: Suspect | undefined, error: unknown): void {
  process.emitWarning(`starting a suspect alone failed: ${reasonOf(error)}`);
  if (!suspect) return;
  const { held, member } = suspect;
  if (held.state.phase === 'suspected' || held.state.phase === 'starting') member.inFlight.forgotten(held);
}

function setOpen({ members }: Line, open: boolean): void {
  for (const { inFlight } of members) inFlight.setOpen(open);
}

/** Of this process, whose workers die together. */
export const processQuarantine = createQuarantine();

/** Resolves when a crash now would be counted for nothing young of this worker, or with the signal. */
function quiet({ inFlight, clock }: Member, signal: AbortSignal): Promise<void> {
  const isYoung = (held: InFlightEntry) => {
    if (held.state.phase === 'suspected' || isOver(held)) return false;
    return !('start' in held.state) || clock.monotonicMs() - held.state.start.startedMs < ALONE_MS;
  };
  // What Redis starts for a call that is under way is young when it comes.
  return inFlight.until(() => !inFlight.isExpecting() && !inFlight.all().some(isYoung), signal);
}

/** A crash is not counted for it any more. */
const isOver = (entry: InFlightEntry) => entry.state.phase === 'gone' || isCompletedEarly(entry);

/** Waits for something, and for `ALONE_MS` at most. */
async function within(clock: Clock, wait: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
  const over = createAbort();
  const disarm = clock.timer(ALONE_MS, () => over.abort());
  try {
    await wait(over.signal);
  } finally {
    disarm();
  }
}

/** Tokens are decimal texts without leading zeros. */
function newestFirst(one: Token, other: Token): number {
  return other.length - one.length || (one < other ? 1 : -1);
}
