/** What `duestream outbox relay` runs: the relay of a module's outbox, with its log and its metrics, until a signal. */
import { type Config, doneLimits } from '../config/options.ts';
import { redisOf } from '../config/redis-options.ts';
import { createHttp } from '../http/server.ts';
import { createEmitter } from '../job/events.ts';
import { version } from '../kernel/version.ts';
import { createOutboxMetrics } from '../metrics/outbox.ts';
import { createRelay } from '../sql/relay.ts';
import { loadOutbox } from './handler-module.ts';
import { createLog } from './log.ts';
import { runUntilSignal } from './run.ts';

/** The relay has no shutdown of handlers: it stops within 10 s, and the module then closes its connections. */
const SHUTDOWN_MS = 15_000;

/** Resolves when the relay has started. `withHttp`: probes and metrics are served. */
export async function runRelay(
  config: Config,
  { module, withHttp }: { readonly module: string; readonly withHttp: boolean },
): Promise<void> {
  const { dialect, run, queues, close } = await loadOutbox(module);
  const log = createLog({ level: config.log.level, role: 'relay' });
  const relay = createRelay({
    dialect,
    run,
    queues,
    log,
    redis: redisOf(config),
    namespace: config.namespace,
    horizon: config.limits.horizonMs,
    dataBytesMax: config.limits.dataBytesMax,
    closedMax: config.mover.closedMax,
    doneWindow: doneLimits(config).windowMs,
  });
  const metrics = createOutboxMetrics(relay);
  const { host, port, token } = config.http;
  const http = withHttp
    ? createHttp({
        host,
        port,
        token,
        log,
        live: () => ({
          ok: true,
          detail: { version, ...relay.counts(), stalled: relay.stalled().map(({ queue }) => queue) },
        }),
        ready: () =>
          relay.state().then(
            (state) => ({ ok: true, detail: { ...state } }),
            () => ({ ok: false, detail: { database: 'does not answer' } }),
          ),
        scrape: metrics.scrape,
        contentType: metrics.contentType,
      })
    : undefined;
  const service = {
    async start() {
      const address = await http?.start();
      relay.start();
      log.info({ dialect, ...(address ? { http: address } : {}) }, 'started');
    },
    async stop() {
      metrics.close();
      await relay.stop();
      await http?.stop();
      await close?.();
    },
  };
  await runUntilSignal(service, { shutdownMs: SHUTDOWN_MS, log, events: createEmitter() });
}
