/** Limits with a name, which several queues share. */
import { operations } from '../../../client/operations.ts';
import { parseShared, sharedInput } from '../../../job/shared-limit.ts';
import { answers } from '../answer.ts';
import { strict, textOf } from '../schemas.ts';
import { limitRequest } from '../setting-shapes.ts';
import { type AnyVerb, change, verb } from '../verb.ts';

const path = strict({
  limit: textOf(/^[a-z0-9][a-z0-9._-]{0,63}$/, 'a name of at most 64 of a-z 0-9 . _ -', 'provider'),
});

const listLimits = verb({
  name: 'limits.list',
  method: 'get',
  at: '/limits',
  summary: 'List the limits that queues share',
  doc: 'By name, each with the queues that name it and what its partitions have of it.',
  scope: 'read',
  tool: 'look',
  queues: 'all',
  answers: { 200: { type: answers.LimitList, doc: 'All of them.' } },
  async run({ backend }) {
    return { status: 200, body: { limits: await backend.client.limits.list() } };
  },
});

const setLimit = verb({
  ...change(operations.limits.set),
  queues: 'all',
  method: 'put',
  at: '/limits/{limit}',
  summary: 'Define a limit that several queues share, or change it',
  doc: 'A rate or a concurrency of all queues together that name it. It holds at once.',
  path,
  body: limitRequest,
  problems: ['bad-input'],
  answers: { 200: { type: answers.LimitChange, doc: 'The limit holds.' } },
  async run({ path: { limit }, body: { reason = '', ...said }, caller, backend }) {
    const { status } = await backend.client.limits.set(limit, sharedInput(parseShared(limit, said)), {
      reason,
      by: caller.name,
    });
    return { status: 200, body: { limit, changed: status === 'changed' } };
  },
});

const removeLimit = verb({
  ...change(operations.limits.remove),
  queues: 'all',
  method: 'delete',
  at: '/limits/{limit}',
  summary: 'Take away a limit that no queue names',
  path,
  problems: ['bad-input'],
  answers: { 200: { type: answers.LimitChange, doc: 'It is gone.' } },
  async run({ path: { limit }, caller, backend }) {
    const { status } = await backend.client.limits.remove(limit, { by: caller.name });
    return { status: 200, body: { limit, changed: status === 'changed' } };
  },
});

export const limitVerbs: readonly AnyVerb[] = [listLimits, setLimit, removeLimit];
