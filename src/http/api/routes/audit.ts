/** Who changed what. */
import { z } from '@hono/zod-openapi';
import { auditEntries } from '../../../access/audit.ts';
import { listCursor, parseListCursor } from '../../../client/query/cursor.ts';
import { count, cursor, epochMs, next, strict, wholeText } from '../schemas.ts';
import { type AnyVerb, verb } from '../verb.ts';

const entry = z
  .object({
    entry: z.string(),
    atMs: epochMs,
    who: z.string(),
    way: z.enum(['api', 'page', 'cli', 'program']),
    verb: z.string(),
    queue: z.string().optional(),
    target: z.string().optional(),
    count,
  })
  .openapi('AuditEntry');

const listAudit = verb({
  name: 'audit',
  method: 'get',
  at: '/audit',
  summary: 'Who changed what, newest first',
  doc: 'The newest 10,000 changes by the API, a page or the command line. Scheduling a job is none of them.',
  scope: 'admin',
  queues: 'all',
  query: strict({ limit: wholeText(1, 1000, 100), cursor }),
  answers: {
    200: { schema: z.object({ entries: z.array(entry), next }).openapi('AuditPage'), doc: 'A page of changes.' },
  },
  async run({ query: { limit, cursor: from }, backend }) {
    const before = parseListCursor(from, 'audit', /^\d{1,16}-\d{1,16}$/);
    const entries = await auditEntries(await backend.place(), { limit, before });
    const last = entries.length === limit ? entries.at(-1)?.entry : undefined;
    return { status: 200, body: { entries, next: last === undefined ? undefined : listCursor('audit', last) } };
  },
});

export const auditVerbs: readonly AnyVerb[] = [listAudit];
