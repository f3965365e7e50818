/**
 * What calls a URL for each job, and the handler that applications make of it: a signed request through the guard, and what its
 * answer means. It is an ordinary handler of an ordinary worker, so leases, retries, limits, dead letters and the history of a job
 * are those of every other queue.
 */
import type { Job } from '../job/job.ts';
import { groupOf } from '../job/labels.ts';
import { Unrecoverable } from '../job/outcome.ts';
import {
  checkFormat,
  checkHeaders,
  isHostOf,
  TARGET_MAX_AGE,
  TARGET_METHODS,
  TARGET_TIMEOUT,
  type TargetFormat,
  type TargetMethod,
} from '../job/target.ts';
import { readTargetUrl } from '../job/target-url.ts';
import { asConfig, checkFunction, checkNames, durationIn } from '../kernel/checks.ts';
import { systemClock } from '../kernel/clock.ts';
import { type DurationInput, show } from '../kernel/duration.ts';
import { DuestreamError, messageOf } from '../kernel/errors.ts';
import { version } from '../kernel/version.ts';
import type { HandlerContext } from '../worker/run/handler-context.ts';
import { type AnswerRules, settle, type TargetResult } from './answers.ts';
import { type Admission, createGuard, type Guard } from './guard/guard.ts';
import type { Certificate, EgressProxy } from './send/dial.ts';
import { type CallEnd, createSender, type OutgoingCall, type Sender } from './send/sender.ts';
import { signWebhook, type WebhookSecrets } from './signature.ts';

/** Where the jobs of a queue go, and where they may never go. */
export interface CallUrlOptions<Data = unknown> {
  /** One URL for all jobs, or a function of the job. What it returns must be on one of `hosts`. */
  readonly url: string | ((job: Job<Data>) => string);
  /** Hosts that may be called: `api.example.com`, `*.example.com`, or `*` for all. Default: the host of `url`, where that is a text. */
  readonly hosts?: readonly string[] | undefined;
  /** Default `POST`. `GET` and `HEAD` have no body. */
  readonly method?: TargetMethod | undefined;
  /** The text that is sent. Default: the data of the job as JSON. */
  readonly body?: ((job: Job<Data>) => string) | undefined;
  /** Default `application/json`. */
  readonly contentType?: string | undefined;
  /** `cloudevents`: the request is an event of CloudEvents 1.0 too, in binary mode. Not with `GET` and `HEAD`. Default: none. */
  readonly format?: TargetFormat | undefined;
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
  /**
   * Where your Redis is: no request goes there, whatever `allow` says. `10.20.0.5`, or with its port `127.0.0.1:6390`; on this machine
   * the port alone is refused. Ports that Redis has by default are refused anyhow.
   */
  readonly redis?: readonly string[] | undefined;
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
    format: 0,
    headers: 0,
    secrets: 0,
    timeout: 0,
    maxAge: 0,
    retryOn: 0,
  },
  ...{ deadOn: 0, keepAnswer: 0, allow: 0, deny: 0, redis: 0, names: 0, nat64: 0, ca: 0, certificate: 0, proxy: 0 },
} satisfies Record<keyof CallUrlOptions, number>);

const NOTHING = {};
const TIMEOUT_MS = 30_000;
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
  return createUrlCaller(options).handle;
}

/** What a job has of a start that a request tells of. */
export interface CallStart {
  readonly token: string;
  readonly attempt: number;
}

/** How a request ended, for whoever counts them and closes hosts. */
export interface CallReport {
  readonly queue: string;
  readonly id: string;
  /** '' where the URL could not be read. */
  readonly host: string;
  readonly end: CallEnd;
}

/** The same as a part of a process that serves queues of others: it hears of each request, and can be closed. */
export interface UrlCaller<Data = unknown> {
  readonly handle: (job: Job<Data>, context: HandlerContext) => Promise<TargetResult>;
  /** One request, and what came back, whatever that means for a job. */
  readonly call: (job: Job<Data>, start: CallStart, signal: AbortSignal) => Promise<CallReport>;
  /** To which its request goes; '' where its URL cannot be read. */
  readonly hostOf: (job: Job<Data>) => string;
  /** Where the guard would let a request of the job go, without one. */
  readonly admit: (job: Job<Data>) => Promise<Admission>;
  /** What the end means for the job: returns or throws as a handler. */
  readonly settle: (job: Job<Data>, end: CallEnd) => TargetResult;
  /** Closes the sockets that nothing uses. */
  readonly close: () => void;
}

/** What only a process of ours gives. */
export interface CallerParts {
  /** Where Redis is now, asked at each request: it moves. Beside `redis` of the options. */
  readonly redisNow?: (() => Iterable<string>) | undefined;
  /** What a job says otherwise than the options. @throws DuestreamError for what it may not say: its request is refused */
  readonly ofJob?: ((job: Job) => Partial<CallUrlOptions>) | undefined;
  /** The jobs of the queue go to this host: one without a group that is put aside closes the queue. */
  readonly host?: string | undefined;
  /** Secrets that stand in requests, and in nothing that is kept. */
  readonly hides?: readonly string[] | undefined;
  /** Called with each request that ended, before its job is settled. */
  readonly onCall?: ((report: CallReport) => Promise<void> | void) | undefined;
}

/** @throws DuestreamError `bad-config` */
export function createUrlCaller<Data = unknown>(
  options: CallUrlOptions<Data>,
  { redisNow = () => [], ofJob = () => NOTHING, host, hides, onCall }: CallerParts = {},
): UrlCaller<Data> {
  const target = readOptions(options, redisNow);
  const optionsOf = (job: Job<Data>): CallUrlOptions<Data> => ({ ...target.options, ...refusing(() => ofJob(job)) });
  const call: UrlCaller<Data>['call'] = async (job, start, signal) => {
    const outgoing = callFor(job, start, { ...target, options: optionsOf(job) });
    const end = await target.sender.send(outgoing, signal);
    return { queue: job.queue, id: job.id, host: hostIn(outgoing.url), end };
  };
  const settled: UrlCaller<Data>['settle'] = (job, end) => {
    const isOfQueue =
      host !== undefined && groupOf(job.id) === undefined && hostIn(urlOf(job, optionsOf(job))) === host;
    const closes = isOfQueue ? 'queue' : 'group';
    const at = { nowMs: systemClock.wallMs(), askedDueMs: job.askedDueMs, random: Math.random() };
    return settle(end, { ...target.rules, hides, closes }, at);
  };
  return {
    call,
    settle: settled,
    hostOf: (job) => hostIn(urlOf(job, optionsOf(job))),
    async admit(job) {
      try {
        return await target.guard.admit(urlOf(job, { ...target.options, ...ofJob(job) }));
      } catch (error) {
        if (error instanceof DuestreamError) return { kind: 'refused', why: error.message };
        throw error;
      }
    },
    close: target.sender.close,
    async handle(job, context) {
      const report = await call(job, context, context.signal);
      const { end } = report;
      if (end.kind === 'no-answer') context.log.warn({ why: end.why, detail: end.detail }, 'the target gave no answer');
      await onCall?.(report);
      return settled(job, end);
    },
  };
}

/** '' for what cannot be read: the request is refused then. */
function hostIn(url: string): string {
  try {
    return readTargetUrl(url, 'the URL').host;
  } catch {
    return '';
  }
}

interface Target<Data> {
  readonly options: CallUrlOptions<Data>;
  readonly hosts: readonly string[];
  readonly timeoutMs: number;
  readonly rules: AnswerRules;
  readonly guard: Guard;
  readonly sender: Sender;
}

function readOptions<Data>(options: CallUrlOptions<Data>, redisNow: () => Iterable<string>): Target<Data> {
  checkNames(options, OPTIONS, 'callUrl');
  return asConfig(() => {
    const { method = 'POST', headers = {}, secrets, proxy, redis = [] } = options;
    if (!TARGET_METHODS.includes(method)) {
      throw bad(`method of callUrl is ${show(method)}; allowed: ${TARGET_METHODS.join(', ')}`);
    }
    checkHeaders(headers, 'headers of callUrl');
    checkFormat(options, 'callUrl');
    // A wrong secret is found when the worker is made, and not by the first job.
    if (secrets !== undefined) signWebhook({ id: 'x', body: '' }, secrets);
    const guard = createGuard({
      ...options,
      redis: () => [...redis, ...redisNow()],
      proxyResolves: proxy?.resolves,
    });
    return {
      options,
      hosts: hostsOf(options),
      timeoutMs: durationIn(options.timeout ?? TIMEOUT_MS, 'timeout of callUrl', TARGET_TIMEOUT),
      rules: {
        retryOn: options.retryOn ?? [],
        deadOn: options.deadOn ?? [],
        maxAgeMs: durationIn(options.maxAge ?? MAX_AGE_MS, 'maxAge of callUrl', TARGET_MAX_AGE),
        keepAnswer: options.keepAnswer ?? true,
      },
      guard,
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

function callFor<Data>(job: Job<Data>, start: CallStart, target: Target<Data>): OutgoingCall {
  const { options, hosts } = target;
  const { method = 'POST', secrets, contentType = 'application/json' } = options;
  const url = urlOf(job, options);
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
      ...(options.format === undefined ? {} : eventOf(job, id)),
      ...(isBare ? {} : { 'Content-Type': contentType }),
      'User-Agent': `duestream/${version}`,
      'Idempotency-Key': id,
      'Duestream-Token': start.token,
      'Duestream-Attempt': String(start.attempt),
      'Duestream-Due': String(job.askedDueMs),
      ...(secrets === undefined ? { 'webhook-id': id } : signWebhook({ id, body: body ?? '' }, secrets)),
    },
  };
}

const urlOf = <Data>(job: Job<Data>, { url }: Pick<CallUrlOptions<Data>, 'url'>): string =>
  typeof url === 'string' ? url : url(job);

/** A value of a header of CloudEvents: space, quotation mark, % and what is not printable ASCII are written with %. */
const eventText = (text: string): string =>
  text.replaceAll(/[^\x21-\x7e]|["%]/gu, (char) =>
    [...Buffer.from(char)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
  );

/** The event that a request stands for: of the queue, of the kind that the name of the job says, at the time when it was to be due. */
const eventOf = ({ queue, name, askedDueMs }: Job, id: string): Readonly<Record<string, string>> => ({
  'ce-specversion': '1.0',
  'ce-id': eventText(id),
  'ce-source': eventText(`/queues/${encodeURIComponent(queue)}`),
  'ce-type': eventText(name),
  'ce-time': new Date(askedDueMs).toISOString(),
});

/** Whoever may write jobs may not choose where requests go. @throws Unrecoverable */
function checkHost(url: string, hosts: readonly string[]): void {
  const { host } = refusing(() => readTargetUrl(url, 'the URL'));
  if (!isHostOf(host, hosts)) throw new Unrecoverable(`target-refused: ${host} is not in hosts`);
}

/** @throws Unrecoverable for what it throws */
function refusing<Read>(read: () => Read): Read {
  try {
    return read();
  } catch (error) {
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
