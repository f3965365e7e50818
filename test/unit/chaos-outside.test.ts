/**
 * The judge from outside is judged itself: by histories whose verdict is published, by trying every order of small ones,
 * and by lives of a job that are right or wrong in one place.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ednOf, readEdn } from '../chaos/outside/edn.mjs';
import { judge, operationsIn, readHistory, textOf } from '../chaos/outside/history.mjs';
import { linearize } from '../chaos/outside/linearize.mjs';
import { models, register } from '../chaos/outside/models.mjs';
import { recorded } from '../chaos/outside/recorded.mjs';

type Line = Parameters<typeof judge>[0][number];
type ModelName = Parameters<typeof judge>[1];
type Told = Parameters<typeof recorded>[0];
type Event = Told['calls'][number];
type Operation = Parameters<typeof linearize>[1][number];

describe('EDN', () => {
  test('is read as Clojure writes it', () => {
    const text = `; a history
      [{:type :invoke, :f :write, :value nil, :process 0} #_ {:not :read} #jepsen.history.Op{:index 7N, :ok? true}]
      (1 -2 3.5e1 "a \\"b\\"\\n\\\\c") #{:x} {"k" 1}`;
    expect(readEdn(text)).toEqual([
      [
        { type: Symbol.for('invoke'), f: Symbol.for('write'), value: null, process: 0 },
        { index: 7, 'ok?': true },
      ],
      [1, -2, 35, 'a "b"\n\\c'],
      new Set([Symbol.for('x')]),
      new Map([['k', 1]]),
    ]);
  });

  test('is read as it was written', () => {
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { depthSize: 'small' },
        fc.integer(),
        fc.string(),
        fc.boolean(),
        fc.constant(null),
        fc.constant(Symbol.for('a-word')),
        tie('list'),
        tie('map'),
      ),
      list: fc.array(tie('any'), { maxLength: 3 }),
      map: fc.dictionary(fc.stringMatching(/^[a-z][a-z-]{0,5}$/), tie('any'), {
        maxKeys: 3,
        minKeys: 1,
        noNullPrototype: true,
      }),
    })).any;
    fc.assert(
      fc.property(value, (given) => {
        expect(readEdn(ednOf(given))).toEqual([given]);
      }),
    );
  });

  test('that is broken is refused', () => {
    expect(() => readEdn('{:a}')).toThrow('allowed: a value for each key');
    expect(() => readEdn('[1 2')).toThrow('the text ends');
    expect(() => readEdn('1)')).toThrow('nothing was opened');
    expect(() => readHistory('{:type :done, :f :read}')).toThrow(
      'line 1 has the type done; allowed: invoke, ok, fail, info',
    );
  });
});

/** `w 3 by 1` and its completion. */
const said = (type: Line['type'], process: number, f: string, value: unknown = null): Line => ({
  type,
  process,
  f,
  value,
});
const call = (process: number, f: string, value?: unknown) => said('invoke', process, f, value);
const ok = (process: number, f: string, value?: unknown) => said('ok', process, f, value);

/** The facts of histories that others have published, with the verdict of their checkers. */
const PUBLISHED: readonly (readonly [source: string, model: ModelName, isValid: boolean, lines: readonly Line[]])[] = [
  [
    'Knossos, its README: a write that crashed was read',
    'cas-register',
    true,
    [call(0, 'read'), call(1, 'write', 3), said('info', 1, 'write', 3), ok(0, 'read', 3)],
  ],
  [
    'Knossos, rethink-fail-minimal: what nobody wrote was read',
    'cas-register',
    false,
    [
      ...[call(0, 'write', 0), ok(0, 'write', 0), call(1, 'read'), call(2, 'write', 4), ok(1, 'read', 3)],
      ...[ok(2, 'write', 4), call(3, 'read'), ok(3, 'read', 4)],
    ],
  ],
  [
    'Knossos, immediate-failure: what failed was read',
    'cas-register',
    false,
    [call(1, 'read'), call(101, 'write', 3), said('fail', 101, 'write', 3), ok(1, 'read', 3)],
  ],
  [
    'Porcupine, its README: reads that overlap a write see it or not',
    'register',
    true,
    [
      ...[call(9, 'write', 0), ok(9, 'write', 0), call(0, 'write', 100), call(1, 'read'), call(2, 'read')],
      ...[ok(2, 'read', 0), ok(1, 'read', 100), ok(0, 'write', 100)],
    ],
  ],
  [
    'Porcupine, its README: a later read sees what was before the write',
    'register',
    false,
    [
      ...[call(9, 'write', 0), ok(9, 'write', 0), call(0, 'write', 200), call(1, 'read'), ok(1, 'read', 200)],
      ...[call(2, 'read'), ok(2, 'read', 0), ok(0, 'write', 200)],
    ],
  ],
  [
    'two that compare and set from the same value cannot both have done it',
    'cas-register',
    false,
    [
      ...[call(0, 'write', 1), ok(0, 'write', 1), call(1, 'cas', [1, 2]), call(2, 'cas', [1, 3])],
      ...[ok(1, 'cas', [1, 2]), ok(2, 'cas', [1, 3])],
    ],
  ],
];

describe('a history whose verdict is known:', () => {
  test.each(PUBLISHED)('%s (%s: %s)', (_source, model, isValid, lines) => {
    expect(judge(lines, model).flaws.length === 0).toBe(isValid);
    // The same through a file, in both notations.
    for (const text of [[...textOf(lines)].join(''), lines.map((line) => JSON.stringify(line)).join('\n')]) {
      expect(judge(readHistory(text), model).flaws.length === 0).toBe(isValid);
    }
  });

  test('the call that could not be placed is named', () => {
    const lines = PUBLISHED.find(([source]) => source.includes('rethink'))?.[3] ?? [];
    expect(judge(lines, 'cas-register').flaws).toMatchObject([{ key: '', stuck: { f: 'read', value: 3 } }]);
  });
});

describe('the search', () => {
  /** Every order of every subset that has all calls with a completion, in which no call is before one that had ended. */
  const byForce = (operations: readonly Operation[]): boolean => {
    const from = (state: Parameters<typeof register.step>[0], left: readonly Operation[]): boolean =>
      left.every(({ to }) => to === undefined) ||
      left.some((next) => {
        const isFirst = left.every((other) => other === next || other.to === undefined || other.to > next.from);
        const after = isFirst ? register.step(state, next) : undefined;
        return (
          after !== undefined &&
          from(
            after,
            left.filter((one) => one !== next),
          )
        );
      });
    return from(register.first, operations);
  };

  const operation = fc.record({
    f: fc.constantFrom('read', 'write'),
    value: fc.integer({ min: 0, max: 2 }),
    from: fc.integer({ min: 0, max: 12 }),
    lasts: fc.option(fc.integer({ min: 1, max: 8 }), { nil: undefined }),
  });

  test('agrees with trying every order', () => {
    const seen = { valid: 0, invalid: 0 };
    fc.assert(
      fc.property(fc.array(operation, { minLength: 1, maxLength: 6 }), (drawn) => {
        const operations = drawn.map(({ f, value, from, lasts }, nth) => {
          // No two at one place, as in a file.
          const at = from * 10 + nth / 10;
          return { f, value, from: at, ...(lasts === undefined ? {} : { to: at + lasts * 10 + 0.05 }) };
        });
        const { isValid } = linearize(register, operations);
        seen[isValid ? 'valid' : 'invalid'] += 1;
        expect(isValid).toBe(byForce(operations));
      }),
      { numRuns: 3000, seed: 7 },
    );
    expect(Math.min(seen.valid, seen.invalid)).toBeGreaterThan(200);
  });

  test('finds an order where each call was carried out at one moment between its ends', () => {
    fc.assert(
      fc.property(fc.array(operation, { minLength: 1, maxLength: 40 }), (drawn) => {
        let value: unknown = null;
        const moments = drawn.toSorted((a, b) => a.from - b.from);
        const operations = moments.map((one, nth) => {
          if (one.f === 'write') value = one.value;
          const at = nth * 10;
          return { f: one.f, value, from: at - one.from, to: at + (one.lasts ?? 0) + 0.5 };
        });
        expect(linearize(register, operations)).toEqual({ isValid: true });
      }),
      { seed: 7 },
    );
  });

  test('ends where many calls are open that nobody knows the end of', () => {
    const open = Array.from({ length: 40 }, (_, at) => ({ f: 'settle', value: { token: 99, end: 'done' }, from: at }));
    const look = { f: 'look', value: { place: 'done', token: 1 }, from: 100, to: 101 };
    expect(linearize(models.job, [...open, look]).isValid).toBe(false);
  });
});

const DUE = 1_800_000_000_000;
const WORKER = 10;
const OTHER = 20;

const event = (ev: string, us: number, more: Partial<Event> = {}): Event => ({
  ev,
  us,
  ms: DUE + Math.floor(us / 1000),
  actor: 'producer-1',
  pid: 1,
  id: 'a',
  ...more,
});

/** A handler under a token: it began, had its effect and ended. */
const run = (token: string, us: number, { pid = WORKER, how = 'ok' } = {}) => [
  event('start', us, { token, pid }),
  ...(how === 'ok' ? [event('effect', us + 10, { token, pid })] : []),
  event('finish', us + 20, { token, pid, how }),
];

const asked = [event('enq.call', 100, { due: DUE }), event('enq.ok', 200)];
const found = (outcome: string, token: string) => [
  { id: 'a', partition: 0, live: false, indexed: false, outcome, token, attempts: 1 },
];

const healthy: Told = {
  calls: asked,
  effects: run('5', 10_000),
  members: found('d', '5'),
  births: new Map([[WORKER, 1]]),
  loss: undefined,
  isTimeTrue: true,
};

describe('the life of a job', () => {
  const isValid = (told: Told) => judge(recorded(told).lines, 'job').flaws.length === 0;

  const right: readonly (readonly [what: string, told: Told])[] = [
    ['runs once and is done', healthy],
    [
      'fails, and runs again with a larger token',
      { ...healthy, effects: [...run('5', 10_000, { how: 'error' }), ...run('6', 20_000)], members: found('d', '6') },
    ],
    [
      'is taken over, and its first worker ends too late',
      {
        ...healthy,
        effects: [...run('5', 10_000).slice(0, 1), ...run('6', 10_005, { pid: OTHER }), ...run('5', 10_000).slice(1)],
        members: found('d', '6'),
      },
    ],
    [
      'was asked for again, because a reply got lost',
      { ...healthy, calls: [event('enq.call', 100, { due: DUE }), event('enq.unknown', 150), ...asked] },
    ],
    ['ran although its producer was never told', { ...healthy, calls: asked.slice(0, 1) }],
    [
      'never came to Redis, and its producer was never told',
      { ...healthy, calls: asked.slice(0, 1), effects: [], members: [] },
    ],
    [
      'is dead by a start that no handler saw',
      { ...healthy, effects: run('5', 10_000).slice(0, 1), members: found('x', '7') },
    ],
    ['was cancelled before it began', { ...healthy, effects: [], members: found('c', '0') }],
    [
      'waits',
      {
        ...healthy,
        effects: [],
        members: [{ id: 'a', partition: 0, live: true, indexed: true, outcome: '', token: '' }],
      },
    ],
    ['was done, and its tombstone is gone', { ...healthy, members: [] }],
    [
      'was put by a foreign producer, twice',
      {
        ...healthy,
        calls: [100, 30_000].map((us) => event('enq.call', us, { actor: 'foreign', due: 0 })),
        effects: [...run('5', 10_000), ...run('6', 40_000)],
        members: found('d', '6'),
      },
    ],
    [
      'began an hour early, by a clock that is wrong on purpose',
      {
        ...healthy,
        calls: [event('enq.call', 100, { due: DUE + 3_600_000 }), event('enq.ok', 200)],
        isTimeTrue: false,
      },
    ],
  ];

  test.each(right)('is right when it %s', (_what, told) => expect(isValid(told)).toBe(true));

  const wrong: readonly (readonly [what: string, told: Told])[] = [
    ['is gone, and never ran', { ...healthy, effects: [], members: [] }],
    ['is done, and never ran', { ...healthy, effects: [] }],
    ['ran before anybody asked for it', { ...healthy, calls: asked.map((one) => ({ ...one, us: one.us + 50_000 })) }],
    ['ran before it was due', { ...healthy, calls: [event('enq.call', 100, { due: DUE + 60 }), event('enq.ok', 200)] }],
    [
      'ran again after its end counted',
      { ...healthy, effects: [...run('5', 10_000), ...run('6', 90_000, { pid: OTHER })] },
    ],
    [
      'is done by a start that was overtaken before it ended',
      {
        ...healthy,
        effects: [
          ...run('5', 10_000).slice(0, 2),
          ...run('6', 10_012, { pid: OTHER }).slice(0, 1),
          ...run('5', 10_000).slice(2),
        ],
      },
    ],
    [
      'started twice under one token',
      { ...healthy, effects: [...run('5', 10_000, { how: 'error' }), ...run('5', 20_000, { pid: OTHER })] },
    ],
    [
      'had two effects under one token',
      { ...healthy, effects: [...run('5', 10_000), event('effect', 10_030, { token: '5', pid: WORKER })] },
    ],
    ['is done by a start that failed', { ...healthy, effects: run('5', 10_000, { how: 'error' }) }],
    ['is done by a token that nobody had', { ...healthy, members: found('d', '6') }],
  ];

  test.each(wrong)('is wrong when it %s', (_what, told) => expect(isValid(told)).toBe(false));

  test('is not judged where a loss was declared', () => {
    const told = { ...healthy, effects: [], members: [], loss: { fromUs: 50, toUs: 500 } };
    expect(recorded(told)).toMatchObject({ lines: [], leftOut: 1 });
  });

  test('is written so that a process calls once and completes after it', () => {
    const { lines } = recorded(healthy);
    expect(lines.map(({ type, f }) => `${type} ${f}`)).toEqual([
      ...['invoke due', 'ok due', 'invoke start', 'invoke schedule', 'ok schedule', 'ok start', 'invoke effect'],
      ...['ok effect', 'invoke settle', 'invoke look', 'ok look'],
    ]);
    expect(readHistory([...textOf(lines)].join(''))).toMatchObject(lines);
    expect([...operationsIn(lines).keys()]).toEqual(['a']);
  });
});

describe('the same as a register, for checkers that know nothing of jobs', () => {
  const flaws = (told: Told) => judge(recorded(told).registers, 'register').flaws;
  const overtaken = [...run('5', 10_000), ...run('6', 90_000, { pid: OTHER })];

  test('reads in the end the token that was written last', () => {
    expect(flaws(healthy)).toEqual([]);
    expect(flaws({ ...healthy, effects: overtaken, members: found('d', '6') })).toEqual([]);
  });

  test('is wrong where an older start counts', () => {
    const births = new Map([
      [WORKER, 1],
      [OTHER, 60_000],
    ]);
    expect(flaws({ ...healthy, births, effects: overtaken })).toMatchObject([
      { key: 'a', stuck: { f: 'read', value: 5 } },
    ]);
  });
});
