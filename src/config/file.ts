/** Files that people write: read whole up to a bound, and parsed as YAML. */
import { isUtf8 } from 'node:buffer';
import { readFileSync, statSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { type CST, isPair, isScalar, isSeq, Parser, parseDocument, visit, YAMLParseError } from 'yaml';
import { inexact, keepsDigits } from '../job/json-text.ts';
import { show } from '../kernel/duration.ts';
import { DuestreamError, type ErrorCode, messageOf } from '../kernel/errors.ts';
import type { ScheduleInput } from '../schedule/input.ts';
import { defineSchedule } from '../schedule/text.ts';

const FILE_BYTES_MAX = 1024 * 1024;
/** What reads YAML calls itself for each level, and its stack may end before 800. */
const DEPTH_MAX = 500;

/** @throws DuestreamError `bad-config` that says what names the file */
export function readText(path: string, what: string, bytesMax = FILE_BYTES_MAX): string {
  try {
    if (statSync(path).size > bytesMax) throw new Error(`it is larger than ${bytesMax} bytes`);
    const bytes = readFileSync(path);
    if (!isUtf8(bytes)) throw new Error('it holds bytes that are no UTF-8');
    return bytes.toString('utf8');
  } catch (error) {
    throw new DuestreamError('bad-config', `${what} names ${show(path)}, which can't be read: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/** @throws DuestreamError with `code`, also for a number that would lose digits, and for what is nested too deeply */
export function parseYaml(text: string, name: string, code: ErrorCode = 'bad-config'): unknown {
  const deep = deepIn(text);
  if (deep !== undefined) {
    throw new DuestreamError(code, `${name}: ${deep} is nested deeper than allowed; allowed: ${DEPTH_MAX} levels`);
  }
  try {
    const document = parseDocument(text);
    const [error] = document.errors;
    if (error) throw error;
    const lost = inexactIn(document);
    if (lost) throw new DuestreamError(code, `${name}: ${inexact(lost.path, lost.literal).message}`);
    return document.toJS();
  } catch (error) {
    if (error instanceof DuestreamError) throw error;
    const isDeep = error instanceof YAMLParseError && error.code === 'RESOURCE_EXHAUSTION';
    const why = isDeep ? 'it is nested too deeply' : messageOf(error).split('\n')[0];
    // Only the first line of the message: what follows quotes the file, which may hold a password.
    throw new DuestreamError(code, `${name} is not valid YAML: ${why}`);
  }
}

/** A collection with its key or index in the one around it. */
interface Level {
  readonly token: CST.Token;
  readonly key: string | undefined;
  readonly around: Level | undefined;
  readonly depth: number;
}

const PATH_CHARS_MAX = 120;

/** The path of a collection that is nested too deeply. A loop over what the parser saw: a deep text does not end the stack. */
function deepIn(text: string): string | undefined {
  const mayBe = text.split(/[[{]/).length > DEPTH_MAX || new RegExp(`^[-?: \\t]{${DEPTH_MAX}}`, 'm').test(text);
  if (!mayBe) return undefined;
  const open: Level[] = [];
  for (const token of new Parser().parse(text)) {
    if (token.type === 'document' && token.value) {
      open.push({ token: token.value, key: undefined, around: undefined, depth: 1 });
    }
  }
  for (let level = open.pop(); level; level = open.pop()) {
    if (!('items' in level.token)) continue;
    if (level.depth > DEPTH_MAX) return pathOf(level);
    open.push(...inside(level, level.token.items));
  }
  return undefined;
}

function inside(around: Level, items: readonly CST.CollectionItem[]): readonly Level[] {
  const depth = around.depth + 1;
  return items.flatMap(({ key, value }, at) => {
    const name = key && 'source' in key ? key.source : String(at);
    return [key, value].flatMap((token) => (token ? [{ token, key: name, around, depth }] : []));
  });
}

function pathOf(deepest: Level): string {
  const keys: string[] = [];
  for (let level: Level | undefined = deepest; level; level = level.around) keys.push(level.key ?? '');
  return `${keys.reverse().slice(1).join('.').slice(0, PATH_CHARS_MAX)}…`;
}

/** The first number that JavaScript cannot hold as it is written, be it a value or a key. */
function inexactIn(
  document: ReturnType<typeof parseDocument>,
): { readonly literal: string; readonly path: readonly string[] } | undefined {
  let lost: ReturnType<typeof inexactIn>;
  visit(document, {
    Scalar(_key, scalar, parents) {
      const { value, source = '' } = scalar;
      if (typeof value !== 'number' || isExact(value, source)) return undefined;
      const path = parents.flatMap((one, at) => {
        if (isSeq(one)) return [String(one.items.indexOf(parents[at + 1] ?? scalar))];
        return isPair(one) && isScalar(one.key) ? [String(one.key.value)] : [];
      });
      lost = { literal: source, path };
      return visit.BREAK;
    },
  });
  return lost;
}

/** YAML has also 0x1F, 0o17, .inf and .nan, which what takes them judges. */
function isExact(value: number, source: string): boolean {
  if (/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(source)) return keepsDigits(source.replace(/^\+/, ''));
  return !Number.isInteger(value) || Number.isSafeInteger(value);
}

// A file of schedules: `schedules:` and below it each by its name, with the fields that a call takes. It is judged as a
// whole before anything is done with it: one wrong field, and nothing of it counts.

type ScheduleFile = ReadonlyMap<string, ScheduleInput>;

const SCHEDULES_BYTES_MAX = 8 * 1024 * 1024;

/**
 * The schedules of the file that the configuration names.
 *
 * @throws DuestreamError `bad-config` that names file, schedule and field
 */
export function loadScheduleFile(
  file: string,
  { cwd = process.cwd(), nowMs }: { readonly cwd?: string; readonly nowMs: number },
): ScheduleFile {
  const path = isAbsolute(file) ? file : join(cwd, file);
  return schedulesIn(readText(path, 'schedules.file', SCHEDULES_BYTES_MAX), { file, nowMs });
}

/** @throws DuestreamError `bad-config` */
export function schedulesIn(
  text: string,
  { file, nowMs }: { readonly file: string; readonly nowMs: number },
): ScheduleFile {
  const found = schedulesOf(parseYaml(text, file), file);
  const wrong: string[] = [];
  for (const [name, input] of found) {
    try {
      defineSchedule(name, input, { sinceMs: nowMs, source: 'file' });
    } catch (error) {
      wrong.push(messageOf(error));
    }
  }
  if (wrong.length === 0) return found;
  const more = wrong.length === 1 ? '' : `; and ${wrong.length - 1} more that cannot be read`;
  throw new DuestreamError('bad-config', `${file}: ${wrong[0]}${more}`);
}

/**
 * One definition: what the file holds, or what it holds under the name.
 *
 * @throws DuestreamError `bad-input`
 */
export function definitionIn(
  text: string,
  { name, file }: { readonly name: string; readonly file: string },
): ScheduleInput {
  const tree = parseYaml(text, file, 'bad-input');
  if (!isMapping(tree)) throw bad(`${file} holds ${show(tree)}; allowed: the fields of a schedule`);
  if (!('schedules' in tree)) return tree;
  const found = isMapping(tree.schedules)
    ? Object.entries(tree.schedules).find(([key]) => key === name)?.[1]
    : undefined;
  if (isMapping(found)) return found;
  throw bad(`${file} has no schedule ${show(name)}; allowed: one of those below its "schedules:"`);
}

/** A file that is cut off or of another kind must not read as one without schedules. */
function schedulesOf(tree: unknown, file: string): ScheduleFile {
  const named = isMapping(tree) && Object.hasOwn(tree, 'schedules');
  const others = isMapping(tree) ? Object.keys(tree).filter((key) => key !== 'schedules') : [];
  if (!named || others.length > 0) {
    const holds = others[0] === undefined ? show(tree) : show(others[0]);
    throw new DuestreamError(
      'bad-config',
      `${file} holds ${holds}; allowed: "schedules:" and below it each by its name`,
    );
  }
  const below = 'schedules' in tree ? (tree.schedules ?? {}) : {};
  if (!isMapping(below)) {
    throw new DuestreamError(
      'bad-config',
      `schedules in ${file} is ${show(below)}; allowed: schedules, each by its name`,
    );
  }
  return new Map(
    Object.entries(below).map(([name, input]) => {
      if (isMapping(input)) return [name, input];
      throw new DuestreamError('bad-config', `${file}: schedule ${name} is ${show(input)}; allowed: its fields`);
    }),
  );
}

/** What its fields hold is judged where definitions are. */
const isMapping = (value: unknown): value is ScheduleInput =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const bad = (message: string) => new DuestreamError('bad-input', message);
