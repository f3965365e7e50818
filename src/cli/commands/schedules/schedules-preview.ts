/**
 * `schedules preview [name]`: what a schedule will do, with every decision of clock changes and calendars. A rule in
 * flags is previewed without any Redis; with a name beside it, `H` in its cron is that of this name.
 */
import type { Command } from 'commander';
import { previewRows, UNNAMED } from '../../../client/schedules/schedule-view.ts';
import type { LeftOut, PreviewOptions, PreviewRow } from '../../../client/schedules/schedules.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { DuestreamError } from '../../../kernel/errors.ts';
import { counted } from '../../../kernel/humanize.ts';
import { inTurns } from '../../../kernel/steps.ts';
import { parseSchedule } from '../../../schedule/input.ts';
import type { Preview } from '../../../schedule/preview.ts';
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
    next,
    until: until === undefined ? undefined : instantOf(until, '--until', nowMs),
    from: from === undefined ? undefined : instantOf(from, '--from', nowMs),
  };
  const { rows, leftOut } = saysDefinition(definition)
    ? await previewUnstored(session, name ?? UNNAMED, { definition, range, nowMs })
    : await previewStored(session, name, range);
  const assumedName = name === undefined ? UNNAMED : undefined;
  session.out.answer({ name, assumedName, rows, leftOut }, () => [
    ...shown(session, rows),
    ...(leftOut === undefined ? [] : leftOutLines(leftOut)),
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
): Promise<Preview> {
  const input = await definitionOf(invocation, name, definition);
  // It may be asked about the past; only what counts from its put counts from now.
  const since = { sinceMs: 0, anchorMs: nowMs };
  const schedule = parseSchedule(name, { ...input, queue: input.queue || 'preview' }, since);
  return inTurns(previewRows(schedule, range, { nowMs }));
}

async function previewStored(session: Session, name: string | undefined, range: PreviewOptions): Promise<Preview> {
  if (name === undefined) {
    throw new DuestreamError('usage', 'a preview needs the name of a schedule, or a rule: --cron, --every or --file');
  }
  let leftOut: LeftOut | undefined;
  const onLeftOut = (told: LeftOut) => {
    leftOut = told;
  };
  const rows = await withSchedules(session, (schedules) => schedules.preview(name, { ...range, onLeftOut }));
  return { rows, leftOut };
}

function shown({ out }: Session, rows: readonly PreviewRow[]): readonly string[] {
  if (rows.length === 0) return ['no instant in this range'];
  const first = rows.find(({ id }) => id !== undefined);
  return [
    ...table(
      out.paint,
      ['local time', 'UTC', 'offset', 'clock change', 'note'],
      rows.map((row) => [
        row.local.replace('T', ' '),
        iso(row.atMs).replace('.000Z', 'Z'),
        row.offset,
        row.dst && row.named !== undefined ? `${row.dst}, from ${row.named.slice(11)}` : row.dst,
        noteOf(row),
      ]),
    ),
    ...(first?.id === undefined ? [] : [line`the first job will be ${first.id}`]),
  ];
}

function noteOf({ id, calendar, dropped, leftOut }: PreviewRow): string | undefined {
  const note = id === undefined ? `no job: ${dropped}` : calendar;
  return leftOut === undefined ? note : `${note}, and ${leftOut} more`;
}

function leftOutLines({ dropped, later, atLeast, upToMs }: LeftOut): readonly string[] {
  return [
    ...(dropped === 0
      ? []
      : [line`${counted(dropped, 'instant')} without a job ${dropped === 1 ? 'is' : 'are'} left out`]),
    ...(later === 0 && !atLeast
      ? []
      : [
          line`${atLeast ? 'at least ' : ''}${counted(later, 'later job')} left out; --from ${iso(upToMs)} goes on there`,
        ]),
  ];
}
