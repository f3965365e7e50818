/**
 * Where in a module and its own imports a syntax error is. The error of `import()` does not say: only a process that
 * dies of it prints the place. So each file is checked by `node --check`, which parses it and runs nothing.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** A module with more files of its own than this has its error told without a place. */
const FILES_MAX = 50;
const CHECK_MS = 10_000;

/** `file:line`, or undefined where every file that was checked is sound. */
export async function syntaxPlace(modulePath: string): Promise<string | undefined> {
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
