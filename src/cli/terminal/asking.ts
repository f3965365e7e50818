/** Commands of changes that take names and a few fields: the rows of `operations` say which, and a command has its sentences. */
import type { Command } from 'commander';
import { type Askable, type Asked, askFields } from '../../client/operations.ts';
import { queueNames } from '../../client/queues/refs.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { reasonOf } from '../../kernel/reason.ts';
import { checkQueue, type Exit, type Register, type Session, withClient, withExamples, withRedis } from '../session.ts';
import { line } from './output.ts';

interface Sentences<Body> {
  readonly description: string;
  readonly examples: readonly string[];
  /** Where it is not the one of the row. */
  readonly command?: string;
  /** Also of every queue. */
  readonly takesAll?: true;
  readonly say: (done: Body, asked: Asked) => readonly string[];
}

type Given = Asked & { readonly all?: boolean };

export const asking =
  <Body extends object>(row: Askable<Body>, said: Sentences<Body>): Register =>
  (parent, runner) => {
    const { names } = row.ask;
    const verb = said.command ?? row.name.split('.')[1];
    const words = names.map((name) => (said.takesAll ? `[${name}]` : `<${name}>`));
    const command = withAskFlags(parent.command([verb, ...words].join(' ')).description(said.description), row);
    if (said.takesAll) command.option('--all', 'every queue of the namespace');
    command.action((...given: unknown[]) => {
      const named = Object.fromEntries(names.map((name, at) => [name, given[at]]));
      const asked = { ...named, ...Object(given[names.length]) } as Given;
      return runner.run(command, (session) =>
        said.takesAll ? runAny(session, row, { asked, said }) : runOne(session, row, { asked, said }),
      );
    });
    withExamples(command, said.examples);
  };

/** The flags of a row. */
export function withAskFlags(command: Command, { ask }: Pick<Askable<unknown>, 'ask'>): Command {
  const { needs = [], takes = [] } = ask;
  for (const field of [...needs, ...takes]) {
    const { metavar, doc, example } = askFields[field];
    const help = `${doc.charAt(0).toLowerCase()}${doc.slice(1)}${field === 'for' ? `: ${example}` : ''}`;
    if (needs.includes(field)) command.requiredOption(`--${field} ${metavar}`, help);
    else command.option(`--${field} ${metavar}`, help);
  }
  return command;
}

interface Asking<Body> {
  readonly asked: Given;
  readonly said: Sentences<Body>;
}

async function runOne<Body extends object>(
  session: Session,
  { ask }: Askable<Body>,
  { asked, said }: Asking<Body>,
): Promise<Exit> {
  // What makes a queue of its own elsewhere makes none here.
  if (ask.names.length > 1) await checkQueue(session, asked.queue);
  const done = await withClient(session, (client) => ask.run(client, asked));
  session.out.answer(done, () => said.say(done, asked));
  return 0;
}

/**
 * One answer for the queue that was named, or one for all of them. Of all, one that is refused stops no other: the answer names it,
 * and the command ends with 1.
 *
 * @throws DuestreamError `usage`
 */
async function runAny<Body extends object>(
  session: Session,
  row: Askable<Body>,
  { asked: { queue, all, ...asked }, said }: Asking<Body>,
): Promise<Exit> {
  const isNamed = queue !== undefined;
  if (isNamed === (all === true)) throw new DuestreamError('usage', 'name a queue, or say --all');
  if (isNamed) return runOne(session, row, { asked: { queue, ...asked }, said });
  const { namespace } = session.config;
  const told: { readonly done: Body; readonly lines: readonly string[] }[] = [];
  const failed: { readonly queue: string; readonly error: unknown }[] = [];
  for (const name of await withRedis(session, (redis) => queueNames({ redis, namespace }))) {
    const its = { queue: name, ...asked };
    await withClient(session, (client) => row.ask.run(client, its)).then(
      (done) => told.push({ done, lines: said.say(done, its) }),
      (error: unknown) => failed.push({ queue: name, error }),
    );
  }
  const [first] = failed;
  if (first && told.length === 0) throw first.error;
  const refused = failed.map(({ queue: name, error }) => ({ queue: name, why: reasonOf(error) }));
  session.out.answer({ namespace, queues: told.map(({ done }) => done), failed: refused }, () =>
    told.length === 0
      ? [line`no queue was used in namespace ${namespace} yet`]
      : [...told.flatMap(({ lines }) => lines), ...refused.map(({ queue: name, why }) => line`queue ${name}: ${why}`)],
  );
  return first ? 1 : 0;
}
