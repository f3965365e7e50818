/**
 * The options of a job on the command line: a flag for each row of `job/options.ts`. Only the form of an instant and
 * of a backoff is judged here, so that the refusal says what a shell can write; the library judges everything else.
 */
import { type Command, Option } from 'commander';
import type { Durability } from '../../client/calls/durability.ts';
import type { Named } from '../../job/option-kinds.ts';
import type { jobOptions, OptionName, OptionsOfFires, ScheduleOptions } from '../../job/options.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { collect, wholeNumber } from '../session.ts';
import { objectOf, readBackoff, readDebounce } from './input.ts';
import { absoluteOf } from './instants.ts';

/** What commander reads of them: numbers and words are checked already. */
export type JobFlags = {
  readonly [Name in OptionName]?: (typeof jobOptions)[Name]['kind'] extends 'count' | 'choice'
    ? NonNullable<ScheduleOptions[Name]>
    : (typeof jobOptions)[Name]['kind'] extends 'list' | 'pairs'
      ? readonly string[]
      : string;
};

/** Of those that a schedule can say for its jobs; their name is a flag of its own, `--job`. */
export type FlagsOfFires = Pick<JobFlags, Exclude<keyof OptionsOfFires, 'headers'>> & {
  readonly job?: string;
  readonly header?: readonly string[];
  readonly jobTag?: readonly string[];
};

export function withFlags(command: Command, flags: readonly Named[]): Command {
  for (const { name, option } of flags) {
    const { metavar, doc, otherwise, choices, range, kind } = option;
    const words = choices === undefined ? doc : `${doc} (default: ${otherwise.replaceAll('`', '')})`;
    const flag = new Option(`--${flagOf({ name, option })} ${metavar}`, words);
    if (kind === 'list' || kind === 'pairs') flag.argParser(collect);
    if (choices !== undefined) flag.choices(choices);
    if (range !== undefined) flag.argParser(wholeNumber(range.min, range.max));
    command.addOption(flag);
  }
  return command;
}

/**
 * What the flags say, as the library takes it.
 *
 * @throws DuestreamError `bad-input` that names the flag
 */
export function readFlags(given: JobFlags, flags: readonly Named[]): ScheduleOptions {
  const texts: Readonly<Record<string, unknown>> = given;
  const read: Record<string, unknown> = {};
  for (const flag of flags) {
    const value = readFlag(flag, texts);
    if (value !== undefined) read[flag.name] = value;
  }
  return read;
}

function readFlag({ name, option }: Named, texts: Readonly<Record<string, unknown>>): unknown {
  const { kind, zoned, instead } = option;
  if (kind === 'list') return texts[singular(name)];
  if (kind === 'pairs') return readPairs(singular(name), texts[singular(name)]);
  const text = texts[name];
  if (typeof text !== 'string') return text;
  if (kind === 'backoff') return readBackoff(text);
  if (kind === 'debounce') return readDebounce(text);
  if (kind === 'target') return text.startsWith('{') ? objectOf(text) : text;
  if (kind !== 'instant') return text;
  const local = zoned === undefined ? undefined : texts[zoned] === undefined ? 'name a zone' : 'zone given';
  return absoluteOf(text, `--${dashed(name)}`, {
    local,
    ...(instead === undefined ? {} : { instead: `--${dashed(instead)}` }),
  });
}

function readPairs(flag: string, given: unknown): Readonly<Record<string, string>> | undefined {
  if (!Array.isArray(given)) return undefined;
  const found = new Map<string, string>();
  for (const one of given.map(String)) {
    const [name = '', ...value] = one.split('=');
    const isGiven = value.length > 0 && !found.has(name);
    if (!isGiven)
      throw new DuestreamError('bad-input', `--${flag} is ${show(one)}; allowed: name=value, each name once`);
    found.set(name, value.join('='));
  }
  return Object.fromEntries(found);
}

/** What an option is called on the command line. Of several, one is said at a time: `--tag a --tag b`. */
export const flagOf = ({ name, option }: Named): string =>
  dashed(option.kind === 'list' || option.kind === 'pairs' ? singular(name) : name);

const singular = (name: string): string => name.replace(/s$/, '');

/** As a flag is written: `maxLateness` is `max-lateness`. */
export const dashed = (name: string): string => name.replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`);

// `--durability`: who must have a write before the command ends.

export const DURABILITY_FLAG = [
  '--durability <who>',
  'who must have it before the command ends: memory (of the primary), replicated or fsynced',
] as const;

/** @throws DuestreamError `usage` */
export function readDurability(given: string | undefined): { readonly durability?: Durability } {
  if (given === undefined) return {};
  if (given === 'memory' || given === 'replicated' || given === 'fsynced') return { durability: given };
  throw new DuestreamError('usage', `--durability is ${show(given)}; allowed: memory, replicated or fsynced`);
}
