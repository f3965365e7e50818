/** What the page of measurements says of more than one Redis is made from the committed results, and tells what was wanted from what is. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { missed, sectionOf } from '../../bench/beyond/page.mjs';
import { withMeasured } from '../../bench/measured.mjs';
import { read, root } from '../support/repository.ts';

type Parts = Parameters<typeof sectionOf>[0];

const RESULTS = 'bench/results/beyond-one.json';
const made = { date: '2026-11-23', host: '2 × a CPU', node: '20.20.2', redis: 'Redis 7.0.15', rounds: 3, quick: false };
const shares = { leadUnevenness: 1.1, readUnevenness: 1.2, daemonTripsPerPartition: 1.5 };
const failed = { signal: 'SIGKILL', control: false, duringP50Ms: 6, allowedP50Ms: 8, resumedMs: 4000, allowedMs: 5000 };
const all = { phase: 'all', jobs: 90_000, calls: 900, lost: 0, again: 0, failed: 0 };
const good: Parts = {
  spread: { made, rows: [shares] },
  failing: { made, rows: [failed] },
  resharding: { made, rows: [{ phase: 'before' }, all] },
};

test('the committed section is what the committed results make of it', () => {
  const parts: Parts = existsSync(join(root, RESULTS)) ? JSON.parse(read(RESULTS)) : {};
  const page = read('docs/reference/measured.md');
  expect(withMeasured(page, 'beyond', sectionOf(parts))).toBe(page);
});

test('what is not as wanted is told, and nothing where all is', () => {
  expect(missed(good)).toEqual([]);
  const bad: readonly (readonly [string, Parts, RegExp])[] = [
    ['uneven leadership', { spread: { made, rows: [{ ...shares, leadUnevenness: 1.6 }] } }, /led by a daemon/],
    ['uneven reading', { spread: { made, rows: [{ ...shares, readUnevenness: 1.6 }] } }, /called for/],
    ['busy daemons', { spread: { made, rows: [{ ...shares, daemonTripsPerPartition: 2.1 }] } }, /idle daemons/],
    ['late neighbours', { failing: { made, rows: [{ ...failed, duringP50Ms: 9 }] } }, /others were later/],
    ['a long pause', { failing: { made, rows: [{ ...failed, resumedMs: 5001 }] } }, /too long away/],
    ['a lost job', { resharding: { made, rows: [{ ...all, lost: 1 }] } }, /lost/],
    ['a job that ran twice', { resharding: { made, rows: [{ ...all, again: 1 }] } }, /twice/],
    ['a call that failed', { resharding: { made, rows: [{ ...all, failed: 1 }] } }, /calls failed/],
  ];
  for (const [what, parts, told] of bad) {
    expect(missed({ ...good, ...parts }), what).toEqual([expect.stringMatching(told)]);
  }
});
