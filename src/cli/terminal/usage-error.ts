/**
 * What was typed wrongly → one line that says what was given, what is allowed and the nearest thing that exists, and the
 * help of the command it was meant for.
 */
import type { Command, CommanderError } from 'commander';
import { hintOf, nearest } from '../../kernel/did-you-mean.ts';
import { DuestreamError, oneLine } from '../../kernel/errors.ts';
import type { Invocation } from './screen.ts';

/** The deepest command or group that the first words name. */
function commandOf(program: Command, { args }: Invocation): { readonly command: Command; readonly words: number } {
  let command = program;
  for (const [words, word] of args.entries()) {
    const below = command.commands.find((one) => one.name() === word);
    if (below === undefined) return { command, words };
    command = below;
  }
  return { command, words: args.length };
}

/** The next step after a usage error: the help of the command. */
export function helpOf(program: Command, invocation: Invocation): { readonly next: string } {
  return { next: `${pathOf(commandOf(program, invocation).command)} --help` };
}

/** What the parser refused, in our words where they say more. */
export function usageError(program: Command, invocation: Invocation, error: CommanderError): DuestreamError {
  const message = oneLine(error.message.replace(/^error: /, ''));
  return new DuestreamError('usage', withAdvice(message, commandOf(program, invocation).command));
}

/** `help <topic>` with a topic that is no command: the parser would answer it with the help of everything. */
export function unknownTopic(program: Command, invocation: Invocation): DuestreamError | undefined {
  const { command, words } = commandOf(program, invocation);
  const [help, topic] = invocation.args.slice(words);
  if (help !== 'help' || topic === undefined || topic.startsWith('-') || command.commands.length === 0)
    return undefined;
  const known = command.commands.map((one) => one.name());
  if (known.includes(topic) || topic === 'help') return undefined;
  return new DuestreamError('usage', `unknown command '${oneLine(topic)}'${hintOf(topic, known)}`);
}

function withAdvice(message: string, command: Command): string {
  const [, given, choices] = /argument '(.*)' is invalid\. Allowed choices are (.*)\.$/.exec(message) ?? [];
  if (given !== undefined && choices !== undefined) {
    const near = nearest(given, choices.split(', '));
    return near === undefined ? message : message.replace(' Allowed', ` Did you mean ${near}? Allowed`);
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
