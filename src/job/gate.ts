/**
 * How much of a queue runs at once. A queue is *gated* from the first such setting on: its due jobs wait in line, and each is
 * let through when the rate, the concurrency of the queue and that of its group have room. The settings are stored in the
 * registry of queues; each partition has its share beside its jobs (`lua/lib/gate.lua`).
 */

import { createHash } from 'node:crypto';
import { checkNames, durationIn, gateRanges, wholeNumber } from '../kernel/checks.ts';
import { type DurationInput, durationText, show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { parseGroup } from './labels.ts';

/** How many jobs may start in a time: `10/s`, `600/m`, `100/h`, `50/d`; or with a time of your own and a burst. */
export type RateInput =
  | `${number}/${'s' | 'm' | 'h' | 'd'}`
  | {
      /** How many. */
      readonly limit: number;
      /** In which time. */
      readonly per: DurationInput;
      /** How many may start at once after a while without any. 1 to 1,000,000, default 1. */
      readonly burst?: number | undefined;
    };

/** A rate as it is stored. */
export interface Rate {
  readonly limit: number;
  readonly perMs: number;
  readonly burst: number;
}

/** As a queue is defined with them. */
export interface GateOptions {
  /**
   * How many jobs may start in a time: `'10/s'`, or `{ limit, per, burst }`; 1 per day to 100,000 per second. A job that has
   * no turn yet waits in line; none is dropped. A retry counts again. `false` takes the limit back.
   */
  readonly rate?: RateInput | false | undefined;
  /** How many jobs may run at a time, whatever the number of workers: 1 to 1,000,000. `false` takes the limit back. */
  readonly concurrency?: number | false | undefined;
  /**
   * How many jobs of each group may run at a time: 1 to 1000. With 1, a group is a lock. Or more of it: how many, how many may
   * start in a time, and how many may be pending. `false` takes a limit back.
   *
   * @example { perGroup: { concurrency: 2, rate: '1/s', maxPending: 1000 } }
   */
  readonly perGroup?: number | false | PerGroup | undefined;
  /**
   * Limits of single groups that differ from `perGroup`: by name, or by the beginning of names and an asterisk. The name counts
   * first, then the longest beginning. At most 1,000. They replace those that stand there; `{}` takes all of them back.
   *
   * @example { groups: { acme: { concurrency: 10, rate: '20/s', weight: 3 }, 'free-*': { rate: '1/m' } } }
   */
  readonly groups?: Readonly<Record<string, GroupLimits>> | undefined;
  /** Groups and priorities come in turns, also without a limit. */
  readonly fair?: true | undefined;
}

/** What each group may have. */
export interface PerGroup {
  /** How many of its jobs may run at a time: 1 to 1000. */
  readonly concurrency?: number | false | undefined;
  /** How many of its jobs may start in a time. */
  readonly rate?: RateInput | false | undefined;
  /**
   * How many of its jobs may wait or run: 1 to 1,000,000,000. A new job for which its group has no room is refused with
   * `group-full`. Jobs that were made before there was such a limit do not count.
   */
  readonly maxPending?: number | false | undefined;
}

/** What a group of its own may have. What is not said is as all groups have it; `false`: this group has no such limit. */
export interface GroupLimits extends PerGroup {
  /** How many turns it has where another group has one: 1 to 100, default 1. */
  readonly weight?: number | undefined;
}

/** Limits of a group as they are stored; 0: no such limit. */
export interface GroupSettings {
  readonly concurrency?: number | undefined;
  readonly rate?: Rate | 0 | undefined;
  readonly weight?: number | undefined;
  readonly maxPending?: number | undefined;
}

/** As they stand in the registry; 0: no such limit, undefined: nobody ever said anything. */
export interface GateSettings {
  readonly rate?: Rate | 0 | undefined;
  readonly concurrency?: number | undefined;
  readonly perGroup?: number | undefined;
  /** The rate of each group. */
  readonly groupRate?: Rate | 0 | undefined;
  /** How many jobs of each group may be pending. */
  readonly groupPending?: number | undefined;
  /** By name, or by the beginning of names and an asterisk. */
  readonly groups?: Readonly<Record<string, GroupSettings>> | undefined;
  readonly fair?: true | undefined;
}

const UNITS_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const RATE_ALLOWED =
  'a text such as 10/s, 600/m, 100/h or 50/d, or { limit, per, burst } with a burst from 1 to 1000000; from 1 per day to 100000 per second';

/** @returns 0 for `false`, which takes the rate back. @throws DuestreamError `bad-input` */
export function parseRate(given: unknown, what = 'rate'): Rate | 0 | undefined {
  if (given === undefined) return undefined;
  if (given === false) return 0;
  const rate = typeof given === 'string' ? rateOfText(given) : rateOfObject(given);
  const perSecond = rate && (rate.limit * 1000) / rate.perMs;
  if (rate && perSecond !== undefined && perSecond >= 1 / 86_400 && perSecond <= 100_000) return Object.freeze(rate);
  throw new DuestreamError('bad-input', `${what} is ${show(given)}; allowed: ${RATE_ALLOWED}`);
}

function rateOfText(text: string): Rate | undefined {
  const [, limit, unit] = /^(\d{1,9})\/([smhd])$/.exec(text) ?? [];
  if (limit === undefined || unit === undefined) return undefined;
  return { limit: Number(limit), perMs: UNITS_MS[unit as keyof typeof UNITS_MS], burst: 1 };
}

function rateOfObject(given: unknown): Rate | undefined {
  if (typeof given !== 'object' || given === null) return undefined;
  checkNames(given, ['limit', 'per', 'burst'], 'rate', 'bad-input');
  const { limit, per, burst = 1 } = given as { limit: unknown; per: DurationInput; burst?: unknown };
  return {
    limit: wholeNumber(limit, { what: 'limit of rate', ...gateRanges.rateLimit }),
    perMs: durationIn(per, 'per of rate', gateRanges.ratePerMs),
    burst: wholeNumber(burst, { what: 'burst of rate', ...gateRanges.burst }),
  };
}

/** @returns 0 for `false`, which takes a limit back. @throws DuestreamError `bad-input` */
function parseMost(
  name: 'concurrency' | 'perGroup' | 'groupPending',
  given: unknown,
  what: string = name,
): number | undefined {
  if (given === undefined) return undefined;
  if (given === false) return 0;
  if (typeof given === 'number') return wholeNumber(given, { what, ...gateRanges[name] });
  const { min, max } = gateRanges[name];
  throw new DuestreamError(
    'bad-input',
    `${what} is ${show(given)}; allowed: a whole number from ${min} to ${max}, or false for no limit`,
  );
}

/** What of these options was said. @throws DuestreamError `bad-input` */
export function parseGates({ rate, concurrency, perGroup, groups, fair }: GateOptions): GateSettings {
  if (fair !== undefined && fair !== true) {
    throw new DuestreamError('bad-input', `fair is ${show(fair)}; allowed: true. A gated queue stays gated`);
  }
  const said = { rate: parseRate(rate), concurrency: parseMost('concurrency', concurrency) };
  const each = parsePerGroup(perGroup);
  return {
    ...(said.rate !== undefined && { rate: said.rate }),
    ...(said.concurrency !== undefined && { concurrency: said.concurrency }),
    ...each,
    ...(groups !== undefined && { groups: parseGroups(groups) }),
    ...(fair && { fair }),
  };
}

function parsePerGroup(given: GateOptions['perGroup']): Pick<GateSettings, 'perGroup' | 'groupRate' | 'groupPending'> {
  if (given === false) return { perGroup: 0, groupRate: 0, groupPending: 0 };
  const isObject = typeof given === 'object' && given !== null;
  if (isObject) checkNames(given, ['concurrency', 'rate', 'maxPending'], 'perGroup', 'bad-input');
  const { concurrency, rate, maxPending }: PerGroup = isObject ? given : { concurrency: given };
  const most = parseMost('perGroup', concurrency, isObject ? 'concurrency of perGroup' : 'perGroup');
  const groupRate = parseRate(rate, 'rate of perGroup');
  const groupPending = parseMost('groupPending', maxPending, 'maxPending of perGroup');
  return {
    ...(most !== undefined && { perGroup: most }),
    ...(groupRate !== undefined && { groupRate }),
    ...(groupPending !== undefined && { groupPending }),
  };
}

/** Limits of single groups. @throws DuestreamError `bad-input` */
function parseGroups(given: unknown): Readonly<Record<string, GroupSettings>> {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw wrongGroups(show(given));
  const parsed = Object.entries(given).map(
    ([name, limits]) => [parseGroupName(name), parseGroupLimits(name, limits)] as const,
  );
  return checkGroups(Object.freeze(Object.fromEntries(parsed)));
}

/** @throws DuestreamError `bad-input` for too many */
export function checkGroups<Groups extends object>(groups: Groups): Groups {
  const count = Object.keys(groups).length;
  if (count > gateRanges.groups.max) throw wrongGroups(`an object with ${count} names`);
  return groups;
}

const wrongGroups = (what: string) =>
  new DuestreamError(
    'bad-input',
    `groups is ${what}; allowed: an object with at most ${gateRanges.groups.max} names of groups, each with concurrency, rate, maxPending or weight`,
  );

/** The name of a group, or the beginning of names and an asterisk. @throws DuestreamError `bad-input` */
export function parseGroupName(name: string): string {
  if (name === '*') {
    throw new DuestreamError('bad-input', 'group is "*"; allowed: a name, or the beginning of names and an asterisk');
  }
  return name.length > 1 && name.endsWith('*') ? `${parseGroup(name.slice(0, -1))}*` : parseGroup(name);
}

/** @throws DuestreamError `bad-input` */
export function parseGroupLimits(name: string, given: unknown): GroupSettings {
  const what = (option: string) => `${option} of group ${name}`;
  if (typeof given !== 'object' || given === null) {
    throw new DuestreamError(
      'bad-input',
      `group ${name} is ${show(given)}; allowed: { concurrency, rate, maxPending, weight }`,
    );
  }
  checkNames(given, ['concurrency', 'rate', 'maxPending', 'weight'], `group ${name}`, 'bad-input');
  const { concurrency, rate, maxPending, weight } = given as GroupLimits;
  const limits = {
    concurrency: parseMost('perGroup', concurrency, what('concurrency')),
    rate: parseRate(rate, what('rate')),
    weight: weight === undefined ? undefined : wholeNumber(weight, { what: what('weight'), ...gateRanges.weight }),
    maxPending: parseMost('groupPending', maxPending, what('maxPending')),
  };
  return Object.freeze(Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined)));
}

/** Somebody has said one of them: due jobs wait in line from then on. */
export const isGated = ({
  rate,
  concurrency,
  perGroup,
  groupRate,
  groupPending,
  groups,
  fair,
}: GateSettings): boolean =>
  (rate ?? concurrency ?? perGroup ?? groupRate ?? groupPending ?? groups ?? fair) !== undefined;

/** What cannot be read was written by somebody else, and limits nothing. */
export function decodeGates(stored: {
  readonly rate?: string | null | undefined;
  readonly concurrency?: string | null | undefined;
  readonly perGroup?: string | null | undefined;
  readonly groupRate?: string | null | undefined;
  readonly groupPending?: string | null | undefined;
  readonly groups?: string | null | undefined;
  readonly fair?: string | null | undefined;
}): GateSettings {
  const rate = decodeRate(stored.rate);
  const groupRate = decodeRate(stored.groupRate);
  const [concurrency, perGroup] = [decodeMost(stored.concurrency), decodeMost(stored.perGroup)];
  const groupPending = decodeMost(stored.groupPending);
  const groups = decodeGroups(stored.groups);
  return {
    ...(rate !== undefined && { rate }),
    ...(concurrency !== undefined && { concurrency }),
    ...(perGroup !== undefined && { perGroup }),
    ...(groupRate !== undefined && { groupRate }),
    ...(groupPending !== undefined && { groupPending }),
    ...(groups && { groups }),
    ...(stored.fair && { fair: true as const }),
  };
}

function decodeRate(text: string | null | undefined): Rate | 0 | undefined {
  if (text === '0') return 0;
  const [, limit, perMs, burst] = /^([1-9]\d{0,8}) ([1-9]\d{0,8}) ([1-9]\d{0,6})$/.exec(text ?? '') ?? [];
  return limit === undefined ? undefined : { limit: Number(limit), perMs: Number(perMs), burst: Number(burst) };
}

function decodeGroups(text: string | null | undefined): GateSettings['groups'] {
  try {
    const stored = text ? (JSON.parse(text) as Record<string, StoredGroup>) : undefined;
    const settingsOf = ({ c, r, w, p }: StoredGroup): GroupSettings => {
      const [concurrency, rate, weight] = [decodeMost(String(c)), decodeRate(r), decodeMost(String(w))];
      const maxPending = decodeMost(String(p));
      const known = { ...(concurrency !== undefined && { concurrency }), ...(rate !== undefined && { rate }) };
      const more = { ...(weight !== undefined && { weight }), ...(maxPending !== undefined && { maxPending }) };
      return { ...known, ...more };
    };
    return stored && Object.fromEntries(Object.entries(stored).map(([name, one]) => [name, settingsOf(one)]));
  } catch {
    return undefined;
  }
}

/** Limits of a group as the JSON of the registry has them. */
interface StoredGroup {
  readonly c?: number | undefined;
  readonly r?: string | undefined;
  readonly w?: number | undefined;
  readonly p?: number | undefined;
}

const decodeMost = (text: string | null | undefined): number | undefined =>
  /^\d{1,10}$/.test(text ?? '') ? Number(text) : undefined;

/** As each stands in its own field of the registry. */
export function encodeGates({ rate, concurrency, perGroup, groupRate, groupPending, groups, fair }: GateSettings) {
  return {
    ...(rate !== undefined && { rate: encodeRate(rate) }),
    ...(concurrency !== undefined && { concurrency: String(concurrency) }),
    ...(perGroup !== undefined && { perGroup: String(perGroup) }),
    ...(groupRate !== undefined && { groupRate: encodeRate(groupRate) }),
    ...(groupPending !== undefined && { groupPending: String(groupPending) }),
    ...(groups && { groups: encodeGroups(groups) }),
    ...(fair && { fair: '1' }),
  };
}

const encodeRate = (rate: Rate | 0): string => (rate === 0 ? '0' : `${rate.limit} ${rate.perMs} ${rate.burst}`);

function encodeGroups(groups: NonNullable<GateSettings['groups']>): string {
  const entries = Object.entries(groups).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify(Object.fromEntries(entries.map(([name, limits]) => [name, storedGroup(limits)])));
}

/** One of them, as it stands in that JSON. */
export const encodeGroup = (limits: GroupSettings): string => JSON.stringify(storedGroup(limits));

const storedGroup = ({ concurrency: c, rate, weight: w, maxPending: p }: GroupSettings): StoredGroup => ({
  c,
  r: rate === undefined ? undefined : encodeRate(rate),
  w,
  p,
});

/** What a partition gets. */
export interface PartitionGates {
  /** As `K:meta` has it in `gates`. */
  readonly share: string;
  /** Groups with limits of their own, and these, as `K:groups` has them. */
  readonly groups: readonly (readonly [group: string, limits: string])[];
  /** Groups have a limit of pending jobs, so a new job of a group says in its record that it counts. */
  readonly isCounted?: boolean;
}

/**
 * The share of one of several partitions, as `K:meta` has it in `gates`: microseconds per job of the rate, burst, concurrency,
 * and limit per group; 0 for no limit. Then, where they are needed: what `lua/lib/own.lua` has to know; p and the limit of the
 * pending jobs of all groups; s, which partition it is, how many there are and the burst of all, where that is less than one for
 * each partition. The rate and the concurrency of a queue are divided exactly. A group is in one partition, so its limit is whole.
 * Undefined: the queue is not gated.
 *
 * @example gateShare({ rate: { limit: 10, perMs: 1000, burst: 1 }, perGroup: 1 }, { partition: 0, partitions: 1 })?.share // '100000 1 0 1'
 */
export function gateShare(
  settings: GateSettings,
  { partition, partitions }: { readonly partition: number; readonly partitions: number },
): PartitionGates | undefined {
  if (!isGated(settings)) return undefined;
  const { rate = 0, concurrency = 0, perGroup = 0 } = settings;
  const part = (whole: number) => Math.floor(whole / partitions) + (partition < whole % partitions ? 1 : 0);
  const micros = microsOf(rate) * partitions;
  const burst = rate === 0 ? 1 : Math.max(1, part(rate.burst));
  // @share-of-concurrency
  const most = concurrency === 0 ? 0 : Math.max(1, part(concurrency));
  const groups = Object.entries(settings.groups ?? {}).map(([name, limits]) => [name, wordsOf(limits)] as const);
  const own = ownPart(settings.groupRate ?? 0, groups);
  const pending = countsGroups(settings) ? ` p${settings.groupPending ?? 0}` : '';
  const places = rate !== 0 && rate.burst < partitions ? ` s${partition}/${partitions}/${rate.burst}` : '';
  const share = `${Number(micros.toFixed(3))} ${burst} ${most} ${perGroup}${own}${pending}${places}`;
  return { share, groups, ...(pending !== '' && { isCounted: true }) };
}

/** Whether a new job of a group counts in it: there is a limit of the pending jobs of all groups, or of some. */
export const countsGroups = ({ groupPending = 0, groups = {} }: GateSettings): boolean =>
  groupPending > 0 || Object.values(groups).some(({ maxPending = 0 }) => maxPending > 0);

/** What a group has of its own: by its name, or else by the longest beginning of it. `lua/lib/own.lua` says the same. */
export function ownLimits({ groups = {} }: GateSettings, group: string): GroupSettings {
  const beginnings = Object.keys(groups).filter((name) => name.endsWith('*') && group.startsWith(name.slice(0, -1)));
  const [longest = group] = beginnings.sort((one, other) => other.length - one.length);
  const name = Object.hasOwn(groups, group) ? group : longest;
  return (Object.hasOwn(groups, name) ? groups[name] : undefined) ?? {};
}

/** What a single group may have, with what all groups have: 0 = without such a limit. */
export interface GroupGate {
  readonly most: number;
  readonly intervalUs: number;
  readonly burst: number;
  readonly weight: number;
  readonly maxPending: number;
}

export function groupGate(settings: GateSettings, group: string): GroupGate {
  const { concurrency, rate, weight = 1, maxPending } = ownLimits(settings, group);
  const pace = rate ?? settings.groupRate ?? 0;
  return {
    most: concurrency ?? settings.perGroup ?? 0,
    intervalUs: Number(microsOf(pace).toFixed(3)),
    burst: pace === 0 ? 1 : pace.burst,
    weight,
    maxPending: maxPending ?? settings.groupPending ?? 0,
  };
}

/** Microseconds per job. */
const microsOf = (rate: Rate | 0): number => (rate === 0 ? 0 : (rate.perMs * 1000) / rate.limit);

function wordsOf({ concurrency, rate, weight, maxPending }: GroupSettings): string {
  const pace = rate === undefined ? '- -' : `${Number(microsOf(rate).toFixed(3))} ${rate === 0 ? 1 : rate.burst}`;
  return `${concurrency ?? '-'} ${pace} ${weight ?? '-'}${maxPending === undefined ? '' : ` ${maxPending}`}`;
}

/** What `lua/lib/own.lua` has to know of a queue whose groups have a rate or limits of their own. */
function ownPart(rate: Rate | 0, groups: PartitionGates['groups']): string {
  if (rate === 0 && groups.length === 0) return '';
  const beginnings = groups.flatMap(([name]) => (name.endsWith('*') ? [name.length - 1] : []));
  const lengths = [...new Set(beginnings)].sort((a, b) => b - a).join(',');
  const digest = createHash('sha256').update(JSON.stringify(groups)).digest('hex').slice(0, 12);
  const burst = rate === 0 ? 1 : rate.burst;
  return ` ${Number(microsOf(rate).toFixed(3))} ${burst} ${groups.length === 0 ? '-' : lengths || '0'} ${digest}`;
}

/**
 * Refuses what the partitions of a queue cannot share, and what its deliveries cannot keep.
 *
 * @throws DuestreamError `bad-input`
 */
export function checkGateSettings(
  queue: string,
  { concurrency = 0, perGroup = 0, ...more }: GateSettings,
  of: { readonly partitions: number; readonly isBroadcast?: boolean; readonly delivery?: string },
): void {
  const { partitions, isBroadcast = false, delivery } = of;
  if (isBroadcast && isGated({ concurrency: concurrency || undefined, perGroup: perGroup || undefined, ...more })) {
    throw new DuestreamError(
      'bad-input',
      `queue ${queue} is a broadcast queue, and every subscriber gets each of its jobs; allowed: rate, concurrency, perGroup and fair for queues of workers`,
    );
  }
  const single = Object.values(more.groups ?? {}).some((one) => (one.concurrency ?? 0) > 0);
  if (delivery === 'at-most-once' && (concurrency + perGroup > 0 || single)) {
    throw new DuestreamError(
      'bad-input',
      `queue ${queue} is at-most-once: its jobs are over before their handlers, so nobody can count what runs; allowed for it: rate and fair`,
    );
  }
  if (concurrency > 0 && concurrency < partitions) {
    throw new DuestreamError(
      'bad-input',
      `concurrency ${concurrency} of queue ${queue} cannot be divided among its ${partitions} partitions; allowed: ${partitions} or more; or perGroup ${concurrency}, and one group for all jobs that are to be limited, which is exact in any number of partitions; or a queue with one partition`,
    );
  }
}

/** The share of a partition, read. */
export interface GateShare {
  /** Microseconds per job; 0: no rate. */
  readonly intervalUs: number;
  readonly burst: number;
  /** 0: no such limit. */
  readonly concurrency: number;
  readonly perGroup: number;
  /** Of a queue with more partitions than a burst: this partition starts jobs at places in time of its own. */
  readonly places?: Places;
}

/** One place of each interval. */
interface Places {
  /** So long after the begin of the interval. */
  readonly phaseUs: number;
  /** A turn may be used for so long before its place. */
  readonly toleranceUs: number;
}

/** What a partition may let through, and when. */
export interface GateState extends GateShare {
  /** When the rate allows one job more, epoch ms; in the past: it does now. */
  readonly nextTurnMs: number;
  /** Nobody is let through before, epoch ms; 0: it was never closed. */
  readonly closedMs: number;
}

/** From the fields `gates` and `gate` of a partition, as `lua/lib/gate.lua` reads them; undefined: it is not gated. */
export function gateState(share: string | undefined, used: string, nowMs: number): GateState | undefined {
  if (share === undefined) return undefined;
  const gate = readShare(share);
  const [arrivalUs = 0, , , , closedMs = 0] = used.split(' ').map(Number);
  return { ...gate, nextTurnMs: nextTurnMs(gate, placeFrom(gate, arrivalUs, nowMs)), closedMs };
}

/** As `gateShare` writes it. While somebody sets the limits it says nothing. */
export function readShare(share: string): GateShare {
  const [intervalUs = 0, burst = 1, concurrency = 0, perGroup = 0] = share.startsWith('-')
    ? []
    : share.split(' ').map(Number);
  const [, nth, of, whole] = / s(\d+)\/(\d+)\/(\d+)/.exec(share) ?? [];
  const apartUs = intervalUs / Number(of);
  const places = nth !== undefined && {
    places: { phaseUs: Number(nth) * apartUs, toleranceUs: (Number(whole) - 0.5) * apartUs + DELAY_US },
  };
  return { intervalUs, burst, concurrency, perGroup, ...places };
}

// The rate is a GCRA, here as in `lua/lib/gate.lua`. The arrival, in epoch µs, is when the turns that were used would have been
// through at the rate. It may be ahead of now by what a burst and 50 ms of delay allow. Where a queue has more partitions than a
// burst, the arrival is one of the places that its partition has for itself, so that no two start at once.

/** For so long a job may be let through too late without making the next one late. */
const DELAY_US = 50_000;

/** Of a queue, or of a group. */
type Pace = Pick<GateShare, 'intervalUs' | 'burst' | 'places'>;

const toleranceUs = ({ intervalUs, burst, places }: Pace): number =>
  places?.toleranceUs ?? (burst - 1) * intervalUs + DELAY_US;

/** The arrival, or the first place of the partition that is not before it and not before now. */
function placeFrom({ intervalUs, places }: Pace, arrivalUs: number, nowMs: number): number {
  if (!places) return arrivalUs;
  const fromUs = Math.max(arrivalUs, nowMs * 1000) - 1 - places.phaseUs;
  return places.phaseUs + Math.ceil(fromUs / intervalUs) * intervalUs;
}

/**
 * How far ahead of now the arrival is by another rate, of which as many turns are used: what was started stays remembered.
 *
 * @param beforeUs microseconds per job of the rate before; 0: there was none
 */
export function aheadUs(pace: Pace, usedUs: number, beforeUs: number): number {
  const turnsUs = beforeUs > 0 ? (usedUs / beforeUs) * pace.intervalUs : usedUs;
  return Math.min(turnsUs, toleranceUs(pace) + pace.intervalUs);
}

/** When the rate allows one job more, epoch ms. */
export const nextTurnMs = (gate: Pace, arrivalUs: number): number => Math.ceil((arrivalUs - toleranceUs(gate)) / 1000);

/** How many jobs the rate allows now, and the arrival as it is now: one that is too far ahead, after a step of the clock, is cut. */
export function turnsAt(gate: Pace, arrivalUs: number, nowMs: number): { turns: number; arrivalUs: number } {
  if (gate.intervalUs === 0) return { turns: Number.POSITIVE_INFINITY, arrivalUs };
  const nowUs = nowMs * 1000;
  const latest = nowUs + toleranceUs(gate);
  // A microsecond is for what is lost in the sum of large numbers.
  const isTooFar = arrivalUs > latest + gate.intervalUs + 1;
  const arrival = placeFrom(gate, isTooFar ? latest : Math.max(arrivalUs, nowUs), nowMs);
  return { turns: Math.floor((latest - arrival) / gate.intervalUs) + 1, arrivalUs: arrival };
}

/** What lets no job through. */
export type Shut = 'queue-full' | 'queue-closed' | 'rate' | 'group-full' | 'group-closed' | 'group-rate';

/** What is asked about when somebody wants to know what lets no job through. */
interface ShutAt {
  /** How many jobs have a place of the concurrency. */
  readonly entries: number;
  /** How many have one of the limit of the group. */
  readonly held: number;
  /** What the group may have; undefined where no group is asked about. */
  readonly group: { readonly most: number; readonly nextTurnMs: number; readonly closedMs: number } | undefined;
  /** When a job of the partition was started last; undefined: nobody knows. */
  readonly startedMs?: number | undefined;
  readonly nowMs: number;
}

/**
 * Which limits let no job through now, the one that counts first: a closing ends when somebody says so, a place when a handler
 * ends, and a turn of a rate comes by itself. But a rate counts before places where the last job that started had waited for
 * its turn: then places are free in time, and turns are not. So the answer stays the same while nothing changes, although a
 * rate is shut for a moment after each start.
 */
export function shutBy(gate: GateState, now: ShutAt): readonly Shut[] {
  const { intervalUs, concurrency, nextTurnMs: turnMs, closedMs } = gate;
  const { entries, held, group, nowMs } = now;
  const all: Readonly<Record<Shut, boolean>> = {
    'queue-closed': closedMs > nowMs,
    'group-closed': group !== undefined && group.closedMs > nowMs,
    'group-full': group !== undefined && group.most > 0 && held >= group.most,
    'queue-full': concurrency > 0 && entries >= concurrency,
    'group-rate': group !== undefined && group.nextTurnMs > nowMs,
    rate: intervalUs > 0 && turnMs > nowMs,
  };
  const places = ['group-full', 'queue-full'] as const;
  const turns =
    turnMs > (group?.nextTurnMs ?? 0) ? (['rate', 'group-rate'] as const) : (['group-rate', 'rate'] as const);
  const rest = isAtPace(gate, now.startedMs) ? [...turns, ...places] : [...places, ...turns];
  return (['queue-closed', 'group-closed', ...rest] as const).filter((kind) => all[kind]);
}

/** The limit that holds the jobs in line of a partition. */
export const HELD_BY = ['queue-closed', 'queue-full', 'rate', 'group-full'] as const;
export type HeldBy = (typeof HELD_BY)[number];

/** What is known of the line of a partition. */
export interface Line {
  readonly waiting: number;
  /** Undefined: the queue is not gated. */
  readonly gate: GateState | undefined;
  /** Entries in ready. */
  readonly entries: number;
  /** Lanes in which somebody may have a turn. */
  readonly openLanes: number;
  readonly startedMs: number | undefined;
  readonly nowMs: number;
}

/**
 * The limits that hold the jobs in line of a partition, the one that counts first. None where no job waits, or where all wait
 * for a worker. Where no lane is open, all groups that have somebody in line are full or closed, or wait for a turn of their rate.
 */
export function holdersOfLine(line: Line): readonly HeldBy[] {
  const { waiting, gate, entries, openLanes, startedMs, nowMs } = line;
  if (waiting === 0 || !gate) return [];
  const group = openLanes === 0 ? { most: 1, nextTurnMs: 0, closedMs: 0 } : undefined;
  const shut = shutBy(gate, { entries, held: 1, group, startedMs, nowMs });
  const held = shut.flatMap((kind) => HELD_BY.find((one) => one === kind) ?? []);
  return held.length === 0 && isPaced(gate, nowMs) ? ['rate'] : held;
}

/** A rate that has allowed a start for so long holds nobody. */
const UNUSED_MS = 1000;
/** Times of the rate are rounded to whole ms. */
const ROUNDED_MS = 2;

/** Whether the rate is what holds jobs that nothing else holds: it is shut, or was until a moment ago. */
const isPaced = ({ intervalUs, nextTurnMs: turnMs }: GateState, nowMs: number): boolean =>
  intervalUs > 0 && turnMs > nowMs - UNUSED_MS;

/**
 * Whether the last job that started had waited for its turn. A start uses a turn from now on where the rate was free, and
 * from the arrival on where it was not: then the arrival is further ahead of the start than by one turn.
 */
function isAtPace(gate: GateState, startedMs: number | undefined): boolean {
  if (gate.intervalUs === 0 || startedMs === undefined) return false;
  const aheadMs = gate.nextTurnMs + toleranceUs(gate) / 1000 - startedMs;
  return aheadMs > gate.intervalUs / 1000 + ROUNDED_MS;
}

/** A rate for people: `10/s`, `7 per 1m, burst 3`. */
export function rateText({ limit, perMs, burst }: Rate): string {
  const unit = Object.entries(UNITS_MS).find(([, ms]) => ms === perMs)?.[0];
  const text = unit === undefined ? `${limit} per ${durationText(perMs)}` : `${limit}/${unit}`;
  return burst === 1 ? text : `${text}, burst ${burst}`;
}

/** A rate as it is said, so that it can be said again. @example rateInput({ limit: 10, perMs: 1000, burst: 1 }) // '10/s' */
export function rateInput({ limit, perMs, burst }: Rate): RateInput {
  const text = rateText({ limit, perMs, burst });
  return burst === 1 && text.includes('/') ? (text as RateInput) : { limit, per: durationText(perMs), burst };
}

/**
 * All limits of a gated queue in short.
 *
 * @param noteOf what is to be said of one of them, also of one that was taken back
 * @example limitsText({ rate: 0, concurrency: 5, perGroup: 1 }) // '5 at once · 1 per group'
 */
export function limitsText(settings: GateSettings, noteOf: (name: keyof GateSettings) => string = () => ''): string {
  const { rate, concurrency, perGroup, groupRate, groupPending, groups = {}, fair } = settings;
  const own = Object.keys(groups).length;
  const part = (name: keyof GateSettings, text: string | undefined) => {
    const note = noteOf(name);
    if (text === undefined) return note === '' ? [] : [`no ${LIMITS[name] ?? name}${note}`];
    return [text + note];
  };
  const parts = [
    ...part('rate', rate ? rateText(rate) : undefined),
    ...part('concurrency', concurrency ? `${concurrency} at once` : undefined),
    ...part('perGroup', perGroup ? `${perGroup} per group` : undefined),
    ...part('groupRate', groupRate ? `${rateText(groupRate)} per group` : undefined),
    ...part('groupPending', groupPending ? `${groupPending} pending per group` : undefined),
    ...part('groups', own > 0 ? `${own} of their own` : undefined),
    ...part('fair', fair && 'fair'),
  ];
  return parts.length === 0 ? 'none' : parts.join(' · ');
}

const LIMITS: { readonly [Name in keyof GateSettings]?: string } = {
  concurrency: 'limit at once',
  perGroup: 'limit per group',
  groupRate: 'rate per group',
  groupPending: 'limit of pending per group',
  groups: 'groups of their own',
};
