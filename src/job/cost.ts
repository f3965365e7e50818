/** How many turns of a rate a job costs: what is allowed, and what a handler may say of it. */
import { type Range, wholeNumber } from '../kernel/checks.ts';

/** Of the option `cost`. */
export const costRange = { min: 1, max: 1000 } as const satisfies Range;

/** A start may turn out to have used none. */
export const spentRange = { min: 0, max: costRange.max } as const satisfies Range;

/** @throws DuestreamError `bad-input` */
export const parseSpent = (given: unknown): number => wholeNumber(given, { what: 'spent', ...spentRange });
