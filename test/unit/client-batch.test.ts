import { describe, expect, test } from 'vitest';
import { type BatchParts, ScheduleBatch } from '../../src/client/calls/batch.ts';
import { homeOf } from '../../src/client/calls/layouts.ts';
import { createSlots } from '../../src/client/calls/partition-calls.ts';
import type { Plan } from '../../src/client/calls/plan.ts';
import { Turns } from '../../src/client/calls/turns.ts';
import { defineQueue } from '../../src/job/queue.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { partitionRef } from '../../src/redis/keys.ts';
import type { ScheduleReply } from '../../src/redis/scripts/replies.ts';

const queue = defineQueue('q');
const layout = [partitionRef('t', { queue: 'q', partition: 0, layoutGeneration: 0 })];
const layouts: BatchParts['layouts'] = {
  known: () => layout,
  load: async () => layout,
  reload: async () => layout,
};
const plan = (id: string, bytes = 100): Plan => ({
  id,
  member: `j:${id}`,
  record: '1a|{}',
  dueMs: 1e12,
  bytes,
  mode: 'keep',
  strict: false,
});
/** No test here has an update that finds a job. */
const update: BatchParts['update'] = async () => ({ status: 'unknown' });
const turns = async (count: number) => {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

/** A batch whose script calls are answered by hand. */
function batchByHand() {
  const sent: { readonly size: number; readonly answer: (replies?: readonly ScheduleReply[]) => void }[] = [];
  const jobs: BatchParts['jobs'] = {
    schedule: (_, items) =>
      new Promise((resolve) => {
        const ok = items.map((): ScheduleReply => ({ kind: 'ok' }));
        sent.push({ size: items.length, answer: (replies = ok) => resolve(replies) });
      }),
  };
  const limits = { budgetMs: 1000, horizonMs: 1e9, recordBytesMax: 1e6, update };
  return {
    sent,
    batch: new ScheduleBatch({
      turns: new Turns({ clock: systemClock, budgetMs: 1000 }),
      jobs,
      layouts,
      clock: systemClock,
      ...limits,
    }),
  };
}

describe('a batch', () => {
  test('waits for the end of the turn, and no longer', async () => {
    const { sent, batch } = batchByHand();
    const results = [batch.add(queue, plan('a')), batch.add(queue, plan('b'))];
    expect(sent).toHaveLength(0);
    await turns(1);
    expect(sent.map(({ size }) => size)).toEqual([2]);
    sent[0]?.answer();
    expect(await Promise.all(results)).toHaveLength(2);
  });

  test('sends 32 at once while Redis has little to do, and the rest at the end of the turn', async () => {
    const { sent, batch } = batchByHand();
    const results = Array.from({ length: 200 }, (_, n) => batch.add(queue, plan(`${n}`)));
    expect(sent.map(({ size }) => size)).toEqual([32, 32, 32]);
    await turns(1);
    expect(sent.map(({ size }) => size)).toEqual([32, 32, 32, 104]);
    for (const call of sent) call.answer();
    expect(await Promise.all(results)).toHaveLength(200);
  });

  test('takes a list at once, and says of each job what became of it', async () => {
    const { sent, batch } = batchByHand();
    const answers = batch.addMany(
      queue,
      ['a', 'b', 'c'].map((id) => plan(id)),
    );
    await turns(1);
    sent[0]?.answer([{ kind: 'ok' }, { kind: 'too-large' }, { kind: 'later' }]);
    await expect.poll(() => sent.length).toBe(2);
    sent[1]?.answer([{ kind: 'exists', dueMs: 5 }]);
    const { results, errors } = await answers;
    expect(results.map((one) => one?.status)).toEqual(['scheduled', undefined, 'exists']);
    expect([...errors.keys()]).toEqual([1]);
    expect(await batch.addMany(queue, [])).toEqual({ results: [], errors: new Map() });
  });

  test('keeps at most 20 script calls on the way; what waits meanwhile goes together', async () => {
    const { sent, batch } = batchByHand();
    const results: Promise<unknown>[] = [];
    for (let n = 0; n < 100; n += 1) {
      results.push(batch.add(queue, plan(`${n}`)));
      await turns(1);
    }
    expect(sent.map(({ size }) => size)).toEqual(Array.from({ length: 20 }, () => 1));
    sent[0]?.answer();
    await expect.poll(() => sent.length).toBe(21);
    expect(sent[20]?.size).toBe(80);
    for (const call of sent) call.answer();
    expect(await Promise.all(results)).toHaveLength(100);
  });

  test('refuses more than it may hold, and takes more when there is room again', async () => {
    const { sent, batch } = batchByHand();
    const large = batch.add(queue, plan('a', 256 * 1024 * 1024));
    await expect(batch.add(queue, plan('b'))).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/calls already wait for Redis.*nothing was sent/),
    });
    await turns(1);
    sent[0]?.answer();
    await large;
    const later = batch.add(queue, plan('b'));
    await turns(1);
    sent[1]?.answer();
    expect((await later).status).toBe('scheduled');
  });

  test('makes what the script refuses an error of that job alone', async () => {
    const { sent, batch } = batchByHand();
    const settling = Promise.allSettled(['a', 'b', 'c', 'd'].map((id) => batch.add(queue, plan(id))));
    await turns(1);
    sent[0]?.answer([{ kind: 'bad-due', nowMs: 5e11 }, { kind: 'too-large' }, { kind: 'ok' }]);
    const messages = (await settling).map((one) => (one.status === 'rejected' ? one.reason.message : one.value.status));
    expect(messages).toEqual([
      'job a is due 2001-09-09T01:46:40.000Z, past the horizon; the clock of Redis says 1985-11-05T00:53:20.000Z',
      'the record of job b has 100 bytes, more than Redis may take: store the data elsewhere and schedule a reference',
      'scheduled',
      'the script replied to fewer jobs than it was sent',
    ]);
  });

  test('is quiet when all has settled', async () => {
    const { sent, batch } = batchByHand();
    await batch.quiet();
    const adding = batch.add(queue, plan('a'));
    let quiet = false;
    const becoming = batch.quiet().then(() => (quiet = true));
    await turns(3);
    expect(quiet).toBe(false);
    sent[0]?.answer();
    await Promise.all([adding, becoming]);
  });
});

test('a call that waits for others in an outage still ends after its budget and one time-out', async () => {
  const [budgetMs, timeoutMs] = [1000, 300];
  let nowMs = 0;
  let timers: { readonly atMs: number; readonly ring: () => void }[] = [];
  const wait = (ms: number) => new Promise<void>((ring) => timers.push({ atMs: nowMs + ms, ring }));
  const sleep = (ms: number) => wait(ms).then(() => true);
  const schedule = () => wait(timeoutMs).then(() => Promise.reject(new Error('Command timed out')));
  const clock = { ...systemClock, monotonicMs: () => nowMs, sleep };
  const limits = { budgetMs, horizonMs: 1e9, recordBytesMax: 1e6, update };
  const batch = new ScheduleBatch({
    turns: new Turns({ clock: systemClock, budgetMs: 1000 }),
    jobs: { schedule },
    layouts,
    clock,
    ...limits,
  });
  const tookMs: number[] = [];
  const call = (nth: number) => {
    const calledMs = nowMs;
    const ended = () => void tookMs.push(nowMs - calledMs);
    batch.add(queue, { ...plan(`${nth}`), mode: nth % 2 === 0 ? 'keep' : 'replace' }).catch(ended);
  };
  for (let nth = 0; nth < 20; nth += 1) call(nth);
  void wait(500).then(() => call(20));
  while (await turns(2).then(() => timers.length > 0)) {
    timers = timers.sort((one, other) => one.atMs - other.atMs);
    const next = timers.shift();
    nowMs = next?.atMs ?? nowMs;
    next?.ring();
  }
  expect(tookMs).toHaveLength(21);
  expect(Math.max(...tookMs)).toBeLessThanOrEqual(budgetMs + timeoutMs);
});

test('a job that a worker does not let go is asked for with a pause, until the budget is spent', async () => {
  const budgetMs = 3000;
  let [nowMs, calls] = [0, 0];
  const sleep = async (ms: number) => {
    nowMs += ms;
    return true;
  };
  const schedule: BatchParts['jobs']['schedule'] = async (_, items) => {
    calls += 1;
    if (calls > 10 * budgetMs) throw new Error('nobody pauses');
    return items.map(({ member }): ScheduleReply => (member === 'j:a' ? { kind: 'held' } : { kind: 'replaced' }));
  };
  const batch = new ScheduleBatch({
    turns: new Turns({ clock: systemClock, budgetMs }),
    jobs: { schedule },
    layouts,
    clock: { ...systemClock, monotonicMs: () => nowMs, sleep },
    ...{ budgetMs, horizonMs: 1e9, recordBytesMax: 1e6, update },
  });
  const plans = ['a', 'b'].map((id) => ({ ...plan(id), mode: 'replace' as const }));
  const { results, errors } = await batch.addMany(queue, plans);
  expect(results.map((one) => one?.status)).toEqual([undefined, 'replaced']);
  expect(errors.get(0)).toMatchObject({ code: 'unavailable', message: expect.stringContaining('has not let it go') });
  expect(calls).toBe(budgetMs + 1);
});

test('a partition that does not answer holds up no other, and is sent the rest when it does', async () => {
  const two = [0, 1].map((partition) => partitionRef('t', { queue: 'q', partition, layoutGeneration: 0 }));
  const idsOf = (partition: number) =>
    Array.from({ length: 400 }, (_, nth) => `${nth}`)
      .filter((id) => homeOf(two, id).partition === partition)
      .slice(0, 100);
  let isAway = true;
  const tried = new Set<string>();
  const schedule: BatchParts['jobs']['schedule'] = async ({ partition }, items) => {
    for (const { member } of partition === 0 ? items : []) tried.add(member);
    if (partition === 0 && isAway) throw new Error('Connection is closed.');
    return items.map((): ScheduleReply => ({ kind: 'ok' }));
  };
  const limits = { budgetMs: 60_000, horizonMs: 1e9, recordBytesMax: 1e6, update };
  const known = { known: () => two, load: async () => two, reload: async () => two };
  const batch = new ScheduleBatch({
    turns: new Turns({ clock: systemClock, budgetMs: 1000 }),
    jobs: { schedule },
    layouts: known,
    clock: systemClock,
    ...limits,
  });
  const away: Promise<unknown>[] = [];
  // Another mode each, so that each job has a call of its own.
  for (const [nth, id] of idsOf(0).entries()) {
    away.push(batch.add(queue, { ...plan(id), mode: nth % 2 === 0 ? 'keep' : 'replace' }));
  }
  await turns(3);
  // Some may have been repeated by now.
  expect(tried.size).toBeLessThanOrEqual(20);
  const answers = await batch.addMany(
    queue,
    idsOf(1).map((id) => plan(id)),
  );
  expect(answers.errors.size).toBe(0);
  expect(tried.size).toBeLessThanOrEqual(20);
  isAway = false;
  expect(await Promise.all(away)).toHaveLength(100);
});

describe('slots', () => {
  test('let so many run at once, the rest in order, and refuse a crowd', async () => {
    const slots = createSlots({ max: 2, waitingMax: 2 });
    const ends: (() => void)[] = [];
    const began: number[] = [];
    const run = (n: number) =>
      slots.run(() => {
        began.push(n);
        return new Promise<void>((resolve) => ends.push(resolve));
      });
    const all = [run(0), run(1), run(2), run(3)];
    await expect(run(4)).rejects.toMatchObject({ code: 'unavailable' });
    expect(began).toEqual([0, 1]);
    for (let n = 0; n < 4; n += 1) {
      await expect.poll(() => ends.length).toBeGreaterThan(n);
      ends[n]?.();
    }
    await Promise.all(all);
    expect(began).toEqual([0, 1, 2, 3]);
  });

  test('are free again after a call that failed, and without a queue refuse only who finds none', async () => {
    const slots = createSlots({ max: 1, waitingMax: 0 });
    const failing = slots.run(() => Promise.reject(new Error('no')));
    await expect(slots.run(async () => 'refused')).rejects.toMatchObject({ code: 'unavailable' });
    await expect(failing).rejects.toThrow('no');
    await expect.poll(() => slots.run(async () => 'ran').catch(() => undefined)).toBe('ran');
  });

  test('are given back by calls that go on without one, and a crowd of those is refused as well', async () => {
    const slots = createSlots({ max: 2, waitingMax: 3 });
    const ends: (() => void)[] = [];
    const repeated = (n: number) =>
      slots.run(async (giveBack) => {
        giveBack();
        giveBack();
        await new Promise<void>((resolve) => ends.push(resolve));
        return n;
      });
    const all = [repeated(0), repeated(1), repeated(2)];
    await expect.poll(() => ends.length).toBe(3);
    expect(await slots.run(async () => 'of another partition')).toBe('of another partition');
    const first = () => slots.run(() => new Promise<void>((resolve) => ends.push(resolve)));
    const others = [first()];
    await expect.poll(() => ends.length).toBe(4);
    others.push(first());
    await expect.poll(() => ends.length).toBe(5);
    await expect(slots.run(async () => 'refused')).rejects.toMatchObject({ code: 'unavailable' });
    for (const end of ends) end();
    expect(await Promise.all(all)).toEqual([0, 1, 2]);
    await Promise.all(others);
    expect(await slots.run(async () => 'ran')).toBe('ran');
  });
});
