/** Which jobs somebody looks for: what a caller says → what is looked through, and what is left out of that. */

import { parseJobName } from '../../job/job.ts';
import { parseSetName, parseTag, setTag } from '../../job/labels.ts';
import { type QueueInput, queueOf } from '../../job/queue.ts';
import { digestOf } from '../../job/record-header.ts';
import {
  isLiveState,
  JOB_STATES,
  type JobState,
  LIVE_STATES,
  type LiveState,
  type OverState,
} from '../../job/state.ts';
import { checkNames } from '../../kernel/checks.ts';
import { type InstantInput, instantMs, show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { DueRange, Source } from '../../redis/read/places.ts';

/** A state in which jobs can be counted, and changed by a filter. */
export type ListState = LiveState;

/** In the order in which a job goes through them. What a filter means that says no state: a job that is over is never among them. */
export const LIST_STATES: readonly ListState[] = LIVE_STATES;

/** Which jobs: those for which all of it holds. State, tag, set and due time have an index; names, ids and failures are looked through. */
export interface JobFilter {
  /** One or several. Default: all, so every job that is not over. */
  readonly state?: ListState | readonly ListState[] | undefined;
  /** Jobs that have this tag. */
  readonly tag?: string | undefined;
  /** The members of this set of the queue. */
  readonly set?: string | undefined;
  readonly name?: string | undefined;
  /** How their ids begin. */
  readonly idPrefix?: string | undefined;
  /** `true`: jobs of which a run has failed or crashed; those that wait are tried again. `false`: the others. */
  readonly failed?: boolean | undefined;
  /** Due at `from` or later, and before `to`. */
  readonly due?: { readonly from?: InstantInput | undefined; readonly to?: InstantInput | undefined } | undefined;
}

/** Which jobs a list means: also jobs that are over, if `state` says so. */
export interface JobListFilter extends Omit<JobFilter, 'state'> {
  /** One or several. Default: all in which a job is not over. */
  readonly state?: JobState | readonly JobState[] | undefined;
  /** Of jobs that are over, in a queue that keeps a history: they ended at `from` or later, and at `to` or before. */
  readonly ended?: { readonly from?: InstantInput | undefined; readonly to?: InstantInput | undefined } | undefined;
}

/** Which jobs a search through several queues means. */
export interface JobSearchFilter extends JobListFilter {
  /** The queues that are looked through. Default: all. */
  readonly queues?: readonly QueueInput<unknown>[] | undefined;
  /** The job of this id in each queue. Left out `state`: also one that is over. */
  readonly id?: string | undefined;
  /**
   * Those whose last run began at `to` or before and ended at `from` or later: those that run, and in queues with a history those
   * that are over. Of runs that went on for more than an hour after `to`, only those are found that still run.
   */
  readonly ran?: { readonly from?: InstantInput | undefined; readonly to?: InstantInput | undefined } | undefined;
}

/** A filter, checked. */
export interface Filter<State extends JobState = ListState> {
  readonly states: readonly State[];
  readonly tag: string | undefined;
  readonly set: string | undefined;
  readonly name: string | undefined;
  readonly idPrefix: string | undefined;
  readonly failed: boolean | undefined;
  readonly due: DueRange;
}

/** What jobs are looked into for. */
export type ContentFilter = Pick<Filter, 'tag' | 'set' | 'name' | 'idPrefix' | 'failed'>;

/** The filter of a list, checked. */
export interface ListFilter extends Filter<JobState> {
  /** Both ends are in it. */
  readonly ended?: DueRange | undefined;
}

/** Of a search, checked. */
export interface SearchFilter extends ListFilter {
  readonly ended: DueRange;
  readonly id: string | undefined;
  readonly ran: DueRange | undefined;
}

export const FILTER_NAMES = ['state', 'tag', 'set', 'name', 'idPrefix', 'failed', 'due'] as const;
const ID_PREFIX = /^[!-~]{1,192}$/;

/**
 * @param states those that the call is about; it is about all of them unless the filter says which
 * @throws DuestreamError `bad-input`
 */
export function parseFilter(input: JobFilter, { states = LIST_STATES, owner }: FilterUse): Filter {
  checkNames(input, FILTER_NAMES, owner, 'bad-input');
  const { state = states, due, ...content } = input;
  return { states: statesIn(state, states), ...contentIn(content), due: rangeIn(due, 'due') };
}

/**
 * @param others options that are read elsewhere
 * @throws DuestreamError `bad-input`
 */
export function parseListFilter(
  input: JobListFilter,
  { owner, others = [] }: { readonly owner: string; readonly others?: readonly string[] },
): ListFilter {
  checkNames(input, [...FILTER_NAMES, 'ended', ...others], owner, 'bad-input');
  const { state = LIST_STATES, due, ended, ...content } = input;
  const states = statesIn(state, JOB_STATES);
  const [live, over] = [states.find(isLiveState), states.find(isOverState)];
  if (due && over) throw otherTime('due', over, 'ended.from and ended.to');
  if (ended && live) throw otherTime('ended', live, 'due.from and due.to');
  return { states, ...contentIn(content), due: rangeIn(due, 'due'), ended: rangeIn(ended, 'ended') };
}

/** How long after the end of a range the end of a run is looked for that was under way then. */
const RAN_ON_MS = 3_600_000;

/**
 * @param others options that are read elsewhere
 * @throws DuestreamError `bad-input`
 */
export function parseSearch(
  { queues, id, ran, ...input }: JobSearchFilter,
  { owner, others = [] }: { readonly owner: string; readonly others?: readonly string[] },
): { readonly filter: SearchFilter; readonly wanted: readonly string[] | undefined } {
  const range = ran && rangeIn(ran, 'ran');
  if (ran && input.ended) throw together('ran', 'ended', 'one of them');
  if (id !== undefined && input.set !== undefined) throw together('id', 'set', 'id with tag, name and state');
  const state = input.state ?? statesMeant({ id, isOfRuns: ran !== undefined, isOfEnds: input.ended !== undefined });
  const { ended = { fromMs: undefined, toMs: undefined }, ...filter } = parseListFilter(
    { ...input, state },
    { owner, others: [...others, 'queues', 'id', 'ran'] },
  );
  const endedWithin = range ? { ...range, toMs: range.toMs === undefined ? undefined : range.toMs + RAN_ON_MS } : ended;
  return {
    filter: { ...filter, ended: endedWithin, id: id === undefined ? undefined : prefixOf(id, 'id'), ran: range },
    wanted: queues && namesIn(queues),
  };
}

/** What a search means that says no state. */
function statesMeant({
  id,
  isOfRuns,
  isOfEnds,
}: {
  readonly id: string | undefined;
  readonly isOfRuns: boolean;
  readonly isOfEnds: boolean;
}): readonly JobState[] {
  const over = JOB_STATES.filter(isOverState);
  if (isOfRuns) return ['running', ...over];
  if (isOfEnds) return over;
  return id === undefined ? LIST_STATES : JOB_STATES;
}

/** The names of queues, each once. @throws DuestreamError `bad-input` for what is no list */
export function namesIn(queues: readonly QueueInput<unknown>[]): readonly string[] {
  if (Array.isArray(queues)) return [...new Set(queues.map((queue) => queueOf(queue).name))].sort();
  throw new DuestreamError('bad-input', `queues is ${show(queues)}; allowed: a list of queues`);
}

const together = (one: string, other: string, allowed: string) =>
  new DuestreamError('bad-input', `${one} and ${other} are both given; allowed: ${allowed}`);

const otherTime = (given: string, state: JobState, allowed: string) =>
  new DuestreamError(
    'bad-input',
    `${given} is given, and state says ${state}; allowed for jobs in this state: ${allowed}`,
  );

export interface FilterUse {
  readonly owner: string;
  readonly states?: readonly ListState[];
}

/** A change of every job there is has to be said: it is what a filter whose values are undefined would be. */
export function checkNotEmpty(input: JobFilter, owner: string): void {
  if (FILTER_NAMES.some((name) => input[name] !== undefined)) return;
  throw new DuestreamError(
    'bad-input',
    `the filter of ${owner} says nothing; allowed: at least one of ${FILTER_NAMES.join(', ')} (state: 'scheduled' means all that are)`,
  );
}

/** Tells this filter from others, and a change by it from other changes. @param means what the change is, undefined for a list */
export const filterKey = (filter: object, means?: unknown): string =>
  digestOf(JSON.stringify(means === undefined ? filter : [filter, means])).slice(0, 8);

/**
 * What is looked through, one after the other. This is the one place that chooses where a state is read.
 *
 * @param meansHeld jobs that are held until they are due, which stand among those that run, count as scheduled
 */
export function sourcesOf(
  { states, tag, set, due }: Filter<JobState>,
  meansHeld = false,
): readonly (Source | { readonly kind: 'over' })[] {
  const looked: readonly JobState[] = meansHeld && states.includes('scheduled') ? [...states, 'running'] : states;
  const live = LIST_STATES.filter((state) => looked.includes(state)).map(sourceOf(due));
  // A set is in one partition.
  const entry = set === undefined ? tag : setTag(set);
  const tagged = entry !== undefined && live.length > 0 ? [{ kind: 'tag' as const, tag: entry }] : undefined;
  return [...(tagged ?? live), ...(states.some(isOverState) ? [{ kind: 'over' as const }] : [])];
}

export const isOverState = (state: JobState): state is OverState => !isLiveState(state);

function sourceOf(due: DueRange): (state: ListState) => Source {
  return (state) => {
    switch (state) {
      case 'scheduled':
      case 'waiting':
        return { kind: state, due };
      case 'ready':
      case 'running':
        return { kind: state };
    }
  };
}

export const isWithin = ({ fromMs, toMs }: DueRange, dueMs: number): boolean =>
  dueMs >= (fromMs ?? Number.NEGATIVE_INFINITY) && dueMs < (toMs ?? Number.POSITIVE_INFINITY);

function statesIn<State extends JobState>(input: unknown, allowed: readonly State[]): readonly State[] {
  const given: readonly unknown[] = Array.isArray(input) ? input : [input];
  const states = allowed.filter((state) => given.includes(state));
  if (given.length > 0 && given.every((one) => (allowed as readonly unknown[]).includes(one))) return states;
  throw new DuestreamError('bad-input', `state is ${show(input)}; allowed: one or several of ${allowed.join(', ')}`);
}

function contentIn({ tag, set, name, idPrefix, failed }: Pick<JobFilter, keyof ContentFilter>): ContentFilter {
  if (failed !== undefined && typeof failed !== 'boolean') {
    throw new DuestreamError('bad-input', `failed is ${show(failed)}; allowed: true, false`);
  }
  return {
    tag: tag === undefined ? undefined : parseTag(tag),
    set: set === undefined ? undefined : parseSetName(set),
    name: name === undefined ? undefined : parseJobName(name),
    idPrefix: idPrefix === undefined ? undefined : prefixOf(idPrefix, 'idPrefix'),
    failed,
  };
}

/** Whether what is known of a job is what a filter says of failures. */
export const isFailedAs = (
  known: { readonly failures: number; readonly crashes: number } | undefined,
  failed: boolean | undefined,
): boolean => failed === undefined || failed === (known !== undefined && known.failures + known.crashes > 0);

function prefixOf(input: unknown, what: 'idPrefix' | 'id'): string {
  if (typeof input === 'string' && ID_PREFIX.test(input)) return input;
  throw new DuestreamError(
    'bad-input',
    `${what} is ${show(input)}; allowed: 1 to 192 printable ASCII characters without space`,
  );
}

function rangeIn(input: JobFilter['due'], what: 'due' | 'ended' | 'ran'): DueRange {
  if (input === undefined) return { fromMs: undefined, toMs: undefined };
  checkNames(input, ['from', 'to'], what, 'bad-input');
  const fromMs = input.from === undefined ? undefined : instantMs(input.from, `${what}.from`);
  const toMs = input.to === undefined ? undefined : instantMs(input.to, `${what}.to`);
  const fromEnd = (toMs ?? Number.POSITIVE_INFINITY) - (fromMs ?? Number.NEGATIVE_INFINITY);
  if (what === 'due' ? fromEnd > 0 : fromEnd >= 0) return { fromMs, toMs };
  const allowed = what === 'due' ? 'an instant after due.from' : `${what}.from or an instant after it`;
  throw new DuestreamError('bad-input', `${what}.to is ${show(input.to)}; allowed: ${allowed}`);
}
