/** A moment of a job in a sentence: `Fri 27 Nov 09:00:00`, with its year where that is another. */
import { dayMonthText, isInstant, localText, secondText, utcText, weekDayMonthYearText } from '../../parts/clock.ts';

export function whenText(atMs: number): string {
  if (!isInstant(atMs)) return String(atMs);
  const isNear = new Date(atMs).getFullYear() === new Date().getFullYear();
  return `${(isNear ? dayMonthText : weekDayMonthYearText)(atMs)} ${secondText(atMs)}`.replaceAll(',', '');
}

export function When({ atMs }: { readonly atMs: number }) {
  return (
    <time dateTime={utcText(atMs)} title={`${localText(atMs)} · ${utcText(atMs)}`}>
      {whenText(atMs)}
    </time>
  );
}
