/** The module: its options once, then a client everywhere, the marked methods as handlers, and an end in order. */
import {
  type DynamicModule,
  type FactoryProvider,
  Inject,
  Module,
  type ModuleMetadata,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleDestroy,
} from '@nestjs/common';
import { DiscoveryModule, DiscoveryService } from '@nestjs/core';
import { type Client, createClient } from '../client/client.ts';
import { CLIENT } from './decorators.ts';
import { worksIn } from './found.ts';
import { DuestreamHealth } from './health.ts';
import { type DuestreamOptions, Parts } from './parts.ts';

/** Options of `DuestreamModule` that other providers know. */
export interface DuestreamAsyncOptions extends Pick<ModuleMetadata, 'imports'>, Pick<FactoryProvider, 'inject'> {
  /** Is given what `inject` names. */
  readonly useFactory: FactoryProvider<DuestreamOptions>['useFactory'];
}

const OPTIONS = Symbol.for('duestream.options');

/**
 * duestream in a Nest application: `InjectClient` gives the client, `HandlerOf` marks methods that handle jobs, and `DuestreamHealth` says
 * whether all is well. It is global: import it once.
 *
 * It starts with the application (`onApplicationBootstrap`), stops the worker first (`onModuleDestroy`), and closes the rest last
 * (`onApplicationShutdown`). Signals are the matter of the application: `app.enableShutdownHooks()`.
 *
 * @example
 * const jobs = DuestreamModule.forRoot({ redis: 'redis://127.0.0.1:6379', daemon: { roles: ['mover'] } });
 * // In the list `imports` of a module of yours.
 */
export class DuestreamModule implements OnApplicationBootstrap, OnModuleDestroy, OnApplicationShutdown {
  readonly #parts: Parts;
  readonly #discovery: DiscoveryService;

  /** Nest makes it. */
  constructor(parts: Parts, discovery: DiscoveryService) {
    this.#parts = parts;
    this.#discovery = discovery;
  }

  /**
   * @throws DuestreamError `bad-config` for an option that there is not, or one outside its range, when Nest makes the client or starts
   * the application
   */
  static forRoot(options: DuestreamOptions): DynamicModule {
    return moduleOf({ provide: OPTIONS, useFactory: () => options });
  }

  /** The same with options of a factory, such as one that asks a provider of the configuration. */
  static forRootAsync({ imports = [], inject = [], useFactory }: DuestreamAsyncOptions): DynamicModule {
    return moduleOf({ provide: OPTIONS, useFactory, inject }, imports);
  }

  /** Nest calls it when every provider is there. */
  async onApplicationBootstrap(): Promise<void> {
    await this.#parts.start(worksIn(this.#discovery));
  }

  /** Nest calls it first when the application ends. */
  async onModuleDestroy(): Promise<void> {
    await this.#parts.drain();
  }

  /** Nest calls it when its servers are closed. */
  async onApplicationShutdown(): Promise<void> {
    await this.#parts.close();
  }
}

// As the compiler writes decorators: this source is JavaScript when its types are taken away.
Inject(Parts)(DuestreamModule, undefined, 0);
Inject(DiscoveryService)(DuestreamModule, undefined, 1);
Module({})(DuestreamModule);

function moduleOf(options: FactoryProvider, imports: ModuleMetadata['imports'] = []): DynamicModule {
  const client: FactoryProvider<Client> = {
    provide: CLIENT,
    inject: [OPTIONS],
    useFactory: ({ redis, namespace, client = {} }: DuestreamOptions) => createClient({ ...client, redis, namespace }),
  };
  const parts: FactoryProvider<Parts> = {
    provide: Parts,
    inject: [OPTIONS, CLIENT],
    useFactory: (given: DuestreamOptions, made: Client) => new Parts(given, made),
  };
  const health: FactoryProvider<DuestreamHealth> = {
    provide: DuestreamHealth,
    inject: [Parts],
    useFactory: (given: Parts) => new DuestreamHealth(given),
  };
  return {
    module: DuestreamModule,
    global: true,
    imports: [DiscoveryModule, ...imports],
    providers: [options, client, parts, health],
    exports: [CLIENT, DuestreamHealth],
  };
}
