/** What a page writes into a file for a spreadsheet, and how a slider counts. */
import { expect, test } from 'vitest';
import { saidText } from '../../src/dashboard/pages/queue/values.ts';
import { countOf, stepsTo } from '../../src/dashboard/pages/simulate/steps.ts';
import { csvText } from '../../src/dashboard/parts/csv.ts';
import { settingRows } from '../../src/dashboard/setting-rows.ts';

test('a cell with a comma, a quote or a line of its own stays one cell', () => {
  expect(
    csvText([
      ['queue', 'why'],
      ['emails', 'he said "no", twice\nand left'],
      ['late', undefined],
    ]),
  ).toBe('queue,why\r\nemails,"he said ""no"", twice\nand left"\r\nlate,\r\n');
});

test('a spreadsheet takes no text of somebody else for a formula, and numbers stay numbers', () => {
  expect(csvText([['=1+1', '@x', '-2', '+3', -2]])).toBe("'=1+1,'@x,'-2,'+3,-2\r\n");
});

test('a slider steps alike at few and at many, and counts a rate by the second', () => {
  expect(stepsTo(30)).toEqual([1, 2, 3, 5, 7, 10, 15, 20, 30]);
  expect(stepsTo(1000).at(-1)).toBe(1000);
  expect(['5/s', '600/m', '40', 'none'].map(countOf)).toEqual([5, 10, 40, undefined]);
});

test('a setting says lengths of time, bytes, shares and counts as the pages do elsewhere', () => {
  const said = (name: string, value: unknown) => {
    const row = settingRows.find((one) => one.name === name);
    return row && saidText(row, value);
  };
  expect(said('history', { keep: '7d', max: 100_000, result: true, resultBytesMax: 16_384 })).toBe(
    'kept for 7 d · at most 100,000 · with results · results up to 16.0 KiB',
  );
  expect(said('lateness', { within: '500ms', of: 0.999, over: '30d' })).toBe(
    'within 500 ms · share in time 99.9 % · counted over 30 d',
  );
  expect([said('linger', 40), said('maxBytes', 1_048_576), said('maxPending', 12_000)]).toEqual([
    '40 ms',
    '1.0 MiB',
    '12,000',
  ]);
  expect([said('rate', '600/m'), said('concurrency', 5), said('ahead', undefined)]).toEqual(['600/m', '5', '10 ms']);
});
