/**
 * A queue as an application has it: a private server, and a client, leaders and workers of this process, all through the library.
 * What a test has begun ends after it, the last first.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { type Client, createClient } from '../../src/client/client.ts';
import { createDaemon, type DaemonInput } from '../../src/daemon/daemon.ts';
import type { Queue } from '../../src/job/queue.ts';
import { close, openCommands, type Redis, whenReady } from '../../src/redis/connection/connect.ts';
import type { QueueHandlers } from '../../src/worker/run/handlers.ts';
import { createWorker } from '../../src/worker/worker.ts';
import { publishedCopy } from '../chaos/faults/copies.mjs';
import { startRedis, type TestRedis } from './redis.ts';
import { root } from './repository.ts';

/** Registers the hooks of a test file. Each test has an empty server and a client of its own. */
export function useLibrary() {
  let opened: { readonly server: TestRedis; readonly redis: Redis } | undefined;
  let client: Client | undefined;
  let ends: (() => unknown)[] = [];
  const the = () => {
    if (opened === undefined || client === undefined) throw new Error('the library is there inside tests only');
    return { ...opened, client };
  };
  beforeAll(async () => {
    const server = await startRedis({ port: true });
    const redis = openCommands({ redis: { path: server.socketPath }, name: 'test' });
    opened = { server, redis };
    await whenReady(redis);
  });
  beforeEach(async () => {
    await opened?.redis.flushall();
    client = createClient({ redis: opened?.server.url ?? '' });
    ends = [client.close];
  });
  afterEach(async () => {
    for (const end of ends.toReversed()) await end();
  });
  afterAll(async () => {
    if (opened) close(opened.redis);
    await opened?.server.stop();
  });

  const library = {
    get server() {
      return the().server;
    },
    get redis() {
      return the().redis;
    },
    get client() {
      return the().client;
    },
    onEnd: (end: () => unknown) => void ends.push(end),
    async lead(more: Pick<DaemonInput, 'sharedLimits' | 'queues'> = {}): Promise<void> {
      const daemon = createDaemon({ redis: { url: the().server.url }, roles: ['mover'], http: { port: 0 }, ...more });
      ends.push(daemon.stop);
      await daemon.start();
    },
    /** Two workers with five slots each, unless somebody asks for others. */
    async work<Data>(
      queue: Queue<Data>,
      handler: QueueHandlers<NoInfer<Data>>,
      { workers = 2, slots = 5 } = {},
    ): Promise<void> {
      for (let nth = 0; nth < workers; nth += 1) {
        const worker = createWorker(queue, handler, { redis: the().server.url, concurrency: slots });
        ends.push(worker.stop);
        await worker.start();
      }
    },
  };
  return library;
}

/**
 * Processes of the version that was published last, beside what is tested: `test/fixtures/order-actor.mjs`. For a `describe` of a
 * file with `useLibrary`.
 */
export function useOlder(library: ReturnType<typeof useLibrary>) {
  let copy = '';
  beforeAll(() => {
    copy = publishedCopy(root) ?? '';
    copyFileSync(join(root, 'test/fixtures/order-actor.mjs'), join(copy, 'order-actor.mjs'));
  });

  /** @returns the ids of what it runs, as it runs them */
  return async function older(queue: string, role: 'leader' | 'worker'): Promise<readonly string[]> {
    const child: ChildProcess = fork(join(copy, 'order-actor.mjs'), [library.server.url, queue, role]);
    const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    library.onEnd(() => {
      child.kill('SIGKILL');
      return gone;
    });
    const ran: string[] = [];
    await new Promise<void>((resolve, reject) => {
      child.once('exit', () => reject(new Error('the older process ended')));
      child.on('message', (told: { readonly started?: string; readonly ran?: string }) => {
        if (told.started !== undefined) resolve();
        if (told.ran !== undefined) ran.push(told.ran);
      });
    });
    return ran;
  };
}
