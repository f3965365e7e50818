/**
 * Daemons that take workers over HTTP on a private Redis, and a worker that makes each call by hand, so that a test says which
 * answer is lost, which call is made again, and at which daemon.
 */
import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import { createDaemonOf, type Daemon } from '../../src/daemon/daemon.ts';
import { type DaemonInput, readDaemonInput } from '../../src/daemon/input.ts';
import { createEmitter, type EventName, type Events, forward } from '../../src/job/events.ts';
import { close, openCommands, type Redis, whenReady } from '../../src/redis/connection/connect.ts';
import { type PartitionRef, partitionRef } from '../../src/redis/keys.ts';
import type { ClaimedJob } from '../../src/remote/claimed-job.ts';
import { type Answered, ask } from './api.ts';
import { brokenInvariants, picture } from './keyspace.ts';
import { startRedis, type TestRedis } from './redis.ts';

/** So short that what is lost is found within seconds. */
export const LEASE_MS = 900;
const QUICK = { jobLease: LEASE_MS, beatTtl: 600, grace: 150 } as const;

export interface Served {
  readonly url: string;
  readonly daemon: Daemon;
}

/** A worker over HTTP: the calls, and nothing that repeats or beats by itself. */
export class RemoteWorker {
  readonly name: string;
  readonly #queue: () => string;
  seq = 0;

  constructor(queue: () => string, label = 'test') {
    this.name = `h-${label}-${randomBytes(16).toString('hex')}`;
    this.#queue = queue;
  }

  call(at: Served, verb: string, body: object = {}): Promise<Answered> {
    return ask(at.url, `POST /v1/queues/${this.#queue()}/${verb}`, { body: { worker: this.name, ...body } });
  }

  /** The next claim, or the same again where `seq` says so. */
  async claim(at: Served, body: { readonly seq?: number; readonly [field: string]: unknown } = {}): Promise<Answered> {
    this.seq = body.seq ?? this.seq + 1;
    return this.call(at, 'claim', { wait: 0, max: 10, ...body, seq: this.seq });
  }

  /** The jobs of the next claim. */
  async jobs(
    at: Served,
    body: { readonly seq?: number; readonly [field: string]: unknown } = {},
  ): Promise<readonly ClaimedJob[]> {
    return jobsIn(await this.claim(at, body));
  }

  async settle(at: Served, ...runs: readonly object[]): Promise<readonly string[]> {
    return resultsIn(await this.call(at, 'settle', { runs }));
  }

  async beat(at: Served, ...runs: readonly { readonly run: string }[]): Promise<readonly string[]> {
    const named = runs.map(({ run, ...said }) => ({ run, ...('progress' in said ? said : {}) }));
    return resultsIn(await this.call(at, 'beat', { runs: named }));
  }
}

export function jobsIn(answered: Answered): readonly ClaimedJob[] {
  expect(answered).toMatchObject({ status: 200, body: { jobs: expect.any(Array) } });
  return answered.body.jobs;
}

function resultsIn(answered: Answered): readonly string[] {
  expect(answered).toMatchObject({ status: 200, body: { results: expect.any(Array) } });
  return answered.body.results;
}

/** A run as `settle` takes it. */
export const ended = ({ run }: Pick<ClaimedJob, 'run'>, end: object = {}) => ({ run, end: 'complete', ...end });

interface RemoteOptions {
  /** How many daemons there are; default 1. */
  readonly daemons?: number;
  readonly partitions?: number;
  readonly config?: Omit<DaemonInput, 'redis'>;
}

/** Registers the hooks of one test file. Each test has a queue of its own. */
export function useRemote({ daemons = 1, partitions = 1, config = {} }: RemoteOptions = {}) {
  let opened: { readonly server: TestRedis; readonly redis: Redis } | undefined;
  let served: Served[] = [];
  let stops: (() => unknown)[] = [];
  let nth = 0;
  const seen: { name: EventName; payload: unknown }[] = [];
  const the = () => {
    if (opened === undefined) throw new Error('daemons are open inside tests only');
    return opened;
  };
  const queue = () => `q${nth}`;
  const refs = (): readonly PartitionRef[] =>
    Array.from({ length: partitions }, (_, partition) =>
      partitionRef('duestream', { queue: queue(), partition, layoutGeneration: 0 }),
    );

  beforeAll(async () => {
    const server = await startRedis();
    opened = { server, redis: openCommands({ redis: server.url, name: 'test' }) };
    await whenReady(opened.redis);
    for (let at = 0; at < daemons; at += 1) served.push(await serve());
  });
  beforeEach(() => {
    nth += 1;
    seen.length = 0;
  });
  afterEach(async () => {
    for (const stop of stops.reverse()) await stop();
    stops = [];
    for (const ref of refs()) expect(await brokenInvariants(the().redis, ref.keys)).toEqual([]);
  });
  afterAll(async () => {
    await Promise.all(served.map(({ daemon }) => daemon.stop()));
    served = [];
    if (opened) close(opened.redis);
    await opened?.server.stop();
  });

  /** One more daemon; the test stops it, or this does. */
  async function serve(more: Omit<DaemonInput, 'redis'> = {}): Promise<Served> {
    const http = { port: 0, work: 'on', rateMax: 1_000_000, workRateMax: 1_000_000, ...config.http, ...more.http };
    const roles = ['mover', 'http'] as const;
    const input = { roles, ...config, ...more, http, worker: { ...QUICK, ...config.worker, ...more.worker } };
    const daemon = createDaemonOf(readDaemonInput({ ...input, redis: the().server.url } as DaemonInput));
    const events = createEmitter();
    forward(daemon.events, events);
    for (const name of TOLD) events.on(name, (payload) => void seen.push({ name, payload }));
    await daemon.start();
    const { host, port } = daemon.http() ?? { host: '', port: 0 };
    return { url: `http://${host}:${port}`, daemon };
  }

  return {
    serve,
    get queue() {
      return queue();
    },
    get redis() {
      return the().redis;
    },
    get server() {
      return the().server;
    },
    get refs() {
      return refs();
    },
    at: (which: number): Served => {
      const one = served[which];
      if (!one) throw new Error(`there is no daemon ${which}`);
      return one;
    },
    worker: (label?: string) => new RemoteWorker(queue, label),
    onEnd: (stop: () => unknown) => void stops.push(stop),
    picture: (partition = 0) => {
      const ref = refs()[partition];
      if (!ref) throw new Error(`there is no partition ${partition}`);
      return picture(the().redis, ref.keys);
    },
    /** Events of the daemons, in this test. */
    told: <Name extends (typeof TOLD)[number]>(name: Name): readonly Events[Name][] =>
      seen.filter((one) => one.name === name).map(({ payload }) => payload as Events[Name]),
    /** How many claims wait at a daemon for jobs of this queue. A worker of the last test may leave while this one runs. */
    polls: (): number | undefined =>
      seen
        .filter((one) => one.name === 'polls.waiting')
        .map(({ payload }) => payload as Events['polls.waiting'])
        .findLast((one) => one.queue === queue())?.polls,
    /** Schedules jobs that are due, by a client that is closed. */
    async schedule(...jobs: readonly { readonly id: string; readonly [option: string]: unknown }[]): Promise<void> {
      const client = createClient({ redis: the().server.url });
      try {
        for (const { data = null, ...options } of jobs) await client.schedule(queue(), data, { delay: 0, ...options });
      } finally {
        await client.close();
      }
    },
    client: () => {
      const client = createClient({ redis: the().server.url });
      stops.push(() => client.close());
      return client;
    },
  };
}

const TOLD = [
  ...(['claim.answered', 'run.settled', 'runs.reclaimed', 'runs.overtime', 'polls.waiting'] as const),
  ...(['job.started', 'job.completed', 'job.retried', 'job.dead', 'job.fenced'] as const),
];
