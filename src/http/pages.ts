/**
 * The pages of the dashboard: files that the build made, loaded once and kept, for there are few of them. They are text in a
 * module, so that a bundler takes them along. They hold nothing of anybody's jobs, so they need no token; what a page shows
 * it asks of the API. Nothing inline and nothing from elsewhere may run in them.
 */
import { extname } from 'node:path';
import { gzipSync } from 'node:zlib';
import { checkHosts, type HostOptions } from './api/gate.ts';
import { Problem, problemStatus } from './api/problem.ts';
import { type Arrival, type ArrivalOptions, createArrivals, hstsOf } from './arrival.ts';

interface Page {
  readonly body: Uint8Array<ArrayBuffer>;
  readonly zipped: Uint8Array<ArrayBuffer>;
  readonly type: string;
  /** Its name says what is in it. */
  readonly isHashed: boolean;
}

export interface PagesOptions extends HostOptions, ArrivalOptions {}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.md': 'text/plain; charset=utf-8',
};

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const HEADERS = {
  'Content-Security-Policy': POLICY,
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
};

/** Whether a path is one of ours: all that is not the API, a probe or the metrics. */
export const isOfPages = (pathname: string): boolean => /^\/($|assets\/|icon\.svg$|licenses\.md$)/.test(pathname);

/** Answers the paths that `isOfPages`, with 404 for a file that is not there. */
export function createPages(options: PagesOptions): (request: Request, env: unknown) => Promise<Response> {
  let loading: Promise<ReadonlyMap<string, Page>> | undefined;
  const arrivals = createArrivals(options);

  return async (request, env) => {
    const arrival = arrivals(request, env);
    const refused = refusalOf(options, request, arrival);
    if (refused !== undefined) return plain(refused.status, refused.text);
    loading ??= loadPages();
    const pages = await loading;
    const page = pages.get(new URL(request.url).pathname);
    if (page === undefined)
      return plain(404, pages.size === 0 ? 'the pages are not built: npm run build' : 'no such file');
    return answerWith(page, request, hstsOf(arrival, options));
  };
}

function refusalOf(
  options: PagesOptions,
  request: Request,
  arrival: Arrival,
): { readonly status: number; readonly text: string } | undefined {
  if (request.method !== 'GET' && request.method !== 'HEAD') return { status: 405, text: 'allowed: GET, HEAD' };
  const [origin, site] = ['Origin', 'Sec-Fetch-Site'].map((name) => request.headers.get(name) ?? undefined);
  try {
    // A link on another site may lead here; only its scripts may not.
    checkHosts(options, arrival, { origin, site: origin === undefined ? undefined : site });
    return undefined;
  } catch (error) {
    if (error instanceof Problem) return { status: problemStatus(error.code), text: error.message };
    throw error;
  }
}

function answerWith(
  { body, zipped, type, isHashed }: Page,
  request: Request,
  hsts: Readonly<Record<string, string>>,
): Response {
  const isZipped = /\bgzip\b/.test(request.headers.get('Accept-Encoding') ?? '');
  const sent = isZipped ? zipped : body;
  return new Response(request.method === 'HEAD' ? null : sent, {
    headers: {
      ...HEADERS,
      ...hsts,
      ...(isZipped ? { 'Content-Encoding': 'gzip' } : {}),
      Vary: 'Accept-Encoding',
      'Content-Type': type,
      'Content-Length': String(sent.byteLength),
      'Cache-Control': isHashed ? 'public, max-age=31536000, immutable' : 'no-store',
    },
  });
}

const plain = (status: number, text: string): Response =>
  new Response(`${text}\n`, { status, headers: { ...HEADERS, 'Content-Type': 'text/plain; charset=utf-8' } });

/** Loaded when the first page is asked for. Without a build there are none. */
async function loadPages(): Promise<ReadonlyMap<string, Page>> {
  // From here and from what this file is compiled to, the same way leads there.
  const built = await import('../../dist/dashboard/pages.mjs').catch(() => ({ pages: {} }));
  const texts = Object.entries<string>(built.pages);
  return new Map(texts.map(([path, text]) => [path === 'index.html' ? '/' : `/${path}`, pageOf(path, text)]));
}

function pageOf(path: string, text: string): Page {
  const body = new TextEncoder().encode(text);
  const type = TYPES[extname(path)] ?? 'application/octet-stream';
  return { body, zipped: new Uint8Array(gzipSync(body)), type, isHashed: path.startsWith('assets/') };
}
