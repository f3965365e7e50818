/**
 * Brings the schedules of the configuration's file in step at the start of a daemon that moves jobs, and logs the
 * difference. The file is judged before anything is connected; then an outage is waited out beside all other work,
 * because a Redis that is full needs a daemon that promotes, not one that ends.
 */
import { type Reconciled, reconcileSchedules } from '../client/schedules/reconcile.ts';
import { loadScheduleFile } from '../config/file.ts';
import type { Config } from '../config/options.ts';
import type { Emitter } from '../job/events.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import { createLoop, type Loop } from '../kernel/loop.ts';
import type { Redis } from '../redis/connection/connect.ts';

export interface ScheduleKeeper {
  readonly start: (redis: Redis) => void;
  readonly stop: () => Promise<void>;
}

const REST_MS = 86_400_000;
const PAUSE_MAX_MS = 30_000;
const NAMES_MAX = 100;

/**
 * Undefined without a file, or when others move the jobs.
 *
 * @throws DuestreamError `bad-config` for a file with anything wrong in it
 */
export function scheduleKeeperOf(
  { schedules, roles, namespace }: Config,
  { log, events, clock }: { readonly log: Log; readonly events: Emitter; readonly clock: Clock },
): ScheduleKeeper | undefined {
  const { file } = schedules;
  if (file === '' || !roles.includes('mover')) return undefined;
  const wanted = loadScheduleFile(file, { nowMs: clock.wallMs() });
  let loop: Loop | undefined;
  let done = false;

  async function pass(redis: Redis): Promise<number> {
    if (!done) tell(log, file, await reconcileSchedules(redis, { namespace, wanted }));
    done = true;
    return REST_MS;
  }

  return {
    start(redis) {
      const pauseAfter = (_: unknown, failures: number) => Math.min(PAUSE_MAX_MS, 500 * 2 ** Math.min(failures, 6));
      loop = createLoop({ who: `schedules of ${file}`, pass: () => pass(redis), clock, events, pauseAfter });
      loop.start();
    },
    stop: async () => loop?.stop(),
  };
}

function tell(log: Log, file: string, { created, changed, removed, unchanged, kept }: Reconciled): void {
  const names = { created: some(created), changed: some(changed), removed: some(removed) };
  log.info({ file, ...names, unchanged: unchanged.length }, 'Redis has the schedules of the file');
  if (kept.length === 0) return;
  log.warn(
    { file, kept: some(kept) },
    'schedules of these names were put by a call, so the file does not change them; remove them to let the file have the names',
  );
}

/** The first names, and how many more there are. */
function some(names: readonly string[]): readonly string[] {
  const more = names.length - NAMES_MAX;
  return more > 0 ? [...names.slice(0, NAMES_MAX), `and ${more} more`] : names;
}
