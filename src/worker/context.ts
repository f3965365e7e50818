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
export interface LazyAbort {
  /** The first reason counts. */
  readonly abort: (why: AbortReason) => void;
  readonly reason: () => AbortReason | undefined;
  readonly signal: () => AbortSignal;
}

export function createLazyAbort(): LazyAbort {
  let controller: AbortController | undefined;
  let reason: AbortReason | undefined;
  const tell = () => {
    if (reason !== undefined) controller?.abort(new Error(`job aborted: ${reason}`));
  };
  return {
    abort(why) {
      reason ??= why;
      tell();
    },
    reason: () => reason,
    signal() {
      controller ??= new AbortController();
      tell();
      return controller.signal;
    },
  };
}

export interface ContextParts {
  readonly job: Job<unknown>;
  readonly ref: PartitionRef;
  readonly lazyAbort: LazyAbort;
  readonly token: string;
  /** Monotonic ms at which the time is up. */
  readonly deadlineMs: number;
  readonly clock: Clock;
  readonly log: Log;
  /** Where `commit` collects; undefined where a job cannot commit, frozen once the start has ended. */
  readonly effects: Effect[] | undefined;
}

export function createContext(parts: ContextParts): HandlerContext {
  const { job, ref, lazyAbort, clock, log, effects } = parts;
  const tag = `{${ref.queue}:${ref.partition}}`;
  return {
    token: parts.token,
    attempt: job.attempt,
    tag,
    get signal() {
      return lazyAbort.signal();
    },
    get deadlineMs() {
      return clock.wallMs() + parts.deadlineMs - clock.monotonicMs();
    },
    get log() {
      return log.child({ job: job.id, name: job.name, attempt: job.attempt });
    },
    commit(command, key, ...args) {
      if (!effects)
        throw new DuestreamError(
          'bad-input',
          'commit cannot be used in a queue that delivers at most once: its jobs are over before the handler runs',
        );
      if (Object.isFrozen(effects))
        throw new DuestreamError('bad-input', 'commit was called after the handler had ended');
      if (effects.length >= EFFECTS_MAX) {
        throw new DuestreamError(
          'bad-input',
          `commit was called more than ${EFFECTS_MAX} times; allowed: ${EFFECTS_MAX} commands per job`,
        );
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
