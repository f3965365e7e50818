/** `completion`: the lines that make a shell complete commands, flags and names of queues; and what they ask for. */
import { Argument, type Command, type Option } from 'commander';
import { queueNames } from '../client/queues/refs.ts';
import { oneLine } from '../kernel/errors.ts';
import { type Exit, type Register, type Session, withExamples, withRedis } from './session.ts';

/** A name with these would be taken apart by a shell. */
const PLAIN = /^[A-Za-z0-9._:/@%+,=-]+$/;

export const completion: Register = (parent, runner) => {
  const command = parent
    .command('completion')
    .description('print the lines that make a shell complete commands, flags and names of queues')
    .addArgument(new Argument('<shell>', 'the shell that reads them').choices(SHELLS))
    .argument('[words...]', 'after --: the words of a line; what may stand at its end is printed instead')
    .action((shell: Shell, words: readonly string[], _flags: unknown, command: Command) =>
      runner.run(command, (session) => run(session, { shell, words, program: parent.parent ?? parent })),
    );
  withExamples(command, [
    'duestream admin completion bash >> ~/.bashrc',
    'duestream admin completion zsh > ~/.zfunc/_duestream',
    'duestream admin completion fish > ~/.config/fish/completions/duestream.fish',
  ]);
};

interface Asked {
  readonly shell: Shell;
  readonly words: readonly string[];
  readonly program: Command;
}

async function run(session: Session, { shell, words, program }: Asked): Promise<Exit> {
  if (words.length === 0) {
    session.out.answer({ shell, script: scripts[shell] }, () => [scripts[shell]]);
    return 0;
  }
  const found = await candidatesOf(program, words, () => namesOf(session));
  session.out.answer(found, () => (found === 'files' ? [FILES_LINE] : found.filter(isPlain).map(lineOf)));
  return 0;
}

/** A person waits at the prompt: without a Redis there are no names, and nothing is said. */
function namesOf(session: Session): Promise<readonly string[]> {
  const { namespace } = session.config;
  return withRedis(session, (redis) => queueNames({ redis, namespace })).catch(() => []);
}

const isPlain = ({ word }: Candidate): boolean => PLAIN.test(word);
const lineOf = ({ word, about }: Candidate): string => `${word}\t${oneLine(about)}`;

// What may stand where the cursor is. The words come from the program's own tables of commands and flags, so that no list is
// kept twice. Names of queues come from whoever asks.

interface Candidate {
  readonly word: string;
  /** Shown beside it by shells that can; may be empty. */
  readonly about: string;
}

/** `files`: the shell offers its own files. */
type Candidates = readonly Candidate[] | 'files';

/** Flags whose value is a file. */
const FILES: ReadonlySet<string> = new Set(['config', 'module', 'file', 'bulk', 'map']);

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

// The few lines that each shell needs: they hand the words to `duestream admin completion <shell> -- …` and show what it says,
// one candidate per line, its description behind a tab. `:files` asks for the shell's own files.

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

/** The line that says "files". */
const FILES_LINE = ':files';

const scripts: Readonly<Record<Shell, string>> = {
  bash: `_duestream() {
  local line words
  COMPREPLY=()
  words=("\${COMP_WORDS[@]:1:COMP_CWORD}")
  while IFS= read -r line; do
    if [[ $line == ${FILES_LINE} ]]; then
      compopt -o default
      return
    fi
    COMPREPLY+=("\${line%%$'\\t'*}")
  done < <(duestream admin completion bash -- "\${words[@]}" 2>/dev/null)
}
complete -F _duestream duestream`,

  zsh: `#compdef duestream
_duestream() {
  local line
  local -a found
  for line in "\${(@f)$(duestream admin completion zsh -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    if [[ $line == ${FILES_LINE} ]]; then
      _files
      return
    fi
    [[ -n $line ]] && found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done
  _describe duestream found
}
if [[ $funcstack[1] == _duestream ]]; then
  _duestream "$@"
else
  compdef _duestream duestream
fi`,

  fish: `function __duestream
  set -l words (commandline -opc) (commandline -ct)
  set -l found (duestream admin completion fish -- $words[2..-1] 2>/dev/null)
  if test "$found[1]" = '${FILES_LINE}'
    __fish_complete_path (commandline -ct)
  else
    printf '%s\\n' $found
  end
end
complete -c duestream -f -a '(__duestream)'`,
};
