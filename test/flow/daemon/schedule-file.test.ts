/** A daemon brings the schedules of its file in step at its start, and touches nothing that a call has put. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { reconcileSchedules } from '../../../src/client/schedules/reconcile.ts';
import type { ScheduleInput, Schedules } from '../../../src/client/schedules/schedules.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import type { Log } from '../../../src/kernel/log.ts';
import { silentLog } from '../../../src/kernel/log.ts';
import { controlKeys, partitionKeys } from '../../../src/redis/keys.ts';
import { usePartition } from '../../support/partition.ts';

const the = usePartition();
const namespace = 't';
const hourly: ScheduleInput = { queue: 'q', every: '1h' };
const daily: ScheduleInput = { queue: 'q', cron: '@daily' };
const { schedules: definitions } = controlKeys(namespace);
const { fires } = partitionKeys({ namespace, queue: 'q', partition: 0 });

const reconcile = (wanted: Readonly<Record<string, ScheduleInput>>) =>
  reconcileSchedules(the.redis, { namespace, wanted: new Map(Object.entries(wanted)) });
const stored = async (name: string) => JSON.parse((await the.redis.hget(definitions, name)) ?? 'null');
const nothing = { created: [], changed: [], removed: [], unchanged: [], kept: [] };

async function calling<T>(act: (schedules: Schedules) => Promise<T>): Promise<T> {
  await using client = createClient({ redis: the.server.url, namespace });
  return await act(client.schedules);
}

describe('the schedules of a file', () => {
  test('are created, left alone, changed and removed as the file says', async () => {
    expect(await reconcile({ a: hourly, b: daily })).toEqual({ ...nothing, created: ['a', 'b'] });
    expect(await stored('a')).toMatchObject({ source: 'file', schedule: hourly });
    const before = await the.redis.hgetall(definitions);
    expect(await reconcile({ a: hourly, b: daily })).toEqual({ ...nothing, unchanged: ['a', 'b'] });
    expect(await the.redis.hgetall(definitions)).toEqual(before);
    expect(await reconcile({ b: hourly, c: daily })).toEqual({
      ...nothing,
      created: ['c'],
      changed: ['b'],
      removed: ['a'],
    });
    expect(await the.redis.zrange(fires, '0', '-1')).toEqual(['b', 'c']);
  });

  test('never touch what a call has put, also under the same name', async () => {
    await calling((schedules) => schedules.put('a', hourly));
    await calling((schedules) => schedules.put('other', hourly));
    const before = await the.redis.hgetall(definitions);
    expect(await reconcile({ a: daily })).toEqual({ ...nothing, kept: ['a'] });
    expect(await reconcile({})).toEqual(nothing);
    expect(await the.redis.hgetall(definitions)).toEqual(before);
  });

  test('stay paused when somebody paused them, until the file or a person says otherwise', async () => {
    await reconcile({ a: hourly });
    await calling((schedules) => schedules.pause('a', 'an incident'));
    expect(await reconcile({ a: hourly })).toEqual({ ...nothing, unchanged: ['a'] });
    expect(await reconcile({ a: daily })).toEqual({ ...nothing, changed: ['a'] });
    expect((await stored('a')).schedule).toEqual({ cron: '@daily', queue: 'q', paused: 'an incident' });
    expect(await reconcile({ a: { ...daily, paused: false } })).toEqual({ ...nothing, changed: ['a'] });
    expect((await stored('a')).schedule.paused).toBe(false);
  });

  test('are repaired by the file when nobody can read them, and left when nobody knows whose they are', async () => {
    await the.redis.hset(definitions, 'mine', '{"source":"file","schedule":{}}');
    await the.redis.hset(definitions, 'gone', '{"source":"file","schedule":{}}');
    await the.redis.hset(definitions, 'whose', 'no JSON');
    expect(await reconcile({ mine: hourly, whose: hourly })).toEqual({
      ...nothing,
      changed: [],
      created: ['mine'],
      removed: ['gone'],
      kept: ['whose'],
    });
  });

  test('end the same when two daemons do it at once', async () => {
    await reconcile({ old: hourly, b: daily });
    const many = Object.fromEntries(Array.from({ length: 120 }, (_, at) => [`s${at}`, hourly]));
    const both = await Promise.all([reconcile({ ...many, b: hourly }), reconcile({ ...many, b: hourly })]);
    expect(both.flatMap(({ kept }) => kept)).toEqual([]);
    expect(await the.redis.hlen(definitions)).toBe(121);
    expect(await the.redis.zcard(fires)).toBe(121);
    expect(await reconcile({ ...many, b: hourly })).toMatchObject({ created: [], changed: [], removed: [] });
  });
});

describe('a daemon with a file of schedules', () => {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'duestream-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  /** Runs a daemon until it has said that it is in step, and returns what it said. */
  async function runWith(text: string, roles: ('mover' | 'http')[] = ['mover']): Promise<readonly unknown[]> {
    const file = join(folder, 's.yaml');
    writeFileSync(file, text);
    const said: unknown[] = [];
    const write = (fields: Readonly<Record<string, unknown>>) => void ('unchanged' in fields && said.push(fields));
    const log: Log = { ...silentLog, info: write, warn: (fields) => void ('kept' in fields && said.push(fields)) };
    const config = { redis: { url: the.server.url }, namespace, roles, schedules: { file }, http: { port: 0 } };
    const daemon = createDaemon(config, { log });
    await daemon.start();
    if (roles.includes('mover')) await expect.poll(() => said.length).toBeGreaterThan(0);
    await daemon.stop();
    return said;
  }

  test('says the difference, and warns of names that a call has put', async () => {
    await calling((schedules) => schedules.put('mine', hourly));
    const said = await runWith('schedules: { a: { queue: q, every: 1h }, mine: { queue: q, every: 2h } }');
    expect(said).toEqual([
      { file: join(folder, 's.yaml'), created: ['a'], changed: [], removed: [], unchanged: 0 },
      { file: join(folder, 's.yaml'), kept: ['mine'] },
    ]);
    expect(await stored('mine')).toMatchObject({ schedule: hourly, source: 'call' });
  });

  test('does not start with one that has anything wrong in it, and changes nothing', async () => {
    const text = 'schedules: { a: { queue: q, every: 1h }, b: { queue: q, every: 1h, zone: Mars } }';
    await expect(runWith(text)).rejects.toMatchObject({
      code: 'bad-config',
      message: expect.stringContaining('s.yaml: schedule b: zone is "Mars"'),
    });
    expect(await the.redis.keys('*')).toEqual([]);
  });

  test('leaves it to those that move jobs', async () => {
    await runWith('schedules: { a: { queue: q, every: 1h } }', ['http']);
    expect(await the.redis.exists(definitions)).toBe(0);
  });
});
