/**
 * The address of a page: `#/jobs/emails?state=ready` is the page `jobs` with the path `['emails']`. It stands behind the #,
 * so the pages work under any prefix, and an address can be sent to somebody.
 */
import { useEffect, useState } from 'preact/hooks';

export interface Route {
  /** The first word; `now` where there is none. */
  readonly name: string;
  /** What follows it, decoded. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

/** @example routeOf('#/job/emails/a%2Fb?bare=true') // { name: 'job', path: ['emails', 'a/b'], query: bare=true } */
export function routeOf(hash: string): Route {
  const [address = '', query = ''] = hash.replace(/^#?\/?/, '').split(/\?(.*)/s);
  const [name = '', ...path] = address
    .split('/')
    .filter((part) => part !== '')
    .map(decoded);
  return { name: name === '' ? 'now' : name, path, query: new URLSearchParams(query) };
}

/** Leads to another page, or to the same one with other words in its address. @param where without `#/` */
export function go(where: string): void {
  location.hash = `#/${where}`;
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => routeOf(location.hash));
  useEffect(() => {
    const changed = () => setRoute(routeOf(location.hash));
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  return route;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
