/**
 * `dev [module]`: everything a developer needs in one process: a Redis with its data in `.duestream`, a daemon and, with
 * a module, its workers. Where the Redis is stands in `.duestream/dev.json`, which the other commands read. A second `dev`
 * of the same folder uses the server that is there. `--cluster` and `--sentinel` run several servers instead.
 */
import { once } from 'node:events';
import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { processesOf, workersOf } from '../../client/queues/processes.ts';
import type { Config } from '../../config/options.ts';
import { redisOf } from '../../config/redis-options.ts';
import type { Service } from '../../daemon/run.ts';
import { spawnGuarded } from '../../embedded/guard.mjs';
import { createEmitter, type EventSource, listenToAll } from '../../job/events.ts';
import type { Attempted } from '../../job/outcome.ts';
import { createAbort } from '../../kernel/abort.ts';
import { systemClock } from '../../kernel/clock.ts';
import { DuestreamError, errorCatalogue } from '../../kernel/errors.ts';
import { counted, span } from '../../kernel/humanize.ts';
import type { Log } from '../../kernel/log.ts';
import { withoutCredentials } from '../../kernel/reason.ts';
import { close, openCommands, type Redis } from '../../redis/connection/connect.ts';
import { partitionKeys } from '../../redis/keys.ts';
import { findQueue } from '../../redis/scripts/queues.ts';
import { type Exit, type Register, type Session, wholeNumber, withExamples, withRedisUrl } from '../session.ts';
import { iso } from '../terminal/instants.ts';
import { json, line, type Output, type Screen, stackLines } from '../terminal/output.ts';
import { removeDevFile, writeDevFile } from './dev-file.ts';
import { type DevRedis, type DevRedisFlags, openDevRedis } from './dev-redis.ts';

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
    .addOption(
      new Option('--cluster', 'run a Redis Cluster of 3 primaries and 3 replicas instead').conflicts('sentinel'),
    )
    .option('--sentinel', 'run a primary with 2 replicas and 3 Sentinels instead')
    .option('--watch', 'start the handlers anew when their module, or a file that it imports, changes')
    .addOption(new Option('--handlers-only').hideHelp())
    .option('--http-port <port>', 'the port of health and metrics; default: the next free one from 7420')
    .option('--concurrency <n>', 'how many handlers of each queue run at once (default: 50)')
    .action((module: string | undefined, _flags: unknown, command: Command) =>
      runner.run(command, (session) => run(session, module, command.optsWithGlobals<Flags>())),
    );
  withExamples(command, [
    'duestream dev',
    'duestream dev handlers.mjs',
    'duestream dev handlers.mjs --watch',
    'duestream dev handlers.mjs --cluster',
  ]);
};

interface Flags extends DevRedisFlags {
  readonly watch?: boolean;
  /** The handlers of another `dev`, which watches their files. */
  readonly handlersOnly?: boolean;
  readonly concurrency?: string;
  readonly config?: string;
}

async function run(session: Session, module: string | undefined, flags: Flags): Promise<Exit> {
  if (flags.watch === true && module === undefined) {
    throw new DuestreamError(
      'usage',
      '--watch needs the module whose handlers it starts anew: duestream dev handlers.mjs --watch',
    );
  }
  const place = await openDevRedis(session, flags);
  try {
    await serve(session, place, { module, flags });
    return 0;
  } catch (error) {
    await place.stop();
    throw error;
  }
}

/** Resolves when the daemon is up; it then runs until a signal. */
async function serve(
  session: Session,
  place: DevRedis,
  { module, flags }: { readonly module: string | undefined; readonly flags: Flags },
): Promise<void> {
  const { out, invocation } = session;
  const looker = openCommands({ redis: place.url, name: 'dev' });
  try {
    const { createDaemonOf } = await import('../../daemon/daemon.ts');
    const { runUntilSignal } = await import('../../daemon/run.ts');
    const { loadHandlers } = await import('../../daemon/handler-module.ts');
    const isHere = module !== undefined && flags.watch !== true;
    const handlers = isHere ? await loadHandlers(resolve(invocation.cwd, module)) : undefined;
    const config = devConfig(session, { url: place.url, roles: rolesOf(flags, isHere) });
    const { shutdownMs } = config.worker;
    const log = createDevLog(out);
    const around = createEmitter();
    const daemon = createDaemonOf(
      { config, redis: redisOf(config), orNextPort: session.loaded.origins['http.port']?.from === 'default' },
      { log, around, handlers },
      (events) => tellEvents(out, events, (queue) => isServed(looker, config.namespace, queue)),
    );
    let watched: Watched | undefined;
    const stop = async () => {
      await watched?.stop(shutdownMs);
      await daemon.stop();
      close(looker);
      if (place.kind === 'started') removeDevFile(invocation.cwd, process.pid);
      await place.stop();
    };
    const doomed: Service['doomed'] = (end) => {
      daemon.events.on('schema.refused', ({ why }) => end(why, errorCatalogue['wrong-schema'].exit));
    };
    await runUntilSignal({ start: daemon.start, stop, doomed }, { shutdownMs, log, events: around });
    const address = daemon.http();
    const http = address && `http://${address.host}:${address.port}`;
    if (place.kind === 'started') writeDevFile(invocation.cwd, { url: place.url, pid: process.pid, http });
    if (flags.handlersOnly === true) return;
    tell(session, { place, http, module, queue: Object.keys(handlers?.map ?? {})[0], namespace: config.namespace });
    if (flags.watch === true) watched = watchHandlers(argsOf(session, place, { module, flags }), invocation);
  } catch (error) {
    close(looker);
    throw error;
  }
}

function devConfig(
  { config }: Session,
  { url, roles }: { readonly url: string; readonly roles: Config['roles'] },
): Config {
  return Object.freeze({ ...withRedisUrl(config, url), roles });
}

function rolesOf({ handlersOnly }: Flags, isHere: boolean): Config['roles'] {
  if (handlersOnly === true) return ['worker'];
  return isHere ? ['mover', 'http', 'worker'] : ['mover', 'http'];
}

/** The command line of the handlers: the same settings, and the Redis that is here. */
function argsOf(
  { config: { namespace } }: Session,
  { url }: DevRedis,
  { module = '', flags }: { readonly module: string | undefined; readonly flags: Flags },
): readonly string[] {
  const { concurrency, config } = flags;
  return [
    ...['dev', module, '--handlers-only', '--redis', url, '--namespace', namespace],
    ...(config === undefined ? [] : ['--config', config]),
    ...(concurrency === undefined ? [] : ['--concurrency', concurrency]),
  ];
}

interface Told {
  readonly place: DevRedis;
  readonly http: string | undefined;
  readonly module: string | undefined;
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

function tell({ out }: Session, { place, http, module, queue, namespace }: Told): void {
  const { url, pid, kind, about, shell, servers, notice } = place;
  const seen = withoutCredentials(url);
  const name = queue ?? 'emails';
  const key = partitionKeys({ namespace, queue: name, partition: 0 }).scheduled;
  const several = servers.length > 0 ? { servers } : {};
  out.answer({ url: seen, pid, http, attached: kind === 'attached', embedded: kind !== 'named', ...several }, () => [
    line`Redis      ${seen} (${about})`,
    ...servers.map((server) => line`           ${server.name.padEnd(10)} ${server.address}  pid ${server.pid}`),
    ...(http === undefined ? [] : [line`dashboard  ${http}/`, line`health     ${http}/readyz  ${http}/metrics`]),
    line`schedule   duestream schedule ${name} --data '{"to":"a@b.c"}' --delay 3s`,
    ...(shell === undefined
      ? []
      : [line`or         ${shell} ZADD '${key}' $(( ($(date +%s) + 3) * 1000 )) order-1042`]),
    ...(notice === undefined ? [] : ['', notice]),
    ...(module === undefined
      ? ['', 'No handlers yet. Save this as handlers.mjs, then run: duestream worker handlers.mjs', ...SAMPLE]
      : []),
  ]);
}

/** A broadcast queue needs nobody: its jobs are sent, whoever gets them. */
async function isServed(redis: Redis, namespace: string, queue: string): Promise<boolean> {
  if (workersOf(queue, await processesOf(redis, namespace)) > 0) return true;
  return (await findQueue(redis, namespace, queue))?.broadcast?.isOn === true;
}

/*
 * `dev --watch` runs the handlers in a process of their own. Node.js starts it anew when a file changes that they import: a
 * process cannot load a module twice, and the orderly stop of the old worker hands back the jobs that run. The process
 * cannot outlive `dev`, however `dev` ends.
 *
 *     dev (Redis, daemon) ──▶ node --watch ──▶ dev --handlers-only: a worker that tells what it does as `dev` does
 */

/** Longer than a worker may take to stop. */
const PATIENCE_MS = 5000;

interface Watched {
  /** Ends the handlers in order, or after a while without. Twice is fine. */
  readonly stop: (withinMs: number) => Promise<void>;
}

/** @param args of the command line that runs the handlers */
function watchHandlers(
  args: readonly string[],
  { stdout, stderr }: { readonly stdout: Screen; readonly stderr: Screen },
): Watched {
  // The same command that runs here.
  const [, main = ''] = process.argv;
  const child = spawnGuarded({
    path: process.execPath,
    args: [...process.execArgv, '--watch', '--watch-preserve-output', main, ...args],
  });
  child.stdout.setEncoding('utf8').on('data', (text: string) => stdout.write(text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => stderr.write(text));

  async function stop(withinMs: number): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, 'exit');
    const late = createAbort();
    child.kill('SIGTERM');
    const isOver = await Promise.race([
      exit.then(() => true),
      systemClock.sleep(withinMs + PATIENCE_MS, late.signal).then(() => false),
    ]);
    late.abort();
    if (!isOver) child.kill('SIGKILL');
  }

  return { stop };
}

// What happens in `dev`, one readable line each, on stderr: the events of jobs, and what handlers log.

/** A log for people. Debug lines are left out. */
function createDevLog(out: Output, bound: Readonly<Record<string, unknown>> = {}): Log {
  const write = (fields: Readonly<Record<string, unknown>>, message: string) => {
    const all = { ...bound, ...fields };
    say(out, line`${message} ${Object.keys(all).length === 0 ? '' : json(all)}`.trimEnd());
  };
  return {
    debug: () => undefined,
    info: write,
    warn: write,
    error: write,
    child: (fields) => createDevLog(out, { ...bound, ...fields }),
  };
}

/** Tells what becomes of each job. `isServed`: whether a living worker serves a queue, in this process or another. */
function tellEvents(out: Output, events: EventSource, isServed: (queue: string) => Promise<boolean>): () => void {
  const hint = hints(out, isServed);
  /** Who misses Redis, and why: each connection says so for itself, and a person wants to read it once. */
  const away = new Map<string, string>();

  return listenToAll(
    events,
    {
      'jobs.promoted': ({ queue, count, deadLetters }) => {
        if (count > 0) {
          say(out, line`${queue}  ${count} due, on the way`);
          // Without an answer nobody knows; the outage has lines of its own.
          hint(queue).catch(() => undefined);
        }
        if (deadLetters > 0)
          say(
            out,
            line`${queue}  ${counted(deadLetters, 'dead letter')} of members that cannot be jobs; see "duestream dead ls ${queue}"`,
          );
      },
      'job.started': ({ queue, id, name, attempt, lateMs }) =>
        say(out, line`${queue}  ${id}  ${name} started, attempt ${attempt}, ${span(lateMs)} after its due time`),
      'job.completed': ({ queue, id, tookMs }) => say(out, line`${queue}  ${id}  done in ${span(tookMs)}`),
      'job.retried': ({ queue, id, delayMs, error }) =>
        sayFailure(out, line`${queue}  ${id}  failed, again in ${span(delayMs)}: ${error.message}`, error),
      'job.deferred': ({ queue, id, delayMs, reason }) =>
        say(out, line`${queue}  ${id}  put aside for ${span(delayMs)}${reason === undefined ? '' : `: ${reason}`}`),
      'job.dead': ({ queue, id, reason, error }) =>
        sayFailure(out, line`${queue}  ${id}  dead (${reason}): ${error.message}`, error),
      'job.failed': ({ queue, id, error }) =>
        sayFailure(out, line`${queue}  ${id}  failed, and is not tried again (at most once): ${error.message}`, error),
      'job.expired': ({ queue, id, dead }) =>
        say(out, line`${queue}  ${id}  too late: ${dead ? 'it became a dead letter' : 'it was dropped'}`),
      'job.cancelled': ({ queue, id }) => say(out, line`${queue}  ${id}  cancelled`),
      'schedule.unreadable': ({ queue, schedule, why }) =>
        say(out, line`${queue}  schedule ${schedule} cannot be read and does not fire: ${why}`),
      'slots.lost': ({ queue, id, lost, concurrency }) =>
        say(out, line`${queue}  ${id}  ignores its abort signal; ${lost} of ${concurrency} slots are lost`),
      'promise.rejected': ({ error }) => say(out, line`unhandled rejection: ${error}`),
      'redis.away': ({ who, why, answered }) => {
        const isKnown = [...away.values()].includes(why);
        away.set(who, why);
        if (!isKnown) say(out, answered ? line`Redis refuses: ${why}` : line`Redis is away: ${why}`);
      },
      'redis.changed': ({ before, runId, empty }) =>
        say(
          out,
          empty || before === runId ? 'Redis has lost all keys of this namespace' : 'another Redis server answers',
        ),
      'schema.refused': ({ why }) => say(out, line`stopping: ${why}`),
      'redis.back': ({ who }) => {
        if (away.delete(who) && away.size === 0) say(out, 'Redis is back');
      },
    },
    PASSED_OVER,
  );
}

/** Says when no worker serves a queue: until then a ready job looks like a job that runs. */
function hints(out: Output, isServed: (queue: string) => Promise<boolean>): (queue: string) => Promise<void> {
  const hinted = new Map<string, number>();
  return async (queue) => {
    const nowMs = systemClock.monotonicMs();
    if (nowMs - (hinted.get(queue) ?? Number.NEGATIVE_INFINITY) < HINT_EVERY_MS) return;
    hinted.set(queue, nowMs);
    if (await isServed(queue)) hinted.delete(queue);
    else say(out, line`${queue}  no worker serves it: start one with "duestream worker <module>"`);
  };
}

/** What a person at a terminal does not miss: how it is done, and what a daemon is asked for later. */
const PASSED_OVER = [
  ...([
    'leader.elected',
    'leader.lost',
    'leader.away',
    'leader.back',
    'clock.off',
    'clock.right',
    'versions.differ',
    'versions.agree',
    'mover.passed',
    'process.ticked',
    'schedule.fired',
    'schedule.missed',
  ] as const),
  ...(['job.fenced', 'job.overran', 'jobs.parked', 'parked.waiting', 'suspects.waiting', 'worker.exhausted'] as const),
  ...(['worker.paused', 'worker.resumed'] as const),
  ...(['entries.reclaimed', 'entries.adopted', 'consumer.retired', 'partition.repaired'] as const),
  ...(['redis.evicts', 'redis.keeps', 'jobs.missed', 'log.refused'] as const),
  ...(['claim.answered', 'run.settled', 'runs.reclaimed', 'runs.overtime', 'polls.waiting'] as const),
  ...(['target.called', 'target.gone', 'target.closed'] as const),
] as const;

const HINT_EVERY_MS = 10_000;

/** With where it was thrown. */
function sayFailure(out: Output, text: string, { stack }: Attempted): void {
  say(out, text);
  for (const one of stackLines(stack)) out.note(one);
}

function say(out: Output, text: string): void {
  out.note(`${iso(systemClock.wallMs()).slice(11, 23)}  ${text}`);
}
