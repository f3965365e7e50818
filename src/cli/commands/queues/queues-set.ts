/**
 * `queues set <queue>`: what a queue keeps of jobs that are over, what views do not show of its data, whether its jobs go to
 * every subscriber, and how many there may be, for every process. They follow within half a minute; limits hold at once.
 */
import type { Command } from 'commander';
import { type Broadcast, parseBroadcast } from '../../../job/broadcast.ts';
import { type History, parseHistory } from '../../../job/history.ts';
import { parseRedact, type Redaction } from '../../../job/redaction.ts';
import { durationText } from '../../../kernel/duration.ts';
import { DuestreamError } from '../../../kernel/errors.ts';
import { quotaRanges } from '../../../kernel/ranges.ts';
import { type QueueSettings, setQueue } from '../../../redis/scripts/queues.ts';
import { type Exit, type Register, wholeNumber, withExamples } from '../../register.ts';
import { partitionsOfQueue, type Session, withRedis } from '../../session.ts';
import { line } from '../../terminal/text.ts';

interface Flags {
  readonly history?: string;
  readonly historyMax?: number;
  readonly historyResult?: boolean;
  readonly historyResultBytes?: number;
  readonly redact?: string;
  readonly broadcast?: string;
  readonly broadcastMax?: number;
  readonly broadcastBytes?: number;
  readonly broadcastAge?: string;
  readonly maxPending?: number | 'none';
  readonly maxBytes?: number | 'none';
}

export const queuesSet: Register = (parent, runner) => {
  const command = parent
    .command('set <queue>')
    .description('change a queue: its history, its redacted fields, its broadcast and its limits')
    .option('--history <duration>', 'keep them for this long, or off: keep no more')
    .option('--history-max <n>', 'keep at most this many, the latest', wholeNumber(1, 10_000_000))
    .option('--history-result', 'keep what handlers return')
    .option('--history-result-bytes <n>', 'results of more bytes of JSON are not kept', wholeNumber(1, 262_144))
    .option('--redact <paths>', 'show [redacted] in the place of these fields of data, with commas between; or none')
    .option('--broadcast <on|off>', 'on: every subscriber gets each job; off: each goes to one worker')
    .option('--broadcast-max <n>', 'keep at most this many for subscribers that are behind', wholeNumber(1, 1_000_000))
    .option('--broadcast-bytes <n>', 'keep at most this many bytes of them', wholeNumber(1024, 1_073_741_824))
    .option('--broadcast-age <duration>', 'keep none of them for longer')
    .option('--max-pending <n>', 'refuse new jobs while this many wait or run; or none', limit('maxPending'))
    .option('--max-bytes <n>', 'refuse new jobs while records take this many bytes; or none', limit('maxBytes'))
    .action((queue: string, flags: Flags, command: Command) =>
      runner.run(command, (session) => run(session, queue, flags)),
    );
  withExamples(command, [
    'duestream queues set emails --history 7d --history-max 100000 --history-result',
    'duestream queues set emails --history off',
    'duestream queues set emails --redact email,card.number',
    'duestream queues set emails --max-pending 1000000 --max-bytes 2000000000',
    'duestream queues set prices --broadcast on --broadcast-max 5000 --broadcast-age 10m',
  ]);
};

async function run(session: Session, queue: string, flags: Flags): Promise<Exit> {
  const settings = settingsOf(flags);
  const { history, redact, broadcast } = settings;
  if (Object.keys(settings).length === 0) {
    throw new DuestreamError(
      'usage',
      'say what to set: --history 7d, --history off, --redact email, --broadcast on, --broadcast off, --max-pending 1000 or --max-bytes 1000000',
    );
  }
  await withRedis(session, async (redis) => {
    const { namespace } = session.config;
    await partitionsOfQueue(session, redis, queue);
    await setQueue(redis, { namespace, queue, ...settings });
  });
  session.out.answer({ queue, ...settings }, () => [
    ...(history ? [sentence(queue, history)] : []),
    ...(redact ? [redactSentence(queue, redact)] : []),
    ...(broadcast ? [broadcastSentence(queue, broadcast)] : []),
    ...limitSentences(queue, settings),
    ...(history || redact || broadcast ? ['all processes follow within half a minute'] : []),
  ]);
  return 0;
}

/** @throws DuestreamError `usage` or `bad-input` */
function settingsOf(flags: Flags): QueueSettings {
  const { maxPending, maxBytes } = flags;
  const [history, redact, broadcast] = [historyOf(flags), redactOf(flags.redact), broadcastOf(flags)];
  return {
    ...(history && { history }),
    ...(redact && { redact }),
    ...(broadcast && { broadcast }),
    ...(maxPending !== undefined && { maxPending: maxPending === 'none' ? 0 : maxPending }),
    ...(maxBytes !== undefined && { maxBytes: maxBytes === 'none' ? 0 : maxBytes }),
  };
}

/** For a flag: a number, or none. */
function limit(name: keyof typeof quotaRanges): (given: string) => number | 'none' {
  const { min, max } = quotaRanges[name];
  const read = wholeNumber(min, max);
  return (given) => (given === 'none' ? given : read(given));
}

function limitSentences(queue: string, { maxPending, maxBytes }: QueueSettings): readonly string[] {
  const sentence = (most: number | undefined, what: string) => {
    if (most === undefined) return [];
    return [most === 0 ? line`${queue} has no limit of ${what}` : line`${queue} takes new jobs up to ${most} ${what}`];
  };
  return [
    ...sentence(maxPending, 'jobs that wait or run'),
    ...sentence(maxBytes, 'bytes of their records'),
    ...(maxPending === undefined && maxBytes === undefined ? [] : ['limits hold from now on']),
  ];
}

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
function historyOf({
  history,
  historyMax: max,
  historyResult: result,
  historyResultBytes,
}: Flags): History | undefined {
  const more = (max ?? result ?? historyResultBytes) !== undefined;
  const off = history === 'off';
  if (more && (history === undefined || off)) {
    throw new DuestreamError('usage', 'say for how long with --history 7d, or --history off and nothing else');
  }
  if (history === undefined) return undefined;
  return parseHistory(off ? false : { keep: history, max, result, resultBytesMax: historyResultBytes });
}

/** @throws DuestreamError `usage` or `bad-input` */
function broadcastOf({ broadcast, broadcastMax: max, broadcastBytes: bytes, broadcastAge: age }: Flags) {
  const more = (max ?? bytes ?? age) !== undefined;
  if (broadcast === undefined && !more) return undefined;
  if (broadcast === 'on') return parseBroadcast({ max, bytes, age });
  if (broadcast === 'off' && !more) return parseBroadcast(false);
  throw new DuestreamError('usage', 'say --broadcast on with its bounds, or --broadcast off and nothing else');
}

function broadcastSentence(queue: string, { isOn, max, bytes, ageMs }: Broadcast): string {
  if (!isOn) return line`each job of ${queue} goes to one worker`;
  return line`every subscriber of ${queue} gets each job; kept for those behind: ${max}, of ${bytes} bytes, for ${durationText(ageMs)}`;
}

function sentence(queue: string, { isOn, keepMs, max, keepsResult }: History): string {
  if (!isOn) return line`${queue} keeps no more jobs that are over; what is kept goes in its time`;
  const what = keepsResult ? 'with what their handlers returned' : 'without results';
  return line`${queue} keeps jobs for ${durationText(keepMs)} after their end, at most ${max}, ${what}`;
}
