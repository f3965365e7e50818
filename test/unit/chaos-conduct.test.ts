/**
 * The judge of the processes is judged itself, as that of the jobs is: each flaw, planted once, is found; what is no flaw
 * is not called one.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { judgeConduct } from '../chaos/judge/conduct.mjs';
import { complaintsOf } from '../chaos/judge/damage.mjs';
import { calm } from '../chaos/judge/predicates.mjs';
import { outcriesIn } from '../chaos/judge/said.mjs';
import { heldBy } from '../chaos/judge/vitals.mjs';
import { handlerRows } from '../chaos/rows/handlers.mjs';

type Conduct = Parameters<typeof judgeConduct>[0];

const MB = 1024;
const folder = mkdtempSync(join(tmpdir(), 'due-conduct-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('processes that behave', () => {
  test('are not complained about', () => {
    expect(kindsIn(good())).toEqual([]);
  });

  test('may grow while they work, and dial a connection in twenty again', () => {
    expect(kindsIn({ ...good(), vitals: [vital({ fds: 22, rssKb: 150 * MB })] })).toEqual([]);
  });

  test('may give way to better leaders, and lead by turns while something is wrong', () => {
    const wrong = [term('c', 1500), term('b', 1600), term('c', 1700)];
    const terms = [term('a', 50), term('b', 200), term('c', 300), ...wrong, term('a', 2500)];
    expect(kindsIn({ ...good(), terms })).toEqual([]);
  });
});

describe('each flaw, planted once, is found', () => {
  const planted: readonly [string, string, Conduct][] = [
    ['HOARD', 'a descriptor for every tenth job', { ...good(), vitals: [vital({ fds: 71 })] }],
    ['HOARD', 'three descriptors of twenty-one', { ...good(), vitals: [vital({ fds: 24 })] }],
    ['HOARD', 'the payload of every job', { ...good(), vitals: [vital({ rssKb: 190 * MB })] }],
    ['UNCAUGHT', 'a promise', { ...good(), outcries: [{ actor: 'worker-4', line: 'nobody listened' }] }],
    ['FLAP', 'two leaders by turns', { ...good(), terms: [term('a', 50), term('b', 2100), term('a', 2200)] }],
    ['FLAP', 'one that is elected again', { ...good(), terms: [term('a', 50), term('a', 2100)] }],
  ];

  test.each(planted)('%s: %s', (kind, _why, conduct) => {
    expect(kindsIn(conduct)).toEqual([kind]);
  });
});

describe('a log', () => {
  test.each([
    [
      'a rejection in a worker',
      '{"level":50,"msg":"unhandled rejection: a promise of a handler was rejected and nothing caught it"}',
    ],
    ['an error in a daemon', '{"level":50,"error":"boom","msg":"uncaught error, stopping"}'],
    ['what Node.js prints of a rejection', '[UnhandledPromiseRejection: This error originated either by throwing …'],
    ['what Node.js prints of an error', 'TypeError: x is not a function'],
    ['its stack', '    at file:///somewhere/dist/main.js:12:3'],
  ])('tells of %s', (_what, line) => {
    expect(outcriesIn(logOf('{"msg":"started"}', line, '{"msg":"stopped"}'))).toEqual([line]);
  });

  test('of planned failures tells of nothing', () => {
    expect(outcriesIn(logOf('{"level":40,"error":"planned","msg":"failed"}', 'Redis is away: ECONNREFUSED'))).toEqual(
      [],
    );
  });
});

describe('promises that a fault declares as forgotten', () => {
  const declared = handlerRows.find(({ id }) => id === 'F11')?.outcry;
  const line = (error: string) =>
    `{"level":"error","error":"${error}","missed":3,"msg":"unhandled rejection: a promise of a handler was rejected and nothing caught it"}`;
  const judged = (text: string) => kindsIn({ ...good(), declared, outcries: [{ actor: 'worker-4', line: text }] });

  test('are no flaw, and every other one still is', () => {
    expect(judged(line('a promise that its handler forgot'))).toEqual([]);
    expect(judged(line('Connection is closed.'))).toEqual(['UNCAUGHT']);
    expect(judged('{"error":"a promise that its handler forgot","msg":"uncaught error, stopping"}')).toEqual([
      'UNCAUGHT',
    ]);
    expect(judged('TypeError: x is not a function')).toEqual(['UNCAUGHT']);
  });
});

describe('a log is calm', () => {
  const at = (ms: number) => `{"time":"${new Date(ms).toISOString()}","msg":"something"}`;
  const within = (...moments: readonly number[]) => {
    const log = logOf(...moments.map(at));
    return calm({ fromMs: 1_000_000, actors: [{ log }] });
  };
  const flood = (fromMs: number) => Array.from({ length: 100 }, (_, index) => fromMs + index * 50);

  test('where it has a line now and then', () => {
    expect(within(...Array.from({ length: 100 }, (_, index) => 1_000_000 + index * 1000))).toEqual([]);
  });

  test('whatever it said before the fault', () => {
    expect(within(...flood(900_000))).toEqual([]);
  });

  test.each([0, 9000, 40_000])('and not where it is flooded %i ms after the fault', (afterMs) => {
    expect(within(...flood(1_000_000 + afterMs))).toEqual(['lines of one log within 10 s: 100, allowed 42']);
  });
});

describe('an answer of doctor about the keys', () => {
  const answer = (flaws: readonly object[], code: number) => {
    const partitions = [{ queue: 'chaos', partition: 0, flaws }];
    return complaintsOf({ code, text: JSON.stringify({ ok: code === 0, partitions, control: [] }) });
  };
  const flaw = { invariant: 'I2', what: 'orphan', name: 'j:a', means: 'it never runs' };

  test('that all is whole is believed, and a flaw is told', () => {
    expect(answer([], 0)).toEqual([]);
    expect(answer([flaw], 1)).toEqual(['doctor: I2 orphan j:a: it never runs']);
  });

  test.each(['', 'all is well', '{}', '{"partitions":{}}', '{"partitions":[],"control":[]}'])(
    'that is %o is a failure, although it ended with 0',
    (text) => {
      expect(complaintsOf({ code: 0, text })).toEqual([`doctor --keys ended with 0 and cannot be read: ${text}`]);
    },
  );

  test('that does not agree with its end is a failure', () => {
    expect(answer([], 1)).toHaveLength(1);
    expect(answer([flaw], 0)).toHaveLength(2);
  });
});

test.runIf(process.platform === 'linux')('what a process holds is what the system says', () => {
  const held = heldBy(process.pid);
  expect(held?.fds).toBeGreaterThan(2);
  expect(held?.rssKb).toBeGreaterThan(10 * MB);
  expect(heldBy(2 ** 22 + 1)).toBeUndefined();
});

function kindsIn(conduct: Conduct): readonly string[] {
  return judgeConduct(conduct).map(({ kind }) => kind);
}

function good(): Conduct {
  return {
    vitals: [vital({})],
    outcries: [],
    terms: [term('a', 50), term('b', 1500)],
    calm: [
      { fromUs: 100, toUs: 1000 },
      { fromUs: 2000, toUs: 3000 },
    ],
  };
}

function vital(after: Partial<Conduct['vitals'][number]['after']>): Conduct['vitals'][number] {
  const before = { fds: 21, rssKb: 95 * MB };
  return { actor: 'daemon-1', before, after: { ...before, ...after } };
}

function term(leader: string, us: number): Conduct['terms'][number] {
  return { partition: 3, leader, us };
}

function logOf(...lines: readonly string[]): string {
  const file = join(folder, 'an-actor.log');
  writeFileSync(file, `${lines.join('\n')}\n`);
  return file;
}
