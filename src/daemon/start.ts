/**
 * What `duestream start` and `duestream worker` run: a daemon with its log, until a signal.
 */

import type { Config } from '../config/options.ts';
import { redisOf } from '../config/redis-options.ts';
import { createEmitter } from '../job/events.ts';
import { errorCatalogue } from '../kernel/errors.ts';
import { createDaemonOf, type Daemon } from './daemon.ts';
import { createLog, logEvents } from './log.ts';
import { runUntilSignal, type Service } from './run.ts';

/** Runs the roles of the configuration. Resolves when everything has started. */
export async function runStart(config: Config, { only }: { readonly only?: readonly string[] } = {}): Promise<Daemon> {
  const log = createLog({ level: config.log.level, role: config.roles.join('+') });
  const around = createEmitter();
  const daemon = createDaemonOf({ config, redis: redisOf(config) }, { log, around, only });
  const unlog = logEvents(daemon.events, log);
  const stop = async () => {
    await daemon.stop();
    unlog();
  };
  const { shutdownMs } = config.worker;
  const doomed: Service['doomed'] = (end) => {
    daemon.events.on('worker.exhausted', ({ lost, concurrency }) => end(`${lost} of ${concurrency} slots are lost`));
    daemon.events.on('schema.refused', ({ why }) => end(why, errorCatalogue['wrong-schema'].exit));
  };
  const service = { start: daemon.start, stop, doomed };
  if (!(await runUntilSignal(service, { shutdownMs, log, events: around }))) return daemon;
  const address = daemon.http();
  log.info({ redis: daemon.redisLabel, roles: config.roles, ...(address ? { http: address } : {}) }, 'started');
  return daemon;
}
