/**
 * What a handler is given beside its job. Made lazily where it costs: most handlers never look at the signal, the
 * deadline or the log.
 */
import type { Clock } from '../core/clock.ts';
import { show } from '../core/duration.ts';
import { DuestreamError } from '../core/errors.ts';
import type { Job } from '../core/job.ts';
import type { Log } from '../core/log.ts';
import type { AbortReason } from '../core/outcome.ts';
import type { PartitionRef } from '../redis/keys.ts';
import type { Effect } from '../redis/transitions/replies.ts';
import type { HandlerContext } from './handlers.ts';

/** An AbortController that is only made when somebody looks at the signal. */
export interface Cord {
  /** The first reason counts. */
  readonly pull: (why: AbortReason) => void;
  readonly pulled: () => AbortReason | undefined;
  readonly signal: () => AbortSignal;
}

export function createCord(): Cord {
  let controller: AbortController | undefined;
  let reason: AbortReason | undefined;
  const abort = () => {
    if (reason !== undefined) controller?.abort(new Error(`job aborted: ${reason}`));
  };
  return {
    pull(why) {
      reason ??= why;
      abort();
    },
    pulled: () => reason,
    signal() {
      controller ??= new AbortController();
      abort();
      return controller.signal;
    },
  };
}

export interface ContextParts {
  readonly job: Job<unknown>;
  readonly ref: PartitionRef;
  readonly cord: Cord;
  readonly token: string;
  /** Monotonic ms at which the time is up. */
  readonly deadlineMs: number;
  readonly clock: Clock;
  readonly log: Log;
  /** Where `commit` collects; undefined where a job cannot commit, frozen once the start has ended. */
  readonly effects: Effect[] | undefined;
}

export function createContext(parts: ContextParts): HandlerContext {
  const { job, ref, cord, clock, log, effects } = parts;
  const tag = `{${ref.queue}:${ref.partition}}`;
  return {
    token: parts.token,
    attempt: job.attempt,
    tag,
    get signal() {
      return cord.signal();
    },
    get deadlineMs() {
      return clock.wallMs() + parts.deadlineMs - clock.monotonicMs();
    },
    get log() {
      return log.child({ job: job.id, name: job.name, attempt: job.attempt });
    },
    commit(command, key, ...args) {
      if (!effects) throw new DuestreamError('bad-input', 'commit needs a job that is acknowledged after its handler');
      if (Object.isFrozen(effects)) throw new DuestreamError('bad-input', 'commit came after the end of this start');
      if (effects.length >= EFFECTS_MAX) {
        throw new DuestreamError('bad-input', `commit is called too often; allowed: ${EFFECTS_MAX} commands per job`);
      }
      effects.push(effectOf({ command, key, args }, tag));
    },
  };
}

/** Most commands of one job, and most words of one command: they run inside one script, which blocks all others. */
const EFFECTS_MAX = 100;
const WORDS_MAX = 1000;
const EFFECTS_KEY = /^[^{]*\{([^}]+)\}/;

function effectOf(effect: Effect, tag: string): Effect {
  if (!/^[A-Za-z]{2,20}(\.[A-Za-z]{2,20})?$/.test(effect.command)) {
    throw new DuestreamError(
      'bad-input',
      `commit's command is ${show(effect.command)}; allowed: the name of a Redis command`,
    );
  }
  if (`{${EFFECTS_KEY.exec(effect.key)?.[1] ?? ''}}` !== tag) {
    throw new DuestreamError(
      'bad-input',
      `commit's key is ${show(effect.key)}; allowed: a key whose first braces are context.tag, here ${tag}, so that it lives on the job's slot`,
    );
  }
  if (effect.args.length > WORDS_MAX) {
    throw new DuestreamError(
      'bad-input',
      `commit's command has ${effect.args.length} arguments; allowed: ${WORDS_MAX} after the key`,
    );
  }
  const wrong = effect.args.find((arg) => typeof arg !== 'string' && !Number.isFinite(arg));
  if (wrong === undefined) return effect;
  throw new DuestreamError('bad-input', `commit's argument is ${show(wrong)}; allowed: texts and finite numbers`);
}
