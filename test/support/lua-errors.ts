/**
 * A mistake in Lua says where it is. Redis knows a line of the script as it was put together (`user_script:174`), which nobody
 * wrote, and the client library a stack of its own. In a process of tests every error of a script names the line of
 * `lua/verbs` or `lua/lib` too, and its stack is that of the call, down to the test.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { partsNamed } from '../../lua/assemble.mjs';
import { scriptOptions } from '../../src/redis/scripts/scripts.ts';
import { read, root } from './repository.ts';

const PATCHED = Symbol.for('duestream.test.lua-errors');
const FRAMES = 40;

if (!Object.hasOwn(Redis.prototype, PATCHED)) {
  Object.defineProperty(Redis.prototype, PATCHED, { value: true });
  const send = Redis.prototype.sendCommand;
  Redis.prototype.sendCommand = function sendPlaced(this: Redis, ...all: Parameters<typeof send>) {
    const [command] = all;
    if (/^eval/i.test(command.name)) tellPlace(command);
    return send.apply(this, all);
  };
}

interface Command {
  readonly name: string;
  readonly args: readonly unknown[];
  reject: (error: Error) => void;
}

function tellPlace(command: Command): void {
  const { reject } = command;
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = FRAMES;
  const called = new Error('called here');
  Error.stackTraceLimit = limit;
  command.reject = (error) => {
    const line = Number(/user_script:(\d+)/.exec(error.message)?.[1]);
    const place = line > 0 ? placeIn(command, line) : undefined;
    if (place !== undefined) {
      error.message = `${error.message} (${place})`;
      error.stack = [`${error.name}: ${error.message}`, frameOf(place), ...framesOf(called)].join('\n');
    }
    reject(error);
  };
}

const framesOf = ({ stack = '' }: Error): readonly string[] =>
  stack
    .split('\n')
    .filter(
      (line) =>
        line.startsWith('    at ') &&
        !/node_modules|node:|lua-errors|src\/redis\/(connection|scripts\/scripts)/.test(line),
    );
const frameOf = (place: string): string => `    at lua (${join(root, place)}:1)`;

/** The verb of each text that is ours, by its digest. */
let verbs: ReadonlyMap<string, string> | undefined;

/** `lua/lib/x.lua:12`; undefined for a script that a test has changed. */
function placeIn({ name, args }: Command, line: number): string | undefined {
  verbs ??= new Map(
    Object.entries(scriptOptions()).map(([script, { lua }]) => [shaOf(lua), script.replace('duestream_', '')]),
  );
  const text = String(args[0]);
  const verb = verbs.get(/sha/i.test(name) ? text : shaOf(text));
  return verb === undefined ? undefined : placeOf(verb, line);
}

const shaOf = (text: string): string => createHash('sha1').update(text).digest('hex');

/** Where a line of a script that was put together comes from: where most lines around it are the same as well. */
export function placeOf(verb: string, line: number): string | undefined {
  const whole = linesOf(scriptOptions()[`duestream_${verb}`]?.lua ?? '');
  const own = `lua/verbs/${verb}.lua`;
  const paths = [own, ...partsNamed(read(own)).map((part) => `lua/lib/${part}.lua`)];
  let best = { alike: 0, place: undefined as string | undefined };
  for (const path of paths) {
    const lines = written(path);
    for (const [at, text] of lines.entries()) {
      if (text !== whole[line - 1]) continue;
      const alike = runOf(lines, at, whole, line - 1, 1) + runOf(lines, at, whole, line - 1, -1);
      if (alike > best.alike) best = { alike, place: `${path}:${at + 1}` };
    }
  }
  return best.place;
}

const files = new Map<string, readonly string[]>();
function written(path: string): readonly string[] {
  const lines = files.get(path) ?? linesOf(read(path));
  files.set(path, lines);
  return lines;
}

/** Indented as its place asks for. */
const linesOf = (text: string): readonly string[] => text.split('\n').map((line) => line.trim());

/** How many lines are the same in this direction, that one included. */
function runOf(a: readonly string[], at: number, b: readonly string[], bAt: number, step: 1 | -1): number {
  let same = 0;
  while (a[at + same * step] !== undefined && a[at + same * step] === b[bAt + same * step]) same += 1;
  return same;
}
