/**
 * What an application has registered with OpenTelemetry. All copies of `@opentelemetry/api` 1.x in a process share one object: an SDK
 * puts its parts there, and whatever makes spans takes them from there. We take them from there too, and load nothing. So the package
 * need not be found from here, a bundler may put all into one file, and it does not matter which version of the package the SDK has.
 * Without an SDK the object is not there, and the look at it is all that a job costs.
 *
 * Only that is used here by which two copies of the package understand each other: the object, the key of a span in a context, and the
 * interfaces. The types are those of the package, and a test compares them with what an SDK registers.
 */
import type {
  Context,
  ContextManager,
  MeterProvider,
  Span,
  TextMapPropagator,
  TracerProvider,
} from '@opentelemetry/api';

/** Each part may be missing: an application may export metrics and no traces. */
export interface Registered {
  readonly trace?: TracerProvider | undefined;
  readonly context?: ContextManager | undefined;
  readonly propagation?: TextMapPropagator | undefined;
  readonly metrics?: MeterProvider | undefined;
}

const SHARED = Symbol.for('opentelemetry.js.api.1');
const SPAN = Symbol.for('OpenTelemetry Context Key SPAN');

/** The parts of an SDK; undefined where none is registered. Asked for each job: the first look is three times as quick as the second. */
export function registered(): Registered | undefined {
  if (!(SHARED in globalThis)) return undefined;
  const found: unknown = Reflect.get(globalThis, SHARED);
  return isRegistered(found) ? found : undefined;
}

const isRegistered = (found: unknown): found is Registered => typeof found === 'object' && found !== null;

/** A context as the package has them: what changes is another one. */
class PlainContext implements Context {
  readonly #values: ReadonlyMap<symbol, unknown>;

  constructor(values: ReadonlyMap<symbol, unknown>) {
    this.#values = values;
  }

  getValue(key: symbol): unknown {
    return this.#values.get(key);
  }

  setValue(key: symbol, value: unknown): Context {
    return new PlainContext(new Map(this.#values).set(key, value));
  }

  deleteValue(key: symbol): Context {
    const rest = new Map(this.#values);
    rest.delete(key);
    return new PlainContext(rest);
  }
}

/** The context of a span that belongs to nothing that goes on around it. */
export const ROOT: Context = new PlainContext(new Map());

export function spanIn(context: Context): Span | undefined {
  const found = context.getValue(SPAN);
  return isSpan(found) ? found : undefined;
}

const isSpan = (found: unknown): found is Span =>
  typeof found === 'object' && found !== null && 'spanContext' in found && 'isRecording' in found;

export const withSpan = (context: Context, span: Span): Context => context.setValue(SPAN, span);

/**
 * The ids of the span that goes on here, by their names in a line of a log. A span that has ended gives none: loops go on in the context
 * in which they were started, and what they say is no part of that.
 */
export function spanIds(): { readonly trace_id: string; readonly span_id: string } | undefined {
  const context = registered()?.context?.active();
  const span = context && spanIn(context);
  if (!span?.isRecording()) return undefined;
  const { traceId, spanId } = span.spanContext();
  return { trace_id: traceId, span_id: spanId };
}
