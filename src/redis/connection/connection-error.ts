/**
 * What the client library says of a connection → what we say: where Redis is, what became of the command, and the error
 * of the system. The library names its own options ("enableOfflineQueue", "max retries per request"), which help nobody
 * who reads a log at night. What Redis itself answers is left as it is, but for the command that ioredis hangs on it: its
 * arguments are somebody's data, and the password in the case of AUTH.
 */
import { messageOf, oneLine } from '../../kernel/errors.ts';

/** An error of a connection. `code` is the errno of the system, such as ECONNREFUSED, where there is one. */
export class ConnectionError extends Error {
  override readonly name: string = 'ConnectionError';
  readonly code: string | undefined;
  /** The message without the place. */
  readonly why: string;

  constructor(
    message: string,
    { why = message, code }: { readonly why?: string; readonly code?: string | undefined } = {},
  ) {
    super(message);
    this.code = code;
    this.why = why;
  }
}

export interface ConnectionState {
  /** Where Redis is, without credentials. */
  readonly where: string;
  /** Why the connection is down, as far as is known. */
  readonly last: unknown;
  readonly timeoutMs: number | undefined;
}

/** An error with which a command was rejected, in our words. */
export function inOurWords(error: unknown, { where, last, timeoutMs }: ConnectionState): Error {
  if (error instanceof ConnectionError) return error;
  if (isReply(error)) return withoutCommand(error);
  const said = messageOf(error);
  if (/^Command timed out/.test(said)) {
    const why = `within ${timeoutMs} ms`;
    return new ConnectionError(`no reply from Redis at ${where} ${why}`, { why: `no reply ${why}` });
  }
  if (/enableOfflineQueue/.test(said)) {
    const why = last === undefined ? '' : ` (${wordsOf(last)})`;
    return new ConnectionError(`not connected to Redis at ${where}${why}`, { code: codeOf(last) });
  }
  if (/^Connection is closed/.test(said)) return new ConnectionError(`the connection to Redis at ${where} is closed`);
  const reason = codeOf(error) === undefined && !UNREADABLE.test(said) ? last : error;
  const lost = 'was lost before the reply';
  const why = reason === undefined ? lost : `${lost} (${wordsOf(reason)})`;
  return new ConnectionError(`the connection to Redis at ${where} ${why}`, { code: codeOf(reason) });
}

/** Why a connection does not come up, or went: the words of the system or of Redis, and ours for those of the library. */
export function wordsOf(error: unknown): string {
  if (error instanceof ConnectionError) return error.why;
  const said = messageOf(error);
  if (UNREADABLE.test(said)) return 'the server there does not speak the protocol of Redis';
  // A name with several addresses: each was tried.
  if (error instanceof AggregateError) return oneLine(error.errors.map((one) => messageOf(one)).join(', '));
  const sentinels = /^All sentinels(?:.*Last error: (.*))?/s.exec(said);
  if (sentinels) return withoutSentinels(sentinels[1]);
  return oneLine(said);
}

/** A sentinel that knows no such name says so, or answers with nothing. */
function withoutSentinels(last = 'No such master'): string {
  if (/No such master/.test(last)) return 'no sentinel knows a primary of that name';
  // Which is all that the library tells of a sentinel that cannot be reached.
  const why = /^Connection is closed/.test(last) ? '' : ` (${oneLine(last)})`;
  return `no sentinel says where it is${why}`;
}

/** Of the parser, and of a reply that no command waits for. */
const UNREADABLE = /please report (this|it)|^Command queue state error/i;

/** Whether Redis itself has said it. */
export function isReply(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}

export function withoutCommand(error: Error): Error {
  Reflect.deleteProperty(error, 'command');
  return error;
}

/** The errno of the system, such as ECONNREFUSED. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
