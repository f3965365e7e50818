/** What acts on one acts on that one: not on a neighbour whose name begins alike, or which a pattern would mean as well. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { useCli } from '../../support/cli.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const cli = useCli();
const TAGS = ['x', 'x*', 'x?', '[x]', '.*', '%', 'xy', 'x:y', 'X'];
let server: TestRedis;
let client: ReturnType<typeof createClient>;

beforeAll(async () => {
  server = await startRedis({ port: true });
  client = createClient({ redis: server.url });
});
afterAll(async () => {
  await client.close();
  await server.stop();
});

test.each(TAGS)('a call about the tag %s means no other tag', async (tag) => {
  const queue = `tags-${TAGS.indexOf(tag)}`;
  const jobs = TAGS.map((one, nth) => ({ data: {}, id: `of-${nth}`, tags: [one], delay: '1h' }));
  await client.scheduleMany(queue, jobs);
  expect((await client.count(queue, { tag })).count).toBe(1);
  const { ids } = await client.cancel(queue, { tag });
  expect(ids).toEqual([`of-${TAGS.indexOf(tag)}`]);
  await client.tags.close(queue, tag, { for: '1h' });
  expect((await client.tags.list(queue)).tags.map((one) => one.tag)).toEqual([tag]);
});

test('a group, a schedule, a queue and a namespace have neighbours that begin alike, and that stay as they are', async () => {
  const queue = defineQueue('a', { perGroup: 1 });
  const groups = ['a', 'a*', 'a:b', 'ab'];
  for (const group of groups) await client.schedule(queue, {}, { id: 'one', group, delay: '1h' });
  await client.groups.close(queue, 'a*', { for: '1h' });
  const closed = await Promise.all(groups.map(async (group) => (await client.groups.get(queue, group)).closed));
  expect(closed.map((one) => one !== undefined)).toEqual([false, true, false, false]);
  for (const name of ['s', 's:t', 's.t']) await client.schedules.put(name, { queue: 'a.b', every: '1h' });
  expect(await client.schedules.remove('s')).toBe(true);
  expect((await client.schedules.list()).schedules.map(({ name }) => name)).toEqual(['s.t', 's:t']);
  await using other = createClient({ redis: server.url, namespace: 'duestream.v1' });
  for (const one of [client, other])
    for (const name of ['a-b', 'a.b']) await one.schedule(name, {}, { id: 'stays', delay: '1h' });
  const { code } = await cli.run(['queues', 'rm', 'a', '--force', '--redis', server.url]);
  expect(code).toBe(0);
  expect(await client.get('a', '{a}one')).toBeUndefined();
  for (const one of [client, other]) {
    for (const name of ['a-b', 'a.b']) expect(await one.get(name, 'stays')).toMatchObject({ state: 'scheduled' });
  }
});

test('a number in the place of a tag is refused by every call, and told to be quoted', async () => {
  const number = 42 as never;
  const calls: readonly (() => Promise<unknown>)[] = [
    () => client.schedule('n', {}, { tags: [number] }),
    () => client.scheduleMany('n', [{ data: {}, tags: [number] }]),
    () => client.count('n', { tag: number }),
    () => client.cancel('n', { tag: number }),
    () => client.edit('n', 'a', { tags: [number] }),
    () => client.tags.close('n', number, { for: '1h' }),
    () => client.deadLetters.replay('n', { tag: number }),
    () => client.erase({ tag: number }),
    () => client.schedules.put('n', { queue: 'n', every: '1h', tags: [number] }),
    () => client.schedules.put('n', { queue: 'n', every: '1h', jobTags: [number] }),
    () => client.schedules.list({ tag: number }),
  ];
  for (const call of calls) {
    await expect((async () => call())()).rejects.toThrow('in quotes it is a text: "42"');
  }
});
