/** A checked request through its verb: what the caller may, the change, the audit, the answer as its schema says. */
import type { Context } from 'hono';
import { getCookie } from 'hono/cookie';
import { type Note, noting } from '../../client/operations.ts';
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
  readonly peer: string;
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
  const { verb, caller, ifMatch, arrival, peer, failed, pulse, stillMay, cut, signal } = carried;
  // What a request changes is noted by the name of its caller.
  const client = noting(carried.backend.client, { note: noteBy(carried, reasonIn(c.req.header(REASON))) });
  const backend = verb.method === 'get' ? carried.backend : { ...carried.backend, client };
  const given = (target: 'param' | 'query' | 'json') => c.req.valid(target as never) as never;
  const call = {
    path: verb.path ? given('param') : (undefined as never),
    query: verb.query ? given('query') : (undefined as never),
    body: verb.body ? given('json') : (undefined as never),
    header: (name: string) => c.req.header(name),
    cookie: (name: string) => getCookie(c, name),
    ifMatch,
    arrival,
    peer,
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
  // Whoever changes something and looks again sees what it has changed.
  if (verb.method !== 'get') for (const reading of Object.values(carried.backend.readings)) reading.forget();
  return send(verb, c, answer);
}

/** Why a change is made, of a change whose body has no place for it. */
export const REASON = 'X-Reason';

/** A header holds no text beyond Latin-1, so the reason is percent-encoded. A text that is no such code stands for itself. */
function reasonIn(header: string | undefined): string | undefined {
  try {
    return header === undefined ? undefined : decodeURIComponent(header);
  } catch {
    return header;
  }
}

/** The change has been made: an audit that cannot be written is told to the log, and the caller has its answer. */
const noteBy =
  ({ verb, backend, caller, log }: Carried, reason: string | undefined): Note =>
  async (change) => {
    try {
      await audit(await backend.place(), {
        ...{ who: caller.name, way: caller.way, ...change },
        reason: change.reason || reason,
      });
    } catch (error) {
      log.warn({ verb: verb.name, error: reasonOf(error) }, 'a change is not in the audit');
    }
  };

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
