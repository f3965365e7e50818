/** An SDK of OpenTelemetry that keeps what it is given, for the tests of one group. */
import { type Span, trace } from '@opentelemetry/api';
import {
  InMemorySpanExporter,
  type ReadableSpan,
  type Sampler,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { registerSdk, unregisterSdk } from './sdk.mjs';

/** Registers the hooks of a group of tests: a process has one SDK at a time. */
export function useTracing({ sampler }: { readonly sampler?: Sampler } = {}) {
  const exporter = new InMemorySpanExporter();
  beforeAll(() => {
    const spanProcessors = [new SimpleSpanProcessor(exporter)];
    registerSdk({ spanProcessors, ...(sampler && { sampler }) });
  });
  beforeEach(() => exporter.reset());
  afterAll(unregisterSdk);
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
