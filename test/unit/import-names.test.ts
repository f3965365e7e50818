/** Names and ids of other products, and what they are here. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { jobId, jobName, NO_MAP, queueName, readNameMap, scheduleName } from '../../src/import/names.ts';
import { parseJobId, parseJobName, parseName } from '../../src/job/job.ts';
import { DuestreamError } from '../../src/kernel/errors.ts';
import { parseScheduleName } from '../../src/schedule/schedule.ts';

const ANY = fc.string({ unit: 'binary', maxLength: 200 });

describe('a queue', () => {
  test.each([
    ['mails', 'mails'],
    ['paymentReminders', 'payment-reminders'],
    ['HTTPCalls', 'http-calls'],
    ['SMS', 'sms'],
    ['mail:welcome', 'mail.welcome'],
    ['Send a mail!', 'send-a-mail'],
    ['{mails}', 'mails'],
  ])('named %s is %s here', (there, here) => {
    expect(queueName(there, NO_MAP)).toBe(here);
  });

  test('of which no letter is left needs a name in a file', () => {
    expect(() => queueName('队列', NO_MAP)).toThrow('--map names.json');
    expect(queueName('队列', readNameMap({ queues: { 队列: 'jobs' } }))).toBe('jobs');
  });

  test('has a name that duestream takes, or is refused', () => {
    fc.assert(
      fc.property(ANY, (name) => {
        try {
          const here = queueName(name, NO_MAP);
          expect(parseName(here, 'queue')).toBe(here);
        } catch (error) {
          expect(error).toBeInstanceOf(DuestreamError);
        }
      }),
    );
  });
});

describe('a job', () => {
  test('keeps its name where it fits, and has the one of a file above all', () => {
    expect(jobName('send:welcome', NO_MAP)).toBe('send:welcome');
    expect(jobName('send welcome', NO_MAP)).toBe('send-welcome');
    expect(jobName('__default__', NO_MAP)).toBe('default__');
    expect(jobName('日本', NO_MAP)).toBe('default');
    expect(jobName('send welcome', readNameMap({ jobs: { 'send welcome': 'welcome' } }))).toBe('welcome');
  });

  test('keeps its id where it fits, and has a digest of it otherwise', () => {
    expect(jobId('welcome:42', 'bullmq')).toBe('welcome:42');
    expect(jobId('1', 'bullmq')).toBe('1');
    // Braces would put it into a group.
    expect(jobId('{acme}42', 'bullmq')).toMatch(/^bullmq:[0-9a-f]{32}$/);
    expect(jobId('two words', 'bullmq')).not.toBe(jobId('two  words', 'bullmq'));
  });

  test('has a name and an id that duestream takes', () => {
    fc.assert(
      fc.property(ANY, (text) => {
        expect(parseJobName(jobName(text, NO_MAP))).toBe(jobName(text, NO_MAP));
        expect(parseJobId(jobId(text, 'bullmq'))).toBe(jobId(text, 'bullmq'));
      }),
    );
  });
});

describe('a schedule', () => {
  test('is named after its queue and its id, which stay apart', () => {
    expect(scheduleName('reports', 'nightly')).toBe('reports:nightly');
    expect(scheduleName('reports', 'every night')).toMatch(/^reports:every-night-[0-9a-f]{6}$/);
    expect(scheduleName('reports', 'every night')).not.toBe(scheduleName('reports', 'every  night'));
    expect(scheduleName('q'.repeat(64), 'nightly')).not.toBe(scheduleName('q'.repeat(64), 'daily'));
  });

  test('has a name that duestream takes', () => {
    const queues = fc.stringMatching(/^[a-z0-9][a-z0-9._-]{0,63}$/);
    fc.assert(
      fc.property(queues, ANY, (queue, id) => {
        expect(parseScheduleName(scheduleName(queue, id))).toBe(scheduleName(queue, id));
      }),
    );
  });
});

describe('a file of names', () => {
  test.each([
    [[], 'map is an array'],
    [{ queue: {} }, 'queue is not an option of map; did you mean queues?'],
    [{ queues: { a: 'B' } }, 'queue name is "B"'],
    [{ queues: { a: 1 } }, 'queues of map, a is 1'],
    [{ jobs: 'welcome' }, 'jobs of map is "welcome"'],
  ])('that is %j is refused', (given, message) => {
    expect(() => readNameMap(given)).toThrow(message);
  });
});
