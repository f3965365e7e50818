/**
 * Names of options in code. A name that nobody knows is refused, because an option that is silently dropped is found out
 * at night; one that was renamed is refused with its new name.
 */

import { hintOf } from './did-you-mean.ts';
import { show } from './duration.ts';
import { DuestreamError, messageOf } from './errors.ts';

/**
 * @param options what was given
 * @param known the names that there are
 * @param owner what takes them, for the message
 * @param code of the refusal
 * @throws DuestreamError `bad-config`, or of that code
 */
export function checkNames(
  options: unknown,
  known: readonly string[],
  owner: string,
  code: 'bad-config' | 'bad-input' = 'bad-config',
): void {
  for (const name of Object.keys(checkObject(options, owner, code))) {
    if (known.includes(name)) continue;
    const now = nameNow(name, known);
    if (now !== undefined) throw new DuestreamError(code, `${name} is now ${now}`);
    const hint = hintOf(name, known) || `; allowed: ${known.join(', ') || 'none'}`;
    throw new DuestreamError(code, `${name} is not an option of ${owner}${hint}`);
  }
}

/** @throws DuestreamError `bad-config` for what is no object */
export function checkObject(options: unknown, owner: string, code: 'bad-config' | 'bad-input' = 'bad-config'): object {
  if (typeof options === 'object' && options !== null && !Array.isArray(options)) return options;
  throw new DuestreamError(code, `the options of ${owner} are ${show(options)}; allowed: an object of options`);
}

/** What an option is called that had another name once: `jobLeaseMs` → `jobLease`, `dataBytes` → `dataBytesMax`. */
export function nameNow(name: string, known: readonly string[]): string | undefined {
  const now = name
    .replace(/(_MS|Ms)$/, '')
    .replace(/(^|\.)dataBytes$/, '$1dataBytesMax')
    .replace(/__DATA_BYTES$/, '__DATA_BYTES_MAX');
  return now !== name && known.includes(now) ? now : undefined;
}

/** Carries out a check of options: what it refuses is a wrong configuration. @throws DuestreamError `bad-config` */
export function asConfig<T>(check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (error instanceof DuestreamError && error.code === 'bad-config') throw error;
    throw new DuestreamError('bad-config', messageOf(error), { cause: error });
  }
}
