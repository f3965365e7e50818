/** What commands do to queues: limits, pauses and closings, in virtual time. */
import { type CloseOptions, type Closing, closeIn, notGated, OPEN, parseClosing } from '../client/groups/rules.ts';
import { type Queue, type QueueOptions, queueOf } from '../job/queue.ts';
import { gateWords, parseSettings } from '../job/queue-settings.ts';
import { checkNames } from '../kernel/checks.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { declarationOf, declareQueue, partitionsOf, setQueue } from '../redis/scripts/queues.ts';
import { type PauseReply, pause, resume } from '../redis/scripts/upkeep.ts';
import type { Processes } from './processes.ts';
import { NAMESPACE } from './services.ts';

/** As in the definition of a queue. */
type Limits = Pick<QueueOptions, 'rate' | 'concurrency' | 'perGroup' | 'groups' | 'fair'>;
type AnyQueue = Queue<unknown> | string;

/** What `duestream queues set`, `pause`, `resume`, `close` and `open` do; they take hold when time passes. */
export interface TestQueues {
  /**
   * Sets limits of a queue, also while its jobs run; what is left out stays as it is.
   *
   * @throws DuestreamError `bad-input`
   * @example await kit.queues.set('imports', { rate: '10/s', perGroup: 1 });
   */
  set(queue: AnyQueue, limits: Limits): Promise<void>;
  /** What comes due waits, and what runs goes on. @returns whether the queue went on until now */
  pause(queue: AnyQueue, reason?: string): Promise<boolean>;
  /** @returns whether the queue was paused */
  resume(queue: AnyQueue): Promise<boolean>;
  /**
   * Lets nobody of a queue with limits through for some time; what was let through before starts all the same. Single groups are
   * closed by `kit.client.groups.close`.
   *
   * @returns whether it is closed for longer than before
   * @throws DuestreamError `bad-input`, also for a queue that is not gated
   */
  close(queue: AnyQueue, options: CloseOptions): Promise<boolean>;
  /** @returns whether the queue was closed @throws DuestreamError `bad-input` for a queue that is not gated */
  open(queue: AnyQueue): Promise<boolean>;
}

export function createTestQueues(kit: Processes): TestQueues {
  const { commands, clock, time } = kit;
  const declared = (queue: AnyQueue) =>
    declareQueue(commands, declarationOf(NAMESPACE, kit.knownAs(queueOf(queue).name)));

  const inEach = (queue: AnyQueue, act: (ref: PartitionRef) => Promise<PauseReply>) =>
    kit.next(async () => {
      const replies: PauseReply[] = [];
      for (const ref of partitionsOf(NAMESPACE, await declared(queue))) replies.push(await act(ref));
      return replies.some(({ kind }) => kind === 'ok');
    });

  const shut = (queue: AnyQueue, closing: Omit<Closing, 'group'>) =>
    kit.next(async () => {
      const refs = partitionsOf(NAMESPACE, await declared(queue));
      const reply = await closeIn(commands, refs, { group: '', ...closing }, { clock, budgetMs: 0 });
      if (reply === 'ungated') throw notGated(queueOf(queue));
      return reply === 'ok';
    });

  return {
    async set(queue, limits) {
      checkNames(limits, gateWords, 'queues.set', 'bad-input');
      const settings = parseSettings(limits);
      await kit.next(async () => {
        const { queue: name } = await declared(queue);
        await setQueue(commands, { namespace: NAMESPACE, queue: name, ...settings });
        time.lookSoon();
      });
    },
    pause: (queue, reason = '') => inEach(queue, (ref) => pause(commands, ref, { reason })),
    resume: (queue) => inEach(queue, (ref) => resume(commands, ref)),
    close: async (queue, options) => shut(queue, parseClosing(options, clock)),
    open: (queue) => shut(queue, OPEN),
  };
}
