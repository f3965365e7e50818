/**
 * A private Redis for one test file: a real server on a unix socket in its own short directory, without persistence
 * unless asked for. It starts in about 15 ms, so tests never share one. It cannot outlive the test process.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { answersPing } from '../../src/embedded/ask.mjs';
import { spawnGuarded } from '../../src/embedded/guard.mjs';
import { onFreePort } from '../../src/embedded/port.mjs';
import { testBinary } from './redis-binary.ts';
import { startTopology, topologyWanted } from './redis-topology.ts';

export interface StartOptions {
  /** Keep the data on disk and write each change before its reply, so that `kill` and `restart` lose nothing. */
  readonly appendonly?: boolean;
  /** Listen on a free TCP port of 127.0.0.1 as well. */
  readonly port?: boolean;
  /** Appended to the command line, so they win: `['--maxmemory', '10mb']`. */
  readonly args?: readonly string[];
}

export interface TestRedis {
  readonly socketPath: string;
  /** `redis://127.0.0.1:port` with a port, else `unix://` and the path of the socket. */
  readonly url: string;
  /** For ioredis. */
  readonly options: { readonly path: string } | { readonly host: string; readonly port: number };
  readonly port: number | undefined;
  readonly dir: string;
  /** Of the running server; another one after `restart`. */
  readonly pid: number;
  /** Resolves when the server is gone; at once for signals that do not end it (SIGSTOP, SIGCONT). */
  kill(signal: NodeJS.Signals): Promise<void>;
  /** Ends the server if it runs, and starts it again with the same directory, socket and port. */
  restart(): Promise<void>;
  /** A connected client, closed by `stop`. */
  client(): Promise<Redis>;
  /** Closes the clients, ends the server and removes its directory. Twice is fine. */
  stop(): Promise<void>;
}

const START_TIMEOUT_MS = 60_000;

/** One server; or several where the environment asks for a topology. */
export async function startRedis(options: StartOptions = {}): Promise<TestRedis> {
  const topology = topologyWanted();
  if (topology) return startTopology(topology);
  const binary = await testBinary();
  const dir = await mkdtemp(join(tmpdir(), 'due-'));
  const socketPath = join(dir, 'r.sock');
  const launchOn = async (port: number) => {
    const args = serverArgs({ dir, socketPath, port, appendonly: options.appendonly ?? false });
    const child = spawnGuarded({ path: binary, args: [...args, ...(options.args ?? [])] });
    await whenReady(child, socketPath);
    return child;
  };
  const first = options.port ? await onFreePort(freePort, launchOn) : { port: undefined, started: await launchOn(0) };
  const { port } = first;
  const address = port === undefined ? { path: socketPath } : { host: '127.0.0.1', port };
  const clients: Redis[] = [];
  let child = first.started;
  let stopped = false;

  return {
    socketPath,
    url: port === undefined ? `unix://${socketPath}` : `redis://127.0.0.1:${port}`,
    options: address,
    port,
    dir,
    get pid() {
      return pidOf(child);
    },
    kill: (signal) => kill(child, signal),
    async restart() {
      await kill(child, 'SIGKILL');
      child = await launchOn(port ?? 0);
    },
    async client() {
      const client = new Redis({ ...address, lazyConnect: true, maxRetriesPerRequest: null });
      clients.push(client);
      // Tests that end the server would otherwise print every refused connection.
      client.on('error', () => {});
      await client.connect();
      return client;
    },
    async stop() {
      if (stopped) return;
      stopped = true;
      for (const client of clients) client.disconnect();
      await kill(child, 'SIGKILL');
      await rm(dir, { recursive: true, force: true });
    },
  };
}

interface Placement {
  readonly dir: string;
  readonly socketPath: string;
  readonly port: number;
  readonly appendonly: boolean;
}

function serverArgs({ dir, socketPath, port, appendonly }: Placement): string[] {
  const settings: Record<string, string> = {
    port: String(port),
    bind: '127.0.0.1',
    unixsocket: socketPath,
    unixsocketperm: '700',
    dir,
    save: '',
    appendonly: appendonly ? 'yes' : 'no',
    appendfsync: 'always',
    'maxmemory-policy': 'noeviction',
    'enable-debug-command': 'local',
    daemonize: 'no',
  };
  return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
}

async function whenReady(child: ChildProcess, socketPath: string): Promise<void> {
  let output = '';
  const closed = once(child, 'close').catch(() => undefined);
  child.stdout?.on('data', (chunk) => {
    if (output.length < 10_000) output += String(chunk);
  });
  child.stderr?.on('data', (chunk) => {
    if (output.length < 10_000) output += String(chunk);
  });
  const deadlineMs = Date.now() + START_TIMEOUT_MS;
  while (!(await answersPing({ socketPath }))) {
    const ended = child.exitCode !== null || child.signalCode !== null;
    if (ended || Date.now() > deadlineMs) {
      child.kill('SIGKILL');
      // What it said last may still be on its way.
      await closed;
      throw new Error(`redis-server did not start:\n${output}`);
    }
    await sleep(5);
  }
}

const ENDING: ReadonlySet<NodeJS.Signals> = new Set(['SIGKILL', 'SIGTERM', 'SIGINT']);

async function kill(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  process.kill(pidOf(child), signal);
  if (ENDING.has(signal)) await exited;
}

function pidOf(child: ChildProcess): number {
  if (child.pid === undefined) throw new Error('the server never started');
  return child.pid;
}

/** From 20000–29999: a cluster bus needs the port plus 10000, and the system gives its own ports from 32768. */
async function freePort(): Promise<number> {
  for (let tries = 0; tries < 50; tries += 1) {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    if (await isFree(port)) return port;
  }
  throw new Error('no free port between 20000 and 29999 in 50 tries');
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
