/**
 * `dev [module]`: everything a developer needs in one process: a Redis with its data in `.duestream`, a daemon and, with
 * a module, its workers. Where the Redis is stands in `.duestream/dev.json`, which the other verbs read. A second `dev`
 * of the same folder uses the server that is there.
 */
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import type { Config } from '../../config/options.ts';
import { redisOf } from '../../config/redis-options.ts';
import { errorCatalogue } from '../../core/errors.ts';
import { createEmitter } from '../../core/events.ts';
import { withoutCredentials } from '../../core/redact.ts';
import type { Service } from '../../daemon/run.ts';
import { freePort } from '../../embedded/port.mjs';
import { resolveRedis } from '../../embedded/resolve.mjs';
import { EMBEDDED_NOTICE, startEmbedded } from '../../embedded/server.mjs';
import { close, openCommands } from '../../redis/connection/connect.ts';
import { partitionKeys } from '../../redis/keys.ts';
import { processesOf, workersOf } from '../commands/processes.ts';
import { type Exit, type Register, wholeNumber, withExamples } from '../register.ts';
import { namesRedis, type Session, withRedisUrl } from '../session.ts';
import { line } from '../terminal/text.ts';
import { DEV_FOLDER, makeDevFolder, removeDevFile, writeDevFile } from './dev-file.ts';
import { createDevLog, tellEvents } from './dev-log.ts';

interface Flags {
  readonly redisPort: number;
}

/** The Redis of this run; `stop` ends it only if it was started here. */
interface Place {
  readonly url: string;
  readonly pid: number | undefined;
  readonly kind: 'named' | 'started' | 'attached';
  readonly cli: string;
  readonly stop: () => Promise<void>;
}

export const dev: Register = (parent, runner) => {
  const command = parent
    .command('dev [module]')
    .description('run everything for development: an embedded Redis, a daemon, and the handlers of a module')
    .option(
      '--redis-port <port>',
      'the port of the embedded Redis; if it is taken, the next free one',
      wholeNumber(1, 65_535),
      6379,
    )
    .option('--http-port <port>', 'the port of health and metrics; default: the next free one from 7420')
    .option('--concurrency <n>', 'how many handlers of each queue run at once (default: 50)')
    .action((module: string | undefined, flags: Flags, command: Command) =>
      runner.run(command, (session) => run(session, module, flags)),
    );
  withExamples(command, ['duestream dev', 'duestream dev handlers.mjs']);
};

async function run(session: Session, module: string | undefined, flags: Flags): Promise<Exit> {
  const { out, invocation } = session;
  const place = await placeOf(session, flags.redisPort);
  const looker = openCommands({ redis: place.url, name: 'dev' });
  try {
    const { createDaemonOf } = await import('../../daemon/daemon.ts');
    const { runUntilSignal } = await import('../../daemon/run.ts');
    const { loadHandlers } = await import('../../daemon/handler-module.ts');
    const handlers = module === undefined ? undefined : await loadHandlers(resolve(invocation.cwd, module));
    const config = await devConfig(session, { url: place.url, worker: handlers !== undefined });
    const log = createDevLog(out);
    const around = createEmitter();
    const daemon = createDaemonOf({ config, redis: redisOf(config) }, { log, around, handlers });
    tellEvents(out, daemon.events, async (queue) => workersOf(queue, await processesOf(looker, config.namespace)) > 0);
    const stop = async () => {
      await daemon.stop();
      close(looker);
      if (place.kind === 'started') removeDevFile(invocation.cwd, process.pid);
      await place.stop();
    };
    const { shutdownMs } = config.worker;
    const doomed: Service['doomed'] = (end) => {
      daemon.events.on('schema.refused', ({ why }) => end(why, errorCatalogue['wrong-schema'].exit));
    };
    await runUntilSignal({ start: daemon.start, stop, doomed }, { shutdownMs, log, events: around });
    const address = daemon.http();
    const http = address && `http://${address.host}:${address.port}`;
    if (place.kind === 'started') writeDevFile(invocation.cwd, { url: place.url, pid: process.pid, http });
    tell(session, { place, http, queue: Object.keys(handlers?.map ?? {})[0], namespace: config.namespace });
    return 0;
  } catch (error) {
    close(looker);
    await place.stop();
    throw error;
  }
}

async function placeOf({ loaded, config, invocation, out }: Session, port: number): Promise<Place> {
  const nothing = async () => undefined;
  if (namesRedis(loaded)) {
    return { url: config.redis.url, pid: undefined, kind: 'named', cli: 'redis-cli', stop: nothing };
  }
  const found = await resolveRedis({ env: { ...invocation.env }, log: (text) => out.note(line`${text}`) });
  if (found.kind === 'url') return { url: found.url, pid: undefined, kind: 'named', cli: 'redis-cli', stop: nothing };
  const dataDir = join(makeDevFolder(invocation.cwd), 'data');
  const server = await startEmbedded({ binary: found.path, dataDir, port });
  const { url, pid, stop, reused } = server;
  const cli = found.source === 'path' ? 'redis-cli' : (found.cli ?? 'redis-cli');
  return { url, pid, kind: reused ? 'attached' : 'started', cli, stop };
}

async function devConfig(
  { config, loaded }: Session,
  { url, worker }: { readonly url: string; readonly worker: boolean },
): Promise<Config> {
  const asked = loaded.origins['http.port']?.from !== 'default';
  const port = asked ? config.http.port : await freePort(config.http.port);
  return Object.freeze({
    ...withRedisUrl(config, url),
    http: Object.freeze({ ...config.http, port }),
    roles: worker ? (['mover', 'http', 'worker'] as const) : (['mover', 'http'] as const),
  });
}

interface Told {
  readonly place: Place;
  readonly http: string | undefined;
  readonly queue: string | undefined;
  readonly namespace: string;
}

const SAMPLE = [
  '// handlers.mjs',
  'import { defineHandlers } from "duestream";',
  'export default defineHandlers({',
  '  emails: async (job) => console.log("sending", job.id, job.data),',
  '});',
];

function tell({ out }: Session, { place, http, queue, namespace }: Told): void {
  const { url, pid, kind, cli } = place;
  const seen = withoutCredentials(url);
  const name = queue ?? 'emails';
  const key = partitionKeys({ namespace, queue: name, partition: 0 }).scheduled;
  const source = {
    named: line`Redis      ${seen} (the one that you named; dev started none)`,
    started: line`Redis      ${seen} (pid ${pid}, data in ${DEV_FOLDER}/data)`,
    attached: line`Redis      ${seen} (of another dev, pid ${pid}; it ends with that one)`,
  };
  out.answer({ url: seen, pid, http, attached: kind === 'attached', embedded: kind !== 'named' }, () => [
    source[kind],
    ...(http === undefined ? [] : [line`health     ${http}/readyz  ${http}/metrics`]),
    line`schedule   duestream schedule ${name} --data '{"to":"a@b.c"}' --delay 3s`,
    line`or         ${cli} -u ${seen} ZADD '${key}' $(( ($(date +%s) + 3) * 1000 )) order-1042`,
    ...(kind === 'named' ? [] : ['', EMBEDDED_NOTICE]),
    ...(queue === undefined
      ? ['', 'No handlers yet. Save this as handlers.mjs, then run: duestream worker handlers.mjs', ...SAMPLE]
      : []),
  ]);
}
