/**
 * The dashboard and the HTTP API as a fetch handler, for a route of somebody's own application: Hono, Express, Fastify, or
 * whatever has a `Request` and wants a `Response`.
 */

import type { Scope } from '../access/tokens.ts';
import { createArrivals, prefixOf } from '../http/arrival.ts';
import { createPages, isOfPages } from '../http/pages.ts';
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { type Log, parseLog } from '../kernel/log.ts';
import { apiOf, hostsOf } from './http-window.ts';
import { type DaemonInput, readDaemonInput } from './input.ts';

/** Where Redis is and which jobs are shown, as for a daemon, and where the handler is mounted. */
export interface DashboardOptions extends Omit<DaemonInput, 'roles' | 'worker' | 'mover' | 'log'> {
  /** Below which path the handler is mounted: `/ops/jobs`. Default `/`. */
  readonly prefix?: string | undefined;
  /**
   * The login of your application: who sends this request, or undefined for nobody whom you know (401). With it nobody logs in
   * twice: tokens are not asked for, and count for nothing here. The name stands in the audit. It is called for each request
   * of the API, and every few seconds while somebody watches. What it throws, and what is not exactly an
   * `AuthorizedCaller`, lets nobody in: 500, and the reason in the log.
   *
   * @param request as it came, without its body
   * @param env what `fetch` was given as its second argument; of `getRequestListener` of `@hono/node-server`
   * `{ incoming, outgoing }`, the request and response of Node
   */
  readonly authorize?:
    | ((request: Request, env: unknown) => AuthorizedCaller | undefined | Promise<AuthorizedCaller | undefined>)
    | undefined;
  /** Told of faults, such as an `authorize` that throws; a logger of pino fits. Default: silent. */
  readonly log?: Log | undefined;
}

/** Whom the login of an application has let in. */
export interface AuthorizedCaller {
  /** For the audit and the page: 1 to 128 characters, no control characters. */
  readonly name: string;
  /** At least one. `data` and `write` include `read`, `admin` all. */
  readonly scopes: readonly Scope[];
  /** 1 to 100 names of queues; left out: all queues. */
  readonly queues?: readonly string[] | undefined;
}

/** The pages and the API of duestream, below a prefix. */
export interface Dashboard {
  /**
   * Answers a request below the prefix. It never rejects.
   *
   * @param env for `authorize`. With `{ incoming }`, the request of Node, `http.trustProxy` counts too
   */
  readonly fetch: (request: Request, env?: unknown) => Promise<Response>;
  /** Sends viewers away, waits for calls under way, and closes the connections. Twice is fine. */
  readonly stop: () => Promise<void>;
  /** `stop`, for `await using dashboard = createDashboard(…)`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>;
}

/**
 * Pages and API to be mounted in an application. It connects when it is first asked. Whoever asks is known by `authorize`, or
 * needs a token that `duestream tokens create` has made: an application is not bound to this machine.
 *
 * @param options `redis` as for a producer; `prefix`, `authorize`, `log`; and of the configuration `namespace`, `queues`, `http` and limits.
 * @throws DuestreamError `bad-config` for unknown or impossible options; `bad-input` for a `log` that is no logger.
 * @example
 * const dashboard = createDashboard({ redis: 'redis://127.0.0.1:6379', prefix: '/ops/jobs' });
 * const response = await dashboard.fetch(new Request('http://localhost/ops/jobs/'));
 */
export function createDashboard({ prefix = '', authorize, log, ...input }: DashboardOptions): Dashboard {
  const mountedAt = prefixOf(prefix);
  if (mountedAt === undefined) {
    throw new DuestreamError('bad-config', `prefix is ${show(prefix)}; allowed: a path such as /ops/jobs`);
  }
  const settings = readDaemonInput(input);
  checkLogin(authorize, settings.config.http.userHeader);
  const { config } = settings;
  // As if it listened on every address: it cannot know who reaches the application.
  const http = Object.freeze({ ...config.http, host: '0.0.0.0', api: 'on' as const, tokens: 'always' as const });
  const open = Object.freeze({ ...config, http });
  const mounting = { mountedAt, authorize };
  const api = apiOf({ ...settings, config: open }, parseLog(log), mounting);
  const where = { ...hostsOf(open), isTls: false, mountedAt };
  const pages = createPages(where);
  const arrivals = createArrivals(where);

  async function stop(): Promise<void> {
    api?.drain();
    await api?.stop();
  }

  return {
    async fetch(request, env) {
      const url = new URL(request.url);
      // Relative addresses in the pages count from the slash.
      if (url.pathname === mountedAt && mountedAt !== '') {
        const { prefix: below } = arrivals(request, env);
        return new Response(null, { status: 308, headers: { Location: `${below}/` } });
      }
      if (!url.pathname.startsWith(`${mountedAt}/`)) return missing(mountedAt, url.pathname);
      url.pathname = url.pathname.slice(mountedAt.length);
      const inner = new Request(url, request);
      const handed = { incoming: incomingOf(env), given: env };
      if (isOfPages(url.pathname)) return pages(inner, handed);
      return api && url.pathname.startsWith('/v1/') ? api.fetch(inner, handed) : missing(mountedAt, url.pathname);
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** @throws DuestreamError `bad-config` */
function checkLogin(authorize: unknown, userHeader: string): void {
  if (authorize !== undefined && typeof authorize !== 'function') {
    throw new DuestreamError('bad-config', `authorize is ${show(authorize)}; allowed: a function`);
  }
  if (userHeader === '') return;
  throw new DuestreamError('bad-config', 'http.userHeader is for the server of a daemon; allowed here: authorize');
}

/** The request of Node, if an adapter hands it on. */
const incomingOf = (env: unknown): unknown =>
  typeof env === 'object' && env !== null && 'incoming' in env ? env.incoming : undefined;

/** A router that takes the path off its address is told apart from a path that there is not by what came here. */
const missing = (mountedAt: string, path: string): Response =>
  new Response(
    `no such path; the pages are at ${mountedAt}/ and the API is below ${mountedAt}/v1/, and ${path} was asked\n`,
    {
      status: 404,
      headers: { 'Content-Type': 'text/plain' },
    },
  );
