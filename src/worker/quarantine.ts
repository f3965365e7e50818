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
import type { Clock } from '../core/clock.ts';
import { messageOf, oneLine } from '../core/errors.ts';
import type { Token } from '../core/job.ts';
import type { Held, Inflight } from './inflight.ts';

/** How long a suspect has its process for itself. */
export const ALONE_MS = 2000;

export interface Member {
  readonly inflight: Inflight;
  readonly clock: Clock;
  /**
   * Starts a suspect. Resolves when its handler runs or the entry has left the in-flight map, as it also does when no
   * reply comes; never rejects.
   */
  readonly start: (held: Held) => Promise<void>;
}

export interface Ward {
  /** Takes in an entry of this worker that is in its in-flight map; the token is that of its last start. */
  readonly admit: (held: Held, token: Token) => void;
  /**
   * Leaves the quarantine: from this call on it starts nothing of this worker, and nothing may be admitted any more.
   * Returns the suspects that were not started; they have left the in-flight map.
   */
  readonly leave: () => readonly Held[];
}

interface Suspect {
  readonly held: Held;
  readonly token: Token;
  readonly member: Member;
}

export interface Quarantine {
  readonly join: (member: Member) => Ward;
}

export function createQuarantine(): Quarantine {
  const members = new Set<Member>();
  let line: Suspect[] = [];
  let turning = false;
  let recess = new AbortController();

  async function takeTurns(): Promise<void> {
    turning = true;
    try {
      while (line.length > 0) await takeRound();
    } finally {
      turning = false;
      setOpen(true);
    }
  }

  /** Suspects for 2 s at most, then a recess as long as the others waited. */
  async function takeRound(): Promise<void> {
    const { clock } = line[0]?.member ?? {};
    if (!clock) return;
    const closedMs = clock.monotonicMs();
    const closedForMs = () => clock.monotonicMs() - closedMs;
    setOpen(false);
    do await takeTurn();
    while (line.length > 0 && closedForMs() < ALONE_MS);
    setOpen(true);
    recess = new AbortController();
    if (line.length > 0) await clock.sleep(closedForMs(), recess.signal);
  }

  async function takeTurn(): Promise<void> {
    const { clock } = line[0]?.member ?? {};
    if (!clock) return;
    let suspect: Suspect | undefined;
    try {
      await within(clock, (signal) => Promise.all([...members].map((member) => quiet(member, signal))));
      suspect = line.shift();
      if (suspect) await startAlone(suspect);
    } catch (error) {
      // Whatever failed, one suspect less waits: a turn that fails each time must not be taken for ever.
      letGo(suspect ?? line.shift(), error);
    }
  }

  async function startAlone({ held, member }: Suspect): Promise<void> {
    const { inflight, clock } = member;
    inflight.setPhase(held, 'starting');
    await member.start(held);
    const over = () => held.acknowledged || !inflight.has(held.ref, held.delivery.entry);
    await within(clock, (signal) => inflight.until(over, signal));
  }

  /** Its entry stays pending in Redis under its worker's name. There adoption finds it. */
  function letGo(suspect: Suspect | undefined, error: unknown): void {
    process.emitWarning(`starting a suspect alone failed: ${oneLine(messageOf(error))}`);
    if (!suspect) return;
    const { held, member } = suspect;
    if (held.phase === 'suspected' || held.phase === 'starting') member.inflight.remove(held);
  }

  function setOpen(open: boolean): void {
    for (const { inflight } of members) inflight.setOpen(open);
  }

  return {
    join(member) {
      members.add(member);
      if (turning) member.inflight.setOpen(false);
      return {
        admit(held, token) {
          member.inflight.setPhase(held, 'suspected');
          line.push({ held, token, member });
          line.sort((one, other) => newestFirst(one.token, other.token));
          if (!turning) takeTurns().catch((error: unknown) => letGo(undefined, error));
        },
        leave() {
          members.delete(member);
          const mine = line.filter((suspect) => suspect.member === member).map(({ held }) => held);
          line = line.filter((suspect) => suspect.member !== member);
          for (const held of mine) member.inflight.remove(held);
          recess.abort();
          return mine;
        },
      };
    },
  };
}

/** Of this process, whose workers die together. */
export const processQuarantine = createQuarantine();

/** Resolves when a crash now would be counted for nothing young of this worker, or with the signal. */
function quiet({ inflight, clock }: Member, signal: AbortSignal): Promise<void> {
  const isYoung = ({ phase, acknowledged, startedMs }: Held) =>
    phase !== 'suspected' && !acknowledged && !(startedMs !== undefined && clock.monotonicMs() - startedMs >= ALONE_MS);
  return inflight.until(() => ![...inflight.all()].some(isYoung), signal);
}

/** Waits for something, and for `ALONE_MS` at most. */
async function within(clock: Clock, wait: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
  const over = new AbortController();
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
