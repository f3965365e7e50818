/** `admin config`: every option with its effective value and where it was set; secrets are hidden. */
import type { Command } from 'commander';
import type { Loaded } from '../../config/load.ts';
import { options } from '../../config/options.ts';
import { shown } from '../../config/table.ts';
import { durationText } from '../../kernel/duration.ts';
import { type Exit, type Register, type Session, withExamples } from '../session.ts';
import { line } from '../terminal/output.ts';

export const configPrint: Register = (parent, runner) => {
  const command = parent
    .command('config')
    .description('print every option with its value and where it was set; secrets are hidden')
    .action((_flags: unknown, command: Command) => runner.run(command, run));
  withExamples(command, ['duestream admin config', 'duestream admin config --config production.yaml --json']);
};

function run({ loaded, out }: Session): Promise<Exit> {
  out.answer({ options: configRows(loaded) }, () =>
    printConfig(loaded)
      .trimEnd()
      .split('\n')
      .map((text) => line`${text}`),
  );
  return Promise.resolve(0);
}

// The effective configuration for people and programs: each value with the place it was set.

interface ConfigRow {
  readonly key: string;
  readonly value: unknown;
  /** `default`, a flag, a variable or a file. */
  readonly origin: string;
}

/** Every option with its value and origin, queues included, secrets hidden. */
export function configRows({ config, origins }: Loaded): readonly ConfigRow[] {
  return Object.entries(origins).map(([key, { name }]) => {
    const path = keyPath(key);
    const option = options.find(
      (one) => one.key === (path[0] === 'queues' ? ['queues', '*', path[2]] : path).join('.'),
    );
    if (option?.kind !== 'duration') return { key, value: shown(option, valueAt(config, path)), origin: name };
    const ms = valueAt(config, [...path.slice(0, -1), `${path.at(-1)}Ms`]);
    return { key, value: typeof ms === 'number' ? durationText(ms) : ms, origin: name };
  });
}

/** The rows as YAML-like lines: `mover.lease: "5s"  # default`. */
export function printConfig(loaded: Loaded): string {
  const rows = configRows(loaded).map(({ key, value, origin }) => ({
    text: `${key}: ${JSON.stringify(value)}`,
    origin,
  }));
  const width = Math.min(60, Math.max(...rows.map(({ text }) => text.length)));
  return rows.map(({ text, origin }) => `${text.padEnd(width)}  # ${origin}\n`).join('');
}

/** Queue names may contain dots, so the path of a queue's option is its first word, its last word and what is between. */
function keyPath(key: string): readonly string[] {
  const parts = key.split('.');
  return parts[0] === 'queues' ? ['queues', parts.slice(1, -1).join('.'), parts.at(-1) ?? ''] : parts;
}

function valueAt(tree: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (node, key) => (typeof node === 'object' && node !== null ? Reflect.get(node, key) : undefined),
    tree,
  );
}
