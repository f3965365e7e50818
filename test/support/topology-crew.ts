/**
 * Scenes with several servers: a cluster, or a primary behind a sentinel, for the tests of a `describe`, and a client, a leader and
 * workers that go on while servers come and go.
 */
import { afterAll, afterEach, beforeAll } from 'vitest';
import { type Client, type ClientOptions, createClient } from '../../src/client/client.ts';
import { createDaemon } from '../../src/daemon/daemon.ts';
import { createWorker } from '../../src/daemon/embedded-worker.ts';
import type { Queue } from '../../src/job/queue.ts';
import type { QueueHandlers } from '../../src/worker/run/handlers.ts';
import { type ClusterOfTests, type SentinelOfTests, startCluster, startSentinel } from './topology-lite.ts';

const START_MS = 120_000;

/** For `expect.poll` and for a test, where a replica may take long to take over. */
export const patience = { timeout: 100_000, interval: 50 };
export const long = { timeout: 180_000 };

export const useCluster = (): (() => ClusterOfTests) => usePlace(startCluster);
export const useSentinel = (): (() => SentinelOfTests) => usePlace(startSentinel);

function usePlace<Place extends { readonly stop: () => Promise<void> }>(start: () => Promise<Place>): () => Place {
  let place: Place | undefined;
  beforeAll(async () => {
    place = await start();
  }, START_MS);
  afterAll(() => place?.stop());
  return () => {
    if (place === undefined) throw new Error('the servers are there inside tests only');
    return place;
  };
}

interface Crew<Data> {
  readonly url: string;
  readonly queue: Queue<Data>;
  readonly handler: QueueHandlers<NoInfer<Data>>;
  readonly workers?: number;
  readonly slots?: number;
  readonly client?: Omit<ClientOptions, 'redis'>;
}

/** Registers the hooks of a file: all crews end after each test, the last first. */
export function useCrews() {
  const ends: (() => unknown)[] = [];
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });
  const clientOf = (url: string, options: Omit<ClientOptions, 'redis'> = {}): Client => {
    const client = createClient({ redis: url, retryBudget: '60s', ...options });
    ends.push(client.close);
    return client;
  };
  return {
    clientOf,
    /** A client, whose leader and workers have started. */
    async gather<Data>({ url, queue, handler, workers = 1, slots = 30, client }: Crew<Data>): Promise<Client> {
      const made = clientOf(url, client);
      const daemon = createDaemon({ redis: url, roles: ['mover'] });
      ends.push(daemon.stop);
      await daemon.start();
      for (let nth = 0; nth < workers; nth += 1) {
        const worker = createWorker(queue, handler, { redis: url, concurrency: slots });
        ends.push(worker.stop);
        await worker.start();
      }
      return made;
    },
  };
}
