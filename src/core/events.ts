/**
 * What happened, said once. Logs, metrics, progress displays and tests all listen here; the stations know none of them.
 * Hot paths emit one event per batch. A listener that throws is a bug of the listener and never reaches a station.
 */
import type { Attempted } from './outcome.ts';

/** Event name → its payload. Ids are values of events and of logs, never labels of metrics. */
export interface Events {
  'leader.elected': { readonly queue: string; readonly partition: number; readonly epoch: number };
  'leader.lost': { readonly queue: string; readonly partition: number; readonly epoch: number; readonly why: string };
  /** `lateness`: pairs of (milliseconds late, how many). */
  'jobs.promoted': {
    readonly queue: string;
    readonly partition: number;
    readonly count: number;
    readonly deadLetters: number;
    readonly lateness: readonly (readonly [lateMs: number, count: number])[];
    readonly tookMs: number;
  };
  /** An instant of a schedule was handled. `outcome`: ok, already, skipped, waiting, ended. */
  'schedule.fired': {
    readonly queue: string;
    readonly partition: number;
    readonly schedule: string;
    readonly atMs: number;
    readonly outcome: string;
    readonly latenessMs: number;
  };
  /** Instants passed while nobody fired, the first of them after `sinceMs`; the policy fired so many of them. */
  'schedule.missed': {
    readonly queue: string;
    readonly partition: number;
    readonly schedule: string;
    readonly sinceMs: number;
    readonly fired: number;
  };
  'schedule.unreadable': {
    readonly queue: string;
    readonly partition: number;
    readonly schedule: string;
    readonly why: string;
  };
  'mover.passed': {
    readonly queue: string;
    readonly partition: number;
    readonly state: string;
    readonly tookMs: number;
  };
  'job.started': {
    readonly queue: string;
    readonly id: string;
    readonly name: string;
    readonly attempt: number;
    readonly lateMs: number;
  };
  'job.completed': { readonly queue: string; readonly id: string; readonly name: string; readonly tookMs: number };
  'job.retried': {
    readonly queue: string;
    readonly id: string;
    readonly name: string;
    readonly delayMs: number;
    readonly tookMs: number;
    readonly error: Attempted;
  };
  'job.deferred': {
    readonly queue: string;
    readonly id: string;
    readonly name: string;
    readonly delayMs: number;
    readonly tookMs: number;
  };
  'job.dead': {
    readonly queue: string;
    readonly id: string;
    readonly name: string;
    readonly reason: string;
    readonly tookMs: number;
    readonly error: Attempted;
  };
  /** A job that is delivered at most once failed: it was acknowledged before and is not tried again. */
  'job.failed': {
    readonly queue: string;
    readonly id: string;
    readonly name: string;
    readonly tookMs: number;
    readonly error: Attempted;
  };
  /** Past its expiry: dropped, or made a dead letter. */
  'job.expired': { readonly queue: string; readonly id: string; readonly dead: boolean };
  'job.cancelled': { readonly queue: string; readonly id: string; readonly name: string };
  'job.fenced': { readonly queue: string; readonly id: string; readonly verb: string; readonly reply: string };
  /** Jobs whose record is of a later version than this worker reads: back in scheduled for one that does. */
  'jobs.parked': { readonly queue: string; readonly partition: number; readonly count: number };
  /** How many of them this worker has put off and wait now. Whenever that has changed. */
  'parked.waiting': { readonly queue: string; readonly waiting: number };
  /** How many suspects wait to be started alone: jobs under which workers died. Whenever that has changed. */
  'suspects.waiting': { readonly queue: string; readonly waiting: number };
  /** A handler that ignores its signal keeps its slot (or gave it back after all): how many are lost now. */
  'slots.lost': {
    readonly queue: string;
    readonly id: string;
    readonly lost: number;
    readonly concurrency: number;
  };
  /** So many slots are lost that only a new process helps. Once per worker. */
  'worker.exhausted': { readonly queue: string; readonly lost: number; readonly concurrency: number };
  'entries.reclaimed': {
    readonly queue: string;
    readonly partition: number;
    readonly from: string;
    readonly count: number;
  };
  'entries.adopted': { readonly queue: string; readonly partition: number; readonly count: number };
  'consumer.retired': { readonly queue: string; readonly partition: number; readonly consumer: string };
  /** A job or an entry had lost a part and got it back: nobody's data was lost, but somebody removed a key. */
  'partition.repaired': {
    readonly queue: string;
    readonly partition: number;
    readonly what: string;
    readonly count: number;
  };
  /** Outage: once per change of state or of reason, never once per failed call. */
  'redis.away': {
    readonly who: string;
    readonly why: string;
    /** Redis answered, with an error: it is there and refuses. */
    readonly answered: boolean;
  };
  /** A promise of a handler was rejected and nobody listened. Nobody knows of which job it was. */
  'promise.rejected': { readonly error: string };
  /** How much later than asked a timer of this process fired. */
  'process.ticked': { readonly lagMs: number };
  /** Redis may delete keys when its memory is full; `jobs`: any key, and not only those with a TTL. */
  'redis.evicts': { readonly policy: string; readonly limitBytes: number; readonly jobs: boolean };
  /** It no longer does. */
  'redis.keeps': { readonly after: string };
  /**
   * The data behind our address are not those we knew: another server answers (the run id differs), or the one we knew
   * has lost the namespace. `empty`: no queue is declared there. A restart that kept its data is not told.
   */
  'redis.changed': {
    readonly who: string;
    readonly before: string;
    readonly runId: string;
    readonly empty: boolean;
  };
  'redis.back': {
    readonly who: string;
    readonly awayMs: number;
    /** Whoever said that Redis is away has stopped; whether it is back nobody knows. */
    readonly stopped?: boolean;
  };
}

export type EventName = keyof Events;

export interface EventSource {
  /** Listens to one event; the returned function stops listening. */
  readonly on: <N extends EventName>(name: N, listener: (payload: Events[N]) => void) => () => void;
}

export interface Emitter extends EventSource {
  readonly emit: <N extends EventName>(name: N, payload: Events[N]) => void;
}

/** A minimal typed emitter: synchronous, in order, without special names. */
export function createEmitter(): Emitter {
  const listeners = new Map<EventName, Set<(payload: never) => void>>();
  return {
    on(name, listener) {
      const set = listeners.get(name) ?? new Set();
      listeners.set(name, set);
      set.add(listener);
      return () => set.delete(listener);
    },
    emit(name, payload) {
      for (const listener of listeners.get(name) ?? []) {
        try {
          listener(payload as never);
        } catch (error) {
          process.emitWarning(`a listener of ${name} threw: ${error instanceof Error ? error.message : 'unknown'}`);
        }
      }
    },
  };
}
