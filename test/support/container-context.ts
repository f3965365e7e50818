/** What `docker build` sends: every file of a folder that its .dockerignore lets through. The last line that fits wins. */
import { readdirSync } from 'node:fs';
import { join, posix } from 'node:path';

interface Rule {
  /** Fits a path and everything below it. */
  readonly fits: RegExp;
  readonly ignored: boolean;
}

export function contextFiles(context: string, dockerignore: string): readonly string[] {
  const rules = dockerignore.split('\n').flatMap(ruleOf);
  const isSent = (path: string) => rules.findLast(({ fits }) => fits.test(path))?.ignored !== true;
  // Docker looks below ignored folders for what a later line lets through again; ours has no such line.
  const walk = (folder: string): readonly string[] =>
    readdirSync(join(context, folder), { withFileTypes: true }).flatMap((entry) => {
      const path = posix.join(folder, entry.name);
      if (!isSent(path)) return [];
      return entry.isDirectory() ? walk(path) : [path];
    });
  return walk('');
}

function ruleOf(line: string): readonly Rule[] {
  const text = line.trim();
  if (text === '' || text.startsWith('#')) return [];
  const glob = text.replace(/^!/, '').replace(/^\/|\/$/g, '');
  if (/[[\]\\?]|\*\*/.test(glob)) throw new Error(`a pattern that is not known here: ${text}`);
  const pattern = glob.replace(/[.+^${}()|]/g, '\\$&').replaceAll('*', '[^/]*');
  return [{ fits: new RegExp(`^${pattern}(/.*)?$`), ignored: !text.startsWith('!') }];
}
