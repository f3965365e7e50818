/**
 * One story told twice: to the test kit in virtual time, and to a worker on a real Redis. Both tell how each start ended
 * and what became of each job, in the same words, so that a test can compare them.
 */

import { createClient } from '../../src/client/client.ts';
import { idOf, memberOf } from '../../src/job/codec.ts';
import type { Abandoned } from '../../src/job/compensation.ts';
import type { EventSource } from '../../src/job/events.ts';
import type { ScheduleOptions } from '../../src/job/options.ts';
import { defineQueue, type QueueOptions, type Untyped } from '../../src/job/queue.ts';
import { deadLetters, peek } from '../../src/redis/read/inspect.ts';
import { createAgenda, virtualClock } from '../../src/testing/agenda.ts';
import { createTestKit, type Run, type TestKitOptions } from '../../src/testing/index.ts';
import { createJobBook } from '../../src/testing/jobs.ts';
import { servedBy } from '../../src/testing/served.ts';
import { defineHandlers, type Handler, type QueueHandlers } from '../../src/worker/run/handlers.ts';
import { eventually, gate, type Line, NAMESPACE } from './worker-line.ts';

export interface Told {
  /** How each start ended: `name outcome: error`. */
  readonly ends: readonly string[];
  /** What became of each job: `id state, attempts: reason`. */
  readonly jobs: readonly string[];
}

export interface Story {
  readonly queue?: QueueOptions;
  /** `hold` is over at once in virtual time; in real time when the test says so. */
  readonly handlers: (hold: () => Promise<void>) => QueueHandlers<Untyped>;
  readonly onAbandoned?: Handler<Abandoned>;
  readonly data?: unknown;
  /** `nowMs` is the moment of the call. */
  readonly options?: (nowMs: number) => ScheduleOptions;
  /** In virtual time. Default 0. */
  readonly lasts?: TestKitOptions['lasts'];
  /** Somebody cancels it while it runs; then the handler may go on. */
  readonly cancel?: boolean;
  /** How often handlers are started in all, compensation jobs included; 0 for a job that expires. Default 1. */
  readonly starts?: number;
  /** Of the product: what is written over the record before a worker reads it. */
  readonly record?: string;
}

const ID = 'a';

interface Seen {
  readonly id: string;
  readonly state: string;
  readonly attempts: number;
  readonly reason: string | undefined;
}

/** The ids of compensation jobs hold a token, which is another one in each world. */
const jobLine = ({ id, state, attempts, reason }: Seen) =>
  `${id.replace(/abandoned:\d+$/, 'abandoned:token')} ${state}, ${attempts}: ${reason ?? '-'}`;
const endLine = (name: string, outcome: string, error?: string) => `${name} ${outcome}: ${error ?? '-'}`;

/** The queue has the name that it has in the product, because a job's key for `commit` holds it. */
export async function inKit(name: string, story: Story): Promise<Told> {
  const q = defineQueue(name, story.queue);
  const handlers = defineHandlers(
    { [name]: story.handlers(async () => undefined) },
    { queues: [q], ...(story.onAbandoned && { onAbandoned: { [name]: story.onAbandoned } }) },
  );
  const kit = createTestKit({ handlers, lasts: story.lasts });
  await kit.schedule(q, story.data, { id: ID, ...story.options?.(kit.nowMs) });
  await kit.advance('1s');
  const asked = story.cancel ? [`cancel ${kit.cancel(q, ID)}`] : [];
  await kit.advance('30d');
  return {
    ends: [...asked, ...kit.runs.map((run) => endLine(run.name, run.outcome, run.error))],
    jobs: kit.jobs().map(jobLine).sort(),
  };
}

/** The kit, with a record that no call of its own could make. */
export async function inKitWith(record: string, handlers: Story['handlers']): Promise<Told> {
  const q = defineQueue('q');
  const map = defineHandlers({ q: handlers(async () => undefined) });
  const agenda = createAgenda(Date.UTC(2026, 0));
  const runs: Run[] = [];
  const book = createJobBook({
    agenda,
    runs,
    clock: virtualClock(agenda.nowMs),
    servedBy: servedBy(map),
    queueOf: () => q,
    lastsMs: () => 0,
    random: () => 0.5,
    inline: false,
    calls: noCalls,
    subscribersOf: () => [],
  });
  await book.add(q, { id: ID, record, dueMs: agenda.nowMs(), mode: 'keep', strict: false });
  await agenda.advanceTo(agenda.nowMs() + 1000);
  return {
    ends: runs.map(({ name, outcome, error }) => endLine(name, outcome, error)),
    jobs: book.all().map(jobLine),
  };
}

/** The handlers of these stories ask for nothing. */
const noCalls = () => {
  throw new Error('no calls here');
};

export async function inProduct(line: Line, story: Story): Promise<Told> {
  const door = gate();
  const entered = gate();
  const hold = () => {
    entered.open();
    return door.opened;
  };
  const producer = createClient({ redis: { path: line.server.socketPath }, namespace: NAMESPACE });
  line.onEnd(() => producer.close());
  const { rate: _, concurrency: _most, perGroup: _each, fair: _fair, ...ofQueue } = story.queue ?? {};
  const settings = { ...ofQueue, ...(story.onAbandoned && { onAbandoned: story.onAbandoned }) };
  const worker = line.make(story.handlers(hold) as QueueHandlers<unknown>, settings);
  const { ends, expired } = endsOf(worker.events);
  await producer.schedule(line.queue, story.data, { id: ID, ...story.options?.(Date.now()) });
  if (story.record !== undefined) await line.redis.hset(line.ref.keys.jobs, memberOf(ID), story.record);
  await worker.start();
  const asked: string[] = [];
  if (story.cancel) {
    await entered.opened;
    asked.push(`cancel ${(await producer.cancel(line.queue, ID)).status}`);
    door.open();
  }
  await eventually(() => ends.length + expired().length).toBe(story.starts ?? 1);
  door.open();
  return { ends: [...asked, ...ends], jobs: await jobsOf(line) };
}

/** How each start ended, told after Redis has answered. */
function endsOf(events: EventSource) {
  const ends: string[] = [];
  const expired: string[] = [];
  const on = (name: 'job.retried' | 'job.dead' | 'job.failed', outcome: string) =>
    events.on(name, (told) => ends.push(endLine(told.name, outcome, told.error.message)));
  on('job.retried', 'retry');
  on('job.dead', 'dead');
  on('job.failed', 'failed');
  events.on('job.completed', ({ name }) => ends.push(endLine(name, 'done')));
  events.on('job.deferred', ({ name }) => ends.push(endLine(name, 'defer')));
  events.on('job.cancelled', ({ name }) => ends.push(endLine(name, 'cancelled')));
  events.on('job.expired', ({ id }) => expired.push(id));
  return { ends, expired: () => expired };
}

async function jobsOf(line: Line): Promise<readonly string[]> {
  const reasons = new Map(
    (await deadLetters(line.redis, line.ref, { limit: 100 })).map(({ id, reason }) => [id, reason]),
  );
  const members = await line.redis.hkeys(line.ref.keys.jobs);
  const seen = await Promise.all(
    members.map(async (member) => {
      const found = await peek(line.redis, line.ref, member);
      if (!found || 'kind' in found) throw new Error(`${member} is gone`);
      const { id } = idOf(member);
      const attempts = found.tombstone?.attempts ?? found.run?.attempts ?? 0;
      return jobLine({ id, state: found.state, attempts, reason: reasons.get(id) });
    }),
  );
  return seen.sort();
}
