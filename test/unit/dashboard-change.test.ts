/** The form to edit a job sends the data that somebody typed, and not what a browser makes of them. */
import { expect, test } from 'vitest';
import { changeText } from '../../src/dashboard/parts/words.ts';

test('data go as they were typed, with all their digits', () => {
  const data = '{\n  "user": 1234567824702058497, "share": 0.1234567890123456789\n}';
  expect(changeText({}, data)).toBe(`{"data":${data}}`);
  expect(changeText({ name: 'x', attempts: null }, data)).toBe(`{"name":"x","attempts":null,"data":${data}}`);
});

test('without new data there are none', () => {
  expect(changeText({ attempts: 3 }, undefined)).toBe('{"attempts":3}');
  expect(changeText({}, undefined)).toBe('{}');
});

test.each(['', '{"n": 33', '1, "name": "y"', '{}}', '{} //'])('%j is no JSON, and is not sent', (data) => {
  expect(() => changeText({ name: 'x' }, data)).toThrow('the data are no JSON: ');
});
