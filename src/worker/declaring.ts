/**
 * Declares the queues of a worker, each by itself. A queue whose node is down, or of which a key is of a wrong type, stops no other:
 * the worker starts without it, and begins to serve it at the look that finds it well.
 */
import type { Emitter } from '../job/events.ts';
import type { Clock } from '../kernel/clock.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { reasonOf } from '../kernel/reason.ts';
import type { ServedQueue } from './served-queue.ts';

export function createDeclaring(
  served: readonly Pick<ServedQueue, 'name' | 'refs' | 'declare'>[],
  { clock, events }: { readonly clock: Clock; readonly events: Emitter },
) {
  /** Queue → monotonic ms since when it cannot be declared. */
  const away = new Map<string, number>();
  /** From its start on. */
  let mayLack = false;

  function tell(name: string, ended: PromiseSettledResult<void>): void {
    const who = `queue ${name}`;
    const sinceMs = away.get(name);
    if (ended.status === 'rejected' && sinceMs === undefined) {
      away.set(name, clock.monotonicMs());
      const answered = ended.reason instanceof Error && ended.reason.name === 'ReplyError';
      events.emit('redis.away', { who, why: reasonOf(ended.reason), answered });
    }
    if (ended.status === 'fulfilled' && sinceMs !== undefined) {
      away.delete(name);
      events.emit('redis.back', { who, awayMs: Math.round(clock.monotonicMs() - sinceMs) });
    }
  }

  return {
    /** @throws the error of a queue while the worker starts; later only where no queue can be declared, or another schema is there */
    async pass(): Promise<void> {
      const all = await Promise.allSettled(served.map((one) => one.declare()));
      const failed = all.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));
      const ofAll = failed.find((reason) => reason instanceof DuestreamError && reason.code === 'wrong-schema');
      const ours = ofAll ?? failed.find((reason) => reason instanceof DuestreamError) ?? failed[0];
      if (failed.length > 0 && (ofAll || !mayLack || failed.length === all.length)) throw ours;
      for (const [at, one] of served.entries()) {
        const ended = all[at];
        if (ended) tell(one.name, ended);
      }
      mayLack = true;
    },
    /** Whether a start that was refused is made again with what there is. */
    startsWithout(error: unknown): boolean {
      const isOfRedis = error instanceof DuestreamError && (error.code === 'unavailable' || error.code === 'refused');
      mayLack = isOfRedis && served.some(({ refs }) => refs.length > 0);
      return mayLack;
    },
  };
}
