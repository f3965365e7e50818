/**
 * failed-payments.csv → payments. A row that cannot be understood is refused with its line and a reason, and stops
 * nothing. A record is one line: a quote that is never closed then costs its own row and not the rest of the file.
 */
import { parse } from 'csv-parse/sync';
import { DateTime, IANAZone } from 'luxon';

const COLUMNS = [
  'payment',
  'failed_at',
  'amount',
  'currency',
  'name',
  'email',
  'locale',
  'zone',
  'account',
  'new_customer',
];
const CURRENCIES = new Set(Intl.supportedValuesOf('currency'));
const ROWS_MAX = 100_000;

/**
 * @typedef {object} Payment
 * @property {string} id
 * @property {number} failedAtMs epoch ms
 * @property {string} amount a decimal as written in the file: money is never a float here
 * @property {string} currency ISO 4217
 * @property {string} name
 * @property {string} email
 * @property {string} locale BCP 47
 * @property {string} zone IANA
 * @property {string} account
 * @property {boolean} isNew a first order: a welcome mail is due, too
 */
/**
 * @typedef {object} Reading
 * @property {number} rows without header and empty lines
 * @property {readonly Payment[]} payments the first row of each
 * @property {readonly { line: number, firstLine: number, payment: Payment }[]} duplicates rows about a payment seen before
 * @property {readonly { line: number, reason: string }[]} refused
 */

/**
 * @param {string} text
 * @returns {Reading}
 */
export function readPayments(text) {
  const [header = '', ...lines] = text.replace(/^\uFEFF/, '').split(/\r?\n/, ROWS_MAX + 1);
  if (header !== COLUMNS.join(',')) throw new Error(`the first line must be ${COLUMNS.join(',')}`);
  /** @type {Map<string, number>} */
  const firstLines = new Map();
  /** @type {Payment[]} */
  const payments = [];
  const duplicates = [];
  const refused = [];
  let rows = 0;
  for (const [index, content] of lines.entries()) {
    if (content.trim() === '') continue;
    const line = index + 2;
    rows += 1;
    try {
      const payment = toPayment(cellsOf(content));
      const firstLine = firstLines.get(payment.id);
      if (firstLine === undefined) {
        firstLines.set(payment.id, line);
        payments.push(payment);
      } else duplicates.push({ line, firstLine, payment });
    } catch (error) {
      refused.push({ line, reason: error instanceof Error ? error.message : String(error) });
    }
  }
  return { rows, payments, duplicates, refused };
}

/**
 * @param {string} content
 * @returns {readonly string[]}
 */
function cellsOf(content) {
  /** @type {string[][]} */
  let records;
  try {
    records = parse(content, { relax_column_count: true, trim: true, max_record_size: 4096 });
  } catch {
    throw new Error('the quotes do not match');
  }
  const cells = records[0] ?? [];
  if (cells.length !== COLUMNS.length) throw new Error(`${cells.length} columns, not ${COLUMNS.length}`);
  return cells;
}

/**
 * @param {readonly string[]} cells
 * @returns {Payment}
 */
function toPayment(cells) {
  const [id = '', failedAt = '', amount = '', currency = '', name = '', email = '', locale = '', zone = ''] = cells;
  const [account = '', isNew] = cells.slice(8);
  must(/^[A-Za-z0-9-]{1,40}$/.test(id), 'payment', id);
  const failed = DateTime.fromISO(failedAt, { setZone: true });
  must(failed.isValid, 'failed_at (there is no such moment)', failedAt);
  must(/(Z|[+-]\d\d:\d\d)$/.test(failedAt), 'failed_at (it has no offset)', failedAt);
  must(CURRENCIES.has(currency), 'currency', currency);
  must(isAmount(amount, currency), `amount in ${currency}`, amount);
  must(name !== '' && name.length <= 100, 'name', name);
  must(/^[^\s@,;<>]{1,64}@[a-z0-9.-]{1,190}$/i.test(email), 'email', email);
  must(Intl.DateTimeFormat.supportedLocalesOf([locale].filter(isTag)).length === 1, 'locale', locale);
  must(IANAZone.isValidZone(zone), 'zone', zone);
  must(/^[A-Za-z0-9-]{1,40}$/.test(account), 'account', account);
  return {
    id,
    failedAtMs: failed.toMillis(),
    amount,
    currency,
    name,
    email,
    locale,
    zone,
    account,
    isNew: isNew === 'yes',
  };
}

/**
 * @param {boolean} ok
 * @param {string} what
 * @param {string} value
 */
function must(ok, what, value) {
  if (!ok) throw new Error(value === '' ? `${what} is missing` : `bad ${what}: ${JSON.stringify(value.slice(0, 60))}`);
}

/** @param {string} tag a tag of another form makes Intl throw */
const isTag = (tag) => /^[a-z]{2,3}(-[A-Z]{2})?$/.test(tag);

/**
 * Above zero, and with as many decimals as the currency has: 4800.50 yen do not exist.
 *
 * @param {string} amount
 * @param {string} currency
 */
function isAmount(amount, currency) {
  const digits =
    new Intl.NumberFormat('en', { style: 'currency', currency }).resolvedOptions().maximumFractionDigits ?? 2;
  const [, , decimals = ''] = /^(\d{1,9})(?:\.(\d+))?$/.exec(amount) ?? [];
  return /^\d{1,9}(\.\d+)?$/.test(amount) && decimals.length <= digits && Number(amount) > 0;
}
