/**
 * The pages of the dashboard: files that the build made, read once and kept, for there are few of them. They hold nothing of
 * anybody's jobs, so they need no token; what a page shows it asks of the API. Nothing inline and nothing from elsewhere may
 * run in them.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { gzipSync } from 'node:zlib';
import { checkHosts, type HostOptions } from './api/gate.ts';
import { Problem, problemStatus } from './api/problem.ts';

interface Page {
  readonly body: Uint8Array<ArrayBuffer>;
  readonly zipped: Uint8Array<ArrayBuffer>;
  readonly type: string;
  /** Its name says what is in it. */
  readonly isHashed: boolean;
}

export interface PagesOptions extends HostOptions {
  readonly isTls: boolean;
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
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
export const isOfPages = (pathname: string): boolean => /^\/($|assets\/|icon\.svg$)/.test(pathname);

/** Answers the paths that `isOfPages`, with 404 for a file that is not there. */
export function createPages(options: PagesOptions): (request: Request) => Response {
  let pages: ReadonlyMap<string, Page> | undefined;

  return (request) => {
    const refused = refusalOf(options, request);
    if (refused !== undefined) return plain(refused.status, refused.text);
    pages ??= readPages();
    const page = pages.get(new URL(request.url).pathname);
    if (page === undefined)
      return plain(404, pages.size === 0 ? 'the pages are not built: npm run build' : 'no such file');
    return answerWith(page, request, options.isTls);
  };
}

function refusalOf(
  options: PagesOptions,
  request: Request,
): { readonly status: number; readonly text: string } | undefined {
  if (request.method !== 'GET' && request.method !== 'HEAD') return { status: 405, text: 'allowed: GET, HEAD' };
  const [host, origin] = ['Host', 'Origin'].map((name) => request.headers.get(name) ?? undefined);
  try {
    // A link on another site may lead here; only its scripts may not.
    checkHosts(options, { host: host ?? new URL(request.url).host, origin, site: undefined });
    return undefined;
  } catch (error) {
    if (error instanceof Problem) return { status: problemStatus(error.code), text: error.message };
    throw error;
  }
}

function answerWith({ body, zipped, type, isHashed }: Page, request: Request, isTls: boolean): Response {
  const isZipped = /\bgzip\b/.test(request.headers.get('Accept-Encoding') ?? '');
  const sent = isZipped ? zipped : body;
  return new Response(request.method === 'HEAD' ? null : sent, {
    headers: {
      ...HEADERS,
      ...(isTls ? { 'Strict-Transport-Security': 'max-age=31536000' } : {}),
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

/** Beside this file in a package; in the repository the build puts them into `dist`. */
const FOLDERS = ['../dashboard/', '../../dist/dashboard/'].map((path) => new URL(path, import.meta.url));

function readPages(): ReadonlyMap<string, Page> {
  for (const folder of FOLDERS) {
    const assets = namesIn(new URL('assets/', folder));
    if (assets.length === 0) continue;
    const paths = ['index.html', 'icon.svg', ...assets.map((name) => `assets/${name}`)];
    return new Map(paths.map((path) => [path === 'index.html' ? '/' : `/${path}`, pageOf(folder, path)]));
  }
  return new Map();
}

function pageOf(folder: URL, path: string): Page {
  const body = new Uint8Array(readFileSync(new URL(path, folder)));
  const type = TYPES[extname(path)] ?? 'application/octet-stream';
  return { body, zipped: new Uint8Array(gzipSync(body)), type, isHashed: path.startsWith('assets/') };
}

function namesIn(folder: URL): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
