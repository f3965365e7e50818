/** Dead letters as they come about: a worker whose handler gives up. */
import { createClient } from '../../src/client/client.ts';
import { Unrecoverable } from '../../src/job/outcome.ts';
import { createWorker } from '../../src/worker/worker.ts';

/** Schedules jobs one after the other and lets them die. The daemon that promotes them must run. */
export async function buryJobs(
  redis: string,
  jobs: readonly { readonly queue: string; readonly id: string; readonly data?: unknown; readonly reason: string }[],
): Promise<void> {
  const producer = createClient({ redis });
  try {
    for (const { queue, id, data = null, reason } of jobs) {
      const giveUp = () => Promise.reject(new Unrecoverable(reason));
      const worker = createWorker(queue, giveUp, { redis });
      const died = new Promise<void>((resolve) => worker.events.on('job.dead', () => resolve()));
      await worker.start();
      await producer.schedule(queue, data, { id });
      await died;
      await worker.stop();
    }
  } finally {
    await producer.close();
  }
}
