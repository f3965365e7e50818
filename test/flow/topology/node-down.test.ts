/**
 * A node of a cluster is down, and nobody takes its place: its queues do not answer. Whoever asks about all queues is answered for
 * the others, and is told which ones were left out and why.
 */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import { slotOf } from '../../../src/redis/connection/cluster/nodes.ts';
import { useCli } from '../../support/cli.ts';
import { type ClusterOfTests, startCluster } from '../../support/topology-lite.ts';

const cli = useCli();
/** Which of three nodes has a slot, as `startCluster` shares them out. */
const nodeOf = (tag: string): number => Math.floor(slotOf(`{${tag}}`) / 5462);
/** Not the node of the registry. */
const DOWN = nodeOf('control') === 2 ? 1 : 2;
const names = Array.from({ length: 100 }, (_, at) => `q${at}`);
const queueAt = (isDown: boolean): string => names.find((name) => (nodeOf(`${name}:0`) === DOWN) === isDown) ?? '';
const [down, up] = [queueAt(true), queueAt(false)];
let cluster: ClusterOfTests;

beforeAll(async () => {
  cluster = await startCluster({ replicas: false, args: ['--cluster-require-full-coverage', 'no'] });
  const client = createClient({ redis: cluster.url });
  for (const queue of [down, up]) {
    await client.schedule(queue, {}, { id: 'one', delay: '1h' });
    await client.schedules.put(`of-${queue}`, { queue, every: '1h' });
  }
  await client.close();
  await cluster.masters[DOWN]?.kill('SIGKILL');
});
afterAll(() => cluster?.stop());

const asked = async (...words: string[]) => {
  const { code, out, err } = await cli.run([...words, '--json', '--redis', cluster.url]);
  return { code, err, answer: out === '' ? {} : JSON.parse(out) };
};
const queuesOf = (rows: readonly { readonly queue: string }[]) => rows.map(({ queue }) => queue);

test.each([
  { words: ['queues', 'ls'], rows: 'queues' },
  { words: ['queues', 'leaders'], rows: 'partitions' },
  { words: ['doctor', '--keys'], rows: 'partitions' },
])('$words answers for the other queues, and names the one whose node is down', async ({ words, rows }) => {
  const { code, err, answer } = await asked(...words);
  expect({ code, err }).toEqual({ code: 1, err: '' });
  expect(answer.unread).toEqual([{ queue: down, why: expect.stringMatching(/Redis|CLUSTERDOWN/) }]);
  expect(queuesOf(answer[rows])).toEqual([up]);
});

test('workers and the forecast do so too', async () => {
  for (const words of [
    ['queues', 'workers'],
    ['schedules', 'forecast'],
  ]) {
    const { code, answer } = await asked(...words);
    expect({ words, code, left: queuesOf(answer.unread) }).toEqual({ words, code: 1, left: [down] });
  }
});

test('a daemon is ready that leads nothing on that node, and so is a client', async () => {
  const daemon = createDaemon({ redis: { url: cluster.url }, roles: ['mover'] });
  const client = createClient({ redis: cluster.url });
  onTestFinished(() => Promise.all([client.close(), daemon.stop()]).then(() => undefined));
  await client.ready();
  await daemon.start();
  await daemon.ready();
  // It leads the queue whose node is up before it is ready.
  await expect.poll(() => daemon.isReady()).toBe(true);
  await client.schedule(up, {}, { id: 'two' });
  await expect.poll(async () => (await client.get(up, 'two'))?.state).toBe('ready');
  expect(await daemon.isReady()).toBe(true);
});

test('each check of doctor that looks at queues fails with its name, and says what it saw of the others', async () => {
  const { answer } = await asked('doctor');
  const about = answer.checks.filter(({ saw }: { readonly saw: string }) => saw.includes(`"${down}" cannot be read`));
  for (const { status, saw } of about)
    expect({ status, saw }).toEqual({ status: 'fail', saw: expect.stringContaining('of the others: ') });
  const names = about.map(({ check }: { readonly check: string }) => check);
  expect(names).toEqual(
    expect.arrayContaining(['schema', 'workers', 'scores', 'members', 'streams', 'done', 'closed', 'sets']),
  );
});
