/** Every case of `npm run bench -- stages` can be carried out: nothing else calls it, and a bench that is broken is noticed too late. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cases } from '../../bench/stages-cases.mjs';
import { createPartition, type Partition } from '../../bench/stages-partition.mjs';
import { startRedis, type TestRedis } from '../support/redis.ts';

let server: TestRedis;
let partition: Partition;
beforeAll(async () => {
  server = await startRedis();
  partition = await createPartition(server.socketPath);
});
afterAll(async () => {
  partition.close();
  await server.stop();
});

describe.each(Object.entries(cases))('%s', (_, { prepare, call, leaves }) => {
  test.each([1, 20])('of %s', async (batch) => {
    await partition.fresh();
    const things = await prepare(partition, { jobs: leaves ? batch : 2 * batch, bytes: 200 });
    expect(things.length).toBeGreaterThan(0);
    await partition.measuring(async () => {
      await call(partition, things.slice(0, batch));
      await call(partition, things.slice(leaves ? 0 : batch, leaves ? batch : 2 * batch));
    });
  });
});
