/**
 * A file that a person named → the handlers in it, or the database. Most of what can go wrong is theirs to repair, so the refusal says
 * where: the file and line of a syntax error or of what the module threw, the nearest file, what a default export is.
 */

import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, extname, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { hintOf } from '../kernel/checks.ts';
import { DuestreamError, oneLine } from '../kernel/errors.ts';
import { reasonOf } from '../kernel/reason.ts';
import { isOutboxDatabase, type OutboxDatabase } from '../sql/outbox-database.ts';
import { type Handlers, isHandlers } from '../worker/run/handlers.ts';

/**
 * Imports a handler module.
 *
 * @throws DuestreamError `bad-input` when it cannot be loaded or does not export handlers.
 */
export const loadHandlers = (modulePath: string): Promise<Handlers> =>
  loadExport(modulePath, {
    what: 'handler module',
    isWanted: isHandlers,
    has: 'handlers',
    maker: 'defineHandlers',
    allowed: 'export default defineHandlers({ queue: handler })',
  });

/**
 * Imports the module of a database with an outbox.
 *
 * @throws DuestreamError `bad-input` when it cannot be loaded or does not export one.
 */
export const loadOutbox = (modulePath: string): Promise<OutboxDatabase> =>
  loadExport(modulePath, {
    what: 'outbox module',
    isWanted: isOutboxDatabase,
    has: 'database',
    maker: 'defineOutbox',
    allowed: 'export default defineOutbox({ dialect, run })',
  });

/** What the default export of a module has to be. */
interface Wanted<T> {
  readonly what: string;
  readonly isWanted: (value: unknown) => value is T;
  readonly has: string;
  /** The function that makes one. */
  readonly maker: string;
  readonly allowed: string;
}

async function loadExport<T>(modulePath: string, wanted: Wanted<T>): Promise<T> {
  const { what, isWanted, has, maker, allowed } = wanted;
  const path = resolve(modulePath);
  const unloadable = (why: string, cause?: unknown) =>
    new DuestreamError('bad-input', `${what} ${modulePath} cannot be loaded: ${why}`, { cause });
  const absent = whyAbsent(path);
  if (absent !== undefined) throw unloadable(absent);
  const { href } = pathToFileURL(path);
  const module: unknown = await import(/* webpackIgnore: true */ href).catch(async (error: unknown) => {
    const place = placeOf(error) ?? (error instanceof SyntaxError ? await syntaxPlace(path) : undefined);
    throw unloadable(whyUnloadable(error, { path, place }), error);
  });
  const found = fieldOf(module, 'default');
  if (isWanted(found)) return found;
  // What a compiler makes of `export default` in CommonJS.
  const inner = fieldOf(found, 'default');
  if (isWanted(inner)) return inner;
  throw new DuestreamError(
    'bad-input',
    `${what} ${modulePath} has no ${has}: ${saysInstead(module, found, maker)}; allowed: ${allowed}`,
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
  const thrown = /^ +at (.* \()?(file:\/\/\S+?):(\d+:\d+)\)?$/m.exec(stack);
  if (syntax) return `${decodeURI(syntax[1] ?? '')}:${syntax[2]}`;
  const [, by = '', url, position] = thrown ?? [];
  // The loader's own frames say nothing: a module that is missing is named in the message.
  if (url === undefined || by.includes(loadExport.name) || fieldOf(error, 'code') === 'ERR_MODULE_NOT_FOUND')
    return undefined;
  return `${fileURLToPath(url)}:${position}`;
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

function saysInstead(module: unknown, found: unknown, maker: string): string {
  if (found === undefined) {
    const names = typeof module === 'object' && module !== null ? Object.keys(module) : [];
    return names.length === 0 ? 'it exports nothing' : `it has no default export, only ${names.slice(0, 5).join(', ')}`;
  }
  return `its default export is ${Array.isArray(found) ? 'an array' : `of type ${typeof found}`} and not what ${maker} returns`;
}

function fieldOf(value: unknown, field: string): unknown {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return undefined;
  return field in value ? Reflect.get(value, field) : undefined;
}

/** In a module that imports more files than this, the place of a syntax error is not looked for. */
const FILES_MAX = 50;
const CHECK_MS = 10_000;

/**
 * The `file:line` of a syntax error in a module or in a file that it imports; undefined if no checked file has one. The
 * error of `import()` does not name the place, and only a process that dies of it prints it. So `node --check` parses each
 * file, which runs nothing.
 */
async function syntaxPlace(modulePath: string): Promise<string | undefined> {
  const paths = new Set([modulePath]);
  // The set grows while it is walked.
  for (const path of paths) {
    const line = await brokenLine(path);
    if (line !== undefined) return `${path}:${line}`;
    for (const next of importsOf(path)) if (paths.size < FILES_MAX) paths.add(next);
  }
  return undefined;
}

function brokenLine(path: string): Promise<string | undefined> {
  return new Promise((done) => {
    execFile(process.execPath, ['--check', path], { timeout: CHECK_MS }, (error, _out, err) => {
      const [, file, line] = /^(?:file:\/\/)?(\S.*):(\d+)\n/.exec(err) ?? [];
      done(error && file !== undefined && decodeURI(file) === path ? line : undefined);
    });
  });
}

/** Files that it imports by a relative path; packages are others' work. */
function importsOf(path: string): readonly string[] {
  const found = textOf(path).matchAll(/\b(?:from|import)\s*\(?\s*['"](\.{1,2}\/[^'"\n]+)['"]/g);
  return [...found].map(([, to = '']) => resolve(dirname(path), to));
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
