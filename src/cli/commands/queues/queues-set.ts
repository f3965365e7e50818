/**
 * `queues set <queue>`: what a queue keeps of jobs that are over, what views do not show of its data, whether its jobs go to
 * every subscriber, how many there may be, how much runs at once and how long due jobs linger, for every process. They follow
 * within half a minute; limits hold at once.
 */
import type { Command } from 'commander';
import type { QueueSettingsView } from '../../../client/queues/settings.ts';
import {
  fieldsOfWord,
  parseSettings,
  type QueueSettingName,
  type QueueSettings,
  type SettingName,
  settingFields,
  settingWords,
  valueText,
} from '../../../job/queue-settings.ts';
import { idleRate, type Rates, ratesText, rateText } from '../../../job/rate.ts';
import { hintOf } from '../../../kernel/checks.ts';
import { durationText } from '../../../kernel/duration.ts';
import { DuestreamError } from '../../../kernel/errors.ts';
import { counted } from '../../../kernel/humanize.ts';
import { collect, type Exit, type Register, type Session, withClient, withExamples } from '../../session.ts';
import { dashed } from '../../terminal/job-flags.ts';
import { line } from '../../terminal/output.ts';
import {
  camelCase,
  queueExamples,
  readQueueFlags,
  type SettingFlags,
  withQueueFlags,
} from '../../terminal/setting-flags.ts';

export const queuesSet: Register = (parent, runner) => {
  const command = withQueueFlags(
    parent
      .command('set <queue>')
      .description(
        'change a queue: its history, its redacted fields, its broadcast, its target, its limits and how punctual it is',
      ),
  )
    .option(
      '--unset <setting>',
      'take this setting back, so that what the code says counts again; may be given several times',
      collect,
    )
    .option('--stored', 'with --unset: also forget what definitions have said, until a process says it again')
    .option('--reason <text>', 'why, for the audit')
    .action((queue: string, flags: SettingFlags & UnsetFlags, command: Command) =>
      runner.run(command, (session) => (flags.unset ? runUnset : run)(session, queue, flags)),
    );
  withExamples(command, [
    'duestream queues set emails --history 7d --history-max 100000 --history-result',
    'duestream queues set emails --history off',
    'duestream queues set emails --redact email,card.number',
    'duestream queues set emails --max-pending 1000000 --max-bytes 2000000000',
    'duestream queues set hooks --target https://api.example.com/due',
    `duestream queues set hooks --target '{"url": "https://api.example.com/due", "secret": "main"}'`,
    'duestream queues set events --linger 20ms',
    'duestream queues set calls --unset rate --reason "the provider has recovered"',
    'duestream queues set mail --rate 10/s --concurrency 5',
    'duestream queues set calls --rate 10/s,500/h --burst 1,50',
    'duestream queues set imports --per-group 1 --reason "two imports of one account collided"',
    'duestream queues set calls --per-group 2 --group-rate 60/m',
    'duestream queues set imports --per-group-max-pending 1000',
    'duestream queues set accounts --per-group 1 --group-order strict --group-on-dead hold',
    'duestream queues set prices --broadcast on --broadcast-max 5000 --broadcast-age 10m',
  ]);
};

async function run(
  session: Session,
  queue: string,
  { reason, stored, ...flags }: SettingFlags & UnsetFlags,
): Promise<Exit> {
  if (stored) throw new DuestreamError('usage', '--stored goes with --unset');
  const given = readQueueFlags(flags);
  const settings = parseSettings(given);
  if (Object.keys(settings).length === 0) {
    throw new DuestreamError(
      'usage',
      `say what to set: ${queueExamples.slice(0, -1).join(', ')} or ${queueExamples.at(-1)}`,
    );
  }
  const done = await withClient(session, ({ queues }) => queues.set(queue, given, { reason }));
  session.out.answer({ queue, ...settings, overrides: done.overrides }, () => [
    ...sentences(queue, settings),
    ...backLines(queue, done, Object.keys(settings)),
  ]);
  return 0;
}

/** What definitions say below these settings, and how the settings are taken back. */
function backLines(queue: string, { overrides }: QueueSettingsView, names: readonly string[]): readonly string[] {
  const words = settingWords.filter((word) => fieldsOfWord(word).some((name) => names.includes(name)));
  const said = overrides.filter(({ setting, code }) => words.some((word) => word === setting) && code !== undefined);
  return [
    ...said.map(
      ({ setting, code }) =>
        line`code says ${valueText(setting, code)} for ${setting}; it counts again when you take this back`,
    ),
    line`to take it back: duestream queues set ${queue} ${words.map((word) => `--unset ${dashed(word)}`).join(' ')}`,
  ];
}

// `queues set <queue> --unset <setting>`: what the definition says counts again.

interface UnsetFlags {
  readonly unset?: readonly string[];
  readonly stored?: boolean;
  readonly reason?: string;
}

async function runUnset(
  session: Session,
  queue: string,
  { unset: given = [], stored = false, reason, ...others }: SettingFlags & UnsetFlags,
): Promise<Exit> {
  if (Object.keys(others).length > 0) {
    throw new DuestreamError('usage', '--unset and settings are both given; allowed: one of them');
  }
  const names = given.map(settingNamed);
  const done = await withClient(session, ({ queues }) => queues.unset(queue, names, { stored, reason }));
  session.out.answer({ queue, ...done }, () =>
    names.map((name) => {
      const value = done.settings[name];
      if (value === undefined) return line`${name} of ${queue} is as it is by default again`;
      return line`${name} of ${queue} is ${valueText(name, value)} again`;
    }),
  );
  return 0;
}

/** @throws DuestreamError `usage` */
function settingNamed(given: string): QueueSettingName {
  const word = settingWords.find((one) => one === camelCase(given));
  if (word) return word;
  const hint = hintOf(camelCase(given), settingWords) || ';';
  throw new DuestreamError('usage', line`--unset is ${given}${hint} allowed: ${settingWords.join(', ')}`);
}

// What holds from now on, in a sentence for each field that was set.

/** When it holds, for each of the kinds of limits. */
const HOLDS = {
  soon: 'all processes follow within half a minute',
  room: 'limits hold from now on',
  line: 'this holds from now on; what has no turn waits in line',
} as const;

function sentences(queue: string, settings: QueueSettings): readonly string[] {
  return (['soon', 'room', 'line'] as const).flatMap((kind) => {
    const fields = settingFields.filter(({ name, limits = 'soon' }) => limits === kind && settings[name] !== undefined);
    const said = fields.map(({ name }) => SENTENCES[name](queue, settings[name] as never));
    return said.length === 0 ? [] : [...said, HOLDS[kind]];
  });
}

/** Said of two rates of which one alone counts. */
function idleNote(rates: Rates): string {
  const found = idleRate(rates);
  if (!found) return '';
  const { idle, slower } = found;
  return `; ${rateText(idle)} never counts, as ${rateText(slower)} lets no more than ${slower.burst} start at once: say a larger --burst for it`;
}

const most = (stored: number, some: string, none: string): string => (stored === 0 ? none : some);

const SENTENCES: {
  readonly [Name in SettingName]-?: (queue: string, value: NonNullable<QueueSettings[Name]>) => string;
} = {
  history(queue, { isOn, keepMs, max, keepsResult }) {
    if (!isOn) return line`${queue} keeps no more jobs that are over; what is kept goes in its time`;
    const what = keepsResult ? 'with what their handlers returned' : 'without results';
    return line`${queue} keeps jobs for ${durationText(keepMs)} after their end, at most ${max}, ${what}`;
  },
  redact: (queue, paths) =>
    paths.length === 0
      ? line`views show all data of ${queue}`
      : line`views show [redacted] in the place of these fields of ${queue}: ${paths.join(', ')}`,
  limits: (queue, names) =>
    names.length === 0
      ? line`${queue} shares no limit with other queues`
      : line`${queue} shares with other queues that name them: ${names.join(', ')}`,
  broadcast(queue, { isOn, max, bytes, ageMs }) {
    if (!isOn) return line`each job of ${queue} goes to one worker`;
    return line`every subscriber of ${queue} gets each job; kept for those behind: ${max}, of ${bytes} bytes, for ${durationText(ageMs)}`;
  },
  target(queue, target) {
    if (target === 0) return line`jobs of ${queue} go to workers`;
    const { url, method = 'POST', secret } = target;
    const signed = secret === undefined ? 'without a signature' : `signed with the secret ${secret}`;
    return line`each job of ${queue} calls ${method} ${url}, ${signed}; daemons with the role dispatcher send it, and no worker gets it`;
  },
  maxPending: (queue, max) =>
    most(
      max,
      line`${queue} takes new jobs up to ${max} jobs that wait or run`,
      line`${queue} has no limit of jobs that wait or run`,
    ),
  maxBytes: (queue, max) =>
    most(
      max,
      line`${queue} takes new jobs up to ${max} bytes of their records`,
      line`${queue} has no limit of bytes of their records`,
    ),
  lingerMs: (queue, ms) =>
    most(
      ms,
      line`due jobs of ${queue} wait for company: passes are ${durationText(ms)} apart at least`,
      line`due jobs of ${queue} start on time`,
    ),
  aheadMs: (queue, ms) =>
    most(
      ms,
      line`jobs of ${queue} are handed to workers up to ${durationText(ms)} before they are due`,
      line`jobs of ${queue} are handed to workers when they are due`,
    ),
  lateness(queue, { isOn, withinMs, of, overMs }) {
    if (!isOn) return line`${queue} promises nothing about lateness`;
    const share = `${Number((of * 100).toFixed(5))} %`;
    return line`${queue} promises that ${share} of its jobs start within ${durationText(withinMs)}, over ${durationText(overMs)}; "duestream slo ${queue}" says whether it is kept`;
  },
  rate: (queue, rate) =>
    rate === 0 ? line`${queue} has no rate` : line`${queue} starts ${ratesText(rate)}${idleNote(rate)}`,
  concurrency: (queue, max) =>
    most(
      max,
      line`${queue} runs at most ${counted(max, 'job')} at a time`,
      line`${queue} has no limit of jobs that run`,
    ),
  perGroup: (queue, max) =>
    most(
      max,
      line`${queue} runs at most ${counted(max, 'job')} of each group at a time`,
      line`${queue} has no limit per group`,
    ),
  groupRate: (queue, rate) =>
    rate === 0 ? line`groups of ${queue} have no rate` : line`${queue} starts ${rateText(rate)} of each group`,
  groupPending: (queue, max) =>
    most(
      max,
      line`${queue} takes new jobs of a group up to ${max} that wait or run; those that are there do not count`,
      line`${queue} has no limit of jobs of a group that wait or run`,
    ),
  groupOrder: (queue, order) =>
    order === 0
      ? line`jobs of a group of ${queue} have no order over retries`
      : line`jobs of a group of ${queue} start one after the other, over retries too; processes of older versions start none of them`,
  groupOnDead: (queue, onDead) =>
    onDead === 'hold'
      ? line`a dead letter of ${queue} holds its group until it is replayed or removed, or somebody opens the group`
      : line`a group of ${queue} goes on after a dead letter`,
  groups: (queue, own) => line`these groups of ${queue} have limits of their own: ${Object.keys(own).join(', ')}`,
  fair: (queue) => line`groups and priorities of ${queue} start in turns`,
  costs: (queue) =>
    line`a job of ${queue} may cost more than one turn of a rate; processes of older versions start none of its jobs`,
};
