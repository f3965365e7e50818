/** `oldest`: since when the oldest job that is due waits for its start, wherever it waits. */
import { expect, test } from 'vitest';
import { oldestDueAge } from '../../src/redis/read/inspect.ts';
import { reclaim } from '../../src/redis/scripts/ready.ts';
import { scripts } from '../../src/redis/scripts/script-table.ts';
import { list, run, text } from '../../src/redis/scripts/scripts.ts';
import { item, only, usePartition } from '../support/partition.ts';

const p = usePartition();
/** Due times of these tests are seen from now, because the script asks the server's clock. */
const startedMs = Date.now();
const MINUTE_MS = 60_000;
const ago = (minutes: number) => startedMs - minutes * MINUTE_MS;
const put = (id: string, minutes: number) => p.schedule(id, { dueMs: ago(minutes), nowMs: startedMs });
const promote = () => p.promote({ nowMs: Date.now() });
/** In whole minutes: a slow machine adds seconds. */
const minutes = async () => Math.floor((await p.withoutWrite(() => oldestDueAge(p.redis, p.ref))) / MINUTE_MS);

test('an empty partition, and one whose jobs are to come, has nothing that waits', async () => {
  expect(await oldestDueAge(p.redis, p.ref)).toBe(0);
  await p.schedule('later', { dueMs: Date.now() + 10 * MINUTE_MS, nowMs: startedMs });
  expect(await oldestDueAge(p.redis, p.ref)).toBe(0);
});

test('a job that nobody has promoted waits, also while the queue is paused', async () => {
  await put('a', 5);
  expect(await minutes()).toBe(5);
  await p.redis.hset(p.keys.meta, 'paused', '1');
  expect(await minutes()).toBe(5);
});

test('scores that are no time hide nobody', async () => {
  await put('a', 5);
  await p.put('now', 0);
  await p.put('seconds', Math.floor(ago(60) / 1000));
  expect(await minutes()).toBe(5);
});

test('two jobs that are ready for five minutes, without a worker', async () => {
  await put('a', 5);
  await put('b', 5);
  await promote();
  expect(await minutes()).toBe(5);
});

test('a job that a worker has read and not started waits, and one that runs does not', async () => {
  await put('a', 7);
  await put('b', 5);
  await promote();
  const [first, second] = await p.read('w1', 2);
  expect(await minutes()).toBe(7);
  if (first === undefined || second === undefined) throw new Error('two were read');
  await p.claim([first]);
  expect(await minutes()).toBe(5);
  await p.claim([second]);
  expect(await oldestDueAge(p.redis, p.ref)).toBe(0);
});

test('behind a long-running head the next one is seen, wherever it is', async () => {
  await put('long', 90);
  await promote();
  await p.run();
  await put('held', 4);
  await put('unread', 3);
  await promote();
  expect(await minutes()).toBe(4);
  await p.claim(await p.read('w1', 1));
  expect(await minutes()).toBe(3);
});

test('more running jobs than a page has do not hide one behind them', async () => {
  const many = Array.from({ length: 600 }, (_, at) => item(`job-${at}`, { dueMs: ago(60) }));
  await p.scheduleAll(many, { nowMs: startedMs });
  await p.promote({ nowMs: Date.now(), limit: 600 });
  await p.claim(await p.read('w1', 600));
  expect(await minutes()).toBe(0);
  await put('behind', 6);
  await promote();
  await p.read('w1', 1);
  expect(await minutes()).toBe(6);
  const page = await run(p.redis, scripts.oldest, { keys: p.keys, args: { after: '', limit: 100 } });
  expect(list(page).map(text).slice(1)).toEqual(['', expect.stringMatching(/^\d+-\d+$/), '']);
});

test('an older due that comes into ready behind newer ones counts', async () => {
  await put('newer', 2);
  await promote();
  await put('older', 9);
  await promote();
  expect(await minutes()).toBe(9);
});

test('a job whose worker died waits since it was taken over, not since its due', async () => {
  await put('a', 90);
  await promote();
  const claim = only(await p.run());
  await reclaim(p.redis, p.ref, { owner: 'w1', consumer: 'w2', idleMs: 0, limit: 1, nowMs: ago(3) });
  expect(claim.member).toBe('j:a');
  expect(await minutes()).toBe(3);
});

test('cancelled jobs whose entries wait, jobs that are in scheduled again and second entries of one that runs do not', async () => {
  await put('cancelled', 5);
  await promote();
  await p.cancel('j:cancelled');
  expect(await oldestDueAge(p.redis, p.ref)).toBe(0);
  await p.put('bare', ago(4));
  await promote();
  await p.put('bare', Date.now() + MINUTE_MS);
  expect(await oldestDueAge(p.redis, p.ref)).toBe(0);
  await p.put('twice', ago(4));
  await promote();
  await p.run();
  await p.redis.xadd(p.keys.ready, '*', 'member', 'twice', 'due', String(ago(4)));
  expect(await oldestDueAge(p.redis, p.ref)).toBe(0);
});

test('a stream without its group is looked at as well', async () => {
  await put('a', 5);
  await promote();
  await p.redis.xgroup('DESTROY', p.keys.ready, 'workers');
  expect(await minutes()).toBe(5);
  await p.redis.xgroup('CREATE', p.keys.ready, 'workers', '0');
});
