import { answers } from '../answer.ts';
import { type AnyVerb, verb } from '../verb.ts';

const about = verb({
  name: 'about',
  method: 'get',
  at: '/about',
  summary: 'Which installation answers, and what the caller may do',
  scope: 'read',
  tool: 'look',
  queues: 'own',
  answers: {
    200: {
      type: answers.About,
      doc: 'Where the jobs are, and the scopes of the caller.',
    },
  },
  run: async ({ caller: { name, scopes, queues }, backend: { installation } }) => ({
    status: 200,
    body: { ...installation, name, scopes: [...scopes], queues },
  }),
});

export const aboutVerbs: readonly AnyVerb[] = [about];
