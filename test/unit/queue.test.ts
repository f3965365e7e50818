/** What a queue is defined with: nothing that nobody knows, and no backoff that would be ignored. */
import { expect, test } from 'vitest';
import { fixed } from '../../src/job/backoff.ts';
import { defineQueue, type Queue, queueOf } from '../../src/job/queue.ts';

test.each([
  [{ atempts: 3 }, /atempts is not an option of defineQueue; did you mean attempts\?/],
  [{ timeoutMs: 3 }, /timeoutMs is not an option of defineQueue; did you mean timeout\?/],
  [[], /the options of defineQueue are .*; allowed: an object of options/],
  [{ backoff: { type: 'fixed', delay: 5 } }, /did you mean fixed\(5\)\?/],
  [{ linger: '2s' }, /linger is "2s"; allowed: 0 to 1000 ms/],
  [{ linger: -1 }, /linger is -1/],
  [{ linger: '20' }, /linger is "20"/],
  [{ linger: false }, /linger is a value of type boolean; allowed: a number of milliseconds/],
  [{ backoff: '10s' }, /backoff is "10s"; allowed: fixed/],
])('%o is refused', (options, message) => {
  expect(() => defineQueue('emails', options as object)).toThrow(
    expect.objectContaining({ code: 'bad-config', message: expect.stringMatching(message) }),
  );
});

test('a backoff may be a function, or data of its own functions', () => {
  const policy = (failures: number) => failures * 1000;
  expect(defineQueue('emails', { backoff: policy }).backoff).toBe(policy);
  expect(defineQueue('emails', { backoff: fixed('5s') }).backoff).toEqual(fixed('5s'));
});

const emails = defineQueue('emails', { attempts: 3 });

test.each([
  ['what defineQueue returned', emails],
  [
    'what defineQueue of another copy of the package returned',
    Object.defineProperty({ ...emails }, Symbol.for('duestream.queue'), { value: true }),
  ],
])('%s is taken where a queue is', (_, given) => expect(queueOf(given)).toBe(given));

test('a name is a queue with the defaults', () => expect(queueOf('emails')).toEqual(defineQueue('emails')));

test.each([
  [{ name: 'emails' }, /queue is an object with the name "emails" that defineQueue did not return, or a copy of one/],
  [{ ...emails }, /with the name "emails" that defineQueue did not return, or a copy of one/],
  [{ ...emails, attempts: 9 }, /or a copy of one/],
  [Object.assign({}, emails), /or a copy of one/],
  [structuredClone({ ...emails }), /or a copy of one/],
  [Object.create(emails), /or a copy of one/],
  [Object.assign(new (class Emails {})(), { name: 'emails', partitions: 1 }), /or a copy of one/],
  [{}, /queue is a value of type object; allowed: what defineQueue returned, or a name/],
  [['emails'], /queue is an array/],
  [[emails], /queue is an array/],
  [() => emails, /queue is a value of type function/],
  [new String('emails'), /queue is a value of type object/],
  [42, /queue is 42/],
  [null, /queue is null/],
  [undefined, /queue is undefined/],
])('%o is no queue', (given, message) => {
  expect(() => queueOf(given as Queue)).toThrow(
    expect.objectContaining({ code: 'bad-input', message: expect.stringMatching(message) }),
  );
});

test('a policy of waiting that nobody could call is refused', () => {
  const generator = function* () {
    yield 1;
  };
  expect(() => defineQueue('emails', { backoff: generator as never })).toThrow(/backoff is a generator/);
});

test('an error that is no refusal comes through as it is', () => {
  const bug = new TypeError('not a function');
  const options = {
    get attempts(): number {
      throw bug;
    },
  };
  expect(() => defineQueue('q', options)).toThrow(bug);
});
