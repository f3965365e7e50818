/** The grammar of ids and names, and the data a job may carry. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DEFAULT_NAME, parseJobId, parseJobName, parseName } from '../../src/job/job.ts';
import { defineQueue } from '../../src/job/queue.ts';
import { DuestreamError } from '../../src/kernel/errors.ts';

describe('a job id', () => {
  test.each(['a', 'welcome:42', 'a/b?c=d', '~|!', 'x'.repeat(128)])('may be %j', (id) => {
    expect(parseJobId(id)).toBe(id);
  });

  test.each(['', ' ', 'a b', 'a\n', 'a\u0000', 'é', '{a}', 'a}', '{', 'x'.repeat(129), 42, null, undefined, {}])(
    'may not be %j, and the message shows it and what is allowed',
    (id) => {
      expect(() => parseJobId(id)).toThrow(expect.objectContaining({ code: 'bad-input' }));
      expect(() => parseJobId(id)).toThrow(/^job id is .*; allowed: 1 to 128 printable ASCII/);
    },
  );

  test('of ours may have braces', () => {
    expect(parseJobId('{schedule:daily}1763719000000', { internal: true })).toBe('{schedule:daily}1763719000000');
    expect(() => parseJobId('{a b}', { internal: true })).toThrow(DuestreamError);
  });

  test('that names no group is accepted exactly when it is 1 to 128 printable ASCII characters without space and braces, and no dots', () => {
    // Dots alone are parts of paths: no address of the HTTP API could name such a job.
    const anyId = fc.oneof(fc.string({ maxLength: 140 }), fc.constantFrom('.', '..', '...'));
    fc.assert(
      fc.property(anyId, (id) => {
        fc.pre(!id.startsWith('{'));
        const isPrintable = [...id].every((c) => c > ' ' && c <= '~' && c !== '{' && c !== '}');
        const allowed = id.length >= 1 && id.length <= 128 && isPrintable && id !== '.' && id !== '..';
        let accepted = true;
        try {
          parseJobId(id);
        } catch {
          accepted = false;
        }
        expect(accepted).toBe(allowed);
      }),
    );
  });
});

describe('the name of a queue or namespace', () => {
  test.each(['emails', 'a', '0', 'a.b-c_d', 'x'.repeat(64)])('may be %j', (name) => {
    expect(parseName(name, 'queue')).toBe(name);
  });

  test.each(['', 'Emails', '-a', '.a', 'a:b', 'a b', 'a{b}', 'x'.repeat(65), 7, undefined])('may not be %j', (name) => {
    expect(() => parseName(name, 'namespace')).toThrow(/^namespace name is .*; allowed: 1 to 64/);
  });
});

describe('the name of a job', () => {
  test('is default when there is none', () => {
    expect(parseJobName(undefined)).toBe(DEFAULT_NAME);
  });

  test.each(['welcome', 'Welcome:2', '0.a_b-c', 'x'.repeat(64)])('may be %j', (name) => {
    expect(parseJobName(name)).toBe(name);
  });

  test.each(['', ':a', 'a b', 'a"b', 'é', 'x'.repeat(65), 7, null])('may not be %j', (name) => {
    expect(() => parseJobName(name)).toThrow(expect.objectContaining({ code: 'bad-input' }));
  });
});

describe('a queue', () => {
  test('has defaults for all that is not said, and cannot be changed afterwards', () => {
    const queue = defineQueue('emails');
    expect(queue).toMatchObject({ attempts: 5, crashes: 3, timeoutMs: 900_000, partitions: 1 });
    expect(Object.isFrozen(queue)).toBe(true);
  });

  test.each([
    [{ attempts: 0 }, /attempts is 0; allowed: a whole number from 1 to 1000/],
    [{ attempts: 1.5 }, /attempts is 1.5/],
    [{ crashes: 101 }, /crashes is 101/],
    [{ partitions: Number.NaN }, /partitions is NaN/],
    [{ timeout: 'soon' }, /timeout is "soon"/],
  ])('with %j is refused', (options, message) => {
    expect(() => defineQueue('emails', options)).toThrow(message);
  });
});
