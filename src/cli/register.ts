/**
 * How a command is put on the command line. A command is a function from a session and its own arguments to an exit status;
 * `Register` says its name, flags, help and example. Commands know neither the process nor each other.
 */
import { type Command, InvalidArgumentError } from 'commander';
import type { Session } from './session.ts';

/** 0 ok, 1 failed; other statuses come from errors. */
export type Exit = 0 | 1 | 69;

/** Runs the command that a command line names. */
export interface Runner {
  /** Opens a session with the flags of the command, runs the command and keeps its exit status. */
  readonly run: (command: Command, act: (session: Session) => Promise<Exit>) => Promise<void>;
}

/** Adds one command to the program or to its group. */
export type Register = (parent: Command, runner: Runner) => void;

const examples = new WeakMap<Command, readonly string[]>();

/** Shows examples below the help, and keeps them for the reference. */
export function withExamples(command: Command, lines: readonly string[]): Command {
  examples.set(command, lines);
  return command.addHelpText('after', `\nExamples:\n${lines.map((text) => `  $ ${text}`).join('\n')}`);
}

export function examplesOf(command: Command): readonly string[] {
  return examples.get(command) ?? [];
}

/** A parser of whole numbers for a flag. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Allowed: a whole number from ${min} to ${max}.`);
  };
}

/** Collects a flag that may be given several times. */
export function collect(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}
