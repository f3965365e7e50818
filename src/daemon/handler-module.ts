/**
 * A file that a person named → the handlers in it. Most of what can go wrong is theirs to repair, so the refusal says
 * where: the file and line of a syntax error or of what the module threw, the nearest file, what a default export is.
 */
import { readdirSync, statSync } from 'node:fs';
import { basename, dirname, extname, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { hintOf } from '../kernel/did-you-mean.ts';
import { DuestreamError, oneLine } from '../kernel/errors.ts';
import { reasonOf } from '../kernel/reason.ts';
import { type Handlers, isHandlers } from '../worker/run/handlers.ts';
import { syntaxPlace } from './syntax-place.ts';

/**
 * Imports a handler module.
 *
 * @throws DuestreamError `bad-input` when it cannot be loaded or does not export handlers.
 */
export async function loadHandlers(modulePath: string): Promise<Handlers> {
  const path = resolve(modulePath);
  const absent = whyAbsent(path);
  if (absent !== undefined) throw unloadable(modulePath, absent);
  const module: unknown = await import(pathToFileURL(path).href).catch(async (error: unknown) => {
    const place = placeOf(error) ?? (error instanceof SyntaxError ? await syntaxPlace(path) : undefined);
    throw unloadable(modulePath, whyUnloadable(error, { path, place }), error);
  });
  const found = fieldOf(module, 'default');
  if (isHandlers(found)) return found;
  // What a compiler makes of `export default` in CommonJS.
  const inner = fieldOf(found, 'default');
  if (isHandlers(inner)) return inner;
  throw new DuestreamError(
    'bad-input',
    `handler module ${modulePath} has no handlers: ${saysInstead(module, found)}; allowed: export default defineHandlers({ queue: handler })`,
  );
}

/** What the import of a module failed with, for the person who wrote it. */
export function whyUnloadable(
  error: unknown,
  { path, place = placeOf(error) }: { readonly path: string; readonly place?: string | undefined },
): string {
  const code = fieldOf(error, 'code');
  if (code === 'ERR_UNKNOWN_FILE_EXTENSION' && /^\.[cm]?ts$/.test(extname(path))) {
    return `Node ${process.version} does not run TypeScript; take Node 22.18 or later, which strips the types, or build it to JavaScript and name that file, or install tsx and set NODE_OPTIONS="--import tsx"`;
  }
  const text = reasonOf(error);
  const advice =
    code === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX'
      ? '; Node strips types and compiles nothing: write it without enum, namespace and parameter properties, or build it to JavaScript'
      : '';
  return oneLine(place === undefined ? `${text}${advice}` : `${kindOf(error)} at ${place}: ${text}${advice}`);
}

/** `file:line` of a syntax error, `file:line:column` of what was thrown; undefined where the stack names no file. */
function placeOf(error: unknown): string | undefined {
  const stack = fieldOf(error, 'stack');
  if (typeof stack !== 'string') return undefined;
  const syntax = /^(?:file:\/\/)?(\/.+?|[A-Za-z]:[\\/].+?):(\d+)\n/.exec(stack);
  const thrown = /^ +at (?:.* \()?(file:\/\/\S+?):(\d+:\d+)\)?$/m.exec(stack);
  if (syntax) return `${decodeURI(syntax[1] ?? '')}:${syntax[2]}`;
  const [, url, position] = thrown ?? [];
  // The loader's own frames say nothing: a module that is missing is named in the message.
  if (url === undefined || fieldOf(error, 'code') === 'ERR_MODULE_NOT_FOUND') return undefined;
  const file = fileURLToPath(url);
  return file === fileURLToPath(import.meta.url) ? undefined : `${file}:${position}`;
}

const kindOf = (error: unknown): string => (error instanceof Error ? error.name : 'thrown');

function whyAbsent(path: string): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory()) return 'it is a folder; name the file in it';
  if (found !== undefined) return undefined;
  return `there is no such file${hintOf(basename(path), namesIn(dirname(path)))}`;
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).slice(0, NAMES_MAX);
  } catch {
    return [];
  }
}

const NAMES_MAX = 1000;

function saysInstead(module: unknown, found: unknown): string {
  if (found === undefined) {
    const names = typeof module === 'object' && module !== null ? Object.keys(module) : [];
    return names.length === 0 ? 'it exports nothing' : `it has no default export, only ${names.slice(0, 5).join(', ')}`;
  }
  return `its default export is ${Array.isArray(found) ? 'an array' : `of type ${typeof found}`} and not what defineHandlers returns`;
}

const unloadable = (modulePath: string, why: string, cause?: unknown) =>
  new DuestreamError('bad-input', `handler module ${modulePath} cannot be loaded: ${why}`, { cause });

function fieldOf(value: unknown, field: string): unknown {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return undefined;
  return field in value ? Reflect.get(value, field) : undefined;
}
