/** An instant: how far away it is; the long form has the local time, and UTC beside it. Both are said to whoever points at it. */
import { localText, relativeText, utcBeside, utcText } from './words.ts';

export function Instant({ atMs, isLong = false }: { readonly atMs: number | undefined; readonly isLong?: boolean }) {
  if (atMs === undefined) return <span class="quiet">–</span>;
  const local = localText(atMs);
  const relative = relativeText(atMs, Date.now());
  const beside = isLong ? utcBeside(atMs, local) : '';
  return (
    <time dateTime={utcText(atMs)} title={`${local} · ${utcText(atMs)}`}>
      {isLong ? local : relative}
      {beside === '' ? null : <span class="quiet"> · {beside}</span>}
      {isLong ? ` (${relative})` : ''}
    </time>
  );
}
