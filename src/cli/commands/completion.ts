/** `completion`: the lines that make a shell complete commands, flags and names of queues; and what they ask for. */
import { Argument, type Command } from 'commander';
import { queueNames } from '../../inspect/refs.ts';
import { oneLine } from '../../kernel/errors.ts';
import { type Candidate, candidatesOf } from '../completion/candidates.ts';
import { FILES_LINE, SHELLS, type Shell, scripts } from '../completion/scripts.ts';
import { type Exit, type Register, withExamples } from '../register.ts';
import { type Session, withRedis } from '../session.ts';

/** A name with these would be taken apart by a shell. */
const PLAIN = /^[A-Za-z0-9._:/@%+,=-]+$/;

export const completion: Register = (parent, runner) => {
  const command = parent
    .command('completion')
    .description('print the lines that make a shell complete commands, flags and names of queues')
    .addArgument(new Argument('<shell>', 'the shell that reads them').choices(SHELLS))
    .argument('[words...]', 'after --: the words of a line; what may stand at its end is printed instead')
    .action((shell: Shell, words: readonly string[], _flags: unknown, command: Command) =>
      runner.run(command, (session) => run(session, { shell, words, program: parent })),
    );
  withExamples(command, [
    'duestream completion bash >> ~/.bashrc',
    'duestream completion zsh > ~/.zfunc/_duestream',
    'duestream completion fish > ~/.config/fish/completions/duestream.fish',
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
