/**
 * The HTTP API below `/v1`. A request goes through the same gates, whatever it asks:
 *
 *   host and origin ─▶ path ─▶ who asks ─▶ how often ─▶ how large ─▶ is it allowed ─▶ is it well formed ─▶ the verb ─▶ the audit
 *
 * and has an answer within a bounded time. What goes wrong anywhere becomes a problem, in one place.
 */
import { type Hook, OpenAPIHono, type RouteConfig, type z } from '@hono/zod-openapi';
import type { Context, MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';
import { secureHeaders } from 'hono/secure-headers';
import { timeout } from 'hono/timeout';
import { createLook } from '../../inspect/look.ts';
import { createAbort } from '../../kernel/abort.ts';
import { type Clock, systemClock } from '../../kernel/clock.ts';
import { show } from '../../kernel/duration.ts';
import { type Log, silentLog } from '../../kernel/log.ts';
import { CLAIM_WAIT_MS_MAX } from '../../remote/remote-work.ts';
import { type ArrivalOptions, createArrivals, hstsOf } from '../arrival.ts';
import { answerSchemas } from './answer-schemas.ts';
import type { Elsewhere } from './answers.ts';
import { type BackendOptions, createBackend } from './backend.ts';
import type { ApiEnv } from './caller.ts';
import { carryOut, checkMay, REASON } from './carry-out.ts';
import {
  bodyGate,
  type CallerOptions,
  checkHosts,
  createIdentity,
  createRates,
  type HostOptions,
  numberGate,
  remoteOf,
} from './gate.ts';
import { IF_MATCH, ifMatchOf } from './if-match.ts';
import { pathGate, routedPath } from './path.ts';
import { answerProblem, type Fault, Problem, type ProblemCode, problemStatus } from './problem.ts';
import { createPulse } from './pulse.ts';
import { aboutVerbs } from './routes/about.ts';
import { batchVerbs } from './routes/batches.ts';
import { closingVerbs } from './routes/closing.ts';
import { deadVerbs, deadWorkVerbs } from './routes/dead.ts';
import { endVerbs, waitedMs } from './routes/ends.ts';
import { eraseVerbs } from './routes/erase.ts';
import { groupVerbs } from './routes/groups.ts';
import { jobListVerbs } from './routes/job-lists.ts';
import { jobVerbs } from './routes/jobs.ts';
import { limitVerbs } from './routes/limits.ts';
import { liveVerbs } from './routes/live.ts';
import { auditVerbs, lookVerbs } from './routes/looks.ts';
import { minuteVerbs } from './routes/minutes.ts';
import { queueVerbs } from './routes/queues.ts';
import { scheduleRunVerbs } from './routes/schedule-runs.ts';
import { scheduleVerbs } from './routes/schedules.ts';
import { sessionVerbs } from './routes/session.ts';
import { setVerbs } from './routes/sets.ts';
import { simulateVerbs } from './routes/simulate.ts';
import { targetVerbs } from './routes/targets.ts';
import { workVerbs } from './routes/work.ts';
import { problem } from './schemas.ts';
import { settingsShape } from './setting-shapes.ts';
import { TRACE_HEADERS } from './trace-context.ts';
import type { AnyVerb } from './verb.ts';

export interface ApiOptions extends BackendOptions, HostOptions, ArrivalOptions, CallerOptions {
  readonly log?: Log;
  readonly clock?: Clock;
}

export interface Api {
  readonly fetch: (request: Request, env: object) => Response | Promise<Response>;
  /** Sends those who watch away, and lets nobody watch any more. */
  readonly drain: () => void;
  /** Waits for calls under way, and closes the connections. */
  readonly stop: () => Promise<void>;
}

/** Longer than an outage is waited out, shorter than a proxy waits. */
const ANSWER_WITHIN_MS = 25_000;
const MEDIA = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
const TRACED = TRACE_HEADERS.map(({ name }) => name);
const SENT = ['Authorization', 'Content-Type', 'Idempotency-Key', 'If-Match', REASON, ...TRACED];
const SHOWN = ['ETag', 'Location', 'Retry-After'];
/** Tokens that open nothing, per second and address. */
const FAILURES_MAX = 10;

export function createApi(options: ApiOptions): Api {
  const { log = silentLog, clock = systemClock } = options;
  const backend = createBackend(options);
  const app = new OpenAPIHono<ApiEnv>({ defaultHook: refuseFaults, getPath: routedPath });
  const failures = createRates(FAILURES_MAX, clock);
  const { identified, stillMay } = createIdentity({ options, backend, failures, log }, ratesOf(options.limits, clock));
  const draining = createAbort();
  const { schedules, queues } = backend.client;
  const why = (queue: string) => queues.why(queue, { readyMax: backend.readyMax });
  const pulse = createPulse(createLook({ backend: { ...backend, schedules, why }, clock, log }), clock);

  app.use(arrivalOf(options));
  app.use(headersOf(options));
  app.use((c, next) => timeout(ANSWER_WITHIN_MS + waitingMs(c), lateness)(c, next));
  app.use(hostGate(options));
  app.use(
    cors({ origin: originsOf(options), allowMethods: MEDIA, allowHeaders: SENT, exposeHeaders: SHOWN, maxAge: 600 }),
  );
  app.use(pathGate);
  app.use(bodyGate(options.limits.bodyBytesMax));
  app.get('/v1/openapi.json', documentGate(options));
  for (const verb of verbs) {
    const mayCall: MiddlewareHandler<ApiEnv> = async (c, next) => {
      const caller = await identified(verb, c);
      checkMay(verb, caller, c);
      c.set('caller', caller);
      c.set('ifMatch', ifMatchOf(verb, c.req.header('If-Match')));
      await next();
    };
    app.openapi(
      { ...routeOf(verb), path: `/v1${verb.at}`, middleware: verb.body ? [mayCall, numberGate] : [mayCall] },
      (c) => {
        const caller = c.get('caller');
        const failed = () => failures.take(remoteOf(c));
        const asked = { caller, ifMatch: c.get('ifMatch'), arrival: c.get('arrival') };
        const parts = { ...asked, verb, backend, log, failed, pulse, peer: remoteOf(c) };
        const signal = () => AbortSignal.any([c.req.raw.signal, draining.signal]);
        return carryOut({ ...parts, stillMay: () => stillMay(verb, caller, c), cut: cutOf(c), signal }, c) as never;
      },
    );
  }
  refuseMethods(app, verbs);
  app.notFound(() => {
    throw new Problem('not-found', { detail: 'there is no such path; GET /v1/openapi.json lists them' });
  });
  app.onError((error, c) => answerProblem(c, error, log));

  function drain(): void {
    pulse.stop();
    backend.work?.drain();
    draining.abort(new Problem('stopped', { detail: 'repeat the request: another daemon may answer it' }));
  }

  return {
    fetch: (request, env) => app.fetch(request, env),
    drain,
    async stop() {
      drain();
      await backend.work?.stop();
      await backend.stop();
    },
  };
}

const ratesOf = ({ rateMax, workRateMax }: ApiOptions['limits'], clock: Clock) => ({
  rates: createRates(rateMax, clock),
  workRates: createRates(workRateMax, clock),
});

/** How long a request may be kept waiting, besides the time of its answer. A claim says it in its body. */
const waitingMs = (c: Context): number =>
  c.req.path.endsWith('/claim') ? CLAIM_WAIT_MS_MAX : waitedMs(c.req.query('wait'));

/** Undoes the connection, where there is one to see. */
function cutOf(c: Context): () => void {
  const { incoming } = (c.env ?? {}) as { readonly incoming?: { readonly destroy?: () => void } };
  return () => incoming?.destroy?.();
}

const elsewhere: { readonly [Name in keyof Elsewhere]: z.ZodType } = { QueueSettings: settingsShape };

/** The OpenAPI file, without anything that could differ between two daemons. */
export function documentOf(): string {
  const app = new OpenAPIHono();
  registerSecurity(app);
  for (const [name, schema] of Object.entries(answerSchemas))
    app.openAPIRegistry.registerComponent('schemas', name, schema as object);
  for (const [name, schema] of Object.entries(elsewhere)) app.openAPIRegistry.register(name, schema);
  for (const verb of verbs) app.openAPIRegistry.registerPath(routeOf(verb));
  return `${JSON.stringify(openApiOf(app), undefined, 2)}\n`;
}

const lateness = () => {
  const detail = `there was no answer within ${ANSWER_WITHIN_MS / 1000} s; a change may have been carried out: look, or repeat the same request`;
  return new Problem('late', { detail }) as never;
};

/** What the others decide by. Where an answer says that something is, a client finds it below the prefix. */
function arrivalOf(options: ArrivalOptions): MiddlewareHandler<ApiEnv> {
  const arrivals = createArrivals(options);
  return async (c, next) => {
    const arrival = arrivals(c.req.raw, c.env);
    c.set('arrival', arrival);
    await next();
    const location = c.res.headers.get('Location');
    if (location !== null) c.header('Location', `${arrival.prefix}${location}`);
  };
}

function headersOf(options: ArrivalOptions): MiddlewareHandler<ApiEnv> {
  const secure = secureHeaders({
    contentSecurityPolicy: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
    referrerPolicy: 'no-referrer',
    xFrameOptions: 'DENY',
    strictTransportSecurity: false,
  });
  return async (c, next) => {
    await secure(c, next);
    // What is streamed says more than that.
    if (!c.res.headers.has('Cache-Control')) c.header('Cache-Control', 'no-store');
    for (const [name, value] of Object.entries(hstsOf(c.get('arrival'), options))) c.header(name, value);
  };
}

function hostGate(options: HostOptions): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    checkHosts(options, c.get('arrival'), { origin: c.req.header('Origin'), site: c.req.header('Sec-Fetch-Site') });
    await next();
  };
}

/** Only pages that are named may read an answer. */
const originsOf =
  ({ allowedOrigins }: HostOptions) =>
  (origin: string): string | null =>
    allowedOrigins.includes(origin.toLowerCase()) ? origin : null;

/** A path that there is, with a method that it has not. */
function refuseMethods(app: OpenAPIHono<ApiEnv>, all: readonly AnyVerb[]): void {
  const methods = new Map<string, string[]>();
  for (const { at, method } of all) methods.set(at, [...(methods.get(at) ?? []), method.toUpperCase()]);
  for (const [at, has] of methods) {
    const allow = [...(has.includes('GET') ? ['HEAD'] : []), ...has].sort().join(', ');
    app.all(`/v1${at.replaceAll(/\{(.+?)\}/g, ':$1')}`, () => {
      throw new Problem('method-not-allowed', { detail: `allowed: ${allow}`, headers: { Allow: allow } });
    });
  }
}

/* A request that a schema refuses becomes a problem: it names each field, the given value and what is allowed. */

const PLACES: Readonly<Record<string, string>> = { json: 'body', query: 'query', param: 'path', header: 'header' };
/** Of a field that may hold a secret, or somebody's data, the value is not repeated. */
const HIDDEN = /(^|\.)(token|data|authorization)($|\.)/i;
const FAULTS_MAX = 10;

/** For the router: throws, so that all problems are answered in one place. */
const refuseFaults: Hook<unknown, ApiEnv, string, unknown> = (result) => {
  if (result.success) return;
  const place = PLACES[result.target] ?? result.target;
  const given: unknown = 'data' in result ? result.data : undefined;
  const errors = result.error.issues.slice(0, FAULTS_MAX).map((issue) => faultOf(issue, place, given));
  const [first] = errors;
  const detail = first && `${first.field} is ${first.given}; allowed: ${first.allowed}`;
  throw new Problem('bad-input', { detail, errors });
};

function faultOf(issue: z.core.$ZodIssue, place: string, whole: unknown): Fault {
  const path = issue.code === 'unrecognized_keys' ? [...issue.path, issue.keys[0] ?? ''] : issue.path;
  const field = [place, ...path.map(String)].join('.');
  if (issue.code === 'unrecognized_keys') return { field, given: 'unknown', allowed: issue.message };
  const given = HIDDEN.test(field) ? 'not repeated here' : show(valueAt(whole, path));
  return { field, given, allowed: allowedBy(issue) };
}

function allowedBy(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_value':
      return issue.values.map(String).join(', ');
    case 'invalid_union':
      return issue.message;
    default:
      return issue.message.replace(/^Invalid (input|string): /, '');
  }
}

function valueAt(whole: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (node, key) => (typeof node === 'object' && node !== null ? Reflect.get(node, key) : undefined),
    whole,
  );
}

// The verbs as an OpenAPI 3.1 document: what is served at `/v1/openapi.json`, and kept in
// `docs/reference/openapi.json`.

const ABOUT = `Delayed jobs over HTTP. Times are milliseconds since 1970 in UTC; durations are milliseconds or texts such as "5m".

A request that cannot be carried out is answered with a problem (RFC 9457) whose \`code\` is stable. Whatever is asked, it can be
\`bad-input\` (400), \`misdirected\` (421), \`too-many\` (429), \`failed\` (500), \`refused\` (502), \`unavailable\`, \`indeterminate\` or \`late\`
(503). What a token without the scope \`data\` may not see is left out.

Each part of a path (an id, a group, a tag, a dead letter) may be written as \`~\` and the base64url of its UTF-8, without \`=\`: \`order/7\` is
\`~b3JkZXIvNw\`. Percent-encoded, a part with \`/\`, \`\\\` or \`%\`, or that is \`.\` or \`..\`, may become another path behind a proxy; a part that
begins with \`~\` always means this form.

A change of one thing that has an \`ETag\` takes \`If-Match\`. Every other change refuses the header (400).

Every change takes the header \`${REASON}\`: why, for the audit, as percent-encoded UTF-8 of at most 200 characters. A \`reason\` in the body
comes before it.`;

const problemsOf = (one: AnyVerb): readonly ProblemCode[] => [
  ...(one.problems ?? []),
  ...(one.scope === 'none' ? [] : (['unauthorized', 'forbidden'] as const)),
  ...(one.path ? (['not-found'] as const) : []),
  ...(one.versioned ? (['changed'] as const) : []),
  ...(one.body ? (['bad-input', 'too-large', 'not-json'] as const) : []),
];

/** A verb as a route. What it is handed is checked by the same schemas. */
function routeOf(one: AnyVerb): RouteConfig {
  const { name, method, at, summary, doc, scope, path, query, body, bodyRequired = true } = one;
  return {
    method,
    path: at,
    operationId: name,
    summary,
    tags: [name.split('.')[0] ?? name],
    ...(doc === undefined ? {} : { description: doc }),
    security: scope === 'none' ? [] : [{ token: [] }, { session: [] }],
    'x-scope': scope,
    request: {
      // The kinds of schemas that stand in a path and in a query are objects, which the type of a verb does not say.
      ...(path ? { params: path as unknown as z.ZodObject } : {}),
      ...(query ? { query: query as unknown as z.ZodObject } : {}),
      ...(body
        ? {
            body: { required: bodyRequired, content: { 'application/json': { schema: body as unknown as z.ZodType } } },
          }
        : {}),
    },
    parameters: [...(one.headers ?? []), ...(one.versioned ? [IF_MATCH] : [])].map((header) => ({
      name: header.name,
      in: 'header' as const,
      description: header.doc,
      required: false,
      schema: { type: 'string' as const },
    })),
    responses: { ...answersOf(one), ...problemAnswersOf(one) },
  };
}

function answersOf({ answers }: AnyVerb): RouteConfig['responses'] {
  return Object.fromEntries(
    Object.entries(answers).map(([status, { type, media = 'application/json', doc }]) => [
      status,
      { description: doc, ...(type ? { content: { [media]: { schema: type.ref } } } : {}) },
    ]),
  );
}

function problemAnswersOf(one: AnyVerb): RouteConfig['responses'] {
  const codes = new Map<number, string[]>();
  for (const code of problemsOf(one)) {
    const status = problemStatus(code);
    codes.set(status, [...new Set([...(codes.get(status) ?? []), code])]);
  }
  const content = { 'application/problem+json': { schema: problem } };
  const own = [...codes].map(([status, of]) => [
    status,
    { description: of.map((code) => `\`${code}\``).join(', '), content },
  ]);
  return { ...Object.fromEntries(own), default: { description: OTHERS, content } };
}

/** Which these are, the description of the API says once. */
const OTHERS = 'Another problem.';

/** The document, with paths below `/v1`. */
function openApiOf(app: OpenAPIHono): object {
  return app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: { title: 'duestream', version: '1', description: ABOUT, license: { name: 'MIT' } },
    servers: [{ url: SERVER }],
  });
}

const SERVER = 'http://127.0.0.1:7420/v1';

/** Behind a proxy that we trust, and in an application, the document says where the API is for whoever asks. */
function documentGate({ mountedAt }: ApiOptions): MiddlewareHandler<ApiEnv> {
  const document = documentOf();
  return async (c) => {
    const { isProxied, isTls, publicHost, prefix } = c.get('arrival');
    const isHere = !isProxied && mountedAt === undefined;
    const server = isHere ? SERVER : `${new URL(`${isTls ? 'https' : 'http'}://${publicHost}`).origin}${prefix}/v1`;
    const placed = document.replace(JSON.stringify(SERVER), () => JSON.stringify(server));
    return c.body(placed, 200, { 'Content-Type': 'application/json' });
  };
}

/** How a caller says who it is. */
function registerSecurity(app: OpenAPIHono): void {
  app.openAPIRegistry.registerComponent('securitySchemes', 'token', {
    type: 'http',
    scheme: 'bearer',
    description: 'A token of `duestream tokens create`. On a loopback address none is needed.',
  });
  app.openAPIRegistry.registerComponent('securitySchemes', 'session', {
    type: 'apiKey',
    in: 'cookie',
    name: 'duestream_session_7420',
    description:
      'The cookie of `POST /session`, whose name ends with the port of the address, or what an application or a proxy lets in; each change needs the header `X-CSRF-Token` too.',
  });
}

// Every verb there is.

export const verbs: readonly AnyVerb[] = [
  ...queueVerbs,
  ...groupVerbs,
  ...limitVerbs,
  ...closingVerbs,
  ...setVerbs,
  ...minuteVerbs,
  ...simulateVerbs,
  ...targetVerbs,
  ...jobListVerbs,
  ...endVerbs,
  ...jobVerbs,
  ...batchVerbs,
  ...deadVerbs,
  ...deadWorkVerbs,
  ...eraseVerbs,
  ...scheduleVerbs,
  ...scheduleRunVerbs,
  ...lookVerbs,
  ...aboutVerbs,
  ...liveVerbs,
  ...auditVerbs,
  ...sessionVerbs,
  ...workVerbs,
];
