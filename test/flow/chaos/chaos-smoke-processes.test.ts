/** Our own processes are killed, frozen, stopped and fed with nonsense, and nothing is lost, early, twice or stuck. */
import { describe } from 'vitest';
import { smoke } from '../../support/chaos-smoke.ts';

describe('nothing is lost, early, twice or stuck when', () => {
  smoke(['F1', 'F2', 'F69']);
});
