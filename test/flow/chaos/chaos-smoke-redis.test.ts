/** Redis and the way to it are broken, and nothing is lost, early, twice or stuck. */
import { describe } from 'vitest';
import { smoke } from '../../support/chaos-smoke.ts';

describe('nothing is lost, early, twice or stuck when', () => {
  smoke(['F21', 'F26', 'F27', 'F28', 'F33', 'F35', 'F36', 'F39']);
});
