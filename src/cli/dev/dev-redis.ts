/**
 * The Redis of one run of `dev`: the one that somebody named, the one server with its data in `.duestream`, or several
 * servers that show what happens when one fails. Those keep nothing: their data go when they do.
 */
import { join } from 'node:path';
import { answersPing } from '../../embedded/ask.mjs';
import { startCluster } from '../../embedded/cluster.mjs';
import { type RedisBinary, type RedisFound, resolveRedis } from '../../embedded/resolve.mjs';
import { startSentinels } from '../../embedded/sentinels.mjs';
import { EMBEDDED_NOTICE, startEmbedded } from '../../embedded/server.mjs';
import { DuestreamError } from '../../kernel/errors.ts';
import { withoutCredentials } from '../../kernel/reason.ts';
import { namesRedis, type Session } from '../session.ts';
import { line } from '../terminal/output.ts';
import { DEV_FOLDER, type DevServer, makeDevFolder, readDevFile } from './dev-file.ts';

export interface DevRedisFlags {
  readonly redisPort: number;
  readonly cluster?: boolean;
  readonly sentinel?: boolean;
}

/** `stop` ends only what was started here. */
export interface DevRedis {
  readonly url: string;
  /** Of the server, where there is one and it is known. */
  readonly pid: number | undefined;
  readonly kind: 'named' | 'started' | 'attached';
  /** For people: whose it is, and where its data are. */
  readonly about: string;
  /** A shell command that talks to it; what to ask follows. */
  readonly shell: string | undefined;
  /** All of them, where there are several. */
  readonly servers: readonly Server[];
  readonly notice: string | undefined;
  readonly stop: () => Promise<void>;
}

export interface Server {
  readonly name: string;
  readonly address: string;
  readonly pid: number;
}

/** The address of one server, and of several by their flag. */
const SCHEMES = { server: 'redis://', cluster: 'cluster://', sentinel: 'sentinel://' } as const;

const SEVERAL_NOTICE =
  'Embedded servers: for development on one machine. They end with this process, and so do all data. To see a failover, end one of them.';

const nothing = async () => undefined;

/** @throws DuestreamError `usage` when flags, the Redis that is named and another `dev` of this folder do not fit. */
export async function openDevRedis(session: Session, flags: DevRedisFlags): Promise<DevRedis> {
  const { loaded, config, invocation } = session;
  const wanted = flags.cluster ? 'cluster' : flags.sentinel ? 'sentinel' : 'server';
  if (namesRedis(loaded)) {
    if (wanted === 'server') return namedRedis(config.redis.url);
    throw new DuestreamError(
      'usage',
      `--${wanted} starts servers, and redis.url names ${withoutCredentials(config.redis.url)} (${loaded.origins['redis.url']?.name}); allowed: one of the two`,
    );
  }
  const other = await runningDev(invocation.cwd);
  const fits = other?.url.startsWith(SCHEMES[wanted]) || (wanted === 'server' && other?.url.startsWith('unix://'));
  if (other && !fits) {
    throw new DuestreamError(
      'usage',
      `another dev (pid ${other.pid}) runs in this folder with ${withoutCredentials(other.url)}; end it first, or run this one in another folder`,
    );
  }
  if (wanted === 'server') return oneServer(session, flags.redisPort);
  if (other === undefined) return severalServers(session, wanted, flags.redisPort);
  const about = `of another dev, pid ${other.pid}; it ends with that one`;
  return { ...bare, url: other.url, pid: other.pid, kind: 'attached', about, notice: SEVERAL_NOTICE };
}

/** The `dev` of this folder, if its servers answer: the pid in its file may be a stranger's by now. */
async function runningDev(cwd: string): Promise<DevServer | undefined> {
  const other = readDevFile(cwd);
  const ports = [...(other?.url ?? '').matchAll(/127\.0\.0\.1:(\d+)/g)].map(([, port]) => Number(port));
  const answers = await Promise.all(ports.map((port) => answersPing({ port })));
  return ports.length === 0 || answers.includes(true) ? other : undefined;
}

const bare = { shell: undefined, servers: [], stop: nothing } as const;

function namedRedis(url: string): DevRedis {
  const about = 'the one that you named; dev started none';
  const shell = /^(cluster|sentinel)/.test(url) ? undefined : `redis-cli -u ${withoutCredentials(url)}`;
  return { ...bare, url, pid: undefined, kind: 'named', about, shell, notice: undefined };
}

async function oneServer(session: Session, port: number): Promise<DevRedis> {
  const found = await findRedis(session);
  if (found.kind === 'url') return namedRedis(found.url);
  const dataDir = join(makeDevFolder(session.invocation.cwd), 'data');
  const { url, pid, stop, reused } = await startEmbedded({ binary: found.path, dataDir, port });
  return {
    url,
    pid,
    stop,
    kind: reused ? 'attached' : 'started',
    about: reused ? `of another dev, pid ${pid}; it ends with that one` : `pid ${pid}, data in ${DEV_FOLDER}/data`,
    shell: `${cliOf(found)} -u ${url}`,
    servers: [],
    notice: EMBEDDED_NOTICE,
  };
}

async function severalServers(session: Session, wanted: 'cluster' | 'sentinel', firstPort: number): Promise<DevRedis> {
  const found = await findRedis(session);
  if (found.kind === 'url') {
    const message = `--${wanted} needs a redis-server to run; DUESTREAM_REDIS_SOURCE=url allows none; leave it out`;
    throw new DuestreamError('usage', message);
  }
  const settings = { binary: found.path, firstPort };
  const group = wanted === 'cluster' ? await startCluster(settings) : await startSentinels(settings);
  const all = 'sentinels' in group ? [...group.nodes, ...group.sentinels] : group.nodes;
  const servers = all.map(({ name, host, port, pid }) => ({ name, address: `${host}:${port}`, pid }));
  // Clients can be pointed at it from now on; the daemon takes a moment more.
  session.out.note(line`${group.url} is up`);
  return {
    url: group.url,
    pid: undefined,
    kind: 'started',
    about: `${all.length} servers`,
    servers,
    shell: `${cliOf(found)} ${wanted === 'cluster' ? '-c ' : ''}-p ${group.nodes[0]?.port}`,
    notice: SEVERAL_NOTICE,
    stop: group.close,
  };
}

function findRedis({ invocation, out }: Session): Promise<RedisFound> {
  return resolveRedis({ env: { ...invocation.env }, log: (text) => out.note(line`${text}`) });
}

const cliOf = ({ source, cli }: RedisBinary): string => (source === 'path' ? 'redis-cli' : (cli ?? 'redis-cli'));
