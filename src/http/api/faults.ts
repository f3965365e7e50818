/** What a schema refuses → a problem that names each field, what was given there and what is allowed. */
import type { Hook, z } from '@hono/zod-openapi';
import { show } from '../../kernel/duration.ts';
import type { ApiEnv } from './caller.ts';
import { type Fault, Problem } from './problem.ts';

const PLACES: Readonly<Record<string, string>> = { json: 'body', query: 'query', param: 'path', header: 'header' };
/** Of a field that may hold a secret, or somebody's data, the value is not repeated. */
const HIDDEN = /(^|\.)(token|data|authorization)($|\.)/i;
const FAULTS_MAX = 10;

/** For the router: throws, so that all problems are answered in one place. */
export const refuseFaults: Hook<unknown, ApiEnv, string, unknown> = (result) => {
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
