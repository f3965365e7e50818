/**
 * `queues set <queue>`: what a queue keeps of jobs that are over, what views do not show of its data, whether its jobs go to
 * every subscriber, how many there may be, how much runs at once and how long due jobs linger, for every process. They follow
 * within half a minute; limits hold at once.
 */
import type { Command } from 'commander';
import {
  changeSettings,
  checkReason,
  parseSettings,
  type QueueSettingsView,
  SETTING_WORDS,
  saidText,
  unsetSettings,
} from '../../../inspect/queue-settings.ts';
import type { Broadcast } from '../../../job/broadcast.ts';
import { rateText } from '../../../job/gate.ts';
import type { History } from '../../../job/history.ts';
import type { Redaction } from '../../../job/redaction.ts';
import { gateRanges, hintOf, quotaRanges, type Range } from '../../../kernel/checks.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { durationText } from '../../../kernel/duration.ts';
import { DuestreamError } from '../../../kernel/errors.ts';
import { counted } from '../../../kernel/humanize.ts';
import { userHere } from '../../../redis/audit.ts';
import type { QueueSettings } from '../../../redis/scripts/queues.ts';
import { type Exit, type Register, type Session, wholeNumber, withExamples, withRedis } from '../../session.ts';
import { line } from '../../terminal/output.ts';

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
  readonly linger?: string;
  readonly rate?: string;
  readonly burst?: number;
  readonly concurrency?: number | 'none';
  readonly perGroup?: number | 'none';
  readonly groupRate?: string;
  readonly groupBurst?: number;
  readonly perGroupMaxPending?: number | 'none';
  readonly fair?: true;
  readonly reason?: string;
}

export const queuesSet: Register = (parent, runner) => {
  const command = parent
    .command('set <queue>')
    .description('change a queue: its history, its redacted fields, its broadcast, its limits and how punctual it is')
    .option('--history <duration>', 'keep them for this long, or off: keep no more')
    .option('--history-max <n>', 'keep at most this many, the latest', wholeNumber(1, 10_000_000))
    .option('--history-result', 'keep what handlers return')
    .option('--history-result-bytes <n>', 'results of more bytes of JSON are not kept', wholeNumber(1, 262_144))
    .option('--redact <paths>', 'show [redacted] in the place of these fields of data, with commas between; or none')
    .option('--broadcast <on|off>', 'on: every subscriber gets each job; off: each goes to one worker')
    .option('--broadcast-max <n>', 'keep at most this many for subscribers that are behind', wholeNumber(1, 1_000_000))
    .option('--broadcast-bytes <n>', 'keep at most this many bytes of them', wholeNumber(1024, 1_073_741_824))
    .option('--broadcast-age <duration>', 'keep none of them for longer')
    .option('--max-pending <n>', 'refuse new jobs while this many wait or run; or none', limit(quotaRanges.maxPending))
    .option(
      '--max-bytes <n>',
      'refuse new jobs while records take this many bytes; or none',
      limit(quotaRanges.maxBytes),
    )
    .option('--linger <duration>', 'let due jobs wait for company, up to 1s; 0: each is on time')
    .option('--rate <rate>', 'start at most this many jobs in a time: 10/s, 600/m, 100/h, 7/90s; or none')
    .option('--burst <n>', 'with --rate: how many may start at once after a while', wholeNumber(1, 1_000_000))
    .option('--concurrency <n>', 'run at most this many jobs at a time; or none', limit(gateRanges.concurrency))
    .option('--per-group <n>', 'run at most this many of each group at a time; or none', limit(gateRanges.perGroup))
    .option('--group-rate <rate>', 'start at most this many jobs of each group in a time: 1/s, 60/m; or none')
    .option(
      '--group-burst <n>',
      'with --group-rate: how many may start at once after a while',
      wholeNumber(1, 1_000_000),
    )
    .option(
      '--per-group-max-pending <n>',
      'refuse new jobs of a group while this many of it wait or run; or none',
      limit(gateRanges.groupPending),
    )
    .option('--fair', 'let groups and priorities start in turns, also without a limit')
    .option('--reason <text>', 'why, for the audit')
    .action((queue: string, flags: Flags, command: Command) =>
      runner.run(command, (session) => run(session, queue, flags)),
    );
  withExamples(command, [
    'duestream queues set emails --history 7d --history-max 100000 --history-result',
    'duestream queues set emails --history off',
    'duestream queues set emails --redact email,card.number',
    'duestream queues set emails --max-pending 1000000 --max-bytes 2000000000',
    'duestream queues set events --linger 20ms',
    'duestream queues set mail --rate 10/s --concurrency 5',
    'duestream queues set imports --per-group 1 --reason "two imports of one account collided"',
    'duestream queues set calls --per-group 2 --group-rate 60/m',
    'duestream queues set imports --per-group-max-pending 1000',
    'duestream queues set prices --broadcast on --broadcast-max 5000 --broadcast-age 10m',
  ]);
};

async function run(session: Session, queue: string, flags: Flags): Promise<Exit> {
  const settings = settingsOf(flags);
  const { history, redact, broadcast, lingerMs } = settings;
  if (Object.keys(settings).length === 0) {
    throw new DuestreamError(
      'usage',
      'say what to set: --history 7d, --history off, --redact email, --broadcast on, --broadcast off, --max-pending 1000, --max-bytes 1000000, --linger 20ms, --rate 10/s, --concurrency 5, --per-group 1 or --fair',
    );
  }
  const { reason = '' } = flags;
  checkReason(reason);
  const { namespace } = session.config;
  const by = { by: userHere(), why: reason, atMs: systemClock.wallMs() };
  const done = await withRedis(session, (redis) => changeSettings({ redis, namespace }, queue, settings, by));
  const { changed, overrides } = done;
  session.changes.push({ verb: 'queues.set', queue, target: queue, count: changed.length, reason });
  session.out.answer({ queue, ...settings, overrides }, () => [
    ...(history ? [sentence(queue, history)] : []),
    ...(redact ? [redactSentence(queue, redact)] : []),
    ...(broadcast ? [broadcastSentence(queue, broadcast)] : []),
    ...limitSentences(queue, settings),
    ...gateSentences(queue, settings),
    ...(lingerMs === undefined ? [] : [lingerSentence(queue, lingerMs)]),
    ...(history || redact || broadcast || lingerMs !== undefined ? ['all processes follow within half a minute'] : []),
    ...backLines(queue, done, Object.keys(settings)),
  ]);
  return 0;
}

/** What definitions say below these settings, and how the settings are taken back. */
function backLines(queue: string, { overrides }: QueueSettingsView, names: readonly string[]): readonly string[] {
  const words = Object.entries(SETTING_WORDS).flatMap(([word, fields]) =>
    fields.some((name) => names.includes(name)) ? [word] : [],
  );
  const said = overrides.filter(({ setting, code }) => words.includes(setting) && code !== undefined);
  return [
    ...said.map(
      ({ setting, code }) => line`code says ${saidText(code)} for ${setting}; it counts again when you take this back`,
    ),
    line`to take it back: duestream queues unset ${queue} ${words.join(' ')}`,
  ];
}

// `queues unset <queue> <setting...>`: what the definition says counts again.

export const queuesUnset: Register = (parent, runner) => {
  const command = parent
    .command('unset <queue> <setting...>')
    .description('take back what was set by command, so that what the code says counts again')
    .option('--stored', 'also forget what definitions have said, until a process says it again')
    .option('--reason <text>', 'why, for the audit')
    .action((queue: string, settings: readonly string[], flags: UnsetFlags, command: Command) =>
      runner.run(command, (session) => runUnset(session, { queue, settings, ...flags })),
    );
  withExamples(command, [
    'duestream queues unset calls rate --reason "the provider has recovered"',
    'duestream queues unset mails linger',
  ]);
};

interface UnsetFlags {
  readonly stored?: true;
  readonly reason?: string;
}

async function runUnset(
  session: Session,
  {
    queue,
    settings: given,
    stored,
    reason = '',
  }: UnsetFlags & { readonly queue: string; readonly settings: readonly string[] },
): Promise<Exit> {
  const settings = given.flatMap(fieldsOfSetting);
  checkReason(reason);
  const { namespace } = session.config;
  const done = await withRedis(session, (redis) =>
    unsetSettings({ redis, namespace }, queue, { settings, isForgotten: stored === true }),
  );
  const { changed } = done;
  session.changes.push({ verb: 'queues.unset', queue, target: queue, count: changed.length, reason });
  session.out.answer({ queue, ...done }, () =>
    given.map((word) => {
      const name = camelCase(word) as keyof QueueSettingsView['settings'];
      const value = done.settings[name];
      if (value === undefined) return line`${name} of ${queue} is as it is by default again`;
      return line`${name} of ${queue} is ${saidText(value)} again`;
    }),
  );
  return 0;
}

/** `per-group` and `perGroup`. */
const camelCase = (word: string): string => word.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());

/** @throws DuestreamError `usage` */
function fieldsOfSetting(word: string) {
  const fields = SETTING_WORDS[camelCase(word)];
  if (fields) return fields;
  const names = Object.keys(SETTING_WORDS);
  const hint = hintOf(camelCase(word), names) || ';';
  throw new DuestreamError('usage', line`setting is ${word}${hint} allowed: ${names.join(', ')}`);
}

/** @throws DuestreamError `usage` or `bad-input` */
function settingsOf(flags: Flags): QueueSettings {
  const { redact, maxPending, maxBytes, rate, burst, concurrency, perGroup, groupRate, groupBurst, fair } = flags;
  const groupPending = flags.perGroupMaxPending;
  const most = (given: number | 'none' | undefined) => (given === 'none' ? false : given);
  return parseSettings({
    history: historyOf(flags),
    redact: redact === 'none' ? [] : redact?.split(',').map((path) => path.trim()),
    broadcast: broadcastOf(flags),
    maxPending: most(maxPending),
    maxBytes: most(maxBytes),
    linger: flags.linger,
    rate: rateFlag(rate, burst, '--rate'),
    concurrency: most(concurrency),
    perGroup: {
      concurrency: most(perGroup),
      rate: rateFlag(groupRate, groupBurst, '--group-rate'),
      maxPending: most(groupPending),
    },
    fair,
  });
}

/** For a flag: a number, or none. */
export function limit({ min, max }: Range): (given: string) => number | 'none' {
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

/** A rate with its burst, `false` for none. @throws DuestreamError `usage` for a burst without a rate */
export function rateFlag(rate: string | undefined, burst: number | undefined, flag: string) {
  if (rate !== undefined && rate !== 'none') return rateOf(rate, burst);
  if (burst === undefined) return rate === undefined ? undefined : (false as const);
  throw new DuestreamError('usage', `say ${flag} beside ${flag.replace('rate', 'burst')}: ${flag} 10/s`);
}

/** `10/s`, or with a time of its own: `7/90s`. */
function rateOf(rate: string, burst: number | undefined) {
  const [, limit = '', per = ''] = /^(\d+)\/(.+)$/.exec(rate) ?? [];
  if (limit === '') return rate;
  return { limit: Number(limit), per: /^[smhd]$/.test(per) ? `1${per}` : per, burst };
}

function gateSentences(
  queue: string,
  { rate, concurrency, perGroup, groupRate, groupPending, fair }: QueueSettings,
): readonly string[] {
  const most = (count: number | undefined, what: string, none: string) =>
    count === undefined ? [] : [count === 0 ? none : line`${queue} runs ${what.replace('#', counted(count, 'job'))}`];
  const said = [
    ...(rate === undefined ? [] : [rate === 0 ? line`${queue} has no rate` : line`${queue} starts ${rateText(rate)}`]),
    ...most(concurrency, 'at most # at a time', line`${queue} has no limit of jobs that run`),
    ...most(perGroup, 'at most # of each group at a time', line`${queue} has no limit per group`),
    ...(groupRate === undefined
      ? []
      : [
          groupRate === 0
            ? line`groups of ${queue} have no rate`
            : line`${queue} starts ${rateText(groupRate)} of each group`,
        ]),
    ...(groupPending === undefined
      ? []
      : [
          groupPending === 0
            ? line`${queue} has no limit of jobs of a group that wait or run`
            : line`${queue} takes new jobs of a group up to ${groupPending} that wait or run; those that are there do not count`,
        ]),
    ...(fair ? [line`groups and priorities of ${queue} start in turns`] : []),
  ];
  return said.length === 0 ? [] : [...said, 'this holds from now on; what has no turn waits in line'];
}

const lingerSentence = (queue: string, ms: number): string =>
  ms === 0
    ? line`due jobs of ${queue} start on time`
    : line`due jobs of ${queue} wait for company: passes are ${durationText(ms)} apart at least`;

const redactSentence = (queue: string, redact: Redaction): string =>
  redact.length === 0
    ? line`views show all data of ${queue}`
    : line`views show [redacted] in the place of these fields of ${queue}: ${redact.join(', ')}`;

/** @throws DuestreamError `usage` */
function historyOf({ history, historyMax: max, historyResult: result, historyResultBytes }: Flags) {
  const more = (max ?? result ?? historyResultBytes) !== undefined;
  const off = history === 'off';
  if (more && (history === undefined || off)) {
    throw new DuestreamError('usage', 'say for how long with --history 7d, or --history off and nothing else');
  }
  if (history === undefined) return undefined;
  return off ? false : { keep: history, max, result, resultBytesMax: historyResultBytes };
}

/** @throws DuestreamError `usage` */
function broadcastOf({ broadcast, broadcastMax: max, broadcastBytes: bytes, broadcastAge: age }: Flags) {
  const more = (max ?? bytes ?? age) !== undefined;
  if (broadcast === undefined && !more) return undefined;
  if (broadcast === 'on') return { max, bytes, age };
  if (broadcast === 'off' && !more) return false;
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
