/**
 * Counts the arguments of every command that our code sends in a process of tests, whatever the test is about: some services
 * refuse a command with 4,000 of them. One that has more than `ARGUMENTS_MAX` throws where it is sent, and fails its test
 * also where somebody catches that. What a test plants with a call of its own to Redis or to `src/redis` may be as long as it
 * likes, but in `arguments.test.ts`, which is about those functions.
 */
import { Redis } from 'ioredis';
import { afterEach } from 'vitest';
import { ARGUMENTS_MAX } from '../../src/redis/scripts/bytes.ts';

const COUNTED = Symbol.for('duestream.test.arguments');
const tooLong: string[] = [];

/** What was too long since the last call. A test that asks takes it away from the hook below. */
export const takeTooLong = (): readonly string[] => tooLong.splice(0);

afterEach(() => {
  const found = takeTooLong();
  if (found.length > 0) throw new Error(`a command has more than ${ARGUMENTS_MAX} arguments: ${found.join('; ')}`);
});

const shared = globalThis as { [COUNTED]?: typeof count };
/** The newest: files that share a process load this one again for each. */
shared[COUNTED] = count;

if (!Object.hasOwn(Redis.prototype, COUNTED)) {
  Object.defineProperty(Redis.prototype, COUNTED, { value: true });
  const send = Redis.prototype.sendCommand;
  Redis.prototype.sendCommand = function sendCounted(this: Redis, ...all: Parameters<typeof send>) {
    shared[COUNTED]?.(all[0]);
    return send.apply(this, all);
  };
}

function count({ name, args }: { readonly name: string; readonly args: readonly unknown[] }): void {
  const words = 1 + args.reduce((sum: number, arg) => sum + (Array.isArray(arg) ? arg.length : 1), 0);
  if (words <= ARGUMENTS_MAX || isOfTest()) return;
  const what = `${name} with ${words}`;
  tooLong.push(what);
  throw new Error(`too many arguments: ${what}; allowed: ${ARGUMENTS_MAX}`);
}

/** Whoever called `src/redis`, or the connection itself, is a file of tests. */
function isOfTest(): boolean {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 50;
  const stack = new Error('stack').stack ?? '';
  Error.stackTraceLimit = limit;
  const caller = stack
    .split('\n')
    .slice(1)
    .find((line) => !/node_modules|node:|support\/(arguments|lua-errors)|src\/redis\//.test(line));
  return caller !== undefined && /\/(test|bench)\//.test(caller) && !caller.includes('arguments.test');
}
