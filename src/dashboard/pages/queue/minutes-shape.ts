/** What the leader keeps by the minute, as the API answers it: columns of equal length, oldest first. */

export interface Spread {
  readonly count: readonly number[];
  readonly p50Ms: readonly (number | null)[];
  readonly p99Ms: readonly (number | null)[];
}

export interface SpreadTotal {
  readonly count: number;
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
}

export type Counted = 'scheduled' | 'promoted' | 'done' | 'retried' | 'deferred' | 'dead' | 'cancelled' | 'expired';

export interface Minutes {
  /** False: nobody keeps them. */
  readonly on: boolean;
  readonly startMs: number;
  readonly stepMs: number;
  readonly counts: Readonly<Record<Counted, readonly number[]>>;
  readonly known: readonly boolean[];
  readonly promotion: Spread;
  readonly start: Spread;
  readonly run: Spread;
  readonly total: { readonly promotion: SpreadTotal; readonly start: SpreadTotal; readonly run: SpreadTotal };
}

/** What the API says of times above its last bound, which nobody has told apart. */
const LONGEST_MS = 300_000;

/** A percentile, which is estimated from bounds: `≈ 1.5 s`, `< 1 ms`, `> 5 min`. */
export function percentileText(ms: number | null): string {
  const text = latenessText(ms);
  return ms !== null && ms >= 1 && ms < LONGEST_MS ? `≈ ${text}` : text;
}

/** `2 ms`, `1.5 s`, or a dash where nothing started. */
export function latenessText(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–';
  if (ms >= LONGEST_MS) return '> 5 min';
  if (ms > 0 && ms < 1) return '< 1 ms';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : `${(ms / 60_000).toFixed(1)} min`;
}
