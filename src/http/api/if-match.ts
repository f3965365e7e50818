/**
 * `If-Match` (RFC 9110, 13.1.1), for every verb in one place. A verb that names what has the ETag is handed the tag, and has it
 * compared in the step in which it changes anything; one that names nothing refuses the header, because a condition that
 * nobody looks at is worse than none. A request that would be refused without the condition is refused as without it.
 */
import { DuestreamError } from '../../kernel/errors.ts';
import { Problem } from './problem.ts';
import type { AnyVerb, Call, HeaderDoc } from './verb.ts';

export const IF_MATCH: HeaderDoc = {
  name: 'If-Match',
  doc: 'The `ETag` that a look showed, or `*`: else nothing is changed (412).',
};

const ALLOWED = 'one ETag as a look gave it, in double quotes, or *';
/** As long as any of ours, and of their characters. */
const KNOWN = /^[!#-~]{1,200}$/;
/** What no ETag of ours is. */
const NONE = '-';

/**
 * The tag without its quotes and without what a proxy that compresses has made of it: `W/"x"` (nginx), `"x-gzip"` (Apache, Caddy). `*`,
 * or undefined. A tag of ours says what a thing is, and not of which bytes an answer is.
 *
 * @throws Problem `bad-input`
 */
export function ifMatchOf({ versioned, method, name }: AnyVerb, header: string | undefined): string | undefined {
  if (header === undefined || method === 'get') return undefined;
  if (versioned === undefined) {
    const detail = `If-Match is given, and ${name} is about nothing that has an ETag; allowed: no If-Match`;
    throw refused(detail, 'no If-Match');
  }
  const text = header.trim();
  if (text === '*') return text;
  const tag = /^(?:W\/)?"([!#-~\x80-\xff]*?)(?:[-;](?:gzip|br|zstd|deflate))?"$/.exec(text)?.[1];
  if (tag !== undefined) return KNOWN.test(tag) ? tag : NONE;
  throw refused(`If-Match is ${formOf(text)}; allowed: ${ALLOWED}`, ALLOWED);
}

function formOf(text: string): string {
  return text.includes(',') ? 'a list' : 'no ETag';
}

const refused = (detail: string, allowed: string): Problem =>
  new Problem('bad-input', { detail, errors: [{ field: 'header.if-match', given: 'another text', allowed }] });

type AnyCall = Call<never, never, never>;

/** What a verb threw; of a condition that does not hold, with what was given and the ETag that there is now. */
export async function withEtag(error: unknown, { versioned }: AnyVerb, call: AnyCall): Promise<unknown> {
  const isOurs = error instanceof Problem || error instanceof DuestreamError;
  if (!isOurs || error.code !== 'changed' || versioned === undefined || call.ifMatch === undefined) return error;
  const given = call.ifMatch === '*' ? '*' : quoted(call.ifMatch);
  const found = await versioned.etag(call).catch(() => undefined);
  const now = found === undefined ? 'it has none now' : `its ETag is ${quoted(found)} now`;
  return new Problem('changed', {
    detail: `${versioned.what} is not what If-Match says: ${given} was given, and ${now}. Nothing was changed; look at it again`,
    headers: etagHeader(found),
    also: {
      ...(error instanceof Problem ? error.more.also : {}),
      ifMatch: given,
      etag: found === undefined ? undefined : quoted(found),
    },
  });
}

const quoted = (tag: string): string => `"${tag}"`;

/** The header of an answer, where its caller may know the tag. */
export const etagHeader = (etag: string | undefined): Readonly<Record<string, string>> =>
  etag === undefined ? {} : { ETag: quoted(etag) };

/** Of a job that has another due time now: what it was when it was seen, but for that time. */
export function etagAfter(
  { status, dueMs }: { readonly status: string; readonly dueMs?: number | undefined },
  seen: string | undefined,
): string | undefined {
  return status === 'rescheduled' && seen !== undefined && seen !== '*'
    ? seen.replace(/[^:]+$/, String(dueMs))
    : undefined;
}
