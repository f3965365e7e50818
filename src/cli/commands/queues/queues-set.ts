/** `queues set <queue>`: what a queue keeps of jobs that are over, and what views do not show of its data. For every process; they follow within half a minute. */
import type { Command } from 'commander';
import { durationText } from '../../../core/duration.ts';
import { DuestreamError } from '../../../core/errors.ts';
import { type History, parseHistory } from '../../../core/history.ts';
import { parseRedact, type Redaction } from '../../../core/redaction.ts';
import { setHistory, setRedact } from '../../../redis/transitions/queues.ts';
import { type Exit, type Register, wholeNumber, withExamples } from '../../register.ts';
import { partitionsOfQueue, type Session, withRedis } from '../../session.ts';
import { line } from '../../terminal/text.ts';

interface Flags {
  readonly history?: string;
  readonly historyMax?: number;
  readonly historyResult?: boolean;
  readonly historyResultBytes?: number;
  readonly redact?: string;
}

export const queuesSet: Register = (parent, runner) => {
  const command = parent
    .command('set <queue>')
    .description('set what a queue keeps of jobs that are over, and which fields of its data nobody is shown')
    .option('--history <duration>', 'keep them for this long, or off: keep no more')
    .option('--history-max <n>', 'keep at most this many, the latest', wholeNumber(1, 10_000_000))
    .option('--history-result', 'keep what handlers return')
    .option('--history-result-bytes <n>', 'results of more bytes of JSON are not kept', wholeNumber(1, 262_144))
    .option('--redact <paths>', 'show [redacted] in the place of these fields of data, with commas between; or none')
    .action((queue: string, flags: Flags, command: Command) =>
      runner.run(command, (session) => run(session, queue, flags)),
    );
  withExamples(command, [
    'duestream queues set emails --history 7d --history-max 100000 --history-result',
    'duestream queues set emails --history off',
    'duestream queues set emails --redact email,card.number',
  ]);
};

async function run(session: Session, queue: string, flags: Flags): Promise<Exit> {
  const redact = redactOf(flags.redact);
  const history = redact === undefined || isHistoryGiven(flags) ? historyOf(flags) : undefined;
  await withRedis(session, async (redis) => {
    const { namespace } = session.config;
    await partitionsOfQueue(session, redis, queue);
    if (history) await setHistory(redis, { namespace, queue, history });
    if (redact) await setRedact(redis, { namespace, queue, redact });
  });
  session.out.answer({ queue, history, redact }, () => [
    ...(history ? [sentence(queue, history)] : []),
    ...(redact ? [redactSentence(queue, redact)] : []),
    'all processes follow within half a minute',
  ]);
  return 0;
}

const isHistoryGiven = ({ history, historyMax, historyResult, historyResultBytes }: Flags): boolean =>
  (history ?? historyMax ?? historyResult ?? historyResultBytes) !== undefined;

/** @throws DuestreamError `bad-input` */
function redactOf(given: string | undefined): Redaction | undefined {
  if (given === undefined) return undefined;
  return parseRedact(given === 'none' ? [] : given.split(',').map((path) => path.trim()));
}

const redactSentence = (queue: string, redact: Redaction): string =>
  redact.length === 0
    ? line`views show all data of ${queue}`
    : line`views show [redacted] in the place of these fields of ${queue}: ${redact.join(', ')}`;

/** @throws DuestreamError `usage` or `bad-input` */
function historyOf({ history, historyMax: max, historyResult: result, historyResultBytes }: Flags): History {
  const off = history === 'off';
  if (history === undefined || (off && (max ?? result ?? historyResultBytes) !== undefined)) {
    throw new DuestreamError(
      'usage',
      'say for how long with --history 7d, or --history off and nothing else; or which fields with --redact',
    );
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
