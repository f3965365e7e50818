/** Which installation answers, and what the caller may do: so that nobody changes another one than they think. */
import { z } from '@hono/zod-openapi';
import { SCOPES } from '../../../access/tokens.ts';
import { COLORS } from '../../../kernel/checks.ts';
import { type AnyVerb, verb } from '../verb.ts';

const about = verb({
  name: 'about',
  method: 'get',
  at: '/about',
  summary: 'Which installation answers, and what the caller may do',
  scope: 'read',
  queues: 'own',
  answers: {
    200: {
      schema: z
        .object({
          title: z.string().openapi({ description: '`http.title`; empty: none.', example: 'production' }),
          color: z.enum(COLORS).openapi({ description: '`http.color`.' }),
          redis: z
            .string()
            .openapi({ description: 'Its address, without user and password.', example: 'redis://10.0.0.5:6379/3' }),
          namespace: z.string(),
          name: z.string().openapi({ description: 'Of the token; `anonymous` where none is needed.' }),
          scopes: z.array(z.enum(SCOPES)),
          queues: z.array(z.string()).optional().openapi({ description: 'Left out: all queues.' }),
        })
        .openapi('About'),
      doc: 'Where the jobs are, and the scopes of the caller.',
    },
  },
  run: async ({ caller: { name, scopes, queues }, backend: { installation } }) => ({
    status: 200,
    body: { ...installation, name, scopes: [...scopes], queues },
  }),
});

export const aboutVerbs: readonly AnyVerb[] = [about];
