/** The headers of a mail as a person would read them: unfolded, and encoded words (RFC 2047) turned back into text. */

/**
 * @param {Buffer} mail
 * @returns {ReadonlyMap<string, string>} names in lower case; the first of equal names counts
 */
export function headersOf(mail) {
  const end = mail.indexOf('\r\n\r\n');
  const head = mail.subarray(0, end < 0 ? mail.length : end).toString('utf8');
  /** @type {Map<string, string>} */
  const headers = new Map();
  for (const line of head.replace(/\r\n[ \t]+/g, ' ').split('\r\n')) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).toLowerCase();
    if (colon > 0 && !headers.has(name)) headers.set(name, decodeWords(line.slice(colon + 1).trim()));
  }
  return headers;
}

/**
 * A character may be cut in two where one encoded word ends and the next begins, so neighbours are joined as bytes.
 *
 * @param {string} text
 */
function decodeWords(text) {
  return text.replace(/=\?utf-8\?[bq]\?[^?]*\?=(\s+=\?utf-8\?[bq]\?[^?]*\?=)*/gi, (run) =>
    Buffer.concat(
      [...run.matchAll(/=\?utf-8\?([bq])\?([^?]*)\?=/gi)].map(([, kind, body]) => bytesOf(kind, body)),
    ).toString('utf8'),
  );
}

/**
 * @param {string} [kind] b is base64, q is quoted
 * @param {string} [body]
 */
function bytesOf(kind = 'b', body = '') {
  if (kind.toLowerCase() === 'b') return Buffer.from(body, 'base64');
  const latin = body
    .replaceAll('_', ' ')
    .replace(/=([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(latin, 'latin1');
}
