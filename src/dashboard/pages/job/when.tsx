/** A moment of a job in a sentence: `Fri 27 Nov 09:00:00`, with its year where that is another. */
import { localText, utcText } from '../../parts/words.ts';
import { language } from '../../words/words.ts';

const PARTS = {
  weekday: 'short',
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
} as const;
const TAG = language === 'en' ? 'en-GB' : language;
const NEAR = new Intl.DateTimeFormat(TAG, PARTS);
const FAR = new Intl.DateTimeFormat(TAG, { ...PARTS, year: 'numeric' });

/** What a calendar has: a due time may be any number. */
const isInstant = (atMs: number): boolean => Math.abs(atMs) <= 8.64e15;

export function whenText(atMs: number): string {
  if (!isInstant(atMs)) return String(atMs);
  const isNear = new Date(atMs).getFullYear() === new Date().getFullYear();
  return (isNear ? NEAR : FAR).format(atMs).replaceAll(',', '');
}

export function When({ atMs }: { readonly atMs: number }) {
  return (
    <time dateTime={utcText(atMs)} title={`${localText(atMs)} · ${utcText(atMs)}`}>
      {whenText(atMs)}
    </time>
  );
}
