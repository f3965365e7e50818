/**
 * How much of a queue runs at once. A queue is *gated* from the first such setting on: its due jobs wait in line, and each is
 * let through when the rate, the concurrency of the queue and that of its group have room. The settings are stored in the
 * registry of queues; each partition has its share beside its jobs (`lua/lib/gate.lua`).
 */

import { createHash } from 'node:crypto';
import { DuestreamError } from '../kernel/errors.ts';
import { type GateName, type GateSettings, type GroupSettings, gateNames, shortOf } from './queue-settings.ts';
import { fasterFirst, type Rate, ratesOf } from './rate.ts';
import { type LentHere, lentIn } from './shared-limit.ts';

/** Somebody has said one of them: due jobs wait in line from then on. */
export const isGated = (settings: GateSettings): boolean => gateNames.some((name) => settings[name] !== undefined);

/** What a partition gets. */
export interface PartitionGates {
  /** As `K:meta` has it in `gates`. */
  readonly share: string;
  /** Groups with limits of their own, and these, as `K:groups` has them. */
  readonly groups: readonly (readonly [group: string, limits: string])[];
  /** Groups have a limit of pending jobs, so a new job of a group says in its record that it counts. */
  readonly isCounted?: boolean;
  /** Who was let through has its group until it is over, so a new job of a group that has no time gets it from its partition. */
  readonly isStrict?: boolean;
  /** A job may say what it costs, whether or not there is a rate now of which that could be more than one turn. */
  readonly takesCosts?: boolean;
  /** Older processes do not know all of it, so `paused` of the partition has a mark that keeps them from starting its jobs. */
  readonly isMarked?: boolean;
}

/**
 * The share of one of several partitions, as `K:meta` has it in `gates`: microseconds per job of the rate, burst, concurrency,
 * and limit per group; 0 for no limit. Then, where they are needed: what `lua/lib/own.lua` has to know; p and the limit of the
 * pending jobs of all groups; s, which partition it is, how many there are and the burst of all, where that is less than one for
 * each partition; r, the second of two rates, with its burst and the same of it; at the end s, for strict order, and sh, where a
 * dead letter holds its group as well; l and the names of limits that other queues have as well; c, where jobs may cost more than one
 * turn of a rate. The rates and the concurrency of a queue are divided exactly. A group is in one partition, so its limit is whole.
 * Undefined: the queue is not gated.
 *
 * `gateOf` of `lua/lib/gate.lua` reads the text with six patterns, and `groupRoomIn` of `lua/lib/group-quota.lua` its ` p`.
 *
 * @example gateShare({ rate: { limit: 10, perMs: 1000, burst: 1 }, perGroup: 1 }, { partition: 0, partitions: 1 })?.share // '100000 1 0 1'
 */
export function gateShare(
  settings: GateSettings,
  { partition, partitions }: { readonly partition: number; readonly partitions: number },
): PartitionGates | undefined {
  if (!isGated(settings)) return undefined;
  const { concurrency = 0, perGroup = 0 } = settings;
  const { first, places, second } = rateParts(settings, { partition, partitions });
  // @share-of-concurrency
  const most = concurrency === 0 ? 0 : Math.max(1, partOf(concurrency, { partition, partitions }));
  const groups = Object.entries(settings.groups ?? {}).map(([name, limits]) => [name, wordsOf(limits)] as const);
  const own = ownPart(settings.groupRate ?? 0, groups);
  const pending = countsGroups(settings) ? ` p${settings.groupPending ?? 0}` : '';
  const letters = isStrict(settings) ? (settings.groupOnDead === 'hold' ? ' sh' : ' s') : '';
  const shared = namesPart(settings);
  const costs = countsCosts(settings) ? ' c' : '';
  return {
    share: `${first} ${most} ${perGroup}${own}${pending}${places}${second}${letters}${shared}${costs}`,
    groups,
    ...(pending !== '' && { isCounted: true }),
    ...(letters !== '' && { isStrict: true }),
    ...(settings.costs && { takesCosts: true }),
    ...(second + letters + shared + costs !== '' && { isMarked: true }),
  };
}

interface Portion {
  readonly partition: number;
  readonly partitions: number;
}

const partOf = (whole: number, { partition, partitions }: Portion): number =>
  Math.floor(whole / partitions) + (partition < whole % partitions ? 1 : 0);

/**
 * What a share says of rates. Of two the faster one is first. Where both have bursts of less than one for each partition, the slower
 * one alone has places in time: a job would have to wait until a place of the one and a place of the other come together.
 */
function rateParts({ rate = 0 }: GateSettings, of: Portion) {
  const [one, other] = fasterFirst(ratesOf(rate));
  const { partition, partitions } = of;
  const words = (rate: Rate) =>
    [Number((microsOf(rate) * partitions).toFixed(3)), Math.max(1, partOf(rate.burst, of))] as const;
  const placesOf = (rate: Rate | undefined) =>
    rate !== undefined && rate.burst < partitions ? `${partition}/${partitions}/${rate.burst}` : '';
  const [own, others] = [placesOf(one), placesOf(other)];
  return {
    first: one ? words(one).join(' ') : '0 1',
    places: own === '' || others !== '' ? '' : ` s${own}`,
    second: other ? ` r${words(other).join(',')}${others === '' ? '' : `,${others}`}` : '',
  };
}

/** What older processes do not know, for which they are kept from starting jobs of the queue; undefined: nothing. */
export function unknownToOlder(settings: GateSettings): string | undefined {
  const { groupOrder, rate, limits = [] } = settings;
  if (groupOrder === 'strict') return 'strict order';
  if (ratesOf(rate).length > 1) return 'two rates';
  if (limits.length > 0) return 'limits that other queues share';
  return countsCosts(settings) ? 'costs' : undefined;
}

/** The limits that other queues have as well, where there are some. */
const namesPart = ({ limits = [] }: GateSettings): string => (limits.length === 0 ? '' : ` l${limits.join(',')}`);

/** Whether jobs may cost more than one turn: the queue says so, and has a rate, or its groups do. */
const countsCosts = ({ costs, rate = 0, groupRate = 0, groups = {} }: GateSettings): boolean =>
  costs === true && (rate !== 0 || groupRate !== 0 || Object.values(groups).some((one) => (one.rate ?? 0) !== 0));

/** Whether jobs of a group start one after the other, over retries too. */
export const isStrict = ({ perGroup, groupOrder }: GateSettings): boolean => groupOrder === 'strict' && perGroup === 1;

/** Whether a new job of a group counts in it: there is a limit of the pending jobs of all groups, or of some. */
export const countsGroups = ({ groupPending = 0, groups = {} }: GateSettings): boolean =>
  groupPending > 0 || Object.values(groups).some(({ maxPending = 0 }) => maxPending > 0);

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
  checkOrder(queue, { perGroup, ...more });
  if (concurrency > 0 && concurrency < partitions) {
    throw new DuestreamError(
      'bad-input',
      `concurrency ${concurrency} of queue ${queue} cannot be divided among its ${partitions} partitions; allowed: ${partitions} or more; or perGroup ${concurrency}, and one group for all jobs that are to be limited, which is exact in any number of partitions; or a queue with one partition`,
    );
  }
}

/** @throws DuestreamError `bad-input` */
function checkOrder(queue: string, { perGroup = 0, groupOrder, groupOnDead, groups = {} }: GateSettings): void {
  const isOrdered = groupOrder === 'strict';
  if (isOrdered && perGroup !== 1) {
    throw new DuestreamError(
      'bad-input',
      `queue ${queue} has order: 'strict' and ${perGroup === 0 ? 'no concurrency of its groups' : `concurrency ${perGroup} of its groups`}; allowed: perGroup: { concurrency: 1, order: 'strict' }, as its jobs start one after the other`,
    );
  }
  const [name, own] = Object.entries(groups).find(([, { concurrency = 1 }]) => isOrdered && concurrency !== 1) ?? [];
  if (name !== undefined) {
    throw new DuestreamError(
      'bad-input',
      `group ${name} of queue ${queue} has concurrency ${own?.concurrency === 0 ? 'false' : own?.concurrency}, and the queue has order: 'strict'; allowed: concurrency 1, or a second queue for it`,
    );
  }
  if (groupOnDead === 'hold' && !isOrdered) {
    throw new DuestreamError(
      'bad-input',
      `queue ${queue} has onDead: 'hold' without an order; allowed: perGroup: { concurrency: 1, order: 'strict', onDead: 'hold' }`,
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
  /** Of two rates the slower one: both hold. */
  readonly second?: Pace;
  /** Jobs of a group start in strict order. */
  readonly isStrict?: true;
  /** The limits that its queue shares with others; undefined: none. */
  readonly shared?: readonly string[];
  /** A job may cost more than one turn. */
  readonly hasCosts?: true;
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
  /** When the rates allow one job more, epoch ms; in the past: they do now. */
  readonly nextTurnMs: number;
  /** Of two rates, when the first does; and the second. */
  readonly firstTurnMs?: number;
  readonly second?: RateState;
  /** Nobody is let through before, epoch ms; 0: it was never closed. */
  readonly closedMs: number;
  /** What it has of each limit that its queue shares with others; undefined: there are none, or nobody has looked. */
  readonly lent?: readonly LentHere[];
}

/** A rate of a partition, and when it allows one job more, epoch ms. */
export type RateState = Pace & { readonly nextTurnMs: number };

/** One by one; none: the partition has no rate. */
export function ratesIn(gate: GateState): readonly RateState[] {
  const { intervalUs, burst, places, nextTurnMs, firstTurnMs = nextTurnMs, second } = gate;
  if (intervalUs === 0) return [];
  const first = { intervalUs, burst, nextTurnMs: firstTurnMs, ...(places && { places }) };
  return second ? [first, second] : [first];
}

/** How many jobs a rate would let start at once. */
export function turnsFree({ intervalUs, burst, nextTurnMs }: RateState, nowMs: number): number {
  return nextTurnMs > nowMs ? 0 : Math.min(burst, Math.floor(((nowMs - nextTurnMs) * 1000) / intervalUs) + 1);
}

/** The fields of `K:meta` that say it, and what they say. */
export interface GateTexts {
  readonly gates?: string | null | undefined;
  readonly gate?: string | null | undefined;
  /** The arrival of the second of two rates. */
  readonly gate2?: string | null | undefined;
  /** What ledgers of limits have lent it. */
  readonly lent?: string | null | undefined;
}

/** As `lua/lib/gate.lua` reads them; undefined: it is not gated. */
export function gateState({ gates, gate: used, gate2, lent: has }: GateTexts, nowMs: number): GateState | undefined {
  if (!gates) return undefined;
  const gate = readShare(gates);
  const { second, ...own } = gate;
  const lent = own.shared && has !== undefined && lentIn(has ?? '', { names: own.shared, nowMs });
  const share = { ...own, ...(lent && { lent }) };
  const [arrivalUs = 0, , , , closedMs = 0] = (used ?? '').split(' ').map(Number);
  const turnOf = (pace: Pace, fromUs: number) => nextTurnMs(pace, placeFrom(pace, fromUs, nowMs));
  const firstTurnMs = turnOf(gate, arrivalUs);
  if (!second) return { ...share, nextTurnMs: firstTurnMs, closedMs };
  const secondTurnMs = turnOf(second, Number(gate2 ?? 0));
  const state = { ...second, nextTurnMs: secondTurnMs };
  return { ...share, nextTurnMs: Math.max(firstTurnMs, secondTurnMs), firstTurnMs, second: state, closedMs };
}

/** As `gateShare` writes it. While somebody sets the limits it says nothing. */
export function readShare(share: string): GateShare {
  const [intervalUs = 0, burst = 1, concurrency = 0, perGroup = 0] = share.startsWith('-')
    ? []
    : share.split(' ').map(Number);
  const [, own] = / s(\d+\/\d+\/\d+)/.exec(share) ?? [];
  const [, secondUs, secondBurst, others] = / r([\d.]+),(\d+)(?:,(\S+))?/.exec(share) ?? [];
  const second = secondUs !== undefined && paceOf(Number(secondUs), Number(secondBurst), others);
  const shared = / l(\S+)/.exec(share)?.[1]?.split(',');
  const isStrict = / sh?( |$)/.test(share);
  const hasCosts = / c( |$)/.test(share);
  const marked = { ...(isStrict && { isStrict }), ...(shared && { shared }), ...(hasCosts && { hasCosts }) };
  const limits = { concurrency, perGroup, ...marked };
  return { ...paceOf(intervalUs, burst, own), ...limits, ...(second && { second }) };
}

/** @param text which partition it is, how many there are, and the burst of all; undefined: it has no places of its own */
function paceOf(intervalUs: number, burst: number, text: string | undefined): Pace {
  if (text === undefined) return { intervalUs, burst };
  const [nth = 0, of = 1, whole = 1] = text.split('/').map(Number);
  const apartUs = intervalUs / of;
  return { intervalUs, burst, places: { phaseUs: nth * apartUs, toleranceUs: (whole - 0.5) * apartUs + DELAY_US } };
}

// The rate is a GCRA, here as in `lua/lib/gate.lua`. The arrival, in epoch µs, is when the turns that were used would have been
// through at the rate. It may be ahead of now by what a burst and 50 ms of delay allow. Where a queue has more partitions than a
// burst, the arrival is one of the places that its partition has for itself, so that no two start at once.

/** For so long a job may be let through too late without making the next one late. */
const DELAY_US = 50_000;

/** Of a queue, or of a group. */
export type Pace = Pick<GateShare, 'intervalUs' | 'burst' | 'places'>;

const toleranceUs = ({ intervalUs, burst, places }: Pace): number =>
  places?.toleranceUs ?? (burst - 1) * intervalUs + DELAY_US;

/** The arrival, or the first place of the partition that is not before it and not before now. */
function placeFrom({ intervalUs, places }: Pace, arrivalUs: number, nowMs: number): number {
  if (!places) return arrivalUs;
  const fromUs = Math.max(arrivalUs, nowMs * 1000) - 1 - places.phaseUs;
  return places.phaseUs + Math.ceil(fromUs / intervalUs) * intervalUs;
}

/** When the rate allows one job more, epoch ms. */
export const nextTurnMs = (gate: Pace, arrivalUs: number): number => Math.ceil((arrivalUs - toleranceUs(gate)) / 1000);

/** The same of a rate that was used up to an arrival. A partition with places of its own has the next of these. */
export const nextTurnFrom = (pace: Pace, arrivalUs: number, nowMs: number): number =>
  nextTurnMs(pace, placeFrom(pace, arrivalUs, nowMs));

/** The arrival once one job more has started, now. */
export const arrivalAfter = (pace: Pace, arrivalUs: number, nowMs: number): number =>
  (pace.places ? placeFrom(pace, arrivalUs, nowMs) : Math.max(arrivalUs, nowMs * 1000)) + pace.intervalUs;

/** The arrival of a rate whose next turn is known, to within a millisecond. */
export const arrivalOf = (pace: Pace, turnMs: number): number => turnMs * 1000 + toleranceUs(pace);

/** What a turn takes the clock of a priority on, high first: so priorities come in turns of 16 : 4 : 1. */
export const TURN_STEPS = [1, 4, 16] as const;

/** What a group may have. */
export interface GroupShare extends Pick<GateShare, 'intervalUs' | 'burst'> {
  /** How many of its jobs may run; 0: any number. */
  readonly most: number;
  /** So many turns it has where another has one. */
  readonly weight: number;
}

/** The limits of a group: its own count by its name, then by the longest beginning of it, then those of all groups. */
export function groupShare({ perGroup = 0, groupRate = 0, groups = {} }: GateSettings, group: string): GroupShare {
  if (group === '') return { most: 0, weight: 1, intervalUs: 0, burst: 1 };
  const { concurrency = perGroup, rate = groupRate, weight = 1 } = ownLimits(groups, group);
  return { most: concurrency, weight, intervalUs: microsOf(rate), burst: rate === 0 ? 1 : rate.burst };
}

function ownLimits(groups: Readonly<Record<string, GroupSettings>>, group: string): GroupSettings {
  const beginnings = Array.from(group, (_, at) => `${group.slice(0, group.length - at)}*`);
  const name = [group, ...beginnings].find((one) => Object.hasOwn(groups, one));
  return (name !== undefined && groups[name]) || {};
}

/** What lets no job through. */
export type Shut = 'queue-full' | 'queue-closed' | 'rate' | 'group-full' | 'group-closed' | 'group-rate' | 'shared';

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
 * rate is shut for a moment after each start. A limit that other queues share counts where nothing else does, as its leader asks
 * for it only then.
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
    // Judged below, where nothing else is shut.
    shared: false,
  };
  const places = ['group-full', 'queue-full'] as const;
  const turns =
    turnMs > (group?.nextTurnMs ?? 0) ? (['rate', 'group-rate'] as const) : (['group-rate', 'rate'] as const);
  const rest = isAtPace(gate, now.startedMs) ? [...turns, ...places] : [...places, ...turns];
  const shut = (['queue-closed', 'group-closed', ...rest] as const).filter((kind) => all[kind]);
  return shut.length === 0 && spentIn(gate, entries).length > 0 ? ['shared'] : shut;
}

/** The limits that its queue shares with others and that have no room here now: no turn that has not ended, or no place. */
export const spentIn = ({ lent = [] }: Pick<GateState, 'lent'>, entries: number): readonly string[] =>
  lent.filter((one) => (one.kind === 'concurrency' ? one.share - entries : one.turns) <= 0).map(({ name }) => name);

/** The limit that holds the jobs in line of a partition. */
export const HELD_BY = ['queue-closed', 'queue-full', 'rate', 'group-full', 'shared'] as const;
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
  if (startedMs === undefined) return false;
  return ratesIn(gate).some((rate) => {
    const aheadMs = rate.nextTurnMs + toleranceUs(rate) / 1000 - startedMs;
    return aheadMs > rate.intervalUs / 1000 + ROUNDED_MS;
  });
}

/**
 * All limits of a gated queue in short.
 *
 * @param noteOf what is to be said of one of them, also of one that was taken back
 * @example limitsText({ rate: 0, concurrency: 5, perGroup: 1 }) // '5 at once · 1 per group'
 */
export function limitsText(settings: GateSettings, noteOf: (name: GateName) => string = () => ''): string {
  const parts = shortOf(settings).flatMap(({ name, some, none }) => {
    const note = noteOf(name);
    if (some === undefined) return note === '' ? [] : [`no ${none}${note}`];
    return [some + note];
  });
  return parts.length === 0 ? 'none' : parts.join(' · ');
}
