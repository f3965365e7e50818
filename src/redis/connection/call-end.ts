/**
 * Until when a call may be carried out. A network can hold the bytes of a call for minutes. Meanwhile its caller counts it as
 * lost, sends it again with success or gives up, and somebody else undoes what it did; then the bytes arrive. So every call
 * of a script that is marked `refused` (`../scripts/script-table.ts`) carries an end, and the script refuses it later
 * (`lua/lib/clock.lua`):
 *
 *   sent ──────── the time-out of a command ────────▶ counted as lost
 *   end = what the server's clock shows by then, by the edge of what is known of it that is behind
 *
 * So no send is carried out after it is counted as lost. Whatever is sent afterwards, in its place or by somebody else,
 * comes after it. The end belongs to the send and not to the call: what is sent again has an end of its own.
 *
 * An end is as good as the knowledge of the server's clock. If that clock jumps forward, or the process stood still where
 * its own clock stands still too, a call is refused although nobody has given it up. The refusal names the server's time,
 * so the knowledge is right again, and the call is sent once more: it had done nothing.
 */
import type { Redis } from 'ioredis';
import { systemClock } from '../../kernel/clock.ts';
import { messageOf } from '../../kernel/errors.ts';
import { isCluster, memberOf } from './cluster/members.ts';
import { clockBehind, type MemberClock } from './server-clock.ts';

export interface CallEnds {
  /** Resolves when an end can be said. @throws whatever TIME failed with */
  readonly known: () => Promise<void>;
  /** The end of a call that is sent now; undefined where it cannot be said yet. */
  readonly next: () => string | undefined;
  /** Whether an error is the refusal of a late call. Then the clock is known anew. */
  readonly isLate: (error: unknown) => boolean;
}

/** No reply within this time counts as lost, unless a connection says otherwise. */
export const COMMAND_TIMEOUT_MS = 4000;

/** No reply within this time counts as lost. */
export const timeoutOf = (redis: Redis): number => timeouts.get(redis) ?? COMMAND_TIMEOUT_MS;

/** A connection that says otherwise. The client library is not told: it would arm a timer for each command. */
export const timeouts = new WeakMap<Redis, number>();

/** Of calls that go to the server of a key. Undefined while no server has it: what is sent then is refused here. */
export function endsAt(redis: Redis, key = ''): CallEnds | undefined {
  const member = memberOf(redis, key);
  if (isCluster(member)) return undefined;
  const known = ends.get(member);
  if (known) return known;
  const server = clockBehind(member);
  const made = createCallEnds(server, timeoutOf(member));
  ends.set(member, made);
  // Another primary may answer from now on.
  member.on('ready', () => void server.sample().catch(() => undefined));
  return made;
}

/** What the clock of the server of a key shows, or showed at a monotonic moment, as well as it is known; the middle, so that what the caller awaited was before. */
export function serverNowMs(redis: Redis, key: string, monotonicMs?: number): number | undefined {
  const member = memberOf(redis, key);
  if (isCluster(member)) return undefined;
  const server = clockBehind(member);
  return server.knownMs() === undefined ? undefined : server.nowMs(monotonicMs);
}

const ends = new WeakMap<Redis, CallEnds>();

function createCallEnds(server: MemberClock, timeoutMs: number): CallEnds {
  return {
    async known() {
      if (server.knownMs() === undefined) await server.sample();
    },
    next() {
      const lowMs = server.knownMs();
      // Whole ms, and one less: the server cuts off its fraction too.
      return lowMs === undefined ? undefined : `<${Math.floor(lowMs + timeoutMs) - 1}`;
    },
    isLate(error) {
      const [, said] = LATE.exec(messageOf(error)) ?? [];
      if (said === undefined) return false;
      const receivedMs = systemClock.monotonicMs();
      server.saw({ sentMs: receivedMs - timeoutMs, receivedMs, serverMs: Number(said) });
      return true;
    },
  };
}

const LATE = /^(?:ERR )?LATE (\d+)/;
