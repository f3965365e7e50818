/**
 * The producer of the test kit is a producer: the same calls are made to it and to one on a real Redis, through every
 * state that a job can be in, and each reply and each refusal must be the same.
 */
import { expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { Unrecoverable } from '../../../src/job/outcome.ts';
import { messageOf } from '../../../src/kernel/errors.ts';
import type { KitClient } from '../../../src/testing/client.ts';
import { createTestKit } from '../../../src/testing/index.ts';
import type { QueueHandlers } from '../../../src/worker/run/handlers.ts';
import { eventually, gate, NAMESPACE, useLine } from '../../support/worker-line.ts';

const line = useLine();

const day = (date: number) => new Date(Date.UTC(2030, 0, date));
const waiting = (id: string) => ({ id, at: day(1) });
/** What another machine, another day or another run says otherwise. */
const OWN = [
  'nowMs',
  'startedMs',
  'entry',
  'overMs',
  'tookMs',
  'owner',
  'worker',
  'token',
  'deadLetter',
  'queue',
  'atMs',
  'stack',
  'sinceMs',
  'anchorMs',
  'aheadMs',
  'reachedMs',
];
const bareOf = (queue: string, reply: unknown): unknown =>
  JSON.parse(
    JSON.stringify(reply ?? 'nothing', (name, value) => {
      // That of a schedule says since when it is there.
      if (name === 'etag') return String(value).includes(':') ? String(value).replace(/:[1-9]\d*:/, ':token:') : 'etag';
      return OWN.includes(name) ? undefined : name === 'cursor' ? 'where to go on' : value;
    }).replaceAll(queue, 'q'),
  );

/** Makes a call, and notes what came of it. */
function listener(queue: string) {
  const told: unknown[] = [];
  const note = async (call: Promise<unknown>) => {
    try {
      told.push(bareOf(queue, await call));
    } catch (error) {
      const { code } = error as { readonly code?: string };
      told.push(
        `${code}: ${messageOf(error)
          .replaceAll(queue, 'q')
          .replace(/its etag is "\w+"/, 'its etag is another')}`,
      );
    }
  };
  return { told, note };
}

type Note = (call: Promise<unknown>) => Promise<void>;

async function whileTheyWait(p: KitClient, q: string, note: Note) {
  for (const options of [{}, {}, { at: day(2) }, { at: day(2), ifExists: 'replace' }, { ifExists: 'error' }] as const) {
    await note(p.schedule(q, { n: 1 }, { ...waiting('a'), attempts: 3, ...options }));
  }
  await note(
    p.scheduleMany(q, [
      { data: 1, ...waiting('b') },
      { data: 2, ...waiting('c'), name: 'other' },
    ]),
  );
  await note(
    p.scheduleMany(q, [
      { data: 1, ...waiting('b') },
      { data: 9, ...waiting('b'), ifExists: 'error' },
    ]),
  );
  await note(p.get(q, 'a'));
  await note(p.get(q, 'none'));
  await note(p.get(q, 'a', { bare: true }));
  for (const due of [
    { at: day(3) },
    { at: day(3) },
    { at: day(9), only: 'earlier' },
    { at: day(1), only: 'later' },
  ] as const) {
    await note(p.reschedule(q, 'a', due));
  }
  await note(p.reschedule(q, ['none', { id: 'b', at: day(4) }], { at: day(2) }));
  await note(p.edit(q, 'a', { data: { n: 2 }, attempts: null, maxLateness: '1h' }));
  await note(p.edit(q, 'a', { data: { n: 2 } }));
  await note(p.edit(q, 'a', { name: 'new' }, { ifDigest: '0123456789abcdef' }));
  await note(p.edit(q, ['b', 'none'], { name: 'new' }));
  await note(p.get(q, 'a'));
  // What was edited is still known by the call that made it.
  await note(p.schedule(q, { n: 1 }, { ...waiting('a'), at: day(2), attempts: 3 }));
  await note(p.cancel(q, 'b'));
  await note(p.cancel(q, ['b', 'c', 'none']));
  await note(p.cancel(q, 'none', { bare: true }));
  await note(p.get(q, 'b'));
  await note(p.reschedule(q, 'b', { delay: '1h' }));
  await note(p.edit(q, 'b', { data: 1 }));
  await note(p.runNow(q, ['b', 'none']));
  await note(p.deadLetters.replay(q, { job: 'b' }));
  await note(p.deadLetters.replay(q, '1-1'));
}

async function whileTheyAreFound(p: KitClient, q: string, note: Note) {
  const list = [...'zyxw'].map((id, nth) => ({ id, at: day(10 - nth), data: { n: nth }, tags: ['t', `n:${nth % 2}`] }));
  await note(p.scheduleMany(q, [...list, { id: 'other', at: day(8), data: { n: 0 }, name: 'other', tags: ['t'] }]));
  const due = { from: day(8), to: day(10) };
  for (const filter of [{ state: 'scheduled' }, { tag: 't' }, { name: 'other' }, { idPrefix: 'x' }, { due }] as const) {
    await note(p.list(q, { ...filter, limit: 2 }));
    await note(p.list(q, filter));
    await note(p.count(q, filter));
  }
  const { cursor } = await p.list(q, { tag: 't', limit: 3 });
  await note(p.list(q, { tag: 't', cursor }));
  await note(p.list(q, { tag: 'n:0', cursor }));
  await note(p.cancel(q, { tag: 't' }, { dryRun: true }));
  await note(p.runNow(q, { due }, { dryRun: true }));
  await note(p.reschedule(q, { tag: 'n:0' }, { at: day(12) }));
  await note(p.reschedule(q, { tag: 't' }, { at: day(12) }));
  await note(p.reschedule(q, { tag: 't' }, { at: day(20), only: 'earlier' }));
  await note(p.edit(q, { tag: 'n:1' }, { data: { n: 9 }, expiresAt: day(13) }));
  await note(p.edit(q, { tag: 'n:1' }, { data: { n: 9 } }));
  await note(p.edit(q, { tag: 't' }, { expiresAt: day(11) }));
  await note(p.edit(q, { tag: 't' }, { tags: ['v'] }, { limit: 2 }));
  await note(p.list(q, { tag: 'v' }));
  await note(p.cancel(q, {}));
  await note(p.cancel(q, { tag: 'v' }));
  await note(p.cancel(q, { tag: 't' }));
  await note(p.list(q));
}

async function refusals(p: KitClient, q: string, note: Note) {
  const loose = p as unknown as Record<string, (...given: readonly unknown[]) => Promise<unknown>>;
  const call = (name: string, ...given: readonly unknown[]) => note(loose[name]?.(q, ...given) ?? Promise.reject());
  await note(p.schedule('A b', 1));
  await note(p.schedule(q, { when: Number.NaN }));
  await call('schedule', 1, { at: 1_767_225_600_000 });
  await call('schedule', 1, { delya: '1m' });
  await call('schedule', 1, { delay: '2 fortnights' });
  await call('schedule', 1, { durability: 'always' });
  await call('scheduleMany', 5);
  await call('scheduleMany', [{ data: 1 }, { data: 1, id: 'x y' }]);
  await call('cancel', 'a', { bear: true });
  await call('get', 'a', { bear: true });
  await call('reschedule', 'a', { until: '1h' });
  await call('reschedule', 'a', {});
  await call('edit', 'a', { atempts: 3 });
  await call('edit', 'a', {});
  await call('edit', 'a', { ifDigest: 'x', data: 1 });
  await call('runNow', 'a b');
  await note(p.deadLetters.replay(q, 'x'));
  await note(p.deadLetters.replay(q, { job: 'a' }, { dleay: '1m' } as object));
  await note(p.deadLetters.replay(q, ['1-1', { job: 'nobody' }], { delay: '1h' }));
}

interface Stage {
  /** What is due has been started, or has ended. */
  readonly play: () => Promise<void>;
  /** What runs may end. */
  readonly release: () => Promise<void>;
}

async function whileTheyRun(p: KitClient, q: string, { note, play, release }: Stage & { readonly note: Note }) {
  await note(p.schedule(q, 7, { ...waiting('held'), name: 'hold' }));
  await note(p.schedule(q, 8, { ...waiting('dead'), name: 'die', maxLateness: '99d' }));
  await note(p.runNow(q, 'held'));
  await note(p.runNow(q, 'dead'));
  await play();
  await note(p.get(q, 'held'));
  await note(p.list(q, { state: 'running' }).then(({ jobs }) => jobs.map(({ dueMs: _, ...job }) => job)));
  await note(p.list(q, { state: ['ready', 'running'] }).then(({ scanned }) => ({ scanned })));
  await note(p.edit(q, { idPrefix: 'held' }, { data: 8 }));
  await note(p.reschedule(q, 'held', { at: day(3) }));
  await note(p.edit(q, 'held', { data: 8 }));
  await note(p.schedule(q, 9, { ...waiting('held'), ifExists: 'replace' }));
  await note(p.schedule(q, 7, { ...waiting('held'), name: 'hold' }));
  await note(p.cancel(q, 'held'));
  await note(p.get(q, 'held'));
  await release();
  await note(p.get(q, 'held'));
  await note(p.get(q, 'dead'));
  await note(p.deadLetters.replay(q, { job: 'dead' }, { at: day(5) }));
  await note(p.deadLetters.replay(q, { job: 'dead' }, { at: day(5) }));
  await note(p.get(q, 'dead'));
  await note(p.cancel(q, 'dead'));
}

async function withSchedules({ schedules }: Pick<Client, 'schedules'>, q: string, note: Note) {
  const name = `${q}-daily`;
  const daily = { queue: q, cron: '0 9 * * *', zone: 'Europe/Berlin', start: '2030-01-01T00:00:00Z', maxRuns: 9 };
  for (const input of [daily, daily, { ...daily, data: { n: 1 }, tags: ['x'] }]) await note(schedules.put(name, input));
  for (const wrong of ['0 9 * *', '@daily 9']) await note(schedules.put(name, { ...daily, cron: wrong }));
  await note(schedules.put(name, { ...daily, maxRuns: 8 }, { ifMatch: 'd:0' }));
  await note(schedules.put(`${q}-none`, daily, { ifMatch: '*' }));
  await note(schedules.get(name));
  await note(schedules.get(`${q}-none`));
  await note(schedules.list({ queue: q }));
  await note(schedules.list({ queue: q, tag: 'y' }));
  await note(schedules.list({ que: q } as object));
  await note(schedules.preview(name, { next: 3, from: '2030-03-29' }));
  await note(schedules.preview(daily, { next: 2, name: `${q}-other` }));
  await note(schedules.preview(`${q}-dialy`));
  await note(schedules.pause(name, 'holidays'));
  await note(schedules.preview(name, { next: 2 }));
  await note(schedules.pause(name));
  await note(schedules.get(name));
  await note(schedules.forecast({ queue: q }).then(({ schedules: told, overdue }) => ({ told, overdue })));
  await note(schedules.forecast({ queue: `${q}-never` }).catch(({ code }) => ({ code })));
  await note(schedules.trigger(name, { id: 'by-hand' }));
  await note(schedules.trigger(`${q}-none`));
  for (const dryRun of [true, false, false]) {
    await note(schedules.backfill(name, { from: '2030-01-02', to: '2030-01-04', dryRun }));
  }
  await note(schedules.backfill(name, { from: '2030-01-01', to: '2031-01-01', limit: 5 }));
  await note(schedules.remove(name, { ifMatch: 'd:0' }));
  await note(schedules.resume(name));
  await note(schedules.remove(name));
  await note(schedules.remove(name));
  await note(schedules.pause(name));
}

async function inKit(): Promise<readonly unknown[]> {
  const handlers = { q: { hold: () => undefined, die: dies } };
  const kit = createTestKit({ handlers, lasts: ({ name }) => (name === 'hold' ? '1m' : 0) });
  const { told, note } = listener('q');
  await whileTheyWait(kit.client, 'q', note);
  await whileTheyAreFound(kit.client, 'q', note);
  await refusals(kit.client, 'q', note);
  const stage = { play: () => kit.advance('1s'), release: () => kit.advance('1h') };
  await whileTheyRun(kit.client, 'q', { ...stage, note });
  await withSchedules(kit.client, 'q', note);
  await kit.client.stop();
  await note(kit.client.schedule('q', 1));
  await note(kit.client.ready());
  return told;
}

async function inProduct(): Promise<readonly unknown[]> {
  const door = gate();
  const producer = createClient({ redis: { path: line.server.socketPath }, namespace: NAMESPACE });
  line.onEnd(() => producer.stop());
  const { told, note } = listener(line.queue);
  await whileTheyWait(producer, line.queue, note);
  await whileTheyAreFound(producer, line.queue, note);
  await refusals(producer, line.queue, note);
  const entered = gate();
  const hold = () => {
    entered.open();
    return door.opened;
  };
  const worker = line.make({ hold, die: dies } as QueueHandlers<unknown>);
  const ended: string[] = [];
  worker.events.on('job.dead', ({ id }) => ended.push(id));
  worker.events.on('job.cancelled', ({ id }) => ended.push(id));
  await worker.start();
  await whileTheyRun(producer, line.queue, {
    note,
    async play() {
      await entered.opened;
      await eventually(() => ended).toContain('dead');
    },
    async release() {
      door.open();
      await eventually(() => ended).toContain('held');
    },
  });
  await withSchedules(producer, line.queue, note);
  await producer.stop();
  await note(producer.schedule(line.queue, 1));
  await note(producer.ready());
  return told;
}

function dies(): never {
  throw new Unrecoverable('no');
}

test('every reply and every refusal of its producer is that of the product', async () => {
  const told = await inProduct();
  expect(await inKit()).toEqual(told);
  expect(told.length).toBeGreaterThan(130);
});
