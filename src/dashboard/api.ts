/**
 * The HTTP API, which is all that the pages know of duestream. Whoever is not known is sent to the login; after it the cookie
 * of the session goes along, and each change carries the CSRF token of the session.
 */
import type { Schemas } from './api-types.ts';
import { type Answer, addressOf, type Body, type Call, type Given, type Shape } from './call.ts';
import * as calls from './calls.ts';
import { words } from './words/words.ts';

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
  if (problem instanceof TypeError) return words.frame.silent;
  return problem instanceof Error ? problem.message : String(problem);
}

let session: Session | undefined;
const strangers = new Set<(why: ApiError) => void>();

/** Where a call is, as a browser asks for it. */
export const urlOf = <One extends Shape>(call: Call<One>, given: NoInfer<Given<One>>): string =>
  new URL(addressOf(call, given), BASE).href;

/** Called when an answer says that nobody knows who asks. @returns what takes it back */
export function onStranger(tell: (why: ApiError) => void): () => void {
  strangers.add(tell);
  return () => strangers.delete(tell);
}

/** @throws ApiError for an answer of 400 or more, TypeError where there is none */
export const ask = <One extends Shape>(
  call: Call<One>,
  given: NoInfer<Given<One>>,
  ...[body]: NoInfer<Body<One>>
): Promise<Answer<One>> => askJson(call, given, body === undefined ? {} : { json: JSON.stringify(body) });

interface Sent {
  readonly json?: string | undefined;
  /** Only if it still is what was seen. */
  readonly etag?: string | undefined;
  /** Why, for the audit, where the body has no place for it. */
  readonly reason?: string | undefined;
}

/** The same with a body that is JSON already. @throws as `ask` */
export async function askJson<One extends Shape>(
  call: Call<One>,
  given: NoInfer<Given<One>>,
  { json, etag, reason = '' }: Sent = {},
): Promise<Answer<One>> {
  const { method } = call;
  const response = await fetch(urlOf(call, given), {
    method,
    credentials: 'same-origin',
    headers: {
      Accept: 'application/json',
      ...(json === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...(session === undefined || method === 'GET' ? {} : { 'X-CSRF-Token': session.csrf }),
      ...(etag === undefined ? {} : { 'If-Match': `"${etag}"` }),
      ...(reason === '' ? {} : { 'X-Reason': encodeURIComponent(reason) }),
    },
    ...(json === undefined ? {} : { body: json }),
  });
  if (!response.ok) return refuse(response, call.at);
  return response.status === 204 ? undefined : response.json().catch(() => ({}));
}

/** The whole text of an answer. @throws as `ask`, and DOMException `TimeoutError` */
export async function askText<One extends Shape>(
  call: Call<One>,
  given: NoInfer<Given<One>>,
  withinMs: number,
): Promise<string> {
  const response = await fetch(urlOf(call, given), {
    credentials: 'same-origin',
    signal: AbortSignal.timeout(withinMs),
  });
  return response.ok ? response.text() : refuse(response, call.at);
}

/** @throws ApiError in any case; whoever is not known is sent to the login */
async function refuse(response: Response, at: string): Promise<never> {
  const answer: object = await response.json().catch(() => ({}));
  const error = new ApiError(response.status, answer);
  if (response.status === 401 && at !== calls.sessionGet.at) for (const tell of strangers) tell(error);
  throw error;
}

/** Who has logged in here before, if anybody has. */
export async function resume(): Promise<Session | undefined> {
  try {
    // A browser writes each 401 into its console, and that nobody has logged in yet is no error.
    session = await ask(calls.sessionGet, { optional: 'true' });
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401) throw error;
    session = undefined;
  }
  return session;
}

/** @throws ApiError `unauthorized` for a token that opens nothing; Error where the browser has not kept the cookie */
export async function logIn(token: string): Promise<Session> {
  await ask(calls.sessionOpen, {}, { token });
  const opened = await resume();
  if (!opened) throw new Error(words.login.notKept);
  return opened;
}

export async function logOut(): Promise<void> {
  await ask(calls.sessionEnd, {});
  session = undefined;
}
