/** Handlers in processes of their own write down what they do; here it is read. */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** One line of `effects-handlers.mjs`. */
export interface Effect {
  readonly what: 'start' | 'end';
  readonly id: string;
  readonly attempt: number;
  readonly crashes: number;
  readonly token: string;
  readonly pid: number;
  /** Wall clock of the machine, which is Redis's too. */
  readonly ms: number;
  readonly due: number;
}

export const HANDLERS = fileURLToPath(new URL('./effects-handlers.mjs', import.meta.url));

/** A dead leader is replaced, and a dead worker's jobs are taken over, within seconds. */
export const SHORT_LEASES = {
  DUESTREAM_MOVER__LEASE: '1500',
  DUESTREAM_WORKER__CONCURRENCY: '8',
  DUESTREAM_WORKER__JOB_LEASE: '3000',
  DUESTREAM_WORKER__BEAT_TTL: '1500',
  DUESTREAM_WORKER__GRACE: '500',
};

/** What is in the file so far: nothing before the first handler was started. A line that is being written is left out. */
export function readEffects(file: string): readonly Effect[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line): Effect => JSON.parse(line));
}
