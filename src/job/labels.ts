/** What a job carries beside its data: tags, its group and priority, and headers. */
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';

// Tags: words by which jobs are found together, such as all jobs of one customer. They stand in the header of the
// record, letter `t`, from which the index `K:tags` is made; an index entry without such a header counts for nothing.
//
// A set has one text: sorted, once each, so that the same call says the same. In the header `=` is written as a space,
// which no tag has, so a tag never looks like the mark of an edited record (`m=`).

export const TAGS_MAX = 10;
const TAG_BYTES_MAX = 64;
export const TAGS_ALLOWED = `1 to ${TAGS_MAX} texts of 1 to ${TAG_BYTES_MAX} printable ASCII characters without space, comma, semicolon and bar, not beginning with \`=\``;

/** From `!` to `~` without the comma, the semicolon and the bar; `=` in front stands for something else in the index. */
const TAG = /^(?!=)[!-+\--:<-{}~]{1,64}$/;

/** One tag, checked. @throws DuestreamError `bad-input` */
export function parseTag(input: unknown, what = 'tag'): string {
  if (typeof input === 'string' && TAG.test(input)) return input;
  throw new DuestreamError(
    'bad-input',
    `${what} is ${show(input)}; allowed: 1 to ${TAG_BYTES_MAX} printable ASCII characters without space, comma, semicolon and bar, not beginning with =${asText(input)}`,
  );
}

/** For a refusal of what must be a text: YAML and JSON read digits without quotes as a number. */
export const asText = (given: unknown): string =>
  typeof given === 'number' ? `; in quotes it is a text: "${given}"` : '';

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

/** The tag of a job that counts in its group, as a header has it: where groups have a limit of pending jobs, the index finds it. */
export const COUNTED = ' group';
/** The same in the index. */
export const COUNTED_ENTRY = '=group';

/** The set of a job in the same text. */
export const setOfHeader = (text: string): string | undefined => setInEntries(entriesOfHeader(text));

/** The priority in the same text. */
export const priorityOfHeader = (text: string): Priority | undefined =>
  PRIORITIES.find((one) => entriesOfHeader(text).includes(`=${one}`));

// Sets: jobs that belong together until the last of them is over, when one more job is made, the callback. A member has the
// reserved tag `=set:<name>`, and lives in the partition of the set: its id begins with `{set:<name>}`, which is no group, or
// with the group of the set. Nobody can write the id of a callback, as it has two pairs of braces.

const SET_TAG = '=set:';
const SET_NAME = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,47}$/;
export const SET_ALLOWED = '1 to 48 of `A-Z a-z 0-9 . _ : -`, beginning with a letter or digit';
const IN_SET = /^\{set:([A-Za-z0-9][A-Za-z0-9._:-]{0,47})\}./;

/** The name of a set. @throws DuestreamError `bad-input` */
export function parseSetName(input: unknown, what = 'set'): string {
  if (typeof input === 'string' && SET_NAME.test(input)) return input;
  throw new DuestreamError('bad-input', `${what} is ${show(input)}; allowed: ${SET_ALLOWED.replaceAll('`', '')}`);
}

/** How the index has the set of a job. */
export const setTag = (name: string): string => `${SET_TAG}${name}`;

/** The set among the entries of a job in the index. */
export const setInEntries = (entries: readonly string[]): string | undefined =>
  entries.find((entry) => entry.startsWith(SET_TAG))?.slice(SET_TAG.length);

/** Where the jobs of a set without a group live: the beginning of their ids. */
const tagOfSet = (name: string): string => `{set:${name}}`;

/** The set in the braces of an id; undefined where there is none. */
export const setInId = (id: string): string | undefined => IN_SET.exec(id)?.[1];

/** The id of a member of a set: what says its partition is in front of it. @throws DuestreamError `bad-input` for an id of another set */
export function memberId(set: string, id: string): string {
  if (groupOf(id) !== undefined) return id;
  const other = setInId(id);
  if (other === undefined) return `${tagOfSet(set)}${id}`;
  if (other === set) return id;
  throw new DuestreamError(
    'bad-input',
    `id is ${show(id)}, of set ${show(other)}, and set is ${show(set)}; allowed: an id of this set, or without one`,
  );
}

/** What the ids of a set begin with: those of its members, and that of its callback. */
export const idsOfSet = (name: string, group: string | undefined): string =>
  group === undefined ? tagOfSet(name) : `{${group}}`;

/** The id of the one job that a set leads to. */
export const callbackId = (name: string, group: string | undefined): string =>
  group === undefined ? `${tagOfSet(name)}{then}` : `{${group}}${name}{then}`;

// Groups and priorities: what jobs of a gated queue wait by. A group is a tenant, an account, a lock. It stands in
// braces at the beginning of the id, so all of a group live in one partition, and nothing of a job says it twice.

export const PRIORITIES = ['high', 'normal', 'low'] as const;
/** Between jobs that wait: of 21 turns `high` has 16, `normal` 4 and `low` 1. */
export type Priority = (typeof PRIORITIES)[number];

export const GROUP_ALLOWED =
  '1 to 64 printable ASCII characters without space, braces, comma, semicolon and bar, not beginning with `schedule:` or `set:`; hash what does not fit';
const GROUP = /^(?!schedule:|set:)[!-+\--:<-z~]{1,64}$/;
const GROUPED = /^(?:j:)?\{((?!schedule:|set:)[!-+\--:<-z~]{1,64})\}(?!(?:abandoned:\d+|then:\d+\.\d+)$)./;

/** @throws DuestreamError `bad-input` */
export function parseGroup(input: unknown): string {
  if (typeof input === 'string' && GROUP.test(input)) return input;
  throw new DuestreamError('bad-input', `group is ${show(input)}; allowed: ${GROUP_ALLOWED.replaceAll('`', '')}`);
}

/** The group of an id or a member; undefined where it has none. `lua/lib/line.lua` says the same. @example groupOf('{acme}order-7') // 'acme' */
export const groupOf = (id: string): string | undefined => GROUPED.exec(id)?.[1];

/** An id in a group. @throws DuestreamError `bad-input` for an id of another group */
export function groupedId(group: string, id: string): string {
  const own = groupOf(id);
  if (own === undefined) return `{${group}}${id}`;
  if (own === group) return id;
  throw new DuestreamError(
    'bad-input',
    `id is ${show(id)}, of group ${show(own)}, and group is ${show(group)}; allowed: an id of this group, or without one`,
  );
}

// The headers of a job: a few short texts beside its data, such as a `traceparent`. They say how a job came to be and
// not what it is, so they are no part of what makes a call the same call. In a record they stand in the letter `h`, in
// the form of a query string (`application/x-www-form-urlencoded`), which has neither `;` nor `|`.

export type JobHeaders = Readonly<Record<string, string>>;

export const HEADERS_ALLOWED =
  'at most 20 texts by names as HTTP has them; 4096 bytes together; names become lower case';
export const NO_HEADERS: JobHeaders = Object.freeze({});

const HEADERS_MAX = 20;
const BYTES_MAX = 4096;
/** A token of RFC 9110. */
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Control characters, and halves of a character, which no UTF-8 carries. */
export const UNFIT = /[\p{Cc}\p{Cs}]/u;

/** Sorted by name; undefined for none. @throws DuestreamError `bad-input` that names the header */
export function parseHeaders(given: unknown, what = 'headers'): JobHeaders | undefined {
  if (!isPlainObject(given)) throw bad(what, show(given), HEADERS_ALLOWED);
  const found = new Map<string, string>();
  let bytes = 0;
  for (const [name, value] of Object.entries(given)) {
    const lower = name.toLowerCase();
    if (found.has(lower)) throw bad(`a name in ${what}`, show(name), `${lower} once, in whatever case`);
    found.set(lower, checkedHeader(what, name, value));
    bytes += Buffer.byteLength(name + value);
  }
  if (found.size > HEADERS_MAX) throw bad(`the number of ${what}`, String(found.size), `at most ${HEADERS_MAX}`);
  if (bytes > BYTES_MAX) {
    throw bad(`the size of ${what}`, `${bytes} bytes`, `at most ${BYTES_MAX} bytes of names and values`);
  }
  const sorted = [...found].sort(([one], [other]) => (one < other ? -1 : 1));
  return sorted.length === 0 ? undefined : Object.freeze(Object.fromEntries(sorted));
}

const isPlainObject = (given: unknown): given is object => Object.prototype.toString.call(given) === '[object Object]';

/** A value may be a secret, so no message shows it. */
function checkedHeader(what: string, name: string, value: unknown): string {
  if (!NAME.test(name)) throw bad(`a name in ${what}`, show(name), "letters, digits and !#$%&'*+-.^_`|~");
  if (typeof value !== 'string') throw bad(`${what}.${name}`, `a ${typeof value}`, 'a text');
  if (!UNFIT.test(value)) return value;
  throw bad(`${what}.${name}`, 'a text with a control character', 'a text without');
}

/** Adds to the headers that a caller gives those of what goes on around the call, such as a trace. */
export type Carry = (given: JobHeaders | undefined) => JobHeaders | undefined;

/**
 * The headers that a caller gives, and others that it did not ask for. A name that the caller gives keeps its value, and what has no
 * room is left out: no call is refused because of them. What the caller gives is checked later.
 */
export function withHeaders(given: JobHeaders | undefined, more: JobHeaders): JobHeaders {
  if (given !== undefined && !isPlainObject(given)) return given;
  const own = Object.entries(given ?? {});
  const names = new Set(own.map(([name]) => name.toLowerCase()));
  let bytes = own.reduce((sum, [name, value]) => sum + Buffer.byteLength(name + value), 0);
  const added: [string, string][] = [];
  for (const [name, value] of Object.entries(more)) {
    const most = bytes + Buffer.byteLength(name + value);
    const isFit = NAME.test(name) && !UNFIT.test(value) && !names.has(name);
    if (!isFit || own.length + added.length >= HEADERS_MAX || most > BYTES_MAX) continue;
    bytes = most;
    added.push([name, value]);
  }
  return added.length === 0 ? (given ?? NO_HEADERS) : { ...given, ...Object.fromEntries(added) };
}

export const headersText = (headers: JobHeaders): string => new URLSearchParams(headers).toString();

/** Undefined for a text that is none; a foreign producer may have written anything. */
export function headersIn(text: string): JobHeaders | undefined {
  try {
    return parseHeaders(Object.fromEntries(new URLSearchParams(text)));
  } catch {
    return undefined;
  }
}

function bad(what: string, given: string, allowed: string): DuestreamError {
  return new DuestreamError('bad-input', `${what} is ${given}; allowed: ${allowed}`);
}
