/** An SDK of OpenTelemetry that keeps what it is given, for the tests of one group. */
import { context, propagation, type Span, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } from '@opentelemetry/core';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  type Sampler,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterAll, beforeAll, beforeEach } from 'vitest';

/** Registers the hooks of a group of tests: a process has one SDK at a time. */
export function useTracing({ sampler }: { readonly sampler?: Sampler } = {}) {
  const exporter = new InMemorySpanExporter();
  beforeAll(() => {
    const spanProcessors = [new SimpleSpanProcessor(exporter)];
    trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors, ...(sampler && { sampler }) }));
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    const propagators = [new W3CTraceContextPropagator(), new W3CBaggagePropagator()];
    propagation.setGlobalPropagator(new CompositePropagator({ propagators }));
  });
  beforeEach(() => exporter.reset());
  afterAll(() => {
    for (const api of [trace, context, propagation]) api.disable();
  });
  return {
    /** Those that have ended, in the order of their ends. */
    spans: (name?: string): readonly ReadableSpan[] =>
      exporter.getFinishedSpans().filter((span) => name === undefined || span.name === name),
    /** What an application does around a call, as a span of its own. */
    within: <T>(name: string, act: (span: Span) => Promise<T>): Promise<T> =>
      trace.getTracer('test').startActiveSpan(name, async (span) => {
        try {
          return await act(span);
        } finally {
          span.end();
        }
      }),
  };
}

export const traceOf = (span: ReadableSpan | undefined): string | undefined => span?.spanContext().traceId;
export const spanOf = (span: ReadableSpan | undefined): string | undefined => span?.spanContext().spanId;
/** The ids of the spans that it links to. */
export const linksOf = (span: ReadableSpan | undefined): readonly string[] =>
  span?.links.map((link) => link.context.spanId) ?? [];
