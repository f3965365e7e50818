/** The numbers at which a slider stops, and where among them a limit is. Pure. */

/** 1, 2, 3, 5, 7, 10, 15, 20, … up to a number: each step is felt alike, at 5 and at 5,000. */
export function stepsTo(max: number): readonly number[] {
  const steps = [1, 2, 3, 5, 7];
  for (let power = 10; power <= max; power *= 10) {
    steps.push(...[1, 1.5, 2, 3, 5, 7].map((one) => one * power));
  }
  return steps.filter((one) => one <= max);
}

const PER_SECOND: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** @example countOf('600/m') // 10 */
export function countOf(text: string): number | undefined {
  const [, count, unit] = /^(\d+(?:\.\d+)?)(?:\/([smhd]))?$/.exec(text) ?? [];
  return count === undefined ? undefined : Number(count) / (PER_SECOND[unit ?? 's'] ?? 1);
}

/** The step that is nearest; where there is no limit, the one behind the last. */
export function stepOf(steps: readonly number[], count: number | undefined): number {
  if (count === undefined) return steps.length;
  const away = (step: number) => Math.abs(Math.log(step) - Math.log(Math.max(count, 0.1)));
  return steps.reduce((best, step, at) => (away(step) < away(steps[best] ?? 1) ? at : best), 0);
}
