/** Handlers in line with the calls that schedule: what can run runs before the call returns, whatever its due time and the limits. */
import type { Client } from '../client/client.ts';
import type { ScheduleChain } from '../client/jobs/scheduling.ts';
import { parseSettings } from '../job/queue-settings.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { setQueue } from '../redis/scripts/queues.ts';
import type { Ledger, TestJob } from './ledger.ts';
import { NAMESPACE } from './services.ts';
import type { VirtualTime } from './time.ts';

export interface InlineParts {
  readonly time: VirtualTime;
  readonly ledger: Ledger;
  readonly commands: Redis;
  /** Its own calls are not in line. */
  readonly client: Client;
}

/** A lock is never given back while somebody waits for it. */
const STARTS_MAX = 1000;
/** As if nobody had ever said a limit. */
const UNLIMITED = parseSettings({ rate: false, concurrency: false, perGroup: false });

/** From now on, what is scheduled through the chain runs before its call returns. */
export function runInline(chain: ScheduleChain, parts: InlineParts): void {
  chain.use({
    async schedule(call, next) {
      const results = await next(call);
      await runAll(parts);
      return results;
    },
  });
}

/** One job after the other, and each until it is over. */
async function runAll(parts: InlineParts): Promise<void> {
  const { time, ledger } = parts;
  const starts = new Map<string, number>();
  const startsOf = ({ queue, id }: TestJob) => starts.get(`${queue} ${id}`) ?? 0;
  const mayStart = (job: TestJob) => job.state === 'scheduled' || job.state === 'waiting';
  for (;;) {
    const next = ledger.all().find((job) => mayStart(job) && startsOf(job) < STARTS_MAX);
    if (!next) return;
    const before = ledger.changes;
    await time.settle(() => start(next, parts));
    starts.set(`${next.queue} ${next.id}`, ledger.changes === before ? STARTS_MAX : startsOf(next) + 1);
  }
}

async function start({ queue, id, state }: TestJob, { client, commands }: InlineParts): Promise<void> {
  if (state === 'waiting') await setQueue(commands, { namespace: NAMESPACE, queue, ...UNLIMITED });
  else await client.runNow(queue, id);
}
