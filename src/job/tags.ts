/**
 * Tags: words by which jobs are found together, such as all jobs of one customer. They stand in the header of the record,
 * letter `t`, from which the index `K:tags` is made; an index entry without such a header counts for nothing.
 *
 * A set has one text: sorted, once each, so that the same call says the same. In the header `=` is written as a space,
 * which no tag has, so a tag never looks like the mark of an edited record (`m=`).
 */
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { PRIORITIES, type Priority } from './group.ts';

export const TAGS_MAX = 10;
export const TAG_BYTES_MAX = 64;
export const TAGS_ALLOWED = `1 to ${TAGS_MAX} texts of 1 to ${TAG_BYTES_MAX} printable ASCII characters without space, comma, semicolon and bar, not beginning with \`=\``;

/** From `!` to `~` without the comma, the semicolon and the bar; `=` in front stands for something else in the index. */
const TAG = /^(?!=)[!-+\--:<-{}~]{1,64}$/;

/** One tag, checked. @throws DuestreamError `bad-input` */
export function parseTag(input: unknown, what = 'tag'): string {
  if (typeof input === 'string' && TAG.test(input)) return input;
  throw new DuestreamError(
    'bad-input',
    `${what} is ${show(input)}; allowed: 1 to ${TAG_BYTES_MAX} printable ASCII characters without space, comma, semicolon and bar, not beginning with =`,
  );
}

/** A set of tags, checked. @throws DuestreamError `bad-input` */
export function parseTags(input: unknown, what = 'tags'): readonly string[] {
  if (!Array.isArray(input) || input.length === 0) {
    throw new DuestreamError('bad-input', `${what} is ${show(input)}; allowed: a list of 1 to ${TAGS_MAX} texts`);
  }
  const tags = [...new Set(input.map((tag) => parseTag(tag, `${what}: one`)))].sort();
  if (tags.length <= TAGS_MAX) return tags;
  throw new DuestreamError(
    'bad-input',
    `${what} is a list of ${tags.length}; allowed: a list of 1 to ${TAGS_MAX} texts`,
  );
}

/** The text of the tags in a header. */
export const tagsText = (tags: readonly string[]): string => tags.join(',').replaceAll('=', ' ');

/** The entries of the index in the text of a header: its tags, and those that begin with `=`, such as a priority. */
export const entriesOfHeader = (text: string): readonly string[] =>
  text
    .replaceAll(' ', '=')
    .split(',')
    .filter((tag) => tag !== '' && tag.length <= TAG_BYTES_MAX)
    .slice(0, TAGS_MAX);

/** The tags in the text of a header; undefined where the text has none. What begins with `=` is none of anybody's. */
export function tagsOfHeader(text: string): readonly string[] | undefined {
  const tags = entriesOfHeader(text).filter((tag) => !tag.startsWith('='));
  return tags.length === 0 ? undefined : tags;
}

/** The priority in the same text. */
export const priorityOfHeader = (text: string): Priority | undefined =>
  PRIORITIES.find((one) => entriesOfHeader(text).includes(`=${one}`));
