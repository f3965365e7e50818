/** What a person is told who tries the target of a queue: how far one request came, step by step. */

import type { JobTargetInput } from './target.ts';

/** `names`: what the target names is there; `host`: it may be called; `address`: where its name leads; `answer`: what came back. */
export type TargetStepName = 'names' | 'host' | 'address' | 'answer';

export interface TargetStep {
  readonly step: TargetStepName;
  readonly isWell: boolean;
  /** One sentence, without a secret and without a full stop. */
  readonly text: string;
}

/** The job that the request stands for. */
export interface TargetAsk {
  readonly data: unknown;
  /** What it says of its request itself. */
  readonly target?: JobTargetInput | undefined;
}

/** One request that was sent to try a target; no job was made. */
export interface TargetTried {
  readonly queue: string;
  readonly method: string;
  readonly url: string;
  /** In their order; after one that is not well there is no more. */
  readonly steps: readonly TargetStep[];
  /** What it would have made of a job: `waits`, as this daemon cannot call the target at all. */
  readonly means: 'done' | 'retry' | 'put aside' | 'dead' | 'waits';
  /** Why, unless a job would be done. */
  readonly why?: string | undefined;
  readonly status?: number | undefined;
  readonly tookMs?: number | undefined;
  /** The beginning of the answer, where it may be kept. */
  readonly answer?: string | undefined;
}
