/** Which page is shown: it stands behind the # of the address, as `#/jobs/emails?state=dead`. */

export interface Route {
  /** `jobs` */
  readonly page: string;
  /** What follows it, decoded: `['emails']`. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

export function routeOf(hash: string): Route {
  const [address = '', query = ''] = splitOnce(hash.replace(/^#\/?/, ''), '?');
  const [page = '', ...path] = address.split('/').map(decoded);
  return { page, path, query: new URLSearchParams(query) };
}

/** Shows another page: `go('jobs/emails?state=dead')`. */
export function go(address: string): void {
  location.hash = `#/${address}`;
}

function splitOnce(text: string, sign: string): readonly string[] {
  const index = text.indexOf(sign);
  return index < 0 ? [text] : [text.slice(0, index), text.slice(index + 1)];
}

/** An address that somebody typed may be no code of anything. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
