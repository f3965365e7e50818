// A line for each job that is scheduled, and for each end of a handler.

/** @param {(line: string) => void} log @returns {import('duestream').Middleware} */
export const logging = (log) => ({
  async schedule(call, next) {
    const results = await next(call);
    for (const { id, status } of results) log(`${call.queue.name} ${id} ${status}`);
    return results;
  },
  async handle(job, { attempt }, next) {
    try {
      await next();
      log(`${job.queue} ${job.id} done at attempt ${attempt}`);
    } catch (error) {
      log(`${job.queue} ${job.id} failed at attempt ${attempt}: ${error}`);
      throw error;
    }
  },
});
