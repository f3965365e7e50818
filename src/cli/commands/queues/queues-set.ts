/** `queues set <queue>`: what a queue keeps of jobs that are over, for every process. They follow within half a minute. */
import type { Command } from 'commander';
import { durationText } from '../../../core/duration.ts';
import { DuestreamError } from '../../../core/errors.ts';
import { type History, parseHistory } from '../../../core/history.ts';
import { setQueue } from '../../../redis/transitions/queues.ts';
import { type Exit, type Register, wholeNumber, withExamples } from '../../register.ts';
import { partitionsOfQueue, type Session, withRedis } from '../../session.ts';
import { line } from '../../terminal/text.ts';

interface Flags {
  readonly history?: string;
  readonly historyMax?: number;
  readonly historyResult?: boolean;
  readonly historyResultBytes?: number;
}

export const queuesSet: Register = (parent, runner) => {
  const command = parent
    .command('set <queue>')
    .description('set what a queue keeps of jobs that are over')
    .option('--history <duration>', 'keep them for this long, or off: keep no more')
    .option('--history-max <n>', 'keep at most this many, the latest', wholeNumber(1, 10_000_000))
    .option('--history-result', 'keep what handlers return')
    .option('--history-result-bytes <n>', 'results of more bytes of JSON are not kept', wholeNumber(1, 262_144))
    .action((queue: string, flags: Flags, command: Command) =>
      runner.run(command, (session) => run(session, queue, flags)),
    );
  withExamples(command, [
    'duestream queues set emails --history 7d --history-max 100000 --history-result',
    'duestream queues set emails --history off',
  ]);
};

async function run(session: Session, queue: string, flags: Flags): Promise<Exit> {
  const history = historyOf(flags);
  await withRedis(session, async (redis) => {
    const { namespace } = session.config;
    await partitionsOfQueue(session, redis, queue);
    await setQueue(redis, { namespace, queue, history });
  });
  session.out.answer({ queue, history }, () => [sentence(queue, history), 'all processes follow within half a minute']);
  return 0;
}

/** @throws DuestreamError `usage` or `bad-input` */
function historyOf({ history, historyMax: max, historyResult: result, historyResultBytes }: Flags): History {
  const off = history === 'off';
  if (history === undefined || (off && (max ?? result ?? historyResultBytes) !== undefined)) {
    throw new DuestreamError('usage', 'say for how long with --history 7d, or --history off and nothing else');
  }
  const parsed = parseHistory(off ? false : { keep: history, max, result, resultBytesMax: historyResultBytes });
  if (!parsed) throw new Error('a history that was given is known');
  return parsed;
}

function sentence(queue: string, { isOn, keepMs, max, keepsResult }: History): string {
  if (!isOn) return line`${queue} keeps no more jobs that are over; what is kept goes in its time`;
  const what = keepsResult ? 'with what their handlers returned' : 'without results';
  return line`${queue} keeps jobs for ${durationText(keepMs)} after their end, at most ${max}, ${what}`;
}
