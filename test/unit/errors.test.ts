/** Whatever is thrown becomes one line of text, and errors of ours carry a code. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  DuestreamError,
  errorCatalogue,
  escapeControls,
  Indeterminate,
  messageOf,
  oneLine,
} from '../../src/core/errors.ts';
import { createEmitter } from '../../src/core/events.ts';
import { Defer, Unrecoverable } from '../../src/core/outcome.ts';

const throwing = (property: string) =>
  Object.defineProperty(new Error('x'), property, {
    get() {
      throw new Error('getter');
    },
  });
const cycle: { self?: unknown } = {};
cycle.self = cycle;
const hostile = new Proxy(
  {},
  {
    getPrototypeOf() {
      throw new Error('trap');
    },
  },
);

describe('the message of what was thrown', () => {
  test.each<[string, unknown, string]>([
    ['an error', new Error('boom'), 'boom'],
    ['an error without a message', new TypeError(''), 'TypeError'],
    ['a text', 'boom', 'boom'],
    ['nothing', undefined, 'handler threw undefined'],
    ['null', null, 'handler threw null'],
    ['a number', 42, '42'],
    ['a symbol', Symbol('s'), 'Symbol(s)'],
    ['an object', { code: 5 }, '{"code":5}'],
    ['an object that says nothing', { toJSON: () => undefined }, 'unprintable'],
    ['a cycle', cycle, 'unprintable error'],
    ['an error whose message throws', throwing('message'), 'unprintable error'],
    [
      'an error whose message is an object that throws',
      Object.assign(new Error('x'), { message: Object.create(null) }),
      'unprintable error',
    ],
    ['an object that resists every look', hostile, 'unprintable error'],
    ['a revoked proxy', revoked(), 'unprintable error'],
  ])('of %s is a text', (_what, thrown, message) => {
    expect(messageOf(thrown)).toBe(message);
  });

  test('is a text for anything at all', () => {
    fc.assert(
      fc.property(fc.anything({ withBigInt: true, withNullPrototype: true, withObjectString: true }), (thrown) => {
        expect(typeof messageOf(thrown)).toBe('string');
      }),
    );
  });
});

function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

describe('one line', () => {
  test('has no control characters and no line ends of any kind', () => {
    expect(oneLine('a\r\nb\tc\u0000d\u2028e\u0085f')).toBe('a b c d e f');
    expect(oneLine('\u001b[31mred')).toBe('[31mred');
  });

  test('is cut to its length', () => {
    expect(oneLine('x'.repeat(801))).toBe(`${'x'.repeat(799)}…`);
    expect(oneLine('x'.repeat(800))).toHaveLength(800);
    expect(oneLine('y'.repeat(10_000_000), 10)).toBe('yyyyyyyyy…');
  });

  test('is one short line for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 1, max: 50 }), (text, max) => {
        const line = oneLine(text, max);
        expect(line.length).toBeLessThanOrEqual(max);
        expect(line).not.toMatch(/[\p{Cc}\u2028\u2029]/u);
      }),
    );
  });
});

describe('a line of JSON', () => {
  test('says the same without a control character, and keeps its end', () => {
    const line = `${JSON.stringify({ name: '\u2028{"level":"error"}\u2029', by: '\u009b31m\u007f\u001b[2J' })}\n`;
    expect(line).toMatch(/[\u007f-\u009f\u2028\u2029]/);
    expect(escapeControls(line)).toMatch(/^[ -~]+\n$/);
    expect(JSON.parse(escapeControls(line))).toEqual(JSON.parse(line));
  });

  test('is the same value for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const line = escapeControls(JSON.stringify(text));
        expect(line).not.toMatch(/[\p{Cc}\u2028\u2029]/u);
        expect(JSON.parse(line)).toBe(text);
      }),
    );
  });
});

test('every code has an exit status and an HTTP status', () => {
  for (const { exit, http } of Object.values(errorCatalogue)) {
    expect([1, 64, 69, 78]).toContain(exit);
    expect(http >= 400 && http < 600).toBe(true);
  }
});

test('errors of ours keep their code, name and cause', () => {
  const cause = new Error('inner');
  expect(new DuestreamError('moved', 'elsewhere', { cause })).toMatchObject({
    code: 'moved',
    name: 'DuestreamError',
    cause,
  });
  const lost = new Indeterminate('lost', { cause });
  expect(lost).toMatchObject({ code: 'indeterminate', name: 'Indeterminate', cause });
  expect(lost).toBeInstanceOf(DuestreamError);
});

describe('what a handler may throw', () => {
  test('a defer carries its delay and is strict about it', () => {
    expect(new Defer('5s')).toMatchObject({ delayMs: 5000, message: 'deferred', name: 'Defer' });
    expect(new Defer(10, 'locked').message).toBe('locked');
    expect(() => new Defer('soon')).toThrow(/^Defer delay is "soon"/);
  });

  test('unrecoverable carries its reason', () => {
    expect(new Unrecoverable('customer is gone')).toMatchObject({ name: 'Unrecoverable', message: 'customer is gone' });
  });
});

describe('events', () => {
  const payload = { queue: 'q', id: 'a', name: 'default' };

  test('reach every listener in order, until it stops listening', () => {
    const events = createEmitter();
    const heard: string[] = [];
    const stop = events.on('job.cancelled', () => heard.push('first'));
    events.on('job.cancelled', ({ id }) => heard.push(id));
    events.emit('job.cancelled', payload);
    stop();
    events.emit('job.cancelled', payload);
    expect(heard).toEqual(['first', 'a', 'a']);
  });

  test('of a listener that throws still reach the others, and never the station', async () => {
    const warned = new Promise<Error>((resolve) => process.once('warning', resolve));
    const events = createEmitter();
    let heard = 0;
    events.on('job.cancelled', () => {
      throw new Error('bug');
    });
    events.on('job.cancelled', () => {
      heard += 1;
    });
    events.emit('job.cancelled', payload);
    expect(heard).toBe(1);
    expect((await warned).message).toBe('a listener of job.cancelled threw: bug');
  });
});
