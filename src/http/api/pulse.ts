/**
 * One look a second at Redis for all who watch, and none while nobody does.
 *
 *     first viewer ──▶ look ──▶ tell every viewer ──▶ rest of the second ──▶ look ──▶ …    last viewer leaves ──▶ end
 *
 * Each look has a number. A viewer that misses one sees a gap, and a daemon that was started anew has another name in front.
 */

import { codeOf } from '../../inspect/failure.ts';
import type { Look } from '../../inspect/look.ts';
import { newJobId } from '../../job/job-id.ts';
import { createAbort } from '../../kernel/abort.ts';
import { type Clock, systemClock } from '../../kernel/clock.ts';
import { Problem } from './problem.ts';

export type Beat =
  | { readonly kind: 'now'; readonly id: string; readonly look: Look }
  /** Redis did not answer. */
  | { readonly kind: 'away'; readonly code: string; readonly sinceMs: number };

/** Is told each beat. */
type Viewer = (beat: Beat) => void;

/** Why it ends for a viewer. */
export type Farewell = 'stopping' | 'revoked' | 'slow' | 'enough' | 'renew';

export interface Pulse {
  /** @returns what leaves again @throws Problem `too-many`, `stopped` */
  readonly join: (viewer: Viewer, onStop: () => void) => () => void;
  /** Whether one more viewer may come. @throws Problem `too-many`, `stopped` */
  readonly check: () => void;
  /** Sends everybody away, and takes nobody any more. */
  readonly stop: () => void;
}

export const BEAT_MS = 1000;
/** Redis has a rest between two looks also where a look takes longer than a beat. */
const REST_MIN_MS = 200;
export const VIEWERS_MAX = 100;

interface Pulsing {
  readonly look: () => Promise<Look>;
  readonly clock: Clock;
  readonly boot: string;
  readonly viewers: Map<Viewer, () => void>;
  beats: number;
  awaySinceMs: number | undefined;
  /** Of the looks that go on now. */
  going: AbortController | undefined;
  isStopped: boolean;
}

export function createPulse(look: () => Promise<Look>, clock: Clock = systemClock): Pulse {
  const pulsing: Pulsing = {
    look,
    clock,
    boot: newJobId().slice(-8),
    viewers: new Map(),
    beats: 0,
    awaySinceMs: undefined,
    going: undefined,
    isStopped: false,
  };
  const check = () => {
    if (pulsing.isStopped) throw new Problem('stopped', { detail: 'repeat the request: another daemon may answer it' });
    if (pulsing.viewers.size >= VIEWERS_MAX) {
      throw new Problem('too-many', {
        detail: `allowed: ${VIEWERS_MAX} live views at once; close one, or ask GET /v1/queues`,
        headers: { 'Retry-After': '10' },
      });
    }
  };
  return {
    check,
    join(viewer, onStop) {
      check();
      pulsing.viewers.set(viewer, onStop);
      if (!pulsing.going) {
        pulsing.going = createAbort();
        void beatWhile(pulsing, pulsing.going.signal);
      }
      return () => leave(pulsing, viewer);
    },
    stop() {
      pulsing.isStopped = true;
      for (const [viewer, onStop] of [...pulsing.viewers]) {
        onStop();
        leave(pulsing, viewer);
      }
    },
  };
}

function leave(pulsing: Pulsing, viewer: Viewer): void {
  pulsing.viewers.delete(viewer);
  if (pulsing.viewers.size > 0) return;
  pulsing.going?.abort();
  pulsing.going = undefined;
}

async function beatWhile(pulsing: Pulsing, signal: AbortSignal): Promise<void> {
  const { clock, viewers } = pulsing;
  while (!signal.aborted) {
    const startedMs = clock.monotonicMs();
    const beat = await beatOf(pulsing);
    if (signal.aborted) return;
    for (const viewer of [...viewers.keys()]) tell(pulsing, viewer, beat);
    await clock.sleep(Math.max(REST_MIN_MS, startedMs + BEAT_MS - clock.monotonicMs()), signal);
  }
}

/** One that is broken must not hold up the others. */
function tell(pulsing: Pulsing, viewer: Viewer, beat: Beat): void {
  try {
    viewer(beat);
  } catch {
    leave(pulsing, viewer);
  }
}

async function beatOf(pulsing: Pulsing): Promise<Beat> {
  try {
    const look = await pulsing.look();
    pulsing.awaySinceMs = undefined;
    pulsing.beats += 1;
    return { kind: 'now', id: `${pulsing.boot}-${pulsing.beats}`, look };
  } catch (error) {
    pulsing.awaySinceMs ??= pulsing.clock.wallMs();
    return { kind: 'away', code: codeOf(error), sinceMs: pulsing.awaySinceMs };
  }
}
