/**
 * A Redis Cluster, or a primary with replicas and Sentinels, for one test file: the fixtures of `src/embedded` with the
 * server the tests run, and with TLS and users on request. They take two to three seconds to come up, so the tests of a
 * file share one, and it cannot outlive the test process.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Cluster, startCluster } from '../../src/embedded/cluster.mjs';
import { type Sentinels, startSentinels } from '../../src/embedded/sentinels.mjs';
import type { TopologySettings } from '../../src/embedded/topology.mjs';
import { makeCertificates } from '../chaos/faults/certificates.mjs';
import { testBinary } from './redis-binary.ts';

/** The user of a topology with access rules whose lines are not given: he may do everything. */
const CLIENT = { username: 'app', password: 'secret-of-app' } as const;
const LINES = [`user ${CLIENT.username} on >${CLIENT.password} ~* &* +@all`];

interface Secured {
  /** With certificates of an authority that lives as long as the topology. Default: without TLS. */
  readonly tls?: boolean;
  /** Access rules: true for one user who may do everything. Default: none. */
  readonly acl?: true | TopologySettings['acl'];
}

interface Trust {
  /** The authority, in PEM: what a client must trust. Undefined without TLS. */
  readonly ca: string | undefined;
  /** The same as a file. */
  readonly caFile: string | undefined;
}

type Asked<T> = Omit<T, 'binary' | 'tls' | 'acl'> & Secured;

export function startTestCluster(asked: Asked<Parameters<typeof startCluster>[0]> = {}): Promise<Cluster & Trust> {
  return secured(asked, startCluster);
}

export function startTestSentinels(
  asked: Asked<Parameters<typeof startSentinels>[0]> = {},
): Promise<Sentinels & Trust> {
  return secured(asked, startSentinels);
}

/** Those that the environment names, which the processes of the test trust (`npm run matrix`); else new ones. */
async function certificates(
  folder: string,
): Promise<Pick<Awaited<ReturnType<typeof makeCertificates>>, 'authority' | 'good'>> {
  const { TEST_CERTIFICATES } = process.env;
  return TEST_CERTIFICATES === undefined ? makeCertificates(folder) : JSON.parse(TEST_CERTIFICATES);
}

async function secured<W, T extends { readonly close: () => Promise<void> }>(
  { tls, acl, ...asked }: W & Secured,
  start: (wanted: Omit<W, 'tls' | 'acl'> & TopologySettings) => Promise<T>,
): Promise<T & Trust> {
  const folder = mkdtempSync(join(tmpdir(), 'due-ca-'));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  try {
    const made = tls ? await certificates(folder) : undefined;
    const started = await start({
      ...asked,
      binary: await testBinary(),
      ...(made ? { tls: { ...made.good, authority: made.authority } } : {}),
      ...(acl ? { acl: acl === true ? { lines: LINES, client: CLIENT } : acl } : {}),
    });
    const close = () => started.close().finally(remove);
    return { ...started, ca: made && readFileSync(made.authority, 'utf8'), caFile: made?.authority, close };
  } catch (error) {
    remove();
    throw error;
  }
}
