/**
 * A virtual machine that is suspended takes the monotonic clock of its worker along: the worker wakes up and trusts a
 * lease that has long been over. What `docs/guarantees.md` says of it is so.
 */
import { expect, it } from 'vitest';
import { createEmitter } from '../../../src/job/events.ts';
import type { AbortReason } from '../../../src/job/outcome.ts';
import { createExtender } from '../../../src/worker/run/extender.ts';
import { InFlight } from '../../../src/worker/run/in-flight.ts';
import { handClock } from '../../support/mover-line.ts';
import { only, usePartition } from '../../support/partition.ts';
import { running } from '../../support/running.ts';

const p = usePartition();

it('a worker whose clock stood still is told with its next extension, and its end has no effect', async () => {
  const claim = await p.running('a');
  const clock = handClock();
  const inFlight = new InFlight(4);
  const told: AbortReason[] = [];
  running(inFlight, {
    ref: p.ref,
    delivery: { entry: claim.entry, member: claim.member, dueMs: 0 },
    token: claim.token,
    leasedMs: clock.monotonicMs(),
    abort: (why) => told.push(why),
  });
  const extender = createExtender({
    jobs: p.jobs,
    inFlights: [inFlight],
    consumer: 'w1',
    queue: 'q',
    clock,
    events: createEmitter(),
    extendEveryMs: 5000,
    jobLeaseMs: 15_000,
    probe: () => p.redis.ping(),
  });

  // Suspended: the others see it die, take its job and start it, and no time passes here.
  const newer = only(await p.claim((await p.reclaim('w1')).deliveries, 'w2'));
  expect(Number(newer.token)).toBeGreaterThan(Number(claim.token));
  expect(told).toEqual([]);

  // Five seconds after it woke up, at the latest.
  clock.advance(5000);
  await extender.pass();
  expect(told).toEqual(['lease lost']);
  expect(await p.complete([claim])).toEqual(['fenced']);
  expect(await p.complete([newer])).toEqual(['ok']);
  await extender.stop();
});
