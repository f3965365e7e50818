/** The HTTP server of a daemon with its API, as the configuration says them. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { queueOptions } from '../config/load.ts';
import { type Config, doneLimits } from '../config/options.ts';
import { type Api, createApi } from '../http/api/api.ts';
import type { BackendOptions } from '../http/api/backend.ts';
import type { GuestOptions } from '../http/api/guests.ts';
import { createPages } from '../http/pages.ts';
import { createHttp, type Http, type HttpOptions, type Tls } from '../http/server.ts';
import type { Emitter } from '../job/events.ts';
import { queueFrom } from '../job/queue.ts';
import { createAbort } from '../kernel/abort.ts';
import { systemClock } from '../kernel/clock.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { type Log, silentLog } from '../kernel/log.ts';
import { reasonOf } from '../kernel/reason.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { createRemoteWork, type RemoteWork } from '../remote/remote-work.ts';
import type { DaemonSettings } from './input.ts';
import { tryTarget } from './try-target.ts';

/** @throws DuestreamError `bad-config` for an address beyond loopback without a token, or a certificate that is none */
export function createHttpWindow(
  settings: DaemonSettings,
  shown: Pick<HttpOptions, 'live' | 'ready' | 'scrape' | 'contentType'>,
  {
    log = silentLog,
    events,
    redis,
  }: { readonly log?: Log | undefined; readonly events: Emitter; readonly redis: () => Redis | undefined },
): Http {
  const { host, port, token, keepAliveMs, pollsMax } = settings.config.http;
  const tls = tlsOf(settings.config);
  const work = workOf(settings, events);
  const api = apiOf(settings, log, { work, tryTarget: triesOf(settings, redis) });
  const pages = api && createPages({ ...hostsOf(settings.config), isTls: tls !== undefined });
  const { orNextPort } = settings;
  const own = { host, port, orNextPort, token, keepAliveMs, log, tls, ...(work && { pollsMax }) };
  const http = createHttp({ ...own, api: api?.fetch, pages, ...shown });
  return {
    async start() {
      const listening = await http.start();
      work?.start();
      return listening;
    },
    async stop() {
      api?.drain();
      await http.stop();
      await api?.stop();
    },
  };
}

/** Where an application has the API, and its login; what workers over HTTP come to; and what tries targets. */
type Mounting = Pick<GuestOptions, 'mountedAt' | 'authorize'> &
  Pick<BackendOptions, 'tryTarget'> & { readonly work?: RemoteWork | undefined };

/** The API of a configuration; undefined where it is switched off. */
export function apiOf({ config, redis }: DaemonSettings, log: Log, mounting: Mounting = {}): Api | undefined {
  const { namespace, http, limits, done, mover, targets } = config;
  if (http.api === 'off') return undefined;
  return createApi({
    redis,
    namespace,
    log,
    horizonMs: limits.horizonMs,
    dataBytesMax: limits.dataBytesMax,
    closedMax: mover.closedMax,
    doneWindowMs: done.max === 0 ? 0 : done.windowMs,
    queueOf: (name) => queueFrom(name, queueOptions(config, name)),
    examined: {
      ...{ done: doneLimits(config), closedMax: mover.closedMax },
      ...{ secrets: Object.keys(targets.secrets), sharedLimits: config.sharedLimits },
    },
    readyMax: mover.readyMax,
    title: http.title,
    color: http.color,
    limits: limitsOf(config),
    tokens: http.tokens,
    users: http.userHeader === '' ? undefined : { header: http.userHeader, scopes: http.userScopes },
    isTls: http.cert !== '',
    ...mounting,
    ...hostsOf(config),
  });
}

const limitsOf = ({ http: { bodyBytesMax, batchMax, rateMax, workRateMax } }: Config) => ({
  ...{ bodyBytesMax, batchMax, rateMax, workRateMax },
});

/** What workers in other languages come to; undefined where `http.work` is off: then nothing of it is there. */
function workOf({ config, redis }: DaemonSettings, events: Emitter): RemoteWork | undefined {
  const { namespace, http, worker, done } = config;
  if (http.work === 'off' || http.api === 'off') return undefined;
  return createRemoteWork({
    redis,
    namespace,
    queueOf: (name) => queueFrom(name, queueOptions(config, name), { timeoutMs: worker.timeoutMs }),
    windowMs: done.max === 0 ? 0 : done.windowMs,
    jobLeaseMs: worker.jobLeaseMs,
    beatTtlMs: worker.beatTtlMs,
    pollsMax: http.pollsMax,
    callerPollsMax: http.pollsMaxPerToken,
    events,
  });
}

const [TRIES_MAX, TRIES_MS, TRY_MS] = [10, 60_000, 20_000];

/** Requests to targets that people ask for; undefined without the role dispatcher. */
function triesOf({ config }: DaemonSettings, redis: () => Redis | undefined): BackendOptions['tryTarget'] {
  if (!config.roles.includes('dispatcher')) return undefined;
  const clock = systemClock;
  let sentMs: readonly number[] = [];
  return async (queue, asked, signal) => {
    const nowMs = clock.monotonicMs();
    sentMs = sentMs.filter((ms) => nowMs - ms < TRIES_MS);
    if (sentMs.length >= TRIES_MAX) return undefined;
    sentMs = [...sentMs, nowMs];
    const connection = redis();
    if (!connection) throw new DuestreamError('unavailable', 'the daemon is not connected to Redis yet');
    // Whoever asks waits for the answer, and no proxy in between waits for long.
    const late = createAbort();
    const callOff = clock.timer(TRY_MS, () => late.abort());
    try {
      const parts = { redis: connection, config, clock, signal: AbortSignal.any([signal, late.signal]) };
      return await tryTarget(queue, asked, parts);
    } finally {
      callOff();
    }
  };
}

/** Which names, pages and proxies requests may come by. */
export const hostsOf = ({ http: { host, allowedHosts, allowedOrigins, trustProxy } }: Config) => ({
  host,
  trustProxy,
  allowedHosts: allowedHosts.map((name) => name.toLowerCase()),
  allowedOrigins: allowedOrigins.map((origin) => origin.toLowerCase()),
});

/** @throws DuestreamError `bad-config` for a file that cannot be read, or one without the other */
function tlsOf({ http: { cert, key } }: Config): Tls | undefined {
  if (cert === '' && key === '') return undefined;
  if (cert === '' || key === '') {
    throw new DuestreamError('bad-config', 'http.cert and http.key belong together; allowed: both or none');
  }
  return { cert: contentOf('http.cert', cert), key: contentOf('http.key', key) };
}

function contentOf(name: string, file: string): string {
  try {
    return readFileSync(resolve(file), 'utf8');
  } catch (error) {
    throw new DuestreamError('bad-config', `${name} cannot be read: ${reasonOf(error)}`, { cause: error });
  }
}
