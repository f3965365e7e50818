/** What a check of `doctor` is handed, and what it says. */
import type { DoneLimits } from '../../config/done.ts';
import type { Redis } from '../../redis/connection/connect.ts';

export interface Finding {
  readonly status: 'ok' | 'warn' | 'fail';
  readonly saw: string;
  /** What to do; undefined when all is well. */
  readonly advice?: string;
}

/** INFO as names and values. */
export type Info = ReadonlyMap<string, string>;

export interface Subject {
  readonly redis: Redis;
  /** Empty when INFO is forbidden. */
  readonly info: Info;
  readonly namespace: string;
  readonly horizonMs: number;
  /** How long ends are to be remembered. */
  readonly done: DoneLimits;
}

export interface Check {
  readonly name: string;
  /** Says nothing without INFO. */
  readonly needsInfo?: boolean;
  /** Looks at one server: in a cluster, at each master. */
  readonly perServer?: boolean;
  readonly look: (subject: Subject) => Promise<Finding> | Finding;
}
