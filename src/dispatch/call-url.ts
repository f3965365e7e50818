/**
 * A handler that calls a URL for each job: a signed request through the guard, and what its answer means. It is an ordinary handler of
 * an ordinary worker, so leases, retries, limits, dead letters and the history of a job are those of every other queue.
 */
import type { Job } from '../job/job.ts';
import { Unrecoverable } from '../job/outcome.ts';
import { readTargetUrl } from '../job/target-url.ts';
import { asConfig, checkFunction, checkNames, durationIn } from '../kernel/checks.ts';
import { systemClock } from '../kernel/clock.ts';
import { type DurationInput, durationMs, show } from '../kernel/duration.ts';
import { DuestreamError, messageOf } from '../kernel/errors.ts';
import { version } from '../kernel/version.ts';
import type { HandlerContext } from '../worker/run/handler-context.ts';
import { type AnswerRules, settle, type TargetResult } from './answers.ts';
import { createGuard, isNamed } from './guard/guard.ts';
import type { Certificate, EgressProxy } from './send/dial.ts';
import { createSender, type OutgoingCall, type Sender } from './send/sender.ts';
import { signWebhook, type WebhookSecrets } from './signature.ts';

const METHODS = ['POST', 'PUT', 'PATCH', 'DELETE', 'GET', 'HEAD'] as const;

/** Where the jobs of a queue go, and where they may never go. */
export interface CallUrlOptions<Data = unknown> {
  /** One URL for all jobs, or a function of the job. What it returns must be on one of `hosts`. */
  readonly url: string | ((job: Job<Data>) => string);
  /** Hosts that may be called: `api.example.com`, `*.example.com`, or `*` for all. Default: the host of `url`, where that is a text. */
  readonly hosts?: readonly string[] | undefined;
  /** Default `POST`. `GET` and `HEAD` have no body. */
  readonly method?: (typeof METHODS)[number] | undefined;
  /** The text that is sent. Default: the data of the job as JSON. */
  readonly body?: ((job: Job<Data>) => string) | undefined;
  /** Default `application/json`. */
  readonly contentType?: string | undefined;
  /** Sent with each request. Those that this handler makes itself are refused. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Signs each request as Standard Webhooks has it, with each of them, the newest first. Default: requests are not signed. */
  readonly secrets?: WebhookSecrets | undefined;
  /** Of the whole request. Default 30 s, at most 15 minutes; never longer than the `timeout` of the job. */
  readonly timeout?: DurationInput | undefined;
  /** A job that is still answered 429 so long after its due time is dead. Default 24 h. */
  readonly maxAge?: DurationInput | undefined;
  /** Statuses that mean another try, such as `[404, 409]`. */
  readonly retryOn?: readonly number[] | undefined;
  /** Statuses that make a dead letter at once, such as `[500]`. */
  readonly deadOn?: readonly number[] | undefined;
  /** Whether the answer is kept, in results and in reasons. Default true; never that of a network of `allow`. */
  readonly keepAnswer?: boolean | undefined;
  /** Networks beyond the public internet that may be called: `10.20.0.0/16`. This machine only where its address is named alone. */
  readonly allow?: readonly string[] | undefined;
  /** Networks that may not be called, whatever `allow` says. */
  readonly deny?: readonly string[] | undefined;
  /** Local names that may be called, `hook.default.svc` or `*.svc.cluster.local`; their addresses must be in `allow`. */
  readonly names?: readonly string[] | undefined;
  /** Prefixes of 96 bits by which this network reaches IPv4: `64:ff9b::/96`. */
  readonly nat64?: readonly string[] | undefined;
  /** Roots for TLS, in PEM, in the place of those of Node. */
  readonly ca?: readonly string[] | undefined;
  /** A certificate that is shown to its hosts. */
  readonly certificate?: Certificate | undefined;
  /** All requests leave through it, by CONNECT. */
  readonly proxy?: EgressProxy | undefined;
}

const OPTIONS: readonly string[] = Object.keys({
  ...{
    url: 0,
    hosts: 0,
    method: 0,
    body: 0,
    contentType: 0,
    headers: 0,
    secrets: 0,
    timeout: 0,
    maxAge: 0,
    retryOn: 0,
  },
  ...{ deadOn: 0, keepAnswer: 0, allow: 0, deny: 0, names: 0, nat64: 0, ca: 0, certificate: 0, proxy: 0 },
} satisfies Record<keyof CallUrlOptions, number>);

const TIMEOUT_MS = 30_000;
const TIMEOUT_MAX_MS = 900_000;
const MAX_AGE_MS = 86_400_000;

/**
 * Makes a handler that calls a URL. A 2xx is the end of the job; 429 puts it aside; 408, 425, 5xx and no answer are failures that
 * are tried again; all others, redirects too, make a dead letter. A request goes to the public internet only, unless `allow` says more.
 *
 * @throws DuestreamError `bad-config`
 * @example
 * const hooks = defineQueue<{ order: number }>('hooks', { attempts: 8, perGroup: 10, fair: true });
 * const secrets = process.env.WEBHOOK_SECRET;
 * const worker = createWorker(hooks, callUrl({ url: 'https://api.example.com/due', secrets }), { redis });
 */
export function callUrl<Data = unknown>(
  options: CallUrlOptions<Data>,
): (job: Job<Data>, context: HandlerContext) => Promise<TargetResult> {
  const target = readOptions(options);
  return async (job, context) => {
    const call = callFor(job, context, target);
    const end = await target.sender.send(call, context.signal);
    if (end.kind === 'no-answer') context.log.warn({ why: end.why, detail: end.detail }, 'the target gave no answer');
    const at = { nowMs: systemClock.wallMs(), askedDueMs: job.askedDueMs, random: Math.random() };
    return settle(end, target.rules, at);
  };
}

interface Target<Data> {
  readonly options: CallUrlOptions<Data>;
  readonly hosts: readonly string[];
  readonly timeoutMs: number;
  readonly rules: AnswerRules;
  readonly sender: Sender;
}

function readOptions<Data>(options: CallUrlOptions<Data>): Target<Data> {
  checkNames(options, OPTIONS, 'callUrl');
  return asConfig(() => {
    const { method = 'POST', headers = {}, secrets, proxy } = options;
    if (!METHODS.includes(method)) throw bad(`method of callUrl is ${show(method)}; allowed: ${METHODS.join(', ')}`);
    checkHeaders(headers);
    // A wrong secret is found when the worker is made, and not by the first job.
    if (secrets !== undefined) signWebhook({ id: 'x', body: '' }, secrets);
    const guard = createGuard({ ...options, proxyResolves: proxy?.resolves });
    return {
      options,
      hosts: hostsOf(options),
      timeoutMs: durationIn(options.timeout ?? TIMEOUT_MS, 'timeout of callUrl', { min: 1, max: TIMEOUT_MAX_MS }),
      rules: {
        retryOn: options.retryOn ?? [],
        deadOn: options.deadOn ?? [],
        maxAgeMs: durationMs(options.maxAge ?? MAX_AGE_MS, 'maxAge of callUrl'),
        keepAnswer: options.keepAnswer ?? true,
      },
      sender: createSender({ guard, clock: systemClock, ca: options.ca, proxy }),
    };
  });
}

function hostsOf<Data>({ url, hosts }: CallUrlOptions<Data>): readonly string[] {
  if (typeof url === 'string') return hosts ?? [readTargetUrl(url, 'url of callUrl').host];
  checkFunction(url, 'url of callUrl');
  if (hosts) return hosts;
  throw bad(
    "callUrl has a function for url and no hosts; allowed: hosts such as ['api.example.com', '*.example.com'], or ['*'] for all",
  );
}

const bad = (message: string) => new DuestreamError('bad-config', message);

/** What this handler makes itself, or what belongs to a connection. */
const OWN_HEADERS =
  /^(webhook-.*|idempotency-key|duestream-.*|traceparent|tracestate|baggage|user-agent|host|content-.*|connection|keep-alive|transfer-encoding|te|trailer|upgrade|expect|proxy-.*|cookie|accept-encoding)$/i;

function checkHeaders(headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) {
    if (!/^[\w!#$%&'*+.^`|~-]{1,100}$/.test(name))
      throw bad(`headers of callUrl has ${show(name)}; allowed: names of HTTP headers`);
    if (OWN_HEADERS.test(name))
      throw bad(`headers of callUrl has ${name}, which the handler makes itself; contentType is an option`);
    // The value may be a secret, and is not quoted.
    if (!/^[\x20-\x7e]{0,8192}$/.test(value))
      throw bad(`header ${name} of callUrl has another character than printable ASCII, or more than 8,192`);
  }
}

function callFor<Data>(job: Job<Data>, context: HandlerContext, target: Target<Data>): OutgoingCall {
  const { options, hosts } = target;
  const { method = 'POST', secrets, contentType = 'application/json' } = options;
  const url = typeof options.url === 'string' ? options.url : options.url(job);
  checkHost(url, hosts);
  const isBare = method === 'GET' || method === 'HEAD';
  const body = isBare ? undefined : (options.body?.(job) ?? JSON.stringify(job.data ?? null));
  const id = webhookIdOf(job);
  return {
    url,
    method,
    body,
    timeoutMs: target.timeoutMs,
    certificate: options.certificate,
    headers: {
      ...options.headers,
      ...carried(job),
      ...(isBare ? {} : { 'Content-Type': contentType }),
      'User-Agent': `duestream/${version}`,
      'Idempotency-Key': id,
      'Duestream-Token': context.token,
      'Duestream-Attempt': String(context.attempt),
      'Duestream-Due': String(job.askedDueMs),
      ...(secrets === undefined ? { 'webhook-id': id } : signWebhook({ id, body: body ?? '' }, secrets)),
    },
  };
}

/** Whoever may write jobs may not choose where requests go. @throws Unrecoverable */
function checkHost(url: string, hosts: readonly string[]): void {
  try {
    const { host } = readTargetUrl(url, 'the URL');
    if (hosts.includes('*') || isNamed(host, hosts)) return;
    throw new Unrecoverable(`target-refused: ${host} is not in hosts`);
  } catch (error) {
    if (error instanceof Unrecoverable) throw error;
    throw new Unrecoverable(`target-refused: ${messageOf(error)}`);
  }
}

/**
 * The same over retries, crashes, edits and replays of a job, and another one for a new job of its id. The standard wants no full stop in it.
 */
export const webhookIdOf = ({ queue, id, mark }: Pick<Job, 'queue' | 'id' | 'mark'>): string =>
  [queue, id, mark].map((part) => encodeURIComponent(part).replaceAll('.', '%2E')).join('/');

const CARRIED = ['traceparent', 'tracestate', 'baggage'] as const;

/** The trace of the call that made the job. */
function carried({ headers }: Pick<Job, 'headers'>): Readonly<Record<string, string>> {
  const found = CARRIED.flatMap((name) => {
    const value = headers[name];
    return value !== undefined && /^[\x20-\x7e]*$/.test(value) ? [[name, value] as const] : [];
  });
  return Object.fromEntries(found);
}
