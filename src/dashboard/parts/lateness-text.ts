/** Lateness in words. */

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
