/** Queues as BullMQ's own packages make them, of the versions that an import reads. Each is closed when its test file has ended. */
import * as bullmq5 from 'bullmq5';
import * as bullmq6 from 'bullmq6';
import { afterAll } from 'vitest';
import type { TestRedis } from './redis.ts';

/** What tests use of a job of BullMQ. */
export interface BullJob {
  readonly id?: string | undefined;
  readonly timestamp: number;
}

interface BullAdd {
  readonly name: string;
  readonly data: unknown;
  readonly opts?: object;
}

/** What tests use of a queue of BullMQ, in both versions. */
export interface BullQueue {
  add(name: string, data: unknown, opts?: object): Promise<BullJob>;
  addBulk(jobs: BullAdd[]): Promise<BullJob[]>;
  upsertJobScheduler(id: string, repeat: object, template?: object): Promise<unknown>;
  getJobSchedulers(): Promise<readonly { readonly key: string; readonly next?: number | undefined }[]>;
  getJobCounts(): Promise<Readonly<Record<string, number>>>;
  pause(): Promise<void>;
}

interface Closing {
  close(): Promise<void>;
}

interface BullWorker extends Closing {
  on(event: 'failed', listener: () => void): unknown;
}

interface BullFlows extends Closing {
  add(tree: FlowNode): Promise<unknown>;
}

interface FlowNode {
  readonly name: string;
  readonly queueName: string;
  readonly data?: unknown;
  readonly children?: FlowNode[];
}

interface Settings {
  readonly connection: { readonly host: string; readonly port: number; readonly maxRetriesPerRequest: null };
  readonly prefix: string;
}

/** What a version makes. */
interface Makes {
  queue(name: string, settings: Settings): BullQueue & Closing;
  worker(name: string, process: () => Promise<never>, settings: Settings): BullWorker;
  flows(settings: Settings): BullFlows;
}

const versions = {
  5: {
    queue: (name, settings) => new bullmq5.Queue(name, settings),
    worker: (name, process, settings) => new bullmq5.Worker(name, process, settings),
    flows: (settings) => new bullmq5.FlowProducer(settings),
  },
  6: {
    queue: (name, settings) => new bullmq6.Queue(name, settings),
    worker: (name, process, settings) => new bullmq6.Worker(name, process, settings),
    flows: (settings) => new bullmq6.FlowProducer(settings),
  },
} as const satisfies Readonly<Record<number, Makes>>;

export type BullVersion = keyof typeof versions;
export const bullVersions: readonly BullVersion[] = [5, 6];

/** Registers the hook of one test file. @param server asked when it runs */
export function useBullmq(server: () => TestRedis) {
  const open = new Set<Closing>();
  afterAll(async () => {
    for (const one of open) await one.close();
  });
  const kept = <T extends Closing>(one: T): T => {
    open.add(one);
    return one;
  };
  const settings = (prefix = 'bull'): Settings => ({
    connection: { host: '127.0.0.1', port: server().port ?? 0, maxRetriesPerRequest: null },
    prefix,
  });

  return {
    queue(version: BullVersion, name: string, { prefix = 'bull' } = {}): BullQueue {
      return kept(versions[version].queue(name, settings(prefix)));
    },
    async flow(version: BullVersion, tree: FlowNode): Promise<void> {
      await kept(versions[version].flows(settings())).add(tree);
    },
    /** Runs jobs, each of which fails, until there were so many failures. */
    async fail(version: BullVersion, name: string, times = 1): Promise<void> {
      const fails = () => Promise.reject(new Error('as it should'));
      const worker = versions[version].worker(name, fails, settings());
      let failures = 0;
      await new Promise<void>((resolve) => {
        worker.on('failed', () => {
          failures += 1;
          if (failures === times) resolve();
        });
      });
      await worker.close();
    },
  };
}
