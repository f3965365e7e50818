/** The verbs as an OpenAPI 3.1 document: what is served at `/v1/openapi.json`, and kept in `docs/reference/openapi.json`. */
import type { OpenAPIHono, RouteConfig, z } from '@hono/zod-openapi';
import { IF_MATCH } from './if-match.ts';
import { type ProblemCode, problemStatus } from './problem.ts';
import { problem } from './schemas.ts';
import type { AnyVerb } from './verb.ts';

const ABOUT = `Delayed jobs over HTTP. Times are milliseconds since 1970 in UTC; durations are milliseconds or texts such as "5m".

A request that cannot be carried out is answered with a problem (RFC 9457) whose \`code\` is stable. Whatever is asked, it can be
\`bad-input\` (400), \`misdirected\` (421), \`too-many\` (429), \`failed\` (500), \`refused\` (502), \`unavailable\`, \`indeterminate\` or \`late\`
(503). What a token without the scope \`data\` may not see is left out.

A change of one thing that has an \`ETag\` takes \`If-Match\`. Every other change refuses the header (400).`;

const problemsOf = (one: AnyVerb): readonly ProblemCode[] => [
  ...(one.problems ?? []),
  ...(one.scope === 'none' ? [] : (['unauthorized', 'forbidden'] as const)),
  ...(one.path ? (['not-found'] as const) : []),
  ...(one.versioned ? (['changed'] as const) : []),
  ...(one.body ? (['bad-input', 'too-large', 'not-json'] as const) : []),
];

/** A verb as a route. What it is handed is checked by the same schemas. */
export function routeOf(one: AnyVerb): RouteConfig {
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
    Object.entries(answers).map(([status, { schema, media = 'application/json', doc }]) => [
      status,
      { description: doc, ...(schema ? { content: { [media]: { schema } } } : {}) },
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
export function openApiOf(app: OpenAPIHono): object {
  return app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: { title: 'duestream', version: '1', description: ABOUT, license: { name: 'MIT' } },
    servers: [{ url: 'http://127.0.0.1:7420/v1' }],
  });
}

/** How a caller says who it is. */
export function registerSecurity(app: OpenAPIHono): void {
  app.openAPIRegistry.registerComponent('securitySchemes', 'token', {
    type: 'http',
    scheme: 'bearer',
    description: 'A token of `duestream tokens create`. On a loopback address none is needed.',
  });
  app.openAPIRegistry.registerComponent('securitySchemes', 'session', {
    type: 'apiKey',
    in: 'cookie',
    name: 'duestream_session',
    description: 'The cookie of `POST /session`; each change needs the header `X-CSRF-Token` too.',
  });
}
