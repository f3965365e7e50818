/** `admin audit`: who changed what, and how many, newest first. */
import type { Command } from 'commander';
import { auditEntries } from '../../access/audit.ts';
import { systemClock } from '../../kernel/clock.ts';
import { type Exit, type Register, type Session, wholeNumber, withExamples, withRedis } from '../session.ts';
import { moment } from '../terminal/instants.ts';
import { line, table } from '../terminal/output.ts';

export const auditLs: Register = (parent, runner) => {
  const command = parent
    .command('audit')
    .description(
      'list who changed what: by the HTTP API, the command line, and what programs did to queues or erased; newest first',
    )
    .option('--limit <n>', 'show at most this many', wholeNumber(1, 10_000), 50)
    .action(({ limit }: { readonly limit: number }, command: Command) =>
      runner.run(command, (session) => run(session, limit)),
    );
  withExamples(command, ['duestream admin audit', 'duestream admin audit --limit 500 --json']);
};

async function run(session: Session, limit: number): Promise<Exit> {
  const { namespace } = session.config;
  const entries = await withRedis(session, (redis) => auditEntries({ redis, namespace }, { limit }));
  session.out.answer({ namespace, entries }, () => {
    if (entries.length === 0) return [line`nothing was changed in namespace ${namespace} yet`];
    const nowMs = systemClock.wallMs();
    const hasReasons = entries.some(({ reason }) => reason !== undefined);
    const rows = entries.map(({ atMs, who, way, verb, queue, target, count, reason }) => [
      ...[moment(atMs, nowMs), who, way, verb, queue, target, count],
      ...(hasReasons ? [reason] : []),
    ]);
    return table(session.out.paint, hasReasons ? [...HEAD, 'why'] : HEAD, rows);
  });
  return 0;
}

const HEAD = ['when', 'who', 'by', 'what', 'queue', 'which', 'changed'];
