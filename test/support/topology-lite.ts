/**
 * A cluster, or a primary with replicas and sentinels, for one test file: real servers on loopback ports. Small, until
 * the fixtures take its place.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { spawnGuarded } from '../../src/embedded/guard.mjs';
import { slotOf } from '../../src/redis/connection/cluster/nodes.ts';
import { testBinary } from './redis-binary.ts';

export interface Server {
  readonly port: number;
  /** Of those with `tls`, beside the plain one. */
  readonly tlsPort: number;
  readonly client: Redis;
  readonly pid: number;
  /** Resolves when the process has ended; at once for signals that do not end it. */
  readonly kill: (signal: NodeJS.Signals) => Promise<void>;
  /** Starts it again with the same folder and port. */
  readonly restart: () => Promise<void>;
}

export interface ClusterOfTests {
  readonly url: string;
  readonly masters: readonly Server[];
  readonly replicas: readonly Server[];
  readonly stop: () => Promise<void>;
}

export interface SentinelOfTests {
  readonly url: string;
  readonly primary: Server;
  readonly replica: Server;
  readonly sentinels: readonly Server[];
  /** The port that the sentinels name. */
  readonly current: () => Promise<number>;
  /** Makes the other one the primary. */
  readonly failover: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

const PATIENCE_MS = 60_000;

export interface Options {
  readonly args?: readonly string[];
  readonly replicas?: boolean;
  /** Settings of TLS: each server gets a port for it as well. */
  readonly tls?: readonly string[];
  readonly sentinelArgs?: readonly string[];
  readonly sentinels?: number;
  /** What `requirepass` in `sentinelArgs` says. */
  readonly sentinelPassword?: string;
}

export async function startCluster({ args = [], replicas = true, tls }: Options = {}): Promise<ClusterOfTests> {
  const dir = await mkdtemp(join(tmpdir(), 'due-c-'));
  const all: Server[] = [];
  const count = replicas ? 6 : 3;
  for (let at = 0; at < count; at += 1) {
    const settings = [
      ...(tls ? ['--tls-cluster', 'yes'] : []),
      '--cluster-enabled',
      'yes',
      '--cluster-node-timeout',
      '2000',
      '--cluster-config-file',
      `n${at}.conf`,
    ];
    all.push(await startServer({ dir, args: [...PLAIN, ...settings, ...args], tls }));
  }
  const masters = all.slice(0, 3);
  const others = all.slice(3);
  for (const [at, { client }] of masters.entries()) {
    await client.call('CLUSTER', 'ADDSLOTSRANGE', at * 5462, Math.min(16_383, at * 5462 + 5461));
    await client.call('CLUSTER', 'SET-CONFIG-EPOCH', at + 1);
  }
  for (const { port, tlsPort } of all.slice(1)) {
    await all[0]?.client.call('CLUSTER', 'MEET', '127.0.0.1', tls ? tlsPort : port);
  }
  await until(async () => {
    const infos = await Promise.all(all.map(({ client }) => client.call('CLUSTER', 'INFO')));
    return infos.every((info) => new RegExp(`cluster_state:ok[^]*cluster_known_nodes:${count}\\b`).test(String(info)));
  });
  for (const [at, { client }] of others.entries()) {
    const id = String(await masters[at]?.client.call('CLUSTER', 'MYID'));
    await until(() =>
      client.call('CLUSTER', 'REPLICATE', id).then(
        () => true,
        () => false,
      ),
    );
  }
  await Promise.all(
    others.map(({ client }) => until(async () => /master_link_status:up/.test(await client.info('replication')))),
  );
  // A replica is failed over to when its master knows of it.
  await Promise.all(
    (replicas ? masters : []).map(({ client }) =>
      until(async () => /connected_slaves:1/.test(await client.info('replication'))),
    ),
  );
  return {
    url: `cluster://${masters.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    masters,
    replicas: others,
    stop: () => stopAll(all, dir),
  };
}

export async function startSentinel({
  args = [],
  sentinelArgs = [],
  sentinels = 1,
  sentinelPassword,
  tls,
}: Options = {}): Promise<SentinelOfTests> {
  const dir = await mkdtemp(join(tmpdir(), 'due-s-'));
  const primary = await startServer({ dir, args: [...PLAIN, ...args], tls });
  const replica = await startServer({ dir, args: [...PLAIN, '--replicaof', `127.0.0.1 ${primary.port}`, ...args] });
  const guards: Server[] = [];
  for (let at = 0; at < sentinels; at += 1) {
    const file = join(dir, `sentinel-${at}.conf`);
    const quorum = Math.floor(sentinels / 2) + 1;
    const watch = [
      `sentinel monitor mine 127.0.0.1 ${primary.port} ${quorum}`,
      'sentinel down-after-milliseconds mine 1000',
    ];
    const more = [
      'sentinel failover-timeout mine 6000',
      ...sentinelArgs,
      ...(sentinelPassword ? [`sentinel sentinel-pass ${sentinelPassword}`] : []),
    ];
    await writeFile(file, `${[...watch, ...more].join('\n')}\n`);
    guards.push(
      await startServer({
        dir,
        args: ['--bind', '127.0.0.1', '--save', ''],
        config: file,
        password: sentinelPassword,
        tls,
      }),
    );
  }
  const [first] = guards;
  const said = async (...words: string[]) => String(await first?.client.call('SENTINEL', ...words)).split(',');
  const current = async () => Number((await said('GET-MASTER-ADDR-BY-NAME', 'mine'))[1]);
  await until(async () => {
    const fields = await said('MASTER', 'mine');
    const count = (name: string) => Number(fields[fields.indexOf(name) + 1]);
    return count('num-slaves') === 1 && count('num-other-sentinels') === sentinels - 1;
  });
  await until(async () => /master_link_status:up/.test(await replica.client.info('replication')));
  return {
    url: `sentinel://${guards.map(({ port }) => `127.0.0.1:${port}`).join(',')}/mine`,
    primary,
    replica,
    sentinels: guards,
    current,
    async failover() {
      const before = await current();
      // Refused while it does not see the replica as good, or the last one is not over.
      await until(
        () =>
          first?.client.call('SENTINEL', 'FAILOVER', 'mine').then(
            () => true,
            () => false,
          ) ?? false,
      );
      await until(async () => (await current()) !== before);
    },
    stop: () => stopAll([...guards, replica, primary], dir),
  };
}

/** Resolves when a replica has all that its primary has now. WAIT would count the writes of its own connection alone. */
export async function replicated({ client }: Server): Promise<void> {
  const number = (info: string, pattern: RegExp) => Number(pattern.exec(info)?.[1] ?? Number.NaN);
  const wanted = number(await client.info('replication'), /master_repl_offset:(\d+)/);
  await until(async () => number(await client.info('replication'), /slave0:.*state=online,offset=(\d+)/) >= wanted);
}

/** Redis gives a failover that was asked for up after five seconds, as on a busy machine. */
const FAILOVER_MS = 6000;

/** Resolves when a replica of a cluster has taken over. What Redis gives up is asked for again. */
export async function failOver({ client }: Pick<Server, 'client'>): Promise<void> {
  let askedMs = Number.NEGATIVE_INFINITY;
  await until(async () => {
    if (String(await client.call('ROLE')).startsWith('master')) return true;
    if (Date.now() - askedMs > FAILOVER_MS) {
      askedMs = Date.now();
      // Refused where it has taken over meanwhile.
      await client.call('CLUSTER', 'FAILOVER').catch(() => undefined);
    }
    return false;
  });
}

/** A slot on its way from the master that has it to another one, key by key: what `redis-cli --cluster reshard` does. */
export async function beginMove(servers: readonly Server[], key: string) {
  const slot = slotOf(key);
  const isMaster = async ({ client }: Server) =>
    client.status === 'ready' && String(await client.call('ROLE')).startsWith('master');
  const masters: Server[] = [];
  for (const one of servers) if (await isMaster(one)) masters.push(one);
  const keysAt = async ({ client }: Server) => (await client.call('CLUSTER', 'GETKEYSINSLOT', slot, 100)) as string[];
  const counts = await Promise.all(masters.map(async (one) => (await keysAt(one)).length));
  const from = masters[counts.findIndex((count) => count > 0)];
  const to = masters.find((one) => one !== from);
  if (!from || !to) throw new Error(`nobody has ${key}`);
  const idOf = async ({ client }: Server) => String(await client.call('CLUSTER', 'MYID'));
  await to.client.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', await idOf(from));
  await from.client.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', await idOf(to));
  const carry = (keys: readonly string[]) =>
    keys.length > 0 && from.client.call('MIGRATE', '127.0.0.1', to.port, '', 0, 5000, 'KEYS', ...keys);
  return {
    to,
    carryOne: async () => carry((await keysAt(from)).slice(0, 1)),
    carryRest: async () => carry(await keysAt(from)),
    /** How often the old master refused a command with this word since it started. */
    refusals: async (word: 'TRYAGAIN' | 'ASK') =>
      Number(new RegExp(`errorstat_${word}:count=(\\d+)`).exec(await from.client.info('errorstats'))?.[1] ?? 0),
    async end(): Promise<void> {
      // Keys may come while others go.
      for (let left = await keysAt(from); left.length > 0; left = await keysAt(from)) await carry(left);
      for (const one of [to, ...masters.filter((other) => other !== to)])
        await one.client.call('CLUSTER', 'SETSLOT', slot, 'NODE', await idOf(to));
    },
  };
}

/** Without rest, for events of servers that nobody announces. */
export async function until(look: () => Promise<boolean> | boolean): Promise<void> {
  const deadlineMs = Date.now() + PATIENCE_MS;
  while (!(await look())) {
    if (Date.now() > deadlineMs) throw new Error(`not within ${PATIENCE_MS} ms: ${look}`);
    await sleep(20);
  }
}

const PLAIN = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--repl-diskless-sync-delay', '0'];

async function startServer(of: {
  readonly dir: string;
  readonly args: readonly string[];
  readonly config?: string;
  readonly password?: string | undefined;
  readonly tls?: readonly string[] | undefined;
}): Promise<Server> {
  const path = await testBinary();
  const [port, tlsPort] = [await freePort(), of.tls ? await freePort() : 0];
  const secure = of.tls ? ['--tls-port', String(tlsPort), ...of.tls] : [];
  const mode = of.config === undefined ? [] : ['--sentinel'];
  const args = [
    ...(of.config ? [of.config] : []),
    '--port',
    String(port),
    '--dir',
    of.dir,
    ...of.args,
    ...secure,
    ...mode,
  ];
  const launch = () => {
    const started = spawnGuarded({ path, args });
    for (const said of [started.stdout, started.stderr]) said.resume();
    return started;
  };
  let child = launch();
  const { password } = of;
  const login = password === undefined ? {} : { password };
  const client = new Redis({ host: '127.0.0.1', port, maxRetriesPerRequest: null, retryStrategy: () => 20, ...login });
  client.on('error', () => undefined);
  await client.ping();
  return {
    port,
    tlsPort,
    client,
    get pid() {
      return child.pid ?? 0;
    },
    async kill(signal) {
      const { pid } = child;
      if (pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
      const ended = new Promise((resolve) => child.once('exit', resolve));
      process.kill(pid, signal);
      if (signal === 'SIGKILL') await ended;
    },
    async restart() {
      child = launch();
      await client.ping();
    },
  };
}

async function stopAll(servers: readonly Server[], dir: string): Promise<void> {
  for (const { client } of servers) client.disconnect();
  await Promise.all(servers.map((server) => server.kill('SIGKILL')));
  await rm(dir, { recursive: true, force: true });
}

/** Below 30000: the bus of a cluster takes the port plus 10000. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 9999);
    const free = await Promise.all([port, port + 10_000].map(isFree));
    if (free.every(Boolean)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
