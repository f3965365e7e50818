// The tenant of whoever schedules travels with the job, and holds again while its handler runs.
import { AsyncLocalStorage } from 'node:async_hooks';

/** @type {AsyncLocalStorage<string>} */
export const tenants = new AsyncLocalStorage();

/** @type {import('duestream').Middleware} */
export const tenancy = {
  async schedule(call, next) {
    const tenant = tenants.getStore();
    if (tenant === undefined) throw new Error('nobody may schedule without a tenant');
    return next({ ...call, jobs: call.jobs.map((job) => ({ ...job, data: { ...job.data, tenant } })) });
  },
  handle: (job, _context, next) => tenants.run(job.data.tenant, next),
};
