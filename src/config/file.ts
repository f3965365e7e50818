/** Files that people write: read whole up to a bound, and parsed as YAML. */
import { readFileSync, statSync } from 'node:fs';
import { parse } from 'yaml';
import { show } from '../core/duration.ts';
import { DuestreamError, type ErrorCode, messageOf } from '../core/errors.ts';

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

/** @throws DuestreamError with `code` */
export function parseYaml(text: string, name: string, code: ErrorCode = 'bad-config'): unknown {
  try {
    return parse(text);
  } catch (error) {
    // Only the first line of the message: what follows quotes the file, which may hold a password.
    throw new DuestreamError(code, `${name} is not valid YAML: ${messageOf(error).split('\n')[0]}`);
  }
}
