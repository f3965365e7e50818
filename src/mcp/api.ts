/**
 * The HTTP API as a tool asks it: what a model has given becomes a request, as the row of the verb says.
 *
 * Why over HTTP and not straight to Redis, as other commands: a token has scopes and queues, and the daemon holds to them, whatever this
 * process is told or talked into. Whoever has the password of Redis has everything. What a token without the scope `data` may not see, the
 * fields that a queue redacts, the limits of requests and the audit (by the name of the token) are the same code as for everybody
 * else; and nothing of it is here.
 */
import { messageOf } from '../kernel/errors.ts';
import { writePart } from '../kernel/path-part.ts';
import { version } from '../kernel/version.ts';
import type { JsonObject } from './json.ts';
import type { Tool } from './tools.ts';

export interface ApiAddress {
  /** Such as `http://127.0.0.1:7420`. */
  readonly url: string;
  /** Undefined: none is needed on the machine of the daemon. */
  readonly token: string | undefined;
}

/** What a model has given, checked against the schema of the tool. */
export type Given = JsonObject;

export interface Answered {
  readonly ok: boolean;
  /** 0: nobody answered. */
  readonly status: number;
  readonly body: unknown;
  /** Of the thing that was looked at, without quotes. */
  readonly etag: string | undefined;
}

export interface AskOptions {
  readonly signal: AbortSignal | undefined;
  /** Only if the thing still has this ETag. */
  readonly ifMatch?: string | undefined;
  /** For the audit. */
  readonly why?: string | undefined;
}

export type AskApi = (tool: Tool, given: Given, options: AskOptions) => Promise<Answered>;

export const askApi =
  ({ url, token }: ApiAddress): AskApi =>
  async (tool, given, { signal, ifMatch, why }) => {
    const { body } = given;
    const headers = {
      'User-Agent': `duestream-mcp/${version}`,
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...(ifMatch !== undefined && { 'If-Match': `"${ifMatch}"` }),
      ...(why !== undefined && { 'X-Reason': encodeURIComponent(why) }),
    };
    const method = tool.verb.method.toUpperCase();
    const asked = body === undefined ? { method, headers } : { method, headers, body: JSON.stringify(body) };
    try {
      const response = await fetch(`${url}/v1${placeOf(tool, given)}`, { ...asked, signal: signal ?? null });
      return await answeredOf(response);
    } catch (error) {
      signal?.throwIfAborted();
      const detail = `no daemon answers at ${url} (${causeOf(error)}); start one with the role http, or name it with --api`;
      return { ok: false, status: 0, body: { code: 'unavailable', detail }, etag: undefined };
    }
  };

/** Path and query. */
function placeOf({ verb, path, query }: Tool, given: Given): string {
  const at = path.reduce((text, name) => text.replace(`{${name}}`, writePart(String(given[name]))), verb.at);
  const named = query.filter((name) => given[name] !== undefined);
  const asked = Object.fromEntries(named.map((name) => [name, textOf(given[name])]));
  return named.length === 0 ? at : `${at}?${new URLSearchParams(asked)}`;
}

/** In a query all is text, and several states have commas between them. */
const textOf = (value: unknown): string => (Array.isArray(value) ? value.join(',') : String(value));

async function answeredOf(response: Response): Promise<Answered> {
  const text = await response.text();
  const etag = /^(?:W\/)?"(.*)"$/.exec(response.headers.get('ETag') ?? '')?.[1];
  return { ok: response.ok, status: response.status, body: bodyOf(text), etag };
}

/** What is no JSON is of somebody else, such as a proxy. */
function bodyOf(text: string): unknown {
  if (text === '') return {};
  try {
    return JSON.parse(text);
  } catch {
    return { detail: 'the answer is no JSON: does a daemon of duestream answer there?', answer: text.slice(0, 200) };
  }
}

const causeOf = (error: unknown): string =>
  messageOf(error instanceof Error && error.cause instanceof Error ? error.cause : error);
