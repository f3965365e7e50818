/** A backup of Redis is restored, as the how-to says: nothing runs before a person has looked, and what may run twice is listed. */
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import { defineHandlers } from '../../../src/worker/run/handlers.ts';
import { useCli } from '../../support/cli.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { gate } from '../../support/worker-line.ts';

const cli = useCli();
let backedUp: TestRedis;
let anew: TestRedis;
let runs: string[] = [];

beforeEach(async () => {
  runs = [];
  [backedUp, anew] = await Promise.all([startRedis({ port: true }), startRedis({ port: true })]);
});
afterEach(async () => {
  await Promise.all([backedUp.stop(), anew.stop()]);
});

/** A daemon with handlers that note what they run, one at a time; the job `runs` takes as long as the door is closed. */
async function serve(url: string, door = gate()) {
  const handlers = defineHandlers({
    mail: async ({ id }) => {
      runs.push(id);
      if (id === 'runs') await door.opened;
    },
  });
  const config = {
    redis: { url },
    roles: ['mover' as const, 'worker' as const],
    mover: { lease: 1000 },
    worker: { concurrency: 1 },
  };
  const daemon = createDaemon(config, { handlers });
  await daemon.start();
  return { daemon, door };
}

async function restore(): Promise<void> {
  await anew.kill('SIGKILL');
  await copyFile(join(backedUp.dir, 'dump.rdb'), join(anew.dir, 'dump.rdb'));
  await anew.restart();
}

const doctor = async () => {
  const { code, out } = await cli.run(['doctor', '--restored', '--json', '--redis', anew.url]);
  const { checks } = JSON.parse(out);
  return { code, found: checks.filter(({ check }: { readonly check: string }) => check === 'restored') };
};

test('nothing runs until a queue is resumed; what may run twice is listed, and what was cancelled does not run', async () => {
  const { daemon, door } = await serve(backedUp.url);
  await using producer = createClient({ redis: backedUp.url });
  await producer.schedule('mail', {}, { id: 'runs' });
  await expect.poll(() => runs).toEqual(['runs']);
  for (const id of ['soon', 'sent', 'later']) {
    await producer.schedule('mail', {}, { id, delay: id === 'later' ? '1h' : '1s' });
  }
  await (await backedUp.client()).save();
  // What happens after the backup is forgotten by it.
  door.open();
  await expect.poll(() => [...runs].sort()).toEqual(['runs', 'sent', 'soon']);
  await daemon.stop();

  await restore();
  const open = await doctor();
  expect(open.code).toBe(1);
  expect(open.found).toEqual([
    {
      check: 'restored',
      status: 'fail',
      saw: expect.stringContaining('"mail": 3 jobs may run twice'),
      advice: expect.stringContaining('duestream queues pause --all'),
    },
  ]);

  const paused = await cli.run(['queues', 'pause', '--all', '--reason', 'restored', '--json', '--redis', anew.url]);
  expect(JSON.parse(paused.out)).toMatchObject({ queues: [{ queue: 'mail', paused: true, changed: true }] });
  const { found } = await doctor();
  expect(found).toEqual([
    {
      check: 'restored',
      status: 'warn',
      saw: expect.stringMatching(/3 jobs .* that ran.*: runs, (sent|soon), (sent|soon); it is paused$/),
      advice: expect.stringContaining('duestream queues resume mail'),
    },
  ]);
  runs = [];
  const again = await serve(anew.url);
  again.door.open();
  await cli.run(['cancel', 'mail', 'sent', '--redis', anew.url]);
  expect(runs).toEqual([]);
  expect((await cli.run(['queues', 'resume', '--all', '--redis', anew.url])).out).toMatch(/^mail goes on/);
  await expect.poll(() => [...runs].sort()).toEqual(['runs', 'soon']);
  await again.daemon.stop();
});

test('a Redis without queues is told, because somebody looks at the wrong one', async () => {
  const { code, found } = await doctor();
  expect(code).not.toBe(69);
  expect(found).toEqual([expect.objectContaining({ status: 'warn', advice: expect.stringContaining('--namespace') })]);
});

test.each([
  ['neither a queue nor --all', []],
  ['both', ['mail', '--all']],
])('queues pause and resume refuse %s', async (_, args) => {
  for (const verb of ['pause', 'resume']) {
    const { code, err } = await cli.run(['queues', verb, ...args, '--redis', anew.url]);
    expect({ code, err }).toEqual({ code: 64, err: expect.stringContaining('name a queue, or say --all') });
  }
});
