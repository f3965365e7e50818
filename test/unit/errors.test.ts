/** Whatever is thrown becomes one line of text, and errors of ours carry a code. */
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createEmitter } from '../../src/job/events.ts';
import { Defer, Retry, Unrecoverable } from '../../src/job/outcome.ts';
import { stackOf } from '../../src/job/thrown.ts';
import {
  DuestreamError,
  errorCatalogue,
  escapeControls,
  Indeterminate,
  messageOf,
  oneLine,
} from '../../src/kernel/errors.ts';
import { parseLog } from '../../src/kernel/log.ts';
import { reasonOf } from '../../src/kernel/reason.ts';

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

describe('why something failed', () => {
  const refused = Object.assign(new Error('connect failed'), { code: 'ECONNREFUSED' });
  const round = new Error('round');
  round.cause = new Error('and round', { cause: new AggregateError([round, new Error('once')], 'about') });

  test.each<[string, unknown, string]>([
    ['an error', new Error('boom'), 'boom'],
    ['a text', 'boom', 'boom'],
    ['a code', refused, 'connect failed (ECONNREFUSED)'],
    ['a code that the message has', Object.assign(new Error('E23: x'), { code: 'E23' }), 'E23: x'],
    ['a code that is a number', Object.assign(new Error('exec failed'), { code: 127 }), 'exec failed (code 127)'],
    ['a number of a class', new DOMException('too slow', 'TimeoutError'), 'too slow'],
    ['a code of ours', new DuestreamError('moved', 'elsewhere'), 'elsewhere'],
    [
      'a cause',
      new TypeError('fetch failed', { cause: refused }),
      'fetch failed; cause: connect failed (ECONNREFUSED)',
    ],
    ['a cause that is a text', new Error('x', { cause: 'no route' }), 'x; cause: no route'],
    ['a cause that is an object', new Error('x', { cause: { status: 503 } }), 'x; cause: {"status":503}'],
    [
      'a cause that is quoted',
      new DuestreamError('failed', 'cannot go on: connect failed', {
        cause: new Error('connect failed', { cause: refused }),
      }),
      'cannot go on: connect failed; cause: ECONNREFUSED',
    ],
    ['an empty cause', new Error('x', { cause: new RangeError('') }), 'x; cause: RangeError'],
    [
      'parts',
      new AggregateError([refused, 'text', null]),
      'AggregateError [connect failed (ECONNREFUSED); text; handler threw null]',
    ],
    [
      'parts with causes',
      new AggregateError([new Error('a', { cause: new Error('b') }), new Error('c')], 'both failed', {
        cause: 'night',
      }),
      'both failed [a; cause: b; c]; cause: night',
    ],
    [
      'what `using` throws',
      Object.assign(new Error('s'), { name: 'SuppressedError', error: 'a', suppressed: 'b' }),
      's [a; b]',
    ],
    ['a list of errors', Object.assign(new Error('two'), { errors: [new Error('a'), { path: 'x' }] }), 'two [a]'],
    ['a circle', round, 'round; cause: and round; cause: about [once]'],
    ['a cause that throws', throwing('cause'), 'x'],
    ['a code that throws', throwing('code'), 'x'],
    ['parts that throw', throwing('errors'), 'x'],
    ['a cause that resists every look', new Error('x', { cause: hostile }), 'x; cause: unprintable error'],
    ['parts behind a revoked proxy', Object.assign(new Error('x'), { errors: revoked() }), 'x'],
    [
      'an error of another realm',
      runInNewContext(`new Error('far', { cause: new Error('away') })`),
      'far; cause: away',
    ],
  ])('is told of %s', (_what, thrown, reason) => {
    expect(reasonOf(thrown)).toBe(reason);
  });

  test('is within its bound, and a long message hides neither its cause nor its parts', () => {
    const parts = [new Error('a'.repeat(9000)), new Error('short'), new Error('b'.repeat(9000))];
    const reason = reasonOf(new AggregateError(parts, 'c'.repeat(9000), { cause: refused }));
    expect(reason).toHaveLength(800);
    expect(reason).toMatch(/^c+… \[a+…; short; b+…\]; cause: connect failed \(ECONNREFUSED\)$/);
    expect(reasonOf(new Error('x'.repeat(500), { cause: 'last' }), undefined, 30)).toMatch(/^x+…; cause: last$/);
  });

  test('ends, however long the chain and however many the parts', () => {
    let chain = new Error('root');
    for (let at = 0; at < 5000; at += 1) chain = new Error(`${at % 10}`, { cause: chain });
    expect(reasonOf(chain).length).toBeLessThan(800);
    const many = new AggregateError(Array.from({ length: 5000 }, (_, at) => new Error(`${at}`)));
    expect(reasonOf(many)).toMatch(/^AggregateError \[0; 1; .*; and more\]$/);
  });

  test('passes each text on to who may hide parts of it, before it is cut', () => {
    const told = (text: string) => text.replaceAll(/SECRET-+/g, '***');
    const cause = Object.assign(new Error(`${'x'.repeat(380)}SECRET${'-'.repeat(5000)}`), { code: 'SECRET--' });
    const reason = reasonOf(new AggregateError([new Error('y'.repeat(5000)), 'SECRET-'], 'z', { cause }), told);
    expect(reason).not.toContain('SECRET');
    expect(reason).toContain('; ***]; cause: x');
  });

  test('is one line for anything at all', () => {
    fc.assert(
      fc.property(fc.anything(), fc.anything(), (cause, errors) => {
        const reason = reasonOf(Object.assign(new Error('x', { cause }), { errors, name: 'AggregateError' }));
        expect(reason.length).toBeLessThanOrEqual(800);
        expect(reason).not.toMatch(/[\p{Cc}\u2028\u2029]/u);
      }),
    );
  });
});

describe('where it was thrown', () => {
  const asIs = (text: string) => text;
  const at = (frames: readonly string[], message = 'm', cause?: unknown) => {
    const error = new Error(message, { cause });
    error.stack = [`Error: ${message}`, ...frames.map((frame) => `    at ${frame}`)].join('\n');
    return error;
  };

  test('is told by frames of users alone', () => {
    const frames = ['f (/app/a.js:1:2)', 'Array.map (<anonymous>)', 'g (node:internal/x:1:1)', 'async node:net:1:1'];
    const ours = new URL('../../src/worker/run/execution.ts', import.meta.url);
    const error = at([...frames, `h (${ours.href}:1:1)`, `h (${ours.pathname}:1:1)`, 'async file:///app/b.mjs:3:4']);
    expect(stackOf(error, asIs)).toBe('Error: m\n    at f (/app/a.js:1:2)\n    at async file:///app/b.mjs:3:4');
    expect(stackOf(at(['node:internal/process/task_queues:95:5']), asIs)).toBeUndefined();
    for (const thrown of ['x', undefined, { stack: 'at x' }, throwing('stack'), hostile, revoked()]) {
      expect(stackOf(thrown, asIs)).toBeUndefined();
    }
  });

  test('goes on with the causes, each frame once, and ends in a circle', () => {
    const cause = at(['g (/app/b.js:1:1)', 'f (/app/a.js:1:2)'], 'inner');
    const error = at(['f (/app/a.js:1:2)'], 'outer', cause);
    cause.cause = error;
    expect(stackOf(error, asIs)).toBe(
      'Error: outer\n    at f (/app/a.js:1:2)\nCaused by: Error: inner\n    at g (/app/b.js:1:1)',
    );
  });

  test('is within its bound, whatever the message', () => {
    const long = stackOf(
      at(
        Array(500)
          .fill('f (/app/a.js:1:2)')
          .map((frame, nth) => `${frame}${nth}`),
      ),
      asIs,
    );
    expect(long?.length).toBeLessThanOrEqual(2000);
    expect(long).toMatch(/\n {4}at f \(\/app\/a\.js:1:2\)\d+$/);
    const message = `line\n    at no (/frame.js:1:1)\n${'x'.repeat(1_000_000)}`;
    expect(stackOf(at(['f (/app/a.js:1:2)'], message), asIs)).toMatch(/^Error: line +at no .*…\n {4}at f \(.*\)$/);
  });

  test('has what may be told of it', () => {
    const told = (text: string) => text.replaceAll('SECRET', '***');
    const stack = stackOf(at(['f (/SECRET/a.js:1:2)'], 'SECRET', at(['g (/b.js:1:1)'], 'SECRET')), told);
    expect(stack).toBe('Error: ***\n    at f (/***/a.js:1:2)\nCaused by: Error: ***\n    at g (/b.js:1:1)');
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

  test('shows what would turn its direction', () => {
    expect(oneLine('order-\u202e24\u2066 \u200fא\u061c')).toBe('order-\\u202e24\\u2066 \\u200fא\\u061c');
    expect(escapeControls(JSON.stringify('a\u202eb'))).toBe('"a\\u202eb"');
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
        expect(line).not.toMatch(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u);
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
    expect(new Defer(10, { reason: 'locked', jitter: 'full' })).toMatchObject({ message: 'locked', jitter: 'full' });
    expect(new Defer(10).jitter).toBe('none');
    expect(() => new Defer('soon')).toThrow(/^Defer delay is "soon"/);
    expect(() => Reflect.construct(Defer, [10, { jitter: 'half' }])).toThrow(
      'jitter is "half"; allowed: none, full, equal',
    );
    expect(() => Reflect.construct(Defer, [10, { reasons: 'x' }])).toThrow(
      /^reasons is not an option of Defer; did you mean reason/,
    );
  });

  test('a retry carries its time and is strict about it', () => {
    expect(new Retry('5s')).toMatchObject({ afterMs: 5000, message: 'failed', name: 'Retry' });
    expect(new Retry(10, '503').message).toBe('503');
    expect(new Retry(10, { reason: '503', cause: 'mended' })).toMatchObject({ message: '503', cause: 'mended' });
    expect(() => new Retry('soon')).toThrow(/^Retry after is "soon"/);
    expect(() => Reflect.construct(Retry, [10, { jitter: 'full' }])).toThrow(
      'jitter is not an option of Retry; allowed: reason, cause',
    );
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
    const promising: () => unknown = async () => 'well';
    events.on('job.cancelled', promising);
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
