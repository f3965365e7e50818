/** The settings of a queue and of its groups on the command line: a flag for each row of `job/queue-settings.ts`. */
import { type Command, Option } from 'commander';
import {
  groupLimitRows,
  perGroupRows,
  type QueueSettingName,
  type QueueSettingOptions,
  settingOf,
  settingWords,
} from '../../job/queue-settings.ts';
import { rateRanges } from '../../job/rate.ts';
import type { BoundsKind, Part, SettingKind } from '../../job/setting-kinds.ts';
import type { Range } from '../../kernel/checks.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { wholeNumber } from '../session.ts';
import { dashed } from './job-flags.ts';

/** What commander reads of them, by their names in camelCase. */
export type SettingFlags = Readonly<Record<string, unknown>>;

/** One flag, and how its value is said in code. */
interface SettingFlag extends Pick<SettingKind, 'kind' | 'metavar' | 'fromFlag' | 'off'> {
  /** Without its dashes. */
  readonly flag: string;
  readonly help: string;
  readonly range?: Range;
  /** Several numbers with commas between. */
  readonly isList?: boolean;
}

/** Of `queues set`. */
function flagsOf(word: QueueSettingName): readonly SettingFlag[] {
  const setting = settingOf(word);
  const flag = dashed(word);
  switch (setting.kind) {
    case 'groups':
      return [];
    case 'perGroup':
      return perGroupRows.flatMap(({ row }) => (row.each ? withBurst({ ...row, ...row.each }) : []));
    case 'bounds':
      return [
        { kind: 'bounds', flag, help: setting.help, metavar: setting.metavar },
        ...partsOf(setting).map(([name, part]) => ({ ...part, flag: partFlag(word, name, part) })),
      ];
    default:
      return withBurst({ ...setting, flag });
  }
}

/** Of `groups set`. */
const groupFlags: readonly SettingFlag[] = groupLimitRows.flatMap(({ name, row }) =>
  withBurst({ ...row, flag: dashed(name) }),
);

/** The parts that have flags of their own. */
const partsOf = ({ parts, by }: BoundsKind): readonly (readonly [string, Part])[] =>
  Object.entries(parts).filter(([name]) => name !== by);
const partFlag = (word: string, name: string, part: Part): string => dashed(`${word}-${part.flag ?? name}`);

function burstOf(flag: string): string {
  return flag.replace('rate', 'burst');
}

function withBurst(one: SettingFlag): readonly SettingFlag[] {
  if (one.kind !== 'rate' && one.kind !== 'rates') return [one];
  const isList = one.kind === 'rates';
  const help = `with --${one.flag}: how many may start at once after a while${isList ? '; of two rates 1,50' : ''}`;
  return [one, { flag: burstOf(one.flag), kind: 'count', help, range: rateRanges.burst, isList, metavar: '<n>' }];
}

export const withQueueFlags = (command: Command): Command => withFlags(command, settingWords.flatMap(flagsOf));
/** Of `simulate`: those that decide how much runs at once. */
export const withLineFlags = (command: Command, words: readonly QueueSettingName[]): Command =>
  withFlags(
    command,
    words.flatMap(flagsOf).filter(({ flag }) => !flag.endsWith('max-pending')),
  );
/** @example queueFlagsOf('rate') // ['--rate <rate>', '--burst <n>'] */
export const queueFlagsOf = (word: QueueSettingName): readonly string[] => flagsOf(word).map(wordsOf);
const wordsOf = ({ flag, metavar }: SettingFlag): string => `--${flag} ${metavar}`.trimEnd();
export const withGroupFlags = (command: Command): Command => withFlags(command, groupFlags);

function withFlags(command: Command, flags: readonly SettingFlag[]): Command {
  for (const one of flags) {
    const { kind, help, range, off, isList = false } = one;
    const canBeNone = off !== undefined && kind !== 'bounds';
    const option = new Option(wordsOf(one), canBeNone ? `${help}; or none` : help);
    if (range && one.metavar === '<n>') option.argParser(numberIn(range, canBeNone, isList));
    command.addOption(option);
  }
  return command;
}

function numberIn({ min, max }: Range, canBeNone: boolean, isList: boolean): (given: string) => unknown {
  const read = wholeNumber(min, max);
  if (isList) return (given) => given.split(',').map((one) => read(one.trim()));
  return (given) => (canBeNone && given === 'none' ? given : read(given));
}

/** What the flags of `queues set` say, as code says it. @throws DuestreamError `usage` */
export function readQueueFlags(flags: SettingFlags): QueueSettingOptions {
  const said = settingWords.map((word) => {
    const setting = settingOf(word);
    if (setting.kind === 'perGroup') return [word, perGroupSaid(flags)];
    if (setting.kind === 'bounds') return [word, boundsSaid(word, setting, flags)];
    return [word, readFlag({ ...setting, flag: dashed(word) }, flags)];
  });
  return Object.fromEntries(said);
}

/** What those of `groups set` say. @throws DuestreamError `usage` */
export const readGroupFlags = (flags: SettingFlags): object =>
  Object.fromEntries(groupLimitRows.map(({ name, row }) => [name, readFlag({ ...row, flag: dashed(name) }, flags)]));

function perGroupSaid(flags: SettingFlags): object | undefined {
  const said = perGroupRows.flatMap(({ name, row }) => {
    const value = row.each && readFlag({ ...row, ...row.each }, flags);
    return value === undefined ? [] : [[name, value]];
  });
  return said.length === 0 ? undefined : Object.fromEntries(said);
}

const flagValue = (flags: SettingFlags, flag: string): unknown => flags[camelCase(flag)];

/** `per-group` as `perGroup`. */
export const camelCase = (word: string): string =>
  word.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());

function readFlag(
  { kind, flag, fromFlag = (given) => given }: Pick<SettingFlag, 'kind' | 'flag' | 'fromFlag'>,
  flags: SettingFlags,
): unknown {
  const value = flagValue(flags, flag);
  // Two flags say it.
  const bursts = [flagValue(flags, burstOf(flag)) ?? []].flat();
  if (kind === 'rates' && typeof value === 'string') return ratesSaid(flag, value.split(','), bursts);
  return kind === 'rate' || kind === 'rates' ? rateSaid(flag, value, bursts[0]) : fromFlag(value);
}

/** A rate with its burst, `false` for none. @throws DuestreamError `usage` for a burst without a rate */
function rateSaid(flag: string, rate: unknown, burst: unknown): unknown {
  if (typeof rate === 'string' && rate !== 'none') return rateOf(rate, burst);
  if (burst === undefined) return rate === undefined ? undefined : false;
  throw new DuestreamError('usage', `say --${flag} beside --${burstOf(flag)}: --${flag} 10/s`);
}

/** One, or two that both hold. @throws DuestreamError `usage` where they have other numbers of bursts */
function ratesSaid(flag: string, rates: readonly string[], bursts: readonly unknown[]): unknown {
  if (bursts.length > 0 && bursts.length !== rates.length) {
    const [given, wanted] = [bursts.length, rates.length];
    throw new DuestreamError(
      'usage',
      `--${burstOf(flag)} has ${given} ${given === 1 ? 'number' : 'numbers'} and --${flag} ${wanted}; allowed: one number for each rate, such as --${flag} 10/s,500/h --${burstOf(flag)} 1,50`,
    );
  }
  const said = rates.map((rate, nth) => rateSaid(flag, rate.trim(), bursts[nth]));
  return said.length === 1 ? said[0] : said;
}

/** `10/s`, or with a time of its own: `7/90s`. */
function rateOf(rate: string, burst: unknown): unknown {
  const [, limit = '', per = ''] = /^(\d+)\/(.+)$/.exec(rate) ?? [];
  if (limit === '') return rate;
  return { limit: Number(limit), per: /^[smhd]$/.test(per) ? `1${per}` : per, burst };
}

/** On with its bounds, or off. @throws DuestreamError `usage` */
function boundsSaid(word: string, setting: BoundsKind & { readonly example: string }, flags: SettingFlags): unknown {
  const first = flagValue(flags, dashed(word));
  const { by } = setting;
  const parts = partsOf(setting).flatMap(([name, part]) => {
    const value = readFlag({ ...part, flag: partFlag(word, name, part) }, flags);
    return value === undefined ? [] : [[name, value]];
  });
  if (first === undefined && parts.length === 0) return undefined;
  if (first === 'off' && parts.length === 0) return false;
  const isOn = by === undefined ? first === 'on' : first !== undefined && first !== 'off';
  if (isOn) return { ...(by !== undefined && { [by]: first }), ...Object.fromEntries(parts) };
  const flag = `--${dashed(word)}`;
  throw new DuestreamError('usage', `say ${flag} ${setting.example} with its bounds, or ${flag} off and nothing else`);
}

/** How each setting is said. @example '--rate 10/s' */
export const queueExamples: readonly string[] = settingWords.flatMap((word) => {
  const { kind, example } = settingOf(word);
  const flag = `--${dashed(word)}`;
  if (kind === 'groups') return [];
  return kind === 'bounds' ? [`${flag} ${example}`, `${flag} off`] : [example === '' ? flag : `${flag} ${example}`];
});
export const groupExamples: readonly string[] = groupLimitRows.map(
  ({ name, row }) => `--${dashed(name)} ${row.example}`,
);
