/** `queues pause <queue>` and `queues resume <queue>`. */

import type { Command } from 'commander';
import { systemClock } from '../../../core/clock.ts';
import { counted } from '../../../core/plain-words.ts';
import { pauseQueue, resumeQueue } from '../../../operations/queue-pauses.ts';
import type { Pause } from '../../../redis/transitions/upkeep.ts';
import { type Exit, type Register, withExamples } from '../../register.ts';
import { type Session, withRedis } from '../../session.ts';
import { line } from '../../terminal/text.ts';
import { moment } from '../../terminal/when.ts';

export const queuesPause: Register = (parent, runner) => {
  const command = parent
    .command('pause <queue>')
    .description('pause a queue: no job of it starts until you resume it; running jobs go on')
    .option('--reason <text>', 'why, for the next person who looks')
    .action((queue: string, { reason = '' }: { readonly reason?: string }, command: Command) =>
      runner.run(command, (session) => runPause(session, queue, reason)),
    );
  withExamples(command, ['duestream queues pause emails --reason "the mail server moves"']);
};

export const queuesResume: Register = (parent, runner) => {
  const command = parent
    .command('resume <queue>')
    .description('resume a paused queue at once')
    .action((queue: string, _flags: unknown, command: Command) =>
      runner.run(command, (session) => runResume(session, queue)),
    );
  withExamples(command, ['duestream queues resume emails']);
};

/** Since when and why. */
export function pauseText({ sinceMs, reason }: Pause, nowMs: number): string {
  const since = sinceMs === undefined ? 'since an unknown moment' : `since ${moment(sinceMs, nowMs)}`;
  return reason === '' ? since : `${since}: ${reason}`;
}

async function runPause(session: Session, queue: string, reason: string): Promise<Exit> {
  const { namespace } = session.config;
  const { changed, held, running } = await withRedis(session, (redis) =>
    pauseQueue({ redis, namespace }, queue, reason),
  );
  session.changes.push({ verb: 'queues.pause', queue, target: queue, count: changed ? 1 : 0 });
  session.out.answer({ queue, paused: true, changed, pause: held, running }, () => {
    const since = held === undefined ? '' : pauseText(held, systemClock.wallMs());
    return [
      changed ? line`${queue} is paused` : line`${queue} was paused already, ${since}`,
      running === 0 ? 'no job runs' : line`running jobs go on to their end: ${counted(running, 'job')}`,
      line`to go on: duestream queues resume ${queue}`,
    ];
  });
  return 0;
}

async function runResume(session: Session, queue: string): Promise<Exit> {
  const { namespace } = session.config;
  const { changed, held } = await withRedis(session, (redis) => resumeQueue({ redis, namespace }, queue));
  session.changes.push({ verb: 'queues.resume', queue, target: queue, count: changed ? 1 : 0 });
  session.out.answer({ queue, paused: false, changed, pause: held }, () => {
    if (held === undefined) return [line`${queue} was not paused`];
    return [line`${queue} goes on; it was paused ${pauseText(held, systemClock.wallMs())}`];
  });
  return 0;
}
