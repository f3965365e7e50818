/**
 * What a handler can ask of Redis beside its own job: the calls of a client, on the worker's connection. Made when a
 * handler first asks for them; a worker whose handlers never do has nothing of it.
 */
import { createCallsOn } from '../../client/calls/session.ts';
import { settingsOf } from '../../client/calls/settings.ts';
import { jobsOver } from '../../client/client.ts';
import type { ScheduleChain } from '../../client/jobs/middleware.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { Settings } from '../options.ts';
import type { HandlerCalls } from './handlers.ts';

const RETRY_BUDGET_MS = 10_000;

export function createHandlerCalls(
  commands: Redis,
  settings: Pick<Settings, 'redis' | 'namespace' | 'windowMs' | 'clock'>,
  { chain, giveUp }: { readonly chain: ScheduleChain; readonly giveUp: AbortSignal },
): () => HandlerCalls {
  const { redis, namespace, windowMs, clock } = settings;
  let made: HandlerCalls | undefined;
  function make(): HandlerCalls {
    // A repeated call is recognised within the window only.
    const retryBudget = windowMs === 0 ? RETRY_BUDGET_MS : Math.min(RETRY_BUDGET_MS, windowMs / 2);
    const own = settingsOf({ redis, namespace, clock, retryBudget, doneWindow: windowMs, name: 'handlers' });
    return jobsOver(own, createCallsOn(commands, own, giveUp), chain);
  }
  return () => (made ??= make());
}
