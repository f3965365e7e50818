/** Files that people write: read whole up to a bound, and parsed as YAML. */
import { readFileSync, statSync } from 'node:fs';
import { type CST, isPair, isScalar, isSeq, Parser, parseDocument, visit, YAMLParseError } from 'yaml';
import { inexact, keepsDigits } from '../job/json-text.ts';
import { show } from '../kernel/duration.ts';
import { DuestreamError, type ErrorCode, messageOf } from '../kernel/errors.ts';

const FILE_BYTES_MAX = 1024 * 1024;
/** What reads YAML calls itself for each level, and its stack may end before 800. */
const DEPTH_MAX = 500;

/** @throws DuestreamError `bad-config` that says what names the file */
export function readText(path: string, what: string, bytesMax = FILE_BYTES_MAX): string {
  try {
    if (statSync(path).size > bytesMax) throw new Error(`it is larger than ${bytesMax} bytes`);
    return readFileSync(path, 'utf8');
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
