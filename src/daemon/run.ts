/**
 * A service in a process of its own: starts it, stops it in order on the first signal, exits at once on the second.
 * The only place that listens to signals or ends the process.
 */
import closeWithGrace from 'close-with-grace';
import { DuestreamError, messageOf } from '../core/errors.ts';
import type { Log } from '../core/log.ts';
import { safe } from './log.ts';

export interface Service {
  readonly start: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

/**
 * Resolves once the service has started (`false`: a signal came first); the process then lives until a signal, and ends with 0 after an orderly stop,
 * 1 after an uncaught error or when the stop took longer than `shutdownMs` and a second.
 */
export async function runUntilSignal(
  service: Service,
  { shutdownMs, log }: { readonly shutdownMs: number; readonly log: Log },
): Promise<boolean> {
  const grace = closeWithGrace(
    {
      delay: shutdownMs + 1000,
      logger: { error: (message?: unknown) => log.error({ error: safe(messageOf(message)) }, 'shutdown') },
      onTimeout: (delay) => log.error({ afterMs: delay }, 'shutdown took too long, exiting'),
      onSecondSignal: (signal) => log.warn({ signal }, 'second signal, exiting at once'),
      // A promise that a handler forgot about is that handler's bug; it must not end other jobs.
      skip: ['unhandledRejection', 'beforeExit'],
    },
    async ({ signal, err }) => {
      if (err) log.error({ error: safe(messageOf(err)), stack: safe(err.stack ?? '') }, 'uncaught error, stopping');
      else log.info({ signal }, 'stopping');
      await service.stop();
      log.info({}, 'stopped');
    },
  );
  process.on('unhandledRejection', (reason) => {
    log.error({ error: safe(messageOf(reason)) }, 'a promise was rejected and nobody listened');
  });
  try {
    await service.start();
    return true;
  } catch (error) {
    // A signal that came meanwhile ends the process by itself, with 0; it is no failure of the start.
    if (error instanceof DuestreamError && error.code === 'stopped') return false;
    grace.uninstall();
    throw error;
  }
}
