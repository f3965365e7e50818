/** Routes of changes that take names and a few fields: the rows of `operations` say which, and here stands what people read. */
import type { z } from '@hono/zod-openapi';
import { type Askable, type AskField, askFields } from '../../../client/operations.ts';
import { refsOfQueue } from '../../../client/queues/refs.ts';
import type { Told } from '../answer.ts';
import type { ProblemCode } from '../problem.ts';
import { duration, groupName, queueName, reason, setName, strict, tagName, workerId } from '../schemas.ts';
import { type AnyVerb, type DryRun, verb } from '../verb.ts';

interface Sentences<Body> {
  readonly summary: string;
  readonly doc?: string;
  readonly type: Told<Body>;
  readonly answer: string;
  /** Where the address does not follow from the name; then all fields stand in the query. */
  readonly delete?: string;
  readonly tool?: DryRun;
  readonly problems?: readonly ProblemCode[];
}

const NAMES = { queue: queueName, group: groupName, tag: tagName, set: setName, worker: workerId };
const KINDS = { duration, words: reason, group: groupName };

/** What of the path, the query and the body is one object, as the row wants it. */
type Given = Readonly<Record<string, string>>;

export function asking<Body>({ name, scope, ask }: Askable<Body>, said: Sentences<Body>): AnyVerb {
  const { names, needs = [], takes = [] } = ask;
  const shapeOf = (isMeant: (field: AskField) => boolean) => {
    const needed = needs.filter(isMeant).map((field) => [field, schemaOf(field)]);
    const taken = takes.filter(isMeant).map((field) => [field, schemaOf(field).optional()]);
    return strict(Object.fromEntries([...needed, ...taken])) as unknown as z.ZodType<Given>;
  };
  const isAsked = (field: AskField) => said.delete !== undefined || askFields[field].kind === 'group';
  const has = (isMeant: (field: AskField) => boolean) => [...needs, ...takes].some(isMeant);
  return verb({
    ...{ name, scope, summary: said.summary, doc: said.doc, problems: said.problems, tool: said.tool },
    // What is about no queue is about all of them.
    queues: names.includes('queue') ? 'path' : 'all',
    method: said.delete === undefined ? 'post' : 'delete',
    at: said.delete ?? `${names.map((one) => `/${one}s/{${one}}`).join('')}/${name.split('.')[1]}`,
    path: strict(Object.fromEntries(names.map((one) => [one, NAMES[one]]))) as unknown as z.ZodType<Given>,
    ...(has(isAsked) && { query: shapeOf(isAsked) }),
    ...(has((field) => !isAsked(field)) && { body: shapeOf((field) => !isAsked(field)) }),
    bodyRequired: needs.length > 0,
    answers: { 200: { type: said.type, doc: said.answer } },
    async run({ path, query, body, caller, backend }) {
      // What makes a queue of its own elsewhere makes none here.
      if (names.length > 1) await refsOfQueue(await backend.place(), path.queue ?? '');
      const asked = { ...path, ...query, ...body, by: caller.name } as Parameters<typeof ask.run>[1];
      return { status: 200, body: await ask.run(backend.client, asked) };
    },
  });
}

function schemaOf(field: AskField): z.ZodType {
  const { kind, doc, example } = askFields[field];
  return (KINDS[kind] as z.ZodType).openapi({ description: `${doc}.`, example });
}
