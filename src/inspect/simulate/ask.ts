/** What somebody asks of a simulation, read and checked. */
import {
  type GateSettings,
  parseSettings,
  type QueueSettingName,
  type QueueSettingOptions,
  settingOf,
  settingWords,
} from '../../job/queue-settings.ts';
import { checkNames, durationIn, wholeNumber } from '../../kernel/checks.ts';
import { type DurationInput, durationMs, instantMs, show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';

/** Settings that decide how much runs at once. */
export const simulatedWords: readonly QueueSettingName[] = settingWords.filter(
  (word) => settingOf(word).limits === 'line',
);

/** What somebody asks. What is left out is as it is. */
export interface SimulateAsk {
  /** As `queues.set` takes them, but only those that decide how much runs at once. */
  readonly settings?: QueueSettingOptions | undefined;
  /** How many workers. */
  readonly workers?: number | undefined;
  /** How many jobs of the queue each of them runs at a time. */
  readonly slots?: number | undefined;
  readonly runTime?: DurationInput | undefined;
  /** A duration from now, or ISO 8601. Default 24 hours. */
  readonly until?: string | undefined;
  /** What usual arrivals and run times follow from. Default 1. */
  readonly seed?: number | undefined;
}

/** The same, read. */
export interface Asked {
  readonly settings: GateSettings;
  readonly workers: number | undefined;
  readonly slots: number | undefined;
  readonly runMs: number | undefined;
  readonly untilMs: (nowMs: number) => number;
  readonly seed: number;
}

/** What the flags and the fields of a request may be. */
export const simulateRanges = {
  workers: { min: 1, max: 10_000 },
  slots: { min: 1, max: 10_000 },
  seed: { min: 0, max: 4_294_967_295 },
  runMs: { min: 1, max: 7 * 86_400_000 },
  untilMs: { min: 60_000, max: 31 * 86_400_000 },
} as const;

const UNTIL_OTHERWISE = '24h';

/** @throws DuestreamError `bad-input` */
export function parseAsk({
  settings = {},
  workers,
  slots,
  runTime,
  until = UNTIL_OTHERWISE,
  seed = 1,
}: SimulateAsk): Asked {
  checkNames(settings, simulatedWords, 'simulate', 'bad-input');
  const { runMs } = simulateRanges;
  return {
    settings: parseSettings(settings),
    workers: workers === undefined ? undefined : wholeNumber(workers, { what: 'workers', ...simulateRanges.workers }),
    slots: slots === undefined ? undefined : wholeNumber(slots, { what: 'slots', ...simulateRanges.slots }),
    runMs: runTime === undefined ? undefined : durationIn(runTime, 'run time', runMs),
    untilMs: untilIn(until),
    seed: wholeNumber(seed, { what: 'seed', ...simulateRanges.seed }),
  };
}

/** A duration counts from now. */
function untilIn(text: string): Asked['untilMs'] {
  const isInstant = /^\d{4}-/.test(text);
  const ms = isInstant ? instantMs(text, 'until') : durationMs(text.replace(/^\+/, ''), 'until');
  return (nowMs) => {
    const { min, max } = simulateRanges.untilMs;
    const aheadMs = isInstant ? ms - nowMs : ms;
    if (aheadMs >= min && aheadMs <= max) return nowMs + aheadMs;
    throw new DuestreamError(
      'bad-input',
      `until is ${show(text)}; allowed: 1m to 31d from now, or an instant within that`,
    );
  };
}
