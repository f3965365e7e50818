/**
 * Hosts that cannot be reached. Each failure of one costs a slot until its time-out, so five in a row close the group of the job, and
 * nobody of it starts meanwhile. After that one failure is enough, and closes it for twice as long. An answer, whichever, ends it.
 *
 *     4 failures ──▶ open      the 5th ──▶ closed 5 s ──one more──▶ 10 s ──▶ … 5 min      an answer ──▶ open, counted anew
 *
 * A closing is never taken back early: an operator, or a `Retry-After`, may have closed the same group.
 */
import type { CallEnd } from './send/sender.ts';

const FAILURES_MIN = 5;
const CLOSED_MS = 5000;
const CLOSED_MAX_MS = 300_000;
/** Of hosts that fail; the oldest is forgotten. */
const HOSTS_MAX = 10_000;

/** A host that fails. */
interface Counted {
  /** In a row. */
  failures: number;
  closings: number;
  /** Monotonic ms. */
  closedUntilMs: number;
}

export interface HostWatch {
  /**
   * Takes note of the end of a request.
   *
   * @returns for how long the group of its job is to be closed, ms; undefined: it stays as it is
   */
  readonly note: (host: string, end: CallEnd, nowMs: number) => number | undefined;
}

export function createHostWatch(): HostWatch {
  const hosts = new Map<string, Counted>();
  return {
    note(host, end, nowMs) {
      // The guard's refusal, and a stop of ours, say nothing about the host.
      if (end.kind === 'refused' || (end.kind === 'no-answer' && end.why === 'stopped')) return undefined;
      if (end.kind === 'answered') {
        hosts.delete(host);
        return undefined;
      }
      const known = hosts.get(host) ?? { failures: 0, closings: 0, closedUntilMs: 0 };
      known.failures += 1;
      hosts.set(host, known);
      forgetOldest(hosts);
      return closingOf(known, nowMs);
    },
  };
}

function closingOf(known: Counted, nowMs: number): number | undefined {
  if (known.failures < FAILURES_MIN) return undefined;
  // It was on its way when the closing began, perhaps with a job of another group.
  if (nowMs < known.closedUntilMs) return Math.ceil(known.closedUntilMs - nowMs);
  const forMs = Math.min(CLOSED_MAX_MS, CLOSED_MS * 2 ** known.closings);
  known.closings += 1;
  known.closedUntilMs = nowMs + forMs;
  return forMs;
}

function forgetOldest(hosts: Map<string, Counted>): void {
  if (hosts.size <= HOSTS_MAX) return;
  const [oldest] = hosts.keys();
  if (oldest !== undefined) hosts.delete(oldest);
}
