/**
 * Who changed what, and how many, by which way, and why, where somebody said it: a stream of the newest changes. What a change
 * held is not in it. Scheduling a job is no entry: the job itself shows it, and producers would push all else out.
 *
 * An entry is written after its change. A process that dies between the two leaves a change without an entry; nobody has to
 * wait for the audit, and a Redis that is full still lets jobs be cancelled.
 */
import { hostname, userInfo } from 'node:os';
import { WORDS_CHARS_MAX } from '../kernel/checks.ts';
import { oneLine } from '../kernel/errors.ts';
import type { Redis } from './connection/connect.ts';
import { controlKeys } from './keys.ts';

/** What is noted. A change has one name, whichever window carries it out, of one or of many. */
export const OPERATIONS = [
  ...(['jobs.cancel', 'jobs.reschedule', 'jobs.edit', 'jobs.run', 'dead.replay', 'dead.purge', 'erase'] as const),
  ...(['tags.close', 'tags.open', 'sets.create', 'sets.seal', 'sets.remove'] as const),
  ...(['groups.set', 'groups.unset', 'groups.close', 'groups.open'] as const),
  ...([
    'queues.set',
    'queues.unset',
    'queues.pause',
    'queues.resume',
    'queues.close',
    'queues.open',
    'queues.rm',
  ] as const),
  ...(['schedules.put', 'schedules.rm', 'schedules.pause', 'schedules.resume', 'schedules.trigger'] as const),
  ...(['schedules.backfill', 'tokens.create', 'tokens.revoke'] as const),
] as const;
export type Operation = (typeof OPERATIONS)[number];

export interface Change {
  /** The name of a token, or the user of a machine. */
  readonly who: string;
  /** `program`: a call of the library. */
  readonly way: 'api' | 'page' | 'cli' | 'program';
  readonly verb: Operation;
  readonly queue?: string | undefined;
  /** The job, schedule or token; of several the first names, or what the filter says: see `targetOf`. */
  readonly target?: string | undefined;
  /** How many are different now. */
  readonly count: number;
  /** Why, in the words of whoever did it. */
  readonly reason?: string | undefined;
}

const ENTRIES_MAX = 10_000;
const TARGET_CHARS_MAX = 200;

/** @throws whatever Redis failed with */
export async function audit(
  { redis, namespace }: { readonly redis: Redis; readonly namespace: string },
  { who, way, verb, queue, target, count, reason }: Change,
): Promise<void> {
  const said = oneLine(reason ?? '', WORDS_CHARS_MAX);
  const fields = {
    ...{ who, way, verb, queue },
    target: target?.slice(0, TARGET_CHARS_MAX),
    count: String(count),
    reason: said === '' ? undefined : said,
  };
  const flat = Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [name, value]));
  await redis.xadd(controlKeys(namespace).audit, 'MAXLEN', '~', ENTRIES_MAX, '*', ...flat);
}

/** The user of this process, where nobody else is known. */
export const userHere = (): string => `${userName()}@${hostname()}`;

/** A container may run as a user that has no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return 'unknown';
  }
}
