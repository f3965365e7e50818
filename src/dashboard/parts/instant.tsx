/** An instant: how far away, the local time, and UTC for whoever points at it. */
import { localText, relativeText, utcText } from './words.ts';

export function Instant({ atMs, isLong = false }: { readonly atMs: number | undefined; readonly isLong?: boolean }) {
  if (atMs === undefined) return <span class="quiet">–</span>;
  return (
    <time dateTime={utcText(atMs)} title={`${localText(atMs)} · ${utcText(atMs)}`}>
      {isLong ? `${localText(atMs)} (${relativeText(atMs, Date.now())})` : relativeText(atMs, Date.now())}
    </time>
  );
}
