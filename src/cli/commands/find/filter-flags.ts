/** The flags by which jobs are found, and what they say. The library judges the values. */

import { type Command, Option } from 'commander';
import type { JobFilter } from '../../../client/client.ts';
import type { LiveState } from '../../../job/state.ts';
import { systemClock } from '../../../kernel/clock.ts';
import type { InstantInput } from '../../../kernel/duration.ts';
import { instantOf } from '../../terminal/instants.ts';

/** As commander reads them, by the names without a prefix. */
export interface FilterFlags {
  readonly tag?: string;
  readonly set?: string;
  readonly state?: LiveState;
  readonly name?: string;
  readonly idPrefix?: string;
  readonly failed?: boolean;
  readonly dueFrom?: string;
  readonly dueTo?: string;
}

interface How {
  /** Of a command that has flags of these names for something else. */
  readonly prefix?: 'where-';
  /** Those that make sense; none: the command has its own flag. */
  readonly states: readonly string[];
}

const NAMES = ['tag', 'set', 'state', 'name', 'idPrefix', 'failed', 'dueFrom', 'dueTo'] as const;
export const INSTANT = 'now, +1d, -2h, a date, or ISO 8601 with Z or an offset';

export function withFilterFlags(command: Command, { prefix = '' as 'where-', states }: How): Command {
  const flag = (name: string, metavar: string) => `--${prefix}${name} ${metavar}`;
  command.option(flag('tag', '<tag>'), 'jobs that have this tag');
  command.option(flag('set', '<name>'), 'the members of this set');
  if (states.length > 0) command.addOption(new Option(flag('state', '<state>'), 'jobs in this state').choices(states));
  return command
    .option(flag('name', '<name>'), 'jobs of this name')
    .option(flag('id-prefix', '<text>'), 'jobs whose id begins with this')
    .option(`--${prefix}failed`, 'jobs of which a run has failed or crashed; those that wait are tried again')
    .option(flag('due-from', '<instant>'), `jobs that are due at this time or later: ${INSTANT}`)
    .option(flag('due-to', '<instant>'), 'jobs that are due before this time');
}

/** The flags of a filter among all of a command, by their own names; and the rest. */
export function takeFilterFlags<T extends object>(
  flags: T,
  prefix: '' | 'where-' = '',
): { readonly filter: FilterFlags; readonly rest: T } {
  const flagOf = (name: string) => (prefix === '' ? name : `where${name.charAt(0).toUpperCase()}${name.slice(1)}`);
  const given = new Map<string, unknown>(Object.entries(flags));
  const filter = NAMES.flatMap((name) => {
    const value = given.get(flagOf(name));
    return value === undefined ? [] : [[name, value] as const];
  });
  for (const name of NAMES) given.delete(flagOf(name));
  // What is left has the type of all, without those: nobody reads them there.
  return { filter: Object.fromEntries(filter), rest: Object.fromEntries(given) as T };
}

export const isFilterGiven = (flags: FilterFlags): boolean => NAMES.some((name) => flags[name] !== undefined);

/** A filter, and where the walk through its jobs goes on. */
export interface Walk {
  readonly filter: JobFilter;
  readonly cursor: string | undefined;
  /** A cursor of the library as the command line tells it: `+1h` means the same instant for the command that goes on. */
  readonly told: (cursor: string | undefined) => string | undefined;
  /** Another instant of the command, counted from the same moment. */
  readonly instant: (text: string | undefined, flag: string) => InstantInput | undefined;
}

/** @throws DuestreamError `bad-input` that names the flag */
export function readWalk(
  flags: FilterFlags,
  {
    prefix = '',
    cursor: given,
    instants = [],
  }: {
    readonly prefix?: '' | 'where-';
    readonly cursor: string | undefined;
    /** Those that the command reads itself. */
    readonly instants?: readonly (string | undefined)[];
  },
): Walk {
  const [, beganAt, cursor = given] = /^(\d{1,16})\.(.*)$/s.exec(given ?? '') ?? [];
  const isRelative = [flags.dueFrom, flags.dueTo, ...instants].some((text) => /^(now|[+-].*)$/.test(text ?? ''));
  const nowMs = beganAt === undefined ? systemClock.wallMs() : Number(beganAt);
  return {
    filter: readFilter(flags, { prefix, nowMs }),
    cursor,
    told: (text) => (text === undefined || !isRelative ? text : `${nowMs}.${text}`),
    instant: (text, flag) => instantIn(text, `--${flag}`, nowMs),
  };
}

/** @throws DuestreamError `bad-input` that names the flag */
export function readFilter(
  { dueFrom, dueTo, ...plain }: FilterFlags,
  { prefix = '', nowMs = systemClock.wallMs() }: { readonly prefix?: '' | 'where-'; readonly nowMs?: number } = {},
): JobFilter {
  if (dueFrom === undefined && dueTo === undefined) return plain;
  const instant = (text: string | undefined, flag: string) => instantIn(text, `--${prefix}${flag}`, nowMs);
  return { ...plain, due: { from: instant(dueFrom, 'due-from'), to: instant(dueTo, 'due-to') } };
}

function instantIn(text: string | undefined, flag: string, nowMs: number): InstantInput | undefined {
  const given = text === undefined ? undefined : instantOf(text, flag, nowMs);
  // A date means the beginning of that day, as everywhere where no zone is named: in UTC.
  return typeof given === 'string' && /^\d{4}-\d\d-\d\d$/.test(given) ? `${given}T00:00:00Z` : given;
}
