/**
 * What may stand where the cursor is. The words come from the program's own tables of commands and flags, so that no list is
 * kept twice. Names of queues come from whoever asks.
 */
import type { Argument, Command, Option } from 'commander';

export interface Candidate {
  readonly word: string;
  /** Shown beside it by shells that can; may be empty. */
  readonly about: string;
}

/** `files`: the shell offers its own files. */
export type Candidates = readonly Candidate[] | 'files';

/** Flags whose value is a file. */
const FILES: ReadonlySet<string> = new Set(['config', 'module', 'file', 'bulk']);

/**
 * @param words what stands behind `duestream`; the last one is being written and may be empty
 * @param queueNames asked only where a queue is meant
 * @example await candidatesOf(program, ['queues', 'p'], async () => []) // pause
 */
export async function candidatesOf(
  program: Command,
  words: readonly string[],
  queueNames: () => Promise<readonly string[]>,
): Promise<Candidates> {
  const begun = words.at(-1) ?? '';
  const { command, operands, open } = walk(program, words.slice(0, -1));
  const fits = (all: readonly Candidate[]) => all.filter(({ word }) => word.startsWith(begun));
  if (open !== undefined) return isFile(open) ? 'files' : fits(await valuesOf(open, queueNames));
  if (begun.startsWith('-')) return fits(flagsOf(command).filter(({ word }) => !words.slice(0, -1).includes(word)));
  if (command.commands.length > 0) return fits(verbsOf(command));
  const argument = argumentAt(command, operands);
  if (argument === undefined) return fits(flagsOf(command));
  return isFile(argument) ? 'files' : fits(await valuesOf(argument, queueNames));
}

interface Walked {
  readonly command: Command;
  /** How many arguments of the command were given. */
  readonly operands: number;
  /** The flag whose value comes next. */
  readonly open: Option | undefined;
}

function walk(program: Command, words: readonly string[]): Walked {
  let command = program;
  let operands = 0;
  let open: Option | undefined;
  for (const word of words) {
    if (open !== undefined) open = undefined;
    else if (word.startsWith('-')) open = openedBy(command, word);
    else {
      const below = command.commands.find((one) => one.name() === word || one.aliases().includes(word));
      if (below === undefined) operands += 1;
      else command = below;
    }
  }
  return { command, operands, open };
}

function openedBy(command: Command, word: string): Option | undefined {
  if (word.includes('=')) return undefined;
  const found = optionsOf(command).find(({ long, short }) => word === long || word === short);
  return found?.required === true ? found : undefined;
}

/** Of the command and of all above it. */
function optionsOf(command: Command): readonly Option[] {
  const above = command.parent === null ? [] : optionsOf(command.parent);
  return [...command.options, ...above].filter(({ hidden }) => !hidden);
}

const flagsOf = (command: Command): readonly Candidate[] => [
  ...optionsOf(command).map(({ long, short, description }) => ({ word: long ?? short ?? '', about: description })),
  { word: '--help', about: 'show help' },
];

const verbsOf = (command: Command): readonly Candidate[] => [
  ...command.commands.map((one) => ({ word: one.name(), about: one.description() })),
  { word: 'help', about: 'show help' },
];

/** The last argument may take any number of words. */
function argumentAt({ registeredArguments }: Command, at: number): Argument | undefined {
  const last = registeredArguments.at(-1);
  return registeredArguments[at] ?? (last?.variadic === true ? last : undefined);
}

function isFile(what: Option | Argument): boolean {
  return FILES.has(nameOf(what)) || FILES.has(metavarOf(what));
}

async function valuesOf(
  what: Option | Argument,
  queueNames: () => Promise<readonly string[]>,
): Promise<readonly Candidate[]> {
  const words = what.argChoices ?? (isQueue(what) ? await queueNames() : []);
  return words.map((word) => ({ word, about: '' }));
}

const isQueue = (what: Option | Argument): boolean => nameOf(what) === 'queue' || nameOf(what) === 'queues';
const nameOf = (what: Option | Argument): string => ('long' in what ? what.attributeName() : what.name());
const metavarOf = (what: Option | Argument): string =>
  'long' in what ? (/<([^>]+)>/.exec(what.flags)?.[1] ?? '') : what.name();
