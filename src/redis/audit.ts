/**
 * Who changed what, and how many, by which way, and why, where somebody said it: a stream of the newest changes. Of settings,
 * limits, rules and due times it has what they were and what they are; what a job holds is not in it. Scheduling a job is no entry: the job itself shows it, and producers would push all else out.
 *
 * An entry is written after its change. A process that dies between the two leaves a change without an entry; nobody has to
 * wait for the audit, and a Redis that is full still lets jobs be cancelled.
 */
import { hostname, userInfo } from 'node:os';
import { WORDS_CHARS_MAX } from '../kernel/checks.ts';
import { oneLine } from '../kernel/errors.ts';
import type { Redis } from './connection/connect.ts';
import { controlKeys } from './keys.ts';

export interface Change {
  /** The name of a token, or the user of a machine. */
  readonly who: string;
  /** `program`: a call of the library. */
  readonly way: 'api' | 'page' | 'cli' | 'program';
  /** What was done: the name of an operation. */
  readonly verb: string;
  readonly queue?: string | undefined;
  /** The job, schedule or token; of several the first names, or what the filter says. */
  readonly target?: string | undefined;
  /** The jobs or dead letters that are different now, where they are several: the first 100 of them, 4,000 characters together. */
  readonly ids?: readonly string[] | undefined;
  /** How many are different now. */
  readonly count: number;
  /** What is different now, as it was and as it is: settings, limits, the rule of a schedule, a due time. Of what is too long the names alone. */
  readonly before?: Said | undefined;
  readonly after?: Said | undefined;
  /** Why, in the words of whoever did it. */
  readonly reason?: string | undefined;
}

/** Values by their names. */
export type Said = Readonly<Record<string, unknown>>;

const ENTRIES_MAX = 10_000;
const TARGET_CHARS_MAX = 200;
const IDS_MAX = 100;
const IDS_CHARS_MAX = 4000;
const SAID_CHARS_MAX = 2000;

/** @throws whatever Redis failed with */
export async function audit(
  { redis, namespace }: { readonly redis: Redis; readonly namespace: string },
  { who, way, verb, queue, target, ids, count, before, after, reason }: Change,
): Promise<void> {
  const said = oneLine(reason ?? '', WORDS_CHARS_MAX);
  const fields = {
    ...{ who, way, verb, queue },
    target: target?.slice(0, TARGET_CHARS_MAX),
    count: String(count),
    ids: idsText(ids),
    before: saidText(before),
    after: saidText(after),
    reason: said === '' ? undefined : said,
  };
  const flat = Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [name, value]));
  await redis.xadd(controlKeys(namespace).audit, 'MAXLEN', '~', ENTRIES_MAX, '*', ...flat);
}

/** The first ids, as JSON. */
function idsText(ids: readonly string[] = []): string | undefined {
  let chars = 0;
  const first = ids.slice(0, IDS_MAX).filter((id) => {
    chars += id.length;
    return chars <= IDS_CHARS_MAX;
  });
  return first.length === 0 ? undefined : JSON.stringify(first);
}

function saidText(said: Said | undefined): string | undefined {
  if (said === undefined) return undefined;
  const whole = JSON.stringify(said);
  if (whole.length <= SAID_CHARS_MAX) return whole;
  return JSON.stringify(Object.fromEntries(Object.keys(said).map((name) => [name, '…']))).slice(0, SAID_CHARS_MAX);
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
