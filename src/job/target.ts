/**
 * What a queue says of the URL that its jobs call. It stands in Redis and on pages, so it has no secret in it: secrets, values of
 * headers and certificates are names here, and the daemon that calls has them in its configuration (`targets`).
 *
 * A queue with a target is served by daemons with the role `dispatcher` and by nobody else. So what of it cannot be read is a target
 * too: a process that took such a queue for one of workers would run its jobs.
 */
import { checkNames, durationIn, type Range, wholeNumber } from '../kernel/checks.ts';
import { type DurationInput, durationText, show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { isNamed, readTargetUrl } from './target-url.ts';

export const TARGET_METHODS = ['POST', 'PUT', 'PATCH', 'DELETE', 'GET', 'HEAD'] as const;
/** How a target is called. */
export type TargetMethod = (typeof TARGET_METHODS)[number];

export const TARGET_FORMATS = ['cloudevents'] as const;
/** What a request has besides, so that receivers know what it is. */
export type TargetFormat = (typeof TARGET_FORMATS)[number];

/** Where the jobs of a queue go, as somebody says it. */
export interface TargetOptions {
  /** As `https://api.example.com/due`. */
  readonly url: string;
  /** Hosts that may be called: `api.example.com`, `*.example.com`, or `*` for all. Default: the host of `url`. */
  readonly hosts?: readonly string[] | undefined;
  /** Default `POST`. `GET` and `HEAD` have no body. */
  readonly method?: TargetMethod | undefined;
  /** The name of the secrets that sign each request, in `targets.secrets` of the dispatcher. Default: requests are not signed. */
  readonly secret?: string | undefined;
  /** Sent with each request. A value `$crm` is the one that the dispatcher has in `targets.values.crm`. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Default `application/json`. */
  readonly contentType?: string | undefined;
  /** `cloudevents`: the request is an event of CloudEvents 1.0 too, in binary mode. Not with `GET` and `HEAD`. Default: none. */
  readonly format?: TargetFormat | undefined;
  /** Of the whole request. Default 30 s, at most 15 minutes. */
  readonly timeout?: DurationInput | undefined;
  /** A job that is still answered 429 so long after its due time is dead. Default 24 h. */
  readonly maxAge?: DurationInput | undefined;
  /** Statuses that mean another try, such as `[404, 409]`. */
  readonly retryOn?: readonly number[] | undefined;
  /** Statuses that make a dead letter at once, such as `[500]`. */
  readonly deadOn?: readonly number[] | undefined;
  /** Whether the answer is kept, in results and in reasons. Default true. */
  readonly keepAnswer?: boolean | undefined;
  /** The name of the certificate that is shown, in `targets.certificates` of the dispatcher. */
  readonly certificate?: string | undefined;
}

/** A URL alone, or more of it. */
export type TargetInput = string | TargetOptions;

/** The same as it is kept: durations as texts, and no part that nobody said. */
export type QueueTarget = Omit<TargetOptions, 'timeout' | 'maxAge'> & {
  readonly timeout?: string | undefined;
  readonly maxAge?: string | undefined;
};

/** What one job says of its request, within what its queue says. */
export interface JobTargetOptions {
  /** A path such as `/orders/7`, where the queue goes otherwise; or a URL on one of the `hosts` of the queue. */
  readonly url?: string | undefined;
  readonly method?: TargetMethod | undefined;
  /** Beside those of the queue, and in their place. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly contentType?: string | undefined;
}

/** A path or a URL alone, or more of it. */
export type JobTargetInput = string | JobTargetOptions;

export const TARGET_TIMEOUT: Range = { min: 1, max: 900_000 };
export const TARGET_MAX_AGE: Range = { min: 1000, max: 30 * 86_400_000 };
export const STATUS: Range = { min: 100, max: 599 };
export const [HOSTS_MAX, HEADERS_MAX, STATUSES_MAX] = [50, 20, 20] as const;
/** Of secrets, values and certificates. */
export const TARGET_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const NAME_ALLOWED = 'a name of 1 to 64 of A-Z a-z 0-9 . _ - that the dispatcher has in its configuration';

/** How each part is read. */
const PARTS: {
  readonly [Part in keyof QueueTarget]-?: (given: unknown, what: string) => NonNullable<QueueTarget[Part]>;
} = {
  url: urlIn,
  hosts: hostsIn,
  method: methodIn,
  secret: nameIn,
  headers: headersIn,
  contentType: contentTypeIn,
  format: formatIn,
  timeout: (given, what) => durationText(durationIn(given as DurationInput, what, TARGET_TIMEOUT)),
  maxAge: (given, what) => durationText(durationIn(given as DurationInput, what, TARGET_MAX_AGE)),
  retryOn: statusesIn,
  deadOn: statusesIn,
  keepAnswer: flagIn,
  certificate: nameIn,
};
const NAMES: readonly string[] = Object.keys(PARTS);

export const TARGET_ALLOWED = `a URL such as https://api.example.com/due, or an object with ${NAMES.slice(0, -1).join(', ')} and ${NAMES.at(-1)}; false for none`;

/** What stands for a target that cannot be read: no dispatcher calls it, and no worker runs its jobs. */
export const UNREADABLE_TARGET: QueueTarget = Object.freeze({ url: '' });

/** @throws DuestreamError `bad-input` */
export function parseTarget(given: unknown, what: string): QueueTarget {
  if (typeof given === 'string') return Object.freeze({ url: urlIn(given, what) });
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw bad(`${what} is ${show(given)}; allowed: ${TARGET_ALLOWED}`);
  }
  checkNames(given, NAMES, what, 'bad-input');
  const said: Readonly<Record<string, unknown>> = { ...given };
  if (said.url === undefined) throw bad(`${what} is an object without url; allowed: ${TARGET_ALLOWED}`);
  const target: QueueTarget = Object.freeze({ url: '', ...readParts(PARTS, said, what) });
  checkHostOf(target, what);
  checkFormat(target, what);
  return target;
}

type Parts = Readonly<Record<string, (given: unknown, what: string) => unknown>>;

/** What is said of each part. @throws DuestreamError `bad-input` */
function readParts(parts: Parts, said: Readonly<Record<string, unknown>>, what: string) {
  const read = Object.entries(parts).flatMap(([name, part]) =>
    said[name] === undefined ? [] : [[name, part(said[name], `${name} of ${what}`)] as const],
  );
  return Object.fromEntries(read);
}

const JOB_PARTS = {
  url: placeIn,
  method: methodIn,
  headers: ownHeadersIn,
  contentType: contentTypeIn,
} satisfies { readonly [Part in keyof JobTargetOptions]-?: (given: unknown, what: string) => unknown };
const JOB_NAMES: readonly string[] = Object.keys(JOB_PARTS);

export const JOB_TARGET_ALLOWED =
  'a path such as `/orders/7`, a URL, or an object with `url`, `method`, `headers`, `contentType`';

/** @throws DuestreamError `bad-input` */
export function parseJobTarget(given: unknown, what: string): JobTargetOptions {
  if (typeof given === 'string') return Object.freeze({ url: JOB_PARTS.url(given, what) });
  if (typeof given !== 'object' || given === null || Array.isArray(given) || Object.keys(given).length === 0) {
    throw bad(`${what} is ${show(given)}; allowed: ${JOB_TARGET_ALLOWED.replaceAll('`', '')}`);
  }
  checkNames(given, JOB_NAMES, what, 'bad-input');
  return Object.freeze(readParts(JOB_PARTS, { ...given }, what));
}

/** Whether what stands in a record is one: a foreign producer may have written it. */
export function isJobTarget(given: unknown): given is JobTargetOptions {
  try {
    return typeof given === 'object' && parseJobTarget(given, 'target') !== undefined;
  } catch {
    return false;
  }
}

/**
 * The target of one job of a queue. Whoever may write jobs may not choose where requests go: the job stays on the host and port of
 * its queue, or on one of its `hosts`, and a queue that calls https is not called by http.
 *
 * @throws DuestreamError `bad-input`
 * @example targetOf({ url: 'https://api.example.com/due' }, { url: '/orders/7' }, 'target').url // 'https://api.example.com/orders/7'
 */
export function targetOf(queue: QueueTarget, own: JobTargetOptions, what: string): QueueTarget {
  const of = readTargetUrl(queue.url, 'url of the target of the queue');
  const place = `${of.isTls ? 'https' : 'http'}://${of.authority}`;
  const url = own.url === undefined ? queue.url : isPath(own.url) ? `${place}${own.url}` : own.url;
  const { isTls, host, authority } = readTargetUrl(url, `url of ${what}`);
  const isThere = authority === of.authority || (queue.hosts !== undefined && isHostOf(host, queue.hosts));
  if (!isThere || (of.isTls && !isTls)) {
    const others = queue.hosts === undefined ? '' : `, and https on ${queue.hosts.join(', ')}`;
    throw bad(`url of ${what} is ${show(url)}; allowed in this queue: paths, ${place}${others}`);
  }
  const target = { ...queue, ...own, url, headers: headersOf(queue, own) };
  checkFormat(target, what);
  return target;
}

/** Names of headers are the same in upper and lower case. */
function headersOf(queue: QueueTarget, own: JobTargetOptions): Readonly<Record<string, string>> {
  const names = new Set(Object.keys(own.headers ?? {}).map((name) => name.toLowerCase()));
  const rest = Object.entries(queue.headers ?? {}).filter(([name]) => !names.has(name.toLowerCase()));
  return { ...Object.fromEntries(rest), ...own.headers };
}

const isPath = (given: unknown): given is string => typeof given === 'string' && given.startsWith('/');

function placeIn(given: unknown, what: string): string {
  if (typeof given !== 'string' || !/^(\/|https?:)/i.test(given)) {
    throw bad(
      `${what} is ${show(given)}; allowed: a path such as /orders/7, or a URL such as https://api.example.com/due`,
    );
  }
  // The form of a path is that of a URL behind its host.
  readTargetUrl(isPath(given) ? `https://a.example${given}` : given, what);
  return given;
}

/** @throws DuestreamError `bad-input` */
function checkHostOf({ url, hosts }: QueueTarget, what: string): void {
  if (hosts === undefined) return;
  const { host } = readTargetUrl(url, `url of ${what}`);
  if (isHostOf(host, hosts)) return;
  throw bad(`hosts of ${what} are ${show(hosts.join(', '))}, without ${host}, to which its url leads; add it`);
}

/** An event has data. @throws DuestreamError `bad-input` */
export function checkFormat({ format, method = 'POST' }: Pick<QueueTarget, 'format' | 'method'>, what: string): void {
  if (format === undefined) return;
  formatIn(format, `format of ${what}`);
  if (method !== 'GET' && method !== 'HEAD') return;
  throw bad(`${what} has format ${format} and method ${method}, which sends no data; allowed: one of them`);
}

/** Whether a host is in a list in which `*` stands for all. */
export const isHostOf = (host: string, hosts: readonly string[]): boolean =>
  hosts.includes('*') || isNamed(host, hosts);

/** As it is said again: a URL alone where there is no more of it. */
export const targetSaid = (target: QueueTarget): TargetInput =>
  Object.keys(target).length === 1 ? target.url : target;

/** Of the registry. What a newer version has said beside is passed over. */
export function decodeTarget(text: string): QueueTarget {
  try {
    const read: Readonly<Record<string, unknown>> = JSON.parse(text);
    return parseTarget(Object.fromEntries(Object.entries(read).filter(([name]) => NAMES.includes(name))), 'target');
  } catch {
    return UNREADABLE_TARGET;
  }
}

/** What a queue with a target cannot be besides. @throws DuestreamError `bad-input` */
export function checkTargetOf(
  queue: string,
  of: { readonly isBroadcast?: boolean; readonly hasCodec?: boolean },
): void {
  const what = of.isBroadcast
    ? 'a broadcast, whose jobs go to every subscriber'
    : 'one with a codec, which no receiver can undo';
  if (!of.isBroadcast && !of.hasCodec) return;
  throw bad(`queue ${queue} has a target, and is ${what}; allowed: one of them`);
}

const bad = (message: string) => new DuestreamError('bad-input', message);

function urlIn(given: unknown, what: string): string {
  readTargetUrl(given, what);
  return String(given);
}

const HOST = /^(\*|(\*\.)?[a-z0-9_.:-]{1,253})$/;

function hostsIn(given: unknown, what: string): readonly string[] {
  const all: readonly unknown[] = Array.isArray(given) ? given : [];
  if (all.length > 0 && all.length <= HOSTS_MAX && all.every(isHost)) return Object.freeze(all.map(String));
  throw bad(
    `${what} is ${show(given)}; allowed: 1 to ${HOSTS_MAX} hosts in lower case such as api.example.com, *.example.com, or * for all`,
  );
}

const isHost = (host: unknown): boolean => typeof host === 'string' && HOST.test(host);

function methodIn(given: unknown, what: string): TargetMethod {
  const known = TARGET_METHODS.find((method) => method === given);
  if (known !== undefined) return known;
  throw bad(`${what} is ${show(given)}; allowed: ${TARGET_METHODS.join(', ')}`);
}

function formatIn(given: unknown, what: string): TargetFormat {
  const known = TARGET_FORMATS.find((format) => format === given);
  if (known !== undefined) return known;
  throw bad(`${what} is ${show(given)}; allowed: ${TARGET_FORMATS.join(', ')}`);
}

function nameIn(given: unknown, what: string): string {
  if (typeof given === 'string' && TARGET_NAME.test(given)) return given;
  // Somebody may have put the secret itself here.
  throw bad(`${what} is no name, and is not shown; allowed: ${NAME_ALLOWED}`);
}

function contentTypeIn(given: unknown, what: string): string {
  if (typeof given === 'string' && /^[\w.+-]{1,100}\/[\w.+-]{1,100}(;[\x20-\x7e]{1,100})?$/.test(given)) return given;
  throw bad(`${what} is ${show(given)}; allowed: a media type such as application/json or text/plain; charset=utf-8`);
}

function statusesIn(given: unknown, what: string): readonly number[] {
  if (!Array.isArray(given) || given.length > STATUSES_MAX) {
    throw bad(`${what} is ${show(given)}; allowed: a list of at most ${STATUSES_MAX} statuses such as [404, 409]`);
  }
  return Object.freeze(given.map((status: unknown) => wholeNumber(status, { what: `a status in ${what}`, ...STATUS })));
}

function flagIn(given: unknown, what: string): boolean {
  if (typeof given === 'boolean') return given;
  throw bad(`${what} is ${show(given)}; allowed: true, false`);
}

// Headers.

/** What the request has by itself, or what belongs to a connection. */
const OWN_HEADERS =
  /^(webhook-.*|idempotency-key|duestream-.*|traceparent|tracestate|baggage|ce-.*|user-agent|host|content-.*|connection|keep-alive|transfer-encoding|te|trailer|upgrade|expect|proxy-.*|cookie|accept-encoding)$/i;

/** @throws DuestreamError `bad-input`, which quotes no value: it may be a secret */
export function checkHeaders(headers: Readonly<Record<string, unknown>>, what: string): void {
  for (const [name, value] of Object.entries(headers)) {
    if (!/^[\w!#$%&'*+.^`|~-]{1,100}$/.test(name))
      throw bad(`${what} has ${show(name)}; allowed: names of HTTP headers`);
    if (OWN_HEADERS.test(name)) {
      throw bad(`${what} has ${name}, which the request has by itself; allowed: others. contentType is an option`);
    }
    if (typeof value !== 'string' || !/^[\x20-\x7e]{0,8192}$/.test(value)) {
      throw bad(`header ${name} in ${what} has another character than printable ASCII, or more than 8,192`);
    }
  }
}

/** Headers that carry what nobody else may know. */
const SECRET_HEADER = /(^|-)(authorization|key|token|secret|password|signature)$/i;

function headersIn(given: unknown, what: string): Readonly<Record<string, string>> {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw bad(`${what} is of type ${typeof given}; allowed: an object of names and texts`);
  }
  const entries = Object.entries(given);
  if (entries.length > HEADERS_MAX) {
    throw bad(`${what} has ${entries.length} headers; allowed: at most ${HEADERS_MAX}`);
  }
  checkHeaders(Object.fromEntries(entries), what);
  for (const [name, value] of entries) {
    const text = String(value);
    if (valueNameOf(text) === undefined && SECRET_HEADER.test(name)) {
      throw bad(
        `header ${name} in ${what} has a value of its own, which would stand in Redis and on pages; allowed: $ and the name of a value in targets.values of the dispatcher, such as "$crm"`,
      );
    }
  }
  return Object.freeze(Object.fromEntries(entries.map(([name, value]) => [name, String(value)])));
}

/** Of a job: secrets and their names are for whoever may set targets. */
function ownHeadersIn(given: unknown, what: string): Readonly<Record<string, string>> {
  const isOfQueue = ([name, text]: readonly [string, unknown]) =>
    SECRET_HEADER.test(name) || valueNameOf(String(text)) !== undefined;
  const [name] = Object.entries(given ?? {}).find(isOfQueue) ?? [];
  if (name === undefined) return headersIn(given, what);
  throw bad(
    `header ${show(name)} in ${what} carries a secret, or names a value of the dispatcher; allowed: in the target of the queue, as "$" and the name of a value`,
  );
}

/** The name of the value that the dispatcher puts there; undefined: it is sent as it stands. @example valueNameOf('$crm') // 'crm' */
export function valueNameOf(text: string): string | undefined {
  const name = text.startsWith('$') ? text.slice(1) : '';
  return TARGET_NAME.test(name) ? name : undefined;
}
