/**
 * What a thing was when somebody looked at it, as one short text: a change with `ifMatch` holds only if it is still so.
 *
 *   a job          digest of its content, token of its last start, and its due time, `ready` or `running`
 *   a schedule     digest of its definition as it is stored
 *   a dead letter  digest of what names it: a dead letter never changes, so it is this one or another one
 *
 * The scripts compare that of a job with `seen` (`lua/lib/seen.lua`), and the stored text of a schedule with what was read
 * (`lua/verbs/define.lua`), in the same step in which they change it.
 */

import { digestOf } from '../../job/record-header.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { DeadLetter } from '../../redis/read/inspect.ts';

/** An option of each change of one thing. */
export interface IfMatchOption {
  /**
   * Only if it still is what a look at it showed with this `etag`; `*`: whatever it is, if it is there. Else nothing is
   * changed.
   */
  readonly ifMatch?: string | undefined;
}

/** What an ETag of HTTP may hold, between its quotes. */
const ETAG = /^[!#-~]{1,200}$/;
const OF_JOB = /^[^:]+:[^:]+:[^:]+$/;
/** No job is ever seen like this: its token is a number. */
const NEVER_SEEN = '- - -';

/** @throws DuestreamError `bad-input` */
export function parseIfMatch(input: unknown): string | undefined {
  if (input === undefined || (typeof input === 'string' && ETAG.test(input))) return input;
  throw new DuestreamError('bad-input', `ifMatch is ${show(input)}; allowed: the etag that a look showed, or *`);
}

/** @param seen all that was seen of a job, see `seenText` */
export const etagOfJob = (seen: string): string => seen.replaceAll(' ', ':');

/** What the scripts compare; undefined: whatever the job is. An ETag of something else is never what a job is. */
export function seenOfEtag(ifMatch: string | undefined): string | undefined {
  if (ifMatch === undefined || ifMatch === '*') return undefined;
  return OF_JOB.test(ifMatch) ? ifMatch.replaceAll(':', ' ') : NEVER_SEEN;
}

/** Nothing of its content is in it, so everybody may see it. */
export const etagOfDeadLetter = ({
  entry,
  generation,
  id,
  bare,
}: Pick<DeadLetter, 'entry' | 'generation' | 'id' | 'bare'>): string =>
  digestOf(JSON.stringify([entry, generation, id, bare]));

/** Whether a thing that has this ETag, if it is there at all, is what was asked for. */
export const isMatch = (ifMatch: string | undefined, etag: string | undefined): boolean =>
  ifMatch === undefined || (etag !== undefined && (ifMatch === '*' || ifMatch === etag));
