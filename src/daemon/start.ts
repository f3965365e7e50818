/**
 * What `duestream start` and `duestream worker` run: a daemon with its log, until a signal.
 */
import type { Config } from '../config/options.ts';
import { createDaemon, type Daemon } from './daemon.ts';
import { createLog, logEvents } from './log.ts';
import { runUntilSignal } from './run.ts';

/** Runs the roles of the configuration. Resolves when everything has started. */
export async function runStart(config: Config, { only }: { readonly only?: readonly string[] } = {}): Promise<Daemon> {
  const log = createLog({ level: config.log.level, role: config.roles.join('+') });
  const daemon = await createDaemon(config, { log, ...(only ? { only } : {}) });
  const unlog = logEvents(daemon.events, log);
  const stop = async () => {
    await daemon.stop();
    unlog();
  };
  const { shutdownMs } = config.worker;
  if (!(await runUntilSignal({ start: daemon.start, stop }, { shutdownMs, log }))) return daemon;
  const address = daemon.http();
  log.info({ redis: daemon.redisLabel, roles: config.roles, ...(address ? { http: address } : {}) }, 'started');
  return daemon;
}
