/**
 * What the module runs in the process of the application, in the order of its life:
 *
 *     bootstrap    daemon, if it was asked for ──▶ worker, if there are handlers
 *     destroy      worker: it takes no more jobs, and handlers that run finish or hand back       servers still answer
 *     shutdown     client ──▶ daemon                                                              nobody asks any more
 */
import type { Client, ClientOptions } from '../client/client.ts';
import type { Daemon, DaemonInput } from '../daemon/daemon.ts';
import { createWorker, type Worker, type WorkerQueuesOptions } from '../daemon/embedded-worker.ts';
import type { Untyped } from '../job/queue.ts';
import { createAbort } from '../kernel/abort.ts';
import { systemClock } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import type { RedisInput } from '../redis/connection/address.ts';
import type { QueueWork } from '../worker/options.ts';
import type { Middleware } from '../worker/run/handlers.ts';

/** What all parts have, and the module says once. */
type Shared = 'redis' | 'namespace' | 'log';

/** Options of `DuestreamModule`. */
export interface DuestreamOptions {
  /** A URL, an object with its `url` and options beside it, or options of ioredis: see `RedisInput`. */
  readonly redis: RedisInput;
  /** Default `duestream`. */
  readonly namespace?: string | undefined;
  /** Options of `createClient`. */
  readonly client?: Omit<ClientOptions, Shared> | undefined;
  /**
   * Options of `createWorker`, for the methods that `HandlerOf` marks. `false`: this process handles no jobs, such as a web server whose
   * workers are other processes of the same application.
   */
  readonly worker?: Omit<WorkerQueuesOptions<readonly unknown[]>, Shared | 'queues'> | false | undefined;
  /** A daemon in this process, such as `{ roles: ['mover'] }`. Left out: none; others run one. */
  readonly daemon?: Omit<DaemonInput, Shared> | undefined;
  /** Around what is scheduled, and around handlers; the first one is the outermost. */
  readonly use?: readonly Middleware[] | undefined;
  /** A logger of pino fits. Default: silent. */
  readonly log?: Log | undefined;
}

/** How long a look at the health waits for Redis. */
const ANSWER_MS = 1000;

export class Parts {
  readonly #client: Client;
  readonly #options: DuestreamOptions;
  #daemon: Daemon | undefined;
  #worker: Worker | undefined;

  constructor(options: DuestreamOptions, client: Client) {
    this.#options = options;
    this.#client = client;
  }

  /** @throws DuestreamError as `start` of a daemon and of a worker; nothing is left behind */
  async start(works: readonly QueueWork<Untyped>[]): Promise<void> {
    const { redis, namespace, log, daemon, worker = {}, use = [] } = this.#options;
    for (const middleware of use) if (middleware.schedule) this.#client.use(middleware);
    try {
      if (daemon) {
        // It loads the HTTP API and the checks of the configuration, which nobody else needs.
        const { createDaemon } = await import('../daemon/daemon.ts');
        this.#daemon = createDaemon({ ...daemon, redis, ...(namespace !== undefined && { namespace }) }, { log });
        await this.#daemon.start();
      }
      if (worker === false || works.length === 0) return;
      this.#worker = createWorker({ ...worker, redis, namespace, log, queues: works });
      use.forEach(this.#worker.use);
      await this.#worker.start();
    } catch (error) {
      await this.drain();
      await this.close();
      throw error;
    }
  }

  /** The worker takes no more jobs; resolves when those that run have ended, or were handed back. */
  async drain(): Promise<void> {
    await this.#worker?.stop();
  }

  async close(): Promise<void> {
    await this.#client.close();
    await this.#daemon?.stop();
  }

  /** What of it can do its work now. */
  async health(): Promise<Readonly<Record<'redis' | 'worker' | 'daemon', boolean | undefined>>> {
    return { redis: await this.#answers(), worker: this.#worker?.isReady(), daemon: await this.#daemon?.isReady() };
  }

  async #answers(): Promise<boolean> {
    const over = createAbort();
    const answered = this.#client.ready().then(
      () => true,
      () => false,
    );
    const late = systemClock.sleep(ANSWER_MS, over.signal).then(() => false);
    try {
      return await Promise.race([answered, late]);
    } finally {
      over.abort();
    }
  }
}
