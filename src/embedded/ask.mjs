/**
 * One question to a Redis over a raw socket, with nothing but Node: is somebody there, and is it ours? A connection
 * lives for one command and always ends within the time given. For everything else there is `src/redis`. TLS is not
 * spoken: a server that has it listens on a socket of its folder as well.
 */
import { connect } from 'node:net';

/** @typedef {{ readonly username: string, readonly password: string }} Login */
/**
 * @typedef {({ readonly socketPath: string } | { readonly port: number, readonly host?: string }) & { login?: Login }} Address
 *   a server with `login` is asked as that user
 */
/** @typedef {string | null | Reply[]} Reply integers come as text */

/** No reply we ask for is longer. */
const REPLY_BYTES_MAX = 1 << 20;

/**
 * @param {Address} address
 * @param {readonly string[]} command
 * @param {number} [timeoutMs]
 * @returns {Promise<Reply>} rejects when nobody answers in time, or with the server's error text
 */
export function ask(address, command, timeoutMs = 1000) {
  return new Promise((resolve, reject) => {
    const socket =
      'socketPath' in address
        ? connect({ path: address.socketPath })
        : connect({ port: address.port, host: address.host ?? '127.0.0.1' });
    let received = '';
    /** @param {() => void} act */
    const finish = (act) => {
      clearTimeout(timer);
      socket.destroy();
      act();
    };
    const timer = setTimeout(() => finish(() => reject(new Error(`no reply within ${timeoutMs} ms`))), timeoutMs);
    socket.setEncoding('latin1');
    socket.on('error', (error) => finish(() => reject(error)));
    socket.on('close', () => finish(() => reject(new Error('the connection closed before the reply'))));
    const { login } = address;
    socket.on('connect', () => {
      if (login) socket.write(encode(['AUTH', login.username, login.password]));
      socket.write(encode(command));
    });
    socket.on('data', (chunk) => {
      received += chunk;
      if (received.length > REPLY_BYTES_MAX) return finish(() => reject(new Error('the reply is too long')));
      try {
        const greeted = login ? parse(received, 0) : { end: 0 };
        const parsed = greeted && parse(received, greeted.end);
        if (parsed) finish(() => resolve(parsed.value));
      } catch (error) {
        finish(() => reject(error));
      }
    });
  });
}

/**
 * @param {Address} address
 * @param {number} [timeoutMs]
 * @returns {Promise<boolean>} false while the server loads its data, too
 */
export async function answersPing(address, timeoutMs = 1000) {
  try {
    return (await ask(address, ['PING'], timeoutMs)) === 'PONG';
  } catch {
    return false;
  }
}

/** @param {readonly string[]} command */
function encode(command) {
  const parts = command.map((part) => `$${Buffer.byteLength(part)}\r\n${part}\r\n`);
  return `*${command.length}\r\n${parts.join('')}`;
}

/**
 * @param {string} text one character per byte
 * @param {number} start
 * @returns {{ value: Reply, end: number } | undefined} undefined while the reply is incomplete
 */
function parse(text, start) {
  const lineEnd = text.indexOf('\r\n', start);
  if (lineEnd < 0) return undefined;
  const line = text.slice(start + 1, lineEnd);
  const end = lineEnd + 2;
  switch (text[start]) {
    case '+':
    case ':':
      return { value: line, end };
    case '-':
      throw new Error(line);
    case '$':
      return parseBulk(text, end, Number(line));
    case '*':
      return parseArray(text, end, Number(line));
    default:
      throw new Error('this is not a Redis');
  }
}

/**
 * @param {string} text
 * @param {number} start
 * @param {number} length
 * @returns {{ value: Reply, end: number } | undefined}
 */
function parseBulk(text, start, length) {
  if (length < 0) return { value: null, end: start };
  const end = start + length + 2;
  if (text.length < end) return undefined;
  return { value: Buffer.from(text.slice(start, start + length), 'latin1').toString('utf8'), end };
}

/**
 * @param {string} text
 * @param {number} start
 * @param {number} count
 * @returns {{ value: Reply, end: number } | undefined}
 */
function parseArray(text, start, count) {
  /** @type {Reply[]} */
  const value = [];
  let end = start;
  for (let i = 0; i < count; i += 1) {
    const item = parse(text, end);
    if (!item) return undefined;
    value.push(item.value);
    end = item.end;
  }
  return { value, end };
}
