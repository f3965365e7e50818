/** What a command answers, and how both sides of a connection write it (RESP 2). A text has one character per byte. */

/** @typedef {null | number | string | Status | Refusal | Reply[]} Reply */

export class Status {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }
}

/** An error reply. */
export class Refusal extends Error {}

export const OK = new Status('OK');
export const WRONG_TYPE = 'WRONGTYPE Operation against a key holding the wrong kind of value';
export const NOT_AN_INTEGER = 'ERR value is not an integer or out of range';

/** @param {Reply} reply @returns {string} */
export function encode(reply) {
  if (reply === null) return '$-1\r\n';
  if (typeof reply === 'number') return `:${reply}\r\n`;
  if (typeof reply === 'string') return `$${reply.length}\r\n${reply}\r\n`;
  if (reply instanceof Status) return `+${reply.text}\r\n`;
  if (reply instanceof Refusal) return `-${reply.message.replace(/[\r\n]/g, ' ')}\r\n`;
  return `*${reply.length}\r\n${reply.map(encode).join('')}`;
}

/** A list that is missing: RESP 2 knows two kinds of nothing. */
export const NO_LIST = Symbol('no list');
export const NO_LIST_BYTES = '*-1\r\n';

/** Takes bytes as they come and gives commands as they are whole. */
export function createParser() {
  let rest = '';

  /** @param {number} from @returns {{ text: string, next: number } | undefined} */
  function lineAt(from) {
    const end = rest.indexOf('\r\n', from);
    return end === -1 ? undefined : { text: rest.slice(from, end), next: end + 2 };
  }

  function one() {
    const head = lineAt(0);
    if (!head) return undefined;
    const args = [];
    let at = head.next;
    for (let left = Number(head.text.slice(1)); left > 0; left -= 1) {
      const size = lineAt(at);
      if (!size) return undefined;
      const end = size.next + Number(size.text.slice(1));
      if (rest.length < end + 2) return undefined;
      args.push(rest.slice(size.next, end));
      at = end + 2;
    }
    rest = rest.slice(at);
    return args;
  }

  return {
    /** @param {string} bytes @returns {string[][]} */
    feed(bytes) {
      rest += bytes;
      const commands = [];
      for (let args = one(); args; args = one()) commands.push(args);
      return commands;
    },
  };
}
