/** A part of a path comes back as it was, whatever stands between. */
import { describe, expect, test } from 'vitest';
import { escapedPart, isEscaped, isUntidy, readEscaped, writePart } from '../../src/kernel/path-part.ts';

const ALTERED = ['order/7', 'order//8', '/x', 'x/', 'a/../b', '..', '.', '%2F', '%', 'a\\b', '~', '~Yg', '{acme/eu}a'];
const PLAIN = ['welcome:42', '{acme}a', '3-0', 'a.b', '...', 'x?y#z', 'a+b&c', 'naïve', "it's", 'a~b'];

test('what a proxy would change is escaped, with characters that stay what they are', () => {
  for (const text of ALTERED) {
    const part = writePart(text);
    expect(part, text).toMatch(/^~[\w-]+$/);
    expect([isEscaped(part), readEscaped(part)], text).toEqual([true, text]);
  }
});

test('anything else is percent-encoded, as every client does it', () => {
  for (const text of PLAIN) expect(writePart(text)).toBe(encodeURIComponent(text));
});

test('the form is that of other languages', () => {
  for (const text of [...ALTERED, ...PLAIN, '>>>???']) {
    expect(escapedPart(text)).toBe(`~${Buffer.from(text).toString('base64url')}`);
    expect(readEscaped(escapedPart(text))).toBe(text);
  }
});

test('one text has one form: any other says nothing', () => {
  for (const part of ['~', '~!', '~Yh', '~Yg=', '~Yg==', '~Y g', '~_w', '~foo', '~b3JkZXIv Nw', '~Y']) {
    expect(readEscaped(part), part).toBeUndefined();
  }
});

describe('a text that tidying changes', () => {
  test('has an empty piece or one of dots between slashes', () => {
    for (const text of ['/x', 'x/', 'a//b', 'a/../b', './a', 'a/.', 'a\\..\\b'])
      expect(isUntidy(text), text).toBe(true);
    for (const text of ['a/b', 'a', '..', 'a..b/c', 'a/.b', '3/1-0', '']) expect(isUntidy(text), text).toBe(false);
  });
});
