/** More rows of the fault matrix than CI runs: nothing is lost, early, twice or stuck. */
import { describe } from 'vitest';
import { smoke } from '../../support/chaos-smoke.ts';

/** Under limits. */
const LIMITS = ['F100', 'F101', 'F102', 'F104', 'F105', 'F106'];

describe('nothing is lost, early, twice or stuck when', () => {
  smoke(['F4', 'F5', 'F10', 'F12', 'F13', 'F14', 'F26', 'F28', 'F33', 'F35', 'F36', 'F39', 'F67', ...LIMITS]);
});
