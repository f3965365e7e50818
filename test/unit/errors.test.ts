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
import { parseLog } from '../../src/core/log.ts';
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

/** Ways in which a function of the user fails, and says so in a way that may not bear a look. */
const failing: readonly (readonly [string, () => never])[] = [
  [
    'a throw',
    () => {
      throw new Error('bug');
    },
  ],
  [
    'a throw of what cannot be looked at',
    () => {
      throw hostile;
    },
  ],
  [
    'a throw of a revoked proxy',
    () => {
      const { proxy, revoke } = Proxy.revocable({}, {});
      revoke();
      throw proxy;
    },
  ],
  [
    'a throw of a symbol',
    () => {
      throw Symbol('bug');
    },
  ],
  ['a promise that rejects', () => answering(Promise.reject(new Error('bug')))],
  ['a promise that rejects with a throwing getter', () => answering(Promise.reject(throwing('message')))],
  ['a promise that rejects with nothing', () => answering(Promise.reject())],
  [
    'a thenable that throws',
    () =>
      answering(
        Object.defineProperty({}, 'then', {
          value: () => {
            throw new Error('bug');
          },
        }),
      ),
  ],
  [
    'a then that throws when it is read',
    () =>
      answering(
        Object.defineProperty({}, 'then', {
          get() {
            throw new Error('bug');
          },
        }),
      ),
  ],
];

/** Listeners are typed to answer nothing. */
const answering = (answer: unknown) => answer as never;

/** Collects the warnings of the process from now on; the returned function ends that and says what came. */
function warnings(): () => Promise<readonly string[]> {
  const heard: string[] = [];
  const hear = ({ message }: Error) => heard.push(message);
  process.on('warning', hear);
  return async () => {
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', hear);
    return heard;
  };
}

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

  test.each(failing)('of a listener that fails by %s still reach the others, and it is told once', async (_, fail) => {
    const warned = warnings();
    const events = createEmitter();
    let heard = 0;
    events.on('job.cancelled', fail);
    events.on('job.failed', fail);
    events.on('job.cancelled', () => {
      heard += 1;
    });
    for (let time = 0; time < 3; time += 1) events.emit('job.cancelled', payload);
    const error = { atMs: 1, attempt: 1, kind: 'failure', message: 'x' } as const;
    events.emit('job.failed', { ...payload, tookMs: 1, error });
    expect(heard).toBe(3);
    expect(await warned()).toEqual([
      expect.stringMatching(/^a listener of job\.cancelled failed: ./),
      expect.stringMatching(/^a listener of job\.failed failed: ./),
    ]);
  });

  test('of a listener that answers nothing, or a promise that resolves, cause no warning', async () => {
    const warned = warnings();
    const events = createEmitter();
    events.on('job.cancelled', () => undefined);
    events.on('job.cancelled', async () => 'well');
    events.on('job.cancelled', () => 5);
    events.emit('job.cancelled', payload);
    expect(await warned()).toEqual([]);
  });
});

describe('the log of a caller', () => {
  test.each(failing)('that fails by %s harms nobody, and each of its methods is told once', async (_, fail) => {
    const warned = warnings();
    const log = parseLog({ debug: fail, info: fail, warn: fail, error: fail, child: () => fail(), flush: fail });
    for (let time = 0; time < 2; time += 1) {
      log.child({ queue: 'q' }).warn({ job: 'a' }, 'late');
      log.error({}, 'away');
    }
    log.flush?.(() => undefined);
    expect(parseLog(log)).toBe(log);
    const told = ['child', 'error', 'flush', 'warn'].map((name) =>
      expect.stringMatching(`the log method ${name} failed`),
    );
    expect([...(await warned())].sort()).toEqual(told);
  });

  test('is called with its own this, its fields and its text', () => {
    const lines: unknown[] = [];
    class Lines {
      readonly fields: object;
      constructor(fields: object) {
        this.fields = fields;
      }
      readonly debug = () => undefined;
      readonly info = () => undefined;
      warn(fields: object, message: string) {
        lines.push([this.fields, fields, message]);
      }
      readonly error = () => undefined;
      child(fields: Record<string, unknown>): Lines {
        return new Lines({ ...this.fields, ...fields });
      }
    }
    parseLog(new Lines({ a: 1 }))
      .child({ b: 2 })
      .warn({ c: 3 }, 'text');
    expect(lines).toEqual([[{ a: 1, b: 2 }, { c: 3 }, 'text']]);
  });
});
