/** `admin audit`: who changed what, and how many, newest first. */
import type { Command } from 'commander';
import { type AuditEntry, type AuditFilter, auditEntries } from '../../access/audit.ts';
import { valueText } from '../../job/queue-settings.ts';
import { systemClock } from '../../kernel/clock.ts';
import { instantMs } from '../../kernel/duration.ts';
import { type Exit, type Register, type Session, wholeNumber, withExamples, withRedis } from '../session.ts';
import { instantOf, iso, moment } from '../terminal/instants.ts';
import { line, table } from '../terminal/output.ts';

type Flags = Pick<AuditFilter, 'queue' | 'target' | 'who' | 'verb'> & {
  readonly limit: number;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
};

export const auditLs: Register = (parent, runner) => {
  const command = parent
    .command('audit')
    .description(
      'list who changed what: by the HTTP API, the command line, and what programs set, paused, removed or erased; newest first',
    )
    .option('--limit <n>', 'show at most this many', wholeNumber(1, 10_000), 50)
    .option('--queue <queue>', 'only changes of this queue')
    .option('--target <name>', 'only changes of this job, schedule, group, tag or token')
    .option('--who <name>', 'only changes by this token or user')
    .option('--verb <name>', 'only this change, such as queues.pause, or all of a kind: queues')
    .option('--from <instant>', 'from this instant on: ISO 8601 with an offset, now, -2h')
    .option('--to <instant>', 'up to this instant')
    .action((flags: Flags, command: Command) => runner.run(command, (session) => run(session, flags)));
  withExamples(command, [
    'duestream admin audit',
    'duestream admin audit --queue mails --from -12h',
    'duestream admin audit --verb queues.set --limit 500 --json',
  ]);
};

async function run(session: Session, { from, to, ...flags }: Flags): Promise<Exit> {
  const { namespace } = session.config;
  const nowMs = systemClock.wallMs();
  const time = (text: string | undefined, flag: string) =>
    text === undefined ? undefined : instantMs(instantOf(text, flag, nowMs), flag);
  const asked = { ...flags, fromMs: time(from, '--from'), toMs: time(to, '--to') };
  const entries = await withRedis(session, (redis) => auditEntries({ redis, namespace }, asked));
  session.out.answer({ namespace, entries }, () => {
    if (entries.length === 0) return [line`no such change is in the audit of namespace ${namespace}`];
    const more = MORE.filter(([, has]) => entries.some((entry) => has(entry) !== undefined));
    const rows = entries.map((entry) => {
      const { atMs, who, way, verb, queue, target, count } = entry;
      return [moment(atMs, nowMs), who, way, verb, queue, target, count, ...more.map(([, of]) => of(entry))];
    });
    return table(session.out.paint, [...HEAD, ...more.map(([name]) => name)], rows);
  });
  return 0;
}

const HEAD = ['when', 'who', 'by', 'what', 'queue', 'which', 'changed'];

/** Columns that stand there where an entry has something for them. */
const MORE: readonly (readonly [name: string, of: (entry: AuditEntry) => string | undefined])[] = [
  ['from what', ({ before }) => saidText(before)],
  ['to what', ({ after }) => saidText(after)],
  ['why', ({ reason }) => reason],
];

/** Values by their names, in one line. */
export const saidText = (said: AuditEntry['before']): string | undefined =>
  said &&
  Object.entries(said)
    .map(([name, value]) => (name === 'dueMs' ? `due ${iso(Number(value))}` : `${name} ${valueText(name, value)}`))
    .join(', ');
