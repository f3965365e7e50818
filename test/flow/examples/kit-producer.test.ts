/**
 * The kit runs the product over a model of Redis: the same calls are made to a client of the kit and to one on a real Redis,
 * through every state that a job can be in, and each reply and each refusal must be the same.
 */
import { describe, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import type { Erased } from '../../../src/client/erase/erasure.ts';
import type { BulkJob } from '../../../src/client/jobs/scheduling.ts';
import { fixed } from '../../../src/job/backoff.ts';
import { Unrecoverable } from '../../../src/job/outcome.ts';
import { defineQueue, type Queue } from '../../../src/job/queue.ts';
import { messageOf } from '../../../src/kernel/errors.ts';
import { createTestKit } from '../../../src/testing/index.ts';
import type { QueueHandlers } from '../../../src/worker/run/handlers.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { eventually, gate, NAMESPACE, useLine } from '../../support/worker-line.ts';

const day = (date: number) => new Date(Date.UTC(2030, 0, date));
const waiting = (id: string) => ({ id, at: day(1) });
/** What another machine, another day or another run says otherwise. */
const OWN = [
  'nowMs',
  'startedMs',
  'entry',
  'overMs',
  'tookMs',
  'waitMs',
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
  'firstMs',
  'lastMs',
  'account',
];
/** A record says when it was made, where that was late: there a digest differs from that of another moment. */
function isMadeLate(view: { readonly askedDueMs?: number; readonly dueMs?: number; readonly etag?: string }): boolean {
  const [, told = 'running'] = /:(\w+)$/.exec(view.etag ?? '') ?? [];
  return [view.askedDueMs, view.dueMs, Number(told)].some((ms = Number.NaN) => ms < Date.UTC(2025, 0));
}

/** The etag of a schedule says since when it is there, that of a job which start it had. */
function etagOf(text: string, madeLate: boolean): string {
  if (!text.includes(':')) return 'etag';
  const timeless = text.replace(/:[1-9]\d*:/, ':token:');
  return madeLate ? timeless.replace(/^\w+/, 'digest') : timeless;
}

const bareOf = (queue: string, reply: unknown): unknown =>
  JSON.parse(
    JSON.stringify(reply ?? 'nothing', function bare(this: object, name, value) {
      if (name === 'digest' && isMadeLate(this)) return undefined;
      if (name === 'etag') return etagOf(String(value), isMadeLate(this));
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

async function updates(p: Client, q: string, note: Note) {
  const update = { id: 'u', ifExists: 'update' } as const;
  const calls = [{ at: day(2), tags: ['t'] }, { data: 2 }, { data: 2 }, { at: day(3), attempts: 2, name: 'other' }];
  for (const { data, ...options } of calls) await note(p.schedule(q, data, { ...options, ...update }));
  await note(p.get(q, 'u'));
  await note(p.cancel(q, 'u'));
  await note(
    p.scheduleMany(q, [
      { data: 3, at: day(1), ...update },
      { data: 3, at: day(1), ...update, id: 'v' },
    ]),
  );
  await note(p.cancel(q, 'v'));
}

async function whileTheyWait(p: Client, q: string, note: Note) {
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
  await updates(p, q, note);
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

async function whileTheyAreFound(p: Client, q: string, note: Note) {
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

async function refusals(p: Client, q: string, note: Note) {
  const loose = p as unknown as Record<string, (...given: readonly unknown[]) => Promise<unknown>>;
  const call = (name: string, ...given: readonly unknown[]) => note(loose[name]?.(q, ...given) ?? Promise.reject());
  await note(p.schedule('A b', 1));
  await note(p.schedule(q, { when: Number.NaN }));
  await call('schedule', 1, { at: 1_767_225_600_000 });
  await call('schedule', 1, { delya: '1m' });
  await call('schedule', 1, { delay: '2 fortnights' });
  await call('schedule', 1, { durability: 'always' });
  await call('schedule', 1, { ...waiting('of-group'), group: 'g' });
  await call('schedule', 1, { ...waiting('first'), priority: 'high' });
  await call('scheduleMany', [waiting('plain'), { ...waiting('last'), priority: 'low' }]);
  await call('get', 'plain');
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

async function whileTheyRun(p: Client, q: string, { note, play, release }: Stage & { readonly note: Note }) {
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
  await note(schedules.put(name, { ...daily, priority: 'low' }));
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
  await kit.client.close();
  await note(kit.client.schedule('q', 1));
  await note(kit.client.ready());
  return told;
}

describe('in a queue of one partition', () => {
  const line = useLine();

  async function inProduct(): Promise<readonly unknown[]> {
    const door = gate();
    const producer = createClient({ redis: { path: line.server.socketPath }, namespace: NAMESPACE });
    line.onEnd(() => producer.close());
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
    await producer.close();
    await note(producer.schedule(line.queue, 1));
    await note(producer.ready());
    return told;
  }

  test('every reply and every refusal of its client is that of the product', async () => {
    const told = await inProduct();
    expect(await inKit()).toEqual(told);
    expect(told.length).toBeGreaterThan(130);
  });
});

function dies(): never {
  throw new Unrecoverable('no');
}

/** What one queue and its client do until their jobs have ended. */
interface Story {
  readonly p: Client;
  readonly q: Queue<unknown>;
  readonly note: Note;
  /** Schedules jobs for now, and resolves when each has ended, one after the other. */
  readonly end: (...jobs: readonly BulkJob<unknown>[]) => Promise<void>;
  /** Schedules a job, and resolves while it runs. */
  readonly hold: (job: BulkJob<unknown>) => Promise<void>;
  readonly release: () => Promise<void>;
}

/** A job that was asked for a day which is the same everywhere, and is due now. */
async function startNow(p: Client, q: Queue<unknown>, { data, ...options }: BulkJob<unknown>): Promise<void> {
  const { id } = await p.schedule(q, data, { at: day(1), ...options });
  await p.runNow(q, id);
}

/** With the instants of replays that are due now left out. */
const undated = (call: Promise<object>): Promise<unknown> =>
  call.then((reply) =>
    Array.isArray(reply) ? reply.map((one) => ({ ...one, dueMs: 'now' })) : { ...reply, dueMs: 'now' },
  );

/** Bounded calls, one after the other by their cursors, each noted. */
async function throughout<Page extends { readonly cursor: string | undefined }>(
  note: Note,
  call: (cursor: string | undefined) => Promise<Page>,
): Promise<void> {
  let cursor: string | undefined;
  for (let calls = 0; calls < 40 && (calls === 0 || cursor !== undefined); calls += 1) {
    const page = await call(cursor);
    await note(Promise.resolve(page));
    cursor = page.cursor;
  }
}

const letters = [
  { id: 'd0', data: 1, name: 'boom', tags: ['p:1'], headers: { trace: 'a' } },
  { id: 'd1', data: 22, name: 'boom', tags: ['p:1', 'x'] },
  { id: 'd2', data: { to: 'a@example.org' }, name: 'bang' },
  { id: 'd3', data: 333, name: 'boom', tags: ['x'], maxLateness: '9d' },
  { id: 'd4', data: 4, name: 'nobody' },
  { id: 'd5', data: 5, name: 'retry', attempts: 2, backoff: fixed('10ms') },
  { id: 'd0', data: 6, name: 'bang', tags: ['p:1'] },
] as const;

/** Jobs that are over; those of one millisecond come in any order. */
async function endsAreListed(p: Pick<Client, 'list'>, q: Story['q'], note: Note) {
  const filters = [
    { state: 'dead' },
    { state: ['done', 'dead'] },
    { state: ['scheduled', 'dead'] },
    { state: 'dead', name: 'boom' },
    { state: 'dead', tag: 'x' },
    { state: 'dead', idPrefix: 'd1' },
    { state: 'dead', ended: { to: day(-9999) } },
    { state: 'cancelled' },
    { state: 'dead', due: { from: day(1) } },
    { state: 'scheduled', ended: { from: day(1) } },
    { state: 'dead', ended: { from: day(2), to: day(1) } },
    { state: 'over' as never },
  ] as const;
  for (const filter of filters) {
    const rows = p.list(q, filter).then(({ jobs }) => jobs);
    await note(
      rows.then((jobs) => jobs.map(({ id, state, name, tags }) => `${id} ${state} ${name} ${tags}`).toSorted()),
    );
  }
  const each: string[] = [];
  for await (const { id } of p.list(q, { state: 'dead' })) each.push(id);
  await note(Promise.resolve(each.toSorted()));
}

async function looksAtTheDead({ p: { deadLetters, ...p }, q, note, end }: Story) {
  await note(deadLetters.list(q));
  await note(deadLetters.groups(q));
  await end(...letters);
  await endsAreListed(p, q, note);
  const filters = [
    {},
    { reason: 'no-handler' },
    { name: 'boom' },
    { tag: 'p:1' },
    { tag: 'x', name: 'boom' },
    { id: 'd0' },
    { error: 'no user # in "…"' },
    { olderThan: '1h' },
    { newerThan: '1h' },
    { olderThan: 0, reason: 'no-handler' },
    { id: 'none' },
  ] as const;
  for (const filter of filters) {
    await note(deadLetters.list(q, filter));
    await note(deadLetters.groups(q, filter));
    await note(deadLetters.list(q, filter, { limit: 1, scanMax: 4 }));
    await note(undated(deadLetters.replay(q, filter, { dryRun: true, all: true })));
    await note(deadLetters.remove(q, filter, { dryRun: true, all: true }));
  }
  await throughout(note, (cursor) => deadLetters.list(q, {}, { limit: 3, cursor }));
  await throughout(note, (cursor) => deadLetters.list(q, { name: 'boom' }, { scanMax: 2, cursor }));
  await throughout(note, (cursor) => deadLetters.groups(q, {}, { scanMax: 3, cursor }));
  await throughout(note, (cursor) => deadLetters.remove(q, {}, { dryRun: true, all: true, limit: 2, cursor }));
  await throughout(note, (cursor) => deadLetters.remove(q, { tag: 'p:1' }, { dryRun: true, scanMax: 2, cursor }));
  const page = await deadLetters.list(q, {}, { limit: 2 });
  for (const { deadLetter, partition } of page.deadLetters) {
    await note(deadLetters.get(q, deadLetter));
    await note(deadLetters.get(q, deadLetter, { partition: 1 - partition }));
  }
  for (const { id } of letters) {
    await note(p.get(q, id));
  }
  const { cursor } = page;
  await note(deadLetters.list(q, { name: 'boom' }, { cursor }));
  await note(deadLetters.groups(q, {}, { cursor }));
  await note(deadLetters.remove(q, {}, { all: true, cursor }));
}

async function isRefusedTheDead({ p, q, note }: Story) {
  const dead = p.deadLetters as unknown as Record<string, (...given: readonly unknown[]) => Promise<unknown>>;
  const call = (name: string, ...given: readonly unknown[]) => note(dead[name]?.(q, ...given) ?? Promise.reject());
  for (const verb of ['list', 'groups', 'replay', 'remove']) {
    for (const filter of [
      { reson: 'x' },
      { reason: '' },
      { name: 5 },
      { tag: 'y'.repeat(1025) },
      { olderThan: 'soon' },
    ]) {
      await call(verb, filter);
    }
    for (const bounds of [
      { limit: 0 },
      { limit: 1e6 },
      { scanMax: 'x' },
      { scanMax: 1e9 },
      { cursor: 'x' },
      { cursr: '' },
    ]) {
      await call(verb, { name: 'boom' }, bounds);
    }
    await note(dead[verb]?.('A b', { name: 'boom' }) ?? Promise.reject());
  }
  for (const verb of ['replay', 'remove']) {
    for (const target of [{}, 7, 'x', null, { job: 'x y' }, { deadLetter: 5 }, ['1-1', 'x'], { partition: 1 }])
      await call(verb, target);
    await call(verb, '1-1', { ifMatch: '' });
    await call(verb, '1-1', { limit: 1 });
    await call(verb, ['1-1'], { partition: 1 });
    await call(verb, ['1-1', { job: 'nobody' }]);
    await call(verb, '1-1', { partition: 9 });
    await call(verb, { job: 'nobody', bare: true });
  }
  await call('get', 'x');
  await call('get', '1-1');
  await call('replay', { name: 'boom' }, { over: '31d' });
  await call('replay', { name: 'boom' }, { delay: '1m', at: day(1) });
  await call('replay', { name: 'boom' }, { durability: 'always' });
  await call('remove', { name: 'boom' }, { durability: 'memory' });
}

async function changesTheDead({ p, q, note, end }: Story) {
  const { deadLetters } = p;
  const all = async () => (await deadLetters.list(q)).deadLetters;
  const find = async (id: string) => (await all()).find((one) => one.id === id) ?? { deadLetter: '1-1', etag: '' };
  const { etag, deadLetter } = await find('d1');
  const other = await find('d2');
  for (const ifMatch of [other.etag, etag]) {
    await note(deadLetters.replay(q, deadLetter, { ifMatch, at: day(5) }));
    await note(deadLetters.remove(q, other.deadLetter, { ifMatch: ifMatch === etag ? other.etag : etag }));
  }
  await note(deadLetters.remove(q, other.deadLetter, { ifMatch: '*' }));
  await note(p.get(q, 'd2'));
  await note(undated(deadLetters.replay(q, [{ job: 'd1' }, { job: 'd0', ifMatch: etag }, '1-1'])));
  // The same one twice in one call, and one whose job lives.
  // The second is looked for before the first is scheduled, and finds it gone, or after, and finds its job alive.
  const twice = deadLetters.replay(q, [{ job: 'd0' }, { job: 'd0' }], { at: day(6) });
  await note(twice.then((all) => all.map((one) => (one.status === 'live' ? { ...one, status: 'gone' } : one))));
  await note(deadLetters.replay(q, { job: 'd0' }, { at: day(6) }));
  await note(p.get(q, 'd0'));
  await note(p.cancel(q, 'd0'));
  await note(deadLetters.list(q));
  await end(
    { id: 'd6', data: 7, name: 'boom' },
    { id: 'd7', data: 8, name: 'boom' },
    { id: 'd8', data: 9, name: 'bang' },
  );
  const told: unknown[] = [];
  const onProgress = (progress: object) => void told.push(progress);
  await throughout(note, (cursor) =>
    deadLetters.replay(q, { name: 'boom' }, { at: day(7), over: '1h', limit: 2, cursor, onProgress }),
  );
  await note(p.list(q, { state: 'scheduled' }).then(({ jobs }) => jobs.map(({ id }) => id).toSorted()));
  await throughout(note, (cursor) => deadLetters.remove(q, { reason: 'no-handler' }, { limit: 1, cursor, onProgress }));
  await note(deadLetters.remove(q, (await all()).slice(0, 1)));
  await note(deadLetters.remove(q, {}, { all: true, onProgress }));
  await note(Promise.resolve(told));
  await note(deadLetters.list(q));
  await note(p.get(q, 'd5'));
}

async function erases({ p, q, note, end, hold, release }: Story) {
  // Where these are due follows from the ids of their dead letters.
  await p.cancel(q, { state: 'scheduled' });
  const tags = ['u:1'];
  const other = `${q.name}-other`;
  const later = { at: day(9) };
  await p.scheduleMany(
    q,
    [...'klmno'].map((id) => ({ id, data: id, ...later, tags: id < 'n' ? tags : ['u:2'] })),
  );
  await p.scheduleMany(other, [
    { id: 'k', data: 1, ...later, tags },
    { id: 'l', data: 1, ...later },
  ]);
  for (const filter of [{}, { tag: 'u:1' }, { idPrefix: 'm' }, { state: 'scheduled' }] as const) {
    await throughout(note, (cursor) => p.list(q, { ...filter, limit: 2, cursor }));
    for await (const job of p.list(q, filter)) await note(Promise.resolve(job));
    await note(p.count(q, filter));
    await note(p.count(q.name, filter));
  }
  await throughout(note, (cursor) => p.reschedule(q, { tag: 'u:1' }, { at: day(8) }, { limit: 1, cursor }));
  await throughout(note, (cursor) => p.edit(q, { tag: 'u:1' }, { data: 9 }, { limit: 1, cursor }));
  // Lives of one id: the first has the tag, the last has not; of another one the other way around.
  await end(
    { id: 'life', data: 1, tags },
    { id: 'efil', data: 1 },
    { id: 'life', data: 2 },
    { id: 'efil', data: 2, tags },
  );
  await end(
    { id: 'e0', data: 1, name: 'boom', tags },
    { id: 'e1', data: 1, name: 'bang', tags },
    { id: 'e2', data: 1, name: 'bang', tags: ['u:2'] },
  );
  await hold({ id: 'held', data: 1, name: 'hold', tags });
  for (const id of ['life', 'efil']) await note(p.get(q, id));
  const told: unknown[] = [];
  const onProgress = (progress: object) => void told.push(progress);
  const shown = { data: { to: '[redacted]' } };
  for (const queue of [q, q.name]) await note(p.edit(queue, 'k', shown));
  await note(p.edit(q.name, { tag: 'u:1' }, shown));
  await note(p.schedule(q.name, shown.data, { id: 'k', ...later, ifExists: 'replace' }));
  const dryRun = true;
  await note(p.erase({ tag: 'u:1' }, { dryRun, onProgress }));
  await note(p.erase({ tag: 'u:1' }, { dryRun, queues: [other, 'never'] }));
  await note(p.erase({ tag: 'u:9' }, { dryRun }));
  await throughout(note, (cursor) => p.erase({ tag: 'u:1' }, { dryRun, scanMax: 3, cursor }));
  await note(p.erase({ tag: 'u:1' }, { signal: AbortSignal.abort() }));
  const { cursor } = await p.erase({ tag: 'u:1' }, { dryRun, scanMax: 1 });
  for (const options of [
    { queues: [other], cursor },
    { cursor: 'x' },
    { scanMax: 0 },
    { queues: 'x' },
    { queues: ['A b'] },
    { tga: 1 },
  ]) {
    await note(p.erase({ tag: 'u:1' }, options as object));
  }
  await note(p.erase({ tag: 'u:2' }, { cursor }));
  for (const filter of [{}, { tag: '' }, { tag: 7 }, { tag: 'u:1', name: 'x' }, null]) {
    await note(p.erase(filter as unknown as { readonly tag: string }));
  }
  await throughout(note, (at): Promise<Erased> => p.erase({ tag: 'u:1' }, { scanMax: 2, cursor: at, onProgress }));
  await note(p.get(q, 'held'));
  await release();
  await note(p.erase({ tag: 'u:1' }, { onProgress }));
  await note(Promise.resolve(told));
  for (const id of ['k', 'n', 'life', 'efil', 'e0', 'held']) {
    await note(p.get(q, id));
  }
  await note(p.deadLetters.list(q));
  // The next life of an id does not bring an erased one back.
  await end({ id: 'efil', data: 3, tags });
  await note(p.get(q, 'efil'));
  await note(p.erase({ tag: 'u:1' }));
  await note(p.count(q));
}

async function isTold(story: Story) {
  await looksAtTheDead(story);
  await isRefusedTheDead(story);
  await changesTheDead(story);
  await erases(story);
  await story.p.close();
  await story.note(story.p.deadLetters.list(story.q));
  await story.note(story.p.erase({ tag: 'u:1' }));
}

const storyHandlers = (hold: () => unknown): QueueHandlers<unknown> => ({
  hold,
  default: () => ({ n: 1 }),
  boom: ({ data }) => {
    throw new Unrecoverable(`no user ${String(data)} in "eu"`);
  },
  bang: () => {
    throw new Unrecoverable('bang');
  },
  retry: () => {
    throw new Error('timeout after 5 ms');
  },
});

const definition = { partitions: 2, history: { result: true }, redact: ['to'] } as const;

describe('in a queue of two partitions that keeps a history', () => {
  const line = useLine({ partitions: 2 });

  async function inKitToo(): Promise<readonly unknown[]> {
    const q = defineQueue<unknown>('q', definition);
    const handlers = { q: storyHandlers(() => undefined) };
    const kit = createTestKit({ handlers, queues: [q], lasts: ({ name }) => (name === 'hold' ? '1m' : 5) });
    const { told, note } = listener('q');
    await isTold({
      p: kit.client,
      q,
      note,
      async end(...jobs) {
        for (const job of jobs) {
          await startNow(kit.client, q, job);
          await kit.advance('1s');
        }
      },
      async hold(job) {
        await startNow(kit.client, q, job);
        await kit.advance('1s');
      },
      release: () => kit.advance('1m'),
    });
    return told;
  }

  async function inProductToo(): Promise<readonly unknown[]> {
    const q = defineQueue<unknown>(line.queue, definition);
    const redis = { path: line.server.socketPath };
    const client = createClient({ redis, namespace: NAMESPACE });
    line.onEnd(() => client.close());
    const [entered, door] = [gate(), gate()];
    const handlers = storyHandlers(() => {
      entered.open();
      return door.opened;
    });
    const worker = createWorker(q, handlers, { redis, namespace: NAMESPACE, shutdown: 2000 });
    line.onEnd(() => worker.stop({ shutdown: 500 }));
    const ended: string[] = [];
    for (const event of ['job.dead', 'job.completed', 'job.cancelled'] as const) {
      worker.events.on(event, ({ id }) => ended.push(id));
    }
    await worker.start();
    const { told, note } = listener(line.queue);
    await isTold({
      p: client,
      q,
      note,
      async end(...jobs) {
        for (const job of jobs) {
          const before = ended.length;
          await startNow(client, q, job);
          await eventually(() => ended.slice(before)).toContain(job.id);
        }
      },
      async hold(job) {
        await startNow(client, q, job);
        await entered.opened;
      },
      async release() {
        door.open();
        await eventually(() => ended).toContain('held');
      },
    });
    return told;
  }

  test('dead letters and erase answer in the kit as in the product', async () => {
    const told = await inProductToo();
    expect(await inKitToo()).toEqual(told);
    expect(told.length).toBeGreaterThan(250);
  });
});

const past = (date: number) => new Date(Date.UTC(2020, 0, date));
const first = { id: 'first', at: past(1) };

/** What is done while one job holds the only place of its queue, and others wait for it. */
async function whileTheyWaitInLine(p: Client, q: Queue<unknown>, { note, settle }: Lined) {
  const all = [
    { id: 'a', at: past(3) },
    { id: 'b', at: past(5), group: 'acme' },
    { id: 'c', at: past(4), group: 'acme', priority: 'high', tags: ['t'] },
    { id: 'd', at: past(2), priority: 'low' },
    { id: '{acme}e', at: past(6), priority: 'normal' },
    { id: 'f', at: past(7) },
  ] as const;
  const jobs = all.map((job, n) => ({ ...job, data: { n } }));
  const look = async () => {
    await note(p.list(q, { state: 'waiting' }));
    await note(p.groups.list(q));
    await note(p.groups.list(q, { top: true }));
    await note(p.groups.get(q, 'acme'));
    await note(p.list(q));
    for (const filter of [{ state: 'waiting' }, { state: ['waiting', 'running'] }, {}] as const)
      await note(p.count(q, filter));
  };
  await note(p.scheduleMany(q, jobs));
  await settle(6);
  await look();
  await note(p.scheduleMany(q, jobs));
  for (const id of ['a', '{acme}b', '{acme}c', 'first']) {
    await note(p.get(q, id));
  }
  await note(p.list(q, { state: 'waiting', limit: 2 }));
  await note(p.list(q, { state: 'waiting', due: { from: past(3), to: past(5) } }));
  await note(p.count(q, { state: 'waiting', due: { from: past(3), to: past(5) } }));
  await note(p.list(q, { idPrefix: '{acme}' }));
  await note(p.list(q, { tag: 't' }));
  await note(p.schedule(q, 9, { id: 'a', at: past(9) }));
  await note(p.schedule(q, 9, { id: 'a', at: past(9), ifExists: 'error' }));
  await note(p.schedule(q, 9, { id: 'd', at: day(9), ifExists: 'replace', priority: 'low' }));
  await note(p.get(q, 'd'));
  await note(p.runNow(q, ['a', '{acme}b', 'none']));
  for (const due of [
    { at: past(1) },
    { at: past(5) },
    { at: past(9), only: 'later' },
    { at: day(2), only: 'earlier' },
    { at: day(2), only: 'later' },
  ] as const) {
    await note(p.reschedule(q, '{acme}b', due));
  }
  await note(p.edit(q, '{acme}c', { data: 7 }));
  await look();
  await note(p.edit(q, '{acme}e', { priority: 'high' }));
  await note(p.edit(q, '{acme}c', { priority: 'low', tags: ['t', 'u'] }));
  await settle(4);
  await look();
  await note(p.cancel(q, { state: 'waiting' }, { dryRun: true }));
  await note(p.reschedule(q, { state: 'waiting', idPrefix: 'f' }, { at: day(8) }));
  await note(p.reschedule(q, 'f', { at: past(7) }));
  await note(p.cancel(q, 'a'));
  await note(p.cancel(q, ['a', 'b']));
  await settle(3);
  await look();
  await note(p.edit(q, { state: 'waiting' }, { name: 'other' }));
  await note(p.erase({ tag: 'u' }));
  await settle(2);
  await look();
}

interface Lined {
  readonly note: Note;
  /** What is due is in line: so many. */
  readonly settle: (waiting: number) => Promise<void>;
}

async function needsLimits(p: Client, name: string, note: Note) {
  const gated = defineQueue(`${name}-gated`, { fair: true });
  const late = { at: day(9) };
  await note(p.schedule(gated, 1, { id: 'x', ...late, group: 'acme', priority: 'high' }));
  await note(p.schedule(gated.name, 1, { id: 'y', ...late, group: 'acme' }));
  for (const wrong of [
    { group: 'a b' },
    { group: 'schedule:x' },
    { group: 7 },
    { id: '{other}x', group: 'acme' },
    { id: 'x'.repeat(125), group: 'acme' },
    { priority: 'urgent' },
    { id: '{acme}abandoned:1' },
    { priority: 'low', tags: [...'abcdefghij'] },
  ]) {
    await note(p.schedule(gated, 1, { ...late, ...wrong } as object));
  }
  await note(p.groups.list(gated));
  await note(p.groups.list(`${name}-open`));
  // The first call of a client about a queue sets the limits of its definition, and no later one.
  await note(p.schedule(`${name}-open`, 1, { id: 'x', ...late }));
  await note(p.schedule(defineQueue(`${name}-open`, { perGroup: 1 }), 1, { id: 'y', ...late, group: 'acme' }));
  await note(p.schedules.put(`${name}-nightly`, { queue: gated.name, every: '1h', priority: 'high', start: day(1) }));
  await note(p.schedules.put(`${name}-never`, { queue: `${name}-open`, every: '1h', priority: 'high' }));
  await note(p.schedules.put(`${name}-later`, { queue: `${name}-none`, every: '1h', priority: 'high', start: day(1) }));
}

describe('in a queue with limits', () => {
  const line = useLine();
  const limits = { concurrency: 1, perGroup: 1 } as const;

  async function inKitToo(): Promise<readonly unknown[]> {
    const q = defineQueue<unknown>('q', limits);
    const started: string[] = [];
    const handlers = { q: ({ id }: { readonly id: string }) => started.push(id) };
    const kit = createTestKit({ handlers, queues: [q], lasts: ({ id }) => (id === 'first' ? '1m' : 5) });
    const { told, note } = listener('q');
    await needsLimits(kit.client, 'q', note);
    await kit.schedule(q, 1, first);
    await kit.advance('1s');
    await whileTheyWaitInLine(kit.client, q, { note, settle: () => kit.advance('1s') });
    await kit.advance('2m');
    return [...told, started];
  }

  async function inProductToo(): Promise<readonly unknown[]> {
    const q = defineQueue<unknown>(line.queue, limits);
    const redis = { path: line.server.socketPath };
    const client = createClient({ redis, namespace: NAMESPACE });
    line.onEnd(() => client.close());
    const [entered, door] = [gate(), gate()];
    const started: string[] = [];
    const handler = async ({ id }: { readonly id: string }) => {
      started.push(id);
      if (id !== 'first') return;
      entered.open();
      await door.opened;
    };
    const worker = createWorker(q, handler, { redis, namespace: NAMESPACE, shutdown: 2000 });
    line.onEnd(() => worker.stop({ shutdown: 500 }));
    await worker.start();
    const { told, note } = listener(line.queue);
    await needsLimits(client, line.queue, note);
    await client.schedule(q, 1, first);
    await entered.opened;
    const settle = (waiting: number) =>
      expect.poll(async () => (await client.count(q, { state: 'waiting' })).count).toBe(waiting);
    await whileTheyWaitInLine(client, q, { note, settle });
    door.open();
    await eventually(() => started.length).toBe(3);
    return [...told, started];
  }

  test('jobs in line answer in the kit as in the product, and start in the same order', async () => {
    const told = await inProductToo();
    expect(await inKitToo()).toEqual(told);
    expect(told.length).toBeGreaterThan(70);
  });
});
