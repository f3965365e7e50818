/**
 * The judge of the processes is judged itself, as that of the jobs is: each flaw, planted once, is found; what is no flaw
 * is not called one.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { judgeConduct } from '../chaos/conduct.mjs';
import { outcriesIn } from '../chaos/said.mjs';
import { heldBy } from '../chaos/vitals.mjs';

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
    ['a rejection in a worker', '{"level":50,"msg":"a promise was rejected and nobody listened"}'],
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
