/** By how much jobs move, or where to: and when the first and the last of them would be due then. */
import { useState } from 'preact/hooks';
import { ownZone } from '../../parts/clock.ts';
import { Icon } from '../../parts/icon.tsx';
import { words } from '../../words/words.ts';
import { instantOf } from './filters.ts';
import type { Row } from './list.tsx';
import { daysLater, dayText } from './times.ts';

/** Days move by the calendar of whoever looks: the hour of the clock stays. */
export type Move =
  | { readonly kind: 'by'; readonly ms: number; readonly text: string }
  | { readonly kind: 'days'; readonly days: number; readonly text: string }
  | { readonly kind: 'at'; readonly atMs: number };

const HOUR_MS = 3_600_000;
const CHOICES: readonly Exclude<Move, { kind: 'at' }>[] = [
  { kind: 'by', ms: HOUR_MS, text: '1h' },
  { kind: 'days', days: 1, text: '1d' },
  { kind: 'days', days: 7, text: '7d' },
];
const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: HOUR_MS };

/** @example moveOf('-90m') // { kind: 'by', ms: -5_400_000, text: '-90m' }; undefined for what is no shift */
export function moveOf(typed: string): Move | undefined {
  const [, sign = '', digits = '', unit = ''] =
    /^([+-]?)\s*(\d{1,6}(?:\.\d+)?)\s*(ms|s|m|h|d|w)$/.exec(typed.trim()) ?? [];
  const size = Number(digits) * (sign === '-' ? -1 : 1);
  if (digits === '' || size === 0) return undefined;
  const text = `${sign === '-' ? '-' : ''}${digits}${unit}`;
  if (unit !== 'd' && unit !== 'w') return { kind: 'by', ms: size * (UNITS[unit] ?? 1), text };
  const days = size * (unit === 'w' ? 7 : 1);
  return Number.isInteger(days) ? { kind: 'days', days, text } : { kind: 'by', ms: days * 24 * HOUR_MS, text };
}

export function moved(move: Move, dueMs: number): number {
  switch (move.kind) {
    case 'by':
      return dueMs + move.ms;
    case 'days':
      return daysLater(dueMs, move.days);
    case 'at':
      return move.atMs;
  }
}

/** @example byOf({ kind: 'days', days: 1, text: '1d' }) // by 1 day */
export const byOf = (move: Move): string =>
  move.kind === 'at' ? words.jobs.toTime(dayText(move.atMs, Date.now())) : words.jobs.by(nameOf(move));

function nameOf(move: Exclude<Move, { kind: 'at' }>): string {
  if (move.kind === 'days') return words.jobs.days(move.days);
  return move.text === '1h' ? words.jobs.hour : move.text;
}

interface Form {
  /** Those that can be moved, by due time. */
  readonly rows: readonly Row[];
  readonly move: Move | undefined;
  readonly set: (move: Move | undefined) => void;
}

type Own = 'shift' | 'at' | undefined;

export function MoveForm({ rows, move, set }: Form) {
  const [own, setOwn] = useState<Own>();
  const choose = (chosen: Own) => {
    setOwn(chosen);
    set(undefined);
  };
  return (
    <>
      <fieldset class="seg wide">
        <legend class="away">{words.jobs.byHowMuch}</legend>
        {CHOICES.map((one) => (
          <button
            key={one.text}
            type="button"
            aria-pressed={own === undefined && move !== undefined && move.kind !== 'at' && move.text === one.text}
            onClick={() => {
              setOwn(undefined);
              set(one);
            }}
          >
            + {nameOf(one)}
          </button>
        ))}
        <button type="button" aria-pressed={own === 'shift'} onClick={() => choose('shift')}>
          {words.jobs.another}
        </button>
        <button type="button" aria-pressed={own === 'at'} onClick={() => choose('at')}>
          {words.jobs.toOneTime}
        </button>
      </fieldset>
      {own === 'shift' ? (
        <label class="field">
          {words.jobs.shift}
          <input placeholder="2h, -90m, 3d" onInput={({ currentTarget }) => set(moveOf(currentTarget.value))} />
        </label>
      ) : null}
      {own === 'at' ? (
        <label class="field">
          {words.jobs.newDue}
          <input type="datetime-local" onInput={({ currentTarget }) => set(toTime(currentTarget.value))} />
        </label>
      ) : null}
      {move === undefined || rows.length === 0 ? null : <Ends rows={rows} move={move} />}
      {move === undefined ? null : <MoveNotes move={move} rows={rows} />}
    </>
  );
}

function toTime(local: string): Move | undefined {
  const atMs = Date.parse(instantOf(local));
  return Number.isNaN(atMs) ? undefined : { kind: 'at', atMs };
}

/** The first and the last: whoever moves reminders by a day sees where they land. */
function Ends({ rows, move }: { readonly rows: readonly Row[]; readonly move: Move }) {
  const nowMs = Date.now();
  const due = rows.map(({ dueMs = nowMs }) => dueMs).toSorted((one, other) => one - other);
  const ends =
    due.length === 1
      ? [['', due[0]] as const]
      : [[words.jobs.theFirst, due[0]] as const, [words.jobs.theLast, due.at(-1)] as const];
  return (
    <table class="list ends">
      <thead>
        <tr>
          <td />
          <th scope="col">{words.jobs.wasDue}</th>
          <th scope="col">{words.jobs.willBeDue}</th>
        </tr>
      </thead>
      <tbody>
        {ends.map(([name, ms = nowMs]) => (
          <tr key={name}>
            <td class="quiet">{name}</td>
            <td>{dayText(ms, nowMs)}</td>
            <td>
              <b>{dayText(Math.max(nowMs, moved(move, ms)), nowMs)}</b>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function MoveNotes({ rows, move }: { readonly rows: readonly Row[]; readonly move: Move }) {
  const nowMs = Date.now();
  const atOnce = rows.filter(({ dueMs = nowMs }) => moved(move, dueMs) <= nowMs).length;
  const notes = [
    ...(move.kind === 'days' ? [words.jobs.sameHour(ownZone())] : []),
    ...(move.kind === 'at' && rows.length > 1 ? [words.jobs.allAtOnce] : []),
    ...(atOnce > 0 ? [words.jobs.dueAtOnce(atOnce)] : []),
  ];
  return (
    <ul class="notes">
      {notes.map((note) => (
        <li key={note}>
          <Icon name="clock" />
          {note}
        </li>
      ))}
    </ul>
  );
}
