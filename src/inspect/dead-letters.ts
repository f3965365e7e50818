/**
 * Dead letters across the partitions of a queue. An entry id is unique in its partition only, so where there are
 * several partitions a dead letter is addressed as `<partition>/<entry>`.
 */
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import type { Redis } from '../redis/connection/connect.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { type DeadLetter, deadLetter } from '../redis/read/inspect.ts';

export interface Placed {
  readonly ref: PartitionRef;
  readonly deadLetter: DeadLetter;
}

/** How a dead letter is written on the command line. */
export function addressOf({ ref, deadLetter: found }: Placed, partitions: number): string {
  return partitions === 1 ? found.entry : `${ref.partition}/${found.entry}`;
}

/** The same of a dead letter as the library tells it. */
export const writtenAs = (
  { deadLetter, partition }: { readonly deadLetter: string; readonly partition: number },
  partitions: number,
): string => (partitions === 1 ? deadLetter : `${partition}/${deadLetter}`);

/** @throws `bad-input` for what is no address */
export function parseAddress(address: string): {
  readonly deadLetter: string;
  readonly partition: number | undefined;
} {
  const [, partition, deadLetter] = /^(?:(\d+)\/)?(\d{1,16}-\d{1,16})$/.exec(address) ?? [];
  if (deadLetter !== undefined) {
    return { deadLetter, partition: partition === undefined ? undefined : Number(partition) };
  }
  throw new DuestreamError(
    'bad-input',
    `dead letter is ${show(address)}; allowed: what "duestream dead ls" prints, such as 1763719000000-0`,
  );
}

const PROGRESS_EVERY = 5000;

/** Tells how far a long work is, once for every 5,000 dead letters that were looked at. */
export function createSteps(
  tell: (looked: number, matched: number) => void,
): (looked: number, matched: number) => void {
  let told = 0;
  return (looked, matched) => {
    const step = Math.floor(looked / PROGRESS_EVERY);
    if (step > told) tell(looked, matched);
    told = step;
  };
}

/** The dead letter of an address. @throws `bad-input` for what is no address, `not-found` when no dead letter has it. */
export async function findDeadLetter(redis: Redis, refs: readonly PartitionRef[], address: string): Promise<Placed> {
  const { partition, deadLetter: entry } = parseAddress(address);
  const asked = partition === undefined ? refs : refs.filter((ref) => ref.partition === partition);
  const found = await Promise.all(asked.map(async (ref) => ({ ref, deadLetter: await deadLetter(redis, ref, entry) })));
  const there = found.flatMap((one) =>
    one.deadLetter === undefined ? [] : [{ ref: one.ref, deadLetter: one.deadLetter }],
  );
  const [first, second] = there;
  if (first === undefined) {
    throw new DuestreamError(
      'not-found',
      `no dead letter ${show(address)}: it was replayed, has passed its retention, or is in another queue or namespace`,
    );
  }
  if (second === undefined) return first;
  const choices = there.map((one) => addressOf(one, refs.length)).join(', ');
  throw new DuestreamError('bad-input', `several partitions have a dead letter ${show(address)}; allowed: ${choices}`);
}
