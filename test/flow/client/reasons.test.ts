/** The reason of whoever pauses, closes or limits something is one line of at most 200 characters, whichever way it came. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { type ServedApi, serveApi } from '../../support/api.ts';
import { useCli } from '../../support/cli.ts';

const SAID = ' the provider\n\tsays \u001b[31m429\u0000 ';
const KEPT = 'the provider says  [31m429';
const LONG = 'x'.repeat(201);
const cli = useCli();
let api: ServedApi;
let client: ReturnType<typeof createClient>;

beforeAll(async () => {
  api = await serveApi({ roles: ['http'] });
  client = createClient({ redis: api.redis.url });
  await client.schedule(defineQueue('calls', { perGroup: 2 }), {}, { delay: '1h' });
  await client.schedules.put('nightly', { queue: 'calls', every: '1d' });
});
afterAll(async () => {
  await client.close();
  await api.stop();
});

const command = (reason: string, ...words: readonly string[]) =>
  cli.run([...words, '--reason', reason, '--redis', api.redis.url]);
const post = (path: string, reason: string, body = {}) => api.ask(`POST /v1/${path}`, { body: { ...body, reason } });
const program = async (call: () => Promise<unknown>) =>
  call().then(
    () => 'ok',
    (error: unknown) => String(error),
  );

const queuePause = async () => (await api.ask('GET /v1/queues/calls')).body.pause?.reason as unknown;
const groupClosed = async () => (await client.groups.get('calls', 'acme')).closed?.reason;
const tagClosed = async () => (await client.tags.list('calls')).tags[0]?.reason;
const schedulePaused = async () => (await client.schedules.get('nightly'))?.paused;
const overridden = async () => (await api.ask('GET /v1/queues/calls')).body.overrides?.[0]?.reason as unknown;
const forIt = { for: '1h' };

/** What is said, with a reason; where it is seen then. */
interface Way {
  readonly title: string;
  readonly say: (reason: string) => Promise<unknown>;
  readonly seen: () => Promise<unknown>;
  readonly undo?: () => Promise<unknown>;
}
const ofGroup = 'queues/calls/groups/acme/close';
const WAYS: readonly Way[] = [
  {
    title: 'queues pause',
    say: (reason) => command(reason, 'queues', 'pause', 'calls'),
    seen: queuePause,
    undo: () => api.ask('POST /v1/queues/calls/resume'),
  },
  { title: 'POST of a pause', say: (reason) => post('queues/calls/pause', reason), seen: queuePause },
  {
    title: 'groups.close',
    say: (reason) => program(() => client.groups.close('calls', 'acme', { ...forIt, reason })),
    seen: groupClosed,
  },
  {
    title: 'groups close',
    say: (reason) => command(reason, 'groups', 'close', 'calls', 'acme', '--for', '1h'),
    seen: groupClosed,
  },
  { title: 'POST of a closed group', say: (reason) => post(ofGroup, reason, forIt), seen: groupClosed },
  {
    title: 'close',
    say: (reason) => program(() => client.tags.close('calls', 'paid', { ...forIt, reason })),
    seen: tagClosed,
  },
  {
    title: 'close by command',
    say: (reason) => command(reason, 'tags', 'close', 'calls', 'paid', '--for', '1h'),
    seen: tagClosed,
  },
  {
    title: 'schedules.pause',
    say: (reason) => program(() => client.schedules.pause('nightly', reason)),
    seen: schedulePaused,
  },
  {
    title: 'schedules pause',
    say: (reason) => command(reason, 'schedules', 'pause', 'nightly'),
    seen: schedulePaused,
  },
  {
    title: 'POST of a paused schedule',
    say: (reason) => post('schedules/nightly/pause', reason),
    seen: schedulePaused,
  },
  {
    title: 'queues set',
    say: (reason) => command(reason, 'queues', 'set', 'calls', '--per-group', '1'),
    seen: overridden,
  },
];

for (const { title, say, seen, undo } of WAYS) {
  test(`${title} keeps a reason as one line, and refuses one that is too long`, async () => {
    expect(JSON.stringify(await say(LONG))).toContain('allowed: a text of at most 200 characters');
    await say(SAID);
    expect(await seen()).toBe(KEPT);
    await undo?.();
  });
}

test('so does the audit', async () => {
  const { body } = await api.ask('GET /v1/audit');
  const reasons = (body.entries as readonly { readonly reason?: string }[]).flatMap(({ reason }) => reason ?? []);
  expect(reasons.length).toBeGreaterThan(2);
  expect(new Set(reasons)).toEqual(new Set([KEPT]));
});
