/**
 * Daemons and workers over HTTP that are killed and frozen, in a queue with limits: no job is lost, no start runs twice, no two
 * jobs of a group run at the same time, and the keys are whole. `REMOTE_CHAOS_S` says for how long; the default is short.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { findOnPath } from '../../../src/embedded/binary.mjs';
import { defineQueue } from '../../../src/job/queue.ts';
import { numbers } from '../../support/killed.ts';
import { type Running, useProcesses } from '../../support/processes.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { root } from '../../support/repository.ts';

const SECONDS = Number(process.env.REMOTE_CHAOS_S ?? 20);
const LEASE_MS = 3000;
const [python] = await findOnPath('python3', process.env.PATH);
const processes = useProcesses();
const queue = defineQueue('chaos', { perGroup: 1, concurrency: 10 });
let redis: TestRedis;
let folder = '';
const stops: (() => unknown)[] = [];

beforeAll(async () => {
  redis = await startRedis();
  folder = mkdtempSync(join(tmpdir(), 'due-chaos-'));
});
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});
afterAll(async () => {
  await redis.stop();
  rmSync(folder, { recursive: true, force: true });
});

const PROGRAM = `
import json, os, sys, time
from duestream_worker import Stopped, Worker
urls, log = sys.argv[1].split(","), os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def say(what, job): os.write(log, (json.dumps({"what": what, "id": job.id, "token": job.token, "crashes": job.crashes, "at": time.monotonic_ns(), "pid": os.getpid()}) + "\\n").encode())
def handle(job):
    job.check()
    say("start", job)
    time.sleep(0.02)
    job.check()
    say("end", job)
Worker(urls, "chaos", handle, concurrency=4).run()
`;

interface Said {
  readonly what: 'start' | 'end';
  readonly id: string;
  readonly token: string;
  readonly crashes: number;
  readonly at: number;
  readonly pid: number;
}

const freePort = () =>
  new Promise<number>((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' ? (address?.port ?? 0) : 0));
    });
  });

async function daemon(port: number): Promise<Running> {
  const file = join(folder, `${port}.yaml`);
  const config = {
    redis: { url: redis.url },
    roles: ['mover', 'http'],
    http: { port, work: 'on' },
    worker: { jobLease: LEASE_MS },
    queues: { chaos: { attempts: 100, crashes: 100 } },
  };
  writeFileSync(file, JSON.stringify(config));
  return processes.launch({ name: `daemon ${port}`, args: ['start', '--config', file] });
}

function worker(urls: string, log: string) {
  const env = { ...process.env, PYTHONPATH: join(root, 'clients/python') };
  const child = spawn(python ?? '', ['-c', PROGRAM, urls, log], { env, stdio: ['ignore', 'ignore', 'inherit'] });
  stops.push(() => child.kill('SIGKILL'));
  return child;
}

const after = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

test.skipIf(python === undefined)(
  'no job is lost, no start runs twice, and no two of a group at a time',
  { timeout: (SECONDS + 180) * 1000 },
  async () => {
    const random = numbers(7);
    const pick = (count: number) => Math.floor(random() * count);
    const ports = [await freePort(), await freePort(), await freePort()];
    const daemons = await Promise.all(ports.map(daemon));
    await Promise.all(daemons.map((one) => one.logged('started')));
    const log = join(folder, 'log');
    writeFileSync(log, '');
    const urls = ports.map((port) => `http://127.0.0.1:${port}`).join(',');
    const workers = [1, 2, 3, 4].map(() => worker(urls, log));
    const client = createClient({ redis: redis.url });
    stops.push(() => client.close());
    const broken = { daemons: 0, workers: 0, frozen: 0 };
    let put = 0;

    for (const untilMs = performance.now() + SECONDS * 1000; performance.now() < untilMs; await after(150)) {
      const jobs = Array.from({ length: 10 }, (_, at) => ({ id: `{g${at % 5}}c${put + at}`, data: null, delay: 0 }));
      await client.scheduleMany(queue, jobs);
      put += jobs.length;
      if (random() < 0.12) {
        const nth = pick(daemons.length);
        await daemons[nth]?.end('SIGKILL');
        daemons[nth] = await daemon(ports[nth] ?? 0);
        broken.daemons += 1;
      }
      if (random() < 0.04) {
        const nth = pick(workers.length);
        workers[nth]?.kill('SIGKILL');
        workers[nth] = worker(urls, log);
        broken.workers += 1;
      }
      if (random() < 0.03) {
        const frozen = workers[pick(workers.length)];
        frozen?.kill('SIGSTOP');
        setTimeout(() => frozen?.kill('SIGCONT'), 2 * LEASE_MS);
        broken.frozen += 1;
      }
    }

    const read = (): readonly Said[] => {
      const lines = readFileSync(log, 'utf8').split('\n').slice(0, -1);
      return lines.map((line): Said => JSON.parse(line));
    };
    const ended = () => new Set(read().flatMap(({ what, id }) => (what === 'end' ? [id] : []))).size;
    await expect.poll(ended, { timeout: 120_000, interval: 500 }).toBe(put);
    const running = async () => (await client.queues.get('chaos')).running;
    await expect.poll(running, { interval: 500 }).toBe(0);
    const said = read().toSorted((one, other) => one.at - other.at);
    const starts = said.filter(({ what }) => what === 'start');
    console.log(JSON.stringify({ seconds: SECONDS, put, starts: starts.length, ...broken, ...overlapsOf(said) }));
    expect(new Set(starts.map(({ token }) => token)).size).toBe(starts.length);
    expect(overlapsOf(said)).toEqual({ overlaps: 0 });
    const checked = processes.launch({ name: 'doctor', args: ['doctor', 'chaos', '--keys', '--redis', redis.url] });
    expect((await checked.exited).code).toBe(0);
    expect(broken.daemons + broken.workers + broken.frozen).toBeGreaterThan(0);
  },
);

/**
 * Starts of a group while another one of it ran and has said its end since. A worker that was killed or frozen, and lost its run, says
 * no end, or says it under a token that is not the newest: that is what the token is for.
 */
function overlapsOf(said: readonly Said[]): { readonly overlaps: number } {
  const newest = new Map<string, bigint>();
  for (const { id, token } of said) {
    const before = newest.get(id) ?? 0n;
    newest.set(id, BigInt(token) > before ? BigInt(token) : before);
  }
  const open = new Map<string, Said>();
  let overlaps = 0;
  for (const one of said.filter(({ id, token }) => newest.get(id) === BigInt(token))) {
    const group = one.id.slice(0, one.id.indexOf('}'));
    const other = open.get(group);
    if (one.what === 'end' && other?.token === one.token) open.delete(group);
    if (one.what !== 'start') continue;
    if (other !== undefined) overlaps += 1;
    open.set(group, one);
  }
  return { overlaps };
}
