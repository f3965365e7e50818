/**
 * What a job was told → what is stored of it, and where. An option stands in the object `o` of the record's JSON, or in
 * the record's header, where Redis can read it; `codec.ts` writes and reads both by the lists that are made here.
 */
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { TAGS_MAX } from './labels.ts';
import type { JobOption, Named, StoredOf } from './option-kinds.ts';
import { jobOptions, type OptionName, type ScheduleOptions } from './options.ts';

type Table = typeof jobOptions;
type StoredName<Name extends OptionName> = Table[Name]['kind'] extends 'duration' | 'instant' ? `${Name}Ms` : Name;
type In<Name extends OptionName, Place> = Table[Name] extends { readonly record: Place } ? StoredName<Name> : never;

/** Options of one job that differ from its queue's: those of the JSON. */
export type JobOverrides = {
  readonly [Name in OptionName as In<Name, { readonly json: string }>]?: StoredOf<Table[Name]>;
};

/** When a job is too late to start, and what happens then: the options of the header. */
export type HeaderOptions = {
  readonly [Name in OptionName as In<Name, { readonly header: string }>]?: StoredOf<Table[Name]>;
};

/** What people are told of both. Headers are shown beside the data, and hidden with it. */
export type ToldOptions = JobOverrides & Omit<HeaderOptions, 'headers'>;

/** One option in the record. */
export interface JobField extends Named<OptionName> {
  /** Its name as it is stored: with its unit. */
  readonly stored: string;
  /** The key in the JSON, or the letter in the header. */
  readonly key: string;
  /** Left out of the header, and meant where one of `needs` is there. */
  readonly fallback: string | undefined;
  /** It does not count when two calls are compared. */
  readonly isApart: boolean;
  /** One of these must be given too, by their names and as they are stored. */
  readonly needs: readonly { readonly name: OptionName; readonly stored: string }[];
}

/** Every option, in its order. */
export const allOptions: readonly Named<OptionName>[] = (Object.keys(jobOptions) as OptionName[]).map((name) => ({
  name,
  option: jobOptions[name],
}));

export const optionNames: readonly OptionName[] = allOptions.map(({ name }) => name);

/** Those that a schedule can say for its jobs, by the names of its fields. */
export const optionsOfFires: readonly Named[] = allOptions.flatMap(({ name, option }) =>
  option.schedule === undefined ? [] : [{ name: option.schedule === true ? name : option.schedule, option }],
);

/** Those in the record's JSON. */
export const bodyFields: readonly JobField[] = allOptions.flatMap(({ name, option }) =>
  option.record !== undefined && 'json' in option.record ? [fieldOf(name, option, option.record.json)] : [],
);

/** Those in the record's header. */
export const headerFields: readonly JobField[] = allOptions.flatMap(({ name, option }) =>
  option.record !== undefined && 'header' in option.record
    ? [
        {
          ...fieldOf(name, option, option.record.header),
          fallback: option.record.fallback,
          isApart: option.record.apart === true,
        },
      ]
    : [],
);

/** Those that an edit can change: a job stays in its set until it is over. */
export const editFields: readonly JobField[] = [...bodyFields, ...headerFields].filter(({ name }) => name !== 'set');

/** Of a job that was told nothing of the kind: the same object each time, so that the codec knows it at a glance. */
export const NOTHING: object = Object.freeze({});

/** @throws DuestreamError `bad-input` that says what was given and what is allowed */
export function overridesOf(options: ScheduleOptions, dueMs: number): JobOverrides {
  return checked(bodyFields, options, dueMs);
}

/** @throws DuestreamError `bad-input`, also for an expiry before the due time, or an option without the one it needs */
export function headerOf(options: ScheduleOptions, dueMs: number): HeaderOptions {
  const header = checked(headerFields, options, dueMs) as HeaderOptions;
  const { priority = 'normal', tags = [], set } = header;
  const beside = [
    ...(priority === 'normal' ? [] : [`priority ${priority}`]),
    ...(set === undefined ? [] : [`set ${set}`]),
  ];
  if (tags.length + beside.length <= TAGS_MAX) return header;
  throw new DuestreamError(
    'bad-input',
    `tags is a list of ${tags.length} beside ${beside.join(' and ')}; allowed: up to ${TAGS_MAX - beside.length} tags beside ${beside.length === 1 ? 'it' : 'them'}`,
  );
}

function checked(fields: readonly JobField[], options: ScheduleOptions, dueMs: number): object {
  let stored: Record<string, unknown> | undefined;
  for (const field of fields) {
    const given = options[field.name];
    if (given === undefined) continue;
    checkNeeds(field, options);
    stored ??= {};
    stored[field.stored] = field.option.check(given, field.name, dueMs);
  }
  return stored ?? NOTHING;
}

function checkNeeds({ name, needs }: JobField, options: ScheduleOptions): void {
  if (needs.length === 0 || needs.some((other) => options[other.name] !== undefined)) return;
  const others = needs.map((other) => other.name).join(' or ');
  throw new DuestreamError(
    'bad-input',
    `${name} is ${show(options[name])} without ${others}; allowed: together with ${needs.length > 1 ? 'one of them' : 'it'}`,
  );
}

function fieldOf(name: OptionName, option: JobOption, key: string): JobField {
  const needs = allOptions
    .filter((other) => option.needs?.includes(other.name))
    .map((other) => ({ name: other.name, stored: storedName(other.name, other.option) }));
  return { name, stored: storedName(name, option), key, fallback: undefined, isApart: false, needs, option };
}

function storedName(name: string, { kind }: Pick<JobOption, 'kind'>): string {
  return kind === 'duration' || kind === 'instant' ? `${name}Ms` : name;
}

/** Whether what this option needs is given as well. */
export function hasNeeds({ needs }: JobField, header: Readonly<Record<string, unknown>>): boolean {
  for (const { stored } of needs) if (header[stored] !== undefined) return true;
  return needs.length === 0;
}

/**
 * Whether a job is too late to start. `start.lua` judges by the same rule; this is for whoever plays it without Redis.
 *
 * @param sinceMs the due time of a retry or a defer, else the asked due time
 */
export function isTooLate(
  { expiresAtMs = Number.POSITIVE_INFINITY, maxLatenessMs = Number.POSITIVE_INFINITY, onLate }: HeaderOptions,
  { nowMs, sinceMs }: { readonly nowMs: number; readonly sinceMs: number },
): boolean {
  return onLate !== 'run' && (nowMs > expiresAtMs || nowMs - sinceMs > maxLatenessMs);
}
