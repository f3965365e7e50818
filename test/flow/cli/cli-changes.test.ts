/** `reschedule`, `reschedule --now` and `edit` on the command line. */
import { beforeEach, describe, expect, test } from 'vitest';
import { declareQueue } from '../../../src/redis/scripts/queues.ts';
import { useCli } from '../../support/cli.ts';
import { T0, usePartition } from '../../support/partition.ts';

const cli = useCli();
const p = usePartition();
const DAY_MS = 86_400_000;

beforeEach(async () => {
  await declareQueue(p.redis, { namespace: 't', queue: 'q', partitions: 1 });
});

const due = (args: readonly string[]) => cli.run([...args, '--redis', p.server.url, '--namespace', 't']);
const answer = async (args: readonly string[]) => JSON.parse((await due([...args, '--json'])).out);
/** Far enough ahead, whenever this runs. */
const waits = (id: string) => p.schedule(id, { dueMs: Date.now() + DAY_MS, data: { to: 'ada' } });

describe('reschedule', () => {
  test('gives jobs another due time, one line each', async () => {
    await waits('a');
    const { code, out } = await due(['reschedule', 'q', 'a', 'nobody', '--delay', '2d']);
    expect(code).toBe(1);
    expect(out).toMatch(/^a {2}due 2\d{3}-.*in 2 ?d.*was 2\d{3}-.*\nnobody {2}unknown: it never existed/);
    expect((await due(['reschedule', 'q', 'a', '--delay', '3d', '--only', 'earlier'])).out).toMatch(
      /^a {2}kept {2}due /,
    );
    const at = new Date(Date.now() + 5 * DAY_MS).toISOString();
    expect(await answer(['reschedule', 'q', 'a', '--at', at])).toMatchObject({
      queue: 'q',
      jobs: [{ id: 'a', status: 'rescheduled', dueMs: Date.parse(at) }],
    });
  });

  test('shifts each from the due time that it has', async () => {
    await waits('a');
    const { jobs } = await answer(['reschedule', 'q', 'a', '--shift', '1d']);
    expect(jobs).toMatchObject([{ id: 'a', status: 'rescheduled', dueMs: jobs[0].wasMs + DAY_MS }]);
    const earlier = await answer(['reschedule', 'q', 'a', '--shift=-1d']);
    expect(earlier.jobs).toMatchObject([{ dueMs: jobs[0].wasMs }]);
  });

  test('says what is missing, and what is not allowed', async () => {
    expect(await due(['reschedule', 'q', 'a'])).toMatchObject({
      code: 64,
      err: expect.stringContaining('neither delay nor at is given'),
    });
    expect(await due(['reschedule', 'q', 'a', '--delay', '1h', '--only', 'x'])).toMatchObject({
      code: 64,
      err: expect.stringContaining('Allowed choices are earlier, later'),
    });
    expect((await due(['reschedule', 'other', 'a', '--delay', '1h'])).err).toContain('queue "other" was never used');
  });
});

test('reschedule --now makes jobs due, and says of those that run that they do', async () => {
  await waits('a');
  await p.running('b');
  const { code, out } = await due(['reschedule', 'q', 'a', 'b', '--now']);
  expect([code, out]).toEqual([1, 'a  due now\nb  not changed: it runs\n']);
  expect(await due(['reschedule', 'q', 'a', '--now'])).toMatchObject({
    code: 0,
    out: 'a  due already: it waits for a worker\n',
  });
});

describe('edit', () => {
  test('changes data, name and options, and show tells them', async () => {
    await waits('a');
    const flags = ['--data', '{"to":"bob"}', '--name', 'other', '--attempts', '3', '--max-lateness', '10m'];
    const { code, out } = await due(['edit', 'q', 'a', ...flags]);
    expect([code, out]).toEqual([0, expect.stringMatching(/^a {2}edited {2}digest [0-9a-f]{16}\n$/)]);
    expect(await answer(['show', 'q', 'a'])).toMatchObject({
      name: 'other',
      data: { to: 'bob' },
      options: { attempts: 3, maxLatenessMs: 600_000 },
    });
    const shown = (await due(['show', 'q', 'a'])).out;
    expect(shown).toMatch(/^budget +3 attempts\nlateness +at most 10 ?m.*, then it is dropped$/m);
    await due(['edit', 'q', 'a', '--unset', 'attempts', '--unset', 'max-lateness']);
    expect((await answer(['show', 'q', 'a'])).options).toEqual({});
  });

  test('with the digest that show tells is refused after another edit', async () => {
    await waits('a');
    const { digest } = await answer(['show', 'q', 'a']);
    await due(['edit', 'q', 'a', '--name', 'other']);
    expect(await due(['edit', 'q', 'a', '--name', 'third', '--if-digest', digest])).toMatchObject({
      code: 1,
      out: expect.stringContaining('somebody else has changed it'),
    });
  });

  test('says what is not allowed', async () => {
    await p.schedule('a', { dueMs: T0 });
    for (const [flags, words] of [
      [[], 'nothing is to be different'],
      [
        ['--unset', 'delay'],
        'Allowed: attempts, timeout, backoff, target, priority, tag, expires-at, max-lateness, on-late',
      ],
      [['--data', '{'], 'data'],
    ] as const) {
      expect(await due(['edit', 'q', 'a', ...flags])).toMatchObject({ code: 64, err: expect.stringContaining(words) });
    }
  });
});

test.each([
  ['schedule q --data 1 --delay 1h'],
  ['reschedule q a --delay 2h'],
  ['edit q a --attempts 2'],
  ['cancel q --tag none --yes'],
  ['dead ls q'],
  ['tags erase none --yes'],
  ['schedules put nightly --queue q --cron @daily'],
])('%s opens one connection for the look, the change and the audit', async (line) => {
  await waits('a');
  const opened = async () => Number(/total_connections_received:(\d+)/.exec(await p.redis.info('stats'))?.[1]);
  const before = await opened();
  expect((await due(line.split(' '))).code).toBe(0);
  expect((await opened()) - before).toBe(1);
});
