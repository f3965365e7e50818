/**
 * A daemon in a process of its own, for `duestream conformance`: it can be killed. Its orders come from the process that forked it,
 * and it ends with that process.
 */
import { createDaemon } from '../daemon/daemon.ts';
import { reasonOf } from '../kernel/reason.ts';
import {
  againQueue,
  BEAT_TTL,
  type DaemonOrders,
  type DaemonSaid,
  GRACE,
  LEADER_LEASE,
  LEASE_MS,
  ONCE_QUEUE,
} from './orders.ts';

const say = (said: DaemonSaid): void => void process.send?.(said);

// However the run ends, nothing of it goes on.
process.once('disconnect', () => process.exit(0));
process.once('message', (orders: DaemonOrders) => {
  serve(orders).then(
    (url) => say({ kind: 'ready', url }),
    (error: unknown) => say({ kind: 'failed', why: reasonOf(error) }),
  );
});

async function serve({ redis, namespace }: DaemonOrders): Promise<string> {
  const daemon = createDaemon({
    redis,
    namespace,
    roles: ['mover', 'http'],
    mover: { lease: LEADER_LEASE },
    worker: { jobLease: LEASE_MS, beatTtl: BEAT_TTL, grace: GRACE },
    http: { port: 0, work: 'on' },
    queues: { [ONCE_QUEUE]: { delivery: 'at-most-once' }, [againQueue(ONCE_QUEUE)]: { delivery: 'at-most-once' } },
  });
  await daemon.start();
  const at = daemon.http();
  if (!at) throw new Error('the daemon listens nowhere');
  return `http://${at.host}:${at.port}`;
}
