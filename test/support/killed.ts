/**
 * Two workers and a leader as processes that are killed one after the other while a client goes on, with a Redis of their own
 * and a file that handlers write to. Leases are short, so that what a dead process had goes on within a second.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach } from 'vitest';
import { type Client, createClient } from '../../src/client/client.ts';
import type { Redis } from '../../src/redis/connection/connect.ts';
import { type Running, useProcesses } from './processes.ts';
import { startRedis, type TestRedis } from './redis.ts';
import { root } from './repository.ts';

interface Kills {
  readonly everyMs: number;
  /** @param nth so many kills of a worker came before */
  readonly isOver: (nth: number) => boolean;
  /** Whether the leader is killed as well. */
  readonly ofLeader: (nth: number) => boolean;
}

/** Registers the hooks of a test file. @param handlers a module in `test/fixtures`; its handlers find the file in `EFFECTS_FILE` */
export function useKilled(handlers: string) {
  const processes = useProcesses();
  let server: TestRedis;
  let client: Client;
  let redis: Redis;
  let file = '';
  const env = () => ({
    DUESTREAM_REDIS_URL: server.url,
    DUESTREAM_MOVER__LEASE: '1000',
    EFFECTS_FILE: file,
    DUESTREAM_WORKER__JOB_LEASE: '500',
    DUESTREAM_WORKER__BEAT_TTL: '500',
    DUESTREAM_WORKER__GRACE: '200',
  });
  const startWorker = (nth: number) =>
    processes.launch({
      name: `worker ${nth}`,
      env: env(),
      args: ['worker', join(root, 'test/fixtures', handlers)],
    });
  const startMover = (nth: number) =>
    processes.launch({ name: `mover ${nth}`, env: env(), args: ['start', '--roles', 'mover', '--http-port', '0'] });

  beforeEach(async () => {
    file = join(processes.folder, 'effects');
    writeFileSync(file, '');
    server = await startRedis({ port: true });
    client = createClient({ redis: server.url });
    redis = await server.client();
  });
  afterEach(async () => {
    await client.close();
    await server.stop();
  });

  return {
    client: () => client,
    redis: () => redis,
    /** What handlers have written. */
    lines: () => readFileSync(file, 'utf8').split('\n').slice(0, -1),
    /** Starts them. Each worker that ends is followed by another until that is over. */
    async replace(over: Promise<void>): Promise<void> {
      startMover(0);
      let [nth, isOver] = [0, false];
      const ended = over.finally(() => {
        isOver = true;
      });
      const keepOne = async (): Promise<void> => {
        while (!isOver) {
          nth += 1;
          await Promise.race([startWorker(nth).exited, ended]);
        }
      };
      await Promise.all([keepOne(), keepOne(), ended]);
    },
    /** Starts them. Resolves when the kills are over; those who live then go on. */
    async kill({ everyMs, isOver, ofLeader }: Kills): Promise<void> {
      let workers: readonly Running[] = [startWorker(0), startWorker(1)];
      let mover = startMover(0);
      for (let nth = 0; !isOver(nth); nth += 1) {
        await pause(everyMs);
        const [oldest, ...rest] = workers;
        await oldest?.end('SIGKILL');
        workers = [...rest, startWorker(nth + 2)];
        if (!ofLeader(nth)) continue;
        await mover.end('SIGKILL');
        mover = startMover(nth + 1);
      }
    },
  };
}

/** Numbers from 0 to below 1, the same for the same seed. */
export function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}
