/** The rates of a queue: none, one, or two that both hold. */
import type { Schemas } from '../api-types.ts';
import { durationText, numberText } from './words.ts';

type Limits = Schemas['QueueLimits'] | undefined;
type Rate = NonNullable<Schemas['QueueLimits']['rate']>;

/** One after the other. */
export const ratesOf = (limits: Limits): readonly Rate[] =>
  [limits?.rate, limits?.secondRate].flatMap((rate) => rate ?? []);

const UNITS_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** `10/s`, `7/90 s` */
function rateText({ limit, perMs }: Rate): string {
  const unit = Object.entries(UNITS_MS).find(([, ms]) => ms === perMs)?.[0];
  return `${numberText(limit)}/${unit ?? durationText(perMs)}`;
}

/** `10/s`, `10/s + 500/h` */
export const ratesText = (limits: Limits): string => ratesOf(limits).map(rateText).join(' + ');

/** How many may start in a time; undefined: the queue has no rate. Of two rates, each lets a burst start besides. */
export function mostIn(limits: Limits, ms: number): number | undefined {
  const rates = ratesOf(limits);
  const most = ({ limit, perMs, burst }: Rate) => (limit / perMs) * ms + (rates.length > 1 ? burst - 1 : 0);
  return rates.length === 0 ? undefined : Math.min(...rates.map(most));
}

/** How long so many jobs take by the rates; 0: there is none. */
export function timeFor(limits: Limits, jobs: number): number {
  const rates = ratesOf(limits);
  const time = ({ limit, perMs, burst }: Rate) =>
    (Math.max(0, jobs - (rates.length > 1 ? burst - 1 : 0)) / limit) * perMs;
  return Math.max(0, ...rates.map(time));
}
