/**
 * The trace that a request belongs to, as W3C Trace Context has it in its headers. The jobs that the request makes carry it, whether or not
 * anything is traced in this process: a worker somewhere else may trace its starts.
 */
import { type JobHeaders, withHeaders } from '../../job/labels.ts';
import type { HeaderDoc } from './verb.ts';

export const TRACE_HEADERS: readonly HeaderDoc[] = [
  {
    name: 'traceparent',
    doc: 'The trace that the request belongs to (W3C Trace Context). Its jobs carry it in their headers, unless they say another one.',
  },
  { name: 'tracestate', doc: 'What belongs to `traceparent`.' },
];

const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-|$)/;

/** What a job is told, with the trace of the request. What is no `traceparent` counts for nothing. */
export function traced<Told extends { readonly headers?: JobHeaders | undefined }>(
  header: (name: string) => string | undefined,
  told: Told,
): Told {
  const traceparent = header('traceparent');
  const isOwn = Object.keys(told.headers ?? {}).some((name) => name.toLowerCase() === 'traceparent');
  if (traceparent === undefined || isOwn || !TRACEPARENT.test(traceparent)) return told;
  const tracestate = header('tracestate');
  const more = { traceparent, ...(tracestate !== undefined && { tracestate }) };
  return { ...told, headers: withHeaders(told.headers, more) };
}
