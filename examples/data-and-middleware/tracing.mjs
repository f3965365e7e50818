// A trace goes on from the call that schedules to the handler, and to what the handler schedules. With OpenTelemetry,
// `propagation.inject` and `propagation.extract` take the place of the two lines that read and write `traceparent`.
import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';

/** @type {AsyncLocalStorage<string>} */
export const traces = new AsyncLocalStorage();
const random = (/** @type {number} */ bytes) => randomBytes(bytes).toString('hex');

/** @param {(span: { name: string, trace: string, ms: number }) => void} report @returns {import('duestream').Middleware} */
export const tracing = (report) => ({
  schedule(call, next) {
    const traceparent = `00-${traces.getStore() ?? random(16)}-${random(8)}-01`;
    return next({ ...call, jobs: call.jobs.map((job) => ({ ...job, headers: { ...job.headers, traceparent } })) });
  },
  async handle(job, _context, next) {
    const trace = job.headers.traceparent?.split('-')[1] ?? random(16);
    const sinceMs = performance.now();
    const ended = () => report({ name: `${job.queue} ${job.name}`, trace, ms: performance.now() - sinceMs });
    await traces.run(trace, next).finally(ended);
  },
});
