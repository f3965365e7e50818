/** What becomes of jobs whose worker dies, falls silent, or never hears that it was given them. */
import { expect, it } from 'vitest';
import { memberOf } from '../../../src/job/codec.ts';
import { createEmitter } from '../../../src/job/events.ts';
import { systemClock } from '../../../src/kernel/clock.ts';
import { ownPending, readNew, reclaim } from '../../../src/redis/scripts/ready.ts';
import { createAdopter } from '../../../src/worker/recover/adopter.ts';
import { InFlight } from '../../../src/worker/run/in-flight.ts';
import { openLossyLine } from '../../support/lossy-line.ts';
import { aborted, eventually, gate, listen, QUICK, useLine } from '../../support/worker-line.ts';

const line = useLine();

/** What waits in ready is given to a worker that never existed, and started by it when asked. */
async function giveToGhost(count: number, { start = true, ghost = 'ghost' } = {}) {
  await eventually(async () => (await line.picture()).ready?.length ?? 0).toBeGreaterThanOrEqual(count);
  const batches = await readNew(line.redis, [line.ref], { consumer: ghost, count, blockMs: 0 });
  const deliveries = batches.flatMap((batch) => batch.deliveries);
  if (!start) return deliveries.map((delivery) => ({ ...delivery, token: undefined }));
  const settings = { consumer: ghost, bytesMax: 1_000_000, windowMs: 60_000 };
  const replies = await line.jobs.start(line.ref, deliveries, settings);
  return deliveries.map((delivery, at) => {
    const reply = replies[at];
    return { ...delivery, token: reply && 'token' in reply ? reply.token : undefined };
  });
}

it('what a dead worker had started runs elsewhere, counted as a crash and not as a failure', async () => {
  await line.plan({});
  await giveToGhost(1);
  const seen: unknown[] = [];
  const worker = await line.worker((job) => {
    seen.push({ attempt: job.attempt, crashes: job.crashes, failures: job.failures, last: job.history.at(-1)?.kind });
  }, QUICK);
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  expect(seen).toEqual([{ attempt: 2, crashes: 1, failures: 0, last: 'crash' }]);
  expect(worker.heard.of('entries.reclaimed')).toMatchObject([{ from: 'ghost', count: 1 }]);
  await eventually(() => worker.heard.of('consumer.retired')).toMatchObject([{ consumer: 'ghost' }]);
});

it('what a dead worker was given and had not started is no crash', async () => {
  await line.plan({});
  await giveToGhost(1, { start: false });
  const crashes: number[] = [];
  const worker = await line.worker((job) => crashes.push(job.crashes), QUICK);
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  expect(crashes).toEqual([0]);
});

it('a job under which workers keep dying is dead before its record is read', async () => {
  const dueMs = Date.now() - 1000;
  const poison = { member: memberOf('a'), record: `1${dueMs.toString(36)}|not JSON at all`, dueMs };
  await line.jobs.schedule(line.ref, [poison], { mode: 'keep', horizonMs: 1e12, bytesMax: 1000 });
  await giveToGhost(1);
  const ran: string[] = [];
  const worker = await line.worker((job) => ran.push(job.id), { ...QUICK, crashes: 1 });
  await eventually(() => worker.heard.of('job.dead')).toMatchObject([{ id: 'a', reason: 'crashes-exhausted' }]);
  expect(await line.deadLetters()).toMatchObject([{ reason: 'crashes-exhausted', record: poison.record }]);
  expect(ran).toEqual([]);
});

it('three crashes are the default budget: a job is started three times at most under dying workers', async () => {
  await line.plan({});
  await giveToGhost(1);
  const ran: string[] = [];
  // Two more workers take it over and die: what they hold is never extended, and they have no heartbeat.
  for (const [owner, ghost] of [
    ['ghost', 'ghost2'],
    ['ghost2', 'ghost3'],
  ] as const) {
    const { deliveries } = await reclaim(line.redis, line.ref, { owner, consumer: ghost, idleMs: 0, limit: 10 });
    const settings = { consumer: ghost, bytesMax: 1_000_000, windowMs: 60_000 };
    await line.jobs.start(line.ref, deliveries, settings);
  }
  const worker = await line.worker((job) => ran.push(job.id), QUICK);
  await eventually(() => worker.heard.of('job.dead')).toMatchObject([{ reason: 'crashes-exhausted' }]);
  expect(ran).toEqual([]);
  expect(await line.deadLetters()).toMatchObject([{ attempts: '4' }]);
});

it('a worker that reclaims while it reads still runs no more than its concurrency', async () => {
  await line.plan(...line.many(3, 'old'));
  await giveToGhost(3, { start: false });
  const doors: (() => void)[] = [];
  let running = 0;
  const counts: number[] = [];
  const worker = await line.worker(
    async () => {
      running += 1;
      counts.push(running);
      await new Promise<void>((resolve) => doors.push(resolve));
      running -= 1;
    },
    { ...QUICK, concurrency: 3 },
  );
  // The read that was sent before the take-over asked for three entries, and still waits for them.
  await eventually(() => worker.heard.of('entries.reclaimed').length).toBe(1);
  await eventually(() => doors.length).toBe(3);
  await line.plan(...line.many(3, 'new'));
  await eventually(async () => {
    const { ready = [], pending = {} } = await line.picture();
    return ready.length - (pending[worker.consumer]?.length ?? 0);
  }).toBe(3);
  for (let ended = 0; ended < 6; ended += 1) {
    await eventually(() => doors.length).toBeGreaterThan(ended);
    doors[ended]?.();
  }
  await eventually(() => worker.heard.of('job.completed').length).toBe(6);
  expect(Math.max(...counts)).toBeLessThanOrEqual(3);
});

it('a late end of the lost worker wins until the job is started again', async () => {
  await line.plan({});
  const [late] = await giveToGhost(1);
  if (!late?.token) throw new Error('the ghost started it');
  await reclaim(line.redis, line.ref, { owner: 'ghost', consumer: 'next', idleMs: 0, limit: 1 });
  const claim = { entry: late.entry, member: late.member, token: late.token };
  expect(await line.jobs.complete(line.ref, [claim], { windowMs: 60_000 })).toEqual(['ok']);
  const worker = await line.worker(() => undefined, QUICK);
  await eventually(() => worker.heard.of('consumer.retired').map(({ consumer }) => consumer)).toContain('next');
  expect(worker.heard.of('job.started')).toEqual([]);
});

it('a worker that stops extending loses its job to another, and what it says afterwards is refused', async () => {
  const door = gate();
  const stuck = await line.worker(() => door.opened, {
    jobLease: 86_400_000,
    beatTtl: 100,
    concurrency: 1,
  });
  await line.plan({});
  await eventually(() => stuck.heard.of('job.started').length).toBe(1);
  // Its heartbeat is taken away again and again, as if its event loop stood still.
  const beats = `t:v1:{control}:beat:${stuck.consumer}`;
  const timer = setInterval(() => void line.redis.del(beats).catch(() => undefined), 5);
  line.onEnd(() => clearInterval(timer));
  const other = await line.worker(() => undefined, { ...QUICK, jobLease: 300, grace: 100 });
  await eventually(() => other.heard.of('job.completed').length).toBe(1);
  expect(other.heard.of('job.started')).toMatchObject([{ attempt: 2 }]);
  door.open();
  await eventually(() => stuck.heard.of('job.fenced')).toMatchObject([{ id: 'a', verb: 'complete' }]);
  expect(stuck.heard.of('job.completed')).toEqual([]);
});

it('a handler whose lease was lost is told so, and the job goes on at its new owner', async () => {
  const reasons: string[] = [];
  const first = await line.worker(
    async (_job, { signal }) => {
      reasons.push(await aborted(signal));
      throw new Error('gave up');
    },
    { ...QUICK, jobLease: 2000, concurrency: 1 },
  );
  await line.plan({});
  await eventually(() => first.heard.of('job.started').length).toBe(1);
  const entry = (await line.redis.xrange(line.ref.keys.ready, '-', '+'))[0]?.[0] ?? '';
  const taken = await reclaim(line.redis, line.ref, { owner: first.consumer, consumer: 'b', idleMs: 0, limit: 1 });
  const [started] = await line.jobs.start(line.ref, taken.deliveries, {
    consumer: 'b',
    bytesMax: 1000,
    windowMs: 60_000,
  });
  await eventually(() => reasons).toEqual(['job aborted: lease lost']);
  await eventually(() => first.running()).toBe(0);
  expect(await line.redis.hget(line.ref.keys.runs, 'j:a')).toContain(` ${entry} b `);
  if (started?.kind !== 'run') throw new Error(`b was answered ${started?.kind}`);
  const claim = { entry: taken.deliveries[0]?.entry ?? ('' as never), member: 'j:a', token: started.token };
  expect(await line.jobs.complete(line.ref, [claim], { windowMs: 60_000 })).toEqual(['ok']);
  expect(first.heard.of('job.retried')).toEqual([]);
});

it('a delivery whose reply was lost is found by the adopter and runs', async () => {
  await line.plan({}, { id: 'b' });
  await giveToGhost(2, { start: false, ghost: 'me' });
  const events = createEmitter();
  const heard = listen(events);
  const inFlight = new InFlight(10);
  const taken: string[] = [];
  const parts = { commands: line.redis, refs: [line.ref], consumer: 'me', inFlight, clock: systemClock, events };
  const known = (await line.redis.xrange(line.ref.keys.ready, '-', '+')).at(-1)?.[0] ?? '';
  inFlight.add(line.ref, { entry: known as never, member: 'j:b', dueMs: 0 });
  const adopter = createAdopter({
    ...parts,
    calmMs: 3000,
    idleMs: 400,
    starter: { takeOver: async (_ref, deliveries) => void taken.push(...deliveries.map(({ member }) => member)) },
  });
  await adopter.pass();
  expect(taken).toEqual([]);
  await eventually(async () => {
    await adopter.pass();
    return taken;
  }).toEqual(['j:a']);
  expect(heard.of('entries.adopted')).toMatchObject([{ count: 1 }]);
  await line.jobs.release(line.ref, await held(), { consumer: 'me' });
});

it('a delivery that was lost with its connection is found as soon as the reader is connected again', async () => {
  await line.plan({}, { id: 'b' });
  const [lost] = await giveToGhost(1, { start: false, ghost: 'me' });
  // Since half a minute, and the connection is new since ten seconds: no stall of this machine comes near.
  await line.redis.xclaim(line.ref.keys.ready, 'workers', 'me', 0, lost?.entry ?? '', 'IDLE', 30_000, 'JUSTID');
  let nowMs = 0;
  const taken: string[] = [];
  const inFlight = new InFlight(10);
  const adopter = createAdopter({
    commands: line.redis,
    refs: [line.ref],
    consumer: 'me',
    inFlight,
    clock: { ...systemClock, monotonicMs: () => nowMs },
    events: createEmitter(),
    calmMs: 3000,
    idleMs: 60_000,
    starter: { takeOver: async (_ref, deliveries) => void taken.push(...deliveries.map(({ member }) => member)) },
  });
  adopter.connected();
  // This one may be on its way over the new connection.
  await giveToGhost(1, { start: false, ghost: 'me' });
  nowMs = 10_000;
  await adopter.pass();
  expect(taken).toEqual(['j:a']);
  await line.jobs.release(line.ref, await held(), { consumer: 'me' });
});

it('a worker whose reader loses a reply and its connection runs the job after a moment', async () => {
  const lossy = await openLossyLine(line.server);
  line.onEnd(lossy.close);
  const worker = await line.worker(() => undefined, { redis: lossy.url });
  await eventually(async () => String(await line.redis.call('CLIENT', 'LIST'))).toMatch(
    /name=duestream:reader:.* cmd=xreadgroup/,
  );
  // The text of a script, which travels once, has the name of the command as well.
  await line.plan({ id: 'first' });
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  lossy.loseReplyTo('XREADGROUP');
  // The read that waits now ends with nothing; the next one loses what it brings.
  await eventually(lossy.hasPassed).toBe(true);
  await line.plan({ id: 'b' });
  await eventually(() => lossy.lost()).toBe(1);
  await eventually(() => worker.heard.of('job.completed').length).toBe(2);
  expect(worker.heard.of('entries.adopted')).toMatchObject([{ count: 1 }]);
});

async function held() {
  const found = await line.redis.xrange(line.ref.keys.ready, '-', '+');
  return found.map(([entry, fields]) => ({ entry: entry as never, member: fields[1] ?? '', dueMs: Number(fields[3]) }));
}

it('an adopted entry that somebody deleted is only forgotten', async () => {
  await line.plan({});
  const [delivery] = await giveToGhost(1, { start: false, ghost: 'me' });
  await line.redis.xdel(line.ref.keys.ready, delivery?.entry ?? '');
  const adopter = createAdopter({
    commands: line.redis,
    refs: [line.ref],
    consumer: 'me',
    inFlight: new InFlight(10),
    calmMs: 3000,
    idleMs: 0,
    clock: systemClock,
    events: createEmitter(),
    starter: { takeOver: () => Promise.reject(new Error('there is nothing to take')) },
  });
  await adopter.pass();
  expect((await line.picture()).pending).toBeUndefined();
  await line.redis.hdel(line.ref.keys.jobs, 'j:a');
  await line.redis.hset(line.ref.keys.meta, 'n.scheduled', 0);
});

it('an entry without a record becomes a dead letter, and the worker goes on', async () => {
  const worker = await line.worker(() => undefined);
  await line.redis.xadd(line.ref.keys.ready, '*', 'member', 'j:nothing', 'due', Date.now());
  await line.plan({});
  await eventually(() => worker.heard.of('job.completed')).toMatchObject([{ id: 'a' }]);
  expect(await line.deadLetters()).toMatchObject([{ member: 'j:nothing', reason: 'record-missing' }]);
});

it('a failure of a worker that was only taken for dead costs no attempt, except the last one it may have', async () => {
  const door = gate();
  const histories: unknown[] = [];
  const worker = await line.worker(async ({ id, failures, crashes, history }) => {
    histories.push([id, failures, crashes, ...history.map(({ kind }) => kind)]);
    if (histories.length > 2) return;
    await door.opened;
    throw new Error('no luck');
  });
  await line.plan(
    { id: 'last', attempts: 1 },
    { id: 'spare', attempts: 2, backoff: { kind: 'fixed', delayMs: 10, jitter: 'none' } },
  );
  await eventually(() => histories.length).toBe(2);
  const held = await ownPending(line.redis, line.ref.keys, { consumer: worker.consumer, idleMs: 0, limit: 10 });
  await reclaim(line.redis, line.ref, {
    owner: worker.consumer,
    consumer: 'ghost',
    idleMs: 0,
    limit: 10,
    entries: held,
  });
  door.open();
  await eventually(() => worker.heard.of('job.dead')).toMatchObject([{ id: 'last', reason: 'attempts-exhausted' }]);
  const [deadLetter] = await line.deadLetters();
  expect(deadLetter?.history?.match(/"k":"\w+"/g)).toEqual(['"k":"crash"', '"k":"failure"']);
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  expect(histories.at(-1)).toEqual(['spare', 0, 1, 'crash', 'failure']);
});
