/**
 * One operation of the API: where it is, who may, what it takes, what it does and what it answers. From the list of verbs
 * follow the routes, the checks before them, and the OpenAPI file.
 */
import type { z } from '@hono/zod-openapi';
import type { Scope } from '../../access/tokens.ts';
import type { Arrival } from '../arrival.ts';
import type { Told } from './answer.ts';
import type { Backend } from './backend.ts';
import type { Caller } from './caller.ts';
import type { ProblemCode } from './problem.ts';
import type { Pulse } from './pulse.ts';

/** A checked request. */
export interface Call<Path, Query, Body> {
  readonly path: Path;
  readonly query: Query;
  readonly body: Body;
  /** The ETag that the change is about, `*` for any, undefined without a condition. Only where the verb says what has it. */
  readonly ifMatch: string | undefined;
  readonly header: (name: string) => string | undefined;
  readonly cookie: (name: string) => string | undefined;
  /** By which names the request came, whether over TLS, and below which path. */
  readonly arrival: Arrival;
  /** The address that the request came from. */
  readonly peer: string;
  /** Counts a token that opens nothing. @throws Problem `too-many` */
  readonly failed: () => void;
  readonly caller: Caller;
  readonly backend: Backend;
  /** For those who watch. */
  readonly pulse: Pulse;
  /** Whether whoever asked could ask it again now; also while Redis does not say. */
  readonly stillMay: () => Promise<boolean>;
  /** Closes the connection at once. */
  readonly cut: () => void;
  /** Aborts when the caller has gone, and, with the problem `stopped`, when the daemon stops. */
  readonly signal: () => AbortSignal;
}

export interface Answer<Body> {
  readonly status: 200 | 201 | 202 | 204;
  readonly body?: Body | undefined;
  /**
   * Instead of a body: begins what is sent as it comes. A HEAD never begins it, because nobody would read it to its end.
   *
   * @throws Problem while there still can be one
   */
  readonly stream?: () => ReadableStream<Uint8Array> | Promise<ReadableStream<Uint8Array>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A header that the verb reads. */
export interface HeaderDoc {
  readonly name: string;
  readonly doc: string;
  readonly pattern?: string;
}

/** What a verb changes, if that has an ETag. */
export interface Versioned<Path> {
  /** At the beginning of a sentence: `the job`. */
  readonly what: string;
  /** The one it has now; undefined where there is nothing. */
  readonly etag: (
    call: Pick<Call<Path, unknown, unknown>, 'path' | 'query' | 'backend'>,
  ) => Promise<string | undefined>;
}

/** How an agent is shown a change before it makes it. */
export interface DryRun {
  /**
   * The look of this table that says what there is; it is asked with what the change is given. The name of the change itself: it is
   * carried out with `dryRun`.
   */
  readonly look: string;
  /** What the look is asked where the change says nothing of it. */
  readonly defaults?: Readonly<Record<string, unknown>>;
  /** Fields of that look, at any depth. Where one is another one when the change is to be made, nothing is changed. */
  readonly same: readonly string[];
  /** Of a change by filter: the field of its body that names what was seen, in the place of the filter. */
  readonly names?: 'ids' | 'deadLetters';
}

interface AnswerDoc<Body> {
  /** What of the body is sent; left out: nothing. */
  readonly type?: Told<Body>;
  /** Default `application/json`. */
  readonly media?: 'text/event-stream';
  readonly doc: string;
}

interface About {
  /** Of the operation in OpenAPI: `jobs.cancelMany`. One that changes something has name and scope of its row in `operations`. */
  readonly name: string;
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  readonly at: string;
  readonly summary: string;
  readonly doc?: string | undefined;
  /** `none`: anybody, without a token. */
  readonly scope: Scope | 'none';
  /**
   * What a token of some queues may do: `path`: the queue in the path must be one of them · `query`: that in the query, which
   * is needed then · `own`: the verb looks itself · `all`: nothing, it is about all queues.
   */
  readonly queues: 'path' | 'query' | 'own' | 'all';
  /** Whether there must be one. Default: yes. */
  readonly bodyRequired?: boolean;
  readonly headers?: readonly HeaderDoc[];
  /**
   * How `duestream mcp` offers it to agents: as a look, or as a change with its dry run. Left out: agents have it not, because it cannot
   * be undone, is a stream, or is for pages.
   */
  readonly tool?: 'look' | DryRun | undefined;
  /** Besides those that every verb has. */
  readonly problems?: readonly ProblemCode[] | undefined;
}

export interface Verb<Path, Query, Body, Out> extends About {
  readonly answers: Readonly<Partial<Record<Answer<Out>['status'], AnswerDoc<Out>>>>;
  readonly path?: z.ZodType<Path>;
  readonly query?: z.ZodType<Query>;
  readonly body?: z.ZodType<Body>;
  /** What `If-Match` is about, which `run` has compared in the step of the change. Without it the header is refused. */
  readonly versioned?: Versioned<Path>;
  readonly run: (call: Call<Path, Query, Body>) => Promise<Answer<NoInfer<Out>>>;
}

/** A verb whose types are forgotten: what it is handed was checked by its own schemas. */
export interface AnyVerb extends About {
  readonly answers: Readonly<Partial<Record<Answer<never>['status'], AnswerDoc<never>>>>;
  readonly path?: z.ZodType;
  readonly query?: z.ZodType;
  readonly body?: z.ZodType;
  readonly versioned?: Versioned<never>;
  readonly run: (call: Call<never, never, never>) => Promise<Answer<unknown>>;
}

export const verb = <Path = undefined, Query = undefined, Body = undefined, Out = undefined>(
  one: Verb<Path, Query, Body, Out>,
): AnyVerb => one;

/** Name and scope of a change, of its row in `operations`. */
export const change = <Name extends string>({
  name,
  scope,
}: {
  readonly name: Name;
  readonly scope: 'write' | 'admin';
}) => ({ name, scope }) as const;
