/** Four workers share what a dead one left: evenly, each entry once, and none is forgotten. */
import { expect, it } from 'vitest';
import { readNew } from '../../../src/redis/scripts/ready.ts';
import { eventually, QUICK, useLine } from '../../support/worker-line.ts';

const line = useLine();
const ENTRIES = 400;
/** So many had been started: they run one after another. */
const SUSPECTS = 20;
/** Who looks three times before another one has looked once takes more than its share: not on any machine. */
const PATIENT = { beatTtl: 10_000, grace: 2000 };
/**
 * Of the survivors' shares, the greatest to the mean. By chance alone it is about 1.1. But each looks at moments of its own,
 * and who is late by three rounds has lost its share by right. That happens once in some dozens of runs, and three times
 * in a row where nobody shares.
 */
const SPREAD_MAX = 1.6;
const UNEVEN = { retry: 2 };

const beatOf = (consumer: string | undefined): string => `t:v1:{control}:beat:${consumer}`;

/** What a worker that never existed was given, and had started in part. */
async function leave({ started }: { readonly started: number }): Promise<void> {
  await line.redis.set(beatOf('ghost'), '{}', 'PX', 600_000);
  await line.plan(...line.many(ENTRIES));
  await eventually(async () => (await line.picture()).ready?.length).toBe(ENTRIES);
  const batches = await readNew(line.redis, [line.ref], { consumer: 'ghost', count: ENTRIES, blockMs: 0 });
  const deliveries = batches.flatMap((batch) => batch.deliveries).slice(0, started);
  if (started > 0) {
    await line.jobs.start(line.ref, deliveries, { consumer: 'ghost', bytesMax: 1e7, windowMs: 60_000 });
  }
}

/** Four workers that are started together, and what they did. The dead one dies when they have all seen each other. */
async function survivors(concurrency: number, times = {}) {
  const starts = new Map<string, number>();
  const handler = async ({ id }: { readonly id: string }) => {
    starts.set(id, (starts.get(id) ?? 0) + 1);
    await new Promise(setImmediate);
  };
  const workers = [1, 2, 3, 4].map(() => line.make(handler, { ...QUICK, ...times, concurrency }));
  await Promise.all(workers.map((worker) => worker.start()));
  await eventually(() => line.redis.exists(...workers.map(({ consumer }) => beatOf(consumer)))).toBe(workers.length);
  await line.redis.del(beatOf('ghost'));
  return {
    workers,
    starts,
    shares: () => workers.map(({ heard }) => sum(heard.of('entries.reclaimed').map(({ count }) => count))),
    completed: () => sum(workers.map(({ heard }) => heard.of('job.completed').length)),
    rounds: () => workers.map(({ heard }) => heard.of('entries.reclaimed').length),
  };
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
const spread = (shares: readonly number[]) => Math.max(...shares) / (sum(shares) / shares.length);

it('four survivors with free slots share the entries in their first round', UNEVEN, async () => {
  await leave({ started: SUSPECTS });
  const { shares, starts, completed, rounds } = await survivors(ENTRIES, PATIENT);
  await eventually(completed).toBe(ENTRIES);
  expect(sum(shares())).toBe(ENTRIES);
  expect(spread(shares())).toBeLessThanOrEqual(SPREAD_MAX);
  expect(Math.max(...rounds())).toBeLessThanOrEqual(3);
  expect([starts.size, Math.max(...starts.values())]).toEqual([ENTRIES, 1]);
  expect([await line.count('crashed'), await line.count('reclaimed')]).toEqual([SUSPECTS, ENTRIES]);
});

it('four survivors with few slots share them as well, over many rounds', UNEVEN, async () => {
  await leave({ started: SUSPECTS });
  const { shares, starts, completed, workers } = await survivors(15, PATIENT);
  await eventually(completed).toBe(ENTRIES);
  expect(sum(shares())).toBe(ENTRIES);
  expect(spread(shares())).toBeLessThanOrEqual(SPREAD_MAX);
  expect([starts.size, Math.max(...starts.values())]).toEqual([ENTRIES, 1]);
  expect([await line.count('crashed'), await line.count('reclaimed')]).toEqual([SUSPECTS, ENTRIES]);
  await eventually(() => workers.flatMap(({ heard }) => heard.of('consumer.retired'))).toContainEqual(
    expect.objectContaining({ consumer: 'ghost' }),
  );
});

it('no entry is claimed twice or forgotten while the survivors see each other come and go', async () => {
  await leave({ started: 0 });
  const { shares, starts, completed, workers } = await survivors(40);
  // Each looks at its own moment, and sees other beats missing than its neighbours do.
  let turn = 0;
  const timer = setInterval(() => {
    turn += 1;
    const gone = workers[turn % workers.length]?.consumer;
    void line.redis.del(beatOf(gone)).catch(() => undefined);
  }, 7);
  line.onEnd(() => clearInterval(timer));
  await eventually(completed).toBe(ENTRIES);
  expect(sum(shares())).toBe(ENTRIES);
  expect([starts.size, Math.max(...starts.values())]).toEqual([ENTRIES, 1]);
  expect([await line.count('crashed'), await line.count('reclaimed')]).toEqual([0, ENTRIES]);
  expect((await line.picture()).pending).toBeUndefined();
});

it('a survivor that has gone itself leaves nothing behind: what it preferred is taken by the others', async () => {
  await leave({ started: SUSPECTS });
  const { starts, completed, workers } = await survivors(ENTRIES);
  // It lives by its heartbeat and takes nothing: the others leave its share to it for three rounds.
  await workers[0]?.stop();
  await line.redis.set(beatOf(workers[0]?.consumer), '{}', 'PX', 60_000);
  await line.redis.xgroup('CREATECONSUMER', line.ref.keys.ready, 'workers', workers[0]?.consumer ?? '');
  await eventually(completed).toBe(ENTRIES);
  expect([starts.size, Math.max(...starts.values())]).toEqual([ENTRIES, 1]);
});
