import type { SetCallbackOptions } from '../../../client/client.ts';
import { callbackFields } from '../../../client/jobs/sets.ts';
import { refsOfQueue } from '../../../client/queues/refs.ts';
import { answers } from '../answer.ts';
import { Problem } from '../problem.ts';
import { cursor, ofQueue, queueName, strict, textOf, wholeText } from '../schemas.ts';
import { type AnyVerb, verb } from '../verb.ts';
import { groupName } from './groups.ts';
import { data, shapeOfFires } from './job-shapes.ts';

const setName = textOf(
  /^[A-Za-z0-9][A-Za-z0-9._:-]{0,47}$/,
  '1 to 48 of A-Z a-z 0-9 . _ : - beginning with a letter or digit',
  'import-7',
);
const ofSet = strict({ queue: queueName, set: setName });
const group = groupName.optional().openapi({ description: 'In a queue with limits: the group of the set.' });
const inGroup = strict({ group });

const listSets = verb({
  name: 'sets.list',
  method: 'get',
  at: '/queues/{queue}/sets',
  summary: 'List the sets of a queue whose callbacks were not made yet',
  scope: 'read',
  queues: 'path',
  path: ofQueue,
  query: strict({ limit: wholeText(1, 1000, 100), cursor }),
  answers: {
    200: {
      type: answers.SetsPage,
      doc: 'A page of sets.',
    },
  },
  problems: ['bad-input'],
  async run({ path: { queue }, query, backend }) {
    await refsOfQueue(await backend.place(), queue);
    const page = await backend.client.sets.list(backend.queueOf(queue), query);
    return { status: 200, body: { queue, sets: page.sets, cursor: page.cursor } };
  },
});

const getSet = verb({
  name: 'sets.get',
  method: 'get',
  at: '/queues/{queue}/sets/{set}',
  summary: 'Look at a set',
  scope: 'read',
  queues: 'path',
  path: ofSet,
  query: inGroup,
  answers: { 200: { type: answers.Set, doc: 'The set as it is now.' } },
  async run({ path: { queue, set: name }, query, backend }) {
    await refsOfQueue(await backend.place(), queue);
    const { sets } = await backend.client.sets.list(backend.queueOf(queue), { set: name });
    const found = sets.find((one) => query.group === undefined || one.group === query.group);
    if (found) return { status: 200, body: found };
    throw new Problem('not-found', { detail: `queue ${queue} has no set ${name}: nobody began it, or it is over` });
  },
});

const callbackBody = strict({ data: data.optional(), ...shapeOfFires(callbackFields) }).openapi('SetCallback');

const makeSet = verb({
  name: 'sets.create',
  method: 'put',
  at: '/queues/{queue}/sets/{set}',
  summary: 'Begin a set',
  doc: 'Its members are jobs that are scheduled with `set`. When it is sealed and the last of them is over, its callback is scheduled. The same request again changes nothing; a set of this name with another callback is a conflict.',
  scope: 'write',
  queues: 'path',
  path: ofSet,
  body: strict({ then: callbackBody, group }).openapi('NewSet'),
  answers: {
    200: {
      type: answers.SetMade,
      doc: 'It is there, or is over.',
    },
  },
  problems: ['bad-input', 'exists', 'out-of-memory', 'refused'],
  audited: 'sets.create',
  async run({ path: { queue, set: name }, body, backend }) {
    const { data: content, ...given } = body.then;
    // Each value is of the form of its option, and the library checks the rest.
    const then = { ...(given as SetCallbackOptions), data: content };
    const done = await backend.client.sets.begin(backend.queueOf(queue), name, { then, group: body.group });
    return { status: 200, body: { queue, ...done }, changed: done.status === 'made' ? 1 : 0, target: name };
  },
});

const sealSet = verb({
  name: 'sets.seal',
  method: 'post',
  at: '/queues/{queue}/sets/{set}/seal',
  summary: 'Seal a set: its callback is made when the last member is over',
  doc: 'If no member is open, it is made now.',
  scope: 'write',
  queues: 'path',
  path: ofSet,
  query: inGroup,
  answers: {
    200: {
      type: answers.SetSealed,
      doc: 'It is sealed, or is over.',
    },
  },
  audited: 'sets.seal',
  async run({ path: { queue, set: name }, query, backend }) {
    await refsOfQueue(await backend.place(), queue);
    const done = await backend.client.sets.seal(backend.queueOf(queue), name, query);
    return { status: 200, body: { queue, ...done }, changed: done.status === 'sealed' ? 1 : 0, target: name };
  },
});

const removeSet = verb({
  name: 'sets.remove',
  method: 'delete',
  at: '/queues/{queue}/sets/{set}',
  summary: 'Remove a set, and cancel its members',
  doc: 'No callback is made. Members that run are asked to stop.',
  scope: 'write',
  queues: 'path',
  path: ofSet,
  query: inGroup,
  answers: {
    200: {
      type: answers.SetRemoved,
      doc: 'It is gone.',
    },
  },
  audited: 'sets.remove',
  async run({ path: { queue, set: name }, query, backend }) {
    await refsOfQueue(await backend.place(), queue);
    const done = await backend.client.sets.remove(backend.queueOf(queue), name, query);
    return { status: 200, body: { queue, ...done }, changed: 1, target: name };
  },
});

export const setVerbs: readonly AnyVerb[] = [listSets, getSet, makeSet, sealSet, removeSet];
