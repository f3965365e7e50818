/** TLS with a client certificate, and users of few rights, in a cluster and behind sentinels. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { CLUSTER_COMMANDS, ruleOf, SENTINEL_CHANNEL, SENTINEL_COMMANDS } from '../../../src/redis/connection/access.ts';
import type { RedisInput } from '../../../src/redis/connection/connect.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { makeCertificates } from '../../chaos/faults/certificates.mjs';
import { useCli } from '../../support/cli.ts';
import {
  type ClusterOfTests,
  type SentinelOfTests,
  type Server,
  startCluster,
  startSentinel,
  until,
} from '../../support/topology-lite.ts';

const USER = 'duestream';
const folder = mkdtempSync(join(tmpdir(), 'due-tls-'));
const cli = useCli();
let paths: Readonly<Record<string, string>>;
let tls: { readonly ca: string; readonly cert: string; readonly key: string };
let cluster: ClusterOfTests;
let sentinel: SentinelOfTests;
const ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  const { authority, good } = await makeCertificates(folder);
  const [ca, cert, key] = [authority, good.cert, good.key].map((path) => readFileSync(path, 'utf8'));
  paths = { DUESTREAM_REDIS__CA: authority, DUESTREAM_REDIS__CERT: good.cert, DUESTREAM_REDIS__KEY: good.key };
  tls = { ca: ca ?? '', cert: cert ?? '', key: key ?? '' };
  const files = ['--tls-cert-file', good.cert, '--tls-key-file', good.key, '--tls-ca-cert-file', authority];
  const settings = [...files, '--tls-auth-clients', 'yes'];
  [cluster, sentinel] = await Promise.all([
    startCluster({ replicas: false, tls: settings }),
    startSentinel({ tls: settings }),
  ]);
  const rules = [...ruleOf('service', { namespace: 'duestream' }).split(' ')];
  const allow = (server: Server, more: readonly string[]) =>
    server.client.call('ACL', 'SETUSER', USER, 'reset', 'on', '>secret', ...more);
  for (const server of cluster.masters) await allow(server, [...rules, ...CLUSTER_COMMANDS.map((name) => `+${name}`)]);
  for (const server of [sentinel.primary, sentinel.replica]) await allow(server, rules);
  for (const server of sentinel.sentinels)
    await allow(server, [`&${SENTINEL_CHANNEL}`, ...SENTINEL_COMMANDS.map((name) => `+${name}`)]);
});
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});
afterAll(async () => {
  await Promise.all([cluster?.stop(), sentinel?.stop()]);
  rmSync(folder, { recursive: true, force: true });
});

const login = `${USER}:secret@`;
const secureUrl = (scheme: string, servers: readonly Server[], rest = '') =>
  `${scheme}://${login}${servers.map(({ tlsPort }) => `127.0.0.1:${tlsPort}`).join(',')}${rest}`;
const natMap = () =>
  Object.fromEntries(
    [sentinel.primary, sentinel.replica].map((server) => [
      `127.0.0.1:${server.port}`,
      { host: '127.0.0.1', port: server.tlsPort },
    ]),
  );
const places: Readonly<Record<string, () => { readonly redis: RedisInput; readonly servers: readonly Server[] }>> = {
  Cluster: () => ({ redis: { url: secureUrl('clusters', cluster.masters), tls }, servers: cluster.masters }),
  Sentinel: () => ({
    redis: {
      url: secureUrl('sentinels', sentinel.sentinels, '/mine'),
      tls,
      natMap: natMap(),
      sentinelUsername: USER,
      sentinelPassword: 'secret',
    },
    servers: [sentinel.primary, sentinel.replica],
  }),
};

describe.each(Object.keys(places))('%s', (name) => {
  const place = () => places[name]?.() ?? { redis: '', servers: [] };

  test('jobs flow over TLS, and a user with the rights of the how-to is refused nothing', async () => {
    const { redis, servers } = place();
    for (const { client } of servers) await client.call('ACL', 'LOG', 'RESET');
    const queue = defineQueue('secure', { partitions: 6 });
    const ran = new Set<string>();
    const daemon = createDaemon({ redis, roles: ['mover'] });
    const worker = createWorker(queue, (job) => void ran.add(job.id), { redis });
    const producer = createClient({ redis });
    ends.push(producer.close, worker.stop, daemon.stop);
    await daemon.start();
    await worker.start();
    const ids = Array.from({ length: 30 }, (_, at) => `s-${at}`);
    await Promise.all(ids.map((id) => producer.schedule(queue, {}, { id })));
    await until(() => ids.every((id) => ran.has(id)));
    for (const end of ends.splice(0)) await end();
    for (const { client } of servers) expect(await client.call('ACL', 'LOG')).toEqual([]);
  });

  test('the command line takes certificates, credentials of sentinels and the NAT from the environment', async () => {
    const { redis } = place();
    const url = typeof redis === 'string' ? redis : (redis.url ?? '');
    const pairs = Object.entries(natMap()).map(([from, { host, port }]) => `${from}=${host}:${port}`);
    const ofSentinels = {
      DUESTREAM_REDIS__SENTINEL_USERNAME: USER,
      DUESTREAM_REDIS__SENTINEL_PASSWORD: 'secret',
      DUESTREAM_REDIS__NAT_MAP: pairs.join(','),
    };
    const env = { ...paths, ...(name === 'Sentinel' ? ofSentinels : {}) };
    const { code, out, err } = await cli.run(['schedule', 'secure', '--id', 'by-hand', '--redis', url], { env });
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toContain('by-hand');
    expect((await cli.run(['queues', 'ls', '--redis', url], { env })).out).toContain('secure');
  });

  test('a certificate that nobody trusts is said at once, and no password leaves this process', async () => {
    const { redis } = place();
    const producer = createClient({ redis: { ...(typeof redis === 'string' ? { url: redis } : redis), tls: {} } });
    ends.push(producer.close);
    await expect(producer.ready()).rejects.toThrow(/does not trust the authority that signed its certificate/);
  });
});
