/** Which jobs somebody looks for: what a caller says → what is looked through, and what is left out of that. */

import { parseJobName } from '../../job/job.ts';
import { parseTag } from '../../job/labels.ts';
import { digestOf } from '../../job/record-header.ts';
import { LIVE_STATES, type LiveState } from '../../job/state.ts';
import { checkNames } from '../../kernel/checks.ts';
import { type InstantInput, instantMs, show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { DueRange, Source } from '../../redis/read/places.ts';

/** A state in which jobs can be listed. */
export type ListState = LiveState;

/** In the order in which a job goes through them. */
export const LIST_STATES: readonly ListState[] = LIVE_STATES;

/** Which jobs: those for which all of it holds. State, tag and due time have an index; names and ids are looked through. */
export interface JobFilter {
  /** One or several. Default: all, so every job that is not over. */
  readonly state?: ListState | readonly ListState[] | undefined;
  /** Jobs that have this tag. */
  readonly tag?: string | undefined;
  readonly name?: string | undefined;
  /** How their ids begin. */
  readonly idPrefix?: string | undefined;
  /** Due at `from` or later, and before `to`. */
  readonly due?: { readonly from?: InstantInput | undefined; readonly to?: InstantInput | undefined } | undefined;
}

/** A filter, checked. */
export interface Filter {
  readonly states: readonly ListState[];
  readonly tag: string | undefined;
  readonly name: string | undefined;
  readonly idPrefix: string | undefined;
  readonly due: DueRange;
}

export const FILTER_NAMES = ['state', 'tag', 'name', 'idPrefix', 'due'] as const;
const ID_PREFIX = /^[!-~]{1,192}$/;

/**
 * @param states those that the call is about; it is about all of them unless the filter says which
 * @param others options that are read elsewhere
 * @throws DuestreamError `bad-input`
 */
export function parseFilter(input: JobFilter, { states = LIST_STATES, others = [], owner }: FilterUse): Filter {
  checkNames(input, [...FILTER_NAMES, ...others], owner, 'bad-input');
  const { state, tag, name, idPrefix, due } = input;
  return {
    states: statesIn(state, states),
    tag: tag === undefined ? undefined : parseTag(tag),
    name: name === undefined ? undefined : parseJobName(name),
    idPrefix: idPrefix === undefined ? undefined : prefixOf(idPrefix),
    due: dueIn(due),
  };
}

export interface FilterUse {
  readonly owner: string;
  readonly states?: readonly ListState[];
  readonly others?: readonly string[];
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

/** What is looked through, one after the other. This is the one place that chooses where a state is read. */
export function sourcesOf({ states, tag, due }: Filter): readonly Source[] {
  if (tag !== undefined) return [{ kind: 'tag', tag }];
  return LIST_STATES.filter((state) => states.includes(state)).map(sourceOf(due));
}

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

function statesIn(input: JobFilter['state'], allowed: readonly ListState[]): readonly ListState[] {
  if (input === undefined) return allowed;
  const given: readonly unknown[] = Array.isArray(input) ? input : [input];
  const states = allowed.filter((state) => given.includes(state));
  if (given.length > 0 && given.every((one) => (allowed as readonly unknown[]).includes(one))) return states;
  throw new DuestreamError('bad-input', `state is ${show(input)}; allowed: one or several of ${allowed.join(', ')}`);
}

function prefixOf(input: unknown): string {
  if (typeof input === 'string' && ID_PREFIX.test(input)) return input;
  throw new DuestreamError(
    'bad-input',
    `idPrefix is ${show(input)}; allowed: 1 to 192 printable ASCII characters without space`,
  );
}

function dueIn(input: JobFilter['due']): DueRange {
  if (input === undefined) return { fromMs: undefined, toMs: undefined };
  checkNames(input, ['from', 'to'], 'due', 'bad-input');
  const fromMs = input.from === undefined ? undefined : instantMs(input.from, 'due.from');
  const toMs = input.to === undefined ? undefined : instantMs(input.to, 'due.to');
  if (toMs === undefined || toMs > (fromMs ?? Number.NEGATIVE_INFINITY)) return { fromMs, toMs };
  throw new DuestreamError('bad-input', `due.to is ${show(input.to)}; allowed: an instant after due.from`);
}
