/** What somebody may hand in who means harm, or whose program went wrong. */

/** What becomes of data on its way: nothing is no JSON. @param {unknown} data */
export const jsonOf = (data) => JSON.stringify(data) ?? '';

/**
 * Data that fits and data that does not.
 *
 * @param {number} limit bytes of JSON
 * @returns {{ fit: readonly unknown[], over: readonly unknown[] }}
 */
export function sizes(limit) {
  /** @type {unknown} */
  let deep = [];
  for (let depth = 0; depth < 500; depth += 1) deep = [deep];
  const fit = [
    undefined,
    7,
    '',
    'x'.repeat(limit - 2),
    `${'\u{1f600}'.repeat((limit - 4) / 4)}ab`,
    '\ud800 alone \udfff',
    Array.from({ length: 256 }, (_, code) => String.fromCharCode(code)).join(''),
    '\u2028\u2029\ufeff\ufffd',
    [1e21, 0.1, -0, 5e-324, 9007199254740991],
    [[], {}, null, false, [[]], { '': '' }],
    deep,
  ];
  return { fit, over: ['x'.repeat(limit - 1), `${'\u{1f600}'.repeat((limit - 4) / 4)}abc`, 'x'.repeat(10_000_000)] };
}

/** Ids that the grammar allows and that are code elsewhere. */
export const NASTY_IDS = [
  "a'b",
  'a"b',
  'a\\b',
  '*',
  '[a-z]?',
  "');redis.call('FLUSHALL')--",
  ']]..redis.call("FLUSHALL")..[[',
  '$(reboot)',
  '`id`',
  '%s%d%.0f%n',
  '%b()%f[%w].-',
  '^$()%.[]*+-?',
  '<img/src=x/onerror=alert(1)>',
  '../../etc/passwd',
  'a|b;c=d',
  '-inf',
  '0-0',
  '$',
  '>',
  '+',
  'j:j:j:',
  '1e400',
  '\\r\\n',
  '__proto__',
];

/** Ids that nobody may use. */
export const REFUSED_IDS = [
  '',
  'a b',
  'a\r\nb',
  'a\nb',
  '\u001b[2J',
  'a\0b',
  'a\tb',
  '\u00e9',
  '\u{1f600}',
  'a{b',
  'a}b',
  '}x{',
  '{other:0}',
  'x'.repeat(129),
];

/** Names of jobs and of queues that nobody may use. */
export const REFUSED_NAMES = [
  "a'b",
  'a"b',
  'a b',
  'a\r\nb',
  '{a}',
  'a}:b{',
  '*',
  '?',
  '[a]',
  '__proto__',
  '',
  '-a',
  '\0',
];

/** Members that a foreign producer may put, and that no one can run. */
export const UNREADABLE = ['a b', 'a\r\nSET x y\r\n', '\u001b[2J', '\u00e9', 'a\0b'];

/**
 * Whether an object has what nobody gave it: one that is bare, or one of these data. What data say of themselves is
 * theirs, also under the names `__proto__` and `polluted`.
 *
 * @param {unknown} data
 * @returns {boolean}
 */
export function isPolluted(data) {
  if ('polluted' in {} || 'polluted' in [] || 'polluted' in Object) return true;
  if (typeof data !== 'object' || data === null) return false;
  if ('polluted' in data && !Object.hasOwn(data, 'polluted')) return true;
  return Object.getOwnPropertyNames(data).some((name) =>
    isPolluted(Object.getOwnPropertyDescriptor(data, name)?.value),
  );
}

/**
 * Data that reaches for the prototype of something, in many places.
 *
 * @param {() => number} random
 * @returns {unknown}
 */
export function nasty(random) {
  const keys = ['__proto__', 'constructor', 'prototype', 'a', 'toString', '__defineGetter__', 'polluted', '0'];
  const pick = () => keys[Math.floor(random() * keys.length)] ?? 'a';
  const build = (/** @type {number} */ depth) => {
    /** @type {string} */
    const inner = depth === 0 ? '"yes"' : build(depth - 1);
    if (random() < 0.2) return `[${inner},{"__proto__":${inner}}]`;
    if (random() < 0.4) return `{"__proto__":{"polluted":${inner}},"${pick()}":${inner}}`;
    if (random() < 0.5) return `{"constructor":{"prototype":{"polluted":${inner}}}}`;
    return `{"${pick()}":${inner}}`;
  };
  return JSON.parse(build(Math.floor(random() * 4)));
}
