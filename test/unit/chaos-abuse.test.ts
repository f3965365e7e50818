/** The harness knows data that only look like pollution from an object that got something. */
import { expect, test } from 'vitest';
import { isPolluted, nasty } from '../chaos/faults/abuse.mjs';
import { seeded } from '../chaos/stage/workload.mjs';

const REACHING = '{"a":[{"__proto__":{"polluted":"yes"}}],"polluted":{"constructor":{"prototype":{"polluted":1}}}}';

test('what data say of themselves is not pollution', () => {
  expect(isPolluted(JSON.parse(REACHING))).toBe(false);
  const random = seeded(7);
  for (let nth = 0; nth < 1000; nth += 1) expect(isPolluted(nasty(random))).toBe(false);
});

test('an object that a careless copy gave something is pollution, wherever it is', () => {
  const careless = Object.assign({}, JSON.parse('{"__proto__":{"polluted":"yes"}}'));
  expect(isPolluted(careless)).toBe(true);
  expect(isPolluted([{ a: { b: careless } }])).toBe(true);
});

test('a prototype that got something is pollution, whatever the data', () => {
  Object.defineProperty(Object.prototype, 'polluted', { value: 'yes', configurable: true });
  try {
    expect(isPolluted(7)).toBe(true);
  } finally {
    Reflect.deleteProperty(Object.prototype, 'polluted');
  }
  expect(isPolluted(7)).toBe(false);
});
