/**
 * Every event there is, at run time, and the two ways to listen to all of them. The compiler wants a row for each event,
 * and of each listener that it says which events it passes over: what a list forgets would be dropped in silence.
 */
import type { Emitter, EventName, EventSource, Events } from './events.ts';

/** At which level a daemon logs an event; `none`: it is there for metrics and for programs. A test compares its lines. */
export const eventLevels: Readonly<Record<EventName, 'debug' | 'info' | 'warn' | 'error' | 'none'>> = {
  'leader.elected': 'info',
  'leader.lost': 'info',
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
  'job.fenced': 'warn',
  'jobs.missed': 'warn',
  'jobs.parked': 'warn',
  'parked.waiting': 'none',
  'suspects.waiting': 'warn',
  'slots.lost': 'warn',
  'worker.exhausted': 'error',
  'entries.reclaimed': 'warn',
  'entries.adopted': 'warn',
  'consumer.retired': 'info',
  'partition.repaired': 'warn',
  'redis.away': 'warn',
  'redis.back': 'info',
  'redis.changed': 'warn',
  'schema.refused': 'error',
  'redis.evicts': 'error',
  'redis.keeps': 'info',
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
