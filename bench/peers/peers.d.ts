/** As much of the peers as the bench uses, so that the checks of the repository need none of them installed. */
declare module 'bullmq' {
  export interface JobOptions {
    readonly jobId?: string;
    readonly delay?: number;
    readonly removeOnComplete?: boolean;
    readonly removeOnFail?: boolean;
    readonly attempts?: number;
    readonly backoff?: { readonly type: string; readonly delay: number };
  }
  export class Queue {
    constructor(name: string, options: object);
    on(event: 'error', listener: (error: Error) => void): this;
    waitUntilReady(): Promise<unknown>;
    add(name: string, data: unknown, options: JobOptions): Promise<unknown>;
    addBulk(jobs: readonly { name: string; data: unknown; opts: JobOptions }[]): Promise<unknown>;
    close(): Promise<void>;
  }
  export class Worker<Data = { at: number }> {
    constructor(name: string, handler: (job: { data: Data }) => Promise<unknown>, options: object);
    on(event: 'error', listener: (error: Error) => void): this;
    waitUntilReady(): Promise<unknown>;
    close(force: boolean): Promise<void>;
  }
}

declare module 'bee-queue' {
  interface Job {
    setId(id: string): Job;
    delayUntil(dueMs: number): Job;
    save(): Promise<Job>;
  }
  class BeeQueue {
    constructor(name: string, settings: object);
    ready(): Promise<unknown>;
    createJob(data: unknown): Job;
    saveAll(jobs: readonly Job[]): Promise<Map<Job, Error>>;
    process(concurrency: number, handler: (job: { data: { at: number } }) => Promise<unknown>): void;
    close(timeoutMs?: number): Promise<void>;
  }

  export = BeeQueue;
}

declare module 'bunqueue/client' {
  interface JobOptions {
    readonly jobId?: string;
    readonly delay?: number;
    readonly removeOnComplete?: boolean;
    readonly removeOnFail?: boolean;
  }
  export class Queue {
    constructor(name: string, options: object);
    add(name: string, data: unknown, options: JobOptions): Promise<unknown>;
    addBulk(jobs: readonly { name: string; data: unknown; opts: JobOptions }[]): Promise<unknown>;
    close(): void;
  }
  export class Worker {
    constructor(name: string, handler: (job: { data: { at: number } }) => Promise<unknown>, options: object);
    on(event: 'error', listener: (error: Error) => void): this;
    close(force: boolean): Promise<void>;
  }
}

declare module 'graphile-worker' {
  interface Spec {
    readonly jobKey?: string;
    readonly runAt?: Date;
  }
  interface Utils {
    migrate(): Promise<void>;
    addJob(identifier: string, payload: object, spec: Spec): Promise<unknown>;
    addJobs(jobs: readonly (Spec & { readonly identifier: string; readonly payload: object })[]): Promise<unknown>;
    release(): Promise<void> | void;
  }
  export function makeWorkerUtils(options: { readonly preset: object }): Promise<Utils>;
  export function run(options: object): Promise<{ stop(): Promise<void> }>;
}

declare module 'pg-boss' {
  interface SendOptions {
    readonly id?: string;
    readonly startAfter?: Date;
    readonly retryLimit?: number;
    readonly retryDelay?: number;
    readonly heartbeatSeconds?: number;
    readonly expireInSeconds?: number;
  }
  export class PgBoss {
    constructor(options: object);
    on(event: 'error', listener: (error: Error) => void): this;
    start(): Promise<unknown>;
    stop(options: { readonly graceful: boolean }): Promise<void>;
    createQueue(name: string): Promise<void>;
    send(name: string, data: object, options: SendOptions): Promise<string | null>;
    work<Data>(
      name: string,
      options: object,
      handler: (jobs: readonly { readonly data: Data }[]) => Promise<void>,
    ): Promise<string>;
  }
}
