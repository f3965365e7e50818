/**
 * `duestream/nestjs` in a real Nest application on a private Redis. The sources of tests have no decorators, so they are called as functions,
 * which is what a compiler makes of them.
 */
import 'reflect-metadata';
import { EventEmitter, once } from 'node:events';
import {
  type INestApplicationContext,
  Injectable,
  Module,
  type ModuleMetadata,
  Scope,
  type Type,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Client } from '../../../src/client/client.ts';
import { createDaemon, type Daemon } from '../../../src/daemon/daemon.ts';
import type { Job } from '../../../src/job/job.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import {
  AbandonedOf,
  CLIENT,
  DuestreamHealth,
  DuestreamModule,
  type DuestreamOptions,
  HandlerOf,
  type HandlerOptions,
  InjectClient,
} from '../../../src/nestjs/index.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const mails = defineQueue<{ to: string }>('mails');
const apps: INestApplicationContext[] = [];
let server: TestRedis;
let daemon: Daemon;

beforeAll(async () => {
  server = await startRedis();
  daemon = createDaemon({ redis: { url: server.url }, roles: ['mover'] });
  await daemon.start();
});
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});
afterAll(async () => {
  await daemon?.stop();
  await server?.stop();
});

type Parts = Pick<ModuleMetadata, 'imports' | 'providers' | 'controllers'>;

/** An application of one module. */
async function started({ imports = [], ...parts }: Parts, options: Partial<DuestreamOptions> = {}) {
  class AppModule {}
  const jobs = DuestreamModule.forRoot({ redis: server.url, ...options });
  Module({ imports: [jobs, ...imports], ...parts })(AppModule);
  const app = await NestFactory.createApplicationContext(AppModule, { logger: false, abortOnError: false });
  apps.push(app);
  return { app, client: app.get<Client>(CLIENT) };
}

/** As `@HandlerOf(queue, options)` above a method. */
function handles<Of>(
  type: Type<Of>,
  key: keyof Of & string,
  queue: typeof mails | string,
  options?: HandlerOptions,
): void {
  const descriptor = Object.getOwnPropertyDescriptor(type.prototype, key);
  HandlerOf(queue, options)(type.prototype, key, descriptor ?? {});
}

/** A provider that keeps what it was given. */
function mailsProvider() {
  class Mails {
    readonly sent: string[] = [];
    async send({ data, name }: Job<{ to: string }>): Promise<void> {
      this.sent.push(`${name}:${data.to}`);
    }
    async welcome({ data }: Job<{ to: string }>): Promise<void> {
      this.sent.push(`welcomed:${data.to}`);
    }
  }
  Injectable()(Mails);
  return Mails;
}

describe('handlers', () => {
  test('are methods of a provider, which they are called on', async () => {
    const Mails = mailsProvider();
    handles(Mails, 'send', mails);
    const { app, client } = await started({ providers: [Mails] });
    await client.schedule(mails, { to: 'ada' });
    await expect.poll(() => app.get(Mails).sent).toEqual(['default:ada']);
  });

  test('are chosen by the name of the job; one without a name takes the rest', async () => {
    const Mails = mailsProvider();
    handles(Mails, 'send', 'named');
    handles(Mails, 'welcome', 'named', { name: 'welcome' });
    const { app, client } = await started({ providers: [Mails] });
    await client.schedule('named', { to: 'a' }, { name: 'welcome' });
    await client.schedule('named', { to: 'b' });
    await expect.poll(() => [...app.get(Mails).sent].sort()).toEqual(['default:b', 'welcomed:a']);
  });

  test('of several queues may be one method, also of a controller', async () => {
    const Mails = mailsProvider();
    handles(Mails, 'send', 'one');
    handles(Mails, 'send', 'two');
    const { app, client } = await started({ controllers: [Mails] });
    await client.schedule('one', { to: 'a' });
    await client.schedule('two', { to: 'b' });
    await expect.poll(() => [...app.get(Mails).sent].sort()).toEqual(['default:a', 'default:b']);
  });

  test('and what they schedule go through the middleware of the module', async () => {
    const Mails = mailsProvider();
    handles(Mails, 'send', 'watched');
    const seen: string[] = [];
    const use: DuestreamOptions['use'] = [
      {
        schedule: (call, next) => {
          seen.push('scheduled');
          return next(call);
        },
        async handle(_job, _context, next) {
          seen.push('handled');
          return next();
        },
      },
    ];
    const { client } = await started({ providers: [Mails] }, { use });
    await client.schedule('watched', { to: 'a' });
    await expect.poll(() => seen).toEqual(['scheduled', 'handled']);
  });

  test('are passed over where the process has no worker', async () => {
    const Mails = mailsProvider();
    handles(Mails, 'send', 'elsewhere');
    const { app, client } = await started({ providers: [Mails] }, { worker: false });
    await client.schedule('elsewhere', { to: 'a' }, { id: 'waits' });
    expect(await app.get(DuestreamHealth).isHealthy()).toEqual({ duestream: { status: 'up', redis: true } });
    expect((await client.queues.get('elsewhere')).workers).toBe(0);
  });

  test.each<readonly [why: string, mark: (type: ReturnType<typeof mailsProvider>) => void, says: string]>([
    [
      'two methods for the same jobs',
      (type) => {
        handles(type, 'send', 'q');
        handles(type, 'welcome', 'q');
      },
      'jobs of queue q are given to Mails.send and to Mails.welcome',
    ],
    [
      'two words about the concurrency of a queue',
      (type) => {
        handles(type, 'send', 'q', { concurrency: 2 });
        handles(type, 'welcome', 'q', { name: 'w', concurrency: 3 });
      },
      'the concurrency of queue q are given to Mails.send and to Mails.welcome',
    ],
    [
      'work that is taken back of a queue that nobody handles',
      ({ prototype }) => {
        const descriptor = { value: async () => undefined };
        AbandonedOf('q')(prototype, 'send', descriptor);
        Object.defineProperty(prototype, 'send', descriptor);
      },
      'no method handles its jobs',
    ],
  ])('are refused at the start: %s', async (_, mark, says) => {
    const Mails = mailsProvider();
    mark(Mails);
    await expect(started({ providers: [Mails] })).rejects.toThrow(says);
  });

  test('are refused in a provider of which there is one per request', async () => {
    const Mails = mailsProvider();
    Injectable({ scope: Scope.REQUEST })(Mails);
    handles(Mails, 'send', 'q');
    await expect(started({ providers: [Mails] })).rejects.toThrow(
      'Mails.send handles jobs, and its provider has the scope of a request',
    );
  });
});

describe('the client', () => {
  test('is injected where it is marked', async () => {
    class Orders {
      readonly jobs: Client;
      constructor(jobs: Client) {
        this.jobs = jobs;
      }
    }
    Injectable()(Orders);
    InjectClient()(Orders, undefined, 0);
    const { app, client } = await started({ providers: [Orders] });
    expect(app.get(Orders).jobs).toBe(client);
  });

  test('has the options that another provider knows', async () => {
    class Settings {
      readonly namespace = 'of-settings';
    }
    class SettingsModule {}
    Module({ providers: [Settings], exports: [Settings] })(SettingsModule);
    class AppModule {}
    const jobs = DuestreamModule.forRootAsync({
      imports: [SettingsModule],
      inject: [Settings],
      useFactory: ({ namespace }: Settings) => ({ redis: server.url, namespace }),
    });
    Module({ imports: [jobs] })(AppModule);
    const app = await NestFactory.createApplicationContext(AppModule, { logger: false, abortOnError: false });
    apps.push(app);
    await app.get<Client>(CLIENT).schedule('q', {}, { id: 'there', delay: '1h' });
    expect(await (await server.client()).exists('of-settings:v1:{q:0}:jobs')).toBe(1);
  });

  test('refuses a wrong option when the application is made', async () => {
    await expect(started({}, { client: { horizon: '0s' } })).rejects.toThrow('horizon');
  });
});

describe('the end of the application', () => {
  test('waits for the handler that runs, before anything that it needs is closed', async () => {
    const told: string[] = [];
    const held = new EventEmitter();
    const released = once(held, 'released');
    class Slow {
      async run({ id }: Job): Promise<void> {
        told.push(`began ${id}`);
        await released;
        told.push(`ended ${id}`);
      }
      onApplicationShutdown(): void {
        told.push('database closed');
      }
    }
    Injectable()(Slow);
    HandlerOf('slow')(Slow.prototype, 'run', Object.getOwnPropertyDescriptor(Slow.prototype, 'run') ?? {});
    const { app, client } = await started({ providers: [Slow] });
    const health = app.get(DuestreamHealth);
    await client.schedule('slow', {}, { id: 'a' });
    await expect.poll(() => told).toEqual(['began a']);
    const closing = app.close();
    await expect
      .poll(async () => (await health.isHealthy('jobs')).jobs)
      .toEqual({ status: 'down', redis: true, worker: false });
    // Requests of a server that is not closed yet schedule.
    await client.schedule('slow', {}, { id: 'b', delay: '1h' });
    held.emit('released');
    await closing;
    expect(told).toEqual(['began a', 'ended a', 'database closed']);
    apps.splice(0);
  });

  test('leaves no connection behind, with a daemon in the process too', async () => {
    const Mails = mailsProvider();
    handles(Mails, 'send', mails);
    const watching = await server.client();
    const names = async () =>
      [...String(await watching.client('LIST')).matchAll(/ name=(\S+)/g)].map(([, name]) => name).sort();
    const before = await names();
    const { app } = await started({ providers: [Mails] }, { daemon: { roles: ['mover'] } });
    expect((await app.get(DuestreamHealth).isHealthy()).duestream).toEqual({
      ...{ status: 'up', redis: true, worker: true, daemon: true },
    });
    expect((await names()).length).toBeGreaterThan(before.length);
    await app.close();
    apps.splice(0);
    await expect.poll(names).toEqual(before);
  });
});

test('health is down while Redis is away', async () => {
  const own = await startRedis();
  const { app } = await started({}, { redis: own.url, client: { retryBudget: 0 } });
  const health = app.get(DuestreamHealth);
  expect((await health.isHealthy()).duestream.status).toBe('up');
  await own.stop();
  await expect.poll(async () => (await health.isHealthy()).duestream).toEqual({ status: 'down', redis: false });
});
