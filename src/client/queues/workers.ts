/** Single workers of a namespace, as somebody pauses one and lets it go on: `client.workers`. */
import { checkNames } from '../../kernel/checks.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { memberOf } from '../../redis/connection/cluster/members.ts';
import { timeAt } from '../../redis/connection/server-clock.ts';
import { controlKeys } from '../../redis/keys.ts';
import { tellWorker, type WorkerPause, type WorkerTold } from '../../redis/scripts/presence.ts';
import type { Calls } from '../calls/calls.ts';
import { createRepeating } from '../calls/retry.ts';
import type { ClientSettings } from '../calls/settings.ts';
import type { At, Namespaced } from './refs.ts';
import { type ByOption, byIn, overridingOf, type SettingReason } from './settings.ts';

export type { WorkerPause };

/** What became of a call that pauses a worker or lets it go on. */
export interface WorkerChange {
  /** `same`: it was so already. */
  readonly status: 'changed' | 'same';
  /** The pause that holds, or the one that has ended; undefined: the worker was not paused. */
  readonly pause: WorkerPause | undefined;
}

/**
 * Single workers of a namespace, by the ids that `duestream queues workers` shows: `client.workers`. Both methods reject with a
 * `DuestreamError`: `bad-input` before anything is sent, and for a worker of a version that hears of no pause · `not-found` for one
 * that does not live · `unavailable` or `indeterminate` in an outage, when the same call may be repeated. A change is
 * in the audit, with the user of this process.
 */
export interface Workers {
  /**
   * Pauses a worker: it takes no new job of any of its queues until `resume`, and goes on with what it runs. It hears of it with
   * its next heartbeat. The pause ends with the process: one that is started in its place has an id of its own, and works. A second pause keeps
   * the first one's reason.
   *
   * @example
   * await client.workers.pause('w-7f3a', { reason: 'a heap dump is taken' });
   */
  pause(worker: string, options?: SettingReason): Promise<WorkerChange>;
  /** Lets a paused worker go on, with its next heartbeat. */
  resume(worker: string, options?: ByOption): Promise<WorkerChange>;
}

interface WorkersParts {
  /** @throws DuestreamError `wrong-schema` */
  readonly place: () => Promise<Namespaced>;
}

export function workersOver(
  { clock, budgetMs }: ClientSettings,
  { runChecked }: Pick<Calls<WorkersParts>, 'runChecked'>,
): Workers {
  const call = <Ask>(what: string, read: () => Ask, work: (at: At, ask: Ask) => Promise<WorkerChange>) =>
    runChecked(read, async ({ place }, ask) =>
      work({ ...(await place()), clock, steps: createRepeating(what, { clock, budgetMs }) }, ask),
    );
  return {
    pause: (given, options = {}) =>
      call(
        'pause a worker',
        () => {
          const { by, why } = overridingOf(options, 'workers.pause');
          return { id: idIn(given), by, reason: why };
        },
        async (at, { id, by, reason }) => {
          const sinceMs = await at.steps.read(() => nowOf(at));
          return told(at, id, { sinceMs, by, ...(reason !== '' && { reason }) });
        },
      ),
    resume: (given, options = {}) =>
      call(
        'resume a worker',
        () => {
          checkNames(options, ['by'], 'workers.resume', 'bad-input');
          byIn(options);
          return idIn(given);
        },
        (at, id) => told(at, id, undefined),
      ),
  };
}

const nowOf = async ({ redis, namespace }: Namespaced): Promise<number> =>
  Math.floor(await timeAt(memberOf(redis, controlKeys(namespace).alive)));

const ALLOWED = '1 to 64 of A-Z a-z 0-9 . _ : -, as "duestream queues workers" shows it';

/** @throws DuestreamError `bad-input` */
function idIn(given: unknown): string {
  if (typeof given === 'string' && /^[\w.:-]{1,64}$/.test(given)) return given;
  throw new DuestreamError('bad-input', `worker is ${show(given)}; allowed: ${ALLOWED}`);
}

/** @throws DuestreamError `not-found`, `bad-input` */
async function told(at: At, id: string, pause: WorkerPause | undefined): Promise<WorkerChange> {
  const { redis, namespace } = at;
  // What is so already after a lost reply is so by the call before.
  const reply = await at.steps.write(async (mayHaveRun): Promise<WorkerTold> => {
    const one = await tellWorker(redis, { namespace, id, pause });
    return mayHaveRun && one.kind === 'same' ? { ...one, kind: 'ok' } : one;
  });
  switch (reply.kind) {
    case 'gone':
      throw new DuestreamError(
        'not-found',
        `no worker ${show(id)} lives in namespace ${show(namespace)}; "duestream queues workers" lists those that do`,
      );
    case 'deaf':
      throw new DuestreamError(
        'bad-input',
        `worker ${show(id)} is of ${reply.version === undefined ? 'an older version' : `version ${reply.version}`}, which hears of no pause; allowed: a worker of this version. Pause its queues, or stop the process`,
      );
    case 'ok':
    case 'same':
      return { status: reply.kind === 'ok' ? 'changed' : 'same', pause: reply.pause };
  }
}
