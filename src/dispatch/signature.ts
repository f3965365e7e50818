/**
 * Signed calls, as Standard Webhooks has them (https://www.standardwebhooks.com). The sender and the receiver share a secret:
 *
 *     webhook-id: emails/42:m3k9
 *     webhook-timestamp: 1764425000                        seconds, of this very try
 *     webhook-signature: v1,<base64> v1,<base64>           one for each secret of the sender, the newest first
 *
 * A signature is the HMAC-SHA256 of `id.timestamp.body` over the bytes that are sent. A receiver accepts a call when one of
 * the signatures is of one of its secrets, so a secret is replaced without a moment in which calls are refused. Neither the id nor
 * the time may hold a full stop: else a part of the id could be taken for the time, and a part of the body for the end of the id.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { checkNames } from '../kernel/checks.ts';
import { systemClock } from '../kernel/clock.ts';
import { type DurationInput, durationMs, type InstantInput, instantMs, show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';

/** A secret is `whsec_` and 24 to 64 bytes in base64. Of several the newest stands first. */
export type WebhookSecrets = string | readonly string[];

/** The body as it is sent, or as it came: its text or its bytes, and never what a parser made of it. */
export type WebhookBody = string | Uint8Array;

/** The headers of a request: those of Node (`request.headers`), of the Fetch API (`request.headers`), or an object. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/** What is signed. */
export interface WebhookMessage {
  /** The same over all tries of one call: the receiver knows by it what it has seen. */
  readonly id: string;
  readonly body: WebhookBody;
  /** When this try is sent. Default: now. A try that carries the time of the first one is refused after five minutes. */
  readonly at?: InstantInput | undefined;
}

/** The three headers of a signed call. */
export interface SignedHeaders {
  readonly 'webhook-id': string;
  readonly 'webhook-timestamp': string;
  readonly 'webhook-signature': string;
}

/** How a receiver verifies. */
export interface VerifyOptions {
  /** How far the time of a call may be from now, to either side. Default: five minutes, as all libraries of the standard have it. */
  readonly tolerance?: DurationInput | undefined;
  /** The instant that counts as now. Default: now. */
  readonly at?: InstantInput | undefined;
}

/** A call whose signature is right. */
export interface VerifiedWebhook {
  /** The same over all tries: a receiver that keeps it carries out each call once. */
  readonly id: string;
  /** When this try was sent. */
  readonly sentAt: Date;
}

const OPTIONS: readonly string[] = Object.keys({ tolerance: 0, at: 0 } satisfies Record<keyof VerifyOptions, number>);
const TOLERANCE_MS = 300_000;
/** More than anybody needs while secrets change, and a bound on the work that a stranger can cause. */
const SIGNATURES_MAX = 20;
const SECRETS_MAX = 10;

/**
 * The headers that sign a call. Give all secrets that receivers may still have, the newest first.
 *
 * @throws DuestreamError `bad-input` for an id or a secret that the standard does not allow
 * @example
 * const body = JSON.stringify({ invoice: 42 });
 * const headers = signWebhook({ id: 'invoice-42', body }, process.env.WEBHOOK_SECRET);
 * await fetch(url, { method: 'POST', body, headers: { ...headers, 'content-type': 'application/json' } });
 */
export function signWebhook(message: WebhookMessage, secrets: WebhookSecrets | undefined): SignedHeaders {
  const { id, body, at } = message;
  if (!isWebhookId(id)) {
    throw new DuestreamError('bad-input', `id of a call is ${show(id)}; allowed: ${ID_ALLOWED}`);
  }
  const timestamp = String(Math.floor(nowOf(at) / 1000));
  const bytes = bytesOf(body);
  const signatures = keysOf(secrets).map(
    (key) => `v1,${signatureOf(key, { id, timestamp, bytes }).toString('base64')}`,
  );
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') };
}

/**
 * Whether a call that came is of a sender that knows the secret, and is not older than five minutes. Call it with the body as
 * it came, before it is parsed; parse it after that.
 *
 * @param secrets one that the sender signs with is enough; give the old one and the new one while they change
 * @throws DuestreamError `bad-input` for a call that must not be trusted: answer 401, and do nothing
 * @example
 * const body = await request.text();
 * const { id } = verifyWebhook(request.headers, body, process.env.WEBHOOK_SECRET);
 */
export function verifyWebhook(
  headers: WebhookHeaders,
  body: WebhookBody,
  secrets: WebhookSecrets | undefined,
  options: VerifyOptions = {},
): VerifiedWebhook {
  checkNames(options, OPTIONS, 'verifyWebhook', 'bad-input');
  const toleranceMs = options.tolerance === undefined ? TOLERANCE_MS : durationMs(options.tolerance, 'tolerance');
  const keys = keysOf(secrets);
  const bytes = bytesOf(body);
  const id = headerIn(headers, 'webhook-id');
  const timestamp = headerIn(headers, 'webhook-timestamp');
  const given = headerIn(headers, 'webhook-signature');
  if (!isWebhookId(id)) throw refused(`webhook-id is ${show(id)}; allowed: ${ID_ALLOWED}`);
  if (!SECONDS.test(timestamp)) throw refused(`webhook-timestamp is ${show(timestamp)}; allowed: whole seconds`);
  const sentMs = Number(timestamp) * 1000;
  const offMs = Math.floor(nowOf(options.at) / 1000) * 1000 - sentMs;
  if (Math.abs(offMs) > toleranceMs) {
    const off = `${Math.abs(offMs) / 1000} s ${offMs > 0 ? 'before' : 'after'} now`;
    throw refused(`it was sent ${off}; allowed: ${toleranceMs / 1000} s. Compare the clocks of both machines`);
  }
  const signatures = given.split(' ', SIGNATURES_MAX).filter((one) => one.startsWith('v1,'));
  if (!keys.some((key) => matches(signatureOf(key, { id, timestamp, bytes }), signatures))) {
    throw refused(
      'none of its signatures is of a known secret and of this body; compare the secrets, and give the body as it came, before a parser',
    );
  }
  return { id, sentAt: new Date(sentMs) };
}

/** An id without a full stop or a space, which headers can carry. */
export const isWebhookId = (id: unknown): id is string => typeof id === 'string' && ID.test(id);

const ID = /^[\x21-\x2d\x2f-\x7e]{1,4096}$/;
const ID_ALLOWED = '1 to 4,096 printable ASCII characters without space and full stop';
const SECONDS = /^\d{1,11}$/;

const refused = (why: string) => new DuestreamError('bad-input', `the call is not trusted: ${why}`);

const nowOf = (at: InstantInput | undefined): number =>
  at === undefined ? systemClock.wallMs() : instantMs(at, 'at of a call');

interface Signed {
  readonly id: string;
  readonly timestamp: string;
  readonly bytes: Uint8Array;
}

const signatureOf = (key: Buffer, { id, timestamp, bytes }: Signed): Buffer =>
  createHmac('sha256', key).update(`${id}.${timestamp}.`).update(bytes).digest();

/** Compared in a time that tells nothing about how much of it is right. */
const matches = (wanted: Buffer, signatures: readonly string[]): boolean =>
  signatures.some((one) => {
    const given = Buffer.from(one.slice('v1,'.length), 'base64');
    return given.length === wanted.length && timingSafeEqual(given, wanted);
  });

// What a call brings may be anything, and a secret that is not one must not be quoted.

function keysOf(secrets: WebhookSecrets | undefined): readonly Buffer[] {
  const all = typeof secrets === 'string' ? [secrets] : secrets;
  if (!Array.isArray(all) || all.length === 0 || all.length > SECRETS_MAX) {
    const given = Array.isArray(all) ? `${all.length} secrets` : `a value of type ${typeof all}`;
    throw new DuestreamError(
      'bad-input',
      `secrets are ${given}; allowed: ${SECRET_ALLOWED}, or 1 to ${SECRETS_MAX} of them`,
    );
  }
  return all.map(keyOf);
}

const SECRET = /^whsec_([A-Za-z0-9+/]+={0,2})$/;
const SECRET_ALLOWED = 'a text of whsec_ and 24 to 64 bytes in base64';
const [KEY_BYTES_MIN, KEY_BYTES_MAX] = [24, 64];

/** The bytes of a secret. @throws DuestreamError `bad-input`, which does not quote it */
function keyOf(secret: unknown, index: number): Buffer {
  const [, text] = typeof secret === 'string' ? (SECRET.exec(secret) ?? []) : [];
  const key = Buffer.from(text ?? '', 'base64');
  if (key.length >= KEY_BYTES_MIN && key.length <= KEY_BYTES_MAX) return key;
  const given = text === undefined ? 'not written so' : `${key.length} bytes long`;
  throw new DuestreamError('bad-input', `secret ${index + 1} is ${given}; allowed: ${SECRET_ALLOWED}`);
}

function bytesOf(body: WebhookBody): Uint8Array {
  if (typeof body === 'string') return Buffer.from(body);
  if (body instanceof Uint8Array) return body;
  throw new DuestreamError(
    'bad-input',
    `body is of type ${typeof body}; allowed: the text or the bytes as they came, before a parser`,
  );
}

/** Of headers by any case. A header that came twice is none: nobody could say which one was signed. */
function headerIn(headers: WebhookHeaders, name: string): string {
  const found = headers instanceof Headers ? [headers.get(name)] : valuesOf(headers, name);
  const [value, ...others] = found.flat();
  if (typeof value === 'string' && others.length === 0) return value;
  throw refused(`header ${name} came ${found.flat().filter(Boolean).length} times; allowed: once`);
}

const valuesOf = (headers: Exclude<WebhookHeaders, Headers>, name: string) =>
  Object.entries(headers).flatMap(([key, value]) => (key.toLowerCase() === name && value !== undefined ? [value] : []));
