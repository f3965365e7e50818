/** One dead letter that a caller names: by its own id, or as the newest one of a job. */
import { memberOf } from '../../job/codec.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { type IfMatchOption, parseIfMatch } from '../calls/etag.ts';
import type { Layout } from '../calls/layouts.ts';
import { placesOf } from '../calls/partition-calls.ts';
import { withReadRetry } from '../calls/retry.ts';
import { parseAnyId } from '../calls/settings.ts';
import type { Placed, Reading } from './walk.ts';

interface PartitionOption {
  /** Needed only where two partitions have a dead letter of this id. */
  readonly partition?: number | undefined;
}

/**
 * One dead letter: its id; an object with it, such as a row of `list`; or the newest one of a job, by the id of that job, if it
 * is among the 100,000 newest of its partition.
 */
export type DeadLetterTarget =
  | string
  | (IfMatchOption & PartitionOption & { readonly deadLetter: string })
  | (IfMatchOption &
      PartitionOption & {
        readonly job: string;
        /** A job that a foreign producer put as a plain zset member. */
        readonly bare?: boolean | undefined;
      });

/** Options of a call for one dead letter. */
export type OneLetterOptions = IfMatchOption & PartitionOption;

/** Which dead letter, checked. */
export interface Named extends OneLetterOptions {
  readonly target:
    | { readonly deadLetterId: string }
    | { readonly deadLetterId?: undefined; readonly id: string; readonly bare: boolean };
}

const DEAD_LETTER_ID = /^\d{1,16}-\d{1,16}$/;

/** Dead letters of a partition, newest first, in which one of a job is looked for; and how many are read at once. */
const LOOKED_AT_MAX = 100_000;
const PAGE = 200;

/** @throws DuestreamError `bad-input` */
export function parseNamed(input: unknown, { ifMatch, partition }: OneLetterOptions = {}): Named {
  const own = typeof input === 'object' && input !== null ? (input as OneLetterOptions) : {};
  return {
    target: parseTarget(input),
    partition: own.partition ?? partition,
    ifMatch: parseIfMatch(own.ifMatch ?? ifMatch),
  };
}

function parseTarget(input: unknown): Named['target'] {
  const named = typeof input === 'object' && input !== null && 'deadLetter' in input ? input.deadLetter : input;
  if (typeof named === 'string' && DEAD_LETTER_ID.test(named)) return { deadLetterId: named };
  if (typeof named === 'object' && named !== null && 'job' in named) {
    const bare = 'bare' in named && named.bare === true;
    return { id: parseAnyId(named.job, bare), bare };
  }
  throw new DuestreamError(
    'bad-input',
    `dead letter is ${show(input)}; allowed: its id such as 1763719000000-0, an object with it, or { job } with the id of a job`,
  );
}

/** @throws DuestreamError `bad-input` */
export function parseDeadLetterId(input: unknown): string {
  if (typeof input === 'string' && DEAD_LETTER_ID.test(input)) return input;
  throw new DuestreamError('bad-input', `dead letter is ${show(input)}; allowed: its id, such as 1763719000000-0`);
}

/** @throws DuestreamError `bad-input` where several partitions have a dead letter of this id */
export async function locate(
  reading: Reading,
  layout: Layout,
  { target, partition }: Named,
): Promise<Placed | undefined> {
  const refs = layout.filter((ref) => partition === undefined || ref.partition === partition);
  if (target.deadLetterId === undefined) {
    const places = placesOf(layout, target.id, target.bare).filter((ref) => refs.includes(ref));
    const newest = await Promise.all(places.map((ref) => newestIn(reading, ref, target)));
    return newest.flat().sort((a, b) => b.letter.atMs - a.letter.atMs)[0];
  }
  const { deadLetterId } = target;
  const { store, policy } = reading;
  const found: Placed[] = [];
  for (const ref of refs) {
    const letter = await withReadRetry('read a dead letter', () => store.find(ref, deadLetterId), policy);
    if (letter) found.push({ ref, letter });
  }
  if (found.length <= 1) return found[0];
  const places = found.map(({ ref }) => ref.partition).join(', ');
  throw new DuestreamError(
    'bad-input',
    `dead letter ${deadLetterId} is in the partitions ${places}; name one with the option partition`,
  );
}

/** The tombstone of a job that has just died names its dead letter; an older one is looked for among the newest. */
async function newestIn(
  { store, policy }: Reading,
  ref: PartitionRef,
  { id, bare }: { readonly id: string; readonly bare: boolean },
): Promise<readonly Placed[]> {
  const read = <T>(call: () => Promise<T>) => withReadRetry('read a dead letter', call, policy);
  const job = await read(() => store.peek(ref, memberOf(id, { bare })));
  const named = job && 'tombstone' in job ? job.tombstone?.deadLetter : undefined;
  const last = named === undefined ? undefined : await read(() => store.find(ref, named));
  if (last) return [{ ref, letter: last }];
  let before: string | undefined;
  for (let looked = 0; looked < LOOKED_AT_MAX; looked += PAGE) {
    const from = before;
    const page = await read(() => store.newest(ref, { limit: PAGE, before: from }));
    const letter = page.find((one) => one.id === id && one.bare === bare);
    if (letter) return [{ ref, letter }];
    if (page.length < PAGE) return [];
    before = page.at(-1)?.entry;
  }
  return [];
}
