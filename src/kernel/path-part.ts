/**
 * One part of a path of the HTTP API, such as the id of a job, written so that it arrives as it was sent. Proxies decode
 * `%2F`, resolve `..`, join `//` and turn `\` into `/`: an id with these would be another path behind them. So such a part is
 * written as `~` and the base64url of its UTF-8, of which every character stays what it is everywhere. The pages write it, and the
 * API reads it. This file runs in browsers too.
 */

const MARK = '~';
const ALTERED = /[/\\%]/;

/** @example writePart('welcome:42') // 'welcome%3A42' @example writePart('order/7') // '~b3JkZXIvNw' */
export function writePart(text: string): string {
  const isPlain = !ALTERED.test(text) && !text.startsWith(MARK) && text !== '.' && text !== '..';
  return isPlain ? encodeURIComponent(text) : escapedPart(text);
}

/** The same for any text. @example escapedPart('b') // '~Yg' */
export function escapedPart(text: string): string {
  const bytes = Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte));
  const base64 = btoa(bytes.join(''));
  return `${MARK}${base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')}`;
}

/** Whether a part is in this form: then it is nothing else. */
export const isEscaped = (part: string): boolean => part.startsWith(MARK);

/** What such a part says; undefined where it says nothing. */
export function readEscaped(part: string): string | undefined {
  try {
    const base64 = part.slice(MARK.length).replaceAll('-', '+').replaceAll('_', '/');
    const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    // One text has one form.
    return text !== '' && escapedPart(text) === part ? text : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a proxy that tidies paths makes another path of it, perhaps that of something else. */
export function isUntidy(text: string): boolean {
  const pieces = text.split(/[/\\]/);
  return pieces.length > 1 && pieces.some((piece) => piece === '' || piece === '.' || piece === '..');
}
