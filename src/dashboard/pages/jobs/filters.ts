/** What the list of jobs shows, as it stands in the address: so a list can be sent to somebody, or kept. */
import type { Schemas } from '../../api-types.ts';

export const LIVE = ['scheduled', 'waiting', 'ready', 'running'] as const;
export const STATES = [...LIVE, 'done', 'cancelled', 'expired', 'dead'] as const;

/** As typed; empty: any. Instants are ISO 8601 with an offset. */
export interface JobFilter {
  readonly state: string;
  readonly tag: string;
  readonly set: string;
  readonly name: string;
  readonly idPrefix: string;
  readonly dueFrom: string;
  readonly dueTo: string;
}

export const filterFrom = (query: URLSearchParams): JobFilter => ({
  state: query.get('state') ?? 'scheduled',
  tag: query.get('tag') ?? '',
  set: query.get('set') ?? '',
  name: query.get('name') ?? '',
  idPrefix: query.get('idPrefix') ?? '',
  dueFrom: query.get('dueFrom') ?? '',
  dueTo: query.get('dueTo') ?? '',
});

/** Jobs that are over cannot be cancelled, moved or run: a bulk action needs states that live. */
export const isLive = ({ state }: JobFilter): boolean =>
  state.split(',').every((one) => LIVE.some((live) => live === one));

/** For the body of a bulk action. */
export function bodyOf({ state, ...rest }: JobFilter): Schemas['JobFilter'] {
  const given = Object.entries(rest).filter(([, value]) => value !== '');
  const wanted = state.split(',');
  return { state: LIVE.filter((live) => wanted.includes(live)), ...Object.fromEntries(given) };
}

/** What a field of a form of the browser says (`2026-11-22T23:00`, a local time) as an instant with its offset. */
export function instantOf(local: string): string {
  if (local === '') return '';
  const date = new Date(local);
  return Number.isNaN(date.getTime()) ? local : date.toISOString();
}

/** The other way. */
export function localOf(instant: string): string {
  const date = new Date(instant);
  if (instant === '' || Number.isNaN(date.getTime())) return '';
  const shifted = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 16);
}
