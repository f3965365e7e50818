/**
 * The ways in to the API besides its own address with a token, each with callers of every scope: mounted in an application
 * that has a login of its own, behind a proxy that puts it below a path, and for the users of a proxy that logs people in.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { SCOPES, type Scope } from '../../src/access/tokens.ts';
import { createDashboard, type DashboardOptions } from '../../src/daemon/dashboard.ts';
import { createHttpWindow } from '../../src/daemon/http-window.ts';
import { type DaemonInput, readDaemonInput } from '../../src/daemon/input.ts';
import { createEmitter } from '../../src/job/events.ts';
import type { Log } from '../../src/kernel/log.ts';
import { type Answered, type AskOptions, ask, type ServedApi } from './api.ts';
import { startProxy } from './proxy.ts';

export const WAYS = ['mounted, with authorize', 'behind a proxy, below a path', 'as users of a proxy'] as const;
type Way = (typeof WAYS)[number];

export interface WayIn {
  readonly ask: (what: string, options?: AskOptions & { readonly scope?: Scope | undefined }) => Promise<Answered>;
  readonly stop: () => Promise<void>;
}

export const PREFIX = '/ops/jobs';
const RATE_MAX = 1_000_000;

export async function openWay(way: Way, api: ServedApi): Promise<WayIn> {
  switch (way) {
    case 'mounted, with authorize':
      return mountedWay(api);
    case 'behind a proxy, below a path':
      return prefixWay(api);
    case 'as users of a proxy':
      return usersWay(api);
  }
}

interface Served {
  readonly url: string;
  readonly stop: () => Promise<void>;
}

/**
 * An application that is nothing but the dashboard.
 *
 * @param before what it does with a request first
 */
export async function serveMounted(
  options: DashboardOptions,
  before: (request: IncomingMessage) => Promise<void> = async () => undefined,
): Promise<Served> {
  const dashboard = createDashboard(options);
  const listener = getRequestListener(dashboard.fetch, { overrideGlobalObjects: false });
  const server = createServer((request, response) => void before(request).then(() => listener(request, response)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${options.prefix ?? ''}`,
    async stop() {
      await dashboard.stop();
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** The server of a daemon, without the daemon. */
export async function serveWindow(api: ServedApi, http: DaemonInput['http'], log?: Log): Promise<Served> {
  const settings = readDaemonInput({ redis: api.redis.url, http: { port: 0, rateMax: RATE_MAX, ...http } });
  const nothing = { ok: true, detail: '' };
  const shown = { live: () => nothing, ready: async () => nothing, scrape: async () => '', contentType: 'text/plain' };
  const window = createHttpWindow(settings, shown, { log, events: createEmitter(), redis: () => undefined });
  const { host, port } = await window.start();
  return { url: `http://${host}:${port}`, stop: window.stop };
}

async function mountedWay(api: ServedApi): Promise<WayIn> {
  const authorize = (request: Request) => {
    const scope = SCOPES.find((one) => one === request.headers.get('X-Scope'));
    return scope && { name: `app-${scope}`, scopes: [scope] };
  };
  const http = { rateMax: RATE_MAX };
  const served = await serveMounted({ redis: api.redis.url, prefix: PREFIX, http, authorize });
  return {
    ask: pages(
      () => served.url,
      (scope) => ({ 'X-Scope': scope }),
    ),
    stop: served.stop,
  };
}

async function prefixWay(api: ServedApi): Promise<WayIn> {
  const served = await serveWindow(api, { tokens: 'always', trustProxy: ['127.0.0.1'] });
  const proxy = await startProxy({ to: served.url, below: PREFIX, tells: true });
  const tokens = new Map<Scope, string>();
  for (const scope of SCOPES) tokens.set(scope, await api.tokenOf({ scopes: [scope] }));
  return {
    ask: (what, { scope = 'admin', ...options } = {}) => ask(proxy.url, what, { token: tokens.get(scope), ...options }),
    async stop() {
      await proxy.stop();
      await served.stop();
    },
  };
}

/** What oauth2-proxy sends unless it is told otherwise: the user, the address, and a header that is for us no token. */
export const OAUTH2_PROXY = {
  'x-forwarded-user': '10769150350006150715113082367',
  'x-forwarded-email': 'ada@example.org',
  'x-forwarded-preferred-username': 'ada',
  authorization: `Basic ${Buffer.from('10769150350006150715113082367:').toString('base64')}`,
};

/** What Cloudflare Access adds; the assertion is signed, and nobody here looks at it. */
export const CLOUDFLARE_ACCESS = {
  'cf-access-authenticated-user-email': 'ada@example.org',
  'cf-access-jwt-assertion': `e30.${'x'.repeat(1200)}.c2ln`,
  'cf-connecting-ip': '192.0.2.7',
  'x-forwarded-proto': 'https',
  'x-forwarded-for': '192.0.2.7',
};

/** One server for each scope, for all users of a proxy have the same ones. */
async function usersWay(api: ServedApi): Promise<WayIn> {
  const urls = new Map<Scope, string>();
  const open: Served[] = [];
  for (const scope of SCOPES) {
    const http = { trustProxy: ['127.0.0.1'], userHeader: 'X-Forwarded-Email', userScopes: [scope] };
    const served = await serveWindow(api, http);
    const proxy = await startProxy({ to: served.url, sets: OAUTH2_PROXY });
    urls.set(scope, proxy.url);
    open.push(proxy, served);
  }
  return {
    ask: pages(
      (scope) => urls.get(scope) ?? '',
      () => ({}),
    ),
    async stop() {
      for (const one of open) await one.stop();
    },
  };
}

/** Asks as a page does: with a cookie, and the CSRF token that belongs to it. */
function pages(urlOf: (scope: Scope) => string, headersOf: (scope: Scope) => Record<string, string>): WayIn['ask'] {
  const sessions = new Map<Scope, Promise<Record<string, string>>>();
  const opened = async (scope: Scope) => {
    const { headers, body } = await ask(urlOf(scope), 'GET /v1/session', { headers: headersOf(scope) });
    return { Cookie: headers.get('set-cookie')?.split(';')[0] ?? '', 'X-CSRF-Token': String(body?.csrf) };
  };
  return async (what, { scope = 'admin', headers, ...options } = {}) => {
    const isLook = /^(GET|HEAD) /.test(what);
    if (!isLook && !sessions.has(scope)) sessions.set(scope, opened(scope));
    const session = isLook ? {} : await sessions.get(scope);
    return ask(urlOf(scope), what, { ...options, headers: { ...headersOf(scope), ...session, ...headers } });
  };
}
