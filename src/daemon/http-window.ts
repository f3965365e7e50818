/** The HTTP server of a daemon with its API, as the configuration says them. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { queueOptions } from '../config/load.ts';
import { type Config, doneLimits } from '../config/options.ts';
import { type Api, createApi } from '../http/api/api.ts';
import type { GuestOptions } from '../http/api/guests.ts';
import { createPages } from '../http/pages.ts';
import { createHttp, type Http, type HttpOptions, type Tls } from '../http/server.ts';
import { queueFrom } from '../job/queue.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { type Log, silentLog } from '../kernel/log.ts';
import { reasonOf } from '../kernel/reason.ts';
import type { DaemonSettings } from './input.ts';

/** @throws DuestreamError `bad-config` for an address beyond loopback without a token, or a certificate that is none */
export function createHttpWindow(
  settings: DaemonSettings,
  shown: Pick<HttpOptions, 'live' | 'ready' | 'scrape' | 'contentType'>,
  log: Log = silentLog,
): Http {
  const { host, port, token, keepAliveMs } = settings.config.http;
  const tls = tlsOf(settings.config);
  const api = apiOf(settings, log);
  const pages = api && createPages({ ...hostsOf(settings.config), isTls: tls !== undefined });
  const { orNextPort } = settings;
  const http = createHttp({ host, port, orNextPort, token, keepAliveMs, log, tls, api: api?.fetch, pages, ...shown });
  return {
    start: http.start,
    async stop() {
      api?.drain();
      await http.stop();
      await api?.stop();
    },
  };
}

/** Where an application has the API, and its login. */
type Mounting = Pick<GuestOptions, 'mountedAt' | 'authorize'>;

/** The API of a configuration; undefined where it is switched off. */
export function apiOf({ config, redis }: DaemonSettings, log: Log, mounting: Mounting = {}): Api | undefined {
  const { namespace, http, limits, done, mover } = config;
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
    examined: { done: doneLimits(config), closedMax: mover.closedMax },
    readyMax: mover.readyMax,
    title: http.title,
    color: http.color,
    limits: { bodyBytesMax: http.bodyBytesMax, batchMax: http.batchMax, rateMax: http.rateMax },
    tokens: http.tokens,
    users: http.userHeader === '' ? undefined : { header: http.userHeader, scopes: http.userScopes },
    isTls: http.cert !== '',
    ...mounting,
    ...hostsOf(config),
  });
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
