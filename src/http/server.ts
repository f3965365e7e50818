/**
 * The window for probes and scrapers: one HTTP server from `start` to `stop`.
 *
 * What must always hold: it never listens beyond loopback without a token; a slow or silent client costs one bounded
 * socket for a bounded time; `stop` ends. A keep-alive connection that is busy when the server closes would hold it open
 * for ever: so answers say `Connection: close` from then on, idle connections are closed again and again, and at the end
 * of the grace all that are left.
 */
import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { getRequestListener } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { timeout } from 'hono/timeout';
import { createAbort } from '../kernel/abort.ts';
import { type Clock, systemClock } from '../kernel/clock.ts';
import { show } from '../kernel/duration.ts';
import { DuestreamError, errorCatalogue, messageOf, oneLine } from '../kernel/errors.ts';
import { type Log, silentLog } from '../kernel/log.ts';
import { reasonOf } from '../kernel/reason.ts';
import { carriesToken, isLoopback } from './api/gate.ts';
import { isOfPages } from './pages.ts';

export interface HttpOptions extends Omit<Answers, 'log' | 'draining'> {
  /** A host name or an IP address. */
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Where the port is taken: the next one that is free, of a hundred. */
  readonly orNextPort?: boolean | undefined;
  readonly log?: Log;
  readonly clock?: Clock;
  /** How long answers under way may take once `stop` was called. Default 2 s. */
  readonly drainMs?: number;
  /** How long a connection may stay open between two requests. Default 75 s. */
  readonly keepAliveMs?: number;
  /** So many connections more may be open, for requests that are kept waiting. Default: none. */
  readonly pollsMax?: number | undefined;
  /** What answers below `/v1`, if anything does. */
  readonly api?: ((request: Request, env: object) => Response | Promise<Response>) | undefined;
  /** What answers `/` and the files of the dashboard, if anything does. */
  readonly pages?: ((request: Request, env: object) => Promise<Response>) | undefined;
  /** Without it the server speaks plain HTTP. */
  readonly tls?: Tls | undefined;
}

/** Certificate and key as PEM. */
export interface Tls {
  readonly cert: string;
  readonly key: string;
}

export interface Http {
  /** Listens. @throws DuestreamError `bad-config` when the address cannot be had. */
  readonly start: () => Promise<{ readonly host: string; readonly port: number }>;
  /** Lets answers under way end, then closes. Twice is the same as once. */
  readonly stop: () => Promise<void>;
}

/** A client that has not sent its headers by then is cut off; Node looks every second instead of every 30 s. */
const HEADERS_TIMEOUT_MS = 5000;
const REQUEST_TIMEOUT_MS = 10_000;
/**
 * Longer than the 60 s for which most balancers and proxies keep theirs: whoever closes first risks that a request is just under way,
 * and a balancer answers that with 502. The headers of the next request have their own time, from its first byte.
 */
const KEEP_ALIVE_MS = 75_000;
const CHECK_EVERY_MS = 1000;
const HEADER_BYTES_MAX = 8192;
/** A proxy that logs people in hands on its cookies and tokens, several kilobytes each. */
const HEADER_BYTES_MAX_API = 32_768;
/** Probes and scrapers need a handful. */
const CONNECTIONS_MAX = 128;
/** Where programs and pages ask as well. */
const CONNECTIONS_MAX_API = 1024;
const PORTS_TRIED_MAX = 100;
const PORT_MAX = 65_535;
const DRAIN_MS = 2000;
const DRAIN_STEP_MS = 20;
/** An old prober may send no Host header; and the globals of the host program stay what they are. */
const LISTENER = { hostname: 'localhost', overrideGlobalObjects: false };

/** @throws DuestreamError `bad-config` for an address beyond loopback without a token. */
export function createHttp(options: HttpOptions): Http {
  const { host, port, token = '', log = silentLog, clock = systemClock, drainMs = DRAIN_MS } = options;
  if (token === '' && !isLoopback(host)) {
    throw new DuestreamError(
      'bad-config',
      `http.host is ${show(host)} and http.token is empty; allowed: a loopback address such as 127.0.0.1, or a token`,
    );
  }
  let draining = false;
  const routes = createRoutes({ ...options, log, draining: () => draining });
  const { api, pages, tls, keepAliveMs = KEEP_ALIVE_MS, pollsMax = 0 } = options;
  const answer: Parameters<typeof getRequestListener>[0] = async (request, env) => {
    const { pathname } = new URL(request.url);
    const ours = api && isOfApi(pathname) ? api : pages && isOfPages(pathname) ? pages : undefined;
    if (!ours) return routes.fetch(request, env);
    const response = await ours(request, env);
    if (draining) response.headers.set('Connection', 'close');
    return response;
  };
  const bounds = { tls, keepAliveMs, pollsMax, hasApi: api !== undefined };
  const server = createBoundedServer(getRequestListener(answer, LISTENER), bounds);
  let started: Promise<{ readonly host: string; readonly port: number }> | undefined;
  let stopped: Promise<void> | undefined;

  async function start(): Promise<{ readonly host: string; readonly port: number }> {
    if (stopped) throw new DuestreamError('stopped', 'the HTTP server was stopped and does not start again');
    const last = options.orNextPort ? Math.min(port + PORTS_TRIED_MAX - 1, PORT_MAX) : port;
    await listen(server, { host, port, last });
    const address = server.address();
    return { host, port: address !== null && typeof address === 'object' ? address.port : port };
  }

  async function stop(): Promise<void> {
    await started?.catch(() => undefined);
    if (!server.listening) return;
    const closed = createAbort();
    draining = true;
    const ended = new Promise<void>((resolve) => {
      server.close(() => {
        closed.abort();
        resolve();
      });
    });
    const startedMs = clock.monotonicMs();
    while (!closed.signal.aborted && clock.monotonicMs() - startedMs < drainMs) {
      server.closeIdleConnections();
      await clock.sleep(DRAIN_STEP_MS, closed.signal);
    }
    server.closeAllConnections();
    await ended;
  }

  return {
    start() {
      started ??= start();
      return started;
    },
    stop() {
      stopped ??= stop();
      return stopped;
    },
  };
}

const isOfApi = (pathname: string): boolean => /^\/v1(\/|$)/.test(pathname);

/** @throws DuestreamError `bad-config` for a certificate or key that is none */
function createBoundedServer(
  listener: ReturnType<typeof getRequestListener>,
  {
    tls,
    keepAliveMs,
    pollsMax,
    hasApi,
  }: {
    readonly tls: Tls | undefined;
    readonly keepAliveMs: number;
    readonly pollsMax: number;
    readonly hasApi: boolean;
  },
): Server {
  const limits = {
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: keepAliveMs,
    connectionsCheckingInterval: CHECK_EVERY_MS,
    maxHeaderSize: hasApi ? HEADER_BYTES_MAX_API : HEADER_BYTES_MAX,
  };
  const onRequest: Parameters<typeof createServer>[1] = (request, response) => {
    listener(request, response).catch(() => response.destroy());
  };
  const server = tls ? secureServer({ ...limits, ...tls }, onRequest) : createServer(limits, onRequest);
  server.maxConnections = (hasApi ? CONNECTIONS_MAX_API : CONNECTIONS_MAX) + pollsMax;
  return server;
}

function secureServer(
  options: Parameters<typeof createTlsServer>[0],
  onRequest: Parameters<typeof createTlsServer>[1],
): Server {
  try {
    return createTlsServer(options, onRequest);
  } catch (error) {
    throw new DuestreamError(
      'bad-config',
      `http.cert and http.key cannot be used: ${reasonOf(error)}; allowed: a certificate and its key as PEM`,
      { cause: error },
    );
  }
}

/** From `port` to `last`, until one is free. A port that was free when somebody looked may be taken a moment later. */
async function listen(
  server: Server,
  { host, port, last }: { readonly host: string; readonly port: number; readonly last: number },
): Promise<void> {
  for (let at = port; ; at += 1) {
    try {
      return await listenOn(server, { host, port: at });
    } catch (error) {
      if (isTaken(error) && at < last) continue;
      throw new DuestreamError('bad-config', refusal({ host, port: at }, messageOf(error)), { cause: error });
    }
  }
}

const isTaken = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';

function listenOn(server: Server, { host, port }: { readonly host: string; readonly port: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (error: Error) => {
      server.off('listening', onListening);
      reject(error);
    };
    const onListening = () => {
      server.off('error', onError);
      resolve();
    };
    server.once('error', onError).once('listening', onListening).listen(port, host);
  });
}

const refusal = ({ host, port }: { readonly host: string; readonly port: number }, why: string): string =>
  `cannot listen on http.host ${show(host)} and http.port ${port}: ${oneLine(why)}; allowed: an address of this machine and a free port, or port 0 for any free one`;

/*
 * The server answers `/livez`, `/readyz` and `/metrics` by GET or HEAD; every other request gets a JSON error. Anybody may
 * ask, so an answer names only the code of a failure; its message and stack go to the log.
 */

/** `detail` is shown to whoever asks with `?verbose`, so it holds no secrets and no data of jobs. */
export interface Health {
  readonly ok: boolean;
  readonly detail: unknown;
}

export interface Answers {
  /** Empty or missing: nobody needs one. */
  readonly token?: string;
  /** Whether this process still makes progress; one that does not should be killed. */
  readonly live: () => Health;
  /** Whether this process can do its work now. */
  readonly ready: () => Promise<Health>;
  readonly scrape: () => Promise<string>;
  /** Of what `scrape` answers. */
  readonly contentType: string;
  readonly log: Log;
  /** Whether the server is about to close: then no connection is kept. */
  readonly draining: () => boolean;
}

/** Longer than the default time-out of a Redis command, shorter than the patience of a scraper (10 s). */
const ANSWER_TIMEOUT_MS = 8000;
const ALLOWED = 'GET, HEAD';
/** Most often a proxy that serves us below a path has not taken that path away. */
const NOWHERE =
  'allowed: /livez, /readyz, /metrics, and with http.api also / and /v1/; a proxy that serves them below a path takes that path away';

export function createRoutes(answers: Answers): Hono {
  const { token = '', log } = answers;
  const routes = new Hono();

  routes.use(async (c, next) => {
    await next();
    // A cached health answer is a lie, and no answer is to be read as anything but what it says it is.
    c.header('Cache-Control', 'no-store');
    c.header('X-Content-Type-Options', 'nosniff');
    if (answers.draining()) c.header('Connection', 'close');
  });
  routes.use(timeout(ANSWER_TIMEOUT_MS, () => new HTTPException(503, { message: 'no answer in time' })));

  routes.get('/livez', (c) => health(c, answers.live()));
  routes.get('/readyz', async (c) => health(c, await answers.ready()));
  routes.get('/metrics', async (c) => {
    if (token !== '' && !carriesToken(c.req.header('Authorization'), token)) {
      c.header('WWW-Authenticate', 'Bearer realm="duestream"');
      return c.json({ error: 'unauthorized', message: 'send the token as Authorization: Bearer <token>' }, 401);
    }
    return c.body(await answers.scrape(), 200, { 'Content-Type': answers.contentType });
  });

  for (const path of ['/livez', '/readyz', '/metrics']) {
    routes.all(path, (c) => {
      c.header('Allow', ALLOWED);
      return c.json({ error: 'method-not-allowed', message: `allowed: ${ALLOWED}` }, 405);
    });
  }
  routes.notFound((c) => c.json({ error: 'not-found', message: NOWHERE }, 404));
  routes.onError((error, c) => {
    const { code, status } = failureOf(error);
    log.error({ path: c.req.path, status, error: reasonOf(error) }, 'request failed');
    return c.json({ error: code }, status);
  });
  return routes;
}

function health(c: Context, { ok, detail }: Health): Response {
  const status = ok ? 200 : 503;
  return c.req.query('verbose') === undefined
    ? c.text(ok ? 'ok\n' : 'not ok\n', status)
    : c.json({ ok, detail }, status);
}

function failureOf(error: unknown): {
  readonly code: string;
  readonly status: 400 | 404 | 409 | 412 | 429 | 500 | 502 | 503 | 507;
} {
  if (error instanceof DuestreamError) return { code: error.code, status: errorCatalogue[error.code].http };
  return error instanceof HTTPException ? { code: 'unavailable', status: 503 } : { code: 'failed', status: 500 };
}
