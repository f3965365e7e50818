/**
 * The HTTP API as the pages ask it: relative to where they were loaded from, so also behind a path prefix. The cookie of
 * the session goes along by itself; each change carries the CSRF token that belongs to it.
 */

interface Problem {
  readonly title?: string;
  readonly code?: string;
  readonly detail?: string;
}

/** A request that the API did not carry out. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, { title, code = 'failed', detail }: Problem) {
    super([title ?? `the daemon answered ${status}`, detail].filter((part) => part !== undefined).join(': '));
    this.status = status;
    this.code = code;
  }
}

let csrf = '';
let onLogin: () => void = () => undefined;

/** Of the session; with each change from now on. */
export function useCsrf(token: string): void {
  csrf = token;
}

/** Called when the API wants to know who asks. */
export function whenUnauthorized(call: () => void): void {
  onLogin = call;
}

/** `ask('GET queues')`. @throws ApiError */
export async function ask<Shape>(what: string, body?: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Shape> {
  const [method = 'GET', path = ''] = what.split(' ');
  const response = await fetch(`v1/${path}`, {
    method,
    headers: {
      Accept: 'application/json',
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...(method === 'GET' || csrf === '' ? {} : { 'X-CSRF-Token': csrf }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const answer: unknown = await jsonOf(response);
  if (response.ok) return answer as Shape;
  if (response.status === 401) onLogin();
  throw new ApiError(response.status, (answer ?? {}) as Problem);
}

async function jsonOf(response: Response): Promise<unknown> {
  const text = await response.text();
  const isJson = /json/.test(response.headers.get('Content-Type') ?? '');
  return isJson && text !== '' ? JSON.parse(text) : undefined;
}

/** In words that a person can act on. */
export function problemText(problem: unknown): string {
  if (problem instanceof ApiError) return problem.message;
  if (problem instanceof TypeError) return 'the daemon does not answer; is it running?';
  return problem instanceof Error ? problem.message : String(problem);
}
