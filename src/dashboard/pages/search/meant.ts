/** What somebody may mean who types into the search: a tag, an id, a time of day, a state, a word for something to do. */

/** As the API takes them. */
const TAG = /^[!-~]{1,64}$/;
const NOT_IN_TAG = /[,;|]/;
const ID = /^[!-~]{1,192}$/;
const CLOCK = /^(?:at\s+)?([01]?\d|2[0-3]):([0-5]\d)$/i;

/** Words with spaces between them are one with colons: people say `customer 42`, and programs `customer:42`. */
export const joined = (typed: string): string => typed.trim().replaceAll(/\s+/g, ':');

/** @example tagIn('customer 42') // customer:42; undefined for what no tag is */
export function tagIn(typed: string): string | undefined {
  const tag = joined(typed.replace(/^tag:/, ''));
  return TAG.test(tag) && !NOT_IN_TAG.test(tag) && !tag.startsWith('=') ? tag : undefined;
}

/** An id as it was typed, and with colons in place of its spaces. */
export function idIn(typed: string): string | undefined {
  const id = joined(typed.replace(/^id:/, ''));
  return ID.test(id) ? id : undefined;
}

/** @example timeIn('at 02:30', now) // the last time that it was half past two; undefined for what is no time */
export function timeIn(typed: string, nowMs: number): number | undefined {
  const [, hour, minute] = CLOCK.exec(typed.trim()) ?? [];
  if (hour === undefined) return undefined;
  const date = new Date(nowMs);
  date.setHours(Number(hour), Number(minute), 0, 0);
  if (date.getTime() > nowMs) date.setDate(date.getDate() - 1);
  return date.getTime();
}

/** `pause mails` → the verb and what it is about. */
export function deedIn(
  typed: string,
  verbs: readonly string[],
): { readonly verb: string; readonly of: string } | undefined {
  const [first = '', ...rest] = typed.trim().toLowerCase().split(/\s+/);
  const verb = verbs.find((one) => one === first);
  return verb === undefined ? undefined : { verb, of: rest.join(' ') };
}

/** Whether a text has all words of another, in any order. */
export function hasWords(text: string, typed: string): boolean {
  const low = text.toLowerCase();
  return typed
    .toLowerCase()
    .split(/\s+/)
    .every((word) => low.includes(word));
}
