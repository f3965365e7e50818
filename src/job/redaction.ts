/**
 * Fields of data that nobody sees but code: a queue names them by their paths, and every view for people has
 * `[redacted]` in their place. What is stored stays whole, so handlers and programs that have the data need no key.
 *
 * A path is keys with dots between, such as `card.number`. `*` stands for every key, and a list is walked through
 * whether the path says so or not: one that is named wrongly should rather hide too much than too little.
 */
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { ABANDONED } from './job.ts';

/** What is shown in the place of a field. */
export const REDACTED = '[redacted]';

/** Paths of fields, as they are written. */
export type Redaction = readonly string[];

export const PATHS_MAX = 50;
const PATH_CHARS_MAX = 200;
export const REDACT_ALLOWED = `a list of at most ${PATHS_MAX} paths of at most ${PATH_CHARS_MAX} characters, such as card.number or items.*.email`;

/** An empty list: nothing is redacted. @throws DuestreamError `bad-input` */
export function parseRedact(input: unknown): Redaction {
  if (Array.isArray(input) && input.length <= PATHS_MAX && input.every(isPath)) {
    return Object.freeze([...new Set(input)].sort());
  }
  const wrong = Array.isArray(input) && input.length <= PATHS_MAX ? input.find((one) => !isPath(one)) : input;
  throw new DuestreamError('bad-input', `redact is ${show(wrong)}; allowed: ${REDACT_ALLOWED}`);
}

const isPath = (path: unknown): path is string =>
  typeof path === 'string' &&
  path.length <= PATH_CHARS_MAX &&
  path.split('.').every((part) => part !== '' && part.trim() === part);

/** As it stands in the registry of queues. */
export const encodeRedact = (paths: Redaction): string => JSON.stringify(paths);

/** What somebody else wrote there and cannot be read redacts everything: it was meant to hide something. */
export function decodeRedact(text: string): Redaction | undefined {
  try {
    const paths = parseRedact(JSON.parse(text));
    return paths.length === 0 ? undefined : paths;
  } catch {
    return ['*'];
  }
}

/**
 * Data as people see it: a copy where a field is redacted, else the same.
 *
 * @example redactedData({ to: 'ann@example.org', n: 1 }, ['to']) // { to: '[redacted]', n: 1 }
 */
export const redactedData = (data: unknown, redaction: Redaction = []): unknown =>
  redaction.reduce((shown, path) => replaced(shown, path.split('.')), data);

/** The part of a job that is looked at. */
interface JobData {
  readonly name?: string | undefined;
  readonly data?: unknown;
}

/** The data of a job by its name: that of a compensation job holds the data of the job that died. */
export function redactedJob({ name, data }: JobData, redaction: Redaction | undefined): unknown {
  return redaction === undefined ? data : redactedData(data, forName(name, redaction));
}

const forName = (name: string | undefined, redaction: Redaction): Redaction =>
  name === ABANDONED ? redaction.flatMap((path) => [`body.d.${path}`, `data.${path}`]) : redaction;

function replaced(value: unknown, [key, ...rest]: readonly string[]): unknown {
  if (key === undefined) return REDACTED;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const inner = key === '*' || /^\d+$/.test(key) ? rest : [key, ...rest];
    return value.map((one, at) => (key === '*' || inner !== rest || Number(key) === at ? replaced(one, inner) : one));
  }
  const has = key === '*' || Object.hasOwn(value, key);
  if (!has) return value;
  const parts = Object.entries(value).map(([name, part]) => [
    name,
    key === '*' || key === name ? replaced(part, rest) : part,
  ]);
  return Object.fromEntries(parts);
}

/**
 * What was copied from a view must not be written back in the place of the value.
 *
 * @throws DuestreamError `bad-input` for data with `[redacted]` in a field that is redacted
 */
export function refuseRedacted(data: unknown, redaction: Redaction | undefined): void {
  const path = redaction?.find((one) => valuesAt(data, one.split('.')).includes(REDACTED));
  if (path === undefined) return;
  throw new DuestreamError(
    'bad-input',
    `data.${path} is "${REDACTED}", which stands in views for a value that its queue hides; allowed: the value itself, or a change without data`,
  );
}

/** One value that a walk has come to, and how much of its path is behind it. */
interface Step {
  readonly value: unknown;
  readonly at: number;
}

/**
 * What stands at a path, at most once per element of a list. A loop, because a handler may have made of its data what no
 * record holds: something very deep, or circular.
 */
function valuesAt(root: unknown, keys: readonly string[]): readonly unknown[] {
  const found: unknown[] = [];
  const seen = keys.map(() => new Set<object>());
  const open: Step[] = [{ value: root, at: 0 }];
  for (let step = open.pop(); step; step = open.pop()) {
    const { value, at } = step;
    const key = keys[at];
    if (key === undefined) found.push(value);
    if (key === undefined || typeof value !== 'object' || value === null || seen[at]?.has(value)) continue;
    seen[at]?.add(value);
    for (const next of stepsFrom(value, key, at)) open.push(next);
  }
  return found;
}

function stepsFrom(value: object, key: string, at: number): readonly Step[] {
  const on = (one: unknown): Step => ({ value: one, at: at + 1 });
  if (!Array.isArray(value)) {
    return Object.entries(value).flatMap(([name, part]) => (key === '*' || key === name ? [on(part)] : []));
  }
  if (key === '*') return value.map(on);
  return /^\d+$/.test(key) ? [on(value[Number(key)])] : value.map((one) => ({ value: one, at }));
}

/** Shorter ones stand in too many words. */
const VALUE_CHARS_MIN = 4;
/** More than what is kept of any message or stack. */
const TOLD_CHARS_MAX = 8192;

/**
 * The beginning of a message, in which the values of redacted fields are replaced where they stand word for word: errors
 * of handlers quote them. A value that was changed before, or is shorter than 4 characters, is not found.
 *
 * The message is cut first, and then walked through once: at each place the longest value that begins there is looked up
 * in their sorted list, so that thousands of values cost as little as one. What overlaps is hidden together, and a value
 * that begins before the cut is hidden whole.
 */
export const redactedText = (text: string, jobs: readonly JobData[], redaction: Redaction): string =>
  redactor(jobs, redaction)(text);

/** The same for many texts: the values are sorted once. */
export function redactor(jobs: readonly JobData[], redaction: Redaction): (text: string) => string {
  const values = hiddenTexts(jobs, redaction);
  if (values === undefined) return () => REDACTED;
  const longest = longestAt(values);
  return (text) => withoutValues(text, longest);
}

function withoutValues(text: string, longest: (text: string, at: number) => number): string {
  const end = Math.min(text.length, TOLD_CHARS_MAX);
  let shown = '';
  let copied = 0;
  let hiddenTo = 0;
  for (let at = 0; at < end; at += 1) {
    const length = longest(text, at);
    if (length === 0) continue;
    if (at >= hiddenTo) shown += `${text.slice(copied, at)}${REDACTED}`;
    hiddenTo = Math.max(hiddenTo, at + length);
    copied = hiddenTo;
  }
  return shown + text.slice(copied, Math.max(copied, end));
}

/** Undefined where nobody can tell them: then nothing of the message is shown. */
function hiddenTexts(jobs: readonly JobData[], redaction: Redaction): readonly string[] | undefined {
  const known = new Set<string>();
  try {
    for (const { name, data } of jobs) {
      for (const path of forName(name, redaction)) addTexts(known, valuesAt(data, path.split('.')));
    }
    return [...known].sort();
  } catch {
    return undefined;
  }
}

/** Values and what is in them. */
function addTexts(known: Set<string>, values: readonly unknown[]): void {
  const open = [...values];
  const seen = new Set<unknown>();
  while (open.length > 0) {
    const value = open.pop();
    for (const text of textsOf(value)) if (text.length >= VALUE_CHARS_MIN) known.add(text);
    if (typeof value !== 'object' || value === null || seen.has(value)) continue;
    seen.add(value);
    for (const part of Object.values(value)) open.push(part);
  }
}

/** A value as a message may quote it: plain, or within JSON. */
function textsOf(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value, JSON.stringify(value).slice(1, -1)];
  return typeof value === 'number' || typeof value === 'bigint' ? [String(value)] : [];
}

/**
 * How long the longest of some sorted texts is that stands in a text at a place; 0 where none does. Of the texts that sort
 * before what stands there, the last one is it, or it begins with it.
 */
function longestAt(sorted: readonly string[]): (text: string, at: number) => number {
  const inner = prefixesOf(sorted);
  const charsMax = sorted.reduce((most, { length }) => Math.max(most, length), 0);
  return (text, at) => {
    const rest = text.slice(at, at + charsMax);
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((sorted[middle] ?? '') <= rest) low = middle + 1;
      else high = middle;
    }
    let found = low - 1;
    while (found >= 0 && !rest.startsWith(sorted[found] ?? '')) found = inner[found] ?? -1;
    return sorted[found]?.length ?? 0;
  };
}

/** For each of some sorted texts, which other one is the longest that it begins with; -1 for none. */
function prefixesOf(sorted: readonly string[]): readonly number[] {
  const open: number[] = [];
  return sorted.map((text, at) => {
    while (open.length > 0 && !text.startsWith(sorted[open.at(-1) ?? 0] ?? '')) open.pop();
    const inner = open.at(-1) ?? -1;
    open.push(at);
    return inner;
  });
}
