/** `slo`: whether queues keep what they promise about lateness, over the last while that was promised, or in a month. */
import type { Command } from 'commander';
import { heldText } from '../../inspect/diary.ts';
import { type QueueSlo, type SloDay, sloOf, slos } from '../../inspect/slo.ts';
import { durationText } from '../../kernel/duration.ts';
import { counted } from '../../kernel/humanize.ts';
import { type Exit, type Register, type Session, withExamples, withRedis } from '../session.ts';
import { fields, line, type Paint, table, unreadLines } from '../terminal/output.ts';

interface Flags {
  readonly month?: string;
}

export const slo: Register = (parent, runner) => {
  const command = parent
    .command('slo [queue]')
    .description('say whether queues keep what they promise about lateness, and what is left of what may be late')
    .option('--month <month>', 'in a month of UTC, such as 2026-11; default: over the last while that was promised')
    .action((queue: string | undefined, flags: Flags, command: Command) =>
      runner.run(command, (session) => (queue === undefined ? runAll(session, flags) : runOne(session, queue, flags))),
    );
  withExamples(command, ['duestream slo', 'duestream slo mails', 'duestream slo mails --month 2026-11 --json']);
};

async function runOne(session: Session, queue: string, { month }: Flags): Promise<Exit> {
  const { namespace } = session.config;
  const found = await withRedis(session, (redis) => sloOf({ redis, namespace }, queue, month));
  session.out.answer(found, () => linesOf(session.out.paint, found));
  return 0;
}

async function runAll(session: Session, { month }: Flags): Promise<Exit> {
  const { namespace } = session.config;
  const found = await withRedis(session, (redis) => slos({ redis, namespace }, { month }));
  session.out.answer(found, () => {
    const { paint } = session.out;
    const rows = found.queues.map((one) => [
      one.queue,
      promiseText(one),
      wordOf(paint, one),
      shareText(one),
      leftText(one),
    ]);
    const none = 'no queue promised anything; "duestream queues set <queue> --lateness 1s" promises';
    return [...(rows.length === 0 ? [none] : table(paint, HEAD, rows)), ...unreadLines(found.unread)];
  });
  return found.unread.length === 0 ? 0 : 1;
}

const HEAD = ['queue', 'promise', 'kept', 'in time', 'may still be late'];

function linesOf(paint: Paint, of: QueueSlo): readonly string[] {
  const { late, expired, standing, burn, alert, sinceMs, fromMs, toMs, budget, worst } = of;
  const stands = burn === null ? '' : `, ${standing} stand now`;
  return [
    ...fields([
      ['queue', of.queue],
      ['promise', promiseText(of)],
      ['counted', `from ${atText(fromMs)} to ${atText(toMs)}; promised since ${atText(sinceMs)}`],
    ]),
    `${'kept'.padEnd(9)}  ${wordOf(paint, of)}: ${line`${shareText(of)}`}`,
    ...fields([
      ['late', `${counted(late, 'start')}, ${expired} expired${stands}`],
      ['budget', `${counted(Math.floor(budget), 'job')} may be late; ${restText(of)}`],
      ['pace', burn === null ? undefined : `in the last hour ${burn} times what the budget stands for`],
      ['alert', alert === null ? undefined : `${alert}: the budget is used too fast`],
    ]),
    ...(worst.length === 0 ? [] : ['', ...table(paint, WORST_HEAD, worst.map(worstRow))]),
  ];
}

const WORST_HEAD = ['worst days', 'late', 'of the budget', 'held longest by'];
/** So many causes of a day are named. */
const CAUSES_SHOWN = 3;

function worstRow({ atMs, jobs, share, causes, held }: SloDay): readonly (string | number)[] {
  const told = causes.slice(0, CAUSES_SHOWN).map((one) => `${one.jobs} ${one.text}`);
  const date = new Date(atMs).toISOString().slice(0, 10);
  const also = held === null ? '' : `; ${heldText({ ...held, by: held.by, why: undefined })}`;
  return [date, jobs, `${Math.round(share * 100)} %`, `${told.join(', ') || 'no worker has told'}${also}`];
}

const promiseText = ({ of, withinMs, overMs }: QueueSlo): string =>
  `${Number((of * 100).toFixed(5))} % within ${durationText(withinMs)}, over ${durationText(overMs)}`;

const wordOf = (paint: Paint, { kept }: QueueSlo): string => (kept ? paint.green('yes') : paint.red('no'));

function shareText({ share, jobs }: QueueSlo): string {
  if (share === null) return 'no job yet';
  // What is not whole is never said to be.
  const percent = share < 1 ? Math.min(99.999, Math.floor(share * 100_000) / 1000) : 100;
  return `${percent} % of ${counted(jobs, 'job')}`;
}

/** Below 0 the promise is broken. */
const leftText = ({ left }: QueueSlo): string => String(Math.floor(left));

const restText = (of: QueueSlo): string =>
  of.left < 0 ? `${Math.ceil(-of.left)} more than that were` : `${leftText(of)} still may`;

const atText = (ms: number): string => `${new Date(ms).toISOString().slice(0, 16)}Z`;
