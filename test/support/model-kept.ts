/** Lists of commands that are kept in files: those that failed once, and those that catch a planted bug. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command, List } from './model-commands.ts';
import { root } from './repository.ts';

export interface Kept {
  readonly title: string;
  readonly commands: List;
}

/** One line per list: `title: word a b c, word a b c`. */
export function keptIn(path: string): readonly Kept[] {
  const lines = readFileSync(join(root, path), 'utf8').split('\n');
  return (JSON.parse(lines.join('\n')) as readonly string[]).map((line) => {
    const at = line.lastIndexOf(': ');
    return { title: line.slice(0, at), commands: parse(line.slice(at + 2)) };
  });
}

export function parse(text: string): List {
  return text.split(', ').map((part): Command => {
    const [word = '', a = 0, b = 0, c = 0] = part.split(' ');
    return [word, Number(a), Number(b), Number(c)];
  });
}
