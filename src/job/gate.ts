/**
 * How much of a queue runs at once. A queue is *gated* from the first such setting on: its due jobs wait in line, and each is
 * let through when the rate, the concurrency of the queue and that of its group have room. The settings are stored in the
 * registry of queues; each partition has its share beside its jobs (`lua/lib/gate.lua`).
 */

import { checkNames, durationIn, gateRanges, wholeNumber } from '../kernel/checks.ts';
import { type DurationInput, durationText, show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';

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
  /** How many jobs of each group may run at a time: 1 to 1000. With 1, a group is a lock. `false` takes the limit back. */
  readonly perGroup?: number | false | undefined;
  /** Groups and priorities come in turns, also without a limit. */
  readonly fair?: true | undefined;
}

/** As they stand in the registry; 0: no such limit, undefined: nobody ever said anything. */
export interface GateSettings {
  readonly rate?: Rate | 0 | undefined;
  readonly concurrency?: number | undefined;
  readonly perGroup?: number | undefined;
  readonly fair?: true | undefined;
}

const UNITS_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const RATE_ALLOWED =
  'a text such as 10/s, 600/m, 100/h or 50/d, or { limit, per, burst } with a burst from 1 to 1000000; from 1 per day to 100000 per second';

/** @returns 0 for `false`, which takes the rate back. @throws DuestreamError `bad-input` */
export function parseRate(given: unknown): Rate | 0 | undefined {
  if (given === undefined) return undefined;
  if (given === false) return 0;
  const rate = typeof given === 'string' ? rateOfText(given) : rateOfObject(given);
  const perSecond = rate && (rate.limit * 1000) / rate.perMs;
  if (rate && perSecond !== undefined && perSecond >= 1 / 86_400 && perSecond <= 100_000) return Object.freeze(rate);
  throw new DuestreamError('bad-input', `rate is ${show(given)}; allowed: ${RATE_ALLOWED}`);
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
function parseMost(name: 'concurrency' | 'perGroup', given: unknown): number | undefined {
  if (given === undefined) return undefined;
  if (given === false) return 0;
  if (typeof given === 'number') return wholeNumber(given, { what: name, ...gateRanges[name] });
  const { min, max } = gateRanges[name];
  throw new DuestreamError(
    'bad-input',
    `${name} is ${show(given)}; allowed: a whole number from ${min} to ${max}, or false for no limit`,
  );
}

/** What of these options was said. @throws DuestreamError `bad-input` */
export function parseGates({ rate, concurrency, perGroup, fair }: GateOptions): GateSettings {
  if (fair !== undefined && fair !== true) {
    throw new DuestreamError('bad-input', `fair is ${show(fair)}; allowed: true. A gated queue stays gated`);
  }
  const said = { rate: parseRate(rate), concurrency: parseMost('concurrency', concurrency) };
  const most = parseMost('perGroup', perGroup);
  return {
    ...(said.rate !== undefined && { rate: said.rate }),
    ...(said.concurrency !== undefined && { concurrency: said.concurrency }),
    ...(most !== undefined && { perGroup: most }),
    ...(fair && { fair }),
  };
}

/** Somebody has said one of them: due jobs wait in line from then on. */
export const isGated = ({ rate, concurrency, perGroup, fair }: GateSettings): boolean =>
  (rate ?? concurrency ?? perGroup ?? fair) !== undefined;

/** What cannot be read was written by somebody else, and limits nothing. */
export function decodeGates(stored: {
  readonly rate?: string | null | undefined;
  readonly concurrency?: string | null | undefined;
  readonly perGroup?: string | null | undefined;
  readonly fair?: string | null | undefined;
}): GateSettings {
  const rate = decodeRate(stored.rate);
  const [concurrency, perGroup] = [decodeMost(stored.concurrency), decodeMost(stored.perGroup)];
  return {
    ...(rate !== undefined && { rate }),
    ...(concurrency !== undefined && { concurrency }),
    ...(perGroup !== undefined && { perGroup }),
    ...(stored.fair && { fair: true as const }),
  };
}

function decodeRate(text: string | null | undefined): Rate | 0 | undefined {
  if (text === '0') return 0;
  const [, limit, perMs, burst] = /^([1-9]\d{0,8}) ([1-9]\d{0,8}) ([1-9]\d{0,6})$/.exec(text ?? '') ?? [];
  return limit === undefined ? undefined : { limit: Number(limit), perMs: Number(perMs), burst: Number(burst) };
}

const decodeMost = (text: string | null | undefined): number | undefined =>
  /^\d{1,7}$/.test(text ?? '') ? Number(text) : undefined;

/** As each stands in its own field of the registry. */
export function encodeGates({ rate, concurrency, perGroup, fair }: GateSettings) {
  return {
    ...(rate !== undefined && { rate: rate === 0 ? '0' : `${rate.limit} ${rate.perMs} ${rate.burst}` }),
    ...(concurrency !== undefined && { concurrency: String(concurrency) }),
    ...(perGroup !== undefined && { perGroup: String(perGroup) }),
    ...(fair && { fair: '1' }),
  };
}

/**
 * The share of one of several partitions, as `K:meta` has it in `gates`: microseconds per job of the rate, burst, concurrency,
 * and limit per group; 0 for no limit. The rate and the concurrency of a queue are divided exactly. A group is in one
 * partition, so its limit is whole. Undefined: the queue is not gated.
 *
 * @example gateShare({ rate: { limit: 10, perMs: 1000, burst: 1 }, perGroup: 1 }, { partition: 0, partitions: 1 }) // '100000 1 0 1'
 */
export function gateShare(
  settings: GateSettings,
  { partition, partitions }: { readonly partition: number; readonly partitions: number },
): string | undefined {
  if (!isGated(settings)) return undefined;
  const { rate = 0, concurrency = 0, perGroup = 0 } = settings;
  const part = (whole: number) => Math.floor(whole / partitions) + (partition < whole % partitions ? 1 : 0);
  const micros = rate === 0 ? 0 : (rate.perMs * 1000 * partitions) / rate.limit;
  const burst = rate === 0 ? 1 : Math.max(1, part(rate.burst));
  const most = concurrency === 0 ? 0 : Math.max(1, part(concurrency));
  return `${Number(micros.toFixed(3))} ${burst} ${most} ${perGroup}`;
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
  if (delivery === 'at-most-once' && concurrency + perGroup > 0) {
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
}

/** What a partition may let through, and when. */
export interface GateState extends GateShare {
  /** When the rate allows one job more, epoch ms; in the past: it does now. */
  readonly nextTurnMs: number;
}

/** From the fields `gates` and `gate` of a partition, as `lua/lib/gate.lua` reads them; undefined: it is not gated. */
export function gateState(share: string | undefined, used = ''): GateState | undefined {
  if (share === undefined) return undefined;
  const gate = readShare(share);
  return { ...gate, nextTurnMs: nextTurnMs(gate, Number(/^[\d.]+/.exec(used)?.[0] ?? 0)) };
}

/** As `gateShare` writes it. While somebody sets the limits it says nothing. */
export function readShare(share: string): GateShare {
  const [intervalUs = 0, burst = 1, concurrency = 0, perGroup = 0] = share.startsWith('-')
    ? []
    : share.split(' ').map(Number);
  return { intervalUs, burst, concurrency, perGroup };
}

// The rate is a GCRA, here as in `lua/lib/gate.lua`. The arrival, in epoch µs, is when the turns that were used would have been
// through at the rate. It may be ahead of now by what a burst and 50 ms of delay allow.

const toleranceUs = ({ intervalUs, burst }: GateShare): number => (burst - 1) * intervalUs + 50_000;

/** When the rate allows one job more, epoch ms. */
export const nextTurnMs = (gate: GateShare, arrivalUs: number): number =>
  Math.ceil((arrivalUs - toleranceUs(gate)) / 1000);

/** How many jobs the rate allows now, and the arrival as it is now: one that is too far ahead, after a step of the clock, is cut. */
export function turnsAt(gate: GateShare, arrivalUs: number, nowMs: number): { turns: number; arrivalUs: number } {
  if (gate.intervalUs === 0) return { turns: Number.POSITIVE_INFINITY, arrivalUs };
  const [nowUs, tolerance] = [nowMs * 1000, toleranceUs(gate)];
  const arrival = Math.min(Math.max(arrivalUs, nowUs), nowUs + tolerance + gate.intervalUs);
  return { turns: Math.floor((tolerance - arrival + nowUs) / gate.intervalUs) + 1, arrivalUs: arrival };
}

/**
 * Which limits let no job through now.
 *
 * @param now.entries how many jobs have a place of the concurrency
 * @param now.held how many have one of the limit of the group; 0 where no group is asked about
 */
export function shutBy(
  { intervalUs, concurrency, perGroup, nextTurnMs }: GateState,
  { entries, held, nowMs }: { readonly entries: number; readonly held: number; readonly nowMs: number },
): readonly ('queue-full' | 'group-full' | 'rate')[] {
  return [
    ...(concurrency > 0 && entries >= concurrency ? (['queue-full'] as const) : []),
    ...(perGroup > 0 && held >= perGroup ? (['group-full'] as const) : []),
    ...(intervalUs > 0 && nextTurnMs > nowMs ? (['rate'] as const) : []),
  ];
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

/** All limits of a gated queue in short. @example limitsText({ rate: 0, concurrency: 5, perGroup: 1 }) // '5 at once · 1 per group' */
export function limitsText({ rate, concurrency, perGroup, fair }: GateSettings): string {
  const parts = [
    ...(rate ? [rateText(rate)] : []),
    ...(concurrency ? [`${concurrency} at once`] : []),
    ...(perGroup ? [`${perGroup} per group`] : []),
    ...(fair ? ['fair'] : []),
  ];
  return parts.length === 0 ? 'none' : parts.join(' · ');
}
