/**
 * The files of the dashboard. They hold no data, so nobody needs a token for them: what they show they ask the API for.
 * The build made them, all are read once, and only those that were read can be had: no path leads anywhere else.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkHosts, type HostOptions } from './api/gate/hosts.ts';
import { Problem, problemStatus } from './api/problem.ts';

interface File {
  readonly type: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Nothing but our own files, and no script or style that stands in the markup: text of a job can never run. */
const POLICY = [
  "default-src 'none'",
  ...["script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self' data:", "font-src 'self'"],
  ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
].join('; ');

/** From the sources, as in a test, it is the last build. */
const BUILT = fileURLToPath(
  new URL(import.meta.url.endsWith('.ts') ? '../../dist/dashboard/' : '../dashboard/', import.meta.url),
);

/** Answers `/` and `/assets/…`; undefined for anything else. */
export function createPages(hosts: HostOptions, dir = BUILT): (request: Request) => Response | undefined {
  const files = filesOf(dir);
  return (request) => {
    const { pathname } = new URL(request.url);
    const file = files.get(pathname);
    const isLook = request.method === 'GET' || request.method === 'HEAD';
    if (file === undefined || !isLook) return undefined;
    return refusal(hosts, request) ?? answer(file, { pathname, hasBody: request.method === 'GET' });
  };
}

function answer(
  { type, bytes }: File,
  { pathname, hasBody }: { readonly pathname: string; readonly hasBody: boolean },
): Response {
  // The name of an asset holds its digest: another build, another name.
  const kept = pathname === '/' ? 'no-store' : 'public, max-age=31536000, immutable';
  const headers = { ...SAFE, 'Content-Type': type, 'Cache-Control': kept, 'Content-Length': String(bytes.length) };
  return new Response(hasBody ? bytes : null, { headers });
}

const SAFE = {
  'Content-Security-Policy': POLICY,
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/** A link from elsewhere may lead here; a host that is not ours may not. */
function refusal(hosts: HostOptions, { headers }: Request): Response | undefined {
  try {
    checkHosts(hosts, { host: headers.get('Host') ?? undefined, origin: undefined, site: undefined });
    return undefined;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return new Response(`${error.message}\n`, { status: problemStatus(error.code), headers: SAFE });
  }
}

/** By the path of the address. None where nothing was built. */
function filesOf(dir: string): ReadonlyMap<string, File> {
  const files = new Map<string, File>();
  if (!existsSync(join(dir, 'index.html'))) return files;
  const names = readdirSync(join(dir, 'assets')).map((name) => `assets/${name}`);
  for (const name of ['index.html', ...names]) {
    const type = TYPES[extname(name)];
    if (type === undefined) continue;
    const bytes = Uint8Array.from(readFileSync(join(dir, name)));
    files.set(name === 'index.html' ? '/' : `/${name}`, { type, bytes });
  }
  return files;
}
