/**
 * Calls whose bytes come late: a network held them while the caller sent the call again, or gave it up. Each script that
 * changes something and is not fenced is refused after the end that its call carries.
 */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import { defineQueue } from '../../src/job/queue.ts';
import { endsAt } from '../../src/redis/connection/call-end.ts';
import { close, openCommands, whenReady } from '../../src/redis/connection/connect.ts';
import { clockBehind } from '../../src/redis/connection/server-clock.ts';
import { controlKeys } from '../../src/redis/keys.ts';
import { type NamedScript, scripts } from '../../src/redis/scripts/script-table.ts';
import { pause } from '../../src/redis/scripts/upkeep.ts';
import { openLossyLine } from '../support/lossy-line.ts';
import { T0, usePartition } from '../support/partition.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

const p = usePartition();

/** The call of a script with the words that it takes, of which only the first matters here. */
function evaluate({ verb, keys, args, each = [] }: NamedScript, now: string): Promise<unknown> {
  const all: Readonly<Record<string, unknown>> = {
    ...controlKeys('t'),
    ...p.keys,
  };
  const named = keys.map((key) => String(typeof all[key] === 'function' ? 'k' : all[key]));
  const lua = readFileSync(new URL(`../../lua/${verb}.lua`, import.meta.url), 'utf8');
  return p.redis.eval(lua, named.length, ...named, now, ...args.slice(1).map(() => '1'), ...each.map(() => '1'));
}

const bounded = Object.values<NamedScript>(scripts).filter(({ late }) => late === 'refused');

describe('after its end', () => {
  test.each(bounded)('$verb is refused and changes nothing', async (script) => {
    await p.schedule('a');
    const before = await p.redis.dbsize();
    const refused = evaluate(script, `${T0}<${T0 - 1}`);
    await expect(refused).rejects.toThrow(new RegExp(`^LATE ${T0}\\b`));
    await expect(evaluate(script, '<1000')).rejects.toThrow(/^LATE \d{13}\b/);
    expect(await p.redis.dbsize()).toBe(before);
    expect(await p.redis.zscore(p.keys.scheduled, 'j:a')).toBe(String(T0));
  });

  test('a call is carried out until the very millisecond of its end, and without an end at any time', async () => {
    expect(await evaluate(scripts.pause, `${T0}<${T0}`)).toEqual(['ok', `${T0} 1`]);
    expect(await evaluate(scripts.resume, '')).toEqual(['ok', `${T0} 1`]);
  });
});

describe('a call whose end has passed although nobody has given it up, because the clock of Redis jumped', () => {
  test('is sent once more with an end by the clock of now', async () => {
    const redis = openCommands({ redis: { path: p.server.socketPath }, name: 'jumped' });
    await whenReady(redis);
    const server = clockBehind(redis);
    const receivedMs = performance.now();
    const [seconds] = await redis.time();
    server.saw({ sentMs: receivedMs, receivedMs, serverMs: Number(seconds) * 1000 - 3_600_000 });
    expect(await pause(redis, p.ref, { reason: 'why' })).toMatchObject({ kind: 'ok' });
    expect(Math.abs((server.knownMs() ?? 0) - Date.now())).toBeLessThan(60_000);
    close(redis);
  });

  test('says so in words that lead to another try, if it is late again', async () => {
    expect(endsAt(p.redis)?.isLate(new Error('LATE 1763719000000 script: 1234, on @user_script:9.'))).toBe(true);
    expect(endsAt(p.redis)?.isLate(new Error('LATER'))).toBe(false);
  });
});

test('the end of a call is when it counts as lost, by the edge of the clock that is behind', async () => {
  const redis = openCommands({ redis: { path: p.server.socketPath, commandTimeout: 700 }, name: 'ends' });
  await whenReady(redis);
  const ends = endsAt(redis);
  expect(ends?.next()).toBeUndefined();
  await ends?.known();
  const earliestMs = clockBehind(redis).earliestMs();
  const end = Number(ends?.next()?.slice(1));
  expect(end - earliestMs).toBeGreaterThan(600);
  expect(end).toBeLessThanOrEqual(clockBehind(redis).earliestMs() + 700);
  close(redis);
});

describe('bytes that a network held until the call was sent again', () => {
  let server: TestRedis;
  let line: Awaited<ReturnType<typeof openLossyLine>>;
  let near: ReturnType<typeof createClient>;
  let far: ReturnType<typeof createClient>;
  const queue = defineQueue('w', { perGroup: 1 });

  beforeAll(async () => {
    server = await startRedis();
    line = await openLossyLine(server);
    near = createClient({ redis: server.url });
    far = createClient({ redis: { url: line.url, commandTimeout: 1000 } });
    await Promise.all([near.schedule(queue, {}, { id: 'x', delay: '1h' }), far.ready()]);
    await far.tags.list(queue);
  });
  afterAll(async () => {
    await Promise.all([near.close(), far.close()]);
    await line.close();
    await server.stop();
  });

  /** All that was held comes, and has been carried out or refused. */
  async function letGo(): Promise<void> {
    expect(line.held()).toBe(1);
    const before = await callsOf(server);
    line.letGo();
    await expect.poll(() => callsOf(server), { interval: 10 }).toBeGreaterThan(before);
  }

  test('cancel no job that came after it', async () => {
    line.hold('cancel');
    expect(await far.cancel(queue, 'x')).toMatchObject({ status: 'cancelled' });
    await near.schedule(queue, { second: true }, { id: 'x', delay: '2h' });
    await letGo();
    expect(await near.get(queue, 'x')).toMatchObject({ state: 'scheduled' });
  });

  test('close no tag that was opened after it', async () => {
    line.hold('close-tags');
    await far.tags.close(queue, 'paid:7', { for: '1h' });
    await near.tags.open(queue, 'paid:7');
    await letGo();
    expect((await near.tags.list(queue)).tags).toEqual([]);
  });

  test('close no group that was opened after it', async () => {
    line.hold('close');
    await far.groups.close(queue, 'acme', { for: '1h' });
    await near.groups.open(queue, 'acme');
    await letGo();
    expect((await near.groups.get(queue, 'acme')).closed).toBeUndefined();
  });
});

/** Scripts that this server has run or refused. */
async function callsOf(server: TestRedis): Promise<number> {
  const redis = openCommands({ redis: server.url, name: 'count' });
  await whenReady(redis);
  const info = await redis.info('commandstats');
  close(redis);
  return (
    Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(info)?.[1] ?? 0) +
    Number(/^cmdstat_eval:calls=(\d+)/m.exec(info)?.[1] ?? 0)
  );
}
