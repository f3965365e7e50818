/** Files that people write: read whole up to a bound, and parsed as YAML. */
import { readFileSync, statSync } from 'node:fs';
import { isPair, isScalar, isSeq, parseDocument, visit, YAMLParseError } from 'yaml';
import { show } from '../core/duration.ts';
import { DuestreamError, type ErrorCode, messageOf } from '../core/errors.ts';
import { inexact, keepsDigits } from '../core/json-text.ts';

const FILE_BYTES_MAX = 1024 * 1024;

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

/** @throws DuestreamError with `code`, also for a number that would lose digits */
export function parseYaml(text: string, name: string, code: ErrorCode = 'bad-config'): unknown {
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
