/** The target of a queue is tried: one request, as its jobs would send it. */
import { answers } from '../answer.ts';
import { Problem } from '../problem.ts';
import { ofQueue, strict } from '../schemas.ts';
import { jobTarget } from '../setting-shapes.ts';
import { type AnyVerb, verb } from '../verb.ts';
import { data } from './job-shapes.ts';

const tryTarget = verb({
  name: 'targets.try',
  method: 'post',
  at: '/queues/{queue}/target/try',
  summary: 'Try the target of a queue',
  doc: 'Sends one request now, as a job of the queue would send it, and says step by step what came of it. No job is made. The daemon needs the role `dispatcher`; it sends 10 such requests a minute.',
  scope: 'admin',
  queues: 'path',
  path: ofQueue,
  body: strict({ data: data.optional(), target: jobTarget.optional() }).openapi('TargetTry'),
  bodyRequired: false,
  answers: {
    200: { type: answers.TargetTried, doc: 'How far the request came, and what it would have made of a job.' },
  },
  problems: ['bad-input', 'not-found', 'too-many'],
  async run({ path: { queue }, body, backend, signal }) {
    if (!backend.tryTarget) {
      throw new Problem('not-found', {
        detail: 'this daemon calls no targets; ask one that has the role dispatcher, or add the role to this one',
      });
    }
    const tried = await backend.tryTarget(queue, { data: body?.data ?? null, target: body?.target }, signal());
    if (tried) return { status: 200, body: tried };
    const detail = 'this daemon has tried 10 targets within a minute; ask again later';
    throw new Problem('too-many', { detail, headers: { 'Retry-After': '60' } });
  },
});

export const targetVerbs: readonly AnyVerb[] = [tryTarget];
