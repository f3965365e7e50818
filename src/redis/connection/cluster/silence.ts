/**
 * Which nodes keep us waiting. One that froze keeps its connections, and when it wakes up as a master that was deposed it
 * answers what lay there, and takes writes for a moment more. So whoever was asked something and has said nothing for half
 * a second is told of: the others are asked whether it is still a master (`nodes.ts`).
 */
import type { Redis } from 'ioredis';
import { systemClock } from '../../../kernel/clock.ts';

export interface Silence {
  /** From now on, until it is closed. */
  readonly watch: (node: Redis) => void;
  readonly isSilent: (node: Redis) => boolean;
}

/** Well below the time after which nodes count each other as down, and above what a busy one takes. */
const SILENT_MS = 500;
/** While it lasts, it is told of this often. */
const EVERY_MS = 250;

/** Of one node. */
interface Wait {
  /** Monotonic ms of the first question since it last said anything; undefined while nothing is owed. */
  sinceMs: number | undefined;
  /** Calls off the next look at it. */
  callOff: (() => void) | undefined;
}

export function createSilence(onSilent: () => void): Silence {
  const waits = new WeakMap<Redis, Wait>();

  function lookAfter(wait: Wait, ms: number): void {
    wait.callOff = systemClock.timer(ms, () => {
      wait.callOff = undefined;
      if (wait.sinceMs === undefined) return;
      const leftMs = SILENT_MS - (systemClock.monotonicMs() - wait.sinceMs);
      if (leftMs <= 0) onSilent();
      lookAfter(wait, leftMs > 0 ? leftMs : EVERY_MS);
    });
  }

  return {
    watch(node) {
      const wait: Wait = { sinceMs: undefined, callOff: undefined };
      const heard = () => {
        wait.sinceMs = undefined;
      };
      waits.set(node, wait);
      node.on('connect', () => void node.stream.on('data', heard));
      node.on('close', () => {
        heard();
        wait.callOff?.();
        wait.callOff = undefined;
      });
      const send = node.sendCommand.bind(node);
      node.sendCommand = (command, stream) => {
        if (wait.sinceMs === undefined && node.status === 'ready') {
          wait.sinceMs = systemClock.monotonicMs();
          if (!wait.callOff) lookAfter(wait, SILENT_MS);
        }
        return send(command, stream);
      };
    },
    isSilent(node) {
      const { sinceMs } = waits.get(node) ?? {};
      return sinceMs !== undefined && systemClock.monotonicMs() - sinceMs >= SILENT_MS;
    },
  };
}
