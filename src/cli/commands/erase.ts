/**
 * `tags erase <tag>`: what is stored of a person goes for ever: jobs, dead letters, history. In bounded steps; a run that
 * was cut short is simply repeated. The tag may name that person, so the audit says how many went, and not by which tag.
 */
import type { Command } from 'commander';
import type { Erased, ErasedQueue } from '../../client/erase/erasure.ts';
import { parseTag } from '../../job/labels.ts';
import { counted } from '../../kernel/humanize.ts';
import {
  checkQueue,
  type Exit,
  type Register,
  type Session,
  withClient,
  withExamples,
  withSchedules,
} from '../session.ts';
import { line } from '../terminal/output.ts';
import { checkConsent } from './dead.ts';

interface Flags {
  readonly queue?: string;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

const PROGRESS_EVERY = 5000;

export const erase: Register = (parent, runner) => {
  const command = parent
    .command('erase <tag>')
    .description(
      'remove what is stored of a person, by a tag such as user:42: jobs, dead letters and history of all queues',
    )
    .option('--queue <name>', 'only of this queue')
    .option('--dry-run', 'only count it')
    .option('--yes', 'really remove it; give either this or --dry-run')
    .action((tag: string, flags: Flags, command: Command) =>
      runner.run(command, (session) => run(session, tag, flags)),
    );
  withExamples(command, [
    'duestream tags erase user:42 --dry-run',
    'duestream tags erase user:42 --yes',
    'duestream tags erase user:42 --queue emails --yes --json',
  ]);
};

async function run(session: Session, given: string, flags: Flags): Promise<Exit> {
  checkConsent(flags, 'this removes jobs, dead letters and history for ever');
  const { queue } = flags;
  const tag = parseTag(given, 'tag');
  const dryRun = flags.dryRun === true;
  // Reading first: what is no queue is said before anything goes.
  if (queue !== undefined) await checkQueue(session, queue);
  const done = await eraseAll(session, { tag, dryRun, queue });
  // They make jobs with the tag again; whether they should is for somebody to decide.
  const page = await withSchedules(session, ({ list }) => list({ tag, ...(queue !== undefined && { queue }) }));
  const schedules = page.schedules.map(({ name }) => name);
  const unreadable = page.unreadable.map(({ name }) => name);
  session.out.answer({ ...done, schedules, unreadable }, () => [
    ...done.queues.flatMap(sentence),
    ...rest(done, schedules),
    ...unreadable.map((name) => line`schedule ${name} cannot be read: it may have this tag, and fires nothing`),
  ]);
  return done.left + done.failed.length === 0 ? 0 : 1;
}

async function eraseAll(
  session: Session,
  { tag, dryRun, queue }: { readonly tag: string; readonly dryRun: boolean; readonly queue: string | undefined },
): Promise<Erased> {
  const queues = queue === undefined ? {} : { queues: [queue] };
  let told = 0;
  const onProgress = (progress: ErasedQueue) => {
    const step = Math.floor(progress.scanned / PROGRESS_EVERY);
    if (step > told)
      session.out.note(line`${progress.queue}: ${progress.scanned} looked at, ${goneOf(progress)} found`);
    told = step;
  };
  return withClient(session, (client) => client.erase({ tag }, { ...queues, dryRun, onProgress }));
}

const goneOf = ({ jobs, running, deadLetters, history, logs }: ErasedQueue): number =>
  jobs + running + deadLetters + history + logs;

function sentence(one: ErasedQueue): readonly string[] {
  if (goneOf(one) + one.left === 0) return [];
  const { queue, dryRun, jobs, running, deadLetters, history, logs, left } = one;
  const what = [
    counted(jobs, 'job'),
    counted(deadLetters, 'dead letter'),
    `${counted(history, 'record')} of the history`,
    ...(logs > 0 ? [`the log lines of ${counted(logs, 'job')}`] : []),
  ];
  return [
    line`${queue}: ${what.join(', ')} ${dryRun ? 'would be removed' : 'removed'}`,
    ...(running > 0 ? [line`${queue}: ${counted(running, 'job')} running, asked to stop`] : []),
    ...(left > running ? [line`${queue}: ${counted(left, 'job')} there still`] : []),
  ];
}

function rest({ dryRun, queues, left, failed }: Erased, schedules: readonly string[]): readonly string[] {
  const isNothing = queues.every((one) => goneOf(one) + one.left === 0);
  return [
    ...(isNothing ? [failed.length === 0 ? 'nothing has this tag' : 'nothing else has this tag'] : []),
    ...failed.map(
      ({ queue, why }) => line`queue ${queue} was not looked through to its end, so repeat the command: ${why}`,
    ),
    ...(left > 0 ? ['some jobs run or were scheduled meanwhile: repeat the command when they have ended'] : []),
    ...schedules.map(
      (name) => line`schedule ${name} has this tag and stays: "duestream schedules rm ${name}" removes it`,
    ),
    ...(dryRun || isNothing ? [] : [KEPT]),
  ];
}

const KEPT =
  'Redis may keep the bytes in memory and in its files until it writes them anew: see docs/how-to/privacy.md';
