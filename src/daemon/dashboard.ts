/**
 * The dashboard and the HTTP API as a fetch handler, for a route of somebody's own application: Hono, Express, Fastify, or
 * whatever has a `Request` and wants a `Response`.
 */

import { createPages, isOfPages } from '../http/pages.ts';
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { silentLog } from '../kernel/log.ts';
import { apiOf, hostsOf } from './http-window.ts';
import { type DaemonInput, readDaemonInput } from './input.ts';

/** Where Redis is and which jobs are shown, as for a daemon, and where the handler is mounted. */
export interface DashboardOptions extends Omit<DaemonInput, 'roles' | 'worker' | 'mover' | 'log'> {
  /** Below which path the handler is mounted: `/ops/jobs`. Default `/`. */
  readonly prefix?: string | undefined;
}

/** The pages and the API of duestream, below a prefix. */
export interface Dashboard {
  /** Answers a request below the prefix. It never rejects. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** Sends viewers away, waits for calls under way, and closes the connections. Twice is fine. */
  readonly stop: () => Promise<void>;
  /** `stop`, for `await using dashboard = createDashboard(…)`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>;
}

const PREFIX = /^(\/[\w.~-]+)*$/;

/**
 * Pages and API to be mounted in an application. It connects when it is first asked. Whoever asks needs a token that
 * `duestream tokens create` has made: an application is not bound to this machine.
 *
 * @param options `redis` as for a producer; `prefix`; and of the configuration `namespace`, `queues`, `http` and limits.
 * @throws DuestreamError `bad-config` for unknown or impossible options.
 * @example
 * const dashboard = createDashboard({ redis: 'redis://127.0.0.1:6379', prefix: '/ops/jobs' });
 * const response = await dashboard.fetch(new Request('http://localhost/ops/jobs/'));
 */
export function createDashboard({ prefix = '', ...input }: DashboardOptions): Dashboard {
  const below = prefix.replace(/\/$/, '');
  if (!PREFIX.test(below)) {
    throw new DuestreamError('bad-config', `prefix is ${show(prefix)}; allowed: a path such as /ops/jobs`);
  }
  const settings = readDaemonInput(input);
  const { config } = settings;
  // As if it listened on every address: it cannot know who reaches the application.
  const http = Object.freeze({ ...config.http, host: '0.0.0.0', api: 'on' as const, tokens: 'always' as const });
  const open = Object.freeze({ ...config, http });
  const api = apiOf({ ...settings, config: open }, silentLog, { isMounted: true });
  const pages = createPages({ ...hostsOf(open), isTls: false });

  async function stop(): Promise<void> {
    api?.drain();
    await api?.stop();
  }

  return {
    async fetch(request) {
      const url = new URL(request.url);
      // Relative addresses in the pages count from the slash.
      if (url.pathname === below && below !== '')
        return new Response(null, { status: 308, headers: { Location: `${below}/` } });
      if (!url.pathname.startsWith(`${below}/`)) return missing();
      url.pathname = url.pathname.slice(below.length);
      const inner = new Request(url, request);
      if (isOfPages(url.pathname)) return pages(inner);
      return api && url.pathname.startsWith('/v1/') ? placed(await api.fetch(inner, {}), below) : missing();
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** The API knows nothing of the prefix: where it says that something is, a client finds it below. */
function placed(answer: Response, below: string): Response {
  const location = answer.headers.get('Location');
  if (location !== null) answer.headers.set('Location', `${below}${location}`);
  return answer;
}

const missing = (): Response =>
  new Response('no such path\n', { status: 404, headers: { 'Content-Type': 'text/plain' } });
