/** A worker is killed in the middle of a batch: the crash counts for each of its jobs, and from then on each runs alone. */
import { expect, it } from 'vitest';
import { useKilled } from '../../support/killed.ts';

const killed = useKilled('batch-handlers.mjs');

it('a job that kills its worker takes the jobs of its batch along once, and then itself alone', {
  timeout: 300_000,
}, async () => {
  const client = killed.client();
  const ids = ['a', 'b', 'killer', 'c', 'd'];
  await client.scheduleMany(
    'rows',
    ids.map((id) => ({ id, data: 0 })),
  );
  const states = async () => Promise.all(ids.map(async (id) => (await client.get('rows', id))?.state));
  await killed.replace(
    expect.poll(states, { timeout: 240_000, interval: 100 }).toEqual(['done', 'done', 'dead', 'done', 'done']),
  );
  const calls = killed.lines().map((line) => line.split(' '));
  const withKiller = calls.filter((call) => call.some((job) => job.startsWith('killer')));
  // After the first crash it is alone.
  expect(withKiller.slice(1).every((call) => call.length === 1)).toBe(true);
  const crashed = calls.filter((call) => call.some((job) => !job.endsWith(':0')));
  expect(crashed.every((call) => call.length === 1)).toBe(true);
});
