/** A leader is killed, a worker, and Redis, and replies get lost: nothing is lost, early, twice or stuck. */
import { describe } from 'vitest';
import { smoke } from '../../support/chaos-smoke.ts';

describe('nothing is lost, early, twice or stuck when', () => {
  smoke(['F1', 'F2', 'F21', 'F27']);
});
