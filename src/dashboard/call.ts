/** A call of the HTTP API as the pages make it, typed from end to end: `calls.ts` has every one there is. */
import { writePart } from '../kernel/path-part.ts';

/** What a call is given for its path and query, its body, and its answer. */
export interface Shape {
  readonly given: Readonly<Record<string, string | number | undefined>>;
  readonly body?: unknown;
  readonly answer?: unknown;
}

export interface Call<One extends Shape> {
  readonly method: string;
  /** Below `v1/`, with a name in braces for each value: `queues/{queue}/jobs/{id}`. */
  readonly at: string;
  /** Nobody sets it: the compiler reads the types of the call from it. */
  readonly types?: One;
}

/** Undefined is as good as left out. */
type Loose<T> = { readonly [Name in keyof T]: object extends Pick<T, Name> ? T[Name] | undefined : T[Name] };

export type Given<One extends Shape> = Loose<One['given']>;
export type Answer<One extends Shape> = One['answer'];
/** The body, behind the other arguments: none where the call has none. */
export type Body<One extends Shape> = One extends { readonly body: infer Needed }
  ? [body: Loose<Needed>]
  : 'body' extends keyof One
    ? [body?: Loose<NonNullable<One['body']>>]
    : [];

/**
 * Where a call is, each value so that no proxy changes it. What the path does not name goes into the query, unless it is empty.
 *
 * @example addressOf(calls.jobsGet, { queue: 'emails', id: 'order/7' }) // 'queues/emails/jobs/~b3JkZXIvNw'
 */
export function addressOf<One extends Shape>({ at }: Call<One>, given: NoInfer<Given<One>>): string {
  const query = new Map(Object.entries<string | number | undefined>(given));
  const path = at.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = query.get(name);
    query.delete(name);
    return writePart(String(value));
  });
  return `${path}${queryOf(Object.fromEntries(query))}`;
}

/** `?state=dead&limit=50`, without what is empty. */
export function queryOf(given: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(given)) {
    if (value !== undefined && value !== '') query.set(name, String(value));
  }
  const text = query.toString();
  return text === '' ? '' : `?${text}`;
}
