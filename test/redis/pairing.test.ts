/** Replies belong to commands by their order alone. Where the order may be lost, the connection is dropped. */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { close, openCommands, type Redis, whenReady } from '../../src/redis/connection/connect.ts';
import { outageOf } from '../../src/redis/connection/outage.ts';
import { partitionRef } from '../../src/redis/keys.ts';
import { resign } from '../../src/redis/scripts/lease.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

const ref = partitionRef('t', { queue: 'emails', partition: 0, layoutGeneration: 0 });
const clients = new Set<Socket>();
const opened: Redis[] = [];
let server: TestRedis;
let relay: Server;
/** What the next reply becomes. */
let spoil: ((reply: Buffer, client: Socket) => void) | undefined;

beforeAll(async () => {
  server = await startRedis();
  relay = createServer((client) => {
    const upstream = connect(server.socketPath);
    clients.add(client);
    client.on('error', () => undefined).on('close', () => upstream.destroy());
    upstream.on('error', () => undefined).on('close', () => client.destroy());
    client.pipe(upstream);
    upstream.on('data', (reply: Buffer) => {
      const act = spoil ?? (() => client.write(reply));
      spoil = undefined;
      act(reply, client);
    });
  }).listen(join(server.dir, 'relay.sock'));
  await once(relay, 'listening');
});
afterEach(() => {
  for (const redis of opened.splice(0)) close(redis);
});
afterAll(async () => {
  for (const client of clients) client.destroy();
  relay.close();
  await server.stop();
});

async function open(): Promise<Redis> {
  const redis = openCommands({ redis: `unix://${join(server.dir, 'relay.sock')}`, name: 'test' });
  opened.push(redis);
  await whenReady(redis);
  return redis;
}

/** Not `once`, which fails with the first error. */
const readyAgain = (redis: Redis) => new Promise((resolve) => redis.once('ready', resolve));
const echoes = (redis: Redis) => Promise.allSettled(['a', 'b', 'c'].map((word) => redis.echo(word)));
const heard = (settled: Awaited<ReturnType<typeof echoes>>) =>
  settled.map((one) => (one.status === 'fulfilled' ? one.value : 'failed'));

test('bytes that are no reply fail every command that waits, and the connection is dialled again', async () => {
  const redis = await open();
  spoil = (reply, client) => client.write(Buffer.concat([Buffer.from('<html>\r\n'), reply]));
  expect(heard(await echoes(redis))).toEqual(['failed', 'failed', 'failed']);
  await readyAgain(redis);
  expect(heard(await echoes(redis))).toEqual(['a', 'b', 'c']);
});

test('a connection that ends in the middle of a reply fails what was not answered, and no reply goes astray', async () => {
  const redis = await open();
  spoil = (reply, client) => client.end(reply.subarray(0, 9));
  expect(heard(await echoes(redis))).toEqual(['a', 'failed', 'failed']);
  await readyAgain(redis);
  expect(heard(await echoes(redis))).toEqual(['a', 'b', 'c']);
});

test('a reply that no command waits for drops the connection, because it has lost count', async () => {
  const redis = await open();
  const again = readyAgain(redis);
  spoil = (reply, client) => client.write(Buffer.concat([reply, Buffer.from('+OK\r\n')]));
  expect(await redis.echo('a')).toBe('a');
  await again;
  expect(heard(await echoes(redis))).toEqual(['a', 'b', 'c']);
});

test('a script that is answered with a reply of another shape counts as lost, and the connection is dropped', async () => {
  const redis = await open();
  await resign(redis, ref, 'd-1:1:1');
  const again = readyAgain(redis);
  spoil = (reply, client) => client.write(Buffer.concat([Buffer.from('*1\r\n$2\r\nok\r\n'), reply]));
  const error = await resign(redis, ref, 'd-1:1:1').catch((thrown: unknown) => thrown);
  expect(outageOf(error)).toBe('lost');
  await again;
  expect(await resign(redis, ref, 'd-1:1:1')).toBe('lost');
});

test('a line that garbles every answer is dropped once each time, and dialled later and later', async () => {
  const garbler = createServer((client) => {
    // As much of Redis as a client asks before it is ready; every script is answered with a list of something.
    const reply = (text: string) => (/^eval/i.test(text) ? '*1\r\n$2\r\nok\r\n' : greetings[text.toLowerCase()]);
    client
      .on('error', () => undefined)
      .on('data', (sent: Buffer) => {
        for (const [, verb = ''] of sent.toString().matchAll(/\*\d+\r\n\$\d+\r\n(\S+)/g))
          client.write(reply(verb) ?? '+OK\r\n');
      });
  }).listen(join(server.dir, 'garbler.sock'));
  await once(garbler, 'listening');
  const warned = vi.fn();
  process.on('warning', warned);
  const latest = vi.spyOn(Math, 'random').mockReturnValue(0.999);
  const redis = openCommands({ redis: `unix://${join(server.dir, 'garbler.sock')}`, name: 'test' });
  opened.push(redis);
  let closed = 0;
  redis.on('close', () => {
    closed += 1;
  });
  const waits: number[] = [];
  redis.on('reconnecting', (ms: number) => waits.push(ms));
  for (let nth = 0; nth < 4; nth += 1) {
    if (redis.status !== 'ready') await readyAgain(redis);
    const dropped = once(redis, 'reconnecting');
    const calls = Array.from({ length: 30 }, () => resign(redis, ref, 'd-1:1:1'));
    expect((await Promise.allSettled(calls)).map(({ status }) => status)).not.toContain('fulfilled');
    await dropped;
  }
  process.off('warning', warned);
  latest.mockRestore();
  garbler.close();
  expect(waits.map((ms) => Math.round(ms / 100))).toEqual([3, 5, 9, 17]);
  expect([closed, warned.mock.calls.length]).toEqual([4, 0]);
});

const greetings: Readonly<Record<string, string>> = { info: '$9\r\nloading:0\r\n' };
