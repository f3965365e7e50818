/** What the pages say in words: times in the zone of whoever looks, with UTC beside it, and long ids. */
import { expect, test } from 'vitest';
import { utcBeside } from '../../src/dashboard/parts/clock.ts';
import { quoted } from '../../src/dashboard/parts/shell.ts';
import { shortText } from '../../src/dashboard/parts/words.ts';
import { settingRows } from '../../src/dashboard/setting-rows.ts';
import { de } from '../../src/dashboard/words/de.ts';
import { en } from '../../src/dashboard/words/en.ts';

const atMs = Date.UTC(2026, 10, 22, 22, 14, 5);

test('UTC stands beside a local time that differs, with its date where that differs too', () => {
  expect(utcBeside(atMs, '2026-11-22 23:14:05 GMT+1')).toBe('22:14:05 UTC');
  expect(utcBeside(atMs, '2026-11-23 07:14:05 GMT+9')).toBe('2026-11-22 22:14:05 UTC');
  expect(utcBeside(atMs, '2026-11-22 22:14:05 UTC')).toBe('');
});

test('a due time beyond any calendar has none', () => {
  expect(utcBeside(1e17, '100000000000000000')).toBe('');
});

test('an id is shown whole up to 48 characters, and a longer one without its middle', () => {
  const uuid = '0192f0a4-7a6e-7c3d-9d5e-1f2a3b4c5d6e';
  expect([shortText(uuid), shortText('x'.repeat(48))]).toEqual([uuid, 'x'.repeat(48)]);
  expect(shortText(`order-${'7'.repeat(90)}-last`)).toBe(`order-${'7'.repeat(20)}…${'7'.repeat(13)}-last`);
  expect([...shortText('🙂'.repeat(60))]).toHaveLength(45);
});

test('a word of a command that is to be pasted stays one word, whatever is in it', () => {
  expect(['mails', '5/s', 'a:b@c.d+e'].map(quoted)).toEqual(['mails', '5/s', 'a:b@c.d+e']);
  expect(['5/s; rm -rf /', '$(date)', "it's", ''].map(quoted)).toEqual([
    "'5/s; rm -rf /'",
    "'$(date)'",
    `'it'\\''s'`,
    "''",
  ]);
});

test('one of them is told as one', () => {
  expect([en.now.others(1, '1'), en.now.others(2, '2')]).toEqual(['1 more is in trouble', '2 more are in trouble']);
  expect(en.now.known(1, '1')).toBe('1 job is known.');
  expect(en.jobs.andOthers(1)).toBe('and 1 other');
  expect(en.jobs.noHistory('mails', 1)).toContain('mails and 1 other: ');
  expect(en.jobs.canChange(3, 1)).toBe('3 can be changed, 1 has started');
  expect(en.create.happens.retried('10 s', 1)).toBe('it is tried again after 10 s, and once more.');
  expect(en.slo.kept(1, 1, 'November')).toBe('1 of 1 queue keeps its promise in November.');
  expect(en.slo.kept(2, 3, 'November')).toBe('2 of 3 queues keep their promise in November.');
});

test('the dialog of each setting speaks German to whoever chose that', () => {
  const { docs, allowedOf } = de.queue.settings;
  const fields = settingRows.flatMap(({ name, parts }) => parts.map((part) => `${name}.${part.name}`));
  expect(settingRows.map(({ name }) => name).filter((name) => docs[name] === undefined)).toEqual([]);
  expect(fields.filter((name) => allowedOf[name] === undefined)).toEqual([]);
});
