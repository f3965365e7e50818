/** `queues late`: why a queue was late within some time. */
import type { Command } from 'commander';
import type { QueueDiaryEntry } from '../../../inspect/diary.ts';
import { type QueueLate, queueLate } from '../../../inspect/late.ts';
import { valueText } from '../../../job/queue-settings.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { percent, span } from '../../../kernel/humanize.ts';
import { DEFAULT_DST, instantsOf, momentOf, parseZone, type Zone } from '../../../time/zone.ts';
import { type Exit, type Register, type Session, withExamples, withRedis } from '../../session.ts';
import { instantOf, iso } from '../../terminal/instants.ts';
import { line, type Paint, table } from '../../terminal/output.ts';

interface Flags {
  readonly from?: string;
  readonly to: string;
  readonly zone: string;
}

export const queuesLate: Register = (parent, runner) => {
  const command = parent
    .command('late <queue>')
    .description('say why a queue was late: a verdict, causes, groups, and what happened meanwhile; of the last day')
    .option(
      '--from <instant>',
      'the beginning: 02:00 (the last one), a local time, ISO 8601, -2h (default: an hour before --to)',
    )
    .option('--to <instant>', 'the end, in the same forms', 'now')
    .option('--zone <name>', 'the zone of local times: an IANA name such as Europe/Berlin', 'UTC')
    .action((queue: string, flags: Flags, command: Command) =>
      runner.run(command, (session) => run(session, queue, flags)),
    );
  withExamples(command, [
    'duestream queues late mails',
    'duestream queues late mails --from 02:00 --to 04:00 --zone Europe/Berlin',
    'duestream queues late mails --from -12h --json',
  ]);
};

async function run(session: Session, queue: string, { from, to, zone: name }: Flags): Promise<Exit> {
  const { namespace } = session.config;
  const zone = parseZone(name);
  const nowMs = systemClock.wallMs();
  const toMs = timeOf(to, '--to', { zone, nowMs });
  const fromMs =
    from === undefined ? toMs - HOUR_MS : timeOf(from, '--from', { zone, nowMs: CLOCK.test(from) ? toMs : nowMs });
  const found = await withRedis(session, (redis) => queueLate({ redis, namespace }, queue, { fromMs, toMs }));
  session.out.answer(found, () => lines(session.out.paint, found, zone));
  return 0;
}

const CLOCK = /^([01]\d|2[0-3]):([0-5]\d)$/;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** `02:00` is the last one before that moment; what is relative counts from it. */
function timeOf(text: string, flag: string, { zone, nowMs }: { readonly zone: Zone; readonly nowMs: number }): number {
  const [, hours, minutes] = CLOCK.exec(text) ?? [];
  if (hours === undefined) {
    return momentOf(instantOf(text, flag, nowMs), { what: flag, zone, dst: DEFAULT_DST }) ?? nowMs;
  }
  const today = Math.floor((nowMs + zone.offsetMs(nowMs)) / DAY_MS) * DAY_MS;
  const wallMs = today + (Number(hours) * 60 + Number(minutes)) * 60_000;
  const all = [wallMs - DAY_MS, wallMs].flatMap((ms) => instantsOf(zone, ms, DEFAULT_DST));
  return all.findLast((ms) => ms <= nowMs) ?? nowMs;
}

function lines(paint: Paint, found: QueueLate, zone: Zone): readonly string[] {
  const { queue, fromMs, toMs, verdict, worst, known, causes, groups } = found;
  const at = (ms: number) => localText(ms, zone);
  return [
    line`${queue} from ${at(fromMs)} to ${at(toMs)} (${zone.name})`,
    line`${verdict}`,
    ...(worst === null
      ? []
      : [line`worst minute: ${at(worst.atMs)}, 99 % of ${worst.starts} starts within ${span(worst.p99Ms)}`]),
    ...(known < 1 ? [line`leaders have told ${percent(known)} of this time`] : []),
    ...part(
      paint,
      ['waited', 'share', 'because'],
      causes.map(({ ms, share, text }) => [span(ms), percent(share), text]),
    ),
    ...part(
      paint,
      ['waited', 'group'],
      groups.map(({ ms, group }) => [span(ms), group]),
    ),
    ...part(
      paint,
      ['when', 'what', 'who', 'why'],
      found.diary.entries.map((one) => [at(one.atMs), whatText(one, zone), one.by, one.why]),
    ),
  ];
}

const part = (paint: Paint, head: readonly string[], rows: Parameters<typeof table>[2]): readonly string[] =>
  rows.length === 0 ? [] : ['', ...table(paint, head, rows)];

/** To the second, without an offset. */
const localText = (ms: number, zone: Zone): string => iso(ms + zone.offsetMs(ms)).slice(0, 19);

function whatText({ what, group, untilMs, fromMs, before, after }: QueueDiaryEntry, zone: Zone): string {
  const of = group === undefined ? '' : ` group ${group}`;
  const until = untilMs === undefined ? '' : ` until ${localText(untilMs, zone)}`;
  const since = fromMs === undefined ? '' : `, since ${localText(fromMs, zone)}`;
  const set = Object.entries({ ...before, ...after }).map(
    ([word]) => ` ${word} ${said(before, word)} → ${said(after, word)}`,
  );
  return `${WORDS[what]}${of}${until}${since}${set.join(',')}`;
}

const said = (of: object | undefined, word: string): string => {
  const value: unknown = Object(of)[word];
  return value === undefined ? 'nothing' : valueText(word, value);
};

const WORDS: Readonly<Record<QueueDiaryEntry['what'], string>> = {
  paused: 'paused',
  resumed: 'resumed',
  closed: 'closed',
  opened: 'opened',
  set: 'set',
  resigned: 'its leader resigned',
  elected: 'a leader was elected',
  unserved: 'no worker lives',
  served: 'a worker is there again',
};
