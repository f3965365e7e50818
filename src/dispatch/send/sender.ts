/**
 * One request, from a URL to its answer, and never a second one: a redirect is an answer, a socket that closes is a failure. All
 * that the other side may make large or long has a bound: the head and the body of the answer, the time until a connection is
 * there, and the time of it all.
 */
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import type { TargetUrl } from '../../job/target-url.ts';
import { createAbort } from '../../kernel/abort.ts';
import type { Clock } from '../../kernel/clock.ts';
import { messageOf } from '../../kernel/errors.ts';
import type { Guard } from '../guard/guard.ts';
import { type Certificate, DialError, type Dialled, type DialParts, type EgressProxy } from './dial.ts';
import { createPools, type Pools } from './pools.ts';

export interface OutgoingCall {
  readonly url: string;
  readonly method: string;
  /** Names in any case; `Host`, `Content-Length`, `Connection` and `Accept-Encoding` are made here. */
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined for `GET` and `HEAD`. */
  readonly body: string | undefined;
  /** From the look at the name to the last byte of the answer. */
  readonly timeoutMs: number;
  readonly certificate?: Certificate | undefined;
}

/** What is told of a request that has no answer: nothing that says which ports are open inside. */
export type NoAnswerWhy = 'dns' | 'not-connected' | 'tls' | 'timeout' | 'cut-off' | 'stopped';

type Ended =
  | {
      readonly kind: 'answered';
      readonly status: number;
      readonly headers: IncomingMessage['headers'];
      /** At most `BODY_BYTES_MAX`. */
      readonly body: Buffer;
      readonly address: string;
      /** Whether `allow` names the address: what it answers is told to nobody. */
      readonly isAllowed: boolean;
    }
  /** `detail` is for the log alone. */
  | { readonly kind: 'no-answer'; readonly why: NoAnswerWhy; readonly detail: string }
  | { readonly kind: 'refused'; readonly why: string };

export type CallEnd = Ended & { readonly tookMs: number };

export interface SenderOptions {
  readonly guard: Guard;
  readonly clock: Pick<Clock, 'timer' | 'monotonicMs'>;
  readonly ca?: readonly string[] | undefined;
  readonly proxy?: EgressProxy | undefined;
  /** Default: five seconds. */
  readonly connectMs?: number | undefined;
}

export interface Sender {
  /** @param signal ends the request; it has no answer then */
  readonly send: (call: OutgoingCall, signal: AbortSignal) => Promise<CallEnd>;
  /** Closes the sockets that nothing uses. */
  readonly close: () => void;
}

export const HEAD_BYTES_MAX = 16_384;
export const BODY_BYTES_MAX = 65_536;
const CONNECT_MS = 5000;
/** Of the addresses of one name, tried while nothing was sent. */
const ADDRESSES_TRIED_MAX = 3;

export function createSender(options: SenderOptions): Sender {
  const { guard, clock, ca, proxy, connectMs = CONNECT_MS } = options;
  const parts: DialParts = { clock, connectMs, refusalOfPeer: guard.refusalOfPeer, ca, proxy };
  const pools = createPools({ ...parts, clock });

  async function carriedOut(call: OutgoingCall, signal: AbortSignal): Promise<Ended> {
    const admission = await until(guard.admit(call.url), signal);
    if (admission.kind === 'refused') return admission;
    if (admission.kind === 'no-address') return { kind: 'no-answer', why: 'dns', detail: admission.why };
    const { url, addresses, isAllowed } = admission;
    const { address, answer } = await firstAnswer({ call, url, addresses, pools, signal });
    return { kind: 'answered', ...answer, address, isAllowed };
  }

  return {
    async send(call, signal) {
      const startedMs = clock.monotonicMs();
      const ending = createAbort();
      const callOff = clock.timer(call.timeoutMs, () => ending.abort('timeout'));
      const onStop = () => ending.abort('stopped');
      signal.addEventListener('abort', onStop, { once: true });
      if (signal.aborted) onStop();
      const end = await carriedOut(call, ending.signal).catch((error: unknown) => endBy(error, ending.signal));
      callOff();
      signal.removeEventListener('abort', onStop);
      return { ...end, tookMs: Math.round(clock.monotonicMs() - startedMs) };
    },
    close: pools.close,
  };
}

function endBy(error: unknown, { aborted, reason }: AbortSignal): Ended {
  const detail = messageOf(error);
  if (aborted) return { kind: 'no-answer', why: reason === 'timeout' ? 'timeout' : 'stopped', detail };
  if (!(error instanceof DialError)) return { kind: 'no-answer', why: 'cut-off', detail };
  const { why } = error;
  return why === 'refused' ? { kind: 'refused', why: detail } : { kind: 'no-answer', why, detail };
}

/** A look at a name cannot be called off, but nobody waits for it any longer. */
async function until<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let onAbort = () => {};
  const ended = new Promise<never>((_, reject) => {
    onAbort = () => reject(new Error('the time was up'));
    signal.addEventListener('abort', onAbort, { once: true });
  });
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([work, ended]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

type Answer = Pick<Extract<Ended, { kind: 'answered' }>, 'status' | 'headers' | 'body'>;

interface Exchange {
  readonly call: OutgoingCall;
  readonly url: TargetUrl;
  readonly addresses: readonly string[];
  readonly pools: Pools;
  readonly signal: AbortSignal;
}

/** A connection that does not come up has sent nothing: then another address of the name may be tried. */
async function firstAnswer(exchange: Exchange): Promise<{ readonly address: string; readonly answer: Answer }> {
  const [first = '', ...others] = exchange.addresses.slice(0, ADDRESSES_TRIED_MAX);
  for (const address of [first, ...others].slice(0, -1)) {
    try {
      return { address, answer: await exchanged(address, exchange) };
    } catch (error) {
      if (!(error instanceof DialError) || error.why === 'refused' || exchange.signal.aborted) throw error;
    }
  }
  const address = others.at(-1) ?? first;
  return { address, answer: await exchanged(address, exchange) };
}

function exchanged(address: string, { call, url, pools, signal }: Exchange): Promise<Answer> {
  const to: Dialled = { url, address, certificate: call.certificate };
  const { body } = call;
  const request = httpRequest({
    agent: pools.agentFor(to),
    method: call.method,
    path: url.path,
    headers: {
      ...call.headers,
      'Accept-Encoding': 'identity',
      Host: url.authority,
      ...(body !== undefined && { 'Content-Length': Buffer.byteLength(body) }),
    },
    setHost: false,
    maxHeaderSize: HEAD_BYTES_MAX,
    signal,
  });
  return new Promise((resolve, reject) => {
    request.once('error', reject);
    // Another protocol than HTTP from here on: nothing of ours speaks one.
    request.once('upgrade', ({ statusCode = 101, headers }, socket) => {
      socket.destroy();
      resolve({ status: statusCode, headers, body: Buffer.alloc(0) });
    });
    request.once('response', (response) => void readAnswer(request, response).then(resolve, reject));
    request.end(body);
  });
}

/** The answer with so much of its body as is wanted; a socket with more in it is closed. */
async function readAnswer(request: ClientRequest, response: IncomingMessage): Promise<Answer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    const part: Buffer = chunk;
    chunks.push(part.subarray(0, BODY_BYTES_MAX - bytes));
    bytes += part.length;
    if (bytes >= BODY_BYTES_MAX) break;
  }
  if (bytes >= BODY_BYTES_MAX) request.destroy();
  else if (!response.complete) throw new Error('the answer ended before its end');
  return { status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) };
}
