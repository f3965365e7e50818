/** Redis and the way to it are broken, and nothing is lost, early, twice or stuck. */
import { describe } from 'vitest';
import { smoke } from '../../support/chaos-smoke.ts';

describe('nothing is lost, early, twice or stuck when', () => {
  smoke(['F21', 'F27']);
});
