/**
 * Fields of data that nobody sees but code: a queue names them by their paths, and every view for people has
 * `[redacted]` in their place. What is stored stays whole, so handlers and programs that have the data need no key.
 *
 * A path is keys with dots between, such as `card.number`. `*` stands for every key, and a list is walked through
 * whether the path says so or not: one that is named wrongly should rather hide too much than too little.
 */
import { show } from './duration.ts';
import { DuestreamError } from './errors.ts';
import { ABANDONED } from './job.ts';

/** What is shown in the place of a field. */
export const REDACTED = '[redacted]';

/** Paths of fields, as they are written. */
export type Redaction = readonly string[];

const PATHS_MAX = 50;
const PATH_CHARS_MAX = 200;
export const REDACT_ALLOWED = `a list of at most ${PATHS_MAX} paths of at most ${PATH_CHARS_MAX} characters, such as card.number or items.*.email`;

/** Undefined: as it is stored; an empty list: nothing is redacted. @throws DuestreamError `bad-input` */
export function parseRedact(input: unknown): Redaction | undefined {
  if (input === undefined) return undefined;
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
export function decodeRedact(text: string | null | undefined): Redaction | undefined {
  if (text === null || text === undefined) return undefined;
  try {
    const paths = parseRedact(JSON.parse(text)) ?? [];
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

/** What stands at a path, at most once per element of a list. */
function valuesAt(value: unknown, [key, ...rest]: readonly string[]): readonly unknown[] {
  if (key === undefined) return [value];
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) {
    if (key === '*') return value.flatMap((one) => valuesAt(one, rest));
    return /^\d+$/.test(key)
      ? valuesAt(value[Number(key)], rest)
      : value.flatMap((one) => valuesAt(one, [key, ...rest]));
  }
  return Object.entries(value).flatMap(([name, part]) => (key === '*' || key === name ? valuesAt(part, rest) : []));
}

/** Shorter ones stand in too many words. */
const VALUE_CHARS_MIN = 4;

/**
 * A message in which the values of redacted fields are replaced where they stand word for word: errors of handlers quote
 * them. A value that was changed before, or is shorter than 4 characters, is not found.
 */
export function redactedText(text: string, jobs: readonly JobData[], redaction: Redaction): string {
  const values = jobs.flatMap(({ name, data }) =>
    forName(name, redaction).flatMap((path) => valuesAt(data, path.split('.')).flatMap(textsIn)),
  );
  const known = new Set(values.filter(({ length }) => length >= VALUE_CHARS_MIN));
  const longestFirst = [...known].sort((a, b) => b.length - a.length);
  return longestFirst.reduce((shown, value) => shown.replaceAll(value, REDACTED), text);
}

/** A value as a message may quote it: plain, or within JSON. */
function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'object' && value !== null) return Object.values(value).flatMap(textsIn);
  if (typeof value !== 'string') return typeof value === 'number' || typeof value === 'bigint' ? [String(value)] : [];
  return [value, JSON.stringify(value).slice(1, -1)];
}
