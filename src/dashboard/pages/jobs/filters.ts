/** What the list of jobs shows, as it stands in the address: so a list can be sent to somebody, or kept. */
import { queryOf } from '../../call.ts';
import type { Route } from '../../router.ts';

export const LIVE = ['scheduled', 'waiting', 'ready', 'running'] as const;
export const OVER = ['done', 'cancelled', 'expired', 'dead'] as const;
/** What can be chosen as a state. A job that failed and waits is in one of its own for whoever looks. */
export const STATES = [...LIVE, 'retry', ...OVER] as const;

/** As typed; empty: any. Instants are ISO 8601 with an offset. */
export interface JobFilter {
  /** One queue, or several with commas between them. */
  readonly queue: string;
  /** Empty: all states in which a job is not over. */
  readonly state: string;
  readonly tag: string;
  readonly set: string;
  readonly name: string;
  readonly id: string;
  readonly idPrefix: string;
  readonly dueFrom: string;
  readonly dueTo: string;
}

/** What can be taken out of a filter as a word: the others are chosen. */
export const WORDS = ['tag', 'set', 'name', 'id', 'idPrefix'] as const;

export function filterFrom({ path: [queue], query }: Pick<Route, 'path' | 'query'>): JobFilter {
  const of = (name: keyof JobFilter) => query.get(name) ?? '';
  return {
    queue: queue ?? of('queue'),
    state: of('state'),
    tag: of('tag'),
    set: of('set'),
    name: of('name'),
    id: of('id'),
    idPrefix: of('idPrefix'),
    dueFrom: of('dueFrom'),
    dueTo: of('dueTo'),
  };
}

/** @example whereOf({ queue: 'emails', state: 'ready', … }) // jobs/emails?state=ready */
export function whereOf({ queue = '', ...rest }: Partial<JobFilter>): string {
  return isOneQueue({ queue })
    ? `jobs/${encodeURIComponent(queue)}${queryOf(rest)}`
    : `jobs${queryOf({ queue, ...rest })}`;
}

export const isOneQueue = ({ queue }: Pick<JobFilter, 'queue'>): boolean => queue !== '' && !queue.includes(',');

/** What is typed into the filter: `tag:customer:42`, `name:receipt`, `queue:emails`, and how an id begins. */
const TYPED: Readonly<Record<string, keyof JobFilter>> = {
  tag: 'tag',
  name: 'name',
  set: 'set',
  id: 'id',
  queue: 'queue',
  state: 'state',
};

/** @example withTyped(filter, 'tag:customer:42 receipt') // { ...filter, tag: 'customer:42', idPrefix: 'receipt' } */
export function withTyped(filter: JobFilter, typed: string): JobFilter {
  const changed: Partial<Record<keyof JobFilter, string>> = {};
  for (const word of typed.trim().split(/\s+/)) {
    const at = word.indexOf(':');
    const field = TYPED[word.slice(0, Math.max(0, at))];
    if (word === '') continue;
    if (field !== undefined && at + 1 < word.length) changed[field] = word.slice(at + 1);
    else changed.idPrefix = word;
  }
  return { ...filter, ...changed };
}

/** What the API is asked for, which knows failures and no state of that name. */
export const askedOf = (filter: JobFilter): JobFilter & { readonly failed?: 'true' } =>
  filter.state === 'retry' ? { ...filter, state: 'scheduled,waiting', failed: 'true' } : filter;

/** Jobs that are over have no due time, so a filter by it goes when they are asked for. */
export const withState = (filter: JobFilter, state: string): JobFilter =>
  isLive({ state }) ? { ...filter, state } : { ...filter, state, dueFrom: '', dueTo: '' };

/** Jobs that are over cannot be cancelled, moved or run. */
export const isLive = ({ state }: Pick<JobFilter, 'state'>): boolean =>
  ['', 'retry'].includes(state) || state.split(',').every((one) => LIVE.some((live) => live === one));

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
