/** The tests of a file run by a rhythm of their own, where a default would only be waited for. */
import { afterAll, beforeAll } from 'vitest';
import { RHYTHMS, type Rhythm } from '../../src/kernel/rhythm.ts';

/** Whoever is made by a test of this file looks as often as this says, and else as by default. */
export function useRhythm(own: Partial<Rhythm>): void {
  const before = { ...RHYTHMS.default };
  beforeAll(() => void Object.assign(RHYTHMS.default, own));
  // Files share a process.
  afterAll(() => void Object.assign(RHYTHMS.default, before));
}
