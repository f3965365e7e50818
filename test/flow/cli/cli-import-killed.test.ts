/** `import bullmq` in processes that are killed without a word: the next one goes on, and makes no job twice. */
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { type BullVersion, useBullmq } from '../../support/bullmq.ts';
import { useCli } from '../../support/cli.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const cli = useCli();
const HOUR_MS = 3_600_000;
const JOBS = 6000;
/** The process is killed when BullMQ has no more than so many. */
const KILLED_AT: readonly number[] = [5600, 4200, 2600, 1000];
const VERSION: BullVersion = 6;
let there: TestRedis;
let here: TestRedis;
let old: Redis;
let client: Client;

beforeAll(async () => {
  there = await startRedis({ port: true });
  here = await startRedis({ port: true });
  old = await there.client();
  client = createClient({ redis: here.url });
});
afterAll(async () => {
  await client.close();
  await there.stop();
  await here.stop();
});

const bull = useBullmq(() => there);

const waiting = () => old.zcard('bull:mails:delayed');

/** Starts an import, and kills its process in the middle. @returns whether jobs were still to come */
async function killedAt(jobs: number): Promise<boolean> {
  const importing = await cli.start(['import', 'bullmq', '--from', there.url, '--redis', here.url]);
  while (importing.child.exitCode === null && (await waiting()) > jobs);
  await importing.end('SIGKILL');
  expect(importing.child.signalCode).toBe('SIGKILL');
  return (await waiting()) > 0;
}

async function dueTimes(): Promise<ReadonlyMap<string, number | undefined>> {
  const found = new Map<string, number | undefined>();
  for await (const { id, dueMs } of client.list('mails', { limit: 1000 })) found.set(id, dueMs);
  return found;
}

test('each job is here once after four imports that were killed and one that was not', async () => {
  const made = await bull.queue(VERSION, 'mails').addBulk(
    Array.from({ length: JOBS }, (_, nth) => ({
      name: 'remind',
      data: { nth },
      opts: { delay: HOUR_MS + nth * 1777 },
    })),
  );
  const due = new Map(made.map(({ id = '', timestamp }, nth) => [id, timestamp + HOUR_MS + nth * 1777]));
  for (const jobs of KILLED_AT) expect(await killedAt(jobs)).toBe(true);

  const before = await dueTimes();
  const [left, taken] = await Promise.all([waiting(), old.hlen('bull:mails:duestream:taken')]);
  expect(before.size).toBeLessThan(JOBS);
  expect(before.size + left).toBeLessThanOrEqual(JOBS);
  expect(before.size + left + taken).toBeGreaterThanOrEqual(JOBS);

  const { code, out } = await cli.run(['import', 'bullmq', '--from', there.url, '--redis', here.url, '--json']);
  expect(code).toBe(0);
  const { places } = JSON.parse(out).queues[0];
  expect(places.delayed).toEqual({ found: left, imported: left, there: 0, covered: 0, left: 0 });
  expect(places['cut short']?.found ?? 0).toBe(taken);
  // What was made before is recognised: only the rest is new.
  expect(left + (places['cut short']?.imported ?? 0)).toBe(JOBS - before.size);
  expect(await dueTimes()).toEqual(due);
  expect(await old.keys('bull:mails:duestream:*')).toEqual([]);
});
