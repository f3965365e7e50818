/** Numbers as people read them: `2 h`, `3 jobs`. */

const STEPS = [
  { unit: 'd', ms: 86_400_000, from: 36 * 3_600_000 },
  { unit: 'h', ms: 3_600_000, from: 90 * 60_000 },
  { unit: 'min', ms: 60_000, from: 90_000 },
  { unit: 's', ms: 1000, from: 995 },
] as const;

/** A span in one unit, never more exact than a person needs. @example span(5_400_000) // '2 h' */
export function span(ms: number): string {
  const length = Math.abs(ms);
  const step = STEPS.find(({ from }) => length >= from);
  return step === undefined ? `${Math.round(length)} ms` : `${Math.round(length / step.ms)} ${step.unit}`;
}

/** `1 dead letter`, `2 dead letters` */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** A share from 0 to 1; what is not whole is never said to be. @example percent(0.999) // '99 %' */
export const percent = (share: number): string => `${share < 1 ? Math.min(99, Math.round(share * 100)) : 100} %`;
