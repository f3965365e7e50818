/**
 * A daemon or a worker in a process of its own, for `duestream admin prove`: it gets its orders from the process that forked it, says what
 * happens, and ends with that process. The address of Redis comes with the orders, so no password is in a list of processes.
 */
import { createDaemon } from '../daemon/daemon.ts';
import { reasonOf } from '../kernel/reason.ts';
import { createWatchedWorker } from '../worker/worker.ts';
import { withIdentity } from './lossy-line.ts';
import { BEAT_TTL, GRACE, JOB_LEASE, LEADER_LEASE, type Orders, type Said } from './said.ts';

// However the run ends, nothing of it goes on.
process.once('disconnect', () => process.exit(0));
process.once('message', (orders: Orders) => {
  begin(orders).then(
    () => say({ kind: 'ready' }),
    (error: unknown) => say({ kind: 'failed', why: reasonOf(error) }),
  );
});

const say = (said: Said): void => void process.send?.(said);

function begin(orders: Orders): Promise<void> {
  return orders.role === 'daemon' ? lead(orders) : work(orders);
}

function lead({ namespace, ...to }: Orders): Promise<void> {
  const redis = withIdentity(to);
  const daemon = createDaemon({ redis, namespace, roles: ['mover'], mover: { lease: LEADER_LEASE } });
  daemon.events.on('leader.elected', ({ queue }) => say({ kind: 'leads', queue }));
  return daemon.start();
}

function work({ namespace, queue, read, hangs, ...to }: Orders): Promise<void> {
  const options = { redis: withIdentity(to), namespace, read, jobLease: JOB_LEASE, beatTtl: BEAT_TTL, grace: GRACE };
  const worker = createWatchedWorker([
    queue,
    async ({ id }, { signal }) => {
      say({ kind: 'ran', id });
      if (hangs) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    },
    options,
  ]);
  worker.events.on('job.completed', ({ id }) => say({ kind: 'done', id }));
  return worker.start();
}
