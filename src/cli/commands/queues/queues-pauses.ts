/**
 * `queues pause <queue>` and `queues resume <queue>`: nothing is promoted and nothing is started until it resumes. What
 * runs goes on; what is scheduled meanwhile waits. All partitions are paused, one after the other.
 */
import type { Command } from 'commander';
import { systemClock } from '../../../core/clock.ts';
import { DuestreamError } from '../../../core/errors.ts';
import type { Redis } from '../../../redis/connection/connect.ts';
import { withRetry } from '../../../redis/connection/outage.ts';
import { stats } from '../../../redis/inspect.ts';
import type { PartitionRef } from '../../../redis/keys.ts';
import { type Pause, type PauseReply, pause, resume } from '../../../redis/transitions/upkeep.ts';
import { type Exit, type Register, withExamples } from '../../register.ts';
import { partitionsOfQueue, type Session, withRedis } from '../../session.ts';
import { counted, line } from '../../terminal/text.ts';
import { moment } from '../../terminal/when.ts';

const REASON_CHARS_MAX = 200;
const RETRY = { clock: systemClock, budgetMs: 10_000 };

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
  if (reason.length > REASON_CHARS_MAX) {
    throw new DuestreamError('usage', `the reason has ${reason.length} characters; allowed: ${REASON_CHARS_MAX}`);
  }
  const { changed, held, running } = await withRedis(session, async (redis) => {
    const refs = await partitionsOfQueue(session, redis, queue);
    const done = await each(refs, (ref) => withRetry('pause', () => pause(redis, ref, { reason }), RETRY));
    return { ...done, running: await runningIn(redis, refs) };
  });
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
  const { changed, held } = await withRedis(session, async (redis) => {
    const refs = await partitionsOfQueue(session, redis, queue);
    return each(refs, (ref) => withRetry('resume', () => resume(redis, ref), RETRY));
  });
  session.out.answer({ queue, paused: false, changed, pause: held }, () => {
    if (held === undefined) return [line`${queue} was not paused`];
    return [line`${queue} goes on; it was paused ${pauseText(held, systemClock.wallMs())}`];
  });
  return 0;
}

/** A pause that was cut short is completed by the next: partitions that are paused already stay as they are. */
async function each(
  refs: readonly PartitionRef[],
  act: (ref: PartitionRef) => Promise<PauseReply>,
): Promise<{ readonly changed: boolean; readonly held: Pause | undefined }> {
  const replies: PauseReply[] = [];
  for (const ref of refs) replies.push(await act(ref));
  return {
    changed: replies.some(({ kind }) => kind === 'ok'),
    held: replies.find(({ pause: found }) => found !== undefined)?.pause,
  };
}

async function runningIn(redis: Redis, refs: readonly PartitionRef[]): Promise<number> {
  const all = await Promise.all(refs.map((ref) => stats(redis, ref)));
  return all.reduce((total, { running }) => total + running, 0);
}
