/**
 * Spans of OpenTelemetry: one for each call that makes jobs, and one for each start of a handler.
 *
 *  a request ──▶ send reminders ·· headers of the job ··▶ process reminders ──▶ what the handler does
 *  └────── one trace ─────────┘    for three days         └────── a trace of its own ─────────────┘
 *                   ▲──────────────────── link ───────────┘
 *
 * A start is no child of the call: days may lie between them, a job may start several times, and no backend keeps a trace open for that
 * long. So each start has a trace of its own, with a link to the call, whose context the job carries in its headers. A start that fails
 * and the retry after it are two traces with the same link.
 *
 * Where no SDK is registered there is no span: what begins one here then gives undefined. What an SDK throws never reaches a job or a
 * call.
 */
import type { Context, Link, Span, SpanContext, TextMapGetter, TextMapSetter, Tracer } from '@opentelemetry/api';
import { safe } from '../job/event-log.ts';
import type { Emitter, EventName, Events } from '../job/events.ts';
import type { Job } from '../job/job.ts';
import { type Carry, type JobHeaders, withHeaders } from '../job/labels.ts';
import type { Attempted } from '../job/outcome.ts';
import { createCallbacks } from '../kernel/callbacks.ts';
import { isPromise } from '../kernel/checks.ts';
import { DuestreamError, messageOf } from '../kernel/errors.ts';
import { withoutCredentials } from '../kernel/reason.ts';
import { type Registered, ROOT, registered, spanIn, withSpan } from '../kernel/telemetry.ts';
import { version } from '../kernel/version.ts';
import {
  dueAt,
  ERROR_TYPE,
  endOf,
  exception,
  isOff,
  messageId,
  messaging,
  OUTCOME,
  SCOPE,
  STATUS,
  spanName,
  startOf,
} from './names.ts';

// Numbers of the enums of the package, which is not loaded here.
const PRODUCER = 3;
const CONSUMER = 4;
const ERROR = 2;

interface Tracing {
  readonly parts: Registered;
  readonly tracer: Tracer;
}

/** Where spans go; undefined without an SDK. */
function tracing(): Tracing | undefined {
  const parts = registered();
  if (!parts?.trace || isOff()) return undefined;
  return { parts, tracer: parts.trace.getTracer(SCOPE, version) };
}

const callbacks = createCallbacks('OpenTelemetry: the');

/** What an SDK throws ends here, and is told once. */
function safely<Result>(what: string, act: () => Result): Result | undefined {
  let result: Result | undefined;
  const note = () => {
    result = act();
  };
  callbacks.call(what, note, undefined);
  return result;
}

/** A call that makes jobs. */
export interface SendSpan {
  /** Gives jobs the context of the span. A job that carries the context of its caller keeps it, and the span links to that. */
  readonly carry: Carry;
  /** Carries the call out in the span, which ends with it. */
  readonly through: <T>(call: () => Promise<T>) => Promise<T>;
  /** The same of a call that answers at once, or by a promise. */
  readonly around: (call: () => unknown) => unknown;
}

/**
 * @param given the queue as a caller names it, and not checked yet
 * @param jobs those of a list; left out: the call makes one job
 */
export function beginSend(given: { readonly name: string } | string, jobs?: readonly unknown[]): SendSpan | undefined {
  const found = tracing();
  if (!found) return undefined;
  return safely('span of a call', () => {
    const queue = String(typeof given === 'string' ? given : given?.name);
    return sendSpan(found, { queue, count: jobs?.length }, found.parts.context?.active());
  });
}

/** Of a leader, which makes jobs when their time has come: it belongs to nothing that goes on where the leader was started. */
export function beginFires(queue: string, count: number): SendSpan | undefined {
  const found = count === 0 ? undefined : tracing();
  return found && safely('span of a leader', () => sendSpan(found, { queue, count }));
}

function sendSpan(
  { parts, tracer }: Tracing,
  jobs: { readonly queue: string; readonly count: number | undefined },
  parent: Context = ROOT,
): SendSpan {
  const operating = { operation: 'send', ...jobs } as const;
  const span = tracer.startSpan(spanName(operating), { kind: PRODUCER, attributes: messaging(operating) }, parent);
  return new Sending(parts, span, withSpan(parent, span));
}

/** For jobs that come of something that goes on here and has a span already; undefined where nothing has. */
export function carrying(): Carry | undefined {
  const parts = tracing()?.parts;
  const context = parts?.context?.active();
  if (!parts || !context || !spanIn(context)) return undefined;
  return safely('context of a job', () => {
    const carried = injected(parts, context);
    return (given) => (given && originIn(parts, given) ? given : withHeaders(given, carried));
  });
}

class Sending implements SendSpan {
  readonly #parts: Registered;
  readonly #span: Span;
  readonly #context: Context;
  readonly #carried: JobHeaders;

  constructor(parts: Registered, span: Span, context: Context) {
    this.#parts = parts;
    this.#span = span;
    this.#context = context;
    this.#carried = injected(parts, context);
  }

  readonly carry: Carry = (given) => {
    if (given === undefined) return this.#carried;
    return safely('context of a job', () => this.#beside(given)) ?? given;
  };

  #beside(given: JobHeaders): JobHeaders {
    const origin = originIn(this.#parts, given);
    if (!origin) return withHeaders(given, this.#carried);
    // Older SDKs take links at the beginning alone.
    this.#span.addLink?.({ context: origin });
    return given;
  }

  async through<T>(call: () => Promise<T>): Promise<T> {
    try {
      const result = await within(this.#parts, this.#context, call);
      this.#ended(result);
      return result;
    } catch (error) {
      this.#failed(error);
      throw error;
    }
  }

  around(call: () => unknown): unknown {
    let result: unknown;
    try {
      result = within(this.#parts, this.#context, call);
    } catch (error) {
      this.#failed(error);
      throw error;
    }
    if (isPromise(result)) return this.through(async () => result);
    this.#ended(result);
    return result;
  }

  /** Of a list nothing is said of each job. */
  #ended(result: unknown): void {
    safely('span of a call', () => {
      if (typeof result === 'object' && result !== null) this.#note(result);
      this.#span.end();
    });
  }

  #note(result: object): void {
    if ('id' in result && typeof result.id === 'string') this.#span.setAttributes(messageId(result.id));
    if ('status' in result && typeof result.status === 'string') this.#span.setAttribute(STATUS, result.status);
    if ('dueMs' in result && typeof result.dueMs === 'number') this.#span.setAttributes(dueAt(result.dueMs));
  }

  #failed(error: unknown): void {
    safely('span of a call', () => {
      this.#span.setAttribute(ERROR_TYPE, error instanceof DuestreamError ? error.code : '_OTHER');
      this.#span.setStatus({ code: ERROR, message: safe(messageOf(error)) });
      this.#span.end();
    });
  }
}

/** A start of a handler. */
export interface StartSpan {
  /** What is called in it belongs to it: spans that it makes are children, and lines of the log have its ids. */
  readonly inside: <T>(act: () => T) => T;
  /** Tells events of the start in it, and notes how the start ended. */
  readonly over: (events: Pick<Emitter, 'emit'>) => Pick<Emitter, 'emit'>;
  /** Redis has answered, or nobody asks any more. Twice is fine. */
  readonly end: () => void;
}

type Startable = Pick<Job<unknown>, 'queue' | 'id' | 'name' | 'attempt' | 'dueMs' | 'headers'>;

export function beginStart(job: Startable, lateMs: number): StartSpan | undefined {
  const found = tracing();
  return found && safely('span of a start', () => startSpan(found, job, lateMs));
}

function startSpan({ parts, tracer }: Tracing, job: Startable, lateMs: number): StartSpan {
  const { queue, id, name, attempt, dueMs, headers } = job;
  // Baggage of the producer holds in the handler, too.
  const carried = extracted(parts, headers);
  const origin = spanIn(carried)?.spanContext();
  const links: Link[] = origin ? [{ context: origin }] : [];
  const operating = { operation: 'process', queue, id } as const;
  const attributes = { ...messaging(operating), ...startOf({ name, attempt, lateMs }), ...dueAt(dueMs) };
  const span = tracer.startSpan(spanName(operating), { kind: CONSUMER, links, attributes }, ROOT);
  return new Starting(parts, span, withSpan(carried, span));
}

/** Calls it in the span, where there is one. */
export const inside = <T>(span: StartSpan | undefined, act: () => T): T => (span ? span.inside(act) : act());

/** What is told of a start is told in its span, where there is one. */
export const toldIn = (span: StartSpan | undefined, events: Pick<Emitter, 'emit'>): Pick<Emitter, 'emit'> =>
  span ? span.over(events) : events;

/** How a start ends, once, whatever else is told of it. */
const ENDS: ReadonlySet<EventName> = new Set<EventName>([
  'job.completed',
  'job.retried',
  'job.deferred',
  'job.dead',
  'job.failed',
  'job.cancelled',
  'job.fenced',
]);

class Starting implements StartSpan {
  readonly #parts: Registered;
  readonly #span: Span;
  readonly #context: Context;
  #isOver = false;

  constructor(parts: Registered, span: Span, context: Context) {
    this.#parts = parts;
    this.#span = span;
    this.#context = context;
  }

  inside<T>(act: () => T): T {
    return within(this.#parts, this.#context, act);
  }

  over(events: Pick<Emitter, 'emit'>): Pick<Emitter, 'emit'> {
    return {
      emit: (name, payload) => {
        if (ENDS.has(name)) safely('end of a start', () => this.#note(name, payload));
        this.inside(() => events.emit(name, payload));
      },
    };
  }

  #note(name: EventName, payload: Events[EventName]): void {
    const error = 'error' in payload && typeof payload.error === 'object' ? payload.error : undefined;
    const { delayMs, reason } = told(payload);
    if (error) this.#threw(error);
    if (name === 'job.fenced') this.#failed('fenced', 'Redis refused the end: the job was started again elsewhere');
    this.#span.setAttribute(OUTCOME, name.slice('job.'.length));
    this.#span.addEvent(name, endOf({ delayMs, reason: reason === undefined ? undefined : safe(reason) }));
  }

  #threw({ kind, message, stack }: Attempted): void {
    const text = safe(message);
    const event = exception({ message: text, stack: stack === undefined ? undefined : withoutCredentials(stack) });
    this.#span.addEvent(event.name, event.attributes);
    this.#failed(kind, text);
  }

  #failed(type: string, message: string): void {
    this.#span.setAttribute(ERROR_TYPE, type);
    this.#span.setStatus({ code: ERROR, message });
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    safely('span of a start', () => this.#span.end());
  }
}

const told = (payload: Events[EventName]) => ({
  delayMs: 'delayMs' in payload ? payload.delayMs : undefined,
  reason: 'reason' in payload ? payload.reason : undefined,
});

function within<T>({ context: manager }: Registered, context: Context, act: () => T): T {
  return manager ? manager.with(context, act) : act();
}

// The way of a context through the headers of a job: in the form of the propagators that the application has, by default W3C Trace
// Context and Baggage.

const SETTER: TextMapSetter<Record<string, string>> = {
  set(carrier, key, value) {
    carrier[key.toLowerCase()] = value;
  },
};

const GETTER: TextMapGetter<JobHeaders> = {
  keys: (carrier) => Object.keys(carrier),
  get: (carrier, key) => carrier[key.toLowerCase()],
};

function injected({ propagation }: Registered, context: Context): JobHeaders {
  const carrier: Record<string, string> = {};
  propagation?.inject(context, carrier, SETTER);
  return withHeaders({}, carrier);
}

const extracted = ({ propagation }: Registered, headers: JobHeaders): Context =>
  propagation?.extract(ROOT, headers, GETTER) ?? ROOT;

/** The span that headers name. A caller may write their names as it likes, and nobody has checked them yet. */
function originIn(parts: Registered, given: JobHeaders): SpanContext | undefined {
  const texts = Object.entries(given ?? {}).filter(([, value]) => typeof value === 'string');
  const lower = Object.fromEntries(texts.map(([name, value]) => [name.toLowerCase(), value]));
  return spanIn(extracted(parts, lower))?.spanContext();
}
