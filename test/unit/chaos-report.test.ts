/**
 * The fault report says what was found and nothing else: it and the README's table are made from the committed results,
 * and every fault of the matrix is in it, with a result or with a reason.
 */
import { describe, expect, test } from 'vitest';
import { build } from '../../scripts/steps.mjs';
import { durabilityOf, markdownOf, openFaults, resultOf, withDurability } from '../chaos/judge/report.mjs';
import { FAULTS, notHere } from '../chaos/rows/not-here.mjs';
import { redIn } from '../chaos/stage/campaign.mjs';
import { NOTHING_SEEN } from '../chaos/stage/run.mjs';
import { read } from '../support/repository.ts';

// Some rows are producers themselves and import what is built.
await build();
const { rows } = await import('../chaos/rows/rows.mjs');

type Findings = Parameters<typeof markdownOf>[0];
type Result = Findings['rows'][number];

const findings: Findings = JSON.parse(read('docs/reliability.json'));

describe('the committed report', () => {
  test('is what its results make of it', () => {
    expect(read('docs/reliability.md')).toBe(markdownOf(findings));
  });

  test('gives the README its table', () => {
    const readme = read('README.md');
    expect(readme).toBe(withDurability(readme, findings));
  });

  test('names every fault of the matrix once: with a result, with a reason, or as not in this run', () => {
    const results = findings.rows.map(({ id }) => id);
    const reasons = notHere.map(({ id }) => id);
    const named = [...new Set(results), ...reasons, ...openFaults(findings.rows)].sort();
    expect(named).toEqual(Array.from({ length: FAULTS }, (_, at) => `F${at + 1}`).sort());
  });

  test('has no path of the machine it was made on', () => {
    expect(read('docs/reliability.json')).not.toMatch(/"[^"]*(?<![\w)])\/(tmp|home|root|var|work)\//);
  });
});

describe('a whole matrix', () => {
  const of = (id: string, verdict: 'passed' | 'failed' | 'not run') => ({ id, verdict });

  test('is red where a row failed, and where one was not run although nobody said why', () => {
    const verdicts = [of('F1', 'passed'), of('F2', 'failed'), of('F41', 'not run')];
    expect(redIn(verdicts).map(({ id }) => id)).toEqual(['F2', 'F41']);
  });

  test('is not red for what is known not to be here', () => {
    expect(redIn([of('F54', 'not run'), of('F1', 'passed')])).toEqual([]);
  });
});

test('a row that was not run neither held nor broke, and the report counts it', () => {
  const rows = [result({ id: 'F1' }), result({ id: 'F41', passed: false, notRun: 'no small disk here' })];
  const text = markdownOf(foundBy(rows));
  expect(text).toContain('**1 of 1 rows held**, 1 could not be run, and');
  expect(text).toContain('no small disk here');
});

describe('every row', () => {
  test('says how it breaks things and what it asks for', () => {
    expect(
      rows.filter(({ how = '', wanted = '' }) => !/\w/.test(how) || !/\w/.test(wanted)).map(({ id }) => id),
    ).toEqual([]);
  });

  test('is for a fault that is not said to be missing', () => {
    const reasons = notHere.map(({ id }) => id);
    expect(rows.filter(({ id }) => reasons.includes(id)).map(({ id }) => id)).toEqual([]);
  });
});

describe('the table of durability', () => {
  test('shows a promise as measured only where its row was run', () => {
    const table = durabilityOf(foundBy([result({ id: 'F21', mode: 'always' })]));
    expect(table).toContain(
      '`appendfsync always` | keeps everything; F21: 0 of 2,000 lost | keeps everything *(not measured)*',
    );
  });

  test('says so where a row broke', () => {
    const table = durabilityOf(foundBy([result({ id: 'F21', mode: 'always', passed: false, lost: 3 })]));
    expect(table).toContain('**broken**: it should have been "keeps everything"; F21: 3 of 2,000 lost');
  });

  test('does not say that everything survived where some is lost as declared, and says how much', () => {
    const all = durabilityOf(foundBy([result({ id: 'F21', mode: 'always', excused: 4 })]));
    expect(all).toContain('**broken**: it should have been "keeps everything"; F21: 4 of 2,000 lost');
    const rest = durabilityOf(foundBy([result({ id: 'F23', mode: 'everysec', excused: 211 })]));
    expect(rest).toContain('may lose the last 2 s; F23: 211 of 2,000 lost, all within that window');
  });

  test('keeps a promise that a row broke only in other ways, and says that it did', () => {
    const table = durabilityOf(foundBy([result({ id: 'F21', mode: 'always', passed: false })]));
    expect(table).toContain('keeps everything; F21: 0 of 2,000 lost, and F21 broke otherwise');
  });

  test('needs all rows of a cell, each in its own mode', () => {
    const table = durabilityOf(foundBy([result({ id: 'F22', mode: 'everysec' }), result({ id: 'F24', mode: 'none' })]));
    expect(table).toContain('`appendfsync everysec` | keeps everything *(not measured)*');
  });
});

test('a result keeps no path in its complaints', () => {
  const complaints = ['daemon-1 ended before it had started: see /tmp/due-chaos-x1/daemon-1.log'];
  const texts = { id: 'F1', title: '', how: '', wanted: '', mode: 'everysec' } as const;
  const verdict = { verdict: 'failed', passed: false, notRun: undefined } as const;
  const rest = { seed: 7, ...verdict, seconds: 1, kept: '/tmp/due-chaos-x1' };
  expect(resultOf({ ...NOTHING_SEEN, ...texts, ...rest, complaints }).complaints).toBe(
    'daemon-1 ended before it had started: see its folder',
  );
});

function foundBy(results: readonly Result[]): Findings {
  return { ...findings, rows: results };
}

function result(more: Partial<Result>): Result {
  const texts = {
    id: 'F1',
    title: '',
    how: '',
    wanted: '',
    mode: 'everysec',
    anomalies: '',
    complaints: '',
    notRun: '',
  };
  const numbers = {
    jobs: 2000,
    lost: 0,
    excused: 0,
    starts: 2000,
    duplicates: 0,
    unexplained: 0,
    extraLateMs: 0,
    seconds: 17,
  };
  return { ...texts, ...numbers, passed: true, ...more };
}
