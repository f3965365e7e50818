/** Every event has a line on its page, and the log of a daemon says it at the level that the list names. */
import { describe, expect, test } from 'vitest';
import { createLog } from '../src/daemon/log.ts';
import { logEvents } from '../src/job/event-log.ts';
import {
  createEmitter,
  type EventName,
  type Events,
  eventLevels,
  eventNames,
  forward,
  listenToAll,
} from '../src/job/events.ts';
import { read, walk } from './support/repository.ts';

const placed = { queue: 'emails', partition: 0 };
const named = { queue: 'emails', id: 'order-1042', name: 'welcome' };
const error = { atMs: 1_763_719_000_000, attempt: 1, kind: 'failure', message: 'smtp said no' } as const;

/** One of each that is worth a line in the log. */
const SAMPLES: Events = {
  'leader.elected': { ...placed, epoch: 7 },
  'leader.lost': { ...placed, epoch: 7, why: 'the trust window ran out' },
  'leader.away': { queue: 'emails', partitions: [0] },
  'leader.back': { queue: 'emails', awayMs: 1000 },
  'jobs.promoted': { ...placed, count: 2, deadLetters: 0, lateness: [[1, 2]], tookMs: 1 },
  'mover.passed': { ...placed, state: 'promoted', tookMs: 1 },
  'schedule.fired': { ...placed, schedule: 'nightly', atMs: 1_763_719_000_000, outcome: 'ok', latenessMs: 1 },
  'schedule.missed': { ...placed, schedule: 'nightly', sinceMs: 1_763_719_000_000, fired: 1, missed: 1 },
  'schedule.unreadable': { ...placed, schedule: 'nightly', why: 'no JSON' },
  'job.started': { ...named, attempt: 1, lateMs: 1 },
  'job.completed': { ...named, tookMs: 1 },
  'job.retried': { ...named, tookMs: 1, delayMs: 1000, error },
  'job.deferred': { ...named, tookMs: 1, delayMs: 1000 },
  'job.dead': { ...named, tookMs: 1, reason: 'attempts', error },
  'job.failed': { ...named, tookMs: 1, error },
  'job.expired': { queue: 'emails', id: 'order-1042', dead: false },
  'job.cancelled': named,
  'job.overran': { queue: 'emails', id: 'order-1042', name: 'default', tookMs: 35_000 },
  'job.fenced': { queue: 'emails', id: 'order-1042', verb: 'complete', reply: 'fenced' },
  'log.refused': { queue: 'emails', lines: 3 },
  'jobs.missed': { queue: 'emails', reason: 'bounds', count: 3 },
  'jobs.parked': { ...placed, count: 1 },
  'parked.waiting': { queue: 'emails', waiting: 1 },
  'suspects.waiting': { queue: 'emails', waiting: 1 },
  'slots.lost': { queue: 'emails', id: 'order-1042', lost: 1, concurrency: 50 },
  'worker.exhausted': { queue: 'emails', lost: 25, concurrency: 50 },
  'worker.paused': { by: 'token:ops', reason: 'a heap dump' },
  'worker.resumed': { pausedMs: 60_000 },
  'entries.reclaimed': { ...placed, from: 'w-1', count: 1 },
  'entries.adopted': { ...placed, count: 1 },
  'target.called': { queue: 'hooks', outcome: '2xx', tookMs: 12 },
  'target.gone': { queue: 'hooks', id: 'order-1042', host: 'api.example.com' },
  'target.closed': { queue: 'hooks', host: 'api.example.com', forMs: 5000, why: 'timeout' },
  'claim.answered': { queue: 'emails', outcome: 'handed', jobs: 1, waitedMs: 1 },
  'run.settled': { queue: 'emails', end: 'complete', word: 'ok' },
  'runs.reclaimed': { ...placed, from: 'h-a-1', to: 'h-a-2', cause: 'lease', count: 1, ids: ['order-1042'] },
  'runs.overtime': { queue: 'emails', id: 'order-1042', worker: 'h-a-1' },
  'polls.waiting': { queue: 'emails', polls: 1 },
  'consumer.retired': { ...placed, consumer: 'w-1' },
  'partition.repaired': { ...placed, what: 'orphan', count: 1 },
  'redis.away': { who: 'mover', why: 'connect ECONNREFUSED', answered: false },
  'redis.back': { who: 'mover', awayMs: 1000 },
  'redis.changed': { who: 'mover', before: 'a', runId: 'b', empty: true },
  'schema.refused': { who: 'registry', why: 'namespace duestream has schema 2' },
  'redis.evicts': { policy: 'allkeys-lru', limitBytes: 1e9, jobs: true },
  'redis.keeps': { after: 'allkeys-lru' },
  'clock.off': { aheadMs: -2000 },
  'clock.right': { aheadMs: 3 },
  'versions.differ': { own: '0.2.0', others: '0.1.4, 0.3.0' },
  'versions.agree': { own: '0.2.0' },
  'promise.rejected': { error: 'smtp said no' },
  'process.ticked': { lagMs: 2000 },
};

/** The levels of the lines that each event makes. Redis is back only after it was away: they come in this order. */
function logged(): ReadonlyMap<EventName, readonly string[]> {
  const lines: string[] = [];
  const log = createLog({ level: 'trace', role: 'daemon', to: { write: (line: string) => lines.push(line) } });
  const events = createEmitter();
  const stop = logEvents(events, log);
  const found = eventNames.map((name) => {
    emit(name, events);
    return [name, lines.splice(0).map((line) => String(JSON.parse(line).level))] as const;
  });
  stop();
  return new Map(found);
}

const emit = <N extends EventName>(name: N, events: ReturnType<typeof createEmitter>) =>
  events.emit(name, SAMPLES[name]);

describe('an event', () => {
  const found = logged();

  test.each(eventNames)('%s is logged once, at the level that the list names', (name) => {
    expect(found.get(name)).toEqual(eventLevels[name] === 'none' ? [] : [eventLevels[name]]);
  });

  test('that nothing of ours tells is none', () => {
    const sources = walk('src').map(read).join('\n');
    expect(eventNames.filter((name) => !sources.includes(`emit('${name}'`))).toEqual([]);
  });

  test('has a line in the reference', () => {
    const page = read('docs/reference/events.md');
    expect(eventNames.filter((name) => !page.includes(`| \`${name}\` |`))).toEqual([]);
  });
});

test('every event goes on from a worker to its daemon, until that is ended', () => {
  const [from, to] = [createEmitter(), createEmitter()];
  const told: EventName[] = [];
  for (const name of eventNames) to.on(name, () => told.push(name));
  const end = forward(from, to);
  for (const name of eventNames) emit(name, from);
  expect(told).toEqual(eventNames);
  end();
  emit('job.dead', from);
  expect(told).toHaveLength(eventNames.length);
});

test('who listens to all hears what he does not pass over, until he stops', () => {
  const events = createEmitter();
  const heard: string[] = [];
  const others = eventNames.filter((name) => name !== 'job.dead');
  // The compiler knows each name of a literal; here the rest is passed over as a list.
  const stop = listenToAll(
    events,
    { 'job.dead': ({ id }) => heard.push(id) },
    others as readonly Exclude<EventName, 'job.dead'>[],
  );
  for (const name of eventNames) emit(name, events);
  expect(heard).toEqual(['order-1042']);
  stop();
  emit('job.dead', events);
  expect(heard).toHaveLength(1);
});

test('a forgotten event does not compile', () => {
  // @ts-expect-error all but one are forgotten here
  const stop = listenToAll(createEmitter(), { 'job.dead': () => undefined }, ['job.started']);
  stop();
});
