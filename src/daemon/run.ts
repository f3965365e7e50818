/**
 * A service in a process of its own: starts it, stops it in order on the first signal, exits at once on the second.
 * The only place that listens to signals or ends the process.
 */
import closeWithGrace from 'close-with-grace';
import type { Config } from '../config/options.ts';
import { redisOf } from '../config/redis-options.ts';
import { safe } from '../job/event-log.ts';
import { createEmitter, type Emitter } from '../job/events.ts';
import { stackOf } from '../job/thrown.ts';
import { createAbort } from '../kernel/abort.ts';
import { systemClock } from '../kernel/clock.ts';
import { DuestreamError, errorCatalogue } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import { reasonOf, withoutCredentials } from '../kernel/reason.ts';
import { createDaemonOf, type Daemon } from './daemon.ts';
import { createLog } from './log.ts';

export interface Service {
  readonly start: () => Promise<void>;
  readonly stop: () => Promise<void>;
  /** Calls `end` when the service cannot go on in this process, with the exit status if it is not 1. */
  readonly doomed?: (end: (why: string, exit?: number) => void) => void;
}

/**
 * Resolves once the service has started (`false`: a signal came first); the process then lives until a signal. It ends
 * with 0 after an orderly stop, and with 1 after an uncaught error, when the service was doomed (unless it said another
 * status), or when the stop took longer than `shutdownMs` and a second. Where its log cannot be written it ends with SIGKILL, a second after the stop.
 */
export async function runUntilSignal(
  service: Service,
  { shutdownMs, log, events }: { readonly shutdownMs: number; readonly log: Log; readonly events: Emitter },
): Promise<boolean> {
  let doom: { readonly why: string; readonly exit: number } | undefined;
  let first: NodeJS.Signals | undefined;
  let isStopping = false;
  const grace = closeWithGrace(
    {
      delay: shutdownMs + 1000,
      logger: { error: (message?: unknown) => log.error({ error: safe(reasonOf(message)) }, 'shutdown') },
      onTimeout: (delay) => log.error({ afterMs: delay }, 'shutdown took too long: exiting'),
      // A promise that a handler forgot about is that handler's bug; it must not end other jobs.
      skip: ['unhandledRejection', 'beforeExit', ...SIGNALS],
    },
    async ({ err }) => {
      isStopping = true;
      if (err)
        log.error({ error: safe(reasonOf(err)), stack: stackOf(err, withoutCredentials) }, 'uncaught error, stopping');
      else log.info({ signal: first ?? 'none' }, 'stopping');
      await service.stop();
      log.info({}, 'stopped');
      await flushed(log);
      if (doom) process.exit(doom.exit);
    },
  );
  const deaf = onSignals((signal) => {
    if (isStopping) {
      log.warn({ signal }, 'second signal: exiting at once');
      process.exit(1);
    }
    first = signal;
    grace.close();
  });
  process.on('unhandledRejection', (reason) => events.emit('promise.rejected', { error: reasonOf(reason) }));
  service.doomed?.((why, exit = 1) => {
    if (doom) return;
    doom = { why, exit };
    grace.close();
  });
  try {
    await service.start();
    return true;
  } catch (error) {
    // A signal that came meanwhile ends the process by itself, with 0; it is no failure of the start.
    if (error instanceof DuestreamError && error.code === 'stopped') return false;
    grace.uninstall();
    deaf();
    throw error;
  }
}

/** Those that end a process, and can be heard. */
const SIGNALS = [
  ...(['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGUSR2'] as const),
  ...(['SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGILL', 'SIGSEGV', 'SIGTRAP'] as const),
];

/**
 * Hears all of them until the returned function is called. Not through the library: on Deno, which refuses some signals of a
 * process that broke, a listener that it adds for the second signal hears the first one as well.
 */
function onSignals(act: (signal: NodeJS.Signals) => void): () => void {
  const heard = SIGNALS.map((signal) => [signal, () => act(signal)] as const).filter(([signal, listener]) => {
    try {
      process.on(signal, listener);
      return true;
    } catch {
      return false;
    }
  });
  return () => {
    for (const [signal, listener] of heard) process.off(signal, listener);
  };
}

const FLUSH_MAX_MS = 1000;

/**
 * Waits until the log is written. Whoever reads it may stand still: then a write is under way that never ends, and Node.js
 * would wait for it after its exit, deaf to every signal. All else is over by now, so the process ends itself.
 */
async function flushed(log: Log): Promise<void> {
  const late = createAbort();
  const written = new Promise<void>((resolve) => (log.flush ? log.flush(resolve) : resolve()));
  const isWritten = Promise.race([
    written.then(() => true),
    systemClock.sleep(FLUSH_MAX_MS, late.signal).then(() => false),
  ]);
  if (!(await isWritten)) process.kill(process.pid, 'SIGKILL');
  late.abort();
}

// What `duestream start` and `duestream worker` run: a daemon with its log, until a signal.

/** Runs the roles of the configuration. Resolves when everything has started. */
export async function runStart(config: Config, { only }: { readonly only?: readonly string[] } = {}): Promise<Daemon> {
  const log = createLog({ level: config.log.level, role: config.roles.join('+') });
  const around = createEmitter();
  const daemon = createDaemonOf({ config, redis: redisOf(config) }, { log, around, only });
  const { shutdownMs } = config.worker;
  const doomed: Service['doomed'] = (end) => {
    daemon.events.on('worker.exhausted', ({ lost, concurrency }) => end(`${lost} of ${concurrency} slots are lost`));
    daemon.events.on('schema.refused', ({ why }) => end(why, errorCatalogue['wrong-schema'].exit));
  };
  const service = { start: daemon.start, stop: daemon.stop, doomed };
  if (!(await runUntilSignal(service, { shutdownMs, log, events: around }))) return daemon;
  const address = daemon.http();
  log.info({ redis: daemon.redisLabel, roles: config.roles, ...(address ? { http: address } : {}) }, 'started');
  return daemon;
}
