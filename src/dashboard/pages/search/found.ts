/** What a search finds, group by group. Jobs are asked for by their indexes alone: by tag and by id, never by what must be looked through. */
import { ask } from '../../api.ts';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import type { LiveQueue } from '../../live.ts';
import type { IconName } from '../../parts/icon.tsx';
import type { Needed } from '../../parts/may.tsx';
import type { StateName } from '../../parts/state.tsx';
import { numberText, relativeText, shortText } from '../../parts/words.ts';
import { PLACES } from '../../places.ts';
import { byTrouble, troubleOf } from '../../trouble.ts';
import { words } from '../../words/words.ts';
import { whereAt } from '../jobs/at.tsx';
import { type JobFilter, OVER, STATES, whereOf } from '../jobs/filters.ts';
import { stateOf } from '../jobs/list.tsx';
import { isForgetful } from '../jobs/missed.tsx';
import { dayText } from '../jobs/times.ts';
import { deedIn, hasWords, idIn, tagIn, timeIn } from './meant.ts';

export interface Hit {
  readonly href: string;
  readonly icon: IconName;
  /** Of a job. */
  readonly state?: StateName;
  readonly main: string;
  readonly note?: string;
  readonly right?: string;
}

export interface Group {
  readonly name: string;
  readonly hits: readonly Hit[];
}

/** What is asked once, when the search opens: it is looked through here. */
export interface Known {
  readonly queues: readonly LiveQueue[];
  readonly schedules: readonly string[];
  readonly workers: Schemas['Workers']['workers'];
  readonly kinds: Schemas['DeadLetterOverview']['kinds'];
  /** What the caller may do: nothing else is offered. */
  readonly may: (needed: Needed) => boolean;
}

const HITS_MAX = 5;
const JOBS_MAX = 6;

/** Of the pages and what is known already: shown with each letter. */
export function near(typed: string, known: Known, nowMs: number): readonly Group[] {
  const all = [
    { name: words.search.states, hits: states(typed) },
    { name: words.search.queues, hits: queues(typed, known) },
    { name: words.search.schedules, hits: schedules(typed, known) },
    { name: words.search.processes, hits: processes(typed, known) },
    { name: words.search.errors, hits: errors(typed, known, nowMs) },
    { name: words.search.deeds, hits: deeds(typed, known) },
    { name: words.search.pages, hits: places(typed, known) },
  ];
  return all.filter(({ hits }) => hits.length > 0);
}

/** Who types a time of day means it before all else, also where it could begin an id. */
export function moments(typed: string, nowMs: number): readonly Group[] {
  const ms = timeIn(typed, nowMs);
  if (ms === undefined) return [];
  const main = words.search.ranAt(dayText(ms, nowMs));
  return [{ name: words.search.times, hits: [{ href: `#/${whereAt(ms)}`, icon: 'clock', main }] }];
}

/** `running`, `dead`, and days: `today`, `tomorrow`. */
function states(typed: string): readonly Hit[] {
  const text = typed.trim().toLowerCase();
  if (text.length < 3) return [];
  const found = STATES.filter((one) => words.states[one].toLowerCase().startsWith(text) || one.startsWith(text));
  return found.map((state) => ({
    href: hrefOf({ state }),
    icon: `s-${state}` as const,
    main: words.search.jobsThatAre(words.states[state]),
  }));
}

const queueHref = (queue: string): string => `#/queue/${encodeURIComponent(queue)}`;
const hrefOf = (filter: Partial<JobFilter>): string => `#/${whereOf(filter)}`;

function queues(typed: string, { queues: all }: Known): readonly Hit[] {
  const found = byTrouble(all).filter(({ queue }) => hasWords(queue, typed));
  return found.slice(0, HITS_MAX).map((one) => ({
    href: queueHref(one.queue),
    icon: 'jobs',
    main: one.queue,
    note: troubleOf(one).note,
    right: words.search.waiting(numberText(one.scheduled + one.waiting + one.ready)),
  }));
}

function schedules(typed: string, { schedules: all }: Known): readonly Hit[] {
  if (typed.trim() === '') return [];
  const found = all.filter((name) => hasWords(name, typed)).slice(0, HITS_MAX);
  return found.map((name) => ({ href: `#/schedule/${encodeURIComponent(name)}`, icon: 'schedules', main: name }));
}

function processes(typed: string, { workers }: Known): readonly Hit[] {
  if (typed.trim() === '') return [];
  const found = workers.filter(({ id, host = '', pid = '' }) => hasWords(`${id} ${host} ${pid}`, typed));
  return found.slice(0, HITS_MAX).map(({ id, host, queues: served, jobs }) => ({
    href: '#/workers',
    icon: 'workers',
    main: host ?? shortText(id),
    note: served.join(', '),
    right: words.search.runs(numberText(jobs.length)),
  }));
}

function errors(typed: string, { kinds }: Known, nowMs: number): readonly Hit[] {
  if (typed.trim().length < 2) return [];
  const found = kinds.filter(({ error = '', reason = '' }) => hasWords(`${error} ${reason}`, typed));
  return found.slice(0, HITS_MAX).map(({ error, reason, count, lastMs, shares }) => ({
    href: deadHref(shares.queue[0]?.value ?? '', { error, reason }),
    icon: 's-dead',
    main: shortText(error ?? reason ?? ''),
    note: shares.queue.map(({ value }) => value).join(', '),
    right: words.search.died(numberText(count), relativeText(lastMs, nowMs)),
  }));
}

function deadHref(
  queue: string,
  of: { readonly error: string | undefined; readonly reason: string | undefined },
): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(of)) if (value !== undefined) query.set(name, value);
  return `#/dead/${encodeURIComponent(queue)}?${query}`;
}

/** `pause mails`, `create`: what is done on a page of its own, with its question before it. */
function deeds(typed: string, { queues: all, may }: Known): readonly Hit[] {
  const deed = deedIn(typed, words.search.pauseVerbs);
  if (deed === undefined) return [];
  const found = byTrouble(all).filter(({ queue }) => hasWords(queue, deed.of) && may({ scope: 'write', queue }));
  return found.slice(0, HITS_MAX).map(({ queue, paused }) => ({
    href: queueHref(queue),
    icon: paused ? 'play' : 'pause',
    main: paused ? words.search.resume(queue) : words.search.pause(queue),
    note: words.search.onItsPage,
  }));
}

function places(typed: string, { may }: Pick<Known, 'may'>): readonly Hit[] {
  const found = PLACES.filter(({ name, needs }) => hasWords(words.places[name], typed) && (!needs || may(needs)));
  return found.map(({ name, icon, key }) => ({ href: `#/${name}`, icon, main: words.places[name], right: `g ${key}` }));
}

/** Jobs of all queues by tag and by id. */
export async function jobsFor(
  typed: string,
  { nowMs, may }: { readonly nowMs: number; readonly may: Known['may'] },
): Promise<FoundJobs> {
  const [tag, id] = [tagIn(typed), idIn(typed)];
  const nothing = { jobs: [], cursor: undefined, unread: [] };
  const [tagged, over, named] = await Promise.all([
    tag === undefined ? nothing : ask(calls.jobsFind, { tag, limit: JOBS_MAX }),
    tag === undefined ? nothing : ask(calls.jobsFind, { tag, state: OVER.join(','), limit: 1 }).catch(() => nothing),
    id === undefined ? nothing : ask(calls.jobsFind, { id, limit: JOBS_MAX }),
  ]);
  const known = new Set<string>();
  const jobs = [...named.jobs, ...tagged.jobs].filter((job) => {
    const key = JSON.stringify([job.queue, job.id]);
    return !known.has(key) && known.add(key);
  });
  const groups: readonly Group[] = [
    { name: words.search.tag, hits: tag === undefined ? [] : tagHits(tag, tagged, over) },
    { name: words.search.doWith, hits: tag !== undefined && mayChange(tagged, may) ? doHits(tag) : [] },
    { name: words.search.jobs, hits: jobs.slice(0, JOBS_MAX).map((job) => jobHit(job, nowMs)) },
    { name: words.search.more, hits: id === undefined ? [] : [prefixHit(id)] },
  ];
  const unread = [...tagged.unread, ...named.unread].filter((one) => !isForgetful(one));
  return {
    groups: groups.filter(({ hits }) => hits.length > 0),
    unread: [...new Map(unread.map((one) => [one.queue, one])).values()],
  };
}

export interface FoundJobs {
  readonly groups: readonly Group[];
  /** Queues that did not answer. */
  readonly unread: readonly Schemas['UnreadQueue'][];
}

/** As the list of jobs asks it: of the queue of the first one. */
const mayChange = ({ jobs: [first] }: Page, may: Known['may']): boolean =>
  first !== undefined && may({ scope: 'write', queue: first.queue });

interface Page {
  readonly jobs: readonly Schemas['FoundJob'][];
  readonly cursor?: string | undefined;
}

function tagHits(tag: string, tagged: Page, over: Page): readonly Hit[] {
  const count = numberText(tagged.jobs.length);
  const [first] = tagged.jobs;
  const live: Hit = {
    href: hrefOf({ tag }),
    icon: 'tag',
    main: tag,
    note:
      tagged.cursor === undefined ? words.search.notOver(count, tagged.jobs.length) : words.search.notOverMore(count),
    ...(first?.dueMs === undefined ? {} : { right: words.search.next(relativeText(first.dueMs, Date.now())) }),
  };
  const past: Hit = { href: hrefOf({ tag, state: OVER.join(',') }), icon: 'tag', main: tag, note: words.search.over };
  return [...(first ? [live] : []), ...(over.jobs.length > 0 ? [past] : [])];
}

const doHits = (tag: string): readonly Hit[] =>
  (['move', 'run', 'cancel'] as const).map((verb) => ({
    href: `#/jobs?tag=${encodeURIComponent(tag)}&do=${verb}`,
    icon: verb === 'move' ? 'clock' : verb === 'run' ? 'play' : 'close',
    main: words.jobs.verbs[verb].button,
    note: tag,
  }));

function jobHit(job: Schemas['FoundJob'], nowMs: number): Hit {
  const { queue, id, bare, dueMs, overMs } = job;
  const atMs = overMs ?? dueMs;
  return {
    href: `#/job/${encodeURIComponent(queue)}/${encodeURIComponent(id)}${bare ? '?bare=true' : ''}`,
    icon: 'jobs',
    state: stateOf(job),
    main: shortText(id),
    note: queue,
    ...(atMs === undefined ? {} : { right: relativeText(atMs, nowMs) }),
  };
}

const prefixHit = (idPrefix: string): Hit => ({
  href: hrefOf({ idPrefix }),
  icon: 'search',
  main: words.search.idsFrom(idPrefix),
});
