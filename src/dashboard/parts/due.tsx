/** A due time that somebody asks for: a delay from now, or a time on the clock of whoever looks. */
import { useLayoutEffect, useRef } from 'preact/hooks';
import { words } from '../words/words.ts';

/** For a body of the API: at most one of them. */
export type NewDue = Readonly<Partial<Record<'delay' | 'at', string>>>;

export const isDue = (due: NewDue): boolean => Object.keys(due).length > 0;

/** What is typed last counts, and empties the other. */
export function DueField({ due, setDue }: { readonly due: NewDue; readonly setDue: (due: NewDue) => void }) {
  const time = useRef<HTMLInputElement>(null);
  const isDelay = due.delay !== undefined;
  useLayoutEffect(() => {
    if (isDelay && time.current) time.current.value = '';
  }, [isDelay]);
  return (
    <div class="two-fields">
      <label class="field">
        {words.job.ask.delay}
        <input
          value={due.delay ?? ''}
          onInput={({ currentTarget: { value } }) => setDue(value.trim() === '' ? {} : { delay: value.trim() })}
        />
      </label>
      <label class="field">
        {words.job.ask.at}
        <input
          ref={time}
          type="datetime-local"
          onInput={({ currentTarget: { value } }) => setDue(value === '' ? {} : { at: instantOf(value) })}
        />
      </label>
    </div>
  );
}

/** A local time of the browser (`2026-11-22T23:00`) as an instant. */
export function instantOf(local: string): string {
  const date = new Date(local);
  return Number.isNaN(date.getTime()) ? local : date.toISOString();
}

/** @returns undefined for what is no delay, and for a time that is none */
export function dueMsOf({ delay, at }: NewDue, nowMs: number): number | undefined {
  const ms = at === undefined ? nowMs + delayMs(delay ?? '') : Date.parse(at);
  return Number.isFinite(ms) ? ms : undefined;
}

const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** The short form alone. The daemon reads ISO 8601 as well, and says what is allowed. */
function delayMs(text: string): number {
  const [, count = '', unit = ''] = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)$/.exec(text) ?? [];
  return count === '' ? Number.NaN : Number(count) * (UNITS[unit] ?? Number.NaN);
}
