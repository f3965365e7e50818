import type { Jobs } from '../../redis/transitions/jobs.ts';
import type { WalkParts } from './walk.ts';

/** What a call by filter stands on. */
export interface FindingParts extends WalkParts {
  readonly jobs: Pick<Jobs, 'cancel' | 'reschedule' | 'edit'>;
  readonly horizonMs: number;
  readonly recordBytesMax: number;
}
