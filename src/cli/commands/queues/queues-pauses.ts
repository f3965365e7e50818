/** `queues pause` and `queues resume`: one queue, or all that there are. */

import type { Command } from 'commander';
import { pauseQueue, resumeQueue } from '../../../inspect/queue-pauses.ts';
import { queueNames } from '../../../inspect/refs.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { DuestreamError } from '../../../kernel/errors.ts';
import { counted } from '../../../kernel/humanize.ts';
import type { Pause } from '../../../redis/scripts/upkeep.ts';
import { type Exit, type Register, withExamples } from '../../register.ts';
import { type Session, withRedis } from '../../session.ts';
import { line } from '../../terminal/text.ts';
import { moment } from '../../terminal/when.ts';

export const queuesPause: Register = (parent, runner) => {
  const command = parent
    .command('pause [queue]')
    .description('pause a queue: no job of it starts until you resume it; running jobs go on')
    .option('--all', 'every queue of the namespace')
    .option('--reason <text>', 'why, for the next person who looks')
    .action((queue: string | undefined, { all, reason = '' }: PauseFlags, command: Command) =>
      runner.run(command, (session) => each(session, { queue, all }, (name) => runPause(session, name, reason))),
    );
  withExamples(command, [
    'duestream queues pause emails --reason "the mail server moves"',
    'duestream queues pause --all --reason "restored from 03:00"',
  ]);
};

export const queuesResume: Register = (parent, runner) => {
  const command = parent
    .command('resume [queue]')
    .description('resume a paused queue at once')
    .option('--all', 'every queue of the namespace')
    .action((queue: string | undefined, { all }: PauseFlags, command: Command) =>
      runner.run(command, (session) => each(session, { queue, all }, (name) => runResume(session, name))),
    );
  withExamples(command, ['duestream queues resume emails', 'duestream queues resume --all']);
};

interface PauseFlags {
  readonly all?: boolean | undefined;
  readonly reason?: string;
}

/** What one queue answers: as JSON, and as lines. */
interface Told {
  readonly value: object;
  readonly lines: () => readonly string[];
}

/** One answer for the queue that was named, or one for all of them. @throws DuestreamError `usage` */
async function each(
  session: Session,
  { queue, all }: { readonly queue: string | undefined; readonly all?: boolean | undefined },
  act: (queue: string) => Promise<Told>,
): Promise<Exit> {
  if ((queue === undefined) === (all !== true)) throw new DuestreamError('usage', 'name a queue, or say --all');
  if (queue !== undefined) {
    const { value, lines } = await act(queue);
    session.out.answer(value, lines);
    return 0;
  }
  const { namespace } = session.config;
  const told: Told[] = [];
  for (const name of await withRedis(session, (redis) => queueNames({ redis, namespace }))) told.push(await act(name));
  session.out.answer({ namespace, queues: told.map(({ value }) => value) }, () =>
    told.length === 0 ? [line`no queue was used in namespace ${namespace} yet`] : told.flatMap(({ lines }) => lines()),
  );
  return 0;
}

/** Since when and why. */
export function pauseText({ sinceMs, reason }: Pause, nowMs: number): string {
  const since = sinceMs === undefined ? 'since an unknown moment' : `since ${moment(sinceMs, nowMs)}`;
  return reason === '' ? since : `${since}: ${reason}`;
}

async function runPause(session: Session, queue: string, reason: string): Promise<Told> {
  const { namespace } = session.config;
  const { changed, held, running } = await withRedis(session, (redis) =>
    pauseQueue({ redis, namespace }, queue, reason),
  );
  session.changes.push({ verb: 'queues.pause', queue, target: queue, count: changed ? 1 : 0 });
  const lines = () => {
    const since = held === undefined ? '' : pauseText(held, systemClock.wallMs());
    return [
      changed ? line`${queue} is paused` : line`${queue} was paused already, ${since}`,
      running === 0 ? 'no job runs' : line`running jobs go on to their end: ${counted(running, 'job')}`,
      line`to go on: duestream queues resume ${queue}`,
    ];
  };
  return { value: { queue, paused: true, changed, pause: held, running }, lines };
}

async function runResume(session: Session, queue: string): Promise<Told> {
  const { namespace } = session.config;
  const { changed, held } = await withRedis(session, (redis) => resumeQueue({ redis, namespace }, queue));
  session.changes.push({ verb: 'queues.resume', queue, target: queue, count: changed ? 1 : 0 });
  const lines = () => {
    if (held === undefined) return [line`${queue} was not paused`];
    return [line`${queue} goes on; it was paused ${pauseText(held, systemClock.wallMs())}`];
  };
  return { value: { queue, paused: false, changed, pause: held }, lines };
}
