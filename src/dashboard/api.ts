/**
 * The HTTP API, which is all that the pages know of duestream. Whoever is not known is sent to the login; after it the cookie
 * of the session goes along, and each change carries the CSRF token of the session.
 */
import { writePart } from '../kernel/path-part.ts';
import type { Schemas } from './api-types.ts';

/** Relative to the page, so a prefix in front of both does not matter. */
const BASE = new URL('v1/', document.baseURI);

export type Session = Schemas['Session'];

/** An answer of 400 or more, in the words of the API. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  /** Stable: what to decide by. */
  readonly code: string;
  readonly detail: string;
  /** The application around decides who may look: no token helps. */
  readonly isOfApplication: boolean;

  constructor(status: number, problem: Partial<Schemas['Problem']>) {
    const detail = problem.detail ?? problem.title ?? `the answer has the status ${status}`;
    super(detail);
    this.status = status;
    this.code = problem.code ?? 'failed';
    this.detail = detail;
    this.isOfApplication = problem.login === 'application';
  }
}

/** For people. */
export function problemText(problem: unknown): string {
  if (problem instanceof ApiError) return `${problem.code}: ${problem.detail}`;
  if (problem instanceof TypeError) return 'The daemon does not answer. Is it running?';
  return problem instanceof Error ? problem.message : String(problem);
}

let session: Session | undefined;
const strangers = new Set<(why: ApiError) => void>();

/** The address of something in the API. @param path without a slash in front */
export const urlOf = (path: string): string => new URL(path, BASE).href;

/** Called when an answer says that nobody knows who asks. @returns what takes it back */
export function onStranger(tell: (why: ApiError) => void): () => void {
  strangers.add(tell);
  return () => strangers.delete(tell);
}

/**
 * @param what method and path, as the reference of the API has it without `/v1/`: `GET queues/emails`
 * @throws ApiError for an answer of 400 or more, TypeError where there is none
 */
export const ask = <Shape>(what: string, body?: unknown): Promise<Shape> =>
  askJson(what, body === undefined ? undefined : JSON.stringify(body));

/** The same with a body that is JSON already. @throws as `ask` */
export async function askJson<Shape>(
  what: string,
  body: string | undefined,
  headers: Readonly<Record<string, string>> = {},
): Promise<Shape> {
  const [method = 'GET', path = ''] = what.split(/ (.*)/s);
  const response = await fetch(urlOf(path), {
    method,
    credentials: 'same-origin',
    headers: {
      Accept: 'application/json',
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...(session === undefined || method === 'GET' ? {} : { 'X-CSRF-Token': session.csrf }),
      ...headers,
    },
    ...(body === undefined ? {} : { body }),
  });
  if (!response.ok) return refuse(response, path);
  return response.status === 204 ? (undefined as Shape) : response.json().catch(() => ({}));
}

/** The whole text of an answer. @throws as `ask`, and DOMException `TimeoutError` */
export async function askText(path: string, withinMs: number): Promise<string> {
  const response = await fetch(urlOf(path), {
    credentials: 'same-origin',
    signal: AbortSignal.timeout(withinMs),
  });
  return response.ok ? response.text() : refuse(response, path);
}

/** @throws ApiError in any case; whoever is not known is sent to the login */
async function refuse(response: Response, path: string): Promise<never> {
  const answer: object = await response.json().catch(() => ({}));
  const error = new ApiError(response.status, answer);
  if (response.status === 401 && path !== SESSION && path !== 'session') for (const tell of strangers) tell(error);
  throw error;
}

/** A browser writes each 401 into its console, and that nobody has logged in yet is no error. */
const SESSION = 'session?optional=true';

/** Who has logged in here before, if anybody has. */
export async function resume(): Promise<Session | undefined> {
  try {
    session = await ask<Session | undefined>(`GET ${SESSION}`);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401) throw error;
    session = undefined;
  }
  return session;
}

/** @throws ApiError `unauthorized` for a token that opens nothing; Error where the browser has not kept the cookie */
export async function logIn(token: string): Promise<Session> {
  await ask<Session>('POST session', { token });
  const opened = await resume();
  if (!opened) throw new Error(NOT_KEPT);
  return opened;
}

const NOT_KEPT =
  'The token is right, but its cookie did not come back: the browser refuses cookies here, or the proxy in front does not pass them on, or it says another path in X-Forwarded-Prefix than the one in the address.';

export async function logOut(): Promise<void> {
  await ask('DELETE session');
  session = undefined;
}

// Paths and addresses whose parts may hold anything.

/** A path of the API: at`queues/${queue}/jobs/${id}`, each value so that no proxy changes it. */
export const at = (texts: TemplateStringsArray, ...values: readonly string[]): string =>
  texts.reduce((path, text, index) => `${path}${writePart(values[index - 1] ?? '')}${text}`);

/** `?state=dead&limit=50`, without what is empty. */
export function queryOf(given: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(given)) {
    if (value !== undefined && value !== '') query.set(name, String(value));
  }
  const text = query.toString();
  return text === '' ? '' : `?${text}`;
}
