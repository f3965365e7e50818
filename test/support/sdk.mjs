/** An SDK of OpenTelemetry as an application registers one, for tests and for the bench. A process has one at a time. */
import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } from '@opentelemetry/core';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';

/** @param {import('@opentelemetry/sdk-trace-base').TracerConfig} config */
export function registerSdk(config) {
  trace.setGlobalTracerProvider(new BasicTracerProvider(config));
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const propagators = [new W3CTraceContextPropagator(), new W3CBaggagePropagator()];
  propagation.setGlobalPropagator(new CompositePropagator({ propagators }));
}

export function unregisterSdk() {
  for (const api of [trace, context, propagation]) api.disable();
}
