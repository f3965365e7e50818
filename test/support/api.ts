/** A daemon with its HTTP API on a private Redis, and a caller that says what it was answered. */

import { createToken, type NewToken } from '../../src/access/tokens.ts';
import type { Namespaced } from '../../src/client/queues/refs.ts';
import { createDaemonOf, type Daemon } from '../../src/daemon/daemon.ts';
import type { DaemonInput } from '../../src/daemon/input.ts';
import { readDaemonInput } from '../../src/daemon/input.ts';
import type { Log } from '../../src/kernel/log.ts';
import { close, openCommands, whenReady } from '../../src/redis/connection/connect.ts';
import { startRedis, type TestRedis } from './redis.ts';

export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // Whatever JSON is: a test says what it expects of it.
  readonly body: ReturnType<typeof JSON.parse>;
}

export interface AskOptions {
  readonly token?: string | undefined;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ServedApi {
  readonly url: string;
  readonly redis: TestRedis;
  readonly place: Namespaced;
  readonly daemon: Daemon;
  /** `ask('GET /v1/queues')` */
  readonly ask: (what: string, options?: AskOptions) => Promise<Answered>;
  /** A new token. */
  readonly tokenOf: (given: Partial<NewToken>) => Promise<string>;
  readonly stop: () => Promise<void>;
}

export async function serveApi(
  given: Omit<DaemonInput, 'redis'> = {},
  parts: { readonly log?: Log } = {},
): Promise<ServedApi> {
  const redis = await startRedis();
  const http = { port: 0, rateMax: 1_000_000, ...given.http };
  const daemon = createDaemonOf(
    readDaemonInput({ ...given, http, redis: { url: redis.url, commandTimeout: '30s' } }),
    parts,
  );
  await daemon.start();
  const { host, port } = daemon.http() ?? { host: '', port: 0 };
  const url = `${given.http?.cert ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const client = openCommands({ redis: redis.url, name: 'test' });
  await whenReady(client, 5000);
  const place = { redis: client, namespace: given.namespace ?? 'duestream' };
  let tokens = 0;
  return {
    url,
    redis,
    place,
    daemon,
    ask: (what, options) => ask(url, what, options),
    async tokenOf({ name, scopes = ['read'], ...rest }) {
      tokens += 1;
      return (await createToken(place, { name: name ?? `t${tokens}`, scopes, ...rest }, Date.now())).token;
    },
    async stop() {
      close(client);
      await daemon.stop();
      await redis.stop();
    },
  };
}

export async function ask(url: string, what: string, { token, body, headers }: AskOptions = {}): Promise<Answered> {
  const [method = 'GET', path = ''] = what.split(' ');
  const response = await fetch(url + path, {
    method,
    headers: {
      ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = text !== '' && /json/.test(response.headers.get('content-type') ?? '');
  return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : undefined };
}
