/** `tokens create`, `tokens ls` and `tokens revoke`: who may ask the HTTP API, and what. */
import { type Command, InvalidArgumentError } from 'commander';
import { createToken, listTokens, revokeToken, SCOPES, type Scope, type Token } from '../../access/tokens.ts';
import { systemClock } from '../../kernel/clock.ts';
import { durationMs } from '../../kernel/duration.ts';
import { apiUrl } from '../api-url.ts';
import { type Exit, type Register, type Session, withExamples, withRedis } from '../session.ts';
import { moment } from '../terminal/instants.ts';
import { fields, line, table } from '../terminal/output.ts';

interface Flags {
  readonly name: string;
  readonly scope: readonly Scope[];
  readonly queues?: readonly string[];
  readonly expires?: string;
}

export const tokensCreate: Register = (parent, runner) => {
  const command = parent
    .command('create')
    .description('create a token for the HTTP API; it is shown once and never again')
    .requiredOption('--name <name>', 'who it is for, such as ci; the audit shows it')
    .requiredOption(
      '--scope <scopes>',
      'what it may do, several with commas: read (what is there), data (also what is in it), write (changes), work (jobs, as a worker over HTTP), admin (everything, also purge and audit)',
      scopesIn,
    )
    .option('--queues <names>', 'only for these queues, with commas between them', (text: string) => text.split(','))
    .option('--expires <duration>', 'it opens nothing after this long, such as 90d')
    .action((flags: Flags, command: Command) => runner.run(command, (session) => runCreate(session, flags)));
  withExamples(command, [
    'duestream tokens create --name ci --scope write --queues emails,sms --expires 90d',
    'duestream tokens create --name support --scope data,write',
  ]);
};

export const tokensLs: Register = (parent, runner) => {
  const command = parent
    .command('ls')
    .description('list tokens: their scopes, queues and expiry; never the tokens themselves')
    .action((_flags: unknown, command: Command) => runner.run(command, runLs));
  withExamples(command, ['duestream tokens ls', 'duestream tokens ls --json']);
};

export const tokensRevoke: Register = (parent, runner) => {
  const command = parent
    .command('revoke <name>')
    .description('revoke a token by its name or id; it opens nothing from the next request on')
    .action((name: string, _flags: unknown, command: Command) =>
      runner.run(command, (session) => runRevoke(session, name)),
    );
  withExamples(command, ['duestream tokens revoke ci']);
};

function scopesIn(text: string): readonly Scope[] {
  const scopes = text.split(',').map((word) => SCOPES.find((scope) => scope === word.trim()));
  if (scopes.includes(undefined)) throw new InvalidArgumentError(`Allowed: ${SCOPES.join(', ')}.`);
  return scopes.flatMap((scope) => scope ?? []);
}

async function runCreate(session: Session, { name, scope, queues, expires }: Flags): Promise<Exit> {
  const { namespace } = session.config;
  const nowMs = systemClock.wallMs();
  const expiresMs = expires === undefined ? undefined : nowMs + durationMs(expires, '--expires');
  const made = await withRedis(session, (redis) =>
    createToken({ redis, namespace }, { name, scopes: [...new Set(scope)], queues, expiresMs }, nowMs),
  );
  await session.changes.note({ verb: 'tokens.create', target: name, count: 1 });
  session.out.note('keep it now: it is not shown again');
  session.out.answer(made, () => [
    ...fields([
      ['token', made.token],
      ['name', made.name],
      ['scopes', made.scopes.join(', ')],
      ['queues', queuesText(made)],
      ['expires', expiryText(made, nowMs)],
    ]),
    '',
    line`curl -H 'Authorization: Bearer ${made.token}' ${apiUrl(session)}/v1/queues`,
  ]);
  return 0;
}

async function runLs(session: Session): Promise<Exit> {
  const { namespace } = session.config;
  const tokens = await withRedis(session, (redis) => listTokens({ redis, namespace }));
  session.out.answer({ namespace, tokens }, () => {
    if (tokens.length === 0) return ['there is no token; "duestream tokens create" makes one'];
    const nowMs = systemClock.wallMs();
    const rows = tokens.map((token) => [
      ...[token.name, token.id, token.scopes.join(', '), queuesText(token), moment(token.createdMs, nowMs)],
      expiryText(token, nowMs),
    ]);
    return table(session.out.paint, ['name', 'id', 'scopes', 'queues', 'created', 'expires'], rows);
  });
  return 0;
}

async function runRevoke(session: Session, name: string): Promise<Exit> {
  const { namespace } = session.config;
  const revoked = await withRedis(session, (redis) => revokeToken({ redis, namespace }, name));
  await session.changes.note({ verb: 'tokens.revoke', target: revoked.name, count: 1 });
  session.out.answer({ revoked }, () => [line`token ${revoked.name} is revoked: it opens nothing any more`]);
  return 0;
}

const queuesText = ({ queues }: Token): string => queues?.join(', ') ?? 'all';
const expiryText = ({ expiresMs }: Token, nowMs: number): string =>
  expiresMs === undefined ? 'never' : moment(expiresMs, nowMs);
