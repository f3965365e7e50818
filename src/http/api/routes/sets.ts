import type { SetCallbackOptions } from '../../../client/client.ts';
import { callbackFields } from '../../../client/jobs/sets.ts';
import { operations } from '../../../client/operations.ts';
import { refsOfQueue } from '../../../client/queues/refs.ts';
import { LIVE_STATES } from '../../../job/state.ts';
import { answers } from '../answer.ts';
import { Problem } from '../problem.ts';
import { cursor, groupName, ofQueue, queueName, setName, strict, wholeText } from '../schemas.ts';
import { TRACE_HEADERS, traced } from '../trace-context.ts';
import { type AnyVerb, change, verb } from '../verb.ts';
import { asking } from './asks.ts';
import { data, shapeOfFires } from './job-shapes.ts';

const ofSet = strict({ queue: queueName, set: setName });
const group = groupName.optional().openapi({ description: 'In a queue with limits: the group of the set.' });
const inGroup = strict({ group });

const listSets = verb({
  name: 'sets.list',
  method: 'get',
  at: '/queues/{queue}/sets',
  summary: 'List the sets of a queue whose callbacks were not made yet',
  scope: 'read',
  tool: 'look',
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
  tool: 'look',
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
  ...change(operations.sets.begin),
  method: 'put',
  at: '/queues/{queue}/sets/{set}',
  summary: 'Begin a set',
  doc: 'Its members are jobs that are scheduled with `set`. When it is sealed and the last of them is over, its callback is scheduled. The same request again changes nothing; a set of this name with another callback is a conflict.',
  queues: 'path',
  path: ofSet,
  body: strict({ then: callbackBody, group }).openapi('NewSet'),
  headers: TRACE_HEADERS,
  answers: {
    200: {
      type: answers.SetMade,
      doc: 'It is there, or is over.',
    },
  },
  problems: ['bad-input', 'exists', 'out-of-memory', 'refused'],
  async run({ path: { queue, set: name }, body, header, backend }) {
    const { data: content, ...given } = body.then;
    // Each value is of the form of its option, and the library checks the rest.
    const then = { ...traced(header, given as SetCallbackOptions), data: content };
    const done = await backend.client.sets.begin(backend.queueOf(queue), name, { then, group: body.group });
    return { status: 200, body: { queue, ...done } };
  },
});

const sealSet = asking(operations.sets.seal, {
  tool: { look: 'sets.get', same: ['set', 'sealed'] },
  summary: 'Seal a set: its callback is made when the last member is over',
  doc: 'If no member is open, it is made now.',
  type: answers.SetSealed,
  answer: 'It is sealed, or is over.',
});

const removeSet = asking(operations.sets.remove, {
  tool: { look: 'jobs.find', defaults: { state: LIVE_STATES }, same: ['id', 'etag'] },
  delete: '/queues/{queue}/sets/{set}',
  summary: 'Remove a set, and cancel its members',
  doc: 'No callback is made. Members that run are asked to stop.',
  type: answers.SetRemoved,
  answer: 'It is gone.',
});

export const setVerbs: readonly AnyVerb[] = [listSets, getSet, makeSet, sealSet, removeSet];
