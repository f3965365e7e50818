/** `mcp`: the tools of agents over standard input and output, until the host of the agent has gone. */
import { type Command, InvalidArgumentError } from 'commander';
import { DuestreamError } from '../../kernel/errors.ts';
import { apiUrl } from '../api-url.ts';
import { type Exit, type Register, type Session, withExamples } from '../session.ts';
import { line } from '../terminal/output.ts';

interface Flags {
  readonly api?: string;
  readonly allowChanges?: boolean;
}

export const mcp: Register = (parent, runner) => {
  const command = parent
    .command('mcp')
    .description(
      'serve tools for agents over the Model Context Protocol (stdio); they ask the HTTP API with the token in DUESTREAM_API_TOKEN',
    )
    .option('--api <url>', 'where a daemon serves the HTTP API; default: as the configuration says', urlIn)
    .option('--allow-changes', 'also tools that change something, each after a dry run; without it agents only look')
    .action((flags: Flags, command: Command) => runner.run(command, (session) => run(session, flags)));
  withExamples(command, ['duestream mcp', 'duestream mcp --api https://jobs.example.org --allow-changes']);
};

/** Without a slash at its end. */
function urlIn(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url && /^https?:$/.test(url.protocol) && url.username === '' && url.search === '') {
    return `${url.origin}${url.pathname.replace(/\/$/, '')}`;
  }
  throw new InvalidArgumentError('Allowed: an address such as http://127.0.0.1:7420, without a user and a query.');
}

async function run(session: Session, { api = apiUrl(session), allowChanges = false }: Flags): Promise<Exit> {
  const { invocation, out } = session;
  const token = invocation.env.DUESTREAM_API_TOKEN || undefined;
  if (allowChanges && token === undefined) {
    throw new DuestreamError(
      'usage',
      '--allow-changes needs a token in DUESTREAM_API_TOKEN: its scopes bound what the agent may change, and the audit has its name; "duestream tokens create --name mcp --scope write" makes one',
    );
  }
  const { serveMcp } = await import('../../mcp/serve.ts');
  const { stdin, stdout } = invocation;
  const note = (text: string) => out.note(line`${text}`);
  await serveMcp({ url: api, token, allowChanges, stdin, stdout, note });
  return 0;
}
