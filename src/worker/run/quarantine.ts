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
 * All workers of a process take part in one quarantine, because they die together.
 */

import type { Token } from '../../job/job.ts';
import { createAbort } from '../../kernel/abort.ts';
import type { Clock } from '../../kernel/clock.ts';
import { crash } from '../../kernel/crash.ts';
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
  readonly start: (entry: InFlightEntry) => Promise<void>;
}

/** What a worker has of the quarantine that it joined. */
export interface Membership {
  /** Takes in an entry of this worker that is in its in-flight map; the token is that of its last start. */
  readonly admit: (entry: InFlightEntry, token: Token) => void;
  /**
   * Leaves the quarantine: from this call on it starts nothing of this worker, and nothing may be admitted any more.
   * Returns the suspects that were not started; they have left the in-flight map.
   */
  readonly leave: () => readonly InFlightEntry[];
}

interface Suspect {
  readonly entry: InFlightEntry;
  readonly token: Token;
  readonly member: Member;
}

export interface Quarantine {
  readonly join: (member: Member) => Membership;
}

interface Ward {
  readonly members: Set<Member>;
  /** Suspects that wait, the next one first. */
  suspects: Suspect[];
  /** Undefined while no suspect waits; otherwise it ends a recess before its time. */
  recess: AbortController | undefined;
}

export function createQuarantine(): Quarantine {
  const ward: Ward = { members: new Set(), suspects: [], recess: undefined };
  return {
    join(member) {
      ward.members.add(member);
      if (ward.recess) member.inFlight.setOpen(false);
      return {
        admit: (entry, token) => admit(ward, { entry, token, member }),
        leave: () => leave(ward, member),
      };
    },
  };
}

function admit(ward: Ward, suspect: Suspect): void {
  suspect.member.inFlight.suspected(suspect.entry);
  ward.suspects.push(suspect);
  ward.suspects.sort((one, other) => newestFirst(one.token, other.token));
  if (!ward.recess) startSuspects(ward).catch(crash);
}

function leave(ward: Ward, member: Member): readonly InFlightEntry[] {
  ward.members.delete(member);
  const own = ward.suspects.filter((suspect) => suspect.member === member).map(({ entry }) => entry);
  ward.suspects = ward.suspects.filter((suspect) => suspect.member !== member);
  for (const entry of own) member.inFlight.forgotten(entry);
  ward.recess?.abort();
  return own;
}

async function startSuspects(ward: Ward): Promise<void> {
  ward.recess = createAbort();
  while (ward.suspects.length > 0) await startSome(ward);
  ward.recess = undefined;
  setOpen(ward, true);
}

/** Suspects for 2 s at most, then a recess as long as the others waited. */
async function startSome(ward: Ward): Promise<void> {
  const { clock } = ward.suspects[0]?.member ?? {};
  if (!clock) return;
  const closedMs = clock.monotonicMs();
  const closedForMs = () => clock.monotonicMs() - closedMs;
  setOpen(ward, false);
  do await startNext(ward);
  while (ward.suspects.length > 0 && closedForMs() < ALONE_MS);
  setOpen(ward, true);
  ward.recess = createAbort();
  if (ward.suspects.length > 0) await clock.sleep(closedForMs(), ward.recess.signal);
}

async function startNext(ward: Ward): Promise<void> {
  const { clock } = ward.suspects[0]?.member ?? {};
  if (!clock) return;
  await within(clock, (signal) => Promise.all([...ward.members].map((member) => quiet(member, signal))));
  const suspect = ward.suspects.shift();
  if (suspect) await startAlone(suspect);
}

async function startAlone({ entry, member }: Suspect): Promise<void> {
  const { inFlight, clock } = member;
  inFlight.startsAlone(entry);
  await member.start(entry);
  await within(clock, (signal) => inFlight.until(() => isOver(entry), signal));
}

function setOpen({ members }: Ward, open: boolean): void {
  for (const { inFlight } of members) inFlight.setOpen(open);
}

/** Of this process, whose workers die together. */
export const processQuarantine = createQuarantine();

/** Resolves when a crash now would be counted for nothing young of this worker, or with the signal. */
function quiet({ inFlight, clock }: Member, signal: AbortSignal): Promise<void> {
  const isYoung = (entry: InFlightEntry) => {
    if (entry.state.phase === 'suspected' || isOver(entry)) return false;
    return !('start' in entry.state) || clock.monotonicMs() - entry.state.start.startedMs < ALONE_MS;
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
  await wait(over.signal);
  disarm();
}

/** Tokens are decimal texts without leading zeros. */
function newestFirst(one: Token, other: Token): number {
  return other.length - one.length || (one < other ? 1 : -1);
}
