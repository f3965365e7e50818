/**
 * What `startRedis` starts when the environment asks for several servers (`npm run matrix`): the same tests on a primary
 * with Sentinels, on a cluster, and on a cluster with TLS and users. Whatever only one server has is refused.
 */
import { Cluster, Redis } from 'ioredis';
import type { TestRedis } from './redis.ts';
import { startTestCluster, startTestSentinels } from './topology.ts';

const KINDS = ['sentinel', 'cluster', 'cluster-secure'] as const;
type Kind = (typeof KINDS)[number];

/** What `TEST_TOPOLOGY` names; undefined: one server. */
export function topologyWanted(): Kind | undefined {
  const named = process.env.TEST_TOPOLOGY ?? 'standalone';
  if (named === 'standalone') return undefined;
  const kind = KINDS.find((one) => one === named);
  if (!kind) throw new Error(`TEST_TOPOLOGY is ${named}; allowed: standalone, ${KINDS.join(', ')}`);
  return kind;
}

export async function startTopology(kind: Kind): Promise<TestRedis> {
  const started = await (kind === 'sentinel' ? startWithSentinels() : startAsCluster(kind === 'cluster-secure'));
  const clients: Redis[] = [];
  const refuse = (what: string) => {
    throw new Error(`${what} is of one server, and this is ${kind}`);
  };
  return {
    url: started.url,
    dir: started.dir,
    port: undefined,
    get socketPath() {
      return refuse('socketPath');
    },
    get options() {
      return refuse('options');
    },
    get pid() {
      return refuse('pid');
    },
    kill: async () => refuse('kill'),
    restart: async () => refuse('restart'),
    async client() {
      const client = started.client();
      client.on('error', () => {});
      clients.push(client);
      await client.ping();
      return client;
    },
    async stop() {
      for (const client of clients.splice(0)) client.disconnect();
      await started.close();
    },
  };
}

async function startWithSentinels() {
  const { url, dir, close, sentinels, name } = await startTestSentinels();
  const places = sentinels.map(({ host, port }) => ({ host, port }));
  return { url, dir, close, client: () => new Redis({ sentinels: places, name, maxRetriesPerRequest: null }) };
}

async function startAsCluster(isSecure: boolean) {
  const secure = isSecure ? ({ tls: true, acl: true } as const) : {};
  const { url, dir, close, nodes, ca } = await startTestCluster(secure);
  const { username, password } = new URL(url.replace(/^clusters?:/, 'http:').replace(/,.*/, ''));
  const login = isSecure ? { username, password, tls: { ca } } : {};
  const places = nodes.map(({ host, port }) => ({ host, port }));
  return {
    url,
    dir,
    close,
    // It has every command that one key goes with, and these tests send no others.
    client: () => new Cluster(places, { redisOptions: login }) as unknown as Redis,
  };
}
