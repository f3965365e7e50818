/** What people look at most fits a terminal of 80 columns, with names and ids as long as they usually are. */
import { beforeEach, expect, test } from 'vitest';
import { newJobId } from '../../../src/job/job-id.ts';
import { declareQueue, setQueue } from '../../../src/redis/scripts/queues.ts';
import { useCli } from '../../support/cli.ts';
import { usePartition } from '../../support/partition.ts';

const cli = useCli();
const the = usePartition();
const namespace = 't';
const COLUMNS = 80;

beforeEach(async () => {
  await declareQueue(the.redis, { namespace, queue: 'q', partitions: 1 });
});

const shown = async (line: string) => {
  const { code, out } = await cli.run([
    ...line.split(' ').map((word) => word.replaceAll('~', ' ')),
    '--redis',
    the.server.url,
    '--namespace',
    namespace,
  ]);
  expect(code).toBe(0);
  return out.trimEnd().split('\n');
};

/** A job that waits, one that is dead, a leader and a schedule. */
async function something(): Promise<void> {
  const id = newJobId();
  await the.bury(await the.running(id), { reason: 'attempts-exhausted' });
  await the.schedule(newJobId(), { dueMs: Date.now() + 11 * 86_400_000 });
}

test.each([
  ['ls q'],
  ['ls q --state dead'],
  ['ls q --due-from now'],
  ['dead ls q'],
  ['queues ls'],
  ['queues leaders'],
  ['schedules preview nightly --cron 30~2~*~*~* --zone America/New_York --from 2026-03-07 --next 3'],
])('%s', async (line) => {
  await something();
  const lines = await shown(line);
  expect(lines.length).toBeGreaterThan(1);
  expect(lines.filter((text) => text.length > COLUMNS)).toEqual([]);
});

test.each([['queues ls'], ['top --frames 1']])('%s of a queue with limits', async (line) => {
  const rate = { limit: 100, perMs: 1000, burst: 1 };
  await setQueue(the.redis, { namespace, queue: 'q', rate, concurrency: 1000, perGroup: 10, fair: true });
  await something();
  await the.schedule(newJobId());
  await the.promote();
  const lines = await shown(line);
  expect(lines.join('\n')).toContain('in line');
  expect(lines.filter((text) => text.length > COLUMNS)).toEqual([]);
});
