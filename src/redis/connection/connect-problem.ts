/**
 * Why a connection does not come up although somebody is there: Redis refuses the user, one side does not trust the other
 * one's certificate, or speaks TLS alone. Nothing, no password either, was said to a Redis that is not trusted. Time does not repair it, so
 * whoever waits for such a connection is told at once what is wrong and what to do, in words of ours and not of OpenSSL.
 * Whatever else goes wrong in TLS may pass, like a proxy that restarts: it is outage, and is dialled again.
 */

import type { Redis } from 'ioredis';
import { DuestreamError, messageOf, oneLine } from '../../kernel/errors.ts';

export interface ConnectProblem {
  readonly why: string;
  readonly remedy: string;
}

/** An error with what to do about it. The message says both; `saw` is the first half. */
export class Unreachable extends DuestreamError {
  readonly saw: string;
  readonly remedy: string;

  constructor(
    where: string,
    { why, remedy }: ConnectProblem,
    { code = 'unavailable', cause }: { readonly code?: 'unavailable' | 'refused'; readonly cause?: unknown } = {},
  ) {
    const saw = code === 'refused' ? `Redis at ${where} refused: ${why}` : `cannot reach Redis at ${where}: ${why}`;
    super(code, `${saw}; ${remedy}`, { cause });
    this.saw = saw;
    this.remedy = remedy;
  }
}

const SHOW_ONE =
  'give it one, redis.cert and redis.key, in code "tls: { cert, key }"; or set "tls-auth-clients no" in Redis';

/** What Node.js and OpenSSL call it → what it is. */
const CERTIFICATES: readonly (readonly [code: RegExp, why: string, remedy: string])[] = [
  [/^CERT_HAS_EXPIRED$/, 'its certificate has expired', 'renew it where Redis runs'],
  [/^CERT_NOT_YET_VALID$/, 'its certificate is not valid yet', 'compare the clocks of both machines'],
  [
    /^(SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_(GET_ISSUER|VERIFY_LEAF)\w*)$/,
    'this process does not trust the authority that signed its certificate',
    'set NODE_EXTRA_CA_CERTS to the certificate file of that authority, and start again',
  ],
  [
    /^(CERT_|CRL_|UNABLE_TO_|INVALID_|ERROR_IN_|ERR_TLS_|HOSTNAME_MISMATCH|PATH_LENGTH)/,
    'its certificate is refused',
    'renew it where Redis runs',
  ],
  // TLS 1.3 has an alert for this; before, a failed handshake was all that Redis could say.
  [/^ERR_SSL_.*(CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE)$/, 'it wants a certificate of the client', SHOW_ONE],
];

/** The answer of somebody who does not know what TLS is. */
const NO_TLS = /^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST)$/;

const PLAIN_THERE = {
  why: 'it does not answer in TLS',
  remedy: 'if that port is for plain connections, write redis://, sentinel:// or cluster://',
};
const TLS_THERE = {
  why: 'it closes the connection before its first word',
  remedy: 'if that port is for TLS, write rediss://, sentinels:// or clusters://',
};
/** With TLS 1.3 the client is through before Redis looks for a certificate, and the reset often overtakes the alert. */
const CLOSED_AFTER = {
  why: 'it closes the connection after the handshake',
  remedy: `if it wants a certificate of the client, ${SHOW_ONE}`,
};

const IN_ITS_ADDRESS = 'in its address, redis://user:password@host:port, percent-encoded';

const TO_SENTINELS =
  'set redis.sentinelUsername and redis.sentinelPassword, which are those of the sentinels; docs/how-to/sentinel.md lists their rights';

/** What Redis says to somebody who may not connect → what to do. */
const REFUSALS: readonly (readonly [said: RegExp, remedy: string])[] = [
  [/^WRONGPASS\b|^ERR invalid (username-)?password/, `correct the user and the password ${IN_ITS_ADDRESS}`],
  [/^NOAUTH\b/, `name a user and a password ${IN_ITS_ADDRESS}`],
  [/^NOPERM\b/, 'give this user the rights that docs/how-to/secure-redis.md lists'],
  // The library would go on in database 0.
  [
    /^ERR (DB index is out of range|invalid DB index)/,
    'name a database that this Redis has; by default it has 0 to 15',
  ],
  [/^DENIED\b/, 'give Redis a password, or bind it to the loopback'],
];

/** Redis is there and refuses the connection: its own words, and what to do. */
export function refusalOf(error: unknown): ConnectProblem | undefined {
  const [, bySentinels] = /^All sentinels.*Last error: ((?:NOAUTH|WRONGPASS|NOPERM)\b.*)/s.exec(messageOf(error)) ?? [];
  if (bySentinels !== undefined) return { why: `its sentinels: ${oneLine(bySentinels)}`, remedy: TO_SENTINELS };
  const why = error instanceof Error && error.name === 'ReplyError' ? oneLine(error.message) : '';
  const [, remedy] = REFUSALS.find(([said]) => said.test(why)) ?? [];
  return remedy === undefined ? undefined : { why, remedy };
}

/** What only a person can repair; undefined for outage. */
export function connectProblemOf(error: unknown): ConnectProblem | undefined {
  const code = codeOf(error);
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    const names = oneLine(messageOf(error).replace(/^.*altnames: /, ''), 200);
    const remedy = 'use the host name of its certificate, or give it a certificate with this name';
    return { why: `its certificate is for another host (${names})`, remedy };
  }
  if (NO_TLS.test(code)) return PLAIN_THERE;
  const [, why, remedy] = CERTIFICATES.find(([pattern]) => pattern.test(code)) ?? [];
  return why === undefined || remedy === undefined ? undefined : { why: `${why} (${code})`, remedy };
}

/** What it may be when nothing came back for the whole time that was given, or the other side only ever hung up. */
export function guessOf(
  last: Error | undefined,
  { tls, progress }: { tls: boolean; progress: DialProgress },
): ConnectProblem | undefined {
  if (last !== undefined && !/^(ETIMEDOUT|ECONNRESET|EPIPE)$/.test(codeOf(last))) return undefined;
  if (!progress.connected) return tls && progress.accepted ? PLAIN_THERE : undefined;
  if (!progress.hungUp) return undefined;
  return tls ? CLOSED_AFTER : TLS_THERE;
}

/** Node.js makes a code of what OpenSSL says, except when it was writing: then the words are in the message. */
function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
  const [, words] = (code === 'EPROTO' && /:SSL routines:[^:]*:([^:]+)/.exec(messageOf(error))) || [];
  return words === undefined ? code : `ERR_SSL_${words.toUpperCase().replaceAll(' ', '_')}`;
}

export interface DialProgress {
  /** Somebody took a connection by TCP. */
  readonly accepted: boolean;
  /** Commands could be sent: over TLS the handshake was through. */
  readonly connected: boolean;
  /** A connection that was so far was closed. */
  readonly hungUp: boolean;
}

/** What counts is all the time of the wait, and how far a connection is that was opened before. */
export function watchDialing(redis: Redis): { readonly progress: DialProgress; readonly stop: () => void } {
  const progress = { accepted: false, connected: redis.status === 'connect', hungUp: false };
  const onAccepted = () => {
    progress.accepted = true;
  };
  const look = () => {
    const stream: typeof redis.stream | undefined = redis.stream;
    if (stream?.connecting) stream.once('connect', onAccepted);
    else if (stream && !stream.destroyed) onAccepted();
  };
  // The socket is made some ticks after this event.
  const onConnecting = () => setImmediate(look);
  const onConnect = () => {
    progress.connected = true;
  };
  const onClose = () => {
    progress.hungUp ||= progress.connected;
  };
  redis.on('connecting', onConnecting).on('connect', onConnect).on('close', onClose);
  onConnecting();
  return {
    progress,
    stop: () => redis.off('connecting', onConnecting).off('connect', onConnect).off('close', onClose),
  };
}
