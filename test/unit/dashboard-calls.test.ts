/** How the pages call the API: the compiler refuses what openapi.json does not have, and an address holds any value. */
import { expect, test } from 'vitest';
import { type Answer, addressOf, type Body, type Call, type Given, type Shape } from '../../src/dashboard/call.ts';
import * as calls from '../../src/dashboard/calls.ts';

/** As `ask` of the pages, which needs a browser. */
const asked = <One extends Shape>(call: Call<One>, given: NoInfer<Given<One>>, ..._body: NoInfer<Body<One>>) => ({
  address: addressOf(call, given),
  answer: {} as Answer<One>,
});

test('a value goes where the path names it, in a form that no proxy changes, and all others go into the query', () => {
  expect(addressOf(calls.about, {})).toBe('about');
  expect(addressOf(calls.jobsGet, { queue: 'emails', id: 'order/7', bare: 'true' })).toBe(
    'queues/emails/jobs/~b3JkZXIvNw?bare=true',
  );
  expect(addressOf(calls.groupsList, { queue: 'emails', top: undefined, limit: 10, cursor: '' })).toBe(
    'queues/emails/groups?limit=10',
  );
});

test('what the API does not have is an error of the compiler: a path, a parameter, a field of a body or of an answer', () => {
  // @ts-expect-error no such call
  expect(calls.jobsGett).toBeUndefined();
  // @ts-expect-error the path needs an id
  asked(calls.jobsGet, { queue: 'emails' });
  // @ts-expect-error no such parameter
  asked(calls.jobsGet, { queue: 'emails', id: 'a', bar: 'true' });
  // @ts-expect-error another value is allowed
  asked(calls.jobsGet, { queue: 'emails', id: 'a', bare: true });
  // @ts-expect-error the body is needed
  asked(calls.queuesClose, { queue: 'emails' });
  // @ts-expect-error no such field of the body
  asked(calls.queuesPause, { queue: 'emails' }, { why: 'the mail server moves' });
  // @ts-expect-error a look has no body
  asked(calls.queuesGet, { queue: 'emails' }, { reason: '' });
  const { answer } = asked(calls.jobsGet, { queue: 'emails', id: 'a' });
  // @ts-expect-error no such field of the answer
  expect(answer.dueAt).toBeUndefined();
  expect(answer.dueMs).toBeUndefined();
});
