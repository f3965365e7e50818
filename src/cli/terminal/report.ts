/**
 * Anything thrown → what the shell and the person get: a code of the catalogue, its exit status, one line that says
 * what is wrong and one that says what to do next.
 */

import type { Command, CommanderError } from 'commander';
import { codeOf } from '../../inspect/failure.ts';
import { hintOf, nearest } from '../../kernel/checks.ts';
import { DuestreamError, type ErrorCode, errorCatalogue, oneLine } from '../../kernel/errors.ts';
import { reasonOf } from '../../kernel/reason.ts';
import { Unreachable } from '../../redis/connection/connect-problem.ts';
import { createOutput, type Invocation, json, paintFor } from './output.ts';

interface Failure {
  readonly code: string;
  readonly message: string;
  readonly exit: number;
}

const NEXT: Readonly<Record<string, string>> = {
  unavailable: 'start one with "duestream dev", or name one with --redis or DUESTREAM_REDIS_URL',
  indeterminate: 'repeat the same command with the same --id; it is safe',
  refused: 'run "duestream doctor": it says what this Redis lacks',
  'out-of-memory': 'raise maxmemory, or let jobs finish; "duestream doctor" shows the limit',
  'bad-config': 'correct it there, then run "duestream admin config": it shows every value',
  'wrong-schema': 'run "duestream doctor" with the same flags: it says what is there and what to do',
  moved: 'repeat the command',
};

const PORT_TAKEN = 'name another port with --http-port, or 0 for any free one';

/** Says on stderr what went wrong, and returns the exit status. `next` replaces the usual next step. */
export function report(
  invocation: Invocation,
  error: unknown,
  how: { readonly json: boolean; readonly next?: string },
): number {
  const { code, message, exit } = failureOf(error);
  if (how.json) {
    invocation.stderr.write(`${json({ error: { code, message } })}\n`);
    return exit;
  }
  const { red, dim } = paintFor(invocation.stderr, invocation.env);
  const next = how.next ?? nextOf(error, code);
  invocation.stderr.write(`${red('duestream:')} ${message}\n`);
  if (next !== undefined) createOutput(invocation, false).note(`${dim('next:')} ${oneLine(next)}`);
  return exit;
}

function failureOf(error: unknown): Failure {
  if (error instanceof Unreachable) return failure(error.code, error.saw);
  if (isEmbedded(error)) {
    // The list of remedies has a line for each system; it is our own text.
    const lines = error.message.split('\n').map((text) => text.trimEnd());
    return { code: error.code, message: lines.map((text) => cleanIndented(text)).join('\n'), exit: error.exitCode };
  }
  return failure(codeOf(error), error);
}

function failure(code: ErrorCode, error: unknown): Failure {
  return { code, message: reasonOf(error), exit: errorCatalogue[code].exit };
}

/** None after `dev` found no Redis: its text ends with what helps, and `dev` is not among it. */
function nextOf(error: unknown, code: string): string | undefined {
  return isEmbedded(error) && code === 'unavailable' ? undefined : (remedyOf(error) ?? NEXT[code]);
}

function remedyOf(error: unknown): string | undefined {
  if (error instanceof Unreachable) return error.remedy;
  return isPortTaken(error) ? PORT_TAKEN : undefined;
}

/** Also when the system's error is only the cause. */
function isPortTaken(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ('code' in error && error.code === 'EADDRINUSE') || isPortTaken(error.cause);
}

interface EmbeddedError extends Error {
  readonly code: string;
  readonly exitCode: number;
}

/** The error of `src/embedded`, which is known by its shape because only `dev` may import that folder. */
function isEmbedded(error: unknown): error is EmbeddedError {
  return error instanceof Error && error.name === 'EmbeddedRedisError';
}

function cleanIndented(text: string): string {
  const indent = text.length - text.trimStart().length;
  return ' '.repeat(indent) + oneLine(text);
}

// What was typed wrongly → one line that says what was given, what is allowed and the nearest thing that exists, and
// the help of the command it was meant for.

/** The deepest command or group that the first words name, and the words after it. */
function commandOf(
  program: Command,
  { args }: Invocation,
): { readonly command: Command; readonly rest: readonly string[] } {
  let command = program;
  const words = wordsOf(program, args);
  for (const [at, word] of words.entries()) {
    const below = command.commands.find((one) => one.name() === word);
    if (below === undefined) return { command, rest: words.slice(at) };
    command = below;
  }
  return { command, rest: [] };
}

/** Without flags and the values of those that every command has. */
function wordsOf({ options }: Command, args: readonly string[]): readonly string[] {
  const takesValue = (flag = '') =>
    options.some(({ long, short, required }) => required && [long, short].includes(flag));
  return args.filter((word, at) => !word.startsWith('-') && !takesValue(args[at - 1]));
}

/** The next step after a usage error: the help of the command. */
export function helpOf(program: Command, invocation: Invocation): { readonly next: string } {
  return { next: `${pathOf(commandOf(program, invocation).command)} --help` };
}

/** What the parser refused, in our words where they say more. */
export function usageError(program: Command, invocation: Invocation, error: CommanderError): DuestreamError {
  // The parser guesses in words of its own.
  const [said = '', guess] = oneLine(error.message.replace(/^error: /, '')).split(/ \(Did you mean (.*)\?\)$/);
  const { command } = commandOf(program, invocation);
  const [, word] = /^unknown command '(.+?)'/.exec(said) ?? [];
  if (word !== undefined) return unknownCommand(program, command, word);
  const hint = guess === undefined ? '' : `; did you mean ${guess.replace(/^one of /, '')}?`;
  return new DuestreamError('usage', `${withAdvice(said, command)}${hint}`);
}

function unknownCommand(program: Command, command: Command, word: string): DuestreamError {
  const meant = elsewhere(program, command, word);
  const known = command.commands.map((one) => one.name());
  const hint = meant.length > 0 ? `; did you mean ${meant.join(', or ')}?` : hintOf(word, known);
  return new DuestreamError('usage', `unknown command '${oneLine(word)}'${hint}`);
}

/** `help <topic>` or `<topic> --help` with a topic that is no command: the parser would answer with the help of everything. */
export function unknownTopic(program: Command, invocation: Invocation): DuestreamError | undefined {
  const { command, rest } = commandOf(program, invocation);
  const [first, second] = rest;
  const asksForHelp = invocation.args.some((word) => word === '--help' || word === '-h');
  const topic = first === 'help' ? second : asksForHelp ? first : undefined;
  if (topic === undefined || command.commands.length === 0) return undefined;
  const known = command.commands.map((one) => one.name());
  if (known.includes(topic) || topic === 'help') return undefined;
  return unknownCommand(program, command, topic);
}

/** Commands that are flags now. */
const FLAGS: Readonly<Record<string, string>> = {
  'duestream count': 'ls <queue> --count',
  'duestream history': 'ls <queue> --state over',
  'duestream run-now': 'reschedule <queue> <id> --now',
  'duestream fsck': 'doctor --keys',
  'duestream closed': 'tags ls <queue>',
  'duestream dead groups': 'dead ls <queue> --groups',
  'duestream queues unset': 'queues set <queue> --unset <setting>',
  'duestream groups unset': 'groups set <queue> <group> --unset',
};

/** What has this name below another noun than this command. */
function elsewhere(program: Command, command: Command, word: string): readonly string[] {
  const flag = FLAGS[`${pathOf(command)} ${word}`];
  if (flag !== undefined) return [flag];
  return program.commands
    .filter((noun) => noun.commands.some((one) => one.name() === word))
    .map((noun) => `${noun.name()} ${word}`);
}

function withAdvice(message: string, command: Command): string {
  const [, given, choices] = /argument '(.*)' is invalid\. Allowed choices are (.*)\.$/.exec(message) ?? [];
  if (given !== undefined && choices !== undefined) {
    const near = nearest(given, choices.split(', '));
    return near === undefined ? message : message.replace('. Allowed', `; did you mean ${near}? Allowed`);
  }
  const flag = /^unknown option '--([a-z-]+)'$/.exec(message)?.[1];
  if (flag !== undefined && command.registeredArguments.some((one) => one.name() === flag)) {
    return `${message}; ${flag} is an argument: ${pathOf(command)} ${argumentsOf(command)}`;
  }
  const named = command.options.find(({ long }) => long === '--queue');
  if (message.startsWith('too many arguments') && named) {
    return `${message.replace(/\.$/, '')}; a queue is a flag: ${named.flags}`;
  }
  return message;
}

const pathOf = (command: Command): string =>
  command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;

const argumentsOf = (command: Command): string =>
  command.registeredArguments.map((one) => (one.required ? `<${one.name()}>` : `[${one.name()}]`)).join(' ');
