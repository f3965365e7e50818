import { tagsIn as tagsOf } from './tags.ts';

/** One field of a record's header by its letter, as text; undefined where it is not there. `record-header.ts` has the rest. */
function letterIn(record: string, letter: string): string | undefined {
  const header = record.slice(0, Math.max(0, record.indexOf('|')));
  const field = header.split(';').find((part, at) => at > 0 && part.startsWith(`${letter}=`));
  return field?.slice(letter.length + 1);
}

const NONE: readonly string[] = Object.freeze([]);

/** The tags that a record carries in the letter `t`. @example tagsIn('1abc;t=user:42,paid|{}') // ['user:42', 'paid'] */
export function tagsIn(record: string): readonly string[] {
  return tagsOf(letterIn(record, 't') ?? '') ?? NONE;
}
