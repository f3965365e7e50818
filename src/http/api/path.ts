/**
 * The path of a request: which parts it has, and whether these are the ones that were sent. A part may be escaped
 * (`kernel/path-part.ts`), and is read here, before the router sees it.
 *
 * What must always hold: no request about one job, group or tag acts on another one. A plain part that a proxy would resolve into another
 * path is therefore refused wherever it arrives, so that a client which sends it learns so at its first try, also without a
 * proxy; and where a trusted proxy tells which path it was asked for, a path that it has changed is refused.
 */
import type { MiddlewareHandler } from 'hono';
import { getPath, tryDecodeURIComponent } from 'hono/utils/url';
import { show } from '../../kernel/duration.ts';
import { escapedPart, isEscaped, isUntidy, readEscaped } from '../../kernel/path-part.ts';
import type { ApiEnv } from './caller.ts';
import { Problem } from './problem.ts';

const HOW = '~ and the base64url of its UTF-8, without =';

/** For the router, which decodes each part once. */
export function routedPath(request: Request): string {
  const path = getPath(request);
  if (!path.includes('/~')) return path;
  const parts = path.split('/').map((part) => {
    const text = isEscaped(part) ? readEscaped(part) : undefined;
    return text === undefined ? part : encodeURIComponent(text);
  });
  return parts.join('/');
}

/** Before anything is routed. @throws Problem `bad-input` */
export const pathGate: MiddlewareHandler<ApiEnv> = async (c, next) => {
  const parts = partsOf(getPath(c.req.raw));
  for (const part of parts) checkPart(part);
  const { askedPath } = c.get('arrival');
  const asked = askedPath === undefined ? [] : partsOf(askedPath).slice(-parts.length);
  const at = asked.findIndex((part, index) => part !== parts[index]);
  if (at === -1) return next();
  throw new Problem('bad-input', {
    detail: `a proxy has changed the path: ${show(asked[at])} was asked, and ${show(parts[at])} has arrived; allowed: such a part as ${HOW}`,
  });
};

const partsOf = (path: string): readonly string[] => path.slice(1).split('/').map(tryDecodeURIComponent);

function checkPart(part: string): void {
  if (isEscaped(part)) {
    if (readEscaped(part) !== undefined) return;
    throw refused(`the part ${show(part)} of the path begins with ~ and says nothing`, HOW);
  }
  if (isUntidy(part)) throw refused(`a proxy may make another path of the part ${show(part)}`, escapedPart(part));
}

const refused = (what: string, allowed: string): Problem =>
  new Problem('bad-input', { detail: `${what}; allowed: ${allowed}` });
