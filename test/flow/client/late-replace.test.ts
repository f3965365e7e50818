/**
 * A call that was given up as `indeterminate` may still be on its way: what `docs/guarantees.md` says of it is so.
 */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createClient, defineQueue } from '../../../src/index.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const queue = defineQueue<string>('mails');
const stops: (() => unknown)[] = [];
let server: TestRedis;

beforeEach(async () => {
  server = await startRedis();
});
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
  await server.stop();
});

async function producer(path = server.socketPath) {
  const made = createClient({ redis: { path }, retryBudget: '200ms' });
  stops.push(() => made.close());
  return made;
}

type Client = Awaited<ReturnType<typeof producer>>;
const at = new Date(Date.now() + 3_600_000);
const replace = (by: Client, data: string) => by.schedule(queue, data, { id: 'x', at, ifExists: 'replace' });
const dataSeenBy = async (by: Client) => (await by.get(queue, 'x'))?.data;

/** A line whose client is cut off with the first request that speaks of a text, which arrives when it is let go. */
async function openHoldingLine(text: string) {
  const path = join(server.dir, 'line.sock');
  let held: (() => void) | undefined;
  const line = createServer((client: Socket) => {
    if (held) {
      client.destroy();
      return;
    }
    const upstream = connect(server.socketPath);
    for (const socket of [client, upstream]) socket.on('error', () => socket.destroy());
    stops.push(() => upstream.destroy());
    upstream.on('data', (reply) => client.write(reply));
    client.on('data', (request) => {
      const send = () => upstream.write(request);
      if (request.includes(text)) {
        held = send;
        client.destroy();
      } else send();
    });
  });
  line.listen(path);
  await once(line, 'listening');
  stops.push(() => line.close());
  return { path, letGo: () => held?.() };
}

test('a replace that the network held up comes after a newer one, and wins', async () => {
  const line = await openHoldingLine('the older');
  const [older, newer] = [await producer(line.path), await producer()];
  await replace(older, 'the first');
  await expect(replace(older, 'the older')).rejects.toMatchObject({ code: 'indeterminate' });
  expect(await replace(newer, 'the newer')).toMatchObject({ status: 'replaced' });
  expect(await dataSeenBy(newer)).toBe('the newer');
  line.letGo();
  await expect.poll(() => dataSeenBy(newer)).toBe('the older');
});
