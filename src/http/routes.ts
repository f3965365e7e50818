/**
 * What is answered: `/livez`, `/readyz` and `/metrics` by GET or HEAD; anything else is a JSON error. An answer never
 * says more of a failure than its code: messages and stacks go to the log, because whoever asks may be anybody.
 */
import { type Context, Hono } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { timeout } from 'hono/timeout';
import { DuestreamError, errorCatalogue } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import { reasonOf } from '../kernel/reason.ts';
import { carriesToken } from './access.ts';

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
  routes.notFound((c) => c.json({ error: 'not-found', message: 'allowed: /livez, /readyz, /metrics' }, 404));
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
