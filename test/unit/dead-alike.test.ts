/** What dead letters that died alike have in common: the text of an error without numbers and ids, but with codes. */
import { expect, test } from 'vitest';
import { alike } from '../../src/client/dead/filter.ts';

test.each([
  ['no user 4711 in "eu"', 'no user # in "…"'],
  ['connect ECONNREFUSED 127.0.0.1:6379', 'connect ECONNREFUSED #.#.#.#:#'],
  ['550 no such user u17@example.org', '550 no such user u#@example.org'],
  ['HTTP 503', 'HTTP 503'],
  ['HTTP 410 for order 4711', 'HTTP 410 for order #'],
  ['Request failed with status code 429', 'Request failed with status code 429'],
  ['upstream: 503 Service Unavailable', 'upstream: 503 Service Unavailable'],
  ['status: 404, id 404', 'status: 404, id #'],
  ['order 503 is unknown', 'order # is unknown'],
  ['took 250 ms, limit 100', 'took # ms, limit #'],
  ['HTTP 503.5', 'HTTP #.#'],
  ['code 12345', 'code #'],
  ['attempts-exhausted', 'attempts-exhausted'],
])('%s is alike %s', (text, common) => {
  expect(alike(text)).toBe(common);
  expect(alike(common)).toBe(common);
});
