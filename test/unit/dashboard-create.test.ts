/** What the form of a new job means: a body, a command, a program; and how late a rate makes it beside a herd. */
import { expect, test } from 'vitest';
import { bodyOf, commandOf, curlOf, drainOf, EMPTY, programOf } from '../../src/dashboard/pages/create/form.ts';

const form = { ...EMPTY, queue: 'emails' };

test('what is left empty is left out, and data go as they were typed', () => {
  expect(bodyOf(form)).toBe('{}');
  expect(bodyOf({ ...form, when: 'delay', delay: ' 2h ', at: '2030-01-01T09:00', tags: ' a  b ' })).toBe(
    '{"delay":"2h","tags":["a","b"]}',
  );
  const at = { ...form, when: 'at', at: '2030-01-01T09:00', zone: 'Europe/Berlin' } as const;
  expect(bodyOf({ ...at, data: '{"n": 1234567824702058497}', attempts: '3' })).toBe(
    '{"at":"2030-01-01T09:00","zone":"Europe/Berlin","attempts":3,"data":{"n": 1234567824702058497}}',
  );
  expect(() => bodyOf({ ...form, data: '{' })).toThrow('the data are no JSON');
});

test('the same as a command, for curl and as a program means the same, whatever was typed', () => {
  const typed = {
    ...form,
    id: "o'1",
    tags: 'a',
    maxLateness: '10m',
    data: '{ "to": "it\'s  me", "n": 12345678247020584970 }',
  };
  expect(commandOf(typed)).toBe(
    String.raw`duestream schedule emails \
  --id 'o'\''1' \
  --max-lateness 10m \
  --tag a \
  --data '{"to":"it'\''s  me","n":12345678247020584970}'`,
  );
  expect(curlOf(typed, 'http://localhost:7420/v1/queues/emails/jobs')).toContain(
    String.raw`-d '{"data":{"to":"it'\''s  me","n":12345678247020584970},"id":"o'\''1","maxLateness":"10m","tags":["a"]}'`,
  );
  expect(programOf(form)).toBe('await client.schedule("emails", null);');
  expect(programOf({ ...form, id: 'a' })).toBe('await client.schedule("emails", null, {\n  id: "a",\n});');
});

test('a target is a path or a URL, or an object where it begins as one', () => {
  expect(bodyOf({ ...form, target: ' /orders/7 ' })).toBe('{"target":"/orders/7"}');
  const put = { ...form, target: '{"url":"/orders/7","method":"PUT"}' };
  expect(bodyOf(put)).toBe('{"target":{"url":"/orders/7","method":"PUT"}}');
  expect(commandOf(put)).toContain(`--target '{"url":"/orders/7","method":"PUT"}'`);
  // The daemon refuses it, and says what is allowed.
  expect(bodyOf({ ...form, target: '{url' })).toBe('{"target":"{url"}');
});

test('a rate makes a job late behind a herd, and says the next minute at which nobody is left', () => {
  const fromMs = Date.UTC(2030, 0, 1, 8);
  const counts = Array.from({ length: 61 }, (_, nth) => (nth === 30 ? 600 : 0));
  const beside = { fromMs, stepMs: 60_000, counts };
  const job = { perSecond: 1, dueMs: fromMs + 30 * 60_000, nowMs: fromMs - 1, waiting: 0 };
  expect(drainOf(beside, job)).toEqual({ lateMs: 540_000, freeMs: fromMs + 40 * 60_000 });
  expect(drainOf(beside, { ...job, perSecond: 10 })).toBeUndefined();
  expect(drainOf(beside, { ...job, dueMs: fromMs + 50 * 60_000 })).toBeUndefined();
  // A line that is longer than the half hour that is seen has no end here.
  expect(drainOf(beside, { ...job, perSecond: 0.1 })).toEqual({ lateMs: 5_940_000, freeMs: undefined });
  // Who stands in line now comes before a job that is due soon.
  const now = { ...job, nowMs: job.dueMs, waiting: 120 };
  expect(drainOf({ ...beside, counts: counts.map(() => 0) }, now)).toMatchObject({ lateMs: 60_000 });
});
