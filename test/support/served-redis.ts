/**
 * A Redis as a serverless service offers it, in front of a real one. The real one has no channels, no `WAIT`, no transactions and
 * nothing for administrators; what a server cannot be told to refuse, a line refuses in its place: reads that block, commands with
 * 4,000 arguments, all of `CLIENT` but its names. Replies stay in their order: the line has Redis itself say the refusal.
 */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { startRedis, type TestRedis } from './redis.ts';

export interface ServedRedis {
  readonly url: string;
  /** The real one, to look behind the line. */
  readonly server: TestRedis;
  /** Names of commands that came, `client id`, with how often. */
  readonly came: ReadonlyMap<string, number>;
  /** Those that were refused, by the line or because the server has none. */
  readonly refused: () => readonly string[];
  /** The most arguments of a command. */
  readonly longest: () => number;
  readonly stop: () => Promise<void>;
}

const ARGUMENTS_MAX = 3999;
/** What the server does not have; scripts do not have it either. */
const GONE = ['CONFIG', 'WAIT', 'SSUBSCRIBE', 'SUNSUBSCRIBE', 'SPUBLISH', 'MONITOR', 'SLOWLOG', 'DEBUG', 'KEYS', 'ACL'];
GONE.push('MULTI', 'EXEC', 'WATCH', 'BLPOP', 'BRPOP', 'BZPOPMIN', 'MEMORY', 'LATENCY', 'SAVE', 'BGSAVE');
const NAMES = ['setname', 'setinfo'];

/** `gone`: what the server does not have besides. */
export async function startServed({ gone = [] }: { readonly gone?: readonly string[] } = {}): Promise<ServedRedis> {
  const without = [...GONE, ...gone];
  const server = await startRedis({ args: without.flatMap((name) => ['--rename-command', name, '']) });
  const path = join(server.dir, 'served.sock');
  const sockets = new Set<Socket>();
  const came = new Map<string, number>();
  const refused = new Set<string>();
  let longest = 0;

  /** The words to send on: the command, or one that makes Redis refuse it. */
  function judge(words: readonly Buffer[]): readonly (Buffer | string)[] {
    const [name = '', second = ''] = words.slice(0, 2).map((word) => word.toString('latin1').toLowerCase());
    const full = name === 'client' || name === 'config' ? `${name} ${second}` : name;
    came.set(full, (came.get(full) ?? 0) + 1);
    longest = Math.max(longest, words.length);
    const why = refusalOf(words, name, second);
    if (why !== undefined || without.includes(name.toUpperCase())) refused.add(full);
    return why === undefined ? words : ['EVAL', 'return redis.error_reply(ARGV[1])', '0', why];
  }

  const line = createServer((client) => {
    const upstream = connect(server.socketPath);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    let rest: Buffer = Buffer.alloc(0);
    client.on('data', (bytes) => {
      rest = Buffer.concat([rest, bytes]);
      for (let found = commandIn(rest); found; found = commandIn(rest)) {
        rest = rest.subarray(found.length);
        upstream.write(encode(judge(found.words)));
      }
    });
    upstream.on('data', (reply) => client.write(reply));
  });
  line.listen(path);
  await once(line, 'listening');
  return {
    url: `unix://${path}`,
    server,
    came,
    refused: () => [...refused].sort(),
    longest: () => longest,
    async stop() {
      for (const socket of sockets) socket.destroy();
      line.close();
      await once(line, 'close');
      await server.stop();
    },
  };
}

function refusalOf(words: readonly Buffer[], name: string, second: string): string | undefined {
  if (words.length > ARGUMENTS_MAX) return 'ERR the number of arguments exceeds the limit';
  if (name === 'client' && !NAMES.includes(second)) return `ERR unknown subcommand '${second}'`;
  const isBlocking = /^xread/.test(name) && words.some((word) => /^block$/i.test(word.toString('latin1')));
  return isBlocking ? 'ERR BLOCK is not allowed' : undefined;
}

/** The first whole command of these bytes, and how many bytes it takes. */
function commandIn(bytes: Buffer): { readonly words: readonly Buffer[]; readonly length: number } | undefined {
  let at = 0;
  const header = (sign: string): number | undefined => {
    const end = bytes.indexOf('\r\n', at);
    if (end === -1) return undefined;
    const text = bytes.toString('latin1', at, end);
    if (!text.startsWith(sign)) throw new Error(`not a command: ${text.slice(0, 40)}`);
    at = end + 2;
    return Number(text.slice(1));
  };
  const count = bytes.length === 0 ? undefined : header('*');
  if (count === undefined) return undefined;
  const words: Buffer[] = [];
  for (let nth = 0; nth < count; nth += 1) {
    const size = header('$');
    if (size === undefined || bytes.length < at + size + 2) return undefined;
    words.push(bytes.subarray(at, at + size));
    at += size + 2;
  }
  return { words, length: at };
}

function encode(words: readonly (Buffer | string)[]): Buffer {
  const parts = words.flatMap((word) => [Buffer.from(`$${Buffer.byteLength(word)}\r\n`), Buffer.from(word), CRLF]);
  return Buffer.concat([Buffer.from(`*${words.length}\r\n`), ...parts]);
}

const CRLF = Buffer.from('\r\n');
