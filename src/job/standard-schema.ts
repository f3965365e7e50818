/**
 * The interface that schema libraries share (standardschema.dev, version 1): zod, valibot, arktype and others have it, and
 * anybody can write one. Its types are repeated here, so that nothing has to be installed for it.
 */
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';

/** What checks data: a schema of zod, valibot or arktype, or an object of your own with the key `~standard`. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    /** Checks data, now or later. */
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    /** Never read: the compiler takes the types from here. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** What a schema says of data: what it made of it, or what is wrong with it. */
export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

/** One thing that is wrong with data, and its place in it. */
export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

export function isSchema(value: unknown): value is StandardSchema {
  const holder = (typeof value === 'object' && value !== null) || typeof value === 'function';
  if (!holder || !('~standard' in value)) return false;
  const { '~standard': standard } = value;
  return typeof standard === 'object' && standard !== null && 'validate' in standard;
}

/** @throws DuestreamError `bad-input` */
export function parseSchema(value: unknown, what: string): StandardSchema {
  if (isSchema(value)) return value;
  const allowed = 'a Standard Schema: of zod, valibot, arktype, or an object with the key ~standard';
  throw new DuestreamError('bad-input', `${what} is ${show(value)}; allowed: ${allowed}`);
}

const ISSUES_SHOWN = 3;

/**
 * What is wrong with data, on one line.
 *
 * @param secret only the places: messages of some libraries hold the values
 */
export function issuesText(issues: readonly SchemaIssue[], secret: boolean): string {
  const shown = issues.slice(0, ISSUES_SHOWN).map(({ message, path = [] }) => {
    const place = path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.');
    if (secret) return place === '' ? 'the data itself' : place;
    return place === '' ? message : `${place}: ${message}`;
  });
  const more = issues.length - shown.length;
  return [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join('; ');
}
