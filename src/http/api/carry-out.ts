/** A checked request through its verb: what the caller may, the change, the audit, the answer as its schema says. */
import type { Context } from 'hono';
import { getCookie } from 'hono/cookie';
import type { Log } from '../../kernel/log.ts';
import { reasonOf } from '../../kernel/reason.ts';
import { audit } from '../../redis/audit.ts';
import type { Arrival } from '../arrival.ts';
import type { Backend } from './backend.ts';
import { type Caller, checkEverywhere, checkQueue, checkScope } from './caller.ts';
import { withEtag } from './if-match.ts';
import type { Pulse } from './pulse.ts';
import type { Answer, AnyVerb } from './verb.ts';

interface Carried {
  readonly verb: AnyVerb;
  readonly backend: Backend;
  readonly caller: Caller;
  readonly ifMatch: string | undefined;
  readonly arrival: Arrival;
  readonly failed: () => void;
  readonly pulse: Pulse;
  readonly stillMay: () => Promise<boolean>;
  readonly cut: () => void;
  readonly signal: () => AbortSignal;
  readonly log: Log;
}

/** @throws Problem `forbidden` */
export function checkMay({ scope, queues }: AnyVerb, caller: Caller, c: Context): void {
  if (scope === 'none') return;
  checkScope(caller, scope);
  if (queues === 'path') checkQueue(caller, c.req.param('queue') ?? '');
  if (queues === 'all') checkEverywhere(caller);
  if (queues !== 'query') return;
  const queue = c.req.query('queue');
  if (queue === undefined) checkEverywhere(caller);
  else checkQueue(caller, queue);
}

export async function carryOut(carried: Carried, c: Context): Promise<Response> {
  const { verb, backend, caller, ifMatch, arrival, failed, pulse, stillMay, cut, signal } = carried;
  const given = (target: 'param' | 'query' | 'json') => c.req.valid(target as never) as never;
  const call = {
    path: verb.path ? given('param') : (undefined as never),
    query: verb.query ? given('query') : (undefined as never),
    body: verb.body ? given('json') : (undefined as never),
    header: (name: string) => c.req.header(name),
    cookie: (name: string) => getCookie(c, name),
    ifMatch,
    arrival,
    failed,
    caller,
    backend,
    pulse,
    stillMay,
    cut,
    signal,
  };
  const answer = await verb.run(call).catch(async (error: unknown) => {
    throw await withEtag(error, verb, call);
  });
  await note(carried, c, answer);
  return send(verb, c, answer);
}

/** The change has been made: an audit that cannot be written is told to the log, and the caller has its answer. */
async function note({ verb, backend, caller, log }: Carried, c: Context, answer: Answer<unknown>): Promise<void> {
  const { changed = 0, target, reason, queue = c.req.param('queue'), changes = [{ queue, count: changed }] } = answer;
  const made = changes.filter(({ count }) => count > 0);
  if (verb.audited === undefined || made.length === 0) return;
  const { name: who, way } = caller;
  try {
    const place = await backend.place();
    for (const change of made) await audit(place, { who, way, verb: verb.audited, target, reason, ...change });
  } catch (error) {
    log.warn({ verb: verb.name, error: reasonOf(error) }, 'a change is not in the audit');
  }
}

/**
 * Proxies hold back what they could send in larger pieces, and compress it, unless they are told. No other request follows
 * on the connection of a stream, so it may be cut when the stream has ended.
 */
const STREAMED = { 'Cache-Control': 'no-store, no-transform', 'X-Accel-Buffering': 'no', Connection: 'close' };

/** What the type of the answer does not list is not sent. */
async function send(
  { answers }: AnyVerb,
  c: Context,
  { status, body, stream, headers = {} }: Answer<unknown>,
): Promise<Response> {
  for (const [name, value] of Object.entries(headers)) c.header(name, value);
  if (stream) {
    for (const [name, value] of Object.entries(STREAMED)) c.header(name, value);
    const type = { 'Content-Type': answers[status]?.media ?? 'application/octet-stream' };
    return c.req.method === 'HEAD' ? c.body(null, 200, type) : c.body(await stream(), 200, type);
  }
  const type = answers[status]?.type;
  if (type === undefined || status === 204) return c.body(null, status);
  return c.body(JSON.stringify(type.listed(body as never)), status, { 'Content-Type': 'application/json' });
}
