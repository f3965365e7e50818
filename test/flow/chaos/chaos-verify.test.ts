/** More rows of the fault matrix than CI runs: nothing is lost, early, twice or stuck. */
import { describe } from 'vitest';
import { smoke } from '../../support/chaos-smoke.ts';

const PROCESSES = ['F4', 'F5', 'F10', 'F12', 'F13', 'F14', 'F39', 'F67', 'F69'];
const REDIS = ['F26', 'F28', 'F33', 'F35', 'F36'];
const LIMITS = ['F100', 'F101', 'F102', 'F104', 'F105', 'F106'];

describe('nothing is lost, early, twice or stuck when', () => {
  smoke([...PROCESSES, ...REDIS, ...LIMITS]);
});
