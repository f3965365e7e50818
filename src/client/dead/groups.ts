/** Dead letters that died alike, counted: by reason, last error and name of the job. */
import type { Layout } from '../calls/layouts.ts';
import { alike, errorOf, nameOf } from './filter.ts';
import { each, type Placed, type Reading, type Scan, type Search, walk } from './walk.ts';

/** Dead letters that died alike. */
export interface DeadLetterGroup {
  /** Without numbers and ids too, where a handler gave it: the text of an `Unrecoverable`. */
  readonly reason: string;
  /** The last error, without numbers and ids. */
  readonly error: string;
  readonly name: string | undefined;
  readonly count: number;
  /** When the first and the last of them died, in epoch ms. */
  readonly firstMs: number;
  readonly lastMs: number;
  /** The newest of them. */
  readonly example: { readonly deadLetter: string; readonly partition: number; readonly id: string };
}

/** Dead letters by what they have in common: their reason and the beginning of their error. */
export interface DeadLetterGroups extends Scan {
  /** The largest first. */
  readonly groups: readonly DeadLetterGroup[];
  /** Dead letters that are in none of the groups: there are more than 1,000. */
  readonly others: number;
}

const GROUPS_MAX = 1000;

export async function groupsOf(reading: Reading, layout: Layout, search: Search): Promise<DeadLetterGroups> {
  const groups = new Map<string, DeadLetterGroup>();
  let others = 0;
  const source = walk(reading, layout, { from: search.from?.spot, order: 'newest' });
  const scan = await each(source, { search, layout }, async (placed) => {
    if (!count(groups, placed)) others += 1;
    return true;
  });
  return { groups: [...groups.values()].sort((a, b) => b.count - a.count || b.lastMs - a.lastMs), others, ...scan };
}

function count(groups: Map<string, DeadLetterGroup>, { ref, letter }: Placed): boolean {
  const { atMs, entry: deadLetter, id } = letter;
  const [reason, error, name] = [alike(letter.reason), errorOf(letter), nameOf(letter.record)];
  const key = JSON.stringify([reason, error, name]);
  const known = groups.get(key);
  if (!known && groups.size >= GROUPS_MAX) return false;
  const example = { deadLetter, partition: ref.partition, id };
  const { count, firstMs, lastMs } = known ?? { count: 0, firstMs: atMs, lastMs: atMs };
  groups.set(key, {
    reason,
    error,
    name,
    count: count + 1,
    firstMs: Math.min(firstMs, atMs),
    lastMs: Math.max(lastMs, atMs),
    example: known && known.lastMs >= atMs ? known.example : example,
  });
  return true;
}
