/**
 * What happened, said once. Logs, metrics, progress displays and tests all listen here; the stations know none of them.
 * Hot paths emit one event per batch. A listener that throws, or whose promise rejects, is a bug of the listener and never
 * reaches a station.
 */

import { createCallbacks } from '../kernel/callbacks.ts';
import { checkFunction, hintOf } from '../kernel/checks.ts';
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import type { Attempted } from './outcome.ts';

/**
 * Event name → its payload; `eventNames` has the names at run time. Ids are never labels of metrics. The comments are the
 * page of events (`docs/reference/events.md`): each event says when it is told, and each field what it holds.
 */
export interface Events {
  /** This process leads a partition from now on. */
  'leader.elected': { readonly queue: string; readonly partition: number; readonly epoch: number };
  /** This process leads a partition no longer. */
  'leader.lost': { readonly queue: string; readonly partition: number; readonly epoch: number; readonly why: string };
  /**
   * No daemon leads some partitions of a queue that this worker serves: their delayed jobs wait. A worker looks now and then, every 17 s
   * unless it is set otherwise, and a moment between two leaders is not told.
   */
  'leader.away': {
    readonly queue: string;
    /** Their numbers. */
    readonly partitions: readonly number[];
  };
  /** Each partition of the queue is led again, after `leader.away`. */
  'leader.back': {
    readonly queue: string;
    /** How long a worker saw that one was not led. */
    readonly awayMs: number;
  };
  /** A pass of the leader made jobs ready, or sent them to all subscribers. Not of a pass that moved nothing. The log warns of dead letters. */
  'jobs.promoted': {
    readonly queue: string;
    readonly partition: number;
    readonly count: number;
    /** Members that nobody can run; they became dead letters. */
    readonly deadLetters: number;
    /** Pairs of how many ms late, and how many jobs were. */
    readonly lateness: readonly (readonly [lateMs: number, count: number])[];
    /** Of a queue with limits: how many jobs are in line. */
    readonly waiting?: number | undefined;
    readonly tookMs: number;
  };
  /** An instant of a schedule was handled. */
  'schedule.fired': {
    readonly queue: string;
    readonly partition: number;
    readonly schedule: string;
    /** The instant. */
    readonly atMs: number;
    /** `ok`, `already`, `skipped`, `waiting` or `ended`. */
    readonly outcome: string;
    /** From the instant until it was handled. */
    readonly latenessMs: number;
  };
  /** Instants of a schedule passed while nobody fired it. */
  'schedule.missed': {
    readonly queue: string;
    readonly partition: number;
    readonly schedule: string;
    /** The first of them came after this instant. */
    readonly sinceMs: number;
    /** How many of them its catch-up policy fired. */
    readonly fired: number;
    /** How many of them make no job; they count as `skipped` of the schedule. */
    readonly missed: number;
  };
  /** A definition cannot be read, so the schedule does not fire. Once per definition. */
  'schedule.unreadable': {
    readonly queue: string;
    readonly partition: number;
    readonly schedule: string;
    readonly why: string;
  };
  /** The leader of a partition made a pass. While nothing is due, it makes one every minute. */
  'mover.passed': {
    readonly queue: string;
    readonly partition: number;
    /** What `promote` replied: `moved`, `paused`, `capped` or `fenced`. */
    readonly state: string;
    readonly tookMs: number;
  };
  /** A handler is called. */
  'job.started': {
    readonly queue: string;
    readonly id: string;
    readonly name: string;
    /** Which start of the job this is, from 1. */
    readonly attempt: number;
    /** After its due time. */
    readonly lateMs: number;
  };
  /** A handler returned, and Redis has written down that the job is done. */
  'job.completed': { readonly queue: string; readonly id: string; readonly name: string; readonly tookMs: number };
  /** A handler failed, and the job is scheduled again. */
  'job.retried': {
    readonly queue: string;
    readonly id: string;
    readonly name: string;
    readonly delayMs: number;
    readonly tookMs: number;
    readonly error: Attempted;
  };
  /** A handler put its job off. */
  'job.deferred': {
    readonly queue: string;
    readonly id: string;
    readonly name: string;
    readonly delayMs: number;
    readonly tookMs: number;
    /** Why, as the handler said; undefined where its worker gives it back because it stops. */
    readonly reason?: string | undefined;
  };
  /** A job became a dead letter. */
  'job.dead': {
    readonly queue: string;
    readonly id: string;
    readonly name: string;
    /** Why it is not tried again, as `duestream dead ls` shows it. */
    readonly reason: string;
    readonly tookMs: number;
    readonly error: Attempted;
  };
  /** A job that was over before its handler, at most once or in a subscriber, failed here and is not tried again. */
  'job.failed': {
    readonly queue: string;
    readonly id: string;
    readonly name: string;
    readonly tookMs: number;
    readonly error: Attempted;
  };
  /** A job was past its expiry before its start. */
  'job.expired': {
    readonly queue: string;
    readonly id: string;
    /** It is a dead letter, and not dropped. */
    readonly dead: boolean;
  };
  /** A job ended as its cancellation asked. */
  'job.cancelled': { readonly queue: string; readonly id: string; readonly name: string };
  /** A handler went on for `abortGrace` after its time-out: from now on its job gives its place away and may start once more beside it. */
  'job.overran': {
    readonly queue: string;
    readonly id: string;
    readonly name: string;
    /** So long it has run until now. */
    readonly tookMs: number;
  };
  /** An end was refused: the job was started anew, or is over. */
  'job.fenced': {
    readonly queue: string;
    readonly id: string;
    /** The transition that was refused. */
    readonly verb: string;
    /** `fenced` or `gone`. */
    readonly reply: string;
  };
  /** Redis is at its memory limit: it did not keep so many lines that handlers said of their jobs (`context.log`). */
  'log.refused': {
    readonly queue: string;
    /** How many lines that were. */
    readonly lines: number;
  };
  /** A subscriber did not get so many jobs: past the bounds of the queue, or Redis lost what it sent (then nobody can count them). */
  'jobs.missed': { readonly queue: string; readonly reason: string; readonly count?: number };
  /** Records of a later version went back into scheduled, for a worker that can read them. */
  'jobs.parked': { readonly queue: string; readonly partition: number; readonly count: number };
  /** The number of jobs that this worker has parked has changed. */
  'parked.waiting': { readonly queue: string; readonly waiting: number };
  /** The number of suspects has changed: jobs under which workers died, and which wait to be started alone. 0 is not logged. */
  'suspects.waiting': { readonly queue: string; readonly waiting: number };
  /** A handler that ignores its signal keeps its slot, or gave it back after all. */
  'slots.lost': {
    readonly queue: string;
    readonly id: string;
    /** How many slots of the worker are lost now. */
    readonly lost: number;
    readonly concurrency: number;
  };
  /** So many slots are lost that only a new process helps. Once per worker. */
  'worker.exhausted': {
    readonly queue: string;
    /** How many slots are lost. */
    readonly lost: number;
    readonly concurrency: number;
  };
  /** Somebody has paused this worker: it takes nothing new, and goes on with what it runs. */
  'worker.paused': {
    /** Who paused it, if that was said. */
    readonly by: string | undefined;
    /** What was said about it. */
    readonly reason: string | undefined;
  };
  /** The worker takes new jobs again, after `worker.paused`. */
  'worker.resumed': {
    /** For how long it was paused, as it knows. */
    readonly pausedMs: number;
  };
  /** A worker took over entries of one that died. */
  'entries.reclaimed': {
    readonly queue: string;
    readonly partition: number;
    /** The consumer that died. */
    readonly from: string;
    readonly count: number;
  };
  /** A worker found entries that Redis had given to it in a reply that was lost. */
  'entries.adopted': { readonly queue: string; readonly partition: number; readonly count: number };
  /** A dispatcher has sent a request to the target of a queue, or its guard has refused to. */
  'target.called': {
    readonly queue: string;
    /** `2xx`, `3xx`, `4xx`, `5xx`, `429`; `none`: no answer; `refused`: by the guard, and nothing was sent. */
    readonly outcome: string;
    /** From the look at the name to the end of the answer. */
    readonly tookMs: number;
  };
  /** A target has answered 410: what the job calls is gone for good. The job is a dead letter, unless `retryOn` says otherwise. */
  'target.gone': {
    readonly queue: string;
    readonly id: string;
    /** The host of the target. */
    readonly host: string;
  };
  /** A host cannot be reached, so for some time no job of that group starts. */
  'target.closed': {
    readonly queue: string;
    /** The host of the target. */
    readonly host: string;
    /** For how long. */
    readonly forMs: number;
    /** What the last request ended with: `dns`, `not-connected`, `tls`, `timeout` or `cut-off`. */
    readonly why: string;
  };
  /** A worker over HTTP has claimed jobs, and has its answer. */
  'claim.answered': {
    readonly queue: string;
    /**
     * `handed`, `again` (what this very claim was handed before), `empty` (its time was over, or the daemon stops), `superseded` (a
     * later claim was made) or `gone` (its caller was).
     */
    readonly outcome: string;
    /** How many jobs the answer has. */
    readonly jobs: number;
    /** How long the claim waited for its answer. */
    readonly waitedMs: number;
  };
  /** A worker over HTTP has said how a run ended, or that it begins. */
  'run.settled': {
    readonly queue: string;
    /** `complete`, `fail`, `defer` or `begin`. */
    readonly end: string;
    /** What Redis replied: `ok`, `already`, `cancelled`, `fenced` or `gone`. */
    readonly word: string;
  };
  /** Runs that a worker over HTTP has lost go to another one. */
  'runs.reclaimed': {
    readonly queue: string;
    readonly partition: number;
    /** The worker that has lost them. */
    readonly from: string;
    /** The worker that is handed them. */
    readonly to: string;
    /** `dead`: the worker has no heartbeat. `lease`: it lives, and extended these runs no more. */
    readonly cause: string;
    readonly count: number;
    /** The ids of their jobs. */
    readonly ids: readonly string[];
  };
  /** A worker over HTTP beats for a run whose time is up: the run was ended as a failure. */
  'runs.overtime': {
    readonly queue: string;
    readonly id: string;
    /** The name of the worker. */
    readonly worker: string;
  };
  /** The number of claims that wait in this daemon for jobs of the queue has changed. */
  'polls.waiting': {
    readonly queue: string;
    /** How many there are now. */
    readonly polls: number;
  };
  /** The consumer of a dead worker holds nothing any more and was removed. */
  'consumer.retired': { readonly queue: string; readonly partition: number; readonly consumer: string };
  /** Jobs or entries had lost a part and got it back: nobody's data was lost, but somebody removed a key. */
  'partition.repaired': {
    readonly queue: string;
    readonly partition: number;
    /** The kind of flaw, as `duestream doctor --keys` names it. */
    readonly what: string;
    readonly count: number;
  };
  /** An outage began, or has another reason now. Never once per failed call. */
  'redis.away': {
    readonly who: string;
    readonly why: string;
    /** Redis answered, with an error: it is there and refuses. */
    readonly answered: boolean;
  };
  /** An outage is over. */
  'redis.back': {
    readonly who: string;
    readonly awayMs: number;
    /** Whoever said that Redis is away has stopped; whether it is back nobody knows. */
    readonly stopped?: boolean;
  };
  /**
   * The data behind our address are not those we knew: another server answers (the id of its data differs), or the one we knew
   * has lost the namespace. A restart that kept its data is not told.
   */
  'redis.changed': {
    readonly who: string;
    /** The run id of the server that was known. */
    readonly before: string;
    /** The run id of the one that answers now. */
    readonly runId: string;
    /** No queue is declared there. */
    readonly empty: boolean;
  };
  /** The namespace has another schema now than this process knows: it touches nothing there any more and stops. */
  'schema.refused': { readonly who: string; readonly why: string };
  /** Redis may delete keys when its memory is full. */
  'redis.evicts': {
    /** Its `maxmemory-policy`. */
    readonly policy: string;
    readonly limitBytes: number;
    /** Any key, and not only those with a TTL. */
    readonly jobs: boolean;
  };
  /** It may no longer, after it had this policy. */
  'redis.keeps': { readonly after: string };
  /** The clock of a worker's host and that of Redis differ by more than half a second. */
  'clock.off': {
    /** How far Redis is ahead of this host; negative where it is behind. */
    readonly aheadMs: number;
  };
  /** They no longer do, after `clock.off`. */
  'clock.right': {
    /** How far Redis is ahead of this host. */
    readonly aheadMs: number;
  };
  /** Processes of another minor version of duestream live in the namespace. Told by daemons and workers. */
  'versions.differ': {
    /** Of this process. */
    readonly own: string;
    /** Those of the others, such as `0.1.4, 0.3.0`. */
    readonly others: string;
  };
  /** They no longer do, after `versions.differ`. */
  'versions.agree': {
    /** Of this process. */
    readonly own: string;
  };
  /** A promise was rejected and nobody listened. Nobody knows of which job it was. */
  'promise.rejected': { readonly error: string };
  /** A timer of this process fired, twice a second: how much later than asked. Logged from a second on. */
  'process.ticked': { readonly lagMs: number };
}

/** The name of an event: `job.completed`, `redis.away` and so on. */
export type EventName = keyof Events;

/** `worker.events` and `daemon.events`: `const stop = worker.events.on('job.failed', ({ id, error }) => …)`. */
export interface EventSource {
  /**
   * Listens to one event; the returned function stops listening.
   *
   * @throws DuestreamError `bad-input` for an event that there is not, or a listener that is no function
   */
  readonly on: <N extends EventName>(name: N, listener: (payload: Events[N]) => void) => () => void;
}

export interface Emitter extends EventSource {
  readonly emit: <N extends EventName>(name: N, payload: Events[N]) => void;
}

// Every event there is, at run time, and the two ways to listen to all of them. The compiler wants a row for each
// event, and of each listener that it says which events it passes over: what a list forgets would be dropped in
// silence.

/** At which level a daemon logs an event; `none`: it is there for metrics and for programs. A test compares its lines. */
export const eventLevels: Readonly<Record<EventName, 'debug' | 'info' | 'warn' | 'error' | 'none'>> = {
  'leader.elected': 'info',
  'leader.lost': 'info',
  'leader.away': 'warn',
  'leader.back': 'info',
  'jobs.promoted': 'debug',
  'mover.passed': 'none',
  'schedule.fired': 'none',
  'schedule.missed': 'warn',
  'schedule.unreadable': 'error',
  'job.started': 'debug',
  'job.completed': 'debug',
  'job.retried': 'info',
  'job.deferred': 'debug',
  'job.dead': 'warn',
  'job.failed': 'warn',
  'job.expired': 'info',
  'job.cancelled': 'debug',
  'job.overran': 'warn',
  'job.fenced': 'warn',
  'log.refused': 'warn',
  'jobs.missed': 'warn',
  'jobs.parked': 'warn',
  'parked.waiting': 'none',
  'suspects.waiting': 'warn',
  'slots.lost': 'warn',
  'worker.exhausted': 'error',
  'worker.paused': 'warn',
  'worker.resumed': 'info',
  'entries.reclaimed': 'warn',
  'entries.adopted': 'warn',
  'target.called': 'none',
  'target.gone': 'warn',
  'target.closed': 'warn',
  'claim.answered': 'none',
  'run.settled': 'none',
  'runs.reclaimed': 'warn',
  'runs.overtime': 'warn',
  'polls.waiting': 'none',
  'consumer.retired': 'info',
  'partition.repaired': 'warn',
  'redis.away': 'warn',
  'redis.back': 'info',
  'redis.changed': 'warn',
  'schema.refused': 'error',
  'redis.evicts': 'error',
  'redis.keeps': 'info',
  'clock.off': 'warn',
  'clock.right': 'info',
  'versions.differ': 'warn',
  'versions.agree': 'info',
  'promise.rejected': 'error',
  'process.ticked': 'warn',
};

/** The names of all events. */
export const eventNames = Object.keys(eventLevels) as readonly EventName[];

export type Listeners<N extends EventName = EventName> = {
  readonly [name in N]: (payload: Events[name]) => void;
};

/**
 * Listens to every event but those that are passed over on purpose. The returned function stops listening.
 *
 * @example listenToAll(events, { 'job.dead': tell }, ['job.started']); // forgets the others: does not compile
 */
export function listenToAll<const Passed extends EventName>(
  events: EventSource,
  listeners: Listeners<Exclude<EventName, Passed>>,
  passedOver: readonly Passed[],
): () => void {
  const given: Partial<Listeners> = listeners;
  const listen = <N extends EventName>(name: N) => {
    const listener = given[name];
    return listener && events.on(name, listener);
  };
  const passed = new Set<EventName>(passedOver);
  const offs = eventNames.filter((name) => !passed.has(name)).map(listen);
  return () => {
    for (const off of offs) off?.();
  };
}

/** Every event of one source goes on to another. The returned function ends that. */
export function forward(from: EventSource, to: Emitter): () => void {
  const offs = eventNames.map((name) => from.on(name, (payload) => to.emit(name, payload)));
  return () => {
    for (const off of offs) off();
  };
}

// Who listens to which event, and the telling.

/** A minimal typed emitter: synchronous, in order, without special names. What a listener throws ends in `callbacks.ts`. */
export function createEmitter(): Emitter {
  const listeners = new Map<EventName, Set<(payload: never) => void>>();
  const callbacks = createCallbacks('a listener of');
  return {
    on(name, listener) {
      checkListener(name, listener);
      const set = listeners.get(name) ?? new Set();
      listeners.set(name, set);
      set.add(listener);
      return () => set.delete(listener);
    },
    emit(name, payload) {
      for (const listener of listeners.get(name) ?? []) callbacks.call(name, listener, payload as never);
    },
  };
}

/** A misspelt event would never be heard. */
function checkListener(name: EventName, listener: unknown): void {
  if (!eventNames.includes(name)) {
    const hint = hintOf(String(name), eventNames) || ';';
    throw new DuestreamError('bad-input', `there is no event ${show(name)}${hint} allowed: ${eventNames.join(', ')}`);
  }
  checkFunction(listener, `the listener of ${name}`);
}
