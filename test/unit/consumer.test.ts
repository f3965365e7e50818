/** What a worker reads and starts, with a Redis whose replies come when the test says so. */
import { expect, it } from 'vitest';
import { memberOf } from '../../src/job/codec.ts';
import { createEmitter } from '../../src/job/emitter.ts';
import type { EntryId, Token } from '../../src/job/job.ts';
import { idle } from '../../src/kernel/loop.ts';
import type { Redis } from '../../src/redis/connection/connect.ts';
import { partitionRef } from '../../src/redis/keys.ts';
import type { Jobs } from '../../src/redis/scripts/jobs.ts';
import type { Delivery, Started, StartReply } from '../../src/redis/scripts/replies.ts';
import { createConsumer } from '../../src/worker/fetch/consumer.ts';
import { createTurns } from '../../src/worker/fetch/turns.ts';
import type { Acknowledger } from '../../src/worker/run/acknowledgement.ts';
import type { Executor } from '../../src/worker/run/execution.ts';
import { InFlight, type InFlightEntry } from '../../src/worker/run/in-flight.ts';
import { handClock } from '../support/mover-line.ts';

const LEASE_MS = 3000;
/** Nine tenths, less what an entry that was just started may have waited for that. */
const TRUSTED_MS = 0.9 * LEASE_MS - 750;
const ref = partitionRef('t', { queue: 'q', partition: 0, layoutGeneration: 0 });
const deliveryOf = (id: string, nth: number) => ({ entry: `${nth}-0` as EntryId, member: memberOf(id), dueMs: 1 });
const started = (kind: 'run' | 'again'): StartReply => ({
  kind,
  token: '7' as Token,
  attempts: 1,
  failures: 0,
  crashes: 0,
  generation: 0,
  history: [],
  record: '',
});

/** Lets every microtask that waits have its turn. */
const breathe = () => new Promise((resolve) => setImmediate(resolve));

/** A worker with one slot. */
function setUp() {
  const clock = handClock();
  const inFlight = new InFlight(1);
  const reads: string[][] = [];
  const starts: ((reply: StartReply) => void)[] = [];
  const executed: string[] = [];
  const blocking = {
    call: async (...words: unknown[]) => {
      reads.push(words.map(String));
      if (words.at(-1) === 'STREAMS') throw new Error('ERR syntax error');
      return null;
    },
  };
  const jobs = {
    start: () => new Promise((resolve) => starts.push((reply) => resolve([reply]))),
    serve: (_ref: unknown, { given }: { given: readonly Delivery[] }) =>
      new Promise((resolve) =>
        starts.push((reply) =>
          resolve({
            completed: undefined,
            delivered: 0,
            refusal: undefined,
            taken: given.map((one) => ({ ...one, ...reply })),
          }),
        ),
      ),
    release: async () => ['ok'],
  };
  const base = { inFlight, clock, events: createEmitter(), signal: new AbortController().signal };
  const acknowledger = { failed: (entry: InFlightEntry) => inFlight.abandoned(entry) } as unknown as Acknowledger;
  const turns = createTurns({
    ...base,
    jobs: jobs as unknown as Jobs,
    consumer: 'w',
    concurrency: 1,
    bytesMax: 1000,
    windowMs: 60_000,
    suspectCrashes: 2,
    acknowledger,
    readerJobs: jobs as unknown as Jobs,
  });
  const consumer = createConsumer({
    turns,
    commands: blocking as unknown as Redis,
    blocking: blocking as unknown as Redis,
    jobs: jobs as unknown as Jobs,
    refs: [ref],
    consumer: 'w',
    concurrency: 1,
    bytesMax: 1000,
    windowMs: 60_000,
    suspectCrashes: 2,
    ...base,
    jobLeaseMs: LEASE_MS,
    expire: async () => [],
    acknowledger,
    executor: {
      execute(held: InFlightEntry, { kind }: Started) {
        executed.push(`${held.delivery.member} ${kind}`);
        // All workers of a process share one quarantine, so nothing may seem to run on after its test.
        inFlight.refused(held);
        inFlight.answered(held);
      },
    } as unknown as Executor,
  });
  return {
    consumer,
    inFlight,
    clock,
    reads,
    executed,
    starts: () => starts.length,
    /** Redis answers the last start. */
    async answers(reply: StartReply) {
      starts.at(-1)?.(reply);
      await breathe();
    },
  };
}

it('a slot that a take-over had first is not read for: the reader waits again', async () => {
  const { consumer, inFlight, reads, answers } = setUp();
  inFlight.setOpen(false);
  const taken = consumer.take(ref, [deliveryOf('a', 1)]);
  const passed = consumer.pass();
  inFlight.setOpen(true);
  expect(await passed).toEqual(idle(0));
  expect([reads, inFlight.busy()]).toEqual([[], 1]);
  const next = consumer.pass();
  await breathe();
  expect(reads).toEqual([]);
  await answers({ kind: 'dropped' });
  await Promise.all([taken, next]);
  expect(reads.map((words) => words.join(' '))).toEqual([
    `XREADGROUP GROUP workers w COUNT 1 BLOCK 2000 STREAMS ${ref.keys.ready} >`,
  ]);
});

it('a start that is answered too late to be trusted is asked for again, and the answer decides', async () => {
  const { consumer, clock, inFlight, executed, starts, answers } = setUp();
  const taken = consumer.take(ref, [deliveryOf('a', 1)]);
  await breathe();
  clock.advance(TRUSTED_MS);
  await answers(started('run'));
  expect([executed, starts(), inFlight.busy()]).toEqual([[], 2, 1]);
  clock.advance(TRUSTED_MS - 1);
  await answers(started('again'));
  await taken;
  expect([executed, starts()]).toEqual([['j:a again'], 2]);
});

it('a start that is answered too late, and is no longer ours by then, is over', async () => {
  const { consumer, clock, inFlight, executed, answers } = setUp();
  const taken = consumer.take(ref, [deliveryOf('a', 1)]);
  await breathe();
  clock.advance(LEASE_MS);
  await answers(started('run'));
  await answers({ kind: 'lost' });
  await taken;
  expect([executed, inFlight.size()]).toEqual([[], 0]);
});

it('a suspect whose start is answered too late is left to adoption', async () => {
  const { consumer, clock, inFlight, executed, starts, answers } = setUp();
  const taken = consumer.take(ref, [deliveryOf('a', 1)]);
  await breathe();
  await answers({ kind: 'suspect', token: '3' as Token });
  await taken;
  expect([starts(), inFlight.isOpen()]).toEqual([2, false]);
  clock.advance(LEASE_MS);
  await answers(started('run'));
  expect([executed, inFlight.size(), inFlight.isOpen()]).toEqual([[], 0, true]);
});
