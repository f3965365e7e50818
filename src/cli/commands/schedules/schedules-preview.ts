/**
 * `schedules preview [name]`: what a schedule will do, with every decision of clock changes and calendars. A rule in
 * flags is previewed without any Redis; with a name beside it, `H` in its cron is that of this name.
 */
import type { Command } from 'commander';
import { previewRows, UNNAMED } from '../../../client/schedules/schedule-view.ts';
import type { PreviewOptions, PreviewRow } from '../../../client/schedules/schedules.ts';
import { systemClock } from '../../../core/clock.ts';
import { DuestreamError } from '../../../core/errors.ts';
import { parseSchedule } from '../../../core/recurring/schedule-input.ts';
import { type Exit, type Register, wholeNumber, withExamples } from '../../register.ts';
import { type Session, withSchedules } from '../../session.ts';
import { instantOf } from '../../terminal/instants.ts';
import { line, table } from '../../terminal/text.ts';
import { iso } from '../../terminal/when.ts';
import { type DefinitionFlags, definitionOf, saysDefinition, withRuleFlags } from './schedule-flags.ts';

interface RangeFlags {
  readonly next?: number;
  readonly until?: string;
  readonly from?: string;
}

export const schedulesPreview: Register = (parent, runner) => {
  const command = parent
    .command('preview [name]')
    .description('show the coming instants of a schedule or of a rule, and why each one makes a job or not')
    .option(
      '--next <n>',
      'show this many instants that make jobs (default: 10 without --until)',
      wholeNumber(1, 100_000),
    )
    .option(
      '--until <instant>',
      'the end of the preview: +30d, 2026-12-31, or ISO 8601; a date means the end of that day in the zone',
    )
    .option(
      '--from <instant>',
      'the beginning of the preview: -2h, 2026-03-01, or ISO 8601; a date means the beginning of that day (default: now)',
    )
    .option('--file <file>', 'the definition in YAML or JSON; - for stdin')
    .action((name: string | undefined, flags: DefinitionFlags & RangeFlags, command: Command) =>
      runner.run(command, (session) => run(session, name, flags)),
    );
  withRuleFlags(command);
  withExamples(command, [
    'duestream schedules preview nightly --next 20',
    'duestream schedules preview nightly --until +30d --json',
    `duestream schedules preview --cron '30 2 * * *' --zone America/New_York --from 2026-03-07 --next 3`,
  ]);
};

async function run(
  session: Session,
  name: string | undefined,
  { next, until, from, ...definition }: DefinitionFlags & RangeFlags,
): Promise<Exit> {
  const nowMs = systemClock.wallMs();
  const range = {
    ...{ next, until: until === undefined ? undefined : instantOf(until, '--until', nowMs) },
    from: from === undefined ? undefined : instantOf(from, '--from', nowMs),
  };
  const rows = saysDefinition(definition)
    ? await previewUnstored(session, name ?? UNNAMED, { definition, range, nowMs })
    : await previewStored(session, name, range);
  const assumedName = name === undefined ? UNNAMED : undefined;
  session.out.answer({ name, assumedName, rows }, () => [
    ...shown(session, rows),
    ...(assumedName === undefined
      ? []
      : [line`ids, H and jitter follow from the name; this preview uses the name ${UNNAMED}`]),
  ]);
  return 0;
}

async function previewUnstored(
  { invocation }: Session,
  name: string,
  { definition, range, nowMs }: { definition: DefinitionFlags; range: PreviewOptions; nowMs: number },
): Promise<readonly PreviewRow[]> {
  const input = await definitionOf(invocation, name, definition);
  // It may be asked about the past; only what counts from its put counts from now.
  const since = { sinceMs: 0, anchorMs: nowMs };
  const schedule = parseSchedule(name, { ...input, queue: input.queue || 'preview' }, since);
  return previewRows(schedule, range, { nowMs });
}

function previewStored(session: Session, name: string | undefined, range: PreviewOptions) {
  if (name === undefined) {
    throw new DuestreamError('usage', 'a preview needs the name of a schedule, or a rule: --cron, --every or --file');
  }
  return withSchedules(session, (schedules) => schedules.preview(name, range));
}

function shown({ out }: Session, rows: readonly PreviewRow[]): readonly string[] {
  if (rows.length === 0) return ['no instant in this range'];
  const first = rows.find(({ id }) => id !== undefined);
  return [
    ...table(
      out.paint,
      ['local time', 'UTC', 'offset', 'clock change', 'note'],
      rows.map(({ local, atMs, offset, named, dst, calendar, dropped, id }) => [
        local.replace('T', ' '),
        iso(atMs).replace('.000Z', 'Z'),
        offset,
        dst && named !== undefined ? `${dst}, from ${named.slice(11)}` : dst,
        id === undefined ? `no job: ${dropped}` : calendar,
      ]),
    ),
    ...(first?.id === undefined ? [] : [line`the first job will be ${first.id}`]),
  ];
}
