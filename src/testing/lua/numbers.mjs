/** How C prints and reads numbers, as far as Lua and Redis rely on it. */

/**
 * `%.<digits>g`
 *
 * @param {number} value
 * @param {number} digits
 */
export function general(value, digits) {
  // Nearly all are whole, and JavaScript prints those as C does.
  if (Number.isSafeInteger(value) && Math.abs(value) < 10 ** Math.min(digits, 15) && value !== 0) return String(value);
  if (Number.isNaN(value)) return value < 0 ? '-nan' : 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  if (value === 0) return Object.is(value, -0) ? '-0' : '0';
  const [mantissa = '', power = '0'] = value.toExponential(digits - 1).split('e');
  const exponent = Number(power);
  if (exponent < -4 || exponent >= digits) {
    const size = String(Math.abs(exponent)).padStart(2, '0');
    return `${trimmed(mantissa)}e${exponent < 0 ? '-' : '+'}${size}`;
  }
  return trimmed(value.toFixed(digits - 1 - exponent));
}

/** `%.0f`: halves go to the even neighbour. @param {number} value */
export function rounded(value) {
  if (!Number.isFinite(value)) return general(value, 17);
  const floor = Math.floor(value);
  const part = value - floor;
  const up = part > 0.5 || (part === 0.5 && floor % 2 !== 0);
  const whole = BigInt(floor) + (up ? 1n : 0n);
  return whole === 0n && (value < 0 || Object.is(value, -0)) ? '-0' : String(whole);
}

/** What `tonumber` makes of a text. @param {string} text @param {number} [base] @returns {number | undefined} */
export function numberOf(text, base = 10) {
  const plain = text.trim().toLowerCase();
  if (base !== 10) return inBase(plain, base);
  const named = /^([+-]?)(inf|infinity|nan)$/.exec(plain);
  if (named) return named[2] === 'nan' ? Number.NaN : named[1] === '-' ? -Infinity : Infinity;
  if (/^[+-]?0x[\da-f]+$/.test(plain)) return Number(plain.replace(/^[+-]/, '')) * (plain.startsWith('-') ? -1 : 1);
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/.test(plain) ? Number(plain) : undefined;
}

/** @param {string} text @param {number} base */
function inBase(text, base) {
  if (text === '') return undefined;
  let value = 0;
  for (const char of text) {
    const digit = /[0-9a-z]/.test(char) ? Number.parseInt(char, 36) : base;
    if (digit >= base) return undefined;
    value = value * base + digit;
  }
  return value;
}

/** @param {string} digits */
const trimmed = (digits) => (digits.includes('.') ? digits.replace(/\.?0+$/, '') : digits);
